#include "window/msu-format.h"
#include <glib/gi18n.h>
#include <inttypes.h>
#include <math.h>

char *msu_format_seconds(double seconds) {
  if (!(seconds >= 0.5))
    return g_strdup(_("under 1 s"));
  if (seconds < 59.5)
    return g_strdup_printf(_("%d s"), (int)lround(seconds));
  const gint64 minutes = (gint64)llround(fmin(seconds, 1e15) / 60);
  if (minutes < 60)
    return g_strdup_printf(_("%d min"), (int)minutes);
  const gint64 hours = minutes / 60;
  if (hours < 24)
    return minutes % 60 ? g_strdup_printf(_("%d h %d min"), (int)hours, (int)(minutes % 60))
                        : g_strdup_printf(_("%d h"), (int)hours);
  return hours % 24 ? g_strdup_printf(_("%" PRId64 " d %d h"), hours / 24, (int)(hours % 24))
                    : g_strdup_printf(_("%" PRId64 " d"), hours / 24);
}

char *msu_format_bytes(guint64 bytes) {
  const double kilo = 1024, number = (double)bytes;
  if (number < kilo * kilo)
    return g_strdup_printf(_("%.0f KB"), ceil(number / kilo));
  if (number < kilo * kilo * kilo)
    return g_strdup_printf(_("%.0f MB"), number / (kilo * kilo));
  if (number < kilo * kilo * kilo * kilo) {
    const double giga = number / (kilo * kilo * kilo);
    return g_strdup_printf(giga < 99.95 ? _("%.1f GB") : _("%.0f GB"), giga);
  }
  return g_strdup_printf(_("%.1f TB"), number / (kilo * kilo * kilo * kilo));
}

char *msu_format_phase(const char *phase) {
  static const struct {
    const char *phase, *words;
  } table[] = {
      {"load", N_("Loading the model")},   {"text", N_("Reading the prompt")},
      {"sample", N_("Sampling")},          {"refine", N_("Adding detail")},
      {"enlarge", N_("Enlarging")},        {"checkpoint", N_("Saving a checkpoint")},
      {"decode", N_("Decoding frames")},   {"encode", N_("Writing the clip")},
      {"verify", N_("Checking the file")}, {"render", N_("Drawing clips")},
      {"train", N_("Training")},           {"validate", N_("Validating")},
      {"cache", N_("Preparing clips")},    {"measure", N_("Measuring")},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
    if (!g_strcmp0(phase, table[i].phase))
      return g_strdup(_(table[i].words));
  return g_strdup(phase && *phase ? phase : _("Starting"));
}

static gboolean counts_steps(const char *phase) {
  return !g_strcmp0(phase, "sample") || !g_strcmp0(phase, "refine") || !g_strcmp0(phase, "train");
}

/* "Step 7 of 24", or the phase in words. */
static char *format_place(MsaJob *job) {
  const char *phase = msa_job_get_phase(job);
  const gint64 done = msa_job_get_done(job), total = msa_job_get_total(job);
  if (counts_steps(phase) && total > 0)
    return g_strcmp0(phase, "refine")
               ? g_strdup_printf(_("Step %" PRId64 " of %" PRId64), done, total)
               : g_strdup_printf(_("Detail step %" PRId64 " of %" PRId64), done, total);
  g_autofree char *words = msu_format_phase(phase);
  if (!g_strcmp0(phase, "decode") && total > 0)
    return g_strdup_printf(_("%s, %" PRId64 " of %" PRId64), words, done, total);
  return g_steal_pointer(&words);
}

char *msu_format_job(MsaJob *job) {
  g_autofree char *place = format_place(job);
  switch (msa_job_get_state(job)) {
  case MSA_JOB_QUEUED:
    return g_strdup(_("Waiting"));
  case MSA_JOB_STOPPING:
    return g_strdup(_("Stopping"));
  case MSA_JOB_PAUSED:
    if (counts_steps(msa_job_get_phase(job)) && msa_job_get_total(job) > 0)
      return g_strdup_printf(_("Paused at step %" PRId64 " of %" PRId64), msa_job_get_done(job),
                             msa_job_get_total(job));
    return g_strdup(_("Paused"));
  case MSA_JOB_DONE:
    return g_strdup(_("Done"));
  case MSA_JOB_FAILED:
    return g_strdup(_("Failed"));
  case MSA_JOB_CANCELLED:
    return g_strdup(_("Cancelled"));
  case MSA_JOB_RUNNING:
    break;
  }
  const double left = msa_job_get_seconds_left(job);
  if (!(left >= 0))
    return g_steal_pointer(&place);
  g_autofree char *time = msu_format_seconds(left);
  return g_strdup_printf(_("%s, %s left"), place, time);
}

char *msu_format_clip(MsaClip *clip) {
  const int frames = msa_clip_get_frames(clip);
  const double fps = msa_clip_get_fps(clip);
  g_autofree char *count = g_strdup_printf(ngettext("%d frame", "%d frames", (unsigned long)frames), frames);
  return g_strdup_printf(_("%d × %d, %s, %.1f s"), msa_clip_get_width(clip), msa_clip_get_height(clip), count,
                         fps > 0 ? frames / fps : 0.0);
}
