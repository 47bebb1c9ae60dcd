/* Private to the files of the slide family: where the points of a window lie, and the set of each processor.
 *
 * A coordinate is kept as cell + fraction: Delta is split before the integer base is added, so the fraction
 * keeps the precision of Delta (at most a few units) however large the lattice is. A clamped axis has step 0:
 * both corners are then the same, and the derivative along the axis vanishes by itself. */
#pragma once
#include "msk-slide.h"

struct msk_slide_axis {
  int64_t cell; /* c0 */
  int64_t step; /* c1 - c0, 0 or 1 */
  float fraction;
};

/* base = b + r_j; length = L. */
static inline struct msk_slide_axis msk_slide_axis(int64_t base, float delta, int64_t length) {
  int64_t down = (int64_t)delta;
  if (delta < (float)down)
    down--;
  struct msk_slide_axis axis = {.cell = base + down, .step = 1, .fraction = delta - (float)down};
  if (axis.cell < 0)
    return (struct msk_slide_axis){.cell = 0};
  if (axis.cell >= length - 1)
    return (struct msk_slide_axis){.cell = length - 1};
  return axis;
}

/* First cell of the window of a token at index i of an axis. */
static inline int64_t msk_slide_base(int64_t i, int64_t window, int64_t length) {
  int64_t base = i - window / 2;
  if (base > length - window)
    base = length - window;
  return base < 0 ? 0 : base;
}

static inline int64_t msk_slide_window_points(const struct msk_slide *p) {
  return p->window[0] * p->window[1] * p->window[2];
}

#if MSK_X86
/* Set the slots that the instruction set has a version of. */
void msk_slide_init_avx512(struct msk_slide_ops *f32, struct msk_slide_ops *bf16);
void msk_slide_init_avx512bf16(struct msk_slide_ops *bf16);
void msk_slide_init_amx(struct msk_slide_ops *bf16);
#endif
