/* Model folders as a person handles them: find, list, describe, check, import, make. */
#include "ms-models.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "base/system.h"
#include "model/config.h"
#include "model/model.h"
#include "msk-cpu.h"
#include "weights/params-file.h"

#define JSON_MAX (16u << 20)
#define LIST_MAX 400

static int is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int has_model_json(const char *folder) {
  char path[4200];
  snprintf(path, sizeof path, "%s/model.json", folder);
  return access(path, R_OK) == 0;
}

struct names {
  char text[LIST_MAX];
  size_t used;
};

static void add_name(void *data, const struct ms_model_info *info) {
  struct names *names = data;
  const char *name = strrchr(info->folder, '/');
  name = name ? name + 1 : info->folder;
  if (names->used + strlen(name) + 3 < sizeof names->text)
    names->used += (size_t)snprintf(names->text + names->used, sizeof names->text - names->used, "%s%s",
                                    names->used ? ", " : "", name);
}

int ms_model_find(const char *name, const char *data_folder, const char *user_folder, char *folder,
                  size_t size, struct ms_error *error) {
  struct names names = {0};
  char path[2048];
  if (!name || !name[0])
    return ms_error_set(error, MS_EUSAGE, "no model named: use --model with a name or a folder");
  if (strlen(name) > 900 || strlen(data_folder) > 900)
    return ms_error_set(error, MS_EINPUT, "the path of the model is too long");
  if (strchr(name, '/') || (is_folder(name) && has_model_json(name))) {
    if (!is_folder(name))
      return ms_error_set(error, MS_EINPUT, "there is no model folder \"%s\"", name);
    if (!has_model_json(name))
      return ms_error_set(error, MS_EINPUT, "\"%s\" is no model folder: it holds no model.json", name);
    snprintf(folder, size, "%s", name);
    return 0;
  }
  snprintf(folder, size, "%s/models/%s", data_folder, name);
  if (has_model_json(folder))
    return 0;
  if (user_folder) {
    snprintf(folder, size, "%s/%s", user_folder, name);
    if (has_model_json(folder))
      return 0;
    ms_models_list(user_folder, add_name, &names);
  }
  snprintf(path, sizeof path, "%s/models", data_folder);
  ms_models_list(path, add_name, &names);
  return ms_error_set(error, MS_EINPUT, "there is no model \"%s\"; there %s%s (or name a folder)", name,
                      names.used ? "is: " : "are none", names.text);
}

static uint64_t folder_bytes(const char *folder) {
  uint64_t bytes = 0;
  struct dirent *entry;
  DIR *dir = opendir(folder);
  while (dir && (entry = readdir(dir))) {
    char path[2048];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode))
      bytes += (uint64_t)info.st_size;
  }
  if (dir)
    closedir(dir);
  return bytes;
}

int ms_model_info_read(struct ms_model_info *info, const char *folder, struct ms_error *error) {
  struct ms_compute compute = {0}; /* opening lists parameters only; nothing is computed */
  struct ms_model model = {0};
  const char *text;
  int code = ms_model_read(&model, folder, error);
  memset(info, 0, sizeof *info);
  if (code == 0)
    code = ms_model_open_root(&model, &compute, model.root, MS_MODEL_DIT, error);
  if (code == 0) {
    const struct ms_dit_config *config = ms_dit_config(model.dit);
    struct ms_params *params = ms_dit_params(model.dit);
    snprintf(info->name, sizeof info->name, "%s", model.name);
    snprintf(info->folder, sizeof info->folder, "%s", folder);
    text = json_string_value(json_object_get(model.root, "family"));
    snprintf(info->family, sizeof info->family, "%s", text ? text : "");
    text = json_string_value(json_object_get(model.root, "license"));
    snprintf(info->license, sizeof info->license, "%s", text ? text : "");
    for (int i = 0; i < params->count; i++)
      info->parameters += params->list[i].count;
    info->bytes = folder_bytes(folder);
    info->width = model.defaults.width;
    info->height = model.defaults.height;
    info->frames = model.defaults.frames;
    info->steps = model.defaults.steps;
    info->fps = model.defaults.fps;
    ms_attention_config_describe(&config->attention[0], info->attention, sizeof info->attention);
    ms_attention_config_describe(&config->coarse_attention[0], info->coarse_attention,
                                 sizeof info->coarse_attention);
    info->json = json_dumps(model.root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!info->json)
      code = ms_error_set(error, MS_ENOMEM, "out of memory");
  }
  ms_model_release(&model);
  return code;
}

void ms_model_info_release(struct ms_model_info *info) {
  free(info->json);
  memset(info, 0, sizeof *info);
}

int ms_models_list(const char *folder, void (*found)(void *data, const struct ms_model_info *info),
                   void *data) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, NULL, alphasort), n = 0;
  for (int i = 0; i < count; i++) {
    char path[4096];
    struct ms_model_info info;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (entries[i]->d_name[0] != '.' && has_model_json(path) && ms_model_info_read(&info, path, NULL) == 0) {
      found(data, &info);
      ms_model_info_release(&info);
      n++;
    }
    free(entries[i]);
  }
  free(entries);
  return n;
}

