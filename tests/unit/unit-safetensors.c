#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "harness.h"
#include "scratch.h"
#include "weights/safetensors.h"

/* Writes a file of the given header and data_bytes of zeros; length_offset falsifies the header's length. */
static void put_file(const char *header, size_t header_bytes, size_t data_bytes, int64_t length_offset) {
  char *bytes = calloc(8 + header_bytes + data_bytes, 1);
  uint64_t length = header_bytes + (uint64_t)length_offset;
  for (int i = 0; i < 8; i++)
    bytes[i] = (char)(length >> 8 * i);
  memcpy(bytes + 8, header, header_bytes);
  scratch_put("t.safetensors", bytes, 8 + header_bytes + data_bytes);
  free(bytes);
}

static void check_good(const char *what, const char *header, size_t data_bytes, int want_count) {
  struct ms_safetensors *file;
  struct ms_error error = {0};
  put_file(header, strlen(header), data_bytes, 0);
  if (ms_safetensors_open(&file, scratch_path("t.safetensors"), &error) < 0) {
    check_ok(0, "%s opens: %s", what, error.message);
    return;
  }
  check_ok(ms_safetensors_count(file) == want_count, "%s opens", what);
  ms_safetensors_close(&file);
}

static void check_bad_file(const char *what) {
  struct ms_safetensors *file;
  struct ms_error error = {0};
  int code = ms_safetensors_open(&file, scratch_path("t.safetensors"), &error);
  check_ok(code == MS_EINPUT && !file && strstr(error.message, "t.safetensors"), "%s: %s", what,
           error.message);
  ms_safetensors_close(&file);
}

