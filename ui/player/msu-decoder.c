#include "player/msu-decoder.h"

#include <glib/gi18n-lib.h>
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <string.h>

#include "player/msu-yuv.h"

#define PULL_WAIT (50 * GST_MSECOND)
/* A pipeline that neither delivers nor fails for this long never will: some demuxers forget to say that the
 * file has ended. */
#define PATIENCE_FIRST (20 * G_USEC_PER_SEC)
#define PATIENCE (5 * G_USEC_PER_SEC)

struct msu_decoder {
  char *path;
  gboolean pixels;
  GstElement *pipeline, *head; /* head: what the decoded stream is linked to */
  GstAppSink *sink;
  /* Written by the streaming threads; needs_decoder: of a moving picture, and there is none. */
  gboolean linked, no_more_pads, needs_decoder, has_sound;
  gint64 last_heard; /* monotonic time of the last frame */
  int width, height;
  double pixel_aspect, fps;
  gint64 last, next; /* time of the last frame, and where the next one is if it carries no time */
  char *error;
};

static void pad_added_cb(GstElement *element, GstPad *pad, gpointer data) {
  struct msu_decoder *decoder = data;
  g_autoptr(GstPad) sink = gst_element_get_static_pad(decoder->head, "sink");
  if (!gst_pad_is_linked(sink) && gst_pad_link(pad, sink) == GST_PAD_LINK_OK)
    g_atomic_int_set(&decoder->linked, TRUE);
}

/* Asked for every stream that is found, also for those that are left out. */
static gboolean autoplug_cb(GstElement *element, GstPad *pad, GstCaps *caps, gpointer data) {
  struct msu_decoder *decoder = data;
  if (gst_caps_get_size(caps) > 0 &&
      g_str_has_prefix(gst_structure_get_name(gst_caps_get_structure(caps, 0)), "audio/"))
    g_atomic_int_set(&decoder->has_sound, TRUE);
  return TRUE;
}

static void no_more_pads_cb(GstElement *element, gpointer data) {
  struct msu_decoder *decoder = data;
  g_atomic_int_set(&decoder->no_more_pads, TRUE);
}

