/* The colours of a clip reduced to a palette, and frames drawn with it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define MS_PALETTE_BITS 5 /* a channel; colours are counted in cells of this */
#define MS_PALETTE_CELLS (1 << 3 * MS_PALETTE_BITS)

struct ms_palette {
  uint64_t counts[MS_PALETTE_CELLS];
  uint64_t sums[MS_PALETTE_CELLS][3];
  uint8_t colors[256][3];
  int size;
  float error;                 /* root mean square distance of a channel from its palette colour */
  int16_t nearest[1 << 3 * 6]; /* by upper six bits; -1: not looked up yet */
};

/* palette is zeroed at first; count may be called for any number of frames. n in pixels. */
void ms_palette_count(struct ms_palette *palette, const uint8_t *rgb, size_t n);
/* Chooses at most `size` colours: median cut (Heckbert 1982), always at the mean of the box with the largest
 * squared error. */
void ms_palette_choose(struct ms_palette *palette, int size);
/* Indices of a frame, with an ordered dither (Bayer 8x8) as strong as the palette is coarse: a still scene
 * stays still. */
void ms_palette_draw(struct ms_palette *palette, const uint8_t *rgb, int width, int height, uint8_t *indices,
                     int stride);
