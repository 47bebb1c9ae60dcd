#include "odd-clip.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The formulas of the standards in double, so that the reader is not checked against the library that it
 * uses. */
static void to_yuv(const struct odd_clip *clip, const uint8_t *rgb, double yuv[3]) {
  double kr = clip->matrix == AVCOL_SPC_BT709 ? 0.2126 : 0.299,
         kb = clip->matrix == AVCOL_SPC_BT709 ? 0.0722 : 0.114;
  double r = rgb[0] / 255.0, g = rgb[1] / 255.0, b = rgb[2] / 255.0, y = kr * r + (1 - kr - kb) * g + kb * b;
  yuv[0] = clip->full_range ? 255 * y : 16 + 219 * y;
  yuv[1] = 128 + (clip->full_range ? 255 : 224) * (b - y) / (2 * (1 - kb));
  yuv[2] = 128 + (clip->full_range ? 255 : 224) * (r - y) / (2 * (1 - kr));
}

static void fill(const struct odd_clip *clip, const uint8_t *rgb, AVFrame *frame) {
  const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(clip->pixels);
  int deep = format->comp[0].depth > 8;
  for (int plane = 0; plane < 3; plane++) {
    int sx = plane ? format->log2_chroma_w : 0, sy = plane ? format->log2_chroma_h : 0;
    int w = (clip->width + (1 << sx) - 1) >> sx, h = (clip->height + (1 << sy) - 1) >> sy;
    for (int y = 0; y < h; y++)
      for (int x = 0; x < w; x++) {
        uint8_t *at = frame->data[plane] + y * frame->linesize[plane];
        double yuv[3];
        int value;
        to_yuv(clip, rgb + 3 * ((y << sy) * clip->width + (x << sx)), yuv);
        value = (int)lround(yuv[plane] * (deep ? 4 : 1));
        value = value < 0 ? 0 : value > (deep ? 1023 : 255) ? (deep ? 1023 : 255) : value;
        if (deep)
          ((uint16_t *)(void *)at)[x] = (uint16_t)value;
        else
          at[x] = (uint8_t)value;
      }
  }
}

static int set_matrix(AVStream *stream, const struct odd_clip *clip) {
  const size_t size = 9 * sizeof(int32_t);
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  AVPacketSideData *side =
      av_packet_side_data_new(&stream->codecpar->coded_side_data, &stream->codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX, size, 0);
  int32_t *matrix = side ? (int32_t *)(void *)side->data : NULL;
#else
  int32_t *matrix = (int32_t *)(void *)av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, size);
#endif
  if (!matrix)
    return 0;
  av_display_rotation_set(matrix,
                          clip->rotation); /* clockwise here, although its getter says anticlockwise */
  if (clip->mirror) { /* turn after mirroring top to bottom: the y axis of the source changes its sign */
    matrix[3] = -matrix[3];
    matrix[4] = -matrix[4];
  }
  return 1;
}

static int pass(AVFormatContext *container, AVCodecContext *encoder, AVFrame *frame, AVPacket *packet) {
  int number = avcodec_send_frame(encoder, frame);
  while (number >= 0) {
    number = avcodec_receive_packet(encoder, packet);
    if (number == AVERROR(EAGAIN) || number == AVERROR_EOF)
      return 0;
    if (number >= 0) {
      packet->duration = 1; /* or the last frame would have none, and MP4's edit list would leave it out */
      av_packet_rescale_ts(packet, encoder->time_base, container->streams[0]->time_base);
      number = av_interleaved_write_frame(container, packet);
    }
  }
  return number;
}

static int write_audio(AVFormatContext *container, AVPacket *packet) { /* a tenth of a second of silence */
  if (av_new_packet(packet, 1600) < 0)
    return -1;
  memset(packet->data, 0, 1600);
  packet->stream_index = 1;
  packet->pts = packet->dts = 0;
  packet->duration = 800;
  av_packet_rescale_ts(packet, (AVRational){1, 8000}, container->streams[1]->time_base);
  return av_interleaved_write_frame(container, packet);
}

