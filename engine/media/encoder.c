#include "ms-media.h"

#include <jansson.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "media/encoder-parts.h"

static const struct format {
  const char *name, *title;
  const char *encoders[3];   /* the first that this FFmpeg has */
  const char *extensions[4]; /* that can hold it */
  enum AVPixelFormat pixels;
} formats[] = {
    [MS_FORMAT_H264] = {"h264", "H.264", {"libx264"}, {"mp4", "mov", "mkv"}, AV_PIX_FMT_YUV420P},
    [MS_FORMAT_H265] = {"h265", "H.265", {"libx265"}, {"mp4", "mov", "mkv"}, AV_PIX_FMT_YUV420P},
    [MS_FORMAT_AV1] = {"av1", "AV1", {"libaom-av1", "libsvtav1"}, {"mp4", "webm", "mkv"}, AV_PIX_FMT_YUV420P},
    [MS_FORMAT_VP9] = {"vp9", "VP9", {"libvpx-vp9"}, {"webm", "mp4", "mkv"}, AV_PIX_FMT_YUV420P},
    [MS_FORMAT_PRORES] = {"prores", "ProRes", {"prores_ks"}, {"mov", "mkv"}, AV_PIX_FMT_YUV422P10},
    [MS_FORMAT_FFV1] = {"ffv1", "FFV1", {"ffv1"}, {"mkv"}, AV_PIX_FMT_BGR0},
    [MS_FORMAT_GIF] = {"gif", "GIF", {"gif"}, {"gif"}, AV_PIX_FMT_PAL8},
    [MS_FORMAT_PNG] = {"png", "PNG", {"png"}, {"png"}, AV_PIX_FMT_RGB24},
};
#define FORMATS (sizeof formats / sizeof *formats)

static const struct {
  const char *extension, *muxer;
  enum ms_format usual;
} containers[] = {
    {"mp4", "mp4", MS_FORMAT_H264},   {"mkv", "matroska", MS_FORMAT_H264}, {"webm", "webm", MS_FORMAT_VP9},
    {"mov", "mov", MS_FORMAT_PRORES}, {"gif", "gif", MS_FORMAT_GIF},       {"png", "png", MS_FORMAT_PNG},
};
#define CONTAINERS (sizeof containers / sizeof *containers)

struct ms_encoder {
  struct ms_encoder_params params; /* comment: see below */
  char *path, *comment;
  const struct format *format;
  struct ms_file_out out; /* not for PNG */
  struct ms_stream *stream;
  struct ms_gif *gif;
  struct ms_frames *frames;
  struct SwsContext *context; /* RGB to the stream's pixels */
  AVFrame *frame;
  int64_t written;
};

struct ms_encoder_params ms_encoder_params_default(void) {
  return (struct ms_encoder_params){.fps = 24, .format = MS_FORMAT_H264, .quality = 85};
}

/* Index into containers, or -1. */
static int container_of(const char *path) {
  const char *name = strrchr(path, '/'), *dot;
  name = name ? name + 1 : path;
  dot = strrchr(name, '.');
  for (int i = 0; dot && dot > name && i < (int)CONTAINERS; i++)
    if (!strcasecmp(dot + 1, containers[i].extension))
      return i;
  return -1;
}

int ms_format_from_path(const char *path, enum ms_format *format, struct ms_error *error) {
  int i = container_of(path);
  if (i < 0)
    return ms_error_set(
        error, MS_EUSAGE,
        "\"%.300s\" does not say what to write: end it in .mp4, .mkv, .webm, .mov, .gif or .png", path);
  *format = containers[i].usual;
  return 0;
}

int ms_format_from_name(const char *name, enum ms_format *format, struct ms_error *error) {
  for (size_t i = 0; i < FORMATS; i++)
    if (!strcasecmp(name, formats[i].name)) {
      *format = (enum ms_format)i;
      return 0;
    }
  return ms_error_set(error, MS_EUSAGE,
                      "unknown format \"%.100s\": h264, h265, av1, vp9, prores, ffv1, gif and png are known",
                      name);
}

const char *ms_format_name(enum ms_format format) {
  return formats[format].name;
}

static int holds(const struct format *format, const char *extension) {
  for (int i = 0; i < 4 && format->extensions[i]; i++)
    if (!strcmp(format->extensions[i], extension))
      return 1;
  return 0;
}

static const char *find_encoder(const struct format *format) {
  for (int i = 0; i < 3 && format->encoders[i]; i++)
    if (avcodec_find_encoder_by_name(format->encoders[i]))
      return format->encoders[i];
  return NULL;
}

