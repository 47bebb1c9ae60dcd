/* Types that every family of kernels shares.
 *
 * Kernels compute and do nothing else: no allocation, no locks, no input or output, no global state. A caller
 * fills a parameter struct, splits the work into ranges, and may run ranges on several threads; a result never
 * depends on how the work was split, unless a function says so. Buffers hold float32 or bfloat16 (uint16_t),
 * row-major; "ld" is the distance between rows in elements. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Element type of a buffer. */
enum msk_type { MSK_F32 = 0, MSK_BF16 = 1 };

/* What products and attention multiply in: float32, or bfloat16 operands with float32 accumulation. */
enum msk_precision { MSK_PRECISION_F32 = 0, MSK_PRECISION_BF16 = 1 };

/* Scratch and packed buffers must be aligned to this many bytes. */
#define MSK_ALIGN 64

static inline size_t msk_type_size(enum msk_type type) {
  return type == MSK_F32 ? 4 : 2;
}

static inline float msk_bf16_to_f32(uint16_t h) {
  union {
    uint32_t u;
    float f;
  } v = {.u = (uint32_t)h << 16};
  return v.f;
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t msk_f32_to_bf16(float f) {
  union {
    float f;
    uint32_t u;
  } v = {.f = f};
  if ((v.u & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)((v.u >> 16) | 0x40u);
  return (uint16_t)((v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16);
}
