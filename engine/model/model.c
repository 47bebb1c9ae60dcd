#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "model/config.h"
#include "model/model-private.h"
#include "weights/params-file.h"
#include "weights/safetensors.h"

#define MODEL_JSON_MAX (16u << 20)

static int in_range(double value, double low, double high) {
  return isfinite(value) && value >= low && value <= high;
}

int ms_model_read_file(struct ms_model *model, const char *path, struct ms_error *error) {
  char *text = NULL;
  size_t size = 0;
  json_error_t bad;
  const char *name;
  int code;
  memset(model, 0, sizeof *model);
  code = ms_file_read_all(path, MODEL_JSON_MAX, &text, &size, error);
  if (code < 0)
    return code;
  snprintf(model->path, sizeof model->path, "%s", path);
  model->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &bad);
  if (!json_is_object(model->root)) {
    if (!text[strspn(text, " \t\r\n")])
      code = ms_error_set(error, MS_EINPUT, "\"%.400s\" is empty", path);
    else if (model->root)
      code = ms_error_set(error, MS_EINPUT, "\"%.400s\" is not a JSON object", path);
    else
      code = ms_error_set(error, MS_EINPUT, "\"%.300s\" is not JSON: line %d: %s", path,
                          bad.line < 1 ? 1 : bad.line, bad.text);
    free(text);
    ms_model_release(model);
    return code;
  }
  free(text);
  name = json_string_value(json_object_get(model->root, "name"));
  snprintf(model->name, sizeof model->name, "%s", name ? name : path);
  code = ms_model_read_defaults(model, error);
  if (code < 0)
    ms_model_release(model);
  return code;
}

int ms_model_read(struct ms_model *model, const char *folder, struct ms_error *error) {
  char path[1200];
  struct stat info;
  int code;
  memset(model, 0, sizeof *model);
  if (strlen(folder) >= sizeof model->folder)
    return ms_error_set(error, MS_EINPUT, "path of the model is too long: \"%.200s...\"", folder);
  snprintf(path, sizeof path, "%s/model.json", folder);
  if (stat(folder, &info) < 0 || !S_ISDIR(info.st_mode))
    return ms_error_set(error, MS_EINPUT, "there is no model folder \"%s\"", folder);
  code = ms_model_read_file(model, path, error);
  if (code == 0)
    snprintf(model->folder, sizeof model->folder, "%s", folder);
  return code;
}

/* A list of one number a channel, or the fallback for all if the key is missing. */
static int read_channels(const struct ms_model *model, const char *key, int channels, float fallback,
                         float *out, struct ms_error *error) {
  const json_t *list = json_object_get(model->root, key);
  for (int i = 0; i < channels; i++)
    out[i] = fallback;
  if (!list)
    return 0;
  if ((int)json_array_size(list) != channels)
    return ms_error_set(error, MS_EINPUT, "\"%s\" must list %d numbers, one a latent channel", key, channels);
  for (int i = 0; i < channels; i++) {
    double value = json_number_value(json_array_get(list, (size_t)i));
    if (!in_range(value, -1e6, 1e6) || (fallback > 0 && value <= 0))
      return ms_error_set(error, MS_EINPUT, "\"%s[%d]\" is out of range", key, i);
    out[i] = (float)value;
  }
  return 0;
}

static int open_codec(struct ms_model *model, struct ms_error *error) {
  float mean[256], std[256];
  int channels;
  int code = ms_codec_open(&model->codec, model->compute, json_object_get(model->root, "codec"), error);
  if (code < 0)
    return code;
  channels = ms_codec_channels(model->codec);
  if (channels > 256)
    return ms_error_set(error, MS_EINPUT, "\"codec.channels\" is %d, at most 256 are supported", channels);
  if ((code = read_channels(model, "latent_mean", channels, 0, mean, error)) < 0 ||
      (code = read_channels(model, "latent_std", channels, 1, std, error)) < 0)
    return code;
  ms_codec_set_scale(model->codec, mean, std);
  return 0;
}

/* What one network makes the other must read. */
static int check_parts(const struct ms_model *model, struct ms_error *error) {
  const struct ms_dit_config *c = model->dit ? ms_dit_config(model->dit) : NULL;
  int channels = model->codec ? ms_codec_channels(model->codec) : 0;
  if (c && channels && c->out_channels != channels)
    return ms_error_set(error, MS_EINPUT,
                        "\"out_channels\" is %d, but the codec has %d latent channels (\"codec.channels\")",
                        c->out_channels, channels);
  if (c && channels && c->in_channels != channels)
    return ms_error_set(error, MS_EINPUT,
                        "\"in_channels\" is %d, but the codec has %d latent channels (\"codec.channels\")",
                        c->in_channels, channels);
  if (c && model->text && c->text_dim != ms_text_dim(model->text))
    return ms_error_set(error, MS_EINPUT, "\"text_dim\" is %d, but the text encoder gives %d (\"text.dim\")",
                        c->text_dim, ms_text_dim(model->text));
  if (c && model->text && c->text_len < ms_text_length(model->text))
    return ms_error_set(error, MS_EINPUT,
                        "\"text_len\" is %d, but the text encoder gives up to %d rows (\"text.length\")",
                        c->text_len, ms_text_length(model->text));
  return 0;
}