int ms_format_available(enum ms_format format) {
  return find_encoder(&formats[format]) != NULL;
}

static int check_params(const char *path, const struct ms_encoder_params *params, struct ms_error *error) {
  const struct format *format = &formats[params->format];
  int i = container_of(path);
  if (i < 0 || !holds(format, containers[i].extension))
    return ms_error_set(error, MS_EUSAGE, "\"%.300s\" cannot hold %s: end it in .%s%s%s%s%s", path,
                        format->title, format->extensions[0], format->extensions[1] ? " or ." : "",
                        format->extensions[1] ? format->extensions[1] : "",
                        format->extensions[2] ? " or ." : "",
                        format->extensions[2] ? format->extensions[2] : "");
  if (params->width < 2 || params->height < 2 || params->width % 2 || params->height % 2)
    return ms_error_set(error, MS_EUSAGE, "cannot write a clip of %dx%d: width and height must be even",
                        params->width, params->height);
  if (!(params->fps >= 0.01 && params->fps <= 1000))
    return ms_error_set(error, MS_EUSAGE, "cannot write a clip of %g frames a second", params->fps);
  if (params->format == MS_FORMAT_GIF && params->fps > 50)
    return ms_error_set(error, MS_EUSAGE,
                        "a GIF shows at most 50 frames a second, not %g: choose another format", params->fps);
  if (params->quality < 0 || params->quality > 100)
    return ms_error_set(error, MS_EUSAGE, "quality is %d; it goes from 0 to 100", params->quality);
  if (!find_encoder(format))
    return ms_error_set(error, MS_EUSAGE, "cannot write %s: this system's FFmpeg has no encoder for it (%s)",
                        format->title, format->encoders[0]);
  return 0;
}

int ms_output_check(const char *path, struct ms_error *error) {
  enum ms_format format = MS_FORMAT_H264;
  int code = ms_format_from_path(path, &format, error);
  if (code < 0)
    return code;
  return format == MS_FORMAT_PNG ? ms_frames_check(path, error) : ms_file_check(path, error);
}

/* RGB to BT.709, limited range, chroma between the luma rows and on the left column, as the tags say. */
static int open_conversion(struct ms_encoder *encoder, struct ms_error *error) {
  const int *matrix = sws_getCoefficients(SWS_CS_ITU709);
  struct SwsContext *context = encoder->context = sws_alloc_context();
  encoder->frame = ms_stream_frame(encoder->stream);
  if (!context || !encoder->frame)
    return ms_media_failed(encoder->path, AVERROR(ENOMEM), error);
  av_opt_set_int(context, "srcw", encoder->params.width, 0);
  av_opt_set_int(context, "srch", encoder->params.height, 0);
  av_opt_set_int(context, "src_format", AV_PIX_FMT_RGB24, 0);
  av_opt_set_int(context, "src_range", 1, 0);
  av_opt_set_int(context, "dstw", encoder->params.width, 0);
  av_opt_set_int(context, "dsth", encoder->params.height, 0);
  av_opt_set_int(context, "dst_format", encoder->format->pixels, 0);
  av_opt_set_int(context, "dst_range", encoder->format->pixels == AV_PIX_FMT_BGR0, 0);
  if (encoder->format->pixels != AV_PIX_FMT_BGR0)
    av_opt_set_int(context, "dst_h_chr_pos", 0, 0);
  if (encoder->format->pixels == AV_PIX_FMT_YUV420P)
    av_opt_set_int(context, "dst_v_chr_pos", 128, 0);
  av_opt_set_int(context, "sws_flags",
                 SWS_BICUBIC | SWS_FULL_CHR_H_INP | SWS_FULL_CHR_H_INT | SWS_ACCURATE_RND | SWS_BITEXACT, 0);
  if (sws_init_context(context, NULL, NULL) < 0)
    return ms_error_set(error, MS_EFAULT, "cannot convert %dx%d for \"%.250s\"", encoder->params.width,
                        encoder->params.height, encoder->path);
  sws_setColorspaceDetails(context, matrix, 1, matrix, encoder->format->pixels == AV_PIX_FMT_BGR0, 0, 1 << 16,
                           1 << 16);
  return 0;
}

