#include "export/export-work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ms-system.h"

/* The new file would take the place of the clip, whose pixels are then lost. */
static int is_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int is_stopped(const struct msa_export_work *work) {
  return work->cancel && atomic_load(work->cancel);
}

static int stop(struct ms_error *error) {
  return ms_error_set(error, MS_ECANCELLED, "stopped; nothing was written");
}

/* How many frames there will be, for the progress alone; to decode the whole clip for that would take about
 * as long as the export. A GIF says its rate only in the times of its frames, so that it has to be counted.
 */
static int guess_frames(struct ms_video *video, int64_t *frames, struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  int status = 0;
  *frames = info->fps > 0 ? (int64_t)(info->duration * info->fps + 0.5) : 0;
  if (*frames < 1 || !strcmp(info->container, "gif")) {
    status = ms_video_count(video, error);
    *frames = info->frames;
  }
  return status;
}

/* Returns 0 and the number of frames written, or an error. */
static int copy_frames(const struct msa_export_work *work, struct ms_video *video, struct ms_encoder *encoder,
                       const int size[2], int64_t frames, int64_t *written, struct ms_error *error) {
  const int crop[4] = {0, 0, size[0], size[1]};
  uint8_t *rgb = malloc((size_t)crop[2] * crop[3] * 3);
  const double start = ms_seconds();
  double time;
  int status = 1;
  *written = 0;
  if (!rgb)
    return ms_error_set(error, MS_ENOMEM, "a frame of %dx%d does not fit in memory", crop[2], crop[3]);
  while (status > 0) {
    if (is_stopped(work)) {
      status = stop(error);
      break;
    }
    status = ms_video_read(video, 0, 0, crop, rgb, &time, error);
    if (status <= 0)
      break;
    status = ms_encoder_write(encoder, rgb, error);
    if (status < 0)
      break;
    status = 1;
    ++*written;
    if (work->progress && *written <= frames) {
      const double seconds = ms_seconds() - start;
      work->progress(work->data, *written, frames, seconds,
                     seconds / (double)*written * (double)(frames - *written));
    }
  }
  free(rgb);
  return status;
}

int msa_export_run(const struct msa_export_work *work, struct msa_export_result *result,
                   struct ms_error *error) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_video *video = NULL;
  struct ms_encoder *encoder = NULL;
  int64_t frames = 0;
  int size[2] = {0}, status;
  if (is_same_file(work->clip, work->output))
    return ms_error_set(error, MS_EUSAGE, "\"%.300s\" is the clip itself: name another file", work->output);
  status = work->format ? ms_format_from_name(work->format, &params.format, error)
                        : ms_format_from_path(work->output, &params.format, error);
  if (status == 0)
    status = ms_video_open(&video, work->clip, error);
  if (status == 0)
    status = guess_frames(video, &frames, error);
  if (status == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    params.width = size[0] = info->width & ~1;
    params.height = size[1] = info->height & ~1;
    params.fps = work->fps > 0 ? work->fps : info->fps;
    params.quality = work->quality;
    params.comment = ms_video_comment(video);
    *result = (struct msa_export_result){.width = size[0],
                                         .height = size[1],
                                         .fps = params.fps,
                                         .clip_width = info->width,
                                         .clip_height = info->height};
    status = ms_encoder_open(&encoder, work->output, &params, error);
  }
  if (status == 0)
    status = copy_frames(work, video, encoder, size, frames, &result->frames, error);
  if (status == 0 && is_stopped(work))
    status = stop(error);
  if (status == 0)
    status = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  ms_video_close(&video);
  return status;
}
