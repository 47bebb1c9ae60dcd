#include "scene.h"

#include <math.h>

void scene_fill(uint8_t *rgb, int width, int height, int r, int g, int b) {
  for (int i = 0; i < width * height; i++) {
    rgb[3 * i] = (uint8_t)r;
    rgb[3 * i + 1] = (uint8_t)g;
    rgb[3 * i + 2] = (uint8_t)b;
  }
}

void scene_draw(uint8_t *rgb, int width, int height, int frame) {
  static const int bar[3] = {230, 60, 60};
  double center = 12 + fmod(frame * 3.0, width - 24);
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      const double back[3] = {40 + 160.0 * x / width, 60 + 140.0 * y / height, 200 - 100.0 * x / width};
      /* edges four pixels wide, so that half the chroma can still draw them */
      double inside = fmin(1, fmax(0, (10 - fabs(x - center)) / 4)) *
                      fmin(1, fmax(0, (height / 4.0 - fabs(y - height / 2.0)) / 4));
      for (int c = 0; c < 3; c++)
        rgb[3 * (y * width + x) + c] = (uint8_t)lround(back[c] + inside * (bar[c] - back[c]));
    }
}

double scene_psnr(const uint8_t *a, const uint8_t *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
  return sum > 0 ? 10 * log10(255.0 * 255 * (double)n / sum) : 99;
}
