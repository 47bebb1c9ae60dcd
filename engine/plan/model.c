/* The model that a plan is made for, and the limits of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system.h"
#include "model/config.h"
#include "ms-models.h"
#include "msk-cpu.h"
#include "plan/plan-private.h"

static int is_config(const char *name) {
  size_t length = strlen(name);
  return length > 5 && !strcmp(name + length - 5, ".json");
}

/* Configurations of large models name text encoders that are not read here: a small one of the right width
 * stands in for it. */
static int add_text(json_t *root, struct ms_error *error) {
  json_t *text = json_object_get(root, "text");
  const char *kind = json_string_value(json_object_get(text, "kind"));
  json_int_t dim = json_integer_value(json_object_get(root, "text_dim"));
  json_int_t heads = dim % 64 == 0 ? dim / 64 : dim / 8; /* as many channels a head as any encoder takes */
  if (kind && !strcmp(kind, "words") && json_is_array(json_object_get(text, "vocabulary")))
    return 0;
  text = json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:[s,s]}", "kind", "words", "dim", dim, "layers", 1,
                   "heads", heads, "ffn", 64, "length", 16, "vocabulary", "<pad>", "<bos>");
  return json_object_set_new(root, "text", text) ? ms_error_set(error, MS_ENOMEM, "out of memory") : 0;
}

static int read_model(struct ms_plan_case *c, const char *name, struct ms_error *error) {
  char path[2048];
  int code;
  if (is_config(name)) {
    snprintf(path, sizeof path, "%s/configs/%s", c->machine->data_folder, name);
    code = ms_model_read_file(
        &c->model, strchr(name, '/') || access(name, R_OK) == 0 || access(path, R_OK) != 0 ? name : path,
        error);
    return code < 0 ? code : add_text(c->model.root, error);
  }
  code = ms_model_find(name, c->machine->data_folder, c->machine->user_folder, path, 1024, error);
  return code < 0 ? code : ms_model_read(&c->model, path, error);
}

static uint64_t file_bytes(const char *folder) {
  uint64_t bytes = 0;
  for (unsigned part = MS_MODEL_DIT; part <= MS_MODEL_TEXT; part <<= 1) {
    char path[1200];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, ms_model_part_file(part));
    if (stat(path, &info) == 0)
      bytes += (uint64_t)info.st_size;
  }
  return bytes;
}

int ms_plan_open(struct ms_plan_case *c, const char *name, const char *attention, int lora_rank,
                 const struct ms_machine *machine, const struct ms_rates *rates, struct ms_error *error) {
  int threads = rates->profile ? rates->threads : machine->threads, code;
  memset(c, 0, sizeof *c);
  c->machine = machine;
  c->rates = rates;
  code = read_model(c, name ? name : "starter", error);
  if (code == 0 && attention)
    code = ms_attention_override(c->model.root, attention, c->model.name, error);
  if (code == 0)
    code = ms_compute_open_counting(&c->compute, threads, msk_cpu_detect(), error);
  c->model.lora_rank = lora_rank;
  if (code == 0)
    code = ms_model_open_root(&c->model, &c->compute, c->model.root, MS_MODEL_ALL, error);
  if (code == 0)
    c->weight_bytes =
        c->model.folder[0]
            ? file_bytes(c->model.folder)
            : 2 * (uint64_t)(ms_dit_params(c->model.dit)->total + ms_codec_params(c->model.codec)->total);
  return code;
}

void ms_plan_release(struct ms_plan_case *c) {
  ms_model_release(&c->model);
  ms_compute_release(&c->compute);
}

/* The folder that holds `path`, or the nearest one above it that exists. */
static uint64_t free_bytes(const char *path) {
  char folder[4096];
  struct statvfs info;
  snprintf(folder, sizeof folder, "%s", path);
  for (;;) {
    char *slash = strrchr(folder, '/');
    if (slash == folder)
      slash++;
    if (slash)
      *slash = 0;
    if (statvfs(slash ? folder : ".", &info) == 0)
      return (uint64_t)info.f_bavail * info.f_frsize;
    if (!slash || !folder[1])
      return 0;
  }
}

void ms_plan_limits(const struct ms_plan_case *c, const char *output, struct ms_plan *plan) {
  const struct ms_rates *rates = c->rates;
  if (rates->profile) {
    plan->host_budget = c->machine->host_memory ? c->machine->host_memory : rates->host_memory / 10 * 7;
    plan->device_budget = c->machine->device_memory ? c->machine->device_memory : rates->device_memory;
    plan->disk_free = rates->disk_free;
  } else {
    plan->host_budget = ms_memory_budget(c->machine);
    plan->device_budget = c->machine->device_memory;
    plan->disk_free = output ? free_bytes(output) : 0;
  }
}

void ms_plan_put_resident(const struct ms_memory *need, struct ms_plan *plan) {
  plan->host_bytes = need->host;
  plan->device_bytes = need->device;
  plan->host = (struct ms_plan_tier){.working = need->packed + need->activations,
                                     .layers = need->weights + need->state};
  plan->host.fixed = need->host - plan->host.working - plan->host.layers;
  plan->host_layers = plan->layers;
  plan->streamed = 0;
  plan->inputs = NULL;
}

static void put_tier(const struct ms_placement_bytes *from, struct ms_plan_tier *to) {
  *to = (struct ms_plan_tier){.fixed = from->fixed,
                              .working = from->working,
                              .outer = from->outer,
                              .layers = from->layers,
                              .buffers = from->slots + from->ring + from->gradients,
                              .inputs = from->inputs};
}

void ms_plan_put_placement(const struct ms_placement *p, struct ms_plan *plan) {
  static const char *const homes[] = {
      [MS_INPUT_DEVICE] = "device", [MS_INPUT_HOST] = "host", [MS_INPUT_DISK] = "disk"};
  put_tier(&p->host, &plan->host);
  put_tier(&p->device, &plan->device);
  put_tier(&p->disk, &plan->disk);
  plan->host_bytes = p->host_bytes;
  plan->device_bytes = p->device_bytes;
  plan->disk_bytes = p->disk_bytes;
  plan->host_layers = p->host_layers;
  plan->streamed = p->host_layers < p->params.layers || p->params.device;
  plan->inputs = p->params.backward ? homes[p->params.inputs] : NULL;
}

void ms_plan_judge(struct ms_plan *plan) {
  const struct {
    const char *name;
    uint64_t need, have;
  } held[] = {{"device", plan->device_bytes, plan->device_budget},
              {"host", plan->host_bytes, plan->host_budget},
              {"disk", plan->disk_bytes, plan->disk_free}};
  plan->fits = 1;
  plan->short_of = NULL;
  plan->short_bytes = 0;
  for (int i = 0; i < 3; i++)
    if (held[i].have && held[i].need > held[i].have && held[i].need - held[i].have > plan->short_bytes) {
      plan->fits = 0;
      plan->short_of = held[i].name;
      plan->short_bytes = held[i].need - held[i].have;
    }
}