/* Only errors are read later, so only they may queue up. */
static GstBusSyncReply look_at_message(GstBus *bus, GstMessage *message, gpointer data) {
  struct msu_decoder *decoder = data;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
    return GST_BUS_PASS;
  const GstStructure *structure = gst_message_get_structure(message);
  const GValue *caps;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT && structure &&
      gst_structure_has_name(structure, "missing-plugin") &&
      (caps = gst_structure_get_value(structure, "detail")) && GST_VALUE_HOLDS_CAPS(caps) &&
      gst_caps_get_size(gst_value_get_caps(caps)) > 0) {
    const GstStructure *of = gst_caps_get_structure(gst_value_get_caps(caps), 0);
    if (g_str_has_prefix(gst_structure_get_name(of), "video/"))
      g_atomic_int_set(&decoder->needs_decoder, TRUE);
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

static void stop(struct msu_decoder *decoder) {
  if (!decoder->pipeline)
    return;
  gst_element_set_state(decoder->pipeline, GST_STATE_NULL);
  gst_clear_object(&decoder->pipeline);
  decoder->sink = NULL;
  decoder->head = NULL;
}

/* Adds an element after `last`; the new one, or `last` if this machine does not have it. */
static GstElement *chain(GstElement *pipeline, GstElement *last, const char *name) {
  GstElement *element = gst_element_factory_make(name, NULL);
  if (!element)
    return last;
  gst_bin_add(GST_BIN(pipeline), element);
  if (last)
    gst_element_link(last, element);
  return element;
}

static gboolean missing(struct msu_decoder *decoder) {
  decoder->error = g_strdup(_("The parts of GStreamer that play clips are not installed. Install its base "
                              "plugins and start again."));
  return FALSE;
}

static gboolean start(struct msu_decoder *decoder) {
  g_autofree char *full = g_canonicalize_filename(decoder->path, NULL);
  g_autofree char *uri = g_filename_to_uri(full, NULL, NULL);
  GstElement *source = gst_element_factory_make("uridecodebin", NULL);
  GstElement *sink = gst_element_factory_make("appsink", NULL);
  if (!uri || !source || !sink) {
    g_clear_pointer(&source, gst_object_unref);
    g_clear_pointer(&sink, gst_object_unref);
    return missing(decoder);
  }
  decoder->pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
  /* With any memory and interlacing: decodebin takes only decoders all of whose output lies in these. */
  g_autoptr(GstCaps) raw = gst_caps_from_string("video/x-raw(ANY)");
  g_object_set(source, "uri", uri, "caps", raw, "expose-all-streams", FALSE, NULL);
  gst_bin_add_many(GST_BIN(decoder->pipeline), source, sink, NULL);
  decoder->sink = GST_APP_SINK(sink);
  decoder->head = sink;
  if (decoder->pixels) {
    /* The first conversion is there for what the turning of a phone's clip cannot read; both pass through
     * what needs nothing. */
    decoder->head = chain(decoder->pipeline, NULL, "videoconvert");
    GstElement *turn = chain(decoder->pipeline, decoder->head, "videoflip");
    GstElement *last = chain(decoder->pipeline, turn, "videoconvert");
    if (!decoder->head)
      return missing(decoder);
    if (turn != decoder->head)
      gst_util_set_object_arg(G_OBJECT(turn), "video-direction", "auto");
    gst_element_link(last, sink);
    g_autoptr(GstCaps) caps = gst_caps_from_string("video/x-raw,format={I420,Y42B,Y444,BGRA}");
    gst_app_sink_set_caps(decoder->sink, caps);
  }
  g_object_set(sink, "sync", FALSE, "async", FALSE, "max-buffers", 2, "qos", FALSE, "enable-last-sample",
               FALSE, NULL);
  g_signal_connect(source, "pad-added", G_CALLBACK(pad_added_cb), decoder);
  g_signal_connect(source, "autoplug-continue", G_CALLBACK(autoplug_cb), decoder);
  g_signal_connect(source, "no-more-pads", G_CALLBACK(no_more_pads_cb), decoder);
  g_autoptr(GstBus) bus = gst_element_get_bus(decoder->pipeline);
  gst_bus_set_sync_handler(bus, look_at_message, decoder, NULL);
  decoder->linked = decoder->no_more_pads = decoder->needs_decoder = FALSE;
  decoder->last = -1;
  decoder->next = 0;
  decoder->last_heard = g_get_monotonic_time();
  gst_element_set_state(decoder->pipeline, GST_STATE_PLAYING);
  return TRUE;
}

struct msu_decoder *msu_decoder_open(const char *path, gboolean pixels) {
  struct msu_decoder *decoder = g_new0(struct msu_decoder, 1);
  g_autoptr(GError) error = NULL;
  decoder->path = g_strdup(path);
  decoder->pixels = pixels;
  decoder->pixel_aspect = 1;
  g_autofree char *name = g_filename_display_basename(path);
  if (!gst_init_check(NULL, NULL, &error))
    decoder->error = g_strdup_printf(_("GStreamer does not start: %s."), error->message);
  else if (!g_file_test(path, G_FILE_TEST_EXISTS))
    decoder->error = g_strdup_printf(_("“%s” is no longer there."), name);
  else
    start(decoder);
  return decoder;
}

void msu_decoder_close(struct msu_decoder **decoder) {
  if (!*decoder)
    return;
  stop(*decoder);
  g_free((*decoder)->path);
  g_free((*decoder)->error);
  g_clear_pointer(decoder, g_free);
}

static void fail(struct msu_decoder *decoder) {
  g_autofree char *name = g_filename_display_basename(decoder->path);
  if (decoder->error)
    return;
  if (g_atomic_int_get(&decoder->needs_decoder))
    decoder->error = g_strdup_printf(
        _("“%s” cannot be played: a decoder for it is not installed. Install GStreamer's libav plugin."),
        name);
  else
    decoder->error =
        g_strdup_printf(_("“%s” cannot be played: the file is damaged or holds no moving picture."), name);
}

static gboolean read_error(struct msu_decoder *decoder) {
  g_autoptr(GstBus) bus = gst_element_get_bus(decoder->pipeline);
  g_autoptr(GstMessage) message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
  if (!message)
    return FALSE;
  g_autoptr(GError) error = NULL;
  g_autofree char *detail = NULL;
  gst_message_parse_error(message, &error, &detail);
  g_debug("%s: %s (%s)", decoder->path, error->message, detail ? detail : "");
  fail(decoder);
  return TRUE;
}

static void convert(const GstVideoFrame *frame, guint8 *bgra) {
  const GstVideoInfo *info = &frame->info;
  struct msu_yuv picture = {.width = info->width,
                            .height = info->height,
                            .chroma_width = GST_VIDEO_FRAME_COMP_WIDTH(frame, 1),
                            .chroma_height = GST_VIDEO_FRAME_COMP_HEIGHT(frame, 1),
                            .full = info->colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255};
  if (!gst_video_color_matrix_get_Kr_Kb(info->colorimetry.matrix, &picture.kr, &picture.kb))
    gst_video_color_matrix_get_Kr_Kb(GST_VIDEO_COLOR_MATRIX_BT709, &picture.kr, &picture.kb);
  for (int i = 0; i < 3; i++) {
    picture.planes[i] = GST_VIDEO_FRAME_COMP_DATA(frame, i);
    picture.strides[i] = GST_VIDEO_FRAME_COMP_STRIDE(frame, i);
  }
  msu_yuv_to_bgra(&picture, bgra);
}

static GdkTexture *texture_of(GstBuffer *buffer, const GstVideoInfo *info) {
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, info, buffer, GST_MAP_READ))
    return NULL;
  int width = GST_VIDEO_FRAME_WIDTH(&frame), height = GST_VIDEO_FRAME_HEIGHT(&frame);
  gsize row = (gsize)width * 4;
  guint8 *bgra = g_malloc(row * height);
  if (GST_VIDEO_INFO_IS_YUV(info))
    convert(&frame, bgra);
  else
    for (int y = 0; y < height; y++)
      memcpy(bgra + row * y,
             (guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&frame, 0) +
                 (gsize)GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0) * y,
             row);
  gst_video_frame_unmap(&frame);
  g_autoptr(GBytes) bytes = g_bytes_new_take(bgra, row * height);
  /* Without alpha there is nothing to multiply, which saves the drawing a conversion. */
  GdkMemoryFormat format =
      GST_VIDEO_INFO_IS_YUV(info) ? GDK_MEMORY_B8G8R8A8_PREMULTIPLIED : GDK_MEMORY_B8G8R8A8;
  return gdk_memory_texture_new(width, height, format, bytes, row);
}

