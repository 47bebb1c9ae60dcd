/* megaslide inspect: what a file is, and how it was made. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "ms-media.h"
#include "ms-models.h"
#include "ms-system.h"
#include "ms-tensors.h"

struct args {
  int json;
};

static const struct msa_option options[] = {
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json),
     .help = "tell it as JSON; tensors come as rows"},
    {0},
};

static int is_safetensors(const char *path) {
  unsigned char head[9];
  struct stat info;
  /* A pipe would wait for its writer for ever. */
  FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "re") : NULL;
  size_t n = file ? fread(head, 1, sizeof head, file) : 0;
  if (file)
    fclose(file);
  const char *dot = strrchr(path, '.');
  return (n == sizeof head && head[8] == '{' && !head[6] && !head[7]) ||
         (dot && !strcmp(dot, ".safetensors"));
}

static void format_shape(const struct ms_tensor_view *tensor, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < tensor->ndim && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? ", " : "", (long long)tensor->dims[i]);
  if (n < size)
    snprintf(text + n, size - n, "]");
}

static json_t *tensor_json(const struct ms_tensor_view *tensor) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->ndim; i++)
    json_array_append_new(shape, json_integer(tensor->dims[i]));
  return json_pack("{s:o, s:s, s:o, s:I}", "name", msa_json_text(tensor->name), "dtype",
                   ms_dtype_name(tensor->dtype), "shape", shape, "bytes", (json_int_t)tensor->bytes);
}

static int inspect_tensors(const char *path, struct msa_output *output, struct ms_error *error) {
  struct ms_safetensors *file = NULL;
  int status = ms_safetensors_open(&file, path, error);
  if (status < 0)
    return status;
  int64_t values = 0;
  double bytes = 0;
  char shape[256], size[32];
  const int count = ms_safetensors_count(file);
  for (int i = 0; i < count; i++) {
    const struct ms_tensor_view *tensor = ms_safetensors_at(file, i);
    values += tensor->count;
    bytes += (double)tensor->bytes;
    format_shape(tensor, shape, sizeof shape);
    msa_output_event(output, "row", tensor_json(tensor));
    msa_output_say(output, "%-60s %-8s %s", tensor->name, ms_dtype_name(tensor->dtype), shape);
  }
  msa_output_event(output, "result",
                   json_pack("{s:s, s:o, s:i, s:I, s:I}", "kind", "safetensors", "file", msa_json_text(path),
                             "tensors", count, "parameters", (json_int_t)values, "bytes", (json_int_t)bytes));
  msa_output_say(output, "%d tensors, %lld values, %s", count, (long long)values,
                 ms_format_bytes(bytes, size, sizeof size));
  ms_safetensors_close(&file);
  return 0;
}

static int inspect_model(const char *path, struct msa_output *output, struct ms_error *error) {
  struct ms_model_info info = {0};
  int status = ms_model_info_read(&info, path, error);
  if (status == 0) {
    json_t *result = json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:s, s:s}", "kind", "model", "name",
                               msa_json_text(info.name), "family", info.family, "license", info.license,
                               "parameters", (json_int_t)info.parameters, "bytes", (json_int_t)info.bytes,
                               "attention", info.attention, "coarse_attention", info.coarse_attention);
    json_t *config = info.json ? json_loads(info.json, 0, NULL) : NULL;
    if (config)
      json_object_set_new(result, "config", config);
    msa_output_event(output, "result", result);
    msa_output_say(output, "a model folder: %s, %s, %.2f M parameters, attention %s", info.name, info.family,
                   (double)info.parameters / 1e6, info.attention);
    if (info.json)
      msa_output_say(output, "%s", info.json);
  }
  ms_model_info_release(&info);
  return status;
}

static json_t *clip_settings(const struct ms_video *video) {
  const char *comment = ms_video_comment(video);
  json_t *settings = comment ? json_loads(comment, 0, NULL) : NULL;
  if (!json_is_object(settings)) {
    json_decref(settings);
    return NULL;
  }
  return settings;
}

static void say_settings(struct msa_output *output, json_t *settings) {
  const char *key;
  json_t *value;
  msa_output_say(output, "made by MegaSlide with");
  json_object_foreach(settings, key, value) {
    char *text = json_is_string(value) ? strdup(json_string_value(value))
                                       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (text)
      msa_output_say(output, "  %-12s %s", key, text);
    free(text);
  }
}

static int inspect_clip(const char *path, struct msa_output *output, struct ms_error *error) {
  struct ms_video *video = NULL;
  int status = ms_video_open(&video, path, error);
  if (status == 0)
    status = ms_video_count(video, error);
  if (status == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    json_t *settings = clip_settings(video), *result = json_object();
    if (settings)
      json_object_update(result, settings);
    json_t *facts =
        json_pack("{s:s, s:o, s:i, s:i, s:I, s:f, s:f, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b}",
                  "kind", "clip", "file", msa_json_text(path), "width", info->width, "height", info->height,
                  "frames", (json_int_t)info->frames, "fps", info->fps, "duration", info->duration, "codec",
                  info->codec, "pixel_format", info->pixel_format, "container", info->container,
                  "color_primaries", info->color_primaries, "color_transfer", info->color_transfer,
                  "color_space", info->color_space, "color_range", info->color_range, "variable_rate",
                  info->variable_rate, "has_audio", info->has_audio, "has_settings", settings != NULL);
    if (facts) /* what the file is stands above what its settings say it is */
      json_object_update(result, facts);
    json_decref(facts);
    msa_output_event(output, "result", result);
    msa_output_say(output, "a clip: %lld frames of %dx%d at %g a second, %.2f s, %s %s",
                   (long long)info->frames, info->width, info->height, info->fps, info->duration, info->codec,
                   info->pixel_format);
    msa_output_say(output, "colour %s, %s, %s, %s range", info->color_primaries, info->color_transfer,
                   info->color_space, info->color_range);
    if (info->variable_rate)
      msa_output_say(output, "its frames are not evenly spaced in time");
    if (settings)
      say_settings(output, settings);
    else
      msa_output_say(output, "it holds no settings of MegaSlide");
    json_decref(settings);
  }
  ms_video_close(&video);
  return status;
}

/* A folder of frames, as export writes it. */
static int has_frames(const char *folder) {
  char first[4096];
  return (size_t)snprintf(first, sizeof first, "%s/00001.png", folder) < sizeof first &&
         access(first, F_OK) == 0;
}

static int inspect(const char *path, struct msa_output *output, struct ms_error *error) {
  struct stat info;
  if (stat(path, &info))
    return ms_error_set(error, MS_EINPUT, "there is no file or folder \"%s\"", path);
  if (S_ISDIR(info.st_mode))
    return has_frames(path) ? inspect_clip(path, output, error) : inspect_model(path, output, error);
  return is_safetensors(path) ? inspect_tensors(path, output, error) : inspect_clip(path, output, error);
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {0};
  struct msa_output output;
  struct ms_error error = {0};
  const char *path = NULL;
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &path, 1, &count, &output, &status))
    return status;
  status = count ? inspect(path, &output, &error) : ms_error_set(&error, MS_EUSAGE, "which file?");
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

const struct msa_command msa_command_inspect = {
    .name = "inspect",
    .usage = "FILE [--json]",
    .summary = "Tell what a clip, a folder of frames, a weight file or a model folder is and how it was made",
    .examples =
        "  megaslide inspect ball.mp4\n  megaslide inspect mine/dit.safetensors\n  megaslide inspect mine\n",
    .options = options,
    .run = run,
};
