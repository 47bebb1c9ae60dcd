#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "harness.h"
#include "scratch.h"
#include "weights/params-file.h"

static void build(struct ms_params *params, enum msk_type type) {
  struct ms_error error = {0};
  int i;
  ms_params_init(params);
  i = ms_params_add(params, "layer.weight", 2, (int64_t[]){33, 70});
  params->list[i].start = MS_START_FAN_IN;
  i = ms_params_add(params, "layer.bias", 1, (int64_t[]){33});
  params->list[i].start = MS_START_NORMAL;
  params->list[i].start_scale = 0.5f;
  i = ms_params_add(params, "norm.weight", 3, (int64_t[]){70, 1, 1});
  params->list[i].start = MS_START_ONE;
  i = ms_params_add(params, "conv.weight", 5, (int64_t[]){8, 1, 3, 3, 3});
  params->list[i].start = MS_START_UNIFORM_FAN_IN;
  check_ok(ms_params_allocate(params, type, &error) == 0, "parameters are allocated");
}

static void check_layout(void) {
  struct ms_params params, half;
  double squares = 0;
  float bias[33];
  int good = 1;
  build(&params, MSK_F32);
  build(&half, MSK_BF16);
  for (int i = 0; i < params.count; i++)
    good &= params.list[i].offset % 32 == 0 &&
            (i == 0 || params.list[i].offset >= params.list[i - 1].offset + params.list[i - 1].count);
  check_ok(good && params.total % 32 == 0 && params.total >= 33 * 70 + 33 + 70 + 216,
           "parts are aligned and apart");
  check_ok(params.list[0].kind == MS_PARAM_MATRIX && params.list[1].kind == MS_PARAM_VECTOR,
           "kinds follow the dimensions");
  check_ok(ms_params_find(&params, "layer.bias") == &params.list[1] && !ms_params_find(&params, "layer"),
           "names are found");
  ms_params_randomize(&params, 5);
  ms_params_randomize(&half, 5);
  for (int i = 0; i < 33 * 70; i++)
    squares += pow(((float *)ms_params_at(&params, 0))[i], 2);
  check_ok(fabs(squares / 33 - 1) < 0.15, "fan-in start has variance 1 / fan in (%.3f)", squares / 33);
  good = ((float *)ms_params_at(&params, 2))[69] == 1;
  for (int i = 0; i < 216; i++)
    good &= fabsf(((float *)ms_params_at(&params, 3))[i]) <= 1 / sqrtf(27);
  check_ok(good, "norms start with one, convolutions within 1 / sqrt (fan in)");
  ms_params_read_f32(&half, 1, bias);
  for (int i = 0; i < 33; i++)
    good &= bias[i] == msk_bf16_to_f32(msk_f32_to_bf16(((float *)ms_params_at(&params, 1))[i]));
  check_ok(good, "bf16 starts are the rounded float32 starts");
  ms_params_release(&params);
  ms_params_release(&half);
}

static int load(struct ms_params *params, const char *name, const char *prefix, struct ms_error *error) {
  struct ms_safetensors *file;
  int code = ms_safetensors_open(&file, scratch_path(name), error);
  if (code == 0)
    code = ms_params_load(params, &file, 1, prefix, error);
  ms_safetensors_close(&file);
  return code;
}

static void check_files(void) {
  static const char *const metadata[] = {"format", "test", NULL};
  struct ms_params wide, narrow, back;
  struct ms_error error = {0};
  char *one, *two;
  size_t one_size = 0, two_size = 1;
  int good = 1;
  build(&wide, MSK_F32);
  build(&narrow, MSK_BF16);
  build(&back, MSK_F32);
  ms_params_randomize(&wide, 9);
  ms_params_randomize(&narrow, 9);
  check_ok(ms_params_save(&wide, scratch_path("wide"), metadata, &error) == 0, "float32 is saved");
  check_ok(load(&back, "wide", NULL, &error) == 0 && !memcmp(back.data, wide.data, (size_t)wide.total * 4),
           "and comes back exactly");
  check_ok(ms_params_save(&narrow, scratch_path("narrow"), metadata, &error) == 0, "bf16 is saved");
  ms_params_save_values(&wide, wide.data, MS_DTYPE_BF16, scratch_path("values"), metadata, &error);
  ms_file_read_all(scratch_path("narrow"), 1 << 20, &one, &one_size, &error);
  ms_file_read_all(scratch_path("values"), 1 << 20, &two, &two_size, &error);
  check_ok(one_size == two_size && !memcmp(one, two, one_size), "values saved as BF16 make the same file");
  free(one);
  free(two);
  ms_params_save_values(&wide, wide.data, MS_DTYPE_F32, scratch_path("values"), metadata, &error);
  memset(back.data, 0, (size_t)back.total * 4);
  check_ok(load(&back, "values", NULL, &error) == 0 && !memcmp(back.data, wide.data, (size_t)wide.total * 4),
           "values saved as F32 come back exactly");
  check_ok(load(&back, "narrow", NULL, &error) == 0, "bf16 loads into float32");
  for (int64_t i = 0; i < wide.total; i++)
    good &= ((float *)back.data)[i] == msk_bf16_to_f32(((uint16_t *)narrow.data)[i]);
  check_ok(good, "exactly");
  memset(narrow.data, 0, (size_t)narrow.total * 2);
  check_ok(load(&narrow, "wide", NULL, &error) == 0, "float32 loads into bf16");
  for (int64_t i = 0; i < wide.total; i++)
    good &= ((uint16_t *)narrow.data)[i] == msk_f32_to_bf16(((float *)wide.data)[i]);
  check_ok(good, "rounded");
  check_ok(load(&back, "wide", "model.", &error) == MS_EINPUT &&
               strstr(error.message, "model.layer.weight") && strstr(error.message, "[33,70]") &&
               strstr(error.message, "wide"),
           "a missing tensor: %s", error.message);
  check_ok(ms_params_save(&wide, scratch_path("none/x"), NULL, NULL) == MS_EOUTPUT,
           "a missing folder is an output error");
  ms_params_release(&wide);
  ms_params_release(&narrow);
  ms_params_release(&back);
}

