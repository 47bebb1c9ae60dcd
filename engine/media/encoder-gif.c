#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "media/encoder-parts.h"
#include "media/palette.h"

struct ms_gif {
  struct ms_stream_params params;
  int spool; /* descriptor of a file without a name: frames as they came */
  size_t frame_bytes;
  int64_t frames;
  struct ms_palette *palette;
  uint8_t *rgb; /* one frame, read back */
  struct ms_stream *stream;
  AVFrame *frame;
};

/* A file without a name in the folder of `part`, so that what is too much for the disk fails where the result
 * would. */
static int open_spool(const char *part) {
  char *name = malloc(strlen(part) + sizeof ".XXXXXX");
  int fd = -1;
  if (!name)
    return -1;
  sprintf(name, "%s.XXXXXX", part);
  fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0)
    unlink(name);
  free(name);
  return fd;
}

int ms_gif_open(struct ms_gif **out, const char *path, const char *part, int width, int height, double fps,
                struct ms_error *error) {
  struct ms_gif *gif = calloc(1, sizeof *gif);
  int code;
  *out = NULL;
  if (!gif)
    return ms_media_failed(path, AVERROR(ENOMEM), error);
  gif->params = (struct ms_stream_params){.path = path,
                                          .part = part,
                                          .muxer = "gif",
                                          .encoder = "gif",
                                          .format = MS_FORMAT_GIF,
                                          .pixels = AV_PIX_FMT_PAL8,
                                          .width = width,
                                          .height = height,
                                          .fps = fps};
  gif->frame_bytes = (size_t)width * (size_t)height * 3;
  gif->spool = open_spool(part);
  if (gif->spool < 0) {
    code = ms_media_failed(path, AVERROR(errno), error);
    goto fail;
  }
  gif->palette = calloc(1, sizeof *gif->palette);
  gif->rgb = malloc(gif->frame_bytes);
  if (!gif->palette || !gif->rgb) {
    code = ms_media_failed(path, AVERROR(ENOMEM), error);
    goto fail;
  }
  *out = gif;
  return 0;
fail:
  ms_gif_close(&gif);
  return code;
}

void ms_gif_close(struct ms_gif **pointer) {
  struct ms_gif *gif = *pointer;
  if (!gif)
    return;
  *pointer = NULL;
  if (gif->spool >= 0)
    close(gif->spool);
  ms_stream_close(&gif->stream);
  av_frame_free(&gif->frame);
  free(gif->palette);
  free(gif->rgb);
  free(gif);
}

int ms_gif_write(struct ms_gif *gif, const uint8_t *rgb, struct ms_error *error) {
  for (size_t done = 0; done < gif->frame_bytes;) {
    ssize_t n = write(gif->spool, rgb + done, gif->frame_bytes - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return ms_media_failed(gif->params.path, AVERROR(n < 0 ? errno : ENOSPC), error);
    done += (size_t)n;
  }
  ms_palette_count(gif->palette, rgb, gif->frame_bytes / 3);
  gif->frames++;
  return 0;
}

static int read_frame(struct ms_gif *gif, int64_t index, struct ms_error *error) {
  for (size_t done = 0; done < gif->frame_bytes;) {
    ssize_t n = pread(gif->spool, gif->rgb + done, gif->frame_bytes - done,
                      (off_t)((size_t)index * gif->frame_bytes + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return ms_media_failed(gif->params.path, AVERROR(n < 0 ? errno : EIO), error);
    done += (size_t)n;
  }
  return 0;
}

int ms_gif_finish(struct ms_gif *gif, struct ms_error *error) {
  uint32_t colors[256] = {0};
  int code = ms_stream_open(&gif->stream, &gif->params, error);
  if (code < 0)
    return code;
  /* the last entry stays transparent: the encoder draws with it what has not changed */
  ms_palette_choose(gif->palette, 255);
  if (!gif->palette->size)
    return ms_media_failed(gif->params.path, AVERROR(ENOMEM), error);
  for (int i = 0; i < gif->palette->size; i++) {
    const uint8_t *color = gif->palette->colors[i];
    colors[i] = 0xff000000u | (uint32_t)color[0] << 16 | (uint32_t)color[1] << 8 | color[2];
  }
  for (int i = gif->palette->size; i < 255; i++)
    colors[i] = 0xff000000u;
  gif->frame = ms_stream_frame(gif->stream);
  if (!gif->frame)
    return ms_media_failed(gif->params.path, AVERROR(ENOMEM), error);
  memcpy(gif->frame->data[1], colors, sizeof colors);
  for (int64_t i = 0; code == 0 && i < gif->frames; i++) {
    code = read_frame(gif, i, error);
    if (code < 0)
      break;
    ms_palette_draw(gif->palette, gif->rgb, gif->params.width, gif->params.height, gif->frame->data[0],
                    gif->frame->linesize[0]);
    code = ms_stream_write(gif->stream, gif->frame, error);
  }
  return code < 0 ? code : ms_stream_finish(gif->stream, error);
}
