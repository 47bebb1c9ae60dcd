#include "models/plan-work.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "core/engine-jobs.h"
#include "core/errors.h"
#include "core/folders.h"
#include "core/main-thread.h"
#include "core/words.h"
#include "ms-system.h"

void msa_rates_stand_in(struct ms_rates *rates) {
  const struct ms_layer_rates any = {.product = 1e11,
                                     .dense = 1e11,
                                     .slide = 1e11,
                                     .train_product = 1e11,
                                     .train_dense = 1e11,
                                     .train_slide = 1e11};
  memset(rates, 0, sizeof *rates);
  rates->layers[0] = rates->layers[1] = any;
  rates->layers[0].dim = 256;
  rates->layers[1].dim = 1536;
  rates->decode = rates->encode = 1e11;
  rates->video = 1e7;
  rates->gradient = 1e9;
  rates->memory = 1e10;
  rates->disk_read = rates->disk_write = 1e9;
  rates->load = 1e9;
}

static void suggestion_free(gpointer data) {
  MsaPlanSuggestion *suggestion = data;
  g_free(suggestion->label);
  g_clear_pointer(&suggestion->generate, msa_generate_params_free);
  g_clear_pointer(&suggestion->train, msa_train_params_free);
  g_free(suggestion);
}

void msa_plan_free(MsaPlan *plan) {
  g_free(plan->sentence);
  g_ptr_array_unref(plan->suggestions);
  g_free(plan);
}

static char *missing_sentence(const struct ms_plan *plan) {
  const gboolean disk = !strcmp(plan->short_of, "disk"), device = !strcmp(plan->short_of, "device");
  const guint64 need = disk ? plan->disk_bytes : device ? plan->device_bytes : plan->host_bytes;
  g_autofree char *needed = msa_words_bytes(need),
                  *there = msa_words_bytes(need - MIN(need, plan->short_bytes)),
                  *missing = msa_words_bytes(plan->short_bytes);
  return g_strdup_printf(disk ? _("This needs %s on the disk and %s are free: %s are missing.")
                         : device
                             ? _("This needs %s of the device’s memory and %s may be used: %s are missing.")
                             : _("This needs %s of memory and %s may be used: %s are missing."),
                         needed, there, missing);
}

static char *suggestion_label(const struct ms_plan_suggestion *suggestion) {
  switch (suggestion->change) {
  case MS_PLAN_SIZE:
    return g_strdup_printf("%d × %d", suggestion->width, suggestion->height);
  case MS_PLAN_FRAMES:
    return g_strdup_printf(g_dngettext(GETTEXT_PACKAGE, "%d frame", "%d frames", (gulong)suggestion->frames),
                           suggestion->frames);
  case MS_PLAN_MOMENTS:
    return g_strdup(_("8 bit moments"));
  default:
    return g_strdup_printf(_("Batch of %d"), suggestion->batch);
  }
}

/* The engine's plan without what is told apart for clips and training. */
static MsaPlan *plan_new(const struct msa_plan_place *place, const struct ms_plan *from) {
  MsaPlan *plan = g_new0(MsaPlan, 1);
  plan->fits = from->fits;
  plan->host_bytes = from->host_bytes;
  plan->host_budget = from->host_budget;
  plan->device_bytes = from->device_bytes;
  plan->disk_bytes = from->disk_bytes;
  plan->tokens = from->tokens;
  plan->flops = from->flops;
  plan->seconds = plan->seconds_per_step = -1;
  plan->steps = from->steps;
  plan->width = from->width;
  plan->height = from->height;
  plan->frames = from->frames;
  plan->fps = from->fps;
  plan->sentence = from->fits ? NULL : missing_sentence(from);
  plan->suggestions = g_ptr_array_new_with_free_func(suggestion_free);
  return plan;
}

/* Takes the label. */
static MsaPlanSuggestion *suggestion_new(MsaPlan *plan, char *label) {
  MsaPlanSuggestion *suggestion = g_new0(MsaPlanSuggestion, 1);
  suggestion->label = label;
  g_ptr_array_add(plan->suggestions, suggestion);
  return suggestion;
}

static void fill_machine(const struct msa_plan_place *place, char *data, gsize size, guint64 host_memory,
                         int threads, struct ms_machine *machine) {
  *machine = (struct ms_machine){.threads = threads,
                                 .host_memory = (size_t)host_memory,
                                 .data_folder = msa_data_folder(data, size),
                                 .user_folder = place->user_models};
}

