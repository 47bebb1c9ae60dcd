#include "library/look.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/errors.h"
#include "core/folders.h"
#include "core/main-thread.h"
#include "ms-media.h"
#include "models/plan-work.h"
#include "ms-models.h"

/* What can be read off a file. */
struct seen {
  int width, height, frames;
  double fps;
  char *settings; /* its comment; NULL: none */
};

/* Frames are counted by decoding only where the container does not say how long it is. */
static gboolean see(const char *path, struct seen *seen, GError **error) {
  struct ms_video *video = NULL;
  struct ms_error failure = {0};
  memset(seen, 0, sizeof *seen);
  int code = ms_video_open(&video, path, &failure);
  if (code == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    gint64 frames = info->fps > 0 ? (gint64)(info->duration * info->fps + 0.5) : 0;
    if (frames < 1) {
      code = ms_video_count(video, &failure);
      frames = info->frames;
    }
    seen->width = info->width;
    seen->height = info->height;
    seen->frames = (int)CLAMP(frames, 1, G_MAXINT);
    seen->fps = info->fps;
    seen->settings = g_strdup(ms_video_comment(video));
  }
  ms_video_close(&video);
  if (code < 0) {
    g_clear_pointer(&seen->settings, g_free);
    msa_error_set_from_engine(error, &failure);
  }
  return code == 0;
}

static void note(GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void note(GPtrArray *notes, const char *format, ...) {
  va_list list;
  va_start(list, format);
  g_ptr_array_add(notes, g_strdup_vprintf(format, list));
  va_end(list);
}

/* The kind of attention that the model's own weights are for. */
static gboolean has_offsets(const char *folder) {
  struct ms_model_info info;
  if (ms_model_info_read(&info, folder, NULL) < 0)
    return FALSE;
  const gboolean has = g_str_has_prefix(info.attention, "dsa");
  ms_model_info_release(&info);
  return has;
}

static void note_model(GPtrArray *notes, const MsaGenerateParams *params, const char *user_models) {
  char data[4096], folder[4096];
  if (!params->model)
    return;
  msa_data_folder(data, sizeof data);
  if (ms_model_find(params->model, data, user_models, folder, sizeof folder, NULL) < 0)
    note(notes,
         _("The model “%s” is not on this machine. Import it, or choose another: the clip will then be a "
           "different one."),
         params->model);
  else if (params->attention && !strcmp(params->attention, "dsa") && !has_offsets(folder))
    note(notes, _("The model “%s” here has no weights for 3D-DSA, with which the clip was made."),
         params->model);
}

/* Memory and disk, held against this machine as it is now. */
static void note_size(GPtrArray *notes, const MsaGenerateParams *params, const char *user_models) {
  struct msa_plan_place place = {.user_models = user_models};
  msa_rates_stand_in(&place.rates);
  g_autoptr(MsaPlan) plan = msa_plan_clip(&place, params, NULL);
  if (plan && !plan->fits)
    note(notes, _("A clip of %d × %d with %d frames does not fit here. %s"), plan->width, plan->height,
         plan->frames, plan->sentence);
}

static void note_device(GPtrArray *notes, const MsaGenerateParams *params) {
  if (params->device && !strcmp(params->device, "cuda"))
    note(notes, _("It was made on a graphics card with CUDA. This program computes on the processor, which "
                  "rounds differently, so details may differ."));
}

/* A comment that looks like settings of ours, which a newer program may have written. */
static gboolean looks_like_settings(const char *comment) {
  return comment[strspn(comment, " \t\n")] == '{' && strstr(comment, "\"prompt\"");
}

MsaDropped *msa_look(const char *path, const char *user_models, GError **error) {
  struct seen seen;
  MSA_ASSERT_OFF_MAIN();
  if (!see(path, &seen, error))
    return NULL;
  g_autoptr(GPtrArray) notes = g_ptr_array_new();
  MsaDropped *dropped = g_new0(MsaDropped, 1);
  dropped->width = seen.width;
  dropped->height = seen.height;
  dropped->frames = seen.frames;
  dropped->fps = seen.fps;
  g_autoptr(GError) problem = NULL;
  if (seen.settings)
    dropped->params = msa_generate_params_from_json(seen.settings, &problem);
  if (dropped->params) {
    note_model(notes, dropped->params, user_models);
    note_size(notes, dropped->params, user_models);
    note_device(notes, dropped->params);
  } else if (seen.settings && looks_like_settings(seen.settings)) {
    note(notes, _("It carries settings, but %s."), problem->message);
  }
  g_ptr_array_add(notes, NULL);
  dropped->notes = (char **)g_ptr_array_steal(notes, NULL);
  g_free(seen.settings);
  return dropped;
}

void msa_dropped_free(MsaDropped *dropped) {
  g_clear_pointer(&dropped->params, msa_generate_params_free);
  g_strfreev(dropped->notes);
  g_free(dropped);
}

gboolean msa_look_row(const char *path, struct msa_clip_row *row, GError **error) {
  struct seen seen;
  struct stat info;
  MSA_ASSERT_OFF_MAIN();
  if (!see(path, &seen, error))
    return FALSE;
  memset(row, 0, sizeof *row);
  row->path = g_strdup(path);
  row->width = seen.width;
  row->height = seen.height;
  row->frames = seen.frames;
  row->fps = seen.fps;
  if (stat(path, &info) == 0 && S_ISREG(info.st_mode))
    row->bytes = (guint64)info.st_size;
  g_autoptr(MsaGenerateParams) params =
      seen.settings ? msa_generate_params_from_json(seen.settings, NULL) : NULL;
  if (params) {
    row->prompt = g_strdup(params->prompt);
    row->model = g_strdup(params->model);
    row->params = msa_generate_params_to_json(params);
  }
  g_free(seen.settings);
  return TRUE;
}
