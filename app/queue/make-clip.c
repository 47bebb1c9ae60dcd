/* A clip: from the job in the store to the file in the library. */
#include <glib/gstdio.h>
#include <string.h>

#include "core/engine-jobs.h"
#include "core/main-thread.h"
#include "core/slug.h"
#include "queue/work.h"
#include "store/jobs.h"

#define STEM_MOST 48 /* bytes of the prompt in a file's name */

/* The file's name: what it shows and its seed. */
static char *stem_of(const MsaGenerateParams *params) {
  g_autofree char *slug = msa_slug(params->prompt, STEM_MOST, "clip");
  return g_strdup_printf("%s-%" G_GINT64_FORMAT, slug, params->seed);
}

/* The settings as the engine resolved them lie with the state; else what is known. */
static char *settings_used(const char *state, const MsaGenerateParams *asked,
                           const struct ms_generate_result *result) {
  g_autofree char *path = g_build_filename(state, "job.json", NULL), *json = NULL;
  g_autoptr(MsaGenerateParams) used = NULL;
  if (g_file_get_contents(path, &json, NULL, NULL))
    used = msa_generate_params_from_json(json, NULL);
  if (!used)
    used = msa_generate_params_copy(asked);
  if (!result->partial) { /* else the size is a stage's, and the settings are those of the whole clip */
    used->width = result->width;
    used->height = result->height;
  }
  used->frames = result->frames;
  used->steps = result->steps;
  used->fps = result->fps;
  used->guidance = result->guidance;
  used->shift = result->shift;
  used->seed = result->seed;
  return msa_generate_params_to_json(used);
}

static struct msa_clip_row *row_of(const char *output, const char *state, const MsaGenerateParams *params,
                                   const struct ms_generate_result *result) {
  struct msa_clip_row *row = g_new0(struct msa_clip_row, 1);
  GStatBuf file;
  row->path = g_strdup(output);
  row->prompt = g_strdup(params->prompt);
  row->model = g_strdup(params->model && *params->model ? params->model : "starter");
  row->kind = g_strdup(result->partial ? "partial" : "made");
  row->params = settings_used(state, params, result);
  row->created = g_get_real_time() / G_USEC_PER_SEC;
  row->seconds = result->seconds;
  row->bytes = g_stat(output, &file) == 0 ? (guint64)file.st_size : 0;
  row->width = result->width;
  row->height = result->height;
  row->frames = result->frames;
  row->fps = result->fps;
  return row;
}

/* What a power failure has left unreadable is no reason to give up: the settings stand in the store, and the
 * clip begins anew. */
static gboolean has_state(const char *state) {
  struct ms_saved_job saved = {0};
  const gboolean good = ms_saved_job_read(&saved, state, NULL) == 0;
  ms_saved_job_release(&saved);
  return good;
}

static int generate(const struct msa_workplace *place, struct msa_task *task, const char *state,
                    const char *output, struct ms_generate_result *result, struct ms_error *error) {
  struct ms_generate_job job = msa_engine_generate_job(task->generate);
  struct ms_machine machine;
  const struct ms_hooks hooks = msa_work_hooks(task);
  const gboolean resumed = has_state(state);
  int code = msa_work_machine(place, task->generate->device, task->generate->host_memory,
                              task->generate->threads, &machine, error);
  if (code < 0)
    return code;
  job.output = output;
  job.keep_latents = state;
  job.take = &task->take;
  job.resume = resumed ? state : NULL;
  return ms_generate(&job, &machine, &hooks, result, error);
}

void msa_work_generate(const struct msa_workplace *place, struct msa_task *task) {
  g_autofree char *stem = stem_of(task->generate);
  g_autofree char *params = msa_generate_params_to_json(task->generate);
  g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, task->id);
  g_autofree char *state = g_build_filename(place->folders->jobs, number, NULL);
  g_autofree char *output = NULL;
  g_autoptr(GError) failure = NULL;
  struct ms_generate_result result = {0};
  struct ms_error error = {0};
  MSA_ASSERT_OFF_MAIN();
  if (!msa_store_begin_job(place->store, task->id, params, stem, &output, &failure)) {
    msa_mailbox_failed(task->mailbox, NULL, g_strdup(failure->message), TRUE);
    return;
  }
  const int code = generate(place, task, state, output, &result, &error);
  if (code < 0) {
    msa_work_end(task, &error, g_strdup(result.skipped_words));
    return;
  }
  struct msa_clip_row *row = row_of(output, state, task->generate, &result);
  if (msa_store_finish_clip(place->store, task->id, row, &failure)) {
    msa_mailbox_done(task->mailbox, g_strdup(result.skipped_words), row);
  } else {
    msa_mailbox_failed(task->mailbox, g_strdup(result.skipped_words), g_strdup(failure->message), TRUE);
    msa_clip_row_free(row);
  }
}
