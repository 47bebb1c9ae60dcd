#include "ms-media.h"

#include <errno.h>
#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "media/video-pixels.h"

/* More pixels than any camera's frame; a damaged header must not make the decoder ask for all memory. */
#define PIXELS_MAX (1 << 28)
#define COMMENT_MAX (4 << 20)

struct ms_video {
  char *path;
  char *url; /* what libavformat opens: a file, or the pattern of a folder of frames */
  int folder;
  char *sidecar; /* the text of PATH.json, or NULL */
  AVFormatContext *container;
  AVCodecContext *decoder;
  AVStream *stream; /* of container */
  AVPacket *packet;
  AVFrame *frame;
  int have_frame; /* `frame` is decoded and not yet handed out */
  int draining, started;
  int64_t first_pts;
  double last_time;
  struct ms_turn turn;
  struct ms_pixels pixels;
  struct ms_video_info info;
};

static int failed(const struct ms_video *video, const char *what, int number, struct ms_error *error) {
  char reason[128];
  /* libav* says this when a header asks for an absurd size, so that it mostly is the file's fault */
  if (number == AVERROR(ENOMEM))
    return ms_error_set(
        error, MS_EINPUT,
        "\"%.300s\" needs more memory than there is: it is damaged, or too large to be read here",
        video->path);
  av_strerror(number, reason, sizeof reason);
  return ms_error_set(error, MS_EINPUT, "\"%.250s\" %s: %s", video->path, what, reason);
}

static void close_streams(struct ms_video *video) {
  avcodec_free_context(&video->decoder);
  avformat_close_input(&video->container);
  video->stream = NULL;
  video->have_frame = video->draining = video->started = 0;
}

void ms_video_close(struct ms_video **pointer) {
  struct ms_video *video = *pointer;
  if (!video)
    return;
  *pointer = NULL;
  close_streams(video);
  av_packet_free(&video->packet);
  av_frame_free(&video->frame);
  ms_pixels_release(&video->pixels);
  free(video->path);
  free(video->url);
  free(video->sidecar);
  free(video);
}

/* A folder of frames is opened as the pattern FOLDER/%05d.png; per cent signs of its own name are doubled. */
static char *folder_pattern(const char *path) {
  char *url = malloc(2 * strlen(path) + 32), *to = url;
  if (!url)
    return NULL;
  to += sprintf(to, "file:");
  for (; *path; path++) {
    if (*path == '%')
      *to++ = '%';
    *to++ = *path;
  }
  strcpy(to, "/%05d.png");
  return url;
}

static int find_url(struct ms_video *video, struct ms_error *error) {
  struct stat info;
  if (stat(video->path, &info) < 0)
    return ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", video->path, strerrordesc_np(errno));
  video->folder = S_ISDIR(info.st_mode);
  if (!video->folder && !S_ISREG(info.st_mode))
    return ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": it is not a file", video->path);
  if (video->folder) {
    video->url = folder_pattern(video->path);
  } else {
    /* the prefix keeps names with colons from being taken for protocols */
    video->url = malloc(strlen(video->path) + sizeof "file:");
    if (video->url)
      sprintf(video->url, "file:%s", video->path);
  }
  return video->url ? 0
                    : ms_error_set(error, MS_ENOMEM, "cannot read \"%.300s\": out of memory", video->path);
}

/* Formats without tags have their settings beside them. */
static void read_sidecar(struct ms_video *video) {
  size_t length = strlen(video->path), size;
  char *name = malloc(length + sizeof ".json");
  if (!name)
    return;
  sprintf(name, "%s.json", video->path);
  ms_file_read_all(name, COMMENT_MAX, &video->sidecar, &size, NULL);
  free(name);
}

static double sidecar_fps(const struct ms_video *video) {
  json_t *settings = video->sidecar ? json_loads(video->sidecar, JSON_REJECT_DUPLICATES, NULL) : NULL;
  double fps = json_number_value(json_object_get(settings, "fps"));
  json_decref(settings);
  return fps > 0 && fps < 1e6 ? fps : 0;
}

