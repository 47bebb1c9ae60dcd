#include "player/msu-yuv.h"

#include <math.h>

#define BITS 14

/* In units of 2^-BITS; those of chroma are for eighths of it. */
struct matrix {
  int y_offset, y, rv, gu, gv, bu;
};

static int fixed(double x) {
  return (int)lround(x * (1 << BITS));
}

/* ITU-R BT.709, BT.601 and BT.2020 alike: all follow from the weights of red and blue. */
static struct matrix matrix_of(const struct msu_yuv *picture) {
  double kr = picture->kr, kb = picture->kb, kg = 1 - kr - kb;
  double y = picture->full ? 1 : 255. / 219, c = (picture->full ? 1 : 255. / 224) / 8;
  return (struct matrix){.y_offset = picture->full ? 0 : 16,
                         .y = fixed(y),
                         .rv = fixed(c * 2 * (1 - kr)),
                         .gu = fixed(c * 2 * (1 - kb) * kb / kg),
                         .gv = fixed(c * 2 * (1 - kr) * kr / kg),
                         .bu = fixed(c * 2 * (1 - kb))};
}

/* One row of chroma at the height of row y, four times its value. */
static void blend_rows(const struct msu_yuv *picture, int plane, int y, guint16 *row) {
  const guint8 *data = picture->planes[plane];
  gsize stride = picture->strides[plane];
  int last = picture->chroma_height - 1, near = y, far = y;
  if (picture->chroma_height != picture->height) {
    near = y / 2;
    far = CLAMP(y % 2 ? near + 1 : near - 1, 0, last);
  }
  const guint8 *a = data + stride * near, *b = data + stride * far;
  for (int x = 0; x < picture->chroma_width; x++)
    row[x] = (guint16)(3 * a[x] + b[x]);
}

/* To the width of the picture, eight times the value. */
static void widen(const struct msu_yuv *picture, const guint16 *row, guint16 *wide) {
  int width = picture->width, last = picture->chroma_width - 1;
  if (picture->chroma_width == width) {
    for (int x = 0; x < width; x++)
      wide[x] = (guint16)(2 * row[x]);
    return;
  }
  for (int i = 0; i < width / 2; i++) {
    wide[2 * i] = (guint16)(2 * row[i]);
    wide[2 * i + 1] = (guint16)(row[i] + row[MIN(i + 1, last)]);
  }
  if (width % 2)
    wide[width - 1] = (guint16)(2 * row[last]);
}

static guint32 clip(int x) {
  x = x < 0 ? 0 : x;
  return (guint32)(x > 255 ? 255 : x);
}

/* One row. Whole pixels are stored, so that compilers make vectors of it. */
static void convert_row(const struct matrix *m, const guint8 *restrict luma, const guint16 *restrict u,
                        const guint16 *restrict v, int width, guint32 *restrict out) {
  const int y_offset = m->y_offset, my = m->y, rv = m->rv, gu = m->gu, gv = m->gv, bu = m->bu;
  for (int x = 0; x < width; x++) {
    int l = (luma[x] - y_offset) * my + (1 << (BITS - 1)); /* all sums stay below 2^24 in size */
    int cb = u[x] - 8 * 128, cr = v[x] - 8 * 128;
    guint32 b = clip((l + cb * bu) >> BITS), g = clip((l - cb * gu - cr * gv) >> BITS);
    guint32 r = clip((l + cr * rv) >> BITS);
    out[x] = GUINT32_TO_LE(b | g << 8 | r << 16 | 0xffu << 24);
  }
}

void msu_yuv_to_bgra(const struct msu_yuv *picture, guint8 *bgra) {
  const struct matrix m = matrix_of(picture);
  int width = picture->width;
  g_autofree guint16 *rows = g_new(guint16, (gsize)4 * width);
  guint16 *u = rows, *v = rows + width, *narrow_u = v + width, *narrow_v = narrow_u + width;
  for (int y = 0; y < picture->height; y++) {
    const guint8 *luma = picture->planes[0] + picture->strides[0] * y;
    guint8 *out = bgra + (gsize)width * 4 * y;
    blend_rows(picture, 1, y, narrow_u);
    blend_rows(picture, 2, y, narrow_v);
    widen(picture, narrow_u, u);
    widen(picture, narrow_v, v);
    convert_row(&m, luma, u, v, width, (guint32 *)out);
  }
}
