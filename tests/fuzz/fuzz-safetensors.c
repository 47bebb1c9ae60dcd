/* Mutates good safetensors files in ways that know the format, and reads what still opens. The same mutations
 * in every run, unless --seed asks for others; --rounds N for longer hunts. Of most use under the address
 * sanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "scratch.h"
#include "weights/safetensors.h"

#define ROOM 8192

struct blob {
  unsigned char bytes[ROOM];
  size_t size;
};

static void set_length(struct blob *blob, uint64_t length) {
  for (int i = 0; i < 8; i++)
    blob->bytes[i] = (unsigned char)(length >> 8 * i);
}

static uint64_t get_length(const struct blob *blob) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--)
    length = length << 8 | blob->bytes[i];
  return length;
}

static void start(struct blob *blob, int kind) {
  static const char *const headers[] = {
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]"
      "},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]},\"c\":{\"dtype\":\"F8_E4M3\","
      "\"shape\":[],"
      "\"data_offsets\":[32,33]},\"d\":{\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[33,33]}}",
      "{\"x.y\":{\"dtype\":\"F64\",\"shape\":[1,2,3],\"data_offsets\":[0,48]},\"\xc3\xa9\":{\"dtype\":"
      "\"F16\",\"shape\":[5],"
      "\"data_offsets\":[48,58]},\"z\":{\"dtype\":\"BOOL\",\"shape\":[7],\"data_offsets\":[58,65]}}   ",
      "{}",
  };
  static const size_t data[] = {33, 65, 0};
  size_t length = strlen(headers[kind]);
  set_length(blob, length);
  memcpy(blob->bytes + 8, headers[kind], length);
  for (size_t i = 0; i < data[kind]; i++)
    blob->bytes[8 + length + i] = (unsigned char)check_below(256);
  blob->size = 8 + length + data[kind];
}

/* Replaces `old` bytes at `at` by text, and mostly keeps the header's length right, so that the change is
 * looked at. */
static void splice(struct blob *blob, size_t at, size_t old, const char *text, size_t length) {
  if (blob->size - old + length > ROOM || at + old > blob->size)
    return;
  memmove(blob->bytes + at + length, blob->bytes + at + old, blob->size - at - old);
  memcpy(blob->bytes + at, text, length);
  blob->size = blob->size - old + length;
  if (at >= 8 && check_below(8))
    set_length(blob, get_length(blob) - old + length);
}

static void change_number(struct blob *blob) {
  static const char *const numbers[] = {"0",
                                        "-1",
                                        "1",
                                        "7",
                                        "8",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "4294967296",
                                        "18446744073709551616",
                                        "2147483648",
                                        "1e3",
                                        "1.0",
                                        "null",
                                        "[]",
                                        "\"2\"",
                                        "1,1,1,1,1,1",
                                        "4611686018427387904"};
  size_t at = 8 + (size_t)check_below((int64_t)blob->size - 7), end;
  const char *number = numbers[check_below(sizeof numbers / sizeof *numbers)];
  while (at < blob->size && (blob->bytes[at] < '0' || blob->bytes[at] > '9'))
    at++;
  for (end = at; end < blob->size && blob->bytes[end] >= '0' && blob->bytes[end] <= '9';)
    end++;
  if (end > at)
    splice(blob, at, end - at, number, strlen(number));
}

static void change_text(struct blob *blob) {
  static const char *const words[] = {"\"F32\"",
                                      "\"U64\"",
                                      "\"a\"",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ",",
                                      ":",
                                      "\"shape\"",
                                      "\"dtype\"",
                                      "\"data_offsets\"",
                                      "\"__metadata__\"",
                                      "\\u0000",
                                      "\xff",
                                      "\"a\":{\"dtype\":\"U8\",",
                                      "[[[[[[[["};
  const char *word = words[check_below(sizeof words / sizeof *words)];
  size_t old = (size_t)check_below(8);
  splice(blob, 8 + (size_t)check_below((int64_t)blob->size - 7), old, word, strlen(word));
}

static void mutate(struct blob *blob) {
  static const uint64_t lengths[] = {0,         1,          2,          7,     100000000,
                                     100000001, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 7};
  switch (check_below(7)) {
  case 0:
    blob->bytes[check_below((int64_t)blob->size)] ^= (unsigned char)(1 << check_below(8));
    break;
  case 1:
    blob->bytes[check_below((int64_t)blob->size)] = (unsigned char)check_below(256);
    break;
  case 2:
    change_text(blob);
    break;
  case 3:
    if (check_below(4) == 0)
      blob->size = (size_t)check_below((int64_t)blob->size + 1);
    break;
  case 4:
    if (blob->size >= 8 && check_below(4) == 0)
      set_length(blob,
                 check_below(2) ? lengths[check_below(10)] : get_length(blob) + (uint64_t)check_below(9) - 4);
    break;
  default:
    change_number(blob);
  }
}

/* Everything that a reader of the views relies on. */
static int is_sound(const struct ms_safetensors *file, size_t file_size) {
  const char *end = NULL;
  size_t total = 0;
  for (int i = 0; i < ms_safetensors_count(file); i++) {
    const struct ms_tensor_view *view = ms_safetensors_at(file, i);
    int64_t count = 1;
    double *values;
    if (view->ndim < 0 || view->ndim > MS_TENSOR_MAX_DIMS || ms_safetensors_find(file, view->name) != view)
      return 0;
    for (int d = 0; d < view->ndim; d++)
      count *= view->dims[d];
    if (count != view->count || view->bytes != (size_t)count * ms_dtype_size(view->dtype) ||
        view->bytes > file_size)
      return 0;
    if (end && (const char *)view->data != end)
      return 0;
    end = (const char *)view->data + view->bytes;
    total += view->bytes;
    values = malloc((size_t)count * sizeof *values + 1);
    ms_tensor_read_f64(view, values);
    ms_tensor_read_f32(view, (float *)values);
    free(values);
  }
  return total <= file_size;
}

int main(int argc, char **argv) {
  static char *fixed[] = {"fuzz-safetensors", "--seed", "1", NULL};
  static struct blob blob;
  int rounds = 6000, opened = 0, refused = 0, seeded = 0;
  for (int i = 1; i + 1 < argc; i++) {
    seeded |= !strcmp(argv[i], "--seed");
    if (!strcmp(argv[i], "--rounds"))
      rounds = atoi(argv[i + 1]);
  }
  check_begin(seeded ? argc : 3, seeded ? argv : fixed);
  scratch_begin();
  for (int round = 0; round < rounds; round++) {
    struct ms_safetensors *file;
    struct ms_error error = {0};
    int code;
    start(&blob, (int)check_below(3));
    for (int64_t n = check_below(5); n >= 0 && blob.size > 8; n--)
      mutate(&blob);
    scratch_put("f", blob.bytes, blob.size);
    code = ms_safetensors_open(&file, scratch_path("f"), &error);
    if (code == 0 && is_sound(file, blob.size))
      opened++;
    else if (code == MS_EINPUT && !file && error.code == MS_EINPUT && error.message[0])
      refused++;
    else
      check_ok(0, "round %d: code %d: %s", round, code, error.message);
    ms_safetensors_close(&file);
  }
  check_ok(opened + refused == rounds, "%d mutated files: %d open and are sound, %d are refused", rounds,
           opened, refused);
  /* a mutator that only makes garbage, or only harmless changes, would test nothing */
  check_ok(opened > rounds / 50 && refused > rounds / 4, "both happen often");
  scratch_end();
  return check_end();
}
