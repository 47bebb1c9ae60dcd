#include "export/export-work.h"

#include <stdlib.h>
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

static int copy_frames(const struct msa_export_work *work, struct ms_video *video, struct ms_encoder *encoder,
                       struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  uint8_t *rgb = malloc((size_t)info->width * info->height * 3);
  const double start = ms_seconds();
  double time;
  int status = 1;
  if (!rgb)
    return ms_error_set(error, MS_ENOMEM, "a frame of %dx%d does not fit in memory", info->width,
                        info->height);
  for (int64_t done = 0; status > 0;) {
    if (is_stopped(work)) {
      status = stop(error);
      break;
    }
    status = ms_video_read(video, 0, 0, NULL, rgb, &time, error);
    if (status <= 0)
      break;
    status = ms_encoder_write(encoder, rgb, error);
    if (status < 0)
      break;
    status = 1;
    done++;
    if (work->progress) {
      const double seconds = ms_seconds() - start;
      work->progress(work->data, done, info->frames, seconds,
                     seconds / (double)done * (double)(info->frames - done));
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
  int status;
  if (is_same_file(work->clip, work->output))
    return ms_error_set(error, MS_EUSAGE, "\"%.300s\" is the clip itself: name another file", work->output);
  status = work->format ? ms_format_from_name(work->format, &params.format, error)
                        : ms_format_from_path(work->output, &params.format, error);
  if (status == 0)
    status = ms_video_open(&video, work->clip, error);
  if (status == 0)
    status = ms_video_count(video, error);
  if (status == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    params.width = info->width;
    params.height = info->height;
    params.fps = work->fps > 0 ? work->fps : info->fps;
    params.quality = work->quality;
    params.comment = ms_video_comment(video);
    *result = (struct msa_export_result){info->width, info->height, info->frames, params.fps};
    status = ms_encoder_open(&encoder, work->output, &params, error);
  }
  if (status == 0)
    status = copy_frames(work, video, encoder, error);
  if (status == 0 && is_stopped(work))
    status = stop(error);
  if (status == 0)
    status = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  ms_video_close(&video);
  return status;
}
