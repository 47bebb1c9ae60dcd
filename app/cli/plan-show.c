#include "plan-show.h"

#include <stddef.h>
#include <string.h>

#include "ms-system.h"

static json_t *suggestions_json(const struct ms_plan *plan) {
  static const char *const changes[] = {[MS_PLAN_SIZE] = "size",
                                        [MS_PLAN_FRAMES] = "frames",
                                        [MS_PLAN_BATCH] = "batch",
                                        [MS_PLAN_MOMENTS] = "moments"};
  json_t *list = json_array();
  for (int i = 0; i < plan->suggestion_count; i++) {
    const struct ms_plan_suggestion *s = &plan->suggestions[i];
    json_t *one = json_pack("{s:s, s:i, s:i, s:i, s:I, s:I}", "change", changes[s->change], "width", s->width,
                            "height", s->height, "frames", s->frames, "host_bytes", (json_int_t)s->host_bytes,
                            "device_bytes", (json_int_t)s->device_bytes);
    if (s->batch)
      json_object_set_new(one, "batch", json_integer(s->batch));
    if (s->moment_bits)
      json_object_set_new(one, "moments", json_string(s->moment_bits == 8 ? "8bit" : "32"));
    json_object_set_new(one, "seconds", msa_json_number(s->seconds));
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *stages_json(const struct ms_plan *plan) {
  json_t *list = json_array();
  for (int i = 0; i < plan->stage_count; i++) {
    const struct ms_generate_stage *s = &plan->stages[i];
    json_t *stage =
        json_pack("{s:[i,i,i], s:I, s:s, s:i, s:f, s:f}", "lattice", s->lattice[0], s->lattice[1],
                  s->lattice[2], "tokens", (json_int_t)s->tokens, "attention", s->attention, "steps",
                  s->steps, "first_sigma", s->first_sigma, "seconds", plan->stage_seconds[i]);
    json_array_append_new(list, stage);
  }
  return list;
}

static json_t *tier_json(const struct ms_plan_tier *t) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "fixed", (json_int_t)t->fixed, "working",
                   (json_int_t)t->working, "outer", (json_int_t)t->outer, "layers", (json_int_t)t->layers,
                   "buffers", (json_int_t)t->buffers, "inputs", (json_int_t)t->inputs, "checkpoint",
                   (json_int_t)t->checkpoint);
}

/* Where everything lies, and how long the lanes work. */
static void put_places(json_t *result, const struct ms_plan *plan) {
  json_t *seconds = json_object(), *bytes = json_object();
  for (int i = 0; i < MS_PLAN_LANES; i++) {
    json_object_set_new(seconds, ms_plan_lane_name(i), json_real(plan->lane_seconds[i]));
    json_object_set_new(bytes, ms_plan_lane_name(i), json_real(plan->lane_bytes[i]));
  }
  json_object_set_new(result, "layers", json_integer(plan->layers));
  json_object_set_new(result, "host_layers", json_integer(plan->host_layers));
  json_object_set_new(result, "streamed", json_boolean(plan->streamed));
  json_object_set_new(result, "inputs", plan->inputs ? json_string(plan->inputs) : json_null());
  json_object_set_new(result, "slab_frames", json_integer(plan->slab_frames));
  json_object_set_new(result, "host", tier_json(&plan->host));
  json_object_set_new(result, "device", tier_json(&plan->device));
  json_object_set_new(result, "disk", tier_json(&plan->disk));
  json_object_set_new(result, "state_bytes", json_integer((json_int_t)plan->state_bytes));
  json_object_set_new(result, "checkpoint_bytes", json_integer((json_int_t)plan->checkpoint_bytes));
  json_object_set_new(result, "lane_seconds", seconds);
  json_object_set_new(result, "lane_bytes", bytes);
  if (plan->mfu > 0) {
    json_object_set_new(result, "mfu", json_real(plan->mfu));
    json_object_set_new(result, "hfu", json_real(plan->hfu));
  }
}

