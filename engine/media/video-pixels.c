#include "media/video-pixels.h"

#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ms_turn ms_turn_from_matrix(const int32_t matrix[9]) {
  /* (a, b) is where the picture's x axis goes; y points down, so the angle counts clockwise */
  double a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  struct ms_turn turn = {0, a * d - b * c < 0};
  if (a != 0 || b != 0)
    turn.quarters = ((int)lround(atan2(b, a) / M_PI_2) + 4) % 4;
  return turn;
}

void ms_pixels_release(struct ms_pixels *pixels) {
  sws_freeContext(pixels->planes_context);
  sws_freeContext(pixels->scale_context);
  av_frame_free(&pixels->planes);
  free(pixels->scaled);
  memset(pixels, 0, sizeof *pixels);
}

/* The matrix that untagged video was made with: players take the size as the hint, HD is BT.709. */
static int matrix_of(const AVFrame *frame) {
  switch (frame->colorspace) {
  case AVCOL_SPC_BT709:
    return SWS_CS_ITU709;
  case AVCOL_SPC_FCC:
    return SWS_CS_FCC;
  case AVCOL_SPC_BT470BG:
  case AVCOL_SPC_SMPTE170M:
    return SWS_CS_ITU601;
  case AVCOL_SPC_SMPTE240M:
    return SWS_CS_SMPTE240M;
  case AVCOL_SPC_BT2020_NCL:
  case AVCOL_SPC_BT2020_CL:
    return SWS_CS_BT2020;
  default:
    return frame->width >= 1280 || frame->height > 576 ? SWS_CS_ITU709 : SWS_CS_ITU601;
  }
}

static int full_range(const AVFrame *frame) {
  const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
  if (frame->color_range == AVCOL_RANGE_JPEG || !strncmp(format->name, "yuvj", 4))
    return 1;
  /* grey without a tag comes from image formats, which use all values */
  return frame->color_range == AVCOL_RANGE_UNSPECIFIED && format->nb_components <= 2;
}

/* Chroma position of the source in 1/256 luma samples. */
static void place_chroma(struct SwsContext *context, const AVFrame *frame) {
  const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
  int x = 0, y = 128;
  if (format->log2_chroma_w != 1)
    return;
  switch (frame->chroma_location) {
  case AVCHROMA_LOC_CENTER:
    x = 128;
    break;
  case AVCHROMA_LOC_TOPLEFT:
    y = 0;
    break;
  case AVCHROMA_LOC_TOP:
    x = 128;
    y = 0;
    break;
  default: /* left, also where nothing is said: what MPEG-2, H.264 and later use */
    break;
  }
  av_opt_set_int(context, "src_h_chr_pos", x, 0);
  if (format->log2_chroma_h == 1)
    av_opt_set_int(context, "src_v_chr_pos", y, 0);
}

static struct SwsContext *make_context(int from_width, int from_height, int from, int to_width, int to_height,
                                       int to, int flags) {
  struct SwsContext *context = sws_alloc_context();
  if (!context)
    return NULL;
  av_opt_set_int(context, "srcw", from_width, 0);
  av_opt_set_int(context, "srch", from_height, 0);
  av_opt_set_int(context, "src_format", from, 0);
  av_opt_set_int(context, "dstw", to_width, 0);
  av_opt_set_int(context, "dsth", to_height, 0);
  av_opt_set_int(context, "dst_format", to, 0);
  av_opt_set_int(context, "sws_flags", flags | SWS_ACCURATE_RND | SWS_BITEXACT, 0);
  return context;
}

/* Frame to planar RGB of the same size. Planar, since scaling packed RGB would go through YUV once more. */
static int to_planes(struct ms_pixels *pixels, const AVFrame *frame, struct ms_error *error) {
  int kind[6] = {frame->width,     frame->height,     frame->format,
                 matrix_of(frame), full_range(frame), (int)frame->chroma_location};
  if (!pixels->planes_context || memcmp(kind, pixels->kind, sizeof kind)) {
    const int *coefficients = sws_getCoefficients(kind[3]);
    struct SwsContext *context;
    sws_freeContext(pixels->planes_context);
    av_frame_free(&pixels->planes);
    pixels->planes_context = context =
        make_context(frame->width, frame->height, frame->format, frame->width, frame->height, AV_PIX_FMT_GBRP,
                     SWS_BICUBIC | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP);
    pixels->planes = av_frame_alloc();
    if (!context || !pixels->planes)
      return ms_error_set(error, MS_ENOMEM, "cannot convert a frame: out of memory");
    av_opt_set_int(context, "src_range", kind[4], 0);
    place_chroma(context, frame);
    pixels->planes->width = frame->width;
    pixels->planes->height = frame->height;
    pixels->planes->format = AV_PIX_FMT_GBRP;
    if (sws_init_context(context, NULL, NULL) < 0)
      return ms_error_set(error, MS_EINPUT, "cannot convert frames of %dx%d %s to RGB", frame->width,
                          frame->height, av_get_pix_fmt_name(frame->format));
    sws_setColorspaceDetails(context, coefficients, kind[4], coefficients, 1, 0, 1 << 16, 1 << 16);
    if (av_frame_get_buffer(pixels->planes, 0) < 0)
      return ms_error_set(error, MS_ENOMEM, "no memory for a frame of %dx%d", frame->width, frame->height);
    memcpy(pixels->kind, kind, sizeof kind);
  }
  if (sws_scale(pixels->planes_context, (const uint8_t *const *)frame->data, frame->linesize, 0,
                frame->height, pixels->planes->data, pixels->planes->linesize) != frame->height)
    return ms_error_set(error, MS_EINPUT, "cannot convert frames of %dx%d %s to RGB", frame->width,
                        frame->height, av_get_pix_fmt_name(frame->format));
  return 0;
}

