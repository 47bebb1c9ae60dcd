/* What this machine can do at most: the multiply-add rates of its registers and the rates of its memory.
 *
 * The functions do a known amount of work and return it; the caller takes the time, on one thread or on
 * several, and divides. Arithmetic touches no memory, memory sweeps do no arithmetic to speak of, so a
 * kernel's rate over the matching peak is its efficiency.
 *
 *   struct msk_peak_ops peak;
 *   msk_peak_init (&peak, flags);
 *   start = now (); flops = peak.bf16 (1000000); rate = flops / (now () - start);   */
#pragma once
#include "msk-types.h"

struct msk_peak_ops {
  const char *name; /* "c", "avx2", "avx512", "avx512bf16", "amx" */
  /* n rounds of multiply-adds in registers, 2 FLOPs each; the return value is the number of FLOPs. bf16 is
   * the widest unit of the set that multiplies bfloat16 (AMX tiles, vdpbf16ps), or float32 where there is
   * none, since the products of that set multiply so. */
  double (*f32)(int64_t n);
  double (*bf16)(int64_t n);
  /* Sweeps over n elements, buffers aligned to MSK_ALIGN and apart; the return value is the number of bytes
   * read and written, without what the caches add. copy: y = x; copy_stream: the same past the caches where
   * the set can; triad: y = x + s z (McCalpin's STREAM); update: reads g and changes w, m, v, the 28 bytes
   * that AdamW touches. */
  double (*copy)(const float *x, float *y, int64_t n);
  double (*copy_stream)(const float *x, float *y, int64_t n);
  double (*triad)(const float *x, float s, const float *z, float *y, int64_t n);
  double (*update)(const float *g, float *w, float *m, float *v, int64_t n);
  /* The same for AdamW on a split master: reads g, changes hi, lo (2 bytes an element each), m, v. g_bytes: 2
   * or 4 an element, moment_bytes: 1 or 4; whole groups of 64 elements. ahead: elements that fetches run
   * ahead, 0 for none; the best rate is that of the best ahead. */
  double (*update_split)(const void *g, int g_bytes, void *hi, void *lo, void *m, void *v, int moment_bytes,
                         int64_t ahead, int64_t n);
};

/* The best functions the flags allow (0: the C reference). */
void msk_peak_init(struct msk_peak_ops *ops, unsigned cpu_flags);
