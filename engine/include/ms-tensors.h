/* Weight files, for code above the engine that looks into them: names, types, shapes, metadata. */
#pragma once
#include "../weights/safetensors.h"