static int open_container(struct ms_video *video, struct ms_error *error) {
  AVDictionary *options = NULL;
  const AVInputFormat *format = NULL;
  int number;
  /* a clip may name nothing but itself: no addresses, no other protocols */
  av_dict_set(&options, "protocol_whitelist", "file", 0);
  if (video->folder) {
    AVRational rate = av_d2q(sidecar_fps(video), 1000000);
    char text[64];
    format = av_find_input_format("image2");
    snprintf(text, sizeof text, "%d/%d", rate.num > 0 ? rate.num : 24, rate.num > 0 ? rate.den : 1);
    av_dict_set(&options, "framerate", text, 0);
  }
  number = avformat_open_input(&video->container, video->url, format, &options);
  av_dict_free(&options);
  if (number < 0)
    return failed(
        video, video->folder ? "is a folder without frames 00001.png ..." : "is not a video that can be read",
        number, error);
  number = avformat_find_stream_info(video->container, NULL);
  if (number < 0)
    return failed(video, "is not a video that can be read", number, error);
  return 0;
}

static int open_decoder(struct ms_video *video, struct ms_error *error) {
  const AVCodec *codec = NULL;
  int number, index = av_find_best_stream(video->container, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (index == AVERROR_DECODER_NOT_FOUND)
    return ms_error_set(error, MS_EINPUT, "\"%.300s\" has a video stream for which there is no decoder",
                        video->path);
  if (index < 0 || video->container->streams[index]->disposition & AV_DISPOSITION_ATTACHED_PIC)
    return ms_error_set(error, MS_EINPUT, "\"%.300s\" has no video stream", video->path);
  video->stream = video->container->streams[index];
  for (unsigned i = 0; i < video->container->nb_streams; i++)
    if ((int)i != index)
      video->container->streams[i]->discard = AVDISCARD_ALL;
  video->decoder = avcodec_alloc_context3(codec);
  if (!video->decoder)
    return failed(video, "", AVERROR(ENOMEM), error);
  number = avcodec_parameters_to_context(video->decoder, video->stream->codecpar);
  if (number >= 0) {
    video->decoder->pkt_timebase = video->stream->time_base;
    video->decoder->max_pixels = PIXELS_MAX;
    video->decoder->thread_count =
        4; /* each holds frames; more would cost memory without being the bottleneck */
    number = avcodec_open2(video->decoder, codec, NULL);
  }
  return number < 0 ? failed(video, "has a video stream that cannot be decoded", number, error) : 0;
}

/* Feeds one packet, or the end. Packets that are broken are skipped: the decoder goes on with the next one.
 */
static int feed(struct ms_video *video, struct ms_error *error) {
  int number = av_read_frame(video->container, video->packet);
  if (number < 0) {
    if (number == AVERROR(ENOMEM) || number == AVERROR(EIO))
      return failed(video, "cannot be read on", number, error);
    /* anything else is the end, also of a file that is cut off */
    video->draining = 1;
    avcodec_send_packet(video->decoder, NULL);
    return 0;
  }
  if (video->packet->stream_index == video->stream->index)
    number = avcodec_send_packet(video->decoder, video->packet);
  av_packet_unref(video->packet);
  return number == AVERROR(ENOMEM) ? failed(video, "", number, error) : 0;
}

/* Decodes the next frame into video->frame: 1, 0 at the end, or an error. */
static int decode(struct ms_video *video, struct ms_error *error) {
  /* each call of receive takes something from the decoder; a thousand errors in a row and it never will */
  for (int broken = 0; broken < 1000;) {
    int number = avcodec_receive_frame(video->decoder, video->frame), code;
    if (number >= 0 && video->frame->width > 0 && video->frame->height > 0 && video->frame->data[0])
      return 1;
    if (number == AVERROR_EOF)
      return 0;
    if (number == AVERROR(ENOMEM))
      return failed(video, "", number, error);
    /* a frame that is broken: the next call gives the one after it, unless it was the last */
    if (number != AVERROR(EAGAIN)) {
      broken++;
      continue;
    }
    if (video->draining)
      return 0;
    code = feed(video, error);
    if (code < 0)
      return code;
  }
  return 0;
}

static double frame_time(struct ms_video *video, const AVFrame *frame) {
  double step = video->info.fps > 0 ? 1 / video->info.fps : 0;
  if (!video->started) {
    video->started = 1;
    video->first_pts = frame->best_effort_timestamp;
    return 0;
  }
  if (frame->best_effort_timestamp == AV_NOPTS_VALUE || video->first_pts == AV_NOPTS_VALUE)
    return video->last_time + step;
  return (double)(frame->best_effort_timestamp - video->first_pts) * av_q2d(video->stream->time_base);
}

static const int32_t *display_matrix(const struct ms_video *video) {
  const AVFrameSideData *of_frame = av_frame_get_side_data(video->frame, AV_FRAME_DATA_DISPLAYMATRIX);
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVCodecParameters *parameters = video->stream->codecpar;
  const AVPacketSideData *side = av_packet_side_data_get(
      parameters->coded_side_data, parameters->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  const void *of_stream = side && side->size >= 36 ? side->data : NULL;
#else
  size_t size = 0;
  const void *of_stream = av_stream_get_side_data(video->stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (size < 36)
    of_stream = NULL;
#endif
  if (of_stream)
    return of_stream;
  return of_frame && of_frame->size >= 36 ? (const int32_t *)(const void *)of_frame->data : NULL;
}

static void copy_name(char out[32], const char *name) {
  snprintf(out, 32, "%s", name ? name : "unknown");
}

static int is_gif(const struct ms_video *video) {
  return !strcmp(video->container->iformat->name, "gif");
}

/* The rate that the settings beside the file tell, if it is that near to what the file shows; else 0, as the
 * file may be another by now. */
static double told_rate(const struct ms_video *video, double shown, double near) {
  const double told = sidecar_fps(video);
  return fabs(told - shown) <= near ? told : 0;
}

/* The rate of `steps` delays that last `seconds`. Each frame's time is rounded to a hundredth of a second, so
 * that 12 frames a second look like 11.94: the settings know better, and without them a whole number that
 * is as near as that is meant. */
static double gif_rate(const struct ms_video *video, int64_t steps, double seconds) {
  const double shown = (double)steps / seconds, rounding = shown * 0.005 / seconds;
  const double told = told_rate(video, shown, 2 * rounding);
  if (told > 0)
    return told;
  return round(shown) > 0 && fabs(shown - round(shown)) <= rounding ? round(shown) : shown;
}

/* What the container says and what the first frame shows. */
static void describe(struct ms_video *video) {
  struct ms_video_info *info = &video->info;
  const AVFrame *frame = video->frame;
  const int32_t *matrix = display_matrix(video);
  AVRational rate = video->stream->avg_frame_rate, aspect;
  double width = frame->width, height = frame->height;
  if (rate.num <= 0 || rate.den <= 0)
    rate = video->stream->r_frame_rate;
  info->fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
  /* until the delays are counted, the settings are nearer than what libavformat guesses from the first few */
  if (is_gif(video)) {
    const double told = told_rate(video, info->fps, info->fps / 20);
    info->fps = told > 0 ? told : info->fps;
  }
  info->frames = -1;
  if (video->container->duration > 0)
    info->duration = (double)video->container->duration / AV_TIME_BASE;
  else if (video->stream->duration > 0)
    info->duration = (double)video->stream->duration * av_q2d(video->stream->time_base);
  video->turn = matrix ? ms_turn_from_matrix(matrix) : (struct ms_turn){0, 0};
  info->rotation = 90 * video->turn.quarters;
  info->coded_width = frame->width;
  info->coded_height = frame->height;
  aspect = av_guess_sample_aspect_ratio(video->container, video->stream, video->frame);
  if (aspect.num > 0 && aspect.den > 0) {
    /* Less than a pixel off is what encoders write for a size that they rounded: not worth a resampling. */
    double wide = width * av_q2d(aspect);
    if (wide >= 1 && wide < width * 32 && fabs(wide - width) >= 1)
      width = round(wide);
  }
  info->width = (int)(video->turn.quarters % 2 ? height : width);
  info->height = (int)(video->turn.quarters % 2 ? width : height);
  copy_name(info->codec, avcodec_get_name(video->decoder->codec_id));
  copy_name(info->pixel_format, av_get_pix_fmt_name(frame->format));
  copy_name(info->container, video->container->iformat->name);
  copy_name(info->color_primaries, av_color_primaries_name(frame->color_primaries));
  copy_name(info->color_transfer, av_color_transfer_name(frame->color_trc));
  copy_name(info->color_space, av_color_space_name(frame->colorspace));
  copy_name(info->color_range, av_color_range_name(frame->color_range));
  info->has_audio = av_find_best_stream(video->container, AVMEDIA_TYPE_AUDIO, -1, -1, NULL, 0) >= 0;
}

/* Opens everything and decodes the first frame, which proves that the file is a video and shows what its
 * header may hide. */
static int start(struct ms_video *video, struct ms_error *error) {
  int code = open_container(video, error);
  if (code == 0)
    code = open_decoder(video, error);
  if (code == 0) {
    code = decode(video, error);
    if (code == 0)
      return ms_error_set(error, MS_EINPUT, "\"%.300s\" is damaged: not one frame of it can be decoded",
                          video->path);
    if (code > 0)
      code = 0;
  }
  video->have_frame = code == 0;
  return code;
}

int ms_video_open(struct ms_video **out, const char *path, struct ms_error *error) {
  struct ms_video *video = calloc(1, sizeof *video);
  int code = MS_ENOMEM;
  *out = NULL;
  /* messages come through the error object; libav's own would go to standard error */
  av_log_set_level(AV_LOG_QUIET);
  if (video) {
    video->path = strdup(path);
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
  }
  if (!video || !video->path || !video->packet || !video->frame) {
    ms_error_set(error, MS_ENOMEM, "cannot read \"%.300s\": out of memory", path);
    goto fail;
  }
  code = find_url(video, error);
  if (code < 0)
    goto fail;
  read_sidecar(video);
  code = start(video, error);
  if (code < 0)
    goto fail;
  describe(video);
  *out = video;
  return 0;
fail:
  ms_video_close(&video);
  return code;
}

const struct ms_video_info *ms_video_info(const struct ms_video *video) {
  return &video->info;
}

const char *ms_video_comment(const struct ms_video *video) {
  const AVDictionaryEntry *entry = av_dict_get(video->container->metadata, "comment", NULL, 0);
  if (!entry)
    entry = av_dict_get(video->stream->metadata, "comment", NULL, 0);
  return entry ? entry->value : video->sidecar;
}

/* Makes video->frame the next frame and gives its time: 1, 0 at the end, or an error. */
static int next_frame(struct ms_video *video, double *time, struct ms_error *error) {
  int code = video->have_frame ? 1 : decode(video, error);
  video->have_frame = 0;
  if (code > 0)
    video->last_time = *time = frame_time(video, video->frame);
  return code;
}

int ms_video_rewind(struct ms_video *video, struct ms_error *error) {
  int64_t first = video->started ? video->first_pts : AV_NOPTS_VALUE;
  if (!video->started)
    return 0;
  video->have_frame = video->draining = video->started = 0;
  avcodec_flush_buffers(video->decoder);
  if (!video->folder && first != AV_NOPTS_VALUE &&
      av_seek_frame(video->container, video->stream->index, first, AVSEEK_FLAG_BACKWARD) >= 0 &&
      decode(video, NULL) == 1 && video->frame->best_effort_timestamp == first) {
    video->have_frame = 1;
    return 0;
  }
  /* Some containers have no index and land elsewhere, and some decoders need what came before. */
  close_streams(video);
  return start(video, error);
}

int ms_video_count(struct ms_video *video, struct ms_error *error) {
  double time = 0, last = 0, least = 0, most = 0;
  int64_t frames = 0;
  int code = ms_video_rewind(video, error);
  if (code < 0)
    return code;
  while ((code = next_frame(video, &time, error)) > 0) {
    double step = time - last;
    if (frames == 1 || (frames > 1 && step < least))
      least = step;
    if (frames == 1 || (frames > 1 && step > most))
      most = step;
    last = time;
    frames++;
  }
  if (code < 0)
    return code;
  video->info.frames = frames;
  /* containers round times to as little as a hundredth of a second (GIF), mostly to a thousandth */
  video->info.variable_rate = most - least > (is_gif(video) ? 0.0101 : 0.0021) + 0.05 * least;
  if (frames > 1 && last > 0) {
    if (is_gif(video))
      video->info.fps = gif_rate(video, frames - 1, last);
    else if (video->info.fps <= 0)
      video->info.fps = (double)(frames - 1) / last;
  }
  return ms_video_rewind(video, error);
}

int ms_video_read(struct ms_video *video, int width, int height, const int crop[4], uint8_t *rgb,
                  double *time, struct ms_error *error) {
  const struct ms_video_info *info = &video->info;
  const int whole[4] = {0, 0, info->width, info->height};
  int code;
  if (!crop)
    crop = whole;
  if (crop[0] < 0 || crop[1] < 0 || crop[2] < 1 || crop[3] < 1 || crop[0] > info->width - crop[2] ||
      crop[1] > info->height - crop[3])
    return ms_error_set(error, MS_EFAULT, "the part %d,%d %dx%d is not inside the %dx%d frames of \"%.250s\"",
                        crop[0], crop[1], crop[2], crop[3], info->width, info->height, video->path);
  code = next_frame(video, time, error);
  if (code <= 0)
    return code;
  code = ms_pixels_convert(&video->pixels, video->frame, video->turn, info->width, info->height, crop,
                           width ? width : crop[2], height ? height : crop[3], rgb, error);
  return code < 0 ? code : 1;
}

int ms_video_skip(struct ms_video *video, double *time, struct ms_error *error) {
  return next_frame(video, time, error);
}