void msa_plan_put_json(struct msa_output *output, const struct ms_plan *plan, const struct ms_rates *rates) {
  json_t *result = json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:b}", "parameters",
                             (json_int_t)plan->parameters, "tokens", (json_int_t)plan->tokens, "flops",
                             plan->flops, "host_bytes", (json_int_t)plan->host_bytes, "device_bytes",
                             (json_int_t)plan->device_bytes, "disk_bytes", (json_int_t)plan->disk_bytes,
                             "moved_bytes", (json_int_t)plan->moved_bytes, "seconds", plan->seconds,
                             "exposed_transfer_seconds", plan->exposed_transfer_seconds, "fits", plan->fits);
  const struct {
    const char *key;
    json_t *value;
  } more[] = {{"model_flops", json_real(plan->model_flops)},
              {"tokens_per_step", json_integer(plan->tokens_per_step)},
              {"width", json_integer(plan->width)},
              {"height", json_integer(plan->height)},
              {"frames", json_integer(plan->frames)},
              {"steps", json_integer(plan->steps)},
              {"job_seconds", json_real(plan->job_seconds)},
              {"host_budget", json_integer((json_int_t)plan->host_budget)},
              {"device_budget", json_integer((json_int_t)plan->device_budget)},
              {"disk_free", json_integer((json_int_t)plan->disk_free)},
              {"hardware", msa_json_text(rates->name)},
              {"threads", json_integer(rates->threads)}};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    json_object_set_new(result, more[i].key, more[i].value);
  put_places(result, plan);
  if (plan->batch)
    json_object_set_new(result, "batch", json_integer(plan->batch));
  else
    json_object_set_new(result, "stages", stages_json(plan));
  if (!plan->fits) {
    json_object_set_new(result, "short_of", json_string(plan->short_of));
    json_object_set_new(result, "short_bytes", json_integer((json_int_t)plan->short_bytes));
    json_object_set_new(result, "suggestions", suggestions_json(plan));
  }
  msa_output_event(output, "result", result);
}

static void say_bytes(struct msa_output *output, const char *what, uint64_t need, uint64_t have) {
  char a[32], b[32];
  ms_format_bytes((double)need, a, sizeof a);
  if (have)
    msa_output_say(output, "  %-12s %s of %s", what, a, ms_format_bytes((double)have, b, sizeof b));
  else
    msa_output_say(output, "  %-12s %s", what, a);
}

/* "12 s", "3 min", "5.2 h", "8.1 days" */
static const char *words_for(double seconds, char *text, size_t size) {
  if (seconds < 9.95)
    snprintf(text, size, "%.2g s", seconds);
  else if (seconds < 120)
    snprintf(text, size, "%.0f s", seconds);
  else if (seconds < 7200)
    snprintf(text, size, "%.0f min", seconds / 60);
  else if (seconds < 172800)
    snprintf(text, size, "%.1f h", seconds / 3600);
  else
    snprintf(text, size, "%.0f days", seconds / 86400);
  return text;
}

static void say_suggestions(struct msa_output *output, const struct ms_plan *plan) {
  char bytes[32], seconds[32];
  if (!plan->suggestion_count)
    msa_output_say(output, "  no smaller size, length or batch of this model fits");
  for (int i = 0; i < plan->suggestion_count; i++) {
    const struct ms_plan_suggestion *s = &plan->suggestions[i];
    char what[64];
    if (s->change == MS_PLAN_SIZE)
      snprintf(what, sizeof what, "--size %dx%d", s->width, s->height);
    else if (s->change == MS_PLAN_FRAMES)
      snprintf(what, sizeof what, "--frames %d", s->frames);
    else if (s->change == MS_PLAN_BATCH)
      snprintf(what, sizeof what, "--batch %d", s->batch);
    else
      snprintf(what, sizeof what, "--moments 8bit");
    msa_output_say(output, "  %s would fit: %s, about %s%s", what,
                   ms_format_bytes((double)s->host_bytes, bytes, sizeof bytes),
                   words_for(s->seconds, seconds, sizeof seconds), s->batch ? " a step" : "");
  }
}

