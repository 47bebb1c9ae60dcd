/* Rates as a file, and whose they are. */
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plan/plan-private.h"

#define MOST_BYTES (1u << 20)

void ms_rates_processor(char *name, size_t size) {
  char line[512], *value;
  FILE *file = fopen("/proc/cpuinfo", "re");
  snprintf(name, size, "unknown processor");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "model name", 10) && (value = strchr(line, ':'))) {
      value += strspn(value, ": \t");
      value[strcspn(value, "\n")] = 0;
      snprintf(name, size, "%s", value);
      break;
    }
  if (file)
    fclose(file);
}

int ms_rates_threads(const struct ms_machine *machine) {
  cpu_set_t set;
  if (machine->threads > 0)
    return machine->threads;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The numbers of the file, with what they may be. Memory is in bytes, the rest in units a second. */
static const struct key {
  const char *name;
  size_t offset;
  int required;
} keys[] = {
#define LAYER(index, prefix)                                                                                 \
  {prefix "_product", offsetof(struct ms_rates, layers[index].product), 1},                                  \
      {prefix "_dense", offsetof(struct ms_rates, layers[index].dense), 1},                                  \
      {prefix "_slide", offsetof(struct ms_rates, layers[index].slide), 1},                                  \
      {prefix "_train_product", offsetof(struct ms_rates, layers[index].train_product), 1},                  \
      {prefix "_train_dense", offsetof(struct ms_rates, layers[index].train_dense), 1}, {                    \
    prefix "_train_slide", offsetof(struct ms_rates, layers[index].train_slide), 1                           \
  }
    LAYER(0, "small"),
    LAYER(1, "large"),
#undef LAYER
    {"layer_seconds", offsetof(struct ms_rates, layer_seconds), 0},
    {"decode", offsetof(struct ms_rates, decode), 1},
    {"encode", offsetof(struct ms_rates, encode), 1},
    {"video", offsetof(struct ms_rates, video), 1},
    {"video_seconds", offsetof(struct ms_rates, video_seconds), 0},
    {"gradient", offsetof(struct ms_rates, gradient), 1},
    {"memory", offsetof(struct ms_rates, memory), 1},
    {"pack", offsetof(struct ms_rates, pack), 0},
    {"load", offsetof(struct ms_rates, load), 1},
    {"peak", offsetof(struct ms_rates, peak), 0},
    {"link", offsetof(struct ms_rates, link), 0},
    {"disk_read", offsetof(struct ms_rates, disk_read), 1},
    {"disk_write", offsetof(struct ms_rates, disk_write), 1},
    {"disk_both", offsetof(struct ms_rates, disk_both), 0},
};
#define KEYS (sizeof keys / sizeof *keys)

static double *number_at(struct ms_rates *rates, size_t offset) {
  return (double *)((char *)rates + offset);
}

static int read_numbers(struct ms_rates *rates, const json_t *root, const char *path,
                        struct ms_error *error) {
  for (size_t i = 0; i < KEYS; i++) {
    const json_t *value = json_object_get(root, keys[i].name);
    double number = json_number_value(value);
    if (!value && !keys[i].required)
      continue;
    if (!json_is_number(value) || !isfinite(number) || number < 0 || (keys[i].required && number <= 0))
      return ms_error_set(error, MS_EINPUT, "\"%s\": \"%s\" must be a number above 0", path, keys[i].name);
    *number_at(rates, keys[i].offset) = number;
  }
  return 0;
}

static int read_bytes(uint64_t *bytes, const json_t *root, const char *key, const char *path,
                      struct ms_error *error) {
  const json_t *value = json_object_get(root, key);
  double number = json_number_value(value);
  *bytes = 0;
  if (!value)
    return 0;
  if (!json_is_number(value) || !(number >= 0) || number > 0x1p60)
    return ms_error_set(error, MS_EINPUT, "\"%s\": \"%s\" must be a number of bytes", path, key);
  *bytes = (uint64_t)number;
  return 0;
}

static int is_of_machine(const struct ms_rates *rates, const struct ms_machine *machine) {
  char processor[sizeof rates->name];
  ms_rates_processor(processor, sizeof processor);
  return !strcmp(rates->version, MS_PLAN_VERSION) && !strcmp(rates->name, processor) &&
         rates->threads == ms_rates_threads(machine);
}

int ms_rates_load(struct ms_rates *rates, const char *path, const struct ms_machine *machine,
                  struct ms_error *error) {
  struct ms_rates found = {.profile = machine == NULL};
  const char *name, *version;
  char *text = NULL;
  size_t size;
  json_t *root;
  int code = ms_file_read_all(path, MOST_BYTES, &text, &size, error);
  if (code < 0)
    return code;
  root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  name = json_string_value(json_object_get(root, "name"));
  version = json_string_value(json_object_get(root, "version"));
  found.layers[0].dim = 256;
  found.layers[1].dim = 1536;
  if (!json_is_object(root) || !name)
    code =
        ms_error_set(error, MS_EINPUT, "\"%s\" holds no rates: it is no JSON object with a \"name\"", path);
  else {
    snprintf(found.name, sizeof found.name, "%s", name);
    snprintf(found.version, sizeof found.version, "%s", version ? version : "");
    found.threads = (int)json_integer_value(json_object_get(root, "threads"));
    if (found.threads < 1 || found.threads > 4096)
      code = ms_error_set(error, MS_EINPUT, "\"%s\": \"threads\" must be a number from 1 to 4096", path);
  }
  if (code == 0)
    code = read_numbers(&found, root, path, error);
  if (code == 0)
    code = read_bytes(&found.host_memory, root, "host_memory", path, error);
  if (code == 0)
    code = read_bytes(&found.device_memory, root, "device_memory", path, error);
  if (code == 0)
    code = read_bytes(&found.disk_free, root, "disk_free", path, error);
  json_decref(root);
  if (code == 0 && machine && !is_of_machine(&found, machine))
    code = ms_error_set(error, MS_EINPUT,
                        "the rates in \"%s\" are of another processor, thread count or version", path);
  if (code == 0)
    *rates = found;
  return code;
}

int ms_rates_save(const struct ms_rates *rates, const char *path, struct ms_error *error) {
  json_t *root =
      json_pack("{s:s, s:s, s:i}", "name", rates->name, "version", rates->version, "threads", rates->threads);
  struct ms_rates copy = *rates;
  char *text;
  int code;
  for (size_t i = 0; i < KEYS; i++)
    json_object_set_new(root, keys[i].name, json_real(*number_at(&copy, keys[i].offset)));
  text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
  json_decref(root);
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while saving this machine's rates");
  code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  return code;
}