static int open_parts(struct ms_model *model, unsigned parts, struct ms_error *error) {
  int code = 0;
  if (parts & MS_MODEL_DIT) {
    struct ms_dit_config *config = malloc(sizeof *config);
    if (!config)
      return ms_error_set(error, MS_ENOMEM, "out of memory while opening the model");
    code = ms_dit_config_read(config, model->root, error);
    config->lora_rank = model->lora_rank;
    if (code == 0)
      code = ms_dit_open(&model->dit, model->compute, config, error);
    free(config);
  }
  if (code == 0 && (parts & MS_MODEL_CODEC))
    code = open_codec(model, error);
  if (code == 0 && (parts & MS_MODEL_TEXT))
    code = ms_text_open(&model->text, model->compute, json_object_get(model->root, "text"), error);
  return code == 0 ? check_parts(model, error) : code;
}

int ms_model_open_root(struct ms_model *model, struct ms_compute *compute, json_t *root, unsigned parts,
                       struct ms_error *error) {
  struct ms_error why = {0};
  int code;
  if (root != model->root) {
    json_decref(model->root);
    model->root = json_incref(root);
  }
  model->compute = compute;
  code = open_parts(model, parts, &why);
  if (code == MS_EUSAGE) /* of the network's own checks; here the values come from a file */
    code = MS_EINPUT;
  return code < 0 ? ms_error_set(error, code, "\"%.200s\": %s", model->path, why.message) : 0;
}

const char *ms_model_part_file(unsigned part) {
  return part == MS_MODEL_DIT     ? "dit.safetensors"
         : part == MS_MODEL_CODEC ? "codec.safetensors"
                                  : "text.safetensors";
}

static struct ms_params *part_params(struct ms_model *model, unsigned part) {
  return part == MS_MODEL_DIT     ? ms_dit_params(model->dit)
         : part == MS_MODEL_CODEC ? ms_codec_params(model->codec)
                                  : ms_text_params(model->text);
}

int ms_model_load_part(struct ms_model *model, unsigned part, enum msk_type type, const char *folder,
                       struct ms_error *error) {
  struct ms_params *params = part_params(model, part);
  struct ms_safetensors *file = NULL;
  char path[1200];
  int code = 0;
  snprintf(path, sizeof path, "%s/%s", folder, ms_model_part_file(part));
  if (!params->data)
    code = ms_params_allocate(params, type, error);
  if (code == 0)
    code = ms_safetensors_open(&file, path, error);
  if (code == 0)
    code = ms_params_load(params, &file, 1, "", error);
  ms_safetensors_close(&file);
  return code;
}

int ms_model_load(struct ms_model *model, const char *folder, unsigned parts, enum msk_type dit_type,
                  enum msk_precision precision, struct ms_error *error) {
  static const unsigned all[] = {MS_MODEL_TEXT, MS_MODEL_CODEC, MS_MODEL_DIT};
  int code = 0;
  for (int i = 0; i < 3 && code == 0; i++)
    if (parts & all[i])
      code = ms_model_load_part(model, all[i], all[i] == MS_MODEL_DIT ? dit_type : MSK_F32, folder, error);
  if (code == 0 && (parts & MS_MODEL_TEXT))
    code = ms_text_prepare(model->text, MSK_PRECISION_F32, 0, error);
  if (code == 0 && (parts & MS_MODEL_CODEC))
    code = ms_codec_prepare(model->codec, precision, 0, error);
  if (code == 0 && (parts & MS_MODEL_DIT))
    code = ms_dit_prepare(model->dit, precision, 0, error);
  return code;
}

int ms_model_open(struct ms_model *model, struct ms_compute *compute, const char *folder, unsigned parts,
                  enum msk_type dit_type, enum msk_precision precision, struct ms_error *error) {
  int code = ms_model_read(model, folder, error);
  if (code == 0)
    code = ms_model_open_root(model, compute, model->root, parts, error);
  if (code == 0)
    code = ms_model_load(model, folder, parts, dit_type, precision, error);
  if (code < 0)
    ms_model_release(model);
  return code;
}

void ms_model_release(struct ms_model *model) {
  ms_dit_close(&model->dit);
  ms_codec_close(&model->codec);
  ms_text_close(&model->text);
  json_decref(model->root);
  memset(model, 0, sizeof *model);
}

int ms_model_write_json(const json_t *root, const char *folder, struct ms_error *error) {
  char path[1200], *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  int code;
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while writing \"%s/model.json\"", folder);
  snprintf(path, sizeof path, "%s/model.json", folder);
  code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  return code;
}

void ms_model_latent_size(const struct ms_model *model, int frames, int height, int width, int lattice[3]) {
  const struct ms_dit_config *config = ms_dit_config(model->dit);
  int strides[3], size[3] = {frames, height, width};
  ms_codec_strides(model->codec, strides);
  lattice[0] = 1 + (size[0] - 1 + strides[0] - 1) / strides[0];
  lattice[0] = (lattice[0] + config->patch[0] - 1) / config->patch[0] * config->patch[0];
  for (int a = 1; a < 3; a++) {
    int unit = strides[a] * config->patch[a];
    lattice[a] = (size[a] + unit - 1) / unit * config->patch[a];
  }
}