static int load_shape(int ndim, const int64_t *dims, struct ms_error *error) {
  static const double data[64];
  struct ms_tensor_out tensors[] = {{"p.x", MS_DTYPE_F64, ndim, {0}, data},
                                    {"other", MS_DTYPE_F16, 1, {2}, data}};
  struct ms_params params;
  int code;
  memcpy(tensors[0].dims, dims, (size_t)ndim * sizeof *dims);
  ms_safetensors_write(scratch_path("shape"), tensors, 2, NULL, NULL);
  ms_params_init(&params);
  ms_params_add(&params, "x", 3, (int64_t[]){2, 1, 6});
  ms_params_allocate(&params, MSK_F32, NULL);
  *error = (struct ms_error){0};
  code = load(&params, "shape", "p.", error);
  ms_params_release(&params);
  return code;
}

static void check_shapes(void) {
  struct ms_error error;
  check_ok(load_shape(3, (int64_t[]){2, 1, 6}, &error) == 0,
           "the same shape loads, with a prefix and other tensors around");
  check_ok(load_shape(2, (int64_t[]){2, 6}, &error) == 0, "a dimension of 1 may be missing");
  check_ok(load_shape(5, (int64_t[]){1, 2, 1, 1, 6}, &error) == 0, "or be added");
  check_ok(load_shape(2, (int64_t[]){6, 2}, &error) == MS_EINPUT, "transposed: %s", error.message);
  check_ok(load_shape(1, (int64_t[]){12}, &error) == MS_EINPUT && strstr(error.message, "[12]") &&
               strstr(error.message, "[2,1,6]") && strstr(error.message, "p.x") &&
               strstr(error.message, "shape"),
           "flattened: %s", error.message);
  check_ok(load_shape(3, (int64_t[]){2, 1, 7}, &error) == MS_EINPUT, "larger: %s", error.message);
  check_ok(load_shape(3, (int64_t[]){2, 0, 6}, &error) == MS_EINPUT, "empty: %s", error.message);
}

static void check_shards(void) {
  static const float numbers[4] = {1, 2, 3, 4};
  struct ms_safetensors *files[2];
  struct ms_params params;
  struct ms_error error = {0};
  ms_safetensors_write(scratch_path("s1"), &(struct ms_tensor_out){"a", MS_DTYPE_F32, 1, {2}, numbers}, 1,
                       NULL, NULL);
  ms_safetensors_write(scratch_path("s2"), &(struct ms_tensor_out){"b", MS_DTYPE_F32, 1, {2}, numbers + 2}, 1,
                       NULL, NULL);
  ms_safetensors_open(&files[0], scratch_path("s1"), NULL);
  ms_safetensors_open(&files[1], scratch_path("s2"), NULL);
  ms_params_init(&params);
  ms_params_add(&params, "b", 1, (int64_t[]){2});
  ms_params_add(&params, "a", 1, (int64_t[]){2});
  ms_params_allocate(&params, MSK_F32, NULL);
  check_ok(ms_params_load(&params, files, 2, "", &error) == 0 &&
               ((float *)ms_params_at(&params, 0))[1] == 4 && ((float *)ms_params_at(&params, 1))[0] == 1,
           "tensors are found in several files");
  check_ok(ms_params_load(&params, files, 2, "q.", &error) == MS_EINPUT && strstr(error.message, "2 files"),
           "missing in all of them: %s", error.message);
  check_ok(ms_params_load(&params, files, 0, "", NULL) == MS_EINPUT, "no files, no weights");
  ms_params_release(&params);
  ms_safetensors_close(&files[0]);
  ms_safetensors_close(&files[1]);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  check_layout();
  check_files();
  check_shapes();
  check_shards();
  scratch_end();
  return check_end();
}