enum msu_pull msu_decoder_pull(struct msu_decoder *decoder, struct msu_frame *frame) {
  *frame = (struct msu_frame){0};
  if (decoder->error || !decoder->pipeline)
    return MSU_PULL_ERROR;
  g_autoptr(GstSample) sample = gst_app_sink_try_pull_sample(decoder->sink, PULL_WAIT);
  if (!sample) {
    if (read_error(decoder))
      return MSU_PULL_ERROR;
    if (gst_app_sink_is_eos(decoder->sink))
      return MSU_PULL_END;
    gboolean empty = g_atomic_int_get(&decoder->no_more_pads) && !g_atomic_int_get(&decoder->linked);
    gint64 patience = decoder->width ? PATIENCE : PATIENCE_FIRST;
    if (empty || g_get_monotonic_time() - decoder->last_heard > patience) {
      fail(decoder);
      return MSU_PULL_ERROR;
    }
    return MSU_PULL_WAIT;
  }
  decoder->last_heard = g_get_monotonic_time();
  GstBuffer *buffer = gst_sample_get_buffer(sample);
  GstSegment *segment = gst_sample_get_segment(sample);
  GstVideoInfo info;
  if (!buffer || !gst_video_info_from_caps(&info, gst_sample_get_caps(sample)))
    return MSU_PULL_WAIT;
  decoder->width = info.width;
  decoder->height = info.height;
  if (info.par_n > 0 && info.par_d > 0)
    decoder->pixel_aspect = (double)info.par_n / info.par_d;
  if (info.fps_n > 0 && info.fps_d > 0)
    decoder->fps = (double)info.fps_n / info.fps_d;
  guint64 time = GST_BUFFER_PTS(buffer);
  if (GST_CLOCK_TIME_IS_VALID(time))
    time = gst_segment_to_stream_time(segment, GST_FORMAT_TIME, time);
  frame->time = GST_CLOCK_TIME_IS_VALID(time) && (gint64)time > decoder->last ? (gint64)time : decoder->next;
  if (GST_BUFFER_DURATION_IS_VALID(buffer))
    frame->duration = GST_BUFFER_DURATION(buffer);
  gint64 step = decoder->fps > 0 ? (gint64)(GST_SECOND / decoder->fps) : GST_SECOND / 25;
  decoder->last = frame->time;
  decoder->next = frame->time + (frame->duration > 0 ? frame->duration : step);
  if (decoder->pixels && !(frame->texture = texture_of(buffer, &info)))
    return MSU_PULL_WAIT;
  return MSU_PULL_FRAME;
}

gboolean msu_decoder_seek(struct msu_decoder *decoder, gint64 time) {
  if (!decoder->width)
    return FALSE;
  if (decoder->error) {
    /* A pipeline that failed stays failed; a new one reads what comes before the damage. It can only seek
     * once it has a frame. */
    g_clear_pointer(&decoder->error, g_free);
    stop(decoder);
    if (!start(decoder))
      return FALSE;
    struct msu_frame frame;
    enum msu_pull pull;
    while ((pull = msu_decoder_pull(decoder, &frame)) == MSU_PULL_WAIT)
      continue;
    g_clear_object(&frame.texture);
    if (pull != MSU_PULL_FRAME)
      return FALSE;
  }
  decoder->last_heard = g_get_monotonic_time();
  decoder->last = -1;
  decoder->next = time;
  return gst_element_seek_simple(decoder->pipeline, GST_FORMAT_TIME,
                                 GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, time);
}

int msu_decoder_width(const struct msu_decoder *decoder) {
  return decoder->width;
}

int msu_decoder_height(const struct msu_decoder *decoder) {
  return decoder->height;
}

double msu_decoder_pixel_aspect(const struct msu_decoder *decoder) {
  return decoder->pixel_aspect;
}

double msu_decoder_fps(const struct msu_decoder *decoder) {
  return decoder->fps;
}

gint64 msu_decoder_duration(struct msu_decoder *decoder) {
  gint64 duration = 0;
  if (!decoder->pipeline || !gst_element_query_duration(decoder->pipeline, GST_FORMAT_TIME, &duration))
    return 0;
  return MAX(duration, 0);
}

gboolean msu_decoder_has_sound(const struct msu_decoder *decoder) {
  return g_atomic_int_get(&decoder->has_sound);
}

const char *msu_decoder_error(const struct msu_decoder *decoder) {
  return decoder->error;
}
