#include "media/palette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ms_palette_count(struct ms_palette *palette, const uint8_t *rgb, size_t n) {
  enum { SHIFT = 8 - MS_PALETTE_BITS };
  for (size_t i = 0; i < n; i++, rgb += 3) {
    int cell =
        (rgb[0] >> SHIFT << 2 * MS_PALETTE_BITS) | (rgb[1] >> SHIFT << MS_PALETTE_BITS) | rgb[2] >> SHIFT;
    palette->counts[cell]++;
    for (int c = 0; c < 3; c++)
      palette->sums[cell][c] += rgb[c];
  }
}

struct point { /* a cell that occurs */
  double color[3], weight;
};

struct box {
  int begin, end; /* of points */
  double mean[3], spread[3];
};

static void measure(const struct point *points, struct box *box) {
  double weight = 0;
  for (int c = 0; c < 3; c++)
    box->mean[c] = box->spread[c] = 0;
  for (int i = box->begin; i < box->end; i++) {
    weight += points[i].weight;
    for (int c = 0; c < 3; c++)
      box->mean[c] += points[i].weight * points[i].color[c];
  }
  for (int c = 0; c < 3; c++)
    box->mean[c] /= weight;
  for (int i = box->begin; i < box->end; i++)
    for (int c = 0; c < 3; c++) {
      double d = points[i].color[c] - box->mean[c];
      box->spread[c] += points[i].weight * d * d;
    }
}

static int widest(const struct box *box) {
  int c = box->spread[1] >= box->spread[0] ? 1 : 0;
  return box->spread[2] > box->spread[c] ? 2 : c;
}

static double total(const struct box *box) {
  return box->spread[0] + box->spread[1] + box->spread[2];
}

/* Moves the points below the mean to the front and returns where the others begin. */
static int split(struct point *points, const struct box *box, int axis) {
  int at = box->begin;
  for (int i = box->begin; i < box->end; i++)
    if (points[i].color[axis] <= box->mean[axis]) {
      struct point moved = points[i];
      points[i] = points[at];
      points[at++] = moved;
    }
  return at;
}

void ms_palette_choose(struct ms_palette *palette, int size) {
  struct point *points = malloc(MS_PALETTE_CELLS * sizeof *points);
  struct box boxes[256];
  double weight = 0, error = 0;
  int n = 0, count = 1;
  palette->size = 0;
  memset(palette->nearest, -1, sizeof palette->nearest);
  for (int i = 0; points && i < MS_PALETTE_CELLS; i++) {
    if (!palette->counts[i])
      continue;
    points[n].weight = (double)palette->counts[i];
    for (int c = 0; c < 3; c++)
      points[n].color[c] = (double)palette->sums[i][c] / points[n].weight;
    weight += points[n++].weight;
  }
  if (!n) {
    free(points);
    return;
  }
  boxes[0].begin = 0;
  boxes[0].end = n;
  measure(points, &boxes[0]);
  while (count < size) {
    int worst = 0, middle;
    for (int i = 1; i < count; i++)
      if (total(&boxes[i]) > total(&boxes[worst]))
        worst = i;
    middle = split(points, &boxes[worst], widest(&boxes[worst]));
    if (middle == boxes[worst].begin || middle == boxes[worst].end)
      break; /* each box is one colour */
    boxes[count].begin = middle;
    boxes[count].end = boxes[worst].end;
    boxes[worst].end = middle;
    measure(points, &boxes[worst]);
    measure(points, &boxes[count++]);
  }
  for (int i = 0; i < count; i++) {
    error += total(&boxes[i]);
    for (int c = 0; c < 3; c++)
      palette->colors[i][c] = (uint8_t)lround(boxes[i].mean[c]);
  }
  palette->size = count;
  palette->error = (float)sqrt(error / weight / 3);
  free(points);
}

static int find_nearest(struct ms_palette *palette, int r, int g, int b) {
  int16_t *known = &palette->nearest[(r >> 2 << 12) | (g >> 2 << 6) | b >> 2];
  if (*known < 0) {
    int best = 0, best_distance = 1 << 30;
    for (int i = 0; i < palette->size; i++) {
      const uint8_t *color = palette->colors[i];
      /* the eye's weights of the channels, roughly */
      int dr = color[0] - ((r & ~3) + 2), dg = color[1] - ((g & ~3) + 2), db = color[2] - ((b & ~3) + 2);
      int distance = 2 * dr * dr + 4 * dg * dg + db * db;
      if (distance < best_distance) {
        best = i;
        best_distance = distance;
      }
    }
    *known = (int16_t)best;
  }
  return *known;
}

static int clip(float value) {
  return value <= 0 ? 0 : value >= 255 ? 255 : (int)(value + 0.5f);
}

void ms_palette_draw(struct ms_palette *palette, const uint8_t *rgb, int width, int height, uint8_t *indices,
                     int stride) {
  float bayer[8][8];
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 8; x++) {
      int v = 0;
      for (int bit = 0; bit < 3; bit++)
        v |= (((x ^ y) >> bit & 1) << (5 - 2 * bit)) | ((y >> bit & 1) << (4 - 2 * bit));
      /* one and a half root mean square errors break up bands; more adds grain without coming closer to the
       * picture */
      bayer[y][x] = ((float)v - 31.5f) / 64 * 1.5f * palette->error;
    }
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++, rgb += 3) {
      float d = bayer[y & 7][x & 7];
      indices[(size_t)y * (size_t)stride + (size_t)x] =
          (uint8_t)find_nearest(palette, clip(rgb[0] + d), clip(rgb[1] + d), clip(rgb[2] + d));
    }
}