int ms_model_verify(const char *folder, struct ms_error *error) {
  static const unsigned parts[] = {MS_MODEL_DIT, MS_MODEL_CODEC, MS_MODEL_TEXT};
  struct ms_compute compute = {0};
  struct ms_model model = {0};
  int code = ms_model_read(&model, folder, error);
  if (code == 0)
    code = ms_model_open_root(&model, &compute, model.root, MS_MODEL_ALL, error);
  for (int i = 0; i < 3 && code == 0; i++)
    code = ms_model_load_part(&model, parts[i], parts[i] == MS_MODEL_DIT ? MSK_BF16 : MSK_F32, folder, error);
  ms_model_release(&model);
  return code;
}

/* How far the copying of a model's files is. */
struct copying {
  const struct ms_hooks *hooks; /* or NULL */
  uint64_t done, total;         /* bytes */
  double start;
};

static int tell_copied(void *data, size_t bytes, struct ms_error *error) {
  struct copying *copying = data;
  const struct ms_hooks *hooks = copying->hooks;
  copying->done += bytes;
  if (hooks && hooks->progress) {
    double seconds = ms_seconds() - copying->start;
    struct ms_progress progress = {"import", (int64_t)copying->done, (int64_t)copying->total, seconds, -1};
    if (copying->done && copying->total >= copying->done)
      progress.seconds_left = seconds * (double)(copying->total - copying->done) / (double)copying->done;
    hooks->progress(hooks->data, &progress);
  }
  if (hooks && hooks->cancel && atomic_load(hooks->cancel))
    return ms_error_set(error, MS_ECANCELLED, "stopped; the model was not imported");
  return 0;
}

static int make_folder(const char *to, struct ms_error *error) {
  if (mkdir(to, 0777) == 0)
    return 0;
  if (errno == EEXIST)
    return ms_error_set(error, MS_EINPUT, "\"%s\" exists already: name another folder", to);
  return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", to, strerror(errno));
}

/* The last one, the model's card, may be missing. */
static const char *const model_files[] = {"model.json", "dit.safetensors", "codec.safetensors",
                                          "text.safetensors", "README.md"};
#define MODEL_FILES 5

static void discard_folder(const char *folder) {
  char path[2048];
  for (int i = 0; i < MODEL_FILES; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, model_files[i]);
    unlink(path);
  }
  rmdir(folder);
}

int ms_model_import(const char *from, const char *to, const struct ms_hooks *hooks, struct ms_error *error) {
  struct copying copying = {.hooks = hooks, .start = ms_seconds()};
  char a[1200], b[1200];
  struct stat info;
  int code = ms_model_verify(from, error);
  for (int i = 0; i < MODEL_FILES; i++) {
    snprintf(a, sizeof a, "%s/%s", from, model_files[i]);
    copying.total += stat(a, &info) == 0 ? (uint64_t)info.st_size : 0;
  }
  if (code == 0)
    code = tell_copied(&copying, 0, error);
  if (code == 0)
    code = make_folder(to, error);
  if (code < 0)
    return code;
  for (int i = 0; i < MODEL_FILES && code == 0; i++) {
    snprintf(a, sizeof a, "%s/%s", from, model_files[i]);
    snprintf(b, sizeof b, "%s/%s", to, model_files[i]);
    if (i < 4 || access(a, R_OK) == 0)
      code = ms_file_copy(a, b, tell_copied, &copying, error);
  }
  if (code < 0)
    discard_folder(to);
  return code;
}

static json_t *read_config(const char *config, const char *data_folder, struct ms_error *error) {
  char path[1200], *text = NULL;
  size_t size;
  json_t *root;
  if (strchr(config, '/') || access(config, R_OK) == 0)
    snprintf(path, sizeof path, "%s", config);
  else
    snprintf(path, sizeof path, "%s/configs/%s%s", data_folder, config,
             strstr(config, ".json") ? "" : ".json");
  if (ms_file_read_all(path, JSON_MAX, &text, &size, error) < 0)
    return NULL;
  root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  if (!json_is_object(root)) {
    ms_error_set(error, MS_EINPUT, "\"%s\" is not a configuration: it is no JSON object", path);
    json_decref(root);
    return NULL;
  }
  return root;
}

/* A configuration of a large model names a codec and a text encoder that are not here: small ones with its
 * channels, strides and text width stand in for them. */
