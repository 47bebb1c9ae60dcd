/* Frames to encode: a slow gradient under a soft bar that moves, and fields of one colour. */
#pragma once
#include <stdint.h>

void scene_draw(uint8_t *rgb, int width, int height, int frame);
/* One colour all over. */
void scene_fill(uint8_t *rgb, int width, int height, int r, int g, int b);
double scene_psnr(const uint8_t *a, const uint8_t *b, int64_t n);
