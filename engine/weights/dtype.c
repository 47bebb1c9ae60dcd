#include "weights/safetensors.h"

#include <math.h>
#include <string.h>

#include "msk-types.h"

static const struct {
  const char *name;
  size_t size;
} dtypes[] = {
    [MS_DTYPE_BOOL] = {"BOOL", 1},       [MS_DTYPE_U8] = {"U8", 1},           [MS_DTYPE_I8] = {"I8", 1},
    [MS_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [MS_DTYPE_F8_E5M2] = {"F8_E5M2", 1}, [MS_DTYPE_I16] = {"I16", 2},
    [MS_DTYPE_U16] = {"U16", 2},         [MS_DTYPE_F16] = {"F16", 2},         [MS_DTYPE_BF16] = {"BF16", 2},
    [MS_DTYPE_I32] = {"I32", 4},         [MS_DTYPE_U32] = {"U32", 4},         [MS_DTYPE_F32] = {"F32", 4},
    [MS_DTYPE_F64] = {"F64", 8},         [MS_DTYPE_I64] = {"I64", 8},         [MS_DTYPE_U64] = {"U64", 8},
};

size_t ms_dtype_size(enum ms_dtype dtype) {
  return dtypes[dtype].size;
}

const char *ms_dtype_name(enum ms_dtype dtype) {
  return dtypes[dtype].name;
}

/* Binary floating point with `mantissa` bits of fraction and exponent bias `bias`, sign, exponent and
 * fraction as given; exponents of all ones are up to the caller. */
static double small_float(int sign, int exponent, int fraction, int mantissa, int bias) {
  double value = exponent ? ldexp((1 << mantissa) + fraction, exponent - bias - mantissa)
                          : ldexp(fraction, 1 - bias - mantissa);
  return sign ? -value : value;
}

static double f16_value(uint16_t bits) { /* IEEE 754 binary16 */
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return fraction ? NAN : bits >> 15 ? -INFINITY : INFINITY;
  return small_float(bits >> 15, exponent, fraction, 10, 15);
}

static double e5m2_value(uint8_t bits) { /* the upper byte of a binary16 */
  return f16_value((uint16_t)(bits << 8));
}

static double e4m3_value(uint8_t bits) { /* "fn": no infinities, only all ones is not a number */
  if ((bits & 127) == 127)
    return NAN;
  return small_float(bits >> 7, bits >> 3 & 15, bits & 7, 3, 7);
}

static inline double value_at(const char *at, enum ms_dtype dtype) {
  union {
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f32;
    double f64;
  } value;
  memcpy(&value, at, dtypes[dtype].size);
  switch (dtype) {
  case MS_DTYPE_BOOL:
    return value.u8 != 0;
  case MS_DTYPE_U8:
    return value.u8;
  case MS_DTYPE_I8:
    return value.i8;
  case MS_DTYPE_F8_E4M3:
    return e4m3_value(value.u8);
  case MS_DTYPE_F8_E5M2:
    return e5m2_value(value.u8);
  case MS_DTYPE_I16:
    return value.i16;
  case MS_DTYPE_U16:
    return value.u16;
  case MS_DTYPE_F16:
    return f16_value(value.u16);
  case MS_DTYPE_BF16:
    return msk_bf16_to_f32(value.u16);
  case MS_DTYPE_I32:
    return value.i32;
  case MS_DTYPE_U32:
    return value.u32;
  case MS_DTYPE_F32:
    return value.f32;
  case MS_DTYPE_F64:
    return value.f64;
  case MS_DTYPE_I64:
    return (double)value.i64;
  case MS_DTYPE_U64:
    return (double)value.u64;
  }
  return NAN;
}

void ms_tensor_read_f64(const struct ms_tensor_view *view, double *out) {
  size_t size = dtypes[view->dtype].size;
  for (int64_t i = 0; i < view->count; i++)
    out[i] = value_at((const char *)view->data + (size_t)i * size, view->dtype);
}

void ms_tensor_read_f32(const struct ms_tensor_view *view, float *out) {
  const char *at = view->data;
  size_t size = dtypes[view->dtype].size;
  if (view->dtype == MS_DTYPE_F32) {
    if (view->bytes)
      memcpy(out, at, view->bytes);
    return;
  }
  if (view->dtype == MS_DTYPE_BF16) { /* checkpoints are mostly this: a plain shift, left to the vectorizer */
    for (int64_t i = 0; i < view->count; i++) {
      uint16_t bits;
      memcpy(&bits, at + 2 * i, 2);
      out[i] = msk_bf16_to_f32(bits);
    }
    return;
  }
  for (int64_t i = 0; i < view->count; i++)
    out[i] = (float)value_at(at + (size_t)i * size, view->dtype);
}