static int open_stream(struct ms_encoder *encoder, struct ms_error *error) {
  struct ms_stream_params params = {
      .path = encoder->path,
      .part = encoder->out.part,
      .muxer = containers[container_of(encoder->path)].muxer,
      .encoder = find_encoder(encoder->format),
      .format = encoder->params.format,
      .pixels = encoder->format->pixels,
      .width = encoder->params.width,
      .height = encoder->params.height,
      .quality = encoder->params.quality,
      .fps = encoder->params.fps,
      .comment = encoder->comment,
  };
  int code = ms_stream_open(&encoder->stream, &params, error);
  return code < 0 ? code : open_conversion(encoder, error);
}

int ms_encoder_open(struct ms_encoder **out, const char *path, const struct ms_encoder_params *params,
                    struct ms_error *error) {
  struct ms_encoder *encoder;
  int code = check_params(path, params, error);
  *out = NULL;
  if (code < 0)
    return code;
  av_log_set_level(AV_LOG_QUIET); /* messages come through the error object */
  encoder = calloc(1, sizeof *encoder);
  if (!encoder)
    return ms_media_failed(path, AVERROR(ENOMEM), error);
  encoder->params = *params;
  encoder->format = &formats[params->format];
  encoder->path = strdup(path);
  encoder->comment = params->comment ? strdup(params->comment) : NULL;
  if (!encoder->path || (params->comment && !encoder->comment)) {
    code = ms_media_failed(path, AVERROR(ENOMEM), error);
    goto fail;
  }
  if (params->format == MS_FORMAT_PNG) {
    code = ms_frames_open(&encoder->frames, encoder->path, params->width, params->height, error);
  } else {
    code = ms_file_check(path, error);
    if (code == 0)
      code = ms_file_out_open(&encoder->out, path, error);
    if (code == 0 && params->format == MS_FORMAT_GIF)
      code = ms_gif_open(&encoder->gif, encoder->path, encoder->out.part, params->width, params->height,
                         params->fps, error);
    else if (code == 0)
      code = open_stream(encoder, error);
  }
  if (code < 0)
    goto fail;
  *out = encoder;
  return 0;
fail:
  ms_encoder_close(&encoder);
  return code;
}

void ms_encoder_close(struct ms_encoder **pointer) {
  struct ms_encoder *encoder = *pointer;
  if (!encoder)
    return;
  *pointer = NULL;
  ms_stream_close(&encoder->stream);
  ms_gif_close(&encoder->gif);
  ms_frames_close(&encoder->frames);
  ms_file_out_abandon(&encoder->out);
  sws_freeContext(encoder->context);
  av_frame_free(&encoder->frame);
  free(encoder->path);
  free(encoder->comment);
  free(encoder);
}

int ms_encoder_write(struct ms_encoder *encoder, const uint8_t *rgb, struct ms_error *error) {
  int stride = encoder->params.width * 3, code;
  if (encoder->gif) {
    code = ms_gif_write(encoder->gif, rgb, error);
  } else if (encoder->frames) {
    code = ms_frames_write(encoder->frames, rgb, error);
  } else {
    sws_scale(encoder->context, &rgb, &stride, 0, encoder->params.height, encoder->frame->data,
              encoder->frame->linesize);
    code = ms_stream_write(encoder->stream, encoder->frame, error);
  }
  if (code == 0)
    encoder->written++;
  return code;
}

static int differs(const struct ms_encoder *encoder, const char *what, const char *got, const char *want,
                   struct ms_error *error) {
  return ms_error_set(error, MS_EOUTPUT,
                      "\"%.200s\" was written but does not read back as asked: its %s is %.60s, not %.60s",
                      encoder->path, what, got, want);
}

static int differs_number(const struct ms_encoder *encoder, const char *what, double got, double want,
                          struct ms_error *error) {
  char got_text[32], want_text[32];
  snprintf(got_text, sizeof got_text, "%.6g", got);
  snprintf(want_text, sizeof want_text, "%.6g", want);
  return differs(encoder, what, got_text, want_text, error);
}

static int compare_colors(const struct ms_encoder *encoder, const struct ms_video_info *info,
                          struct ms_error *error) {
  if (encoder->format->pixels == AV_PIX_FMT_YUV420P || encoder->format->pixels == AV_PIX_FMT_YUV422P10) {
    if (strcmp(info->color_space, "bt709"))
      return differs(encoder, "colour matrix", info->color_space, "bt709", error);
    if (strcmp(info->color_primaries, "bt709"))
      return differs(encoder, "set of primaries", info->color_primaries, "bt709", error);
    if (strcmp(info->color_transfer, "bt709"))
      return differs(encoder, "transfer curve", info->color_transfer, "bt709", error);
    if (strcmp(info->color_range, "tv") &&
        encoder->params.format != MS_FORMAT_PRORES) /* which has no other */
      return differs(encoder, "range", info->color_range, "tv", error);
  }
  return 0;
}

