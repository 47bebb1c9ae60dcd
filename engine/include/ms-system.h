/* Time and memory as the operating system tells them, for code above the engine. */
#pragma once
#include "../base/system.h"