/* One line a kind of thing, one column a tier; lines and columns without anything are left out. */
static void say_places(struct msa_output *output, const struct ms_plan *plan, int device) {
  const struct {
    const char *what;
    size_t at;
  } rows[] = {{"fixed", offsetof(struct ms_plan_tier, fixed)},
              {"at work", offsetof(struct ms_plan_tier, working)},
              {"outer", offsetof(struct ms_plan_tier, outer)},
              {"layers", offsetof(struct ms_plan_tier, layers)},
              {"buffers", offsetof(struct ms_plan_tier, buffers)},
              {"inputs", offsetof(struct ms_plan_tier, inputs)},
              {"checkpoint", offsetof(struct ms_plan_tier, checkpoint)}};
  const struct ms_plan_tier *tiers[] = {&plan->host, &plan->device, &plan->disk};
  msa_output_say(output, "  %-12s %12s %12s %12s", "lies in", "host", device ? "device" : "", "disk");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[3][32] = {"", "", ""};
    int any = 0;
    for (int t = 0; t < 3; t++) {
      uint64_t bytes;
      memcpy(&bytes, (const char *)tiers[t] + rows[i].at, sizeof bytes);
      if (bytes)
        ms_format_bytes((double)bytes, text[t], sizeof text[t]);
      any |= bytes > 0;
    }
    if (any)
      msa_output_say(output, "    %-10s %12s %12s %12s", rows[i].what, text[0], text[1], text[2]);
  }
  msa_output_say(output, "  %-12s %d of %d at home in the host", "layers", plan->host_layers, plan->layers);
  if (plan->slab_frames)
    msa_output_say(output, "  %-12s a layer is computed over %d latent frames at a time", "slabs",
                   plan->slab_frames);
}

static void say_lanes(struct msa_output *output, const struct ms_plan *plan) {
  char line[256], seconds[32];
  int n = 0;
  for (int i = 0; i < MS_PLAN_LANES; i++)
    if (plan->lane_seconds[i] > 0 && n < (int)sizeof line)
      n += snprintf(line + n, sizeof line - (size_t)n, "%s%s %s", n ? ", " : "", ms_plan_lane_name(i),
                    words_for(plan->lane_seconds[i], seconds, sizeof seconds));
  if (n)
    msa_output_say(output, "  %-12s %s", "lanes", line);
  if (plan->streamed)
    msa_output_say(output, "  %-12s %s of transfers that no computing hides", "exposed",
                   words_for(plan->exposed_transfer_seconds, seconds, sizeof seconds));
  if (plan->mfu > 0)
    msa_output_say(output, "  %-12s MFU %.1f %%, HFU %.1f %% of the peak", "efficiency", 100 * plan->mfu,
                   100 * plan->hfu);
}