static int compare(const struct ms_encoder *encoder, const struct ms_video *video, struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  const struct ms_encoder_params *asked = &encoder->params;
  const char *comment = ms_video_comment(video);
  /* what the container's clock can say: milliseconds in Matroska, hundredths in GIF, in PNG nothing */
  double tick = asked->format == MS_FORMAT_GIF ? 0.01 : 0.001,
         seconds = (double)encoder->written / asked->fps;
  if (info->frames != encoder->written)
    return differs_number(encoder, "number of frames", (double)info->frames, (double)encoder->written, error);
  if (info->width != asked->width)
    return differs_number(encoder, "width", info->width, asked->width, error);
  if (info->height != asked->height)
    return differs_number(encoder, "height", info->height, asked->height, error);
  if (asked->format == MS_FORMAT_PNG ||
      (asked->format == MS_FORMAT_GIF && encoder->written == 1)) /* no time */
    return 0;
  if (fabs(info->duration - seconds) > 2 * tick)
    return differs_number(encoder, "duration", info->duration, seconds, error);
  if (asked->format == MS_FORMAT_GIF)
    return 0;
  if (fabs(info->fps - asked->fps) > asked->fps * 2 * tick / seconds)
    return differs_number(encoder, "frame rate", info->fps, asked->fps, error);
  if (encoder->comment && (!comment || strcmp(comment, encoder->comment)))
    return differs(encoder, "comment", comment ? comment : "missing", encoder->comment, error);
  return compare_colors(encoder, info, error);
}

static int verify(const struct ms_encoder *encoder, const char *part, struct ms_error *error) {
  struct ms_error found = {0};
  struct ms_video *video;
  int code = ms_video_open(&video, part, &found);
  if (code == 0)
    code = ms_video_count(video, &found);
  if (code < 0)
    code = ms_error_set(error, MS_EOUTPUT, "\"%.200s\" was written but does not read back: %.200s",
                        encoder->path, found.message);
  else
    code = compare(encoder, video, error);
  ms_video_close(&video);
  return code;
}

/* A folder of frames has its rate nowhere but in the settings beside it, so they must tell the one that was
 * asked for. The text to write, which the caller frees; NULL: out of memory. */
static char *sidecar_text(const struct ms_encoder *encoder) {
  const double fps = encoder->params.fps;
  json_t *settings = encoder->frames ? json_loads(encoder->comment, 0, NULL) : NULL;
  char *text;
  if (json_is_object(settings) && json_number_value(json_object_get(settings, "fps")) != fps) {
    json_object_set_new(settings, "fps", json_real(fps));
    text = json_dumps(settings, JSON_COMPACT);
  } else {
    text = strdup(encoder->comment);
  }
  json_decref(settings);
  return text;
}

/* Settings beside a file that has no tag for them; without settings none may be left of an earlier file of
 * that name. */
static int write_sidecar(const struct ms_encoder *encoder, struct ms_error *error) {
  char *name = malloc(strlen(encoder->path) + sizeof ".json");
  char *text = encoder->comment ? sidecar_text(encoder) : NULL;
  int code = 0;
  if (name)
    sprintf(name, "%s.json", encoder->path);
  if (!name || (encoder->comment && !text))
    code = ms_media_failed(encoder->path, AVERROR(ENOMEM), error);
  else if (text)
    code = ms_file_write_all(name, text, strlen(text), error);
  else
    unlink(name);
  free(text);
  free(name);
  return code;
}

int ms_encoder_finish(struct ms_encoder *encoder, struct ms_error *error) {
  int code;
  if (!encoder->written)
    return ms_error_set(error, MS_EFAULT, "\"%.300s\" would have no frames", encoder->path);
  if (encoder->frames)
    code = ms_frames_sync(encoder->frames, error);
  else
    code = encoder->gif ? ms_gif_finish(encoder->gif, error) : ms_stream_finish(encoder->stream, error);
  if (code == 0)
    code = verify(encoder, encoder->frames ? ms_frames_part(encoder->frames) : encoder->out.part, error);
  if (code == 0)
    code =
        encoder->frames ? ms_frames_commit(encoder->frames, error) : ms_file_out_commit(&encoder->out, error);
  if (code == 0 && (encoder->gif || encoder->frames))
    code = write_sidecar(encoder, error);
  return code;
}