static void describe(AVCodecContext *encoder, const struct odd_clip *clip) {
  encoder->width = clip->width;
  encoder->height = clip->height;
  encoder->pix_fmt = clip->pixels;
  encoder->time_base = (AVRational){1, 25};
  encoder->framerate = (AVRational){25, 1};
  encoder->sample_aspect_ratio = clip->aspect;
  encoder->bit_rate = 8000000;
  encoder->thread_count = 1;
  if (clip->tagged) {
    encoder->colorspace = clip->matrix;
    encoder->color_range = clip->full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  }
  av_opt_set(encoder->priv_data, "crf", "4", 0);
  av_opt_set(encoder->priv_data, "preset", "veryfast", 0);
  av_opt_set(encoder->priv_data, "x265-params", "log-level=none", 0);
}

int odd_clip_write(const struct odd_clip *clip) {
  const AVCodec *codec = avcodec_find_encoder_by_name(clip->encoder);
  AVFormatContext *container = NULL;
  AVCodecContext *encoder = avcodec_alloc_context3(codec);
  AVPacket *packet = av_packet_alloc();
  AVFrame *frame = av_frame_alloc();
  AVStream *stream, *audio;
  uint8_t *rgb = calloc((size_t)clip->width * (size_t)clip->height, 3);
  int good = 0;
  av_log_set_level(AV_LOG_QUIET);
  avformat_alloc_output_context2(&container, NULL, clip->muxer, clip->path);
  if (!codec || !encoder || !packet || !frame || !rgb || !container)
    goto done;
  describe(encoder, clip);
  if (container->oformat->flags & AVFMT_GLOBALHEADER)
    encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  stream = avformat_new_stream(container, NULL);
  if (avcodec_open2(encoder, codec, NULL) < 0 ||
      avcodec_parameters_from_context(stream->codecpar, encoder) < 0)
    goto done;
  stream->time_base = encoder->time_base;
  stream->sample_aspect_ratio = clip->aspect;
  if ((clip->rotation || clip->mirror) && !set_matrix(stream, clip))
    goto done;
  if (clip->audio) {
    audio = avformat_new_stream(container, NULL);
    audio->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
    audio->codecpar->codec_id = AV_CODEC_ID_PCM_S16LE;
    audio->codecpar->format = AV_SAMPLE_FMT_S16;
    audio->codecpar->sample_rate = 8000;
    audio->codecpar->bits_per_coded_sample = 16;
    audio->codecpar->block_align = 2;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 24, 100)
    audio->codecpar->ch_layout = (AVChannelLayout)AV_CHANNEL_LAYOUT_MONO;
#endif
    audio->time_base = (AVRational){1, 8000};
  }
  frame->width = clip->width;
  frame->height = clip->height;
  frame->format = clip->pixels;
  if (avio_open(&container->pb, clip->path, AVIO_FLAG_WRITE) < 0 ||
      avformat_write_header(container, NULL) < 0)
    goto done;
  if (clip->audio && write_audio(container, packet) < 0)
    goto done;
  for (int i = 0; i < clip->frames; i++) {
    av_buffer_unref(&frame->buf[0]);
    av_buffer_unref(&frame->buf[1]);
    av_buffer_unref(&frame->buf[2]);
    if (av_frame_get_buffer(frame, 0) < 0)
      goto done;
    clip->draw(rgb, clip->width, clip->height, i);
    fill(clip, rgb, frame);
    frame->pts = clip->times ? clip->times[i] : i;
    if (pass(container, encoder, frame, packet) < 0)
      goto done;
  }
  good = pass(container, encoder, NULL, packet) >= 0 && av_write_trailer(container) >= 0;
done:
  if (container) {
    avio_closep(&container->pb);
    avformat_free_context(container);
  }
  avcodec_free_context(&encoder);
  av_packet_free(&packet);
  av_frame_free(&frame);
  free(rgb);
  return good;
}
