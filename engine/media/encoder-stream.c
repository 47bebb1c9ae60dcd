#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/encoder-parts.h"

/* Of every encoder that can use threads. A constant, since with several of them the bytes depend on it. */
#define THREADS 2

struct ms_stream {
  const char *path;
  AVFormatContext *container;
  AVCodecContext *encoder;
  AVStream *stream; /* of container */
  AVPacket *packet;
  AVFrame *reference; /* sends the caller's pixels without giving them away */
  int64_t next;
};

int ms_media_failed(const char *path, int number, struct ms_error *error) {
  char reason[128];
  if (number == AVERROR(ENOMEM))
    return ms_error_set(error, MS_ENOMEM, "cannot write \"%.300s\": out of memory", path);
  av_strerror(number, reason, sizeof reason);
  return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": %s", path, reason);
}

void ms_stream_close(struct ms_stream **pointer) {
  struct ms_stream *stream = *pointer;
  if (!stream)
    return;
  *pointer = NULL;
  avcodec_free_context(&stream->encoder);
  if (stream->container) {
    avio_closep(&stream->container->pb);
    avformat_free_context(stream->container);
  }
  av_packet_free(&stream->packet);
  av_frame_free(&stream->reference);
  free(stream);
}

/* Quality 85 is where each encoder is taken to be visually lossless; from there `step` of its rate factor for
 * a point. */
static double rate_factor(int quality, double at_85, double step) {
  return at_85 + (85 - quality) * step;
}

static void set_number(AVDictionary **options, const char *key, double value) {
  char text[32];
  snprintf(text, sizeof text, "%.4g", value);
  av_dict_set(options, key, text, 0);
}

/* Everything that shapes the bytes is said, not left to what a build or a machine prefers. */
static void choose_options(const struct ms_stream_params *params, AVCodecContext *encoder,
                           AVDictionary **options) {
  int quality = params->quality;
  switch (params->format) {
  case MS_FORMAT_H264:
    av_dict_set(options, "preset", "medium", 0);
    av_dict_set(options, "profile", "high", 0);
    set_number(options, "crf", rate_factor(quality, 17, 0.3));
    /* Without its macroblock tree: that is the one part whose results differ between instruction sets, and
     * with the contents of freed memory (x264 164 at widths that are no multiple of 128). */
    av_dict_set(options, "x264-params", "lookahead-threads=1:rc-lookahead=24:mbtree=0", 0);
    break;
  case MS_FORMAT_H265:
    av_dict_set(options, "preset", "medium", 0);
    set_number(options, "crf", rate_factor(quality, 19, 0.3));
    av_dict_set(options, "x265-params", "log-level=none:info=0:pools=2:frame-threads=1:rc-lookahead=20", 0);
    break;
  case MS_FORMAT_VP9:
    av_dict_set(options, "deadline", "good", 0);
    av_dict_set(options, "cpu-used", "2", 0);
    av_dict_set(options, "tile-columns", "1", 0);
    av_dict_set(options, "row-mt", "0", 0);
    av_dict_set(options, "lag-in-frames", "16", 0);
    set_number(options, "crf", round(rate_factor(quality, 20, 0.45)));
    break;
  case MS_FORMAT_AV1:
    if (!strcmp(params->encoder, "libsvtav1")) {
      av_dict_set(options, "preset", "8", 0);
      av_dict_set(options, "svtav1-params", "lp=2", 0);
    } else {
      av_dict_set(options, "cpu-used", "6", 0);
      av_dict_set(options, "row-mt", "1", 0);
      av_dict_set(options, "lag-in-frames", "19", 0);
    }
    set_number(options, "crf", round(rate_factor(quality, 20, 0.45)));
    break;
  case MS_FORMAT_PRORES:
    av_dict_set(options, "profile", quality >= 70 ? "hq" : quality >= 40 ? "standard" : "lt", 0);
    av_dict_set(options, "vendor", "apl0", 0); /* editors refuse files of unknown makers */
    break;
  case MS_FORMAT_FFV1:
    av_dict_set(options, "level", "3", 0);
    av_dict_set(options, "slices", "4", 0);
    av_dict_set(options, "slicecrc", "1", 0);
    encoder->gop_size = 1;
    break;
  case MS_FORMAT_GIF:
  case MS_FORMAT_PNG:
    encoder->thread_count = 1;
    break;
  }
}