static int prepare_scale(struct ms_pixels *pixels, int from_width, int from_height, int to_width,
                         int to_height, struct ms_error *error) {
  int sizes[4] = {from_width, from_height, to_width, to_height};
  size_t bytes = (size_t)to_width * (size_t)to_height * 3;
  if (bytes > pixels->scaled_bytes) {
    free(pixels->scaled);
    pixels->scaled = malloc(bytes);
    pixels->scaled_bytes = pixels->scaled ? bytes : 0;
    if (!pixels->scaled)
      return ms_error_set(error, MS_ENOMEM, "no memory for a frame of %dx%d", to_width, to_height);
  }
  if (!pixels->scale_context || memcmp(sizes, pixels->sizes, sizeof sizes)) {
    /* swscale's filters have at most 256 taps; a bicubic one has four per source pixel that goes into one */
    int area = from_width > 32 * to_width || from_height > 32 * to_height;
    sws_freeContext(pixels->scale_context);
    pixels->scale_context = make_context(from_width, from_height, AV_PIX_FMT_GRAY8, to_width, to_height,
                                         AV_PIX_FMT_GRAY8, area ? SWS_AREA : SWS_BICUBIC);
    if (!pixels->scale_context || sws_init_context(pixels->scale_context, NULL, NULL) < 0)
      return ms_error_set(error, MS_ENOMEM, "cannot scale a frame from %dx%d to %dx%d", from_width,
                          from_height, to_width, to_height);
    memcpy(pixels->sizes, sizes, sizeof sizes);
  }
  return 0;
}

/* The crop in the picture as stored, in its own pixels. */
static void turn_crop(const AVFrame *frame, struct ms_turn turn, int up_width, int up_height,
                      const int crop[4], int stored[4]) {
  int w = turn.quarters % 2 ? up_height : up_width, h = turn.quarters % 2 ? up_width : up_height;
  int c[4] = {crop[0], crop[1], crop[2], crop[3]};
  int x1, y1;
  switch (turn.quarters) {
  case 1:
    c[0] = crop[1];
    c[1] = h - crop[0] - crop[2];
    break;
  case 2:
    c[0] = w - crop[0] - crop[2];
    c[1] = h - crop[1] - crop[3];
    break;
  case 3:
    c[0] = w - crop[1] - crop[3];
    c[1] = crop[0];
    break;
  }
  if (turn.quarters % 2) {
    c[2] = crop[3];
    c[3] = crop[2];
  }
  if (turn.mirror)
    c[1] = h - c[1] - c[3];
  /* pixels that are not square, or a stream that changes its size: from upright units to the frame's */
  stored[0] = (int)((int64_t)c[0] * frame->width / w);
  stored[1] = (int)((int64_t)c[1] * frame->height / h);
  x1 = (int)((int64_t)(c[0] + c[2]) * frame->width / w);
  y1 = (int)((int64_t)(c[1] + c[3]) * frame->height / h);
  stored[2] = x1 > stored[0] ? x1 - stored[0] : 1;
  stored[3] = y1 > stored[1] ? y1 - stored[1] : 1;
  if (stored[0] >= frame->width)
    stored[0] = frame->width - 1;
  if (stored[1] >= frame->height)
    stored[1] = frame->height - 1;
}

/* Planes of w x h (not yet turned) to packed RGB; out is the first byte of the first colour wanted. */
static void turn_plane(const uint8_t *plane, ptrdiff_t stride, int w, int h, struct ms_turn turn, int width,
                       int height, uint8_t *out) {
  ptrdiff_t step_x, step_y, row = stride;
  const uint8_t *start = plane;
  if (turn.mirror) {
    start += (h - 1) * stride;
    row = -stride;
  }
  switch (turn.quarters) {
  case 1:
    start += (h - 1) * row;
    step_x = -row;
    step_y = 1;
    break;
  case 2:
    start += (h - 1) * row + w - 1;
    step_x = -1;
    step_y = -row;
    break;
  case 3:
    start += w - 1;
    step_x = row;
    step_y = -1;
    break;
  default:
    step_x = 1;
    step_y = row;
  }
  for (int y = 0; y < height; y++) {
    const uint8_t *from = start + y * step_y;
    uint8_t *to = out + (size_t)y * (size_t)width * 3;
    for (int x = 0; x < width; x++)
      to[3 * x] = from[x * step_x];
  }
}

int ms_pixels_convert(struct ms_pixels *pixels, const AVFrame *frame, struct ms_turn turn, int up_width,
                      int up_height, const int crop[4], int width, int height, uint8_t *rgb,
                      struct ms_error *error) {
  static const int place[3] = {1, 2, 0}; /* planes are green, blue, red */
  int w = turn.quarters % 2 ? height : width, h = turn.quarters % 2 ? width : height, stored[4], scale;
  int code = to_planes(pixels, frame, error);
  if (code < 0)
    return code;
  turn_crop(frame, turn, up_width, up_height, crop, stored);
  scale = stored[2] != w || stored[3] != h;
  if (scale)
    code = prepare_scale(pixels, stored[2], stored[3], w, h, error);
  for (int i = 0; code == 0 && i < 3; i++) {
    ptrdiff_t stride = pixels->planes->linesize[i];
    const uint8_t *plane = pixels->planes->data[i] + stored[1] * stride + stored[0];
    if (scale) {
      int from_stride = (int)stride, to_stride = w;
      uint8_t *scaled = pixels->scaled + (size_t)i * (size_t)w * (size_t)h;
      sws_scale(pixels->scale_context, &plane, &from_stride, 0, stored[3], &scaled, &to_stride);
      plane = scaled;
      stride = w;
    }
    turn_plane(plane, stride, w, h, turn, width, height, rgb + place[i]);
  }
  return code;
}