static int add_small_parts(json_t *root, struct ms_error *error) {
  static const char *const words[] = {"<pad>", "<bos>", "a",    "red",   "green", "blue", "ball",
                                      "box",   "moves", "left", "right", "up",    "down"};
  const json_t *codec = json_object_get(root, "codec");
  const json_t *strides = json_object_get(codec, "strides");
  json_int_t channels = json_integer_value(json_object_get(root, "out_channels"));
  json_int_t st = strides ? json_integer_value(json_array_get(strides, 0)) : 4,
             sy = strides ? json_integer_value(json_array_get(strides, 1)) : 8,
             sx = strides ? json_integer_value(json_array_get(strides, 2)) : 8;
  json_int_t text_dim = json_integer_value(json_object_get(root, "text_dim"));
  json_int_t heads = text_dim % 64 == 0 ? text_dim / 64 : 4;
  json_t *list = json_array();
  int bad;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    json_array_append_new(list, json_string(words[i]));
  if (!channels)
    channels = json_integer_value(json_object_get(root, "in_channels"));
  bad =
      json_object_set_new(root, "codec",
                          json_pack("{s:s, s:[I,I,I], s:I, s:[i,i], s:[i,i]}", "kind", "pack", "strides", st,
                                    sy, sx, "channels", channels, "encoder", 16, 32, "decoder", 32, 16));
  bad |= json_object_set_new(root, "text",
                             json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:o}", "kind", "words", "dim",
                                       text_dim, "layers", 1, "heads", heads, "ffn", 64, "length", 16,
                                       "vocabulary", list));
  if (!json_object_get(root, "sizes"))
    bad |= json_object_set_new(root, "sizes", json_pack("[[i,i]]", 256, 256));
  if (!json_object_get(root, "frames"))
    bad |= json_object_set_new(root, "frames", json_pack("[i]", 9));
  return bad ? ms_error_set(error, MS_EINPUT,
                            "the configuration names no channels, strides or text_dim that fit")
             : 0;
}

/* Random weights are made while they are written, so that a model larger than memory can be. */
struct starting {
  const struct ms_params *params;
  uint64_t seed;
  struct ms_pool *pool;
  const struct ms_hooks *hooks;
  int tensor;
  int64_t begin, count;
  uint16_t *out;
};

#define STARTED 16384 /* values that one task makes */

static void start_task(void *data, int64_t task, void *scratch) {
  const struct starting *s = data;
  int64_t at = task * STARTED, n = s->count - at < STARTED ? s->count - at : STARTED;
  ms_params_start_part(s->params, s->tensor, s->seed, MSK_BF16, s->begin + at, n, s->out + at);
}

static int fill_started(void *data, int tensor, int64_t begin, int64_t count, void *out,
                        struct ms_error *error) {
  struct starting *s = data;
  s->tensor = tensor;
  s->begin = begin;
  s->count = count;
  s->out = out;
  ms_pool_run(s->pool, start_task, s, (count + STARTED - 1) / STARTED);
  if (s->hooks && s->hooks->cancel && atomic_load(s->hooks->cancel))
    return ms_error_set(error, MS_ECANCELLED, "stopped while the model's weights were made");
  return 0;
}

static int write_part(struct ms_model *model, unsigned part, struct ms_pool *pool, uint64_t seed,
                      const char *to, const struct ms_hooks *hooks, struct ms_error *error) {
  struct starting starting = {.seed = seed + part, .pool = pool, .hooks = hooks};
  char path[2048];
  starting.params = part == MS_MODEL_DIT     ? ms_dit_params(model->dit)
                    : part == MS_MODEL_CODEC ? ms_codec_params(model->codec)
                                             : ms_text_params(model->text);
  snprintf(path, sizeof path, "%s/%s", to, ms_model_part_file(part));
  return ms_params_save_filled(starting.params, fill_started, &starting, path, error);
}

int ms_model_create(const char *config, const char *to, uint64_t seed, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_error *error) {
  static const unsigned parts[] = {MS_MODEL_DIT, MS_MODEL_CODEC, MS_MODEL_TEXT};
  struct ms_compute compute = {0};
  struct ms_model model = {0};
  struct ms_pool *pool = NULL;
  json_t *root = read_config(config, machine->data_folder, error);
  int code = root ? make_folder(to, error) : error ? error->code : MS_EINPUT;
  if (code < 0) {
    json_decref(root);
    return code;
  }
  if (!json_is_string(json_object_get(json_object_get(root, "text"), "kind")) ||
      strcmp(json_string_value(json_object_get(json_object_get(root, "text"), "kind")), "words"))
    code = add_small_parts(root, error);
  if (code == 0)
    code = ms_model_write_json(root, to, error);
  if (code == 0)
    code = ms_model_read(&model, to, error);
  if (code == 0)
    code = ms_model_open_root(&model, &compute, model.root, MS_MODEL_ALL, error);
  if (code == 0)
    code = ms_pool_open(&pool, machine->threads, error);
  for (int i = 0; i < 3 && code == 0; i++)
    code = write_part(&model, parts[i], pool, seed, to, hooks, error);
  ms_pool_close(&pool);
  ms_model_release(&model);
  json_decref(root);
  if (code < 0)
    discard_folder(to);
  return code;
}