static int holds_rgb(enum AVPixelFormat format) {
  return format == AV_PIX_FMT_BGR0 || format == AV_PIX_FMT_RGB24 || format == AV_PIX_FMT_PAL8;
}

static int open_encoder(struct ms_stream *stream, const struct ms_stream_params *params,
                        struct ms_error *error) {
  const AVCodec *codec = avcodec_find_encoder_by_name(params->encoder);
  AVRational rate = av_d2q(params->fps, 1000000);
  AVDictionary *options = NULL;
  AVCodecContext *encoder;
  int number;
  stream->encoder = encoder = avcodec_alloc_context3(codec);
  if (!encoder)
    return ms_media_failed(params->path, AVERROR(ENOMEM), error);
  encoder->width = params->width;
  encoder->height = params->height;
  encoder->pix_fmt = params->pixels;
  encoder->time_base = av_inv_q(rate);
  encoder->framerate = rate;
  encoder->sample_aspect_ratio = (AVRational){1, 1};
  encoder->gop_size = params->fps < 1     ? 2
                      : params->fps > 500 ? 1000
                                          : (int)lround(2 * params->fps); /* two seconds to seek */
  encoder->thread_count = THREADS;
  encoder->color_primaries = AVCOL_PRI_BT709;
  encoder->color_trc = AVCOL_TRC_BT709;
  encoder->colorspace = holds_rgb(params->pixels) ? AVCOL_SPC_RGB : AVCOL_SPC_BT709;
  encoder->color_range = holds_rgb(params->pixels) ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  if (params->pixels == AV_PIX_FMT_YUV420P)
    encoder->chroma_sample_location = AVCHROMA_LOC_LEFT;
  encoder->flags |= AV_CODEC_FLAG_BITEXACT; /* no version strings */
  if (stream->container->oformat->flags & AVFMT_GLOBALHEADER)
    encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (params->format == MS_FORMAT_H265 && strcmp(params->muxer, "matroska"))
    encoder->codec_tag = MKTAG('h', 'v', 'c', '1'); /* the only one that Apple's players take */
  choose_options(params, encoder, &options);
  number = avcodec_open2(encoder, codec, &options);
  av_dict_free(&options);
  if (number < 0)
    return ms_error_set(
        error, number == AVERROR(ENOMEM) ? MS_ENOMEM : MS_EOUTPUT,
        "cannot write \"%.250s\": the encoder %s does not start for %dx%d at %g frames a second",
        params->path, params->encoder, params->width, params->height, params->fps);
  return 0;
}

static int open_container(struct ms_stream *stream, const struct ms_stream_params *params,
                          struct ms_error *error) {
  AVDictionary *options = NULL;
  char *url = av_asprintf("file:%s", params->part);
  int number =
      url ? avcodec_parameters_from_context(stream->stream->codecpar, stream->encoder) : AVERROR(ENOMEM);
  stream->stream->time_base = stream->encoder->time_base;
  stream->stream->avg_frame_rate = stream->encoder->framerate;
  stream->stream->sample_aspect_ratio = stream->encoder->sample_aspect_ratio;
  stream->container->flags |= AVFMT_FLAG_BITEXACT; /* no creation time, no random numbers, no version */
  if (params->comment)
    av_dict_set(&stream->container->metadata, "comment", params->comment, 0);
  if (!strcmp(params->muxer, "mp4") || !strcmp(params->muxer, "mov"))
    av_dict_set(&options, "movflags", "+faststart+write_colr", 0);
  if (number >= 0) {
    stream->container->url = url; /* faststart reads back what was written */
    url = NULL;
    number = avio_open(&stream->container->pb, stream->container->url, AVIO_FLAG_WRITE);
  }
  if (number >= 0)
    number = avformat_write_header(stream->container, &options);
  av_dict_free(&options);
  av_free(url);
  return number < 0 ? ms_media_failed(params->path, number, error) : 0;
}

