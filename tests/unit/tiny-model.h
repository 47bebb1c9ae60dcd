/* A model that is small enough to be made and trained in a moment: two layers of 3D-DSA with 32 channels, a
 * dense base stage, and the words "up" and "down". */
#pragma once
#include "ms-error.h"

extern const char tiny_config[]; /* its configuration in JSON */

/* Makes it in the folder "model" of the scratch folder, with random weights; 0 or a negative code. */
int tiny_model_make(struct ms_error *error);