void msa_plan_put_words(struct msa_output *output, const struct ms_plan *plan, const struct ms_rates *rates) {
  char seconds[32], all[32];
  msa_output_say(output, "%s: %dx%d, %d frames, %d steps%s", plan->batch ? "training" : "a clip", plan->width,
                 plan->height, plan->frames, plan->steps, plan->fits ? ": fits" : ": does not fit");
  msa_output_say(output, "  %-12s %.3g %s", "parameters",
                 (double)plan->parameters * (plan->parameters < 1000000000 ? 1e-6 : 1e-9),
                 plan->parameters < 1000000000 ? "M" : "G");
  if (plan->batch)
    msa_output_say(output, "  %-12s %lld a clip, %lld a step", "tokens", (long long)plan->tokens,
                   (long long)plan->tokens_per_step);
  else
    msa_output_say(output, "  %-12s %lld", "tokens", (long long)plan->tokens);
  msa_output_say(output, "  %-12s %.3g TFLOP%s executed, %.3g without recomputation", "work",
                 plan->flops * 1e-12, plan->batch ? " a step" : "", plan->model_flops * 1e-12);
  say_bytes(output, "host memory", plan->host_bytes, plan->host_budget);
  say_bytes(output, rates->device_memory ? "device" : "working set", plan->device_bytes, plan->device_budget);
  say_bytes(output, "disk", plan->disk_bytes, plan->disk_free);
  if (plan->streamed || (plan->batch && !plan->fits))
    say_places(output, plan, rates->device_memory > 0);
  if (plan->batch)
    msa_output_say(output, "  %-12s about %s a step, %s in all, on %s", "time",
                   words_for(plan->seconds, seconds, sizeof seconds),
                   words_for(plan->job_seconds, all, sizeof all), rates->name);
  else
    msa_output_say(output, "  %-12s about %s, on %s", "time",
                   words_for(plan->seconds, seconds, sizeof seconds), rates->name);
  say_lanes(output, plan);
  for (int i = 0; i < plan->stage_count && plan->stage_count > 1; i++)
    msa_output_say(output, "    stage %d    %lld tokens, %s, %d steps: %s", i + 1,
                   (long long)plan->stages[i].tokens, plan->stages[i].attention, plan->stages[i].steps,
                   words_for(plan->stage_seconds[i], seconds, sizeof seconds));
  if (!plan->fits)
    say_suggestions(output, plan);
}

void msa_plan_put_bound(void *data, const struct ms_plan_bound *bound) {
  struct msa_study_table *table = data;
  msa_output_event(table->output, "row",
                   json_pack("{s:s, s:s, s:s, s:f}", "kind", "bound", "name", bound->name, "unit",
                             bound->unit, "value", bound->value));
  if (!table->bounds++)
    msa_output_say(table->output, "what bounds a step:");
  msa_output_say(table->output, "  %-62s %.4g %s", bound->name, bound->value, bound->unit);
}

void msa_plan_put_trial(void *data, const struct ms_plan_trial *t) {
  struct msa_study_table *table = data;
  char link[16] = "";
  json_t *row = json_pack("{s:s, s:s, s:f, s:s, s:s, s:I, s:f, s:f, s:f, s:f}", "kind", "step", "lanes",
                          t->sync ? "sync" : "async", "parameter_bytes", t->parameter_bytes, "home",
                          t->disk ? "disk" : "host", "inputs", t->inputs, "tokens", (json_int_t)t->tokens,
                          "seconds", t->seconds, "exposed_transfer_seconds", t->exposed_transfer_seconds,
                          "mfu", t->mfu, "hfu", t->hfu);
  json_t *seconds = json_object();
  json_object_set_new(row, "host_bytes", json_integer((json_int_t)t->host_bytes));
  json_object_set_new(row, "fits", json_boolean(t->fits));
  for (int i = 0; i < MS_PLAN_LANES; i++)
    json_object_set_new(seconds, ms_plan_lane_name(i), json_real(t->lane_seconds[i]));
  json_object_set_new(row, "lane_seconds", seconds);
  if (t->pcie) {
    json_object_set_new(row, "pcie", json_integer(t->pcie));
    snprintf(link, sizeof link, "PCIe %d", t->pcie);
  }
  msa_output_event(table->output, "row", row);
  if (!table->trials++)
    msa_output_say(table->output, "simulated steps:\n  %-6s %5s %7s %5s %7s %8s %10s %10s %6s %6s", "lanes",
                   "B/par", "link", "home", "inputs", "tokens", "seconds", "exposed", "MFU", "HFU");
  msa_output_say(table->output, "  %-6s %5.3g %7s %5s %7s %8lld %10.2f %10.2f %5.1f%% %5.1f%%%s",
                 t->sync ? "sync" : "async", t->parameter_bytes, link, t->disk ? "disk" : "host", t->inputs,
                 (long long)t->tokens, t->seconds, t->exposed_transfer_seconds, 100 * t->mfu, 100 * t->hfu,
                 t->fits ? "" : "  does not fit the host");
}