int ms_stream_open(struct ms_stream **out, const struct ms_stream_params *params, struct ms_error *error) {
  struct ms_stream *stream = calloc(1, sizeof *stream);
  int code = MS_ENOMEM;
  *out = NULL;
  if (!stream)
    return ms_media_failed(params->path, AVERROR(ENOMEM), error);
  stream->path = params->path;
  stream->packet = av_packet_alloc();
  stream->reference = av_frame_alloc();
  avformat_alloc_output_context2(&stream->container, NULL, params->muxer, NULL);
  if (stream->container)
    stream->stream = avformat_new_stream(stream->container, NULL);
  if (!stream->packet || !stream->reference || !stream->stream)
    code = ms_media_failed(params->path, AVERROR(ENOMEM), error);
  else
    code = open_encoder(stream, params, error);
  if (code == 0)
    code = open_container(stream, params, error);
  if (code < 0)
    ms_stream_close(&stream);
  *out = stream;
  return code;
}

AVFrame *ms_stream_frame(const struct ms_stream *stream) {
  const AVCodecContext *encoder = stream->encoder;
  AVFrame *frame = av_frame_alloc();
  if (!frame)
    return NULL;
  frame->width = encoder->width;
  frame->height = encoder->height;
  frame->format = encoder->pix_fmt;
  frame->color_primaries = encoder->color_primaries;
  frame->color_trc = encoder->color_trc;
  frame->colorspace = encoder->colorspace;
  frame->color_range = encoder->color_range;
  frame->chroma_location = encoder->chroma_sample_location;
  frame->sample_aspect_ratio = encoder->sample_aspect_ratio;
  if (av_frame_get_buffer(frame, 0) < 0)
    av_frame_free(&frame);
  return frame;
}

static int drain(struct ms_stream *stream, struct ms_error *error) {
  for (;;) {
    int number = avcodec_receive_packet(stream->encoder, stream->packet);
    if (number == AVERROR(EAGAIN) || number == AVERROR_EOF)
      return 0;
    if (number >= 0) {
      if (!stream->packet->duration)
        stream->packet->duration = 1;
      av_packet_rescale_ts(stream->packet, stream->encoder->time_base, stream->stream->time_base);
      stream->packet->stream_index = 0;
      number = av_interleaved_write_frame(stream->container, stream->packet); /* takes the packet */
    }
    /* the buffered output only tells of its errors here */
    if (number >= 0)
      number = stream->container->pb->error;
    if (number < 0)
      return ms_media_failed(stream->path, number, error);
  }
}

int ms_stream_write(struct ms_stream *stream, const AVFrame *frame, struct ms_error *error) {
  /* an encoder may keep the frames it looks ahead at: give it a copy */
  int number;
  av_frame_unref(stream->reference);
  stream->reference->width = frame->width;
  stream->reference->height = frame->height;
  stream->reference->format = frame->format;
  number = av_frame_get_buffer(stream->reference, 0);
  if (number >= 0)
    number = av_frame_copy(stream->reference, frame);
  if (number >= 0)
    number = av_frame_copy_props(stream->reference, frame);
  if (number >= 0) {
    stream->reference->pts = stream->next++;
    number = avcodec_send_frame(stream->encoder, stream->reference);
  }
  return number < 0 ? ms_media_failed(stream->path, number, error) : drain(stream, error);
}

int ms_stream_finish(struct ms_stream *stream, struct ms_error *error) {
  int number = avcodec_send_frame(stream->encoder, NULL), closed;
  int code = number < 0 ? ms_media_failed(stream->path, number, error) : drain(stream, error);
  if (code < 0)
    return code;
  number = av_write_trailer(stream->container);
  closed = avio_closep(&stream->container->pb);
  if (number >= 0)
    number = closed;
  return number < 0 ? ms_media_failed(stream->path, number, error) : 0;
}
