#include "player/msu-sound.h"

#include <gst/gst.h>

struct msu_sound {
  gatomicrefcount references; /* the owner's and the worker's */
  char *path;
  GMutex lock; /* guards what follows; never held while GStreamer works */
  GCond wake;
  gboolean quit, play, changed;
  double from;
};

static void sound_unref(struct msu_sound *sound) {
  if (!g_atomic_ref_count_dec(&sound->references))
    return;
  g_mutex_clear(&sound->lock);
  g_cond_clear(&sound->wake);
  g_free(sound->path);
  g_free(sound);
}

static void pad_added_cb(GstElement *element, GstPad *pad, gpointer data) {
  g_autoptr(GstPad) sink = gst_element_get_static_pad(data, "sink");
  if (!gst_pad_is_linked(sink))
    gst_pad_link(pad, sink);
}

static GstElement *build(const char *path) {
  static const char *const names[] = {"audioconvert", "audioresample", "autoaudiosink"};
  g_autofree char *full = g_canonicalize_filename(path, NULL);
  g_autofree char *uri = g_filename_to_uri(full, NULL, NULL);
  GstElement *pipeline = gst_object_ref_sink(gst_pipeline_new(NULL));
  GstElement *source = gst_element_factory_make("uridecodebin", NULL);
  if (!source || !uri) {
    g_clear_pointer(&source, gst_object_unref);
    gst_object_unref(pipeline);
    return NULL;
  }
  gst_bin_add(GST_BIN(pipeline), source);
  g_autoptr(GstCaps) raw = gst_caps_from_string("audio/x-raw(ANY)");
  g_object_set(source, "uri", uri, "caps", raw, "expose-all-streams", FALSE, NULL);
  GstElement *last = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    GstElement *element = gst_element_factory_make(names[i], NULL);
    if (!element) {
      gst_object_unref(pipeline);
      return NULL;
    }
    gst_bin_add(GST_BIN(pipeline), element);
    if (last)
      gst_element_link(last, element);
    else
      g_signal_connect(source, "pad-added", G_CALLBACK(pad_added_cb), element);
    last = element;
  }
  return pipeline;
}

/* TRUE once the pipeline is ready to seek. */
static gboolean preroll(GstElement *pipeline) {
  if (gst_element_set_state(pipeline, GST_STATE_PAUSED) == GST_STATE_CHANGE_FAILURE)
    return FALSE;
  return gst_element_get_state(pipeline, NULL, NULL, 10 * GST_SECOND) != GST_STATE_CHANGE_FAILURE;
}

static gpointer thread(gpointer data) {
  struct msu_sound *sound = data;
  GstElement *pipeline = NULL;
  gboolean dead = FALSE;
  g_mutex_lock(&sound->lock);
  while (!sound->quit) {
    if (!sound->changed || dead) {
      g_cond_wait(&sound->wake, &sound->lock);
      continue;
    }
    sound->changed = FALSE;
    gboolean play = sound->play;
    double from = sound->from;
    g_mutex_unlock(&sound->lock);
    if (play && !pipeline)
      dead = !(pipeline = build(sound->path)) || !preroll(pipeline);
    if (pipeline && !dead && play) {
      gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                              (gint64)(from * GST_SECOND));
      gst_element_set_state(pipeline, GST_STATE_PLAYING);
    } else if (pipeline && !dead)
      gst_element_set_state(pipeline, GST_STATE_PAUSED);
    g_mutex_lock(&sound->lock);
  }
  g_mutex_unlock(&sound->lock);
  if (pipeline) {
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
  }
  sound_unref(sound);
  return NULL;
}

struct msu_sound *msu_sound_new(const char *path) {
  struct msu_sound *sound = g_new0(struct msu_sound, 1);
  g_atomic_ref_count_init(&sound->references);
  g_atomic_ref_count_inc(&sound->references);
  sound->path = g_strdup(path);
  g_mutex_init(&sound->lock);
  g_cond_init(&sound->wake);
  g_thread_unref(g_thread_new("play sound", thread, sound));
  return sound;
}

static void tell(struct msu_sound *sound, gboolean quit, gboolean play, double from) {
  g_mutex_lock(&sound->lock);
  sound->quit = quit;
  sound->play = play;
  sound->from = from;
  sound->changed = TRUE;
  g_cond_signal(&sound->wake);
  g_mutex_unlock(&sound->lock);
}

void msu_sound_free(struct msu_sound *sound) {
  if (!sound)
    return;
  tell(sound, TRUE, FALSE, 0);
  sound_unref(sound);
}

void msu_sound_play(struct msu_sound *sound, double from) {
  tell(sound, FALSE, TRUE, from);
}

void msu_sound_pause(struct msu_sound *sound) {
  tell(sound, FALSE, FALSE, 0);
}