MsaPlan *msa_plan_clip(const struct msa_plan_place *place, const MsaGenerateParams *params, GError **error) {
  const struct ms_generate_job job = msa_engine_generate_job(params);
  struct ms_error failure = {0};
  struct ms_machine machine;
  struct ms_plan found;
  char data[4096];
  MSA_ASSERT_OFF_MAIN();
  fill_machine(place, data, sizeof data, params->host_memory, params->threads, &machine);
  if (ms_plan_generate(&job, &machine, &place->rates, &found, &failure) < 0) {
    msa_error_set_from_engine(error, &failure);
    return NULL;
  }
  MsaPlan *plan = plan_new(place, &found);
  plan->automatic = params->host_memory == 0;
  if (place->measured) {
    double sampling = 0;
    int steps = 0;
    for (int i = 0; i < found.stage_count; i++) {
      sampling += found.stage_seconds[i];
      steps += found.stages[i].steps;
    }
    plan->seconds = found.seconds;
    plan->seconds_per_step = steps ? sampling / steps : 0;
  }
  for (int i = 0; i < found.suggestion_count; i++) {
    const struct ms_plan_suggestion *from = &found.suggestions[i];
    MsaGenerateParams *changed = msa_generate_params_copy(params);
    if (from->change == MS_PLAN_SIZE) {
      changed->width = from->width;
      changed->height = from->height;
    } else {
      changed->frames = from->frames;
    }
    suggestion_new(plan, suggestion_label(from))->generate = changed;
  }
  return plan;
}

/* The same settings, for the caller to change. Takes the label. */
static MsaTrainParams *suggest_training(MsaPlan *plan, char *label, const MsaTrainParams *params) {
  return suggestion_new(plan, label)->train = msa_train_params_copy(params);
}

/* The least budget that fits, where that much is free. A window comes to hold some more until the run starts,
 * so the budget has a sixteenth of room. Rounded to what its label says: MB, or tenths of a GB. */
static void suggest_memory(MsaPlan *plan, const struct ms_plan *found, const MsaTrainParams *params) {
  const guint64 mega = 1 << 20, giga = 1 << 30, need = found->host_bytes + found->host_bytes / 16;
  const guint64 budget =
      need < giga ? (need + mega - 1) / mega * mega : (10 * need + giga - 1) / giga * giga / 10;
  if (strcmp(found->short_of, "host") || budget <= params->host_memory || budget > ms_memory_available())
    return;
  g_autofree char *bytes = msa_words_bytes(budget);
  suggest_training(plan, g_strdup_printf(_("Memory %s"), bytes), params)->host_memory = budget;
}

static void suggest_trainings(MsaPlan *plan, const struct ms_plan *found, const MsaTrainParams *params) {
  for (int i = 0; i < found->suggestion_count; i++) {
    const struct ms_plan_suggestion *from = &found->suggestions[i];
    MsaTrainParams *changed = suggest_training(plan, suggestion_label(from), params);
    if (from->change == MS_PLAN_SIZE) {
      changed->width = from->width;
      changed->height = from->height;
    } else if (from->change == MS_PLAN_FRAMES) {
      changed->frames = from->frames;
    } else if (from->change == MS_PLAN_MOMENTS) {
      changed->moment_bits = from->moment_bits;
    } else {
      changed->batch = from->batch;
    }
  }
}

MsaPlan *msa_plan_training(const struct msa_plan_place *place, const MsaTrainParams *params, GError **error) {
  g_autofree char *output = g_build_filename(place->runs, "run", NULL);
  struct ms_error failure = {0};
  struct ms_machine machine;
  struct ms_train_job job;
  struct ms_plan found;
  char data[4096];
  MSA_ASSERT_OFF_MAIN();
  fill_machine(place, data, sizeof data, params->host_memory, params->threads, &machine);
  int code = msa_engine_train_job(params, &job, &failure);
  job.output = output; /* what is free on its disk is looked at */
  job.trace = output;  /* one is kept, which takes memory */
  if (code == 0)
    code = ms_plan_train(&job, 0, &machine, &place->rates, &found, &failure);
  if (code < 0) {
    msa_error_set_from_engine(error, &failure);
    return NULL;
  }
  MsaPlan *plan = plan_new(place, &found);
  plan->automatic = params->host_memory == 0;
  plan->tokens = found.tokens_per_step;
  plan->flops = found.flops * (double)params->steps;
  plan->layers = found.layers;
  plan->disk_layers = found.layers - found.host_layers;
  plan->checkpoint_bytes = found.disk.checkpoint;
  plan->state_bytes = found.disk_bytes - MIN(found.disk_bytes, found.disk.checkpoint);
  plan->moved_bytes = found.moved_bytes;
  if (place->measured) {
    plan->seconds = found.job_seconds;
    plan->seconds_per_step = found.seconds;
    plan->exposed_seconds = found.exposed_transfer_seconds;
  }
  if (!found.fits && params->host_memory)
    suggest_memory(plan, &found, params);
  suggest_trainings(plan, &found, params);
  return plan;
}

char *msa_plan_verdict(const MsaPlan *plan) {
  if (!plan->fits) {
    if (plan->host_budget && plan->host_bytes > plan->host_budget) {
      g_autofree char *more = msa_words_bytes(plan->host_bytes - plan->host_budget);
      return g_strdup_printf(_("Needs %s more memory"), more);
    }
    return g_strdup(plan->sentence);
  }
  if (plan->seconds < 0)
    return g_strdup(_("Runs here"));
  g_autofree char *time = msa_words_seconds(plan->seconds);
  return g_strdup_printf(_("Runs here: about %s a clip"), time);
}