static void check_bad(const char *what, const char *header, size_t data_bytes) {
  put_file(header, strlen(header), data_bytes, 0);
  check_bad_file(what);
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{\"a\":" T(dtype, shape, offsets) "}"

static void check_headers(void) {
  char deep[8192];
  check_good("no tensors", "{}", 0, 0);
  check_good("a header padded with spaces", "{}      ", 0, 0);
  check_good("a number without dimensions", ONE("F32", "[]", "[0,4]"), 4, 1);
  check_good("an empty tensor", ONE("F32", "[3,0,5]", "[0,0]"), 0, 1);
  check_good("empty tensors between others",
             "{\"a\":" T("F32", "[1]", "[0,4]") ",\"z\":" T("F32", "[0]", "[4,4]") ",\"y\":" T(
                 "F32", "[0]", "[0,0]") ",\"b\":" T("U8", "[3]", "[4,7]") "}",
             7, 4);
  check_good("data at odd places", "{\"a\":" T("U8", "[1]", "[0,1]") ",\"b\":" T("F64", "[1]", "[1,9]") "}",
             9, 2);
  check_good("metadata", "{\"__metadata__\":{\"k\":\"v\"}}", 0, 0);
  check_bad("header is a list", "[]", 0);
  check_bad("header starts with a space", " {}", 0);
  check_bad("header is not JSON", "{\"a\":", 0);
  check_bad("text after the header's object", "{}{}", 0);
  check_bad("two tensors of one name",
            "{\"a\":" T("U8", "[1]", "[0,1]") ",\"a\":" T("U8", "[1]", "[0,1]") "}", 1);
  check_bad("a key twice in an entry",
            "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  check_bad("a name that is not UTF-8", "{\"\xff\xfe\":" T("U8", "[1]", "[0,1]") "}", 1);
  check_bad("a name with a zero byte", "{\"a\\u0000b\":" T("U8", "[1]", "[0,1]") "}", 1);
  check_bad("entry is not an object", "{\"a\":3}", 0);
  check_bad("no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  check_bad("unknown dtype", ONE("F31", "[1]", "[0,4]"), 4);
  check_bad("no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1);
  check_bad("shape is a number", ONE("U8", "1", "[0,1]"), 1);
  check_bad("negative dimension", ONE("U8", "[-1]", "[0,1]"), 1);
  check_bad("two negative dimensions", ONE("U8", "[-1,-1]", "[0,1]"), 1);
  check_bad("fractional dimension", ONE("U8", "[1.0]", "[0,1]"), 1);
  check_bad("dimension as text", ONE("U8", "[\"1\"]", "[0,1]"), 1);
  check_bad("nine dimensions", ONE("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1);
  check_bad("product beyond 64 bits", ONE("U8", "[4294967296,4294967296]", "[0,0]"), 0);
  check_bad("product that wraps to a small one", ONE("U8", "[9223372036854775807,2,2]", "[0,4]"), 4);
  check_bad("bytes beyond 64 bits", ONE("F64", "[4611686018427387904]", "[0,0]"), 0);
  check_bad("dimension beyond 64 bits", ONE("U8", "[18446744073709551617]", "[0,1]"), 1);
  check_bad("no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1);
  check_bad("one offset", ONE("U8", "[1]", "[0]"), 1);
  check_bad("three offsets", ONE("U8", "[1]", "[0,1,1]"), 1);
  check_bad("negative offset", ONE("U8", "[1]", "[-1,0]"), 1);
  check_bad("offsets in the wrong order", ONE("U8", "[1]", "[1,0]"), 1);
  check_bad("offsets beyond the file", ONE("U8", "[2]", "[0,2]"), 1);
  check_bad("huge offsets", ONE("U8", "[1]", "[9223372036854775806,9223372036854775807]"), 1);
  check_bad("too few bytes for the shape", ONE("F32", "[2]", "[0,4]"), 4);
  check_bad("too many bytes for the shape", ONE("F32", "[2]", "[0,12]"), 12);
  check_bad("tensors overlap", "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[3,7]") "}", 7);
  check_bad("two tensors in one place",
            "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[0,4]") "}", 4);
  check_bad("a hole between tensors", "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[5,9]") "}",
            9);
  check_bad("a hole before the tensors", ONE("U8", "[4]", "[1,5]"), 5);
  check_bad("bytes after the tensors", ONE("U8", "[4]", "[0,4]"), 5);
  check_bad("metadata is a text", "{\"__metadata__\":\"k\"}", 0);
  check_bad("metadata value is a number", "{\"__metadata__\":{\"k\":1}}", 0);
  memset(deep, '[', sizeof deep);
  memcpy(deep, "{\"a\":", 5);
  put_file(deep, sizeof deep, 0, 0);
  check_bad_file("nested too deep");
  put_file("{}", 2, 0, 1);
  check_bad_file("header one byte longer than the file");
  put_file("{}", 2, 0, -3);
  check_bad_file("header length near 2^64");
  put_file("{}", 2, 0, -2);
  check_bad_file("header length 0");
  scratch_put("t.safetensors", "1234567", 7);
  check_bad_file("seven bytes");
  scratch_put("t.safetensors", "", 0);
  check_bad_file("an empty file");
}

static void check_value(enum ms_dtype dtype, uint64_t bits, double want) {
  char data[9] = {0};
  struct ms_tensor_view view = {.dtype = dtype, .count = 1, .data = data + 1, .bytes = ms_dtype_size(dtype)};
  double f64;
  float f32;
  memcpy(data + 1, &bits, sizeof bits);
  ms_tensor_read_f64(&view, &f64);
  ms_tensor_read_f32(&view, &f32);
  check_ok(isnan(want) ? isnan(f64) && isnan(f32)
                       : f64 == want && f32 == (float)want && !signbit(f64) == !signbit(want),
           "%s 0x%" PRIx64 " is %g (want %g)", ms_dtype_name(dtype), bits, f64, want);
}

static void check_values(void) {
  check_value(MS_DTYPE_BOOL, 1, 1);
  check_value(MS_DTYPE_U8, 255, 255);
  check_value(MS_DTYPE_I8, 128, -128);
  check_value(MS_DTYPE_U16, 65535, 65535);
  check_value(MS_DTYPE_I16, 32768, -32768);
  check_value(MS_DTYPE_U32, 0xffffffff, 4294967295.0);
  check_value(MS_DTYPE_I32, 0x80000000, -2147483648.0);
  check_value(MS_DTYPE_U64, 1ull << 63, 0x1p63);
  check_value(MS_DTYPE_I64, 1ull << 63, -0x1p63);
  check_value(MS_DTYPE_F64, 0x3ff8000000000000, 1.5);
  check_value(MS_DTYPE_F32, 0xc0490fdb, -3.1415927410125732);
  check_value(MS_DTYPE_BF16, 0x4049, 3.140625);
  check_value(MS_DTYPE_BF16, 0x7f80, INFINITY);
  check_value(MS_DTYPE_F16, 0x3c00, 1);
  check_value(MS_DTYPE_F16, 0x7bff, 65504);
  check_value(MS_DTYPE_F16, 0x0001, 0x1p-24);
  check_value(MS_DTYPE_F16, 0x03ff, 1023 * 0x1p-24);
  check_value(MS_DTYPE_F16, 0x8000, -0.0);
  check_value(MS_DTYPE_F16, 0xfc00, -INFINITY);
  check_value(MS_DTYPE_F16, 0x7e00, NAN);
  check_value(MS_DTYPE_F8_E4M3, 0x7e, 448);
  check_value(MS_DTYPE_F8_E4M3, 0x7f, NAN);
  check_value(MS_DTYPE_F8_E4M3, 0x78, 256);
  check_value(MS_DTYPE_F8_E4M3, 0x01, 0x1p-9);
  check_value(MS_DTYPE_F8_E4M3, 0xb8, -1);
  check_value(MS_DTYPE_F8_E5M2, 0x7b, 57344);
  check_value(MS_DTYPE_F8_E5M2, 0x7c, INFINITY);
  check_value(MS_DTYPE_F8_E5M2, 0x01, 0x1p-16);
  check_value(MS_DTYPE_F8_E5M2, 0xbc, -1);
}

static int fill_ramp(void *data, int tensor, int64_t begin, int64_t count, void *out,
                     struct ms_error *error) {
  for (int64_t i = 0; i < count; i++)
    ((float *)out)[i] = (float)(begin + i + *(int *)data * tensor);
  return 0;
}

static int fill_nothing(void *data, int tensor, int64_t begin, int64_t count, void *out,
                        struct ms_error *error) {
  return begin > 0 ? ms_error_set(error, MS_EINPUT, "no values") : 0;
}

static void check_written(void) {
  enum { RAMP = 600000 }; /* more than one piece of the writer */
  static const float numbers[6] = {1, -2, 3, 4, 5, 6};
  static const uint16_t halves[3] = {0x3f80, 0x4000, 0x4040};
  static const double wide = 0.1;
  static float ramp[RAMP];
  const struct ms_tensor_out tensors[] = {{"b\"\\\xc3\xa9", MS_DTYPE_F32, 2, {2, 3}, numbers},
                                          {"a", MS_DTYPE_BF16, 1, {3}, halves},
                                          {"c", MS_DTYPE_F64, 0, {0}, &wide},
                                          {"0", MS_DTYPE_F32, 2, {0, 3}, NULL},
                                          {"ramp", MS_DTYPE_F32, 1, {RAMP}, NULL}};
  struct ms_tensor_out swapped[5];
  static const char *const metadata[] = {"z", "last", "a", "first \"quoted\"", NULL};
  static const char *const turned[] = {"a", "first \"quoted\"", "z", "last", NULL};
  static const char *const order[] = {"c", "0", "b\"\\\xc3\xa9", "ramp", "a"};
  struct ms_safetensors *file;
  const struct ms_tensor_view *view;
  struct ms_error error = {0};
  char *one, *two;
  size_t one_size, two_size;
  int factor = 10, good = 1;
  for (int i = 0; i < 5; i++)
    swapped[i] = tensors[4 - i];
  check_ok(ms_safetensors_write_with(scratch_path("w"), tensors, 5, metadata, fill_ramp, &factor, &error) ==
               0,
           "a file is written");
  check_ok(ms_safetensors_write_with(scratch_path("w"), tensors, 5, metadata, fill_nothing, NULL, &error) ==
                   MS_EINPUT &&
               !strcmp(error.message, "no values"),
           "values that cannot be made are no file");
  memset(&error, 0, sizeof error);
  if (ms_safetensors_open(&file, scratch_path("w"), &error) < 0) {
    check_ok(0, "it opens: %s", error.message);
    return;
  }
  check_ok(ms_safetensors_count(file) == 5, "it has five tensors");
  for (int i = 0; i < 5; i++)
    good &= !strcmp(ms_safetensors_at(file, i)->name, order[i]);
  check_ok(good, "largest elements first, then by name");
  view = ms_safetensors_find(file, "b\"\\\xc3\xa9");
  check_ok(view && view->dtype == MS_DTYPE_F32 && view->ndim == 2 && view->dims[0] == 2 &&
               view->dims[1] == 3 && view->count == 6 && !memcmp(view->data, numbers, sizeof numbers),
           "dtype, shape and values come back");
  view = ms_safetensors_find(file, "ramp");
  ms_tensor_read_f32(view, ramp);
  ms_safetensors_forget(view);
  for (int i = 0; i < RAMP; i++)
    good &= ramp[i] == (float)(i + 40);
  check_ok(good && !memcmp(view->data, ramp, sizeof ramp),
           "values that were filled in come back, also after forget");
  check_ok((uintptr_t)ms_safetensors_at(file, 0)->data % 8 == 0, "the data is aligned");
  check_ok(!ms_safetensors_find(file, "d") && !ms_safetensors_find(file, "__metadata__"),
           "other names are not found");
  check_ok(!strcmp(ms_safetensors_metadata(file, "a"), "first \"quoted\"") &&
               !ms_safetensors_metadata(file, "b"),
           "metadata comes back");
  ms_safetensors_close(&file);
  factor = -10; /* the ramp is now tensor 0: give it the same values */
  ms_file_read_all(scratch_path("w"), 1 << 24, &one, &one_size, &error);
  for (int i = 0; i < RAMP; i++)
    ramp[i] = (float)(i + 40);
  swapped[0].data = ramp;
  check_ok(ms_safetensors_write(scratch_path("w"), swapped, 5, turned, &error) == 0,
           "written again in another order");
  ms_file_read_all(scratch_path("w"), 1 << 24, &two, &two_size, &error);
  check_ok(one_size == two_size && !memcmp(one, two, one_size), "the bytes depend on the contents alone");
  free(one);
  free(two);
  check_ok(ms_safetensors_write(scratch_path("none/w"), tensors, 2, NULL, &error) == MS_EOUTPUT &&
               strstr(error.message, "none/w"),
           "a missing folder: %s", error.message);
  check_ok(ms_safetensors_write(scratch_path("u"), &(struct ms_tensor_out){"\xff", MS_DTYPE_U8, 1, {1}, "x"},
                                1, NULL, NULL) == MS_EOUTPUT &&
               !scratch_exists("u"),
           "a name that is not UTF-8 is refused");
}

int main(int argc, char **argv) {
  struct ms_safetensors *file;
  struct ms_error error = {0};
  check_begin(argc, argv);
  scratch_begin();
  check_headers();
  check_values();
  check_written();
  check_ok(ms_safetensors_open(&file, scratch_path("missing"), &error) == MS_EINPUT, "missing: %s",
           error.message);
  scratch_end();
  return check_end();
}
