/* Enlarging and shrinking float32 images: separable bicubic (Keys 1981, a = -0.5), widened by the factor when
 * shrinking so that nothing aliases. Pixel centres at half coordinates, edges clamped. */
#pragma once
#include "base/compute.h"

/* in [ih, iw, channels] -> out [oh, ow, channels]. 0 or MS_ENOMEM. */
int ms_resize(struct ms_compute *compute, const float *in, int ih, int iw, float *out, int oh, int ow,
              int channels, struct ms_error *error);
