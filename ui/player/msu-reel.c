#include "player/msu-reel.h"

#include <math.h>

#include "player/msu-decoder.h"

#define BUDGET ((gsize)128 << 20) /* bytes of pictures that are kept */
#define AHEAD_LEAST 1
#define AHEAD_MOST 48
/* Going on costs a frame each, a seek at least the frames since the last key frame. */
#define GO_ON 24
#define BACK_BLOCK 12 /* decoded at once when stepping back */

/* What the main thread and the workers share; counted, since a worker may outlive the reel for a moment. */
struct work {
  gatomicrefcount references;
  char *path;
  GMutex lock; /* guards all below; held for moments only, never while decoding */
  GCond wake;
  gboolean quit;
  gint64 wanted;
  int direction;
  gboolean loop;
  GHashTable *pictures; /* frame number as pointer -> GdkTexture */
  gsize picture_bytes;
  gint64 frames;
  gboolean exact, sound;
  GArray *times;        /* of gint64 nanoseconds; [frames] if exact, else as far as is known */
  gint64 grain;         /* nanoseconds that every frame lasts at least */
  gint64 end, last_end; /* nanoseconds: of the clip, and of the last frame that was read */
  double fps, pixel_aspect;
  int width, height;
  char *error;
  gboolean notify_pending;
  MsuReel *owner; /* main thread only; NULL when it is gone */
};

struct _MsuReel {
  GObject parent_instance;
  struct work *work;
  char *error; /* what get_error last gave */
};

enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

G_DEFINE_FINAL_TYPE(MsuReel, msu_reel, G_TYPE_OBJECT)

static struct work *work_ref(struct work *work) {
  g_atomic_ref_count_inc(&work->references);
  return work;
}

static void work_unref(gpointer data) {
  struct work *work = data;
  if (!g_atomic_ref_count_dec(&work->references))
    return;
  g_hash_table_unref(work->pictures);
  g_array_unref(work->times);
  g_mutex_clear(&work->lock);
  g_cond_clear(&work->wake);
  g_free(work->path);
  g_free(work->error);
  g_free(work);
}

static gboolean notify_cb(gpointer data) {
  struct work *work = data;
  g_mutex_lock(&work->lock);
  work->notify_pending = FALSE;
  g_mutex_unlock(&work->lock);
  if (work->owner)
    g_signal_emit(work->owner, signals[CHANGED], 0);
  return G_SOURCE_REMOVE;
}

/* With the lock held. */
static void notify(struct work *work) {
  if (work->notify_pending || work->quit)
    return;
  work->notify_pending = TRUE;
  g_autoptr(GSource) source = g_idle_source_new();
  g_source_set_priority(source, G_PRIORITY_DEFAULT);
  g_source_set_callback(source, notify_cb, work_ref(work), work_unref);
  g_source_attach(source, NULL);
}

/* ---- Times. With the lock held. ---- */

static gint64 step_of(const struct work *work) {
  return work->fps > 0 ? (gint64)(1e9 / work->fps) : (gint64)40e6;
}

static gint64 time_of(const struct work *work, gint64 frame) {
  if (frame >= work->frames)
    return work->end;
  if (frame < work->times->len)
    return g_array_index(work->times, gint64, frame);
  return frame * step_of(work);
}

/* The frame that is seen at a time; frames that lie past what is known are counted by their rate. */
static gint64 find(const struct work *work, gint64 time) {
  gint64 known = work->times->len;
  if (!known || (!work->exact && time > g_array_index(work->times, gint64, known - 1) + step_of(work)))
    return CLAMP((time + step_of(work) / 4) / step_of(work), 0, MAX(work->frames - 1, 0));
  /* Half a grain of slack takes up the rounding of containers and seeks. */
  gint64 low = 0, high = known, at = time + work->grain / 4;
  while (high - low > 1) {
    gint64 middle = (low + high) / 2;
    if (g_array_index(work->times, gint64, middle) <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void append_time(struct work *work, const struct msu_frame *frame) {
  if (work->times->len) {
    gint64 gap = frame->time - g_array_index(work->times, gint64, work->times->len - 1);
    work->grain = MAX(MIN(work->grain, gap), 1);
  } else
    work->grain = step_of(work);
  if (frame->duration > 0)
    work->grain = MIN(work->grain, frame->duration);
  g_array_append_val(work->times, frame->time);
  work->last_end = frame->time + (frame->duration > 0 ? frame->duration : step_of(work));
  work->end = MAX(work->end, work->last_end);
}

/* ---- Pictures. With the lock held. ---- */

static gint64 distance(const struct work *work, gint64 frame) {
  gint64 ahead = (frame - work->wanted) * work->direction;
  if (work->loop && ahead < 0 && work->direction > 0)
    return MIN(ahead + work->frames, -3 * ahead);
  return ahead >= 0 ? ahead : -3 * ahead;
}

static gsize bytes_of(GdkTexture *texture) {
  return (gsize)gdk_texture_get_width(texture) * gdk_texture_get_height(texture) * 4;
}

/* Takes the texture. */
static void keep(struct work *work, gint64 frame, GdkTexture *texture) {
  if (g_hash_table_contains(work->pictures, (gpointer)frame)) {
    g_object_unref(texture);
    return;
  }
  work->picture_bytes += bytes_of(texture);
  g_hash_table_insert(work->pictures, (gpointer)frame, texture);
  while (work->picture_bytes > BUDGET && g_hash_table_size(work->pictures) > 2) {
    GHashTableIter iter;
    gpointer key, farthest = NULL;
    gint64 most = -1;
    g_hash_table_iter_init(&iter, work->pictures);
    while (g_hash_table_iter_next(&iter, &key, NULL))
      if (distance(work, (gint64)key) > most) {
        most = distance(work, (gint64)key);
        farthest = key;
      }
    work->picture_bytes -= bytes_of(g_hash_table_lookup(work->pictures, farthest));
    g_hash_table_remove(work->pictures, farthest);
  }
}

static gboolean has(const struct work *work, gint64 frame) {
  return g_hash_table_contains(work->pictures, (gpointer)frame);
}

/* What to decode next, -1: nothing. */
static gint64 choose(const struct work *work) {
  if (work->frames <= 0)
    return -1;
  gint64 wanted = CLAMP(work->wanted, 0, work->frames - 1);
  if (!has(work, wanted))
    return wanted;
  gsize frame_bytes = MAX((gsize)work->width * work->height * 4, 1);
  gint64 ahead = CLAMP((gint64)(BUDGET / 2 / frame_bytes), AHEAD_LEAST, AHEAD_MOST);
  for (gint64 i = 1; i <= MIN(ahead, work->frames - 1); i++) {
    gint64 frame = wanted + i * work->direction;
    if (frame < 0 || (frame >= work->frames && !work->loop))
      break;
    frame %= work->frames;
    if (!has(work, frame))
      return frame;
  }
  return -1;
}

/* ---- The workers. ---- */

static gboolean asked_to_quit(struct work *work) {
  g_mutex_lock(&work->lock);
  gboolean quit = work->quit;
  g_mutex_unlock(&work->lock);
  return quit;
}

/* Decodes all frames for their times alone. */
static gpointer count_thread(gpointer data) {
  struct work *work = data;
  struct msu_decoder *decoder = msu_decoder_open(work->path, FALSE);
  g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(gint64));
  struct work counted = {.times = times, .fps = work->fps};
  struct msu_frame frame;
  enum msu_pull pull = MSU_PULL_WAIT;
  gboolean quit;
  while (!(quit = asked_to_quit(work)) && (pull = msu_decoder_pull(decoder, &frame)) < MSU_PULL_END)
    if (pull == MSU_PULL_FRAME)
      append_time(&counted, &frame);
  msu_decoder_close(&decoder);
  g_mutex_lock(&work->lock);
  if (!quit && times->len) {
    gboolean as_guessed = TRUE;
    for (guint i = 0; i < times->len && as_guessed; i++)
      as_guessed = ABS(g_array_index(times, gint64, i) - time_of(work, i)) < step_of(work) / 4;
    if (!as_guessed) {
      g_hash_table_remove_all(work->pictures);
      work->picture_bytes = 0;
    }
    g_array_unref(work->times);
    work->times = g_steal_pointer(&times);
    work->grain = counted.grain;
    work->end = counted.last_end;
    work->frames = work->times->len;
    work->exact = TRUE;
    notify(work);
    g_cond_signal(&work->wake);
  }
  g_mutex_unlock(&work->lock);
  work_unref(work);
  return NULL;
}

static void learn(struct work *work, struct msu_decoder *decoder) {
  work->width = msu_decoder_width(decoder);
  work->height = msu_decoder_height(decoder);
  work->pixel_aspect = msu_decoder_pixel_aspect(decoder);
  work->fps = msu_decoder_fps(decoder);
  work->sound = msu_decoder_has_sound(decoder);
  work->end = msu_decoder_duration(decoder);
  work->frames = MAX((work->end + step_of(work) / 2) / step_of(work), 1);
}

/* First pass: from the start to the end for a clip that can be kept as a whole, else only the first picture.
 * Returns how many frames were read, -1 if there is none. */
static gint64 read_through(struct work *work, struct msu_decoder *decoder) {
  gboolean whole = TRUE;
  gint64 count = 0;
  struct msu_frame frame;
  enum msu_pull pull = MSU_PULL_WAIT;
  while (whole && !asked_to_quit(work)) {
    pull = msu_decoder_pull(decoder, &frame);
    if (pull >= MSU_PULL_END)
      break;
    if (pull == MSU_PULL_WAIT)
      continue;
    g_mutex_lock(&work->lock);
    if (!count) {
      learn(work, decoder);
      whole = (gsize)work->frames * bytes_of(frame.texture) <= BUDGET;
    }
    append_time(work, &frame);
    keep(work, count++, frame.texture);
    work->frames = MAX(work->frames, count);
    notify(work);
    g_mutex_unlock(&work->lock);
  }
  g_mutex_lock(&work->lock);
  if (!count)
    work->error = g_strdup(msu_decoder_error(decoder));
  if (whole && pull >= MSU_PULL_END) {
    /* What was read before damage is what there is. */
    work->frames = count;
    work->end = work->last_end;
    work->exact = TRUE;
  }
  notify(work);
  g_mutex_unlock(&work->lock);
  if (!whole)
    g_thread_unref(g_thread_new("count frames", count_thread, work_ref(work)));
  return count ? count : -1;
}

/* Where to seek so that `frame` comes: inside it, since what ends before is left out. Each further attempt
 * starts earlier, for files whose index is wrong. */
static gint64 seek_time(struct work *work, gint64 frame, int attempt) {
  static const gint64 earlier[] = {0, 30, 250};
  if (attempt >= G_N_ELEMENTS(earlier))
    return 0;
  frame = MAX(frame - earlier[attempt], 0);
  return time_of(work, frame) + (work->grain > 0 ? work->grain : step_of(work)) / 2;
}

/* Delivers what is wanted until the reel is dropped. */
static void serve(struct work *work, struct msu_decoder *decoder, gint64 next) {
  gint64 target = -1;
  int attempt = 0;
  g_mutex_lock(&work->lock);
  while (!work->quit) {
    gint64 chosen = choose(work);
    if (chosen < 0) {
      g_cond_wait(&work->wake, &work->lock);
      continue;
    }
    if (chosen != target)
      attempt = 0;
    target = chosen;
    if (next < 0 || target < next || (!attempt && target > next + GO_ON)) {
      gint64 from = work->direction < 0 ? MAX(target - BACK_BLOCK + 1, 0) : target;
      gint64 time = seek_time(work, from, attempt++);
      g_mutex_unlock(&work->lock);
      gboolean ok = msu_decoder_seek(decoder, time);
      g_mutex_lock(&work->lock);
      next = ok ? from : -1;
    }
    g_mutex_unlock(&work->lock);
    struct msu_frame frame;
    enum msu_pull pull = next < 0 ? MSU_PULL_ERROR : msu_decoder_pull(decoder, &frame);
    g_mutex_lock(&work->lock);
    if (pull == MSU_PULL_FRAME) {
      gint64 number = find(work, frame.time);
      next = number + 1;
      if (number > target && attempt > 0 && attempt < 4) {
        /* Too late: try from further back. */
        g_object_unref(frame.texture);
        next = -1;
        continue;
      }
      if (number > target && attempt >= 4)
        keep(work, target, g_object_ref(frame.texture));
      keep(work, number, frame.texture);
      notify(work);
    } else if (pull >= MSU_PULL_END) {
      next = -1;
      if (attempt < 4)
        continue;
      /* It does not come: there are fewer frames than was thought, or the file has changed. Its neighbour
       * stands for it, so that this is not tried for ever. */
      GdkTexture *neighbour = NULL;
      for (gint64 i = target - 1; i >= 0 && !neighbour; i--)
        neighbour = g_hash_table_lookup(work->pictures, (gpointer)i);
      if (!neighbour) {
        work->error = g_strdup(msu_decoder_error(decoder));
        notify(work);
        break;
      }
      keep(work, target, g_object_ref(neighbour));
      notify(work);
    }
  }
  g_mutex_unlock(&work->lock);
}

static gpointer work_thread(gpointer data) {
  struct work *work = data;
  struct msu_decoder *decoder = msu_decoder_open(work->path, TRUE);
  gint64 next = read_through(work, decoder);
  if (next >= 0)
    serve(work, decoder, next);
  msu_decoder_close(&decoder);
  work_unref(work);
  return NULL;
}

/* ---- The main thread's face. ---- */

static void dispose(GObject *object) {
  MsuReel *self = MSU_REEL(object);
  if (self->work) {
    self->work->owner = NULL;
    g_mutex_lock(&self->work->lock);
    self->work->quit = TRUE;
    g_cond_signal(&self->work->wake);
    g_mutex_unlock(&self->work->lock);
    g_clear_pointer(&self->work, work_unref);
  }
  g_clear_pointer(&self->error, g_free);
  G_OBJECT_CLASS(msu_reel_parent_class)->dispose(object);
}

static void msu_reel_class_init(MsuReelClass *class) {
  G_OBJECT_CLASS(class)->dispose = dispose;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_REEL, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_reel_init(MsuReel *self) {
}

MsuReel *msu_reel_new(const char *path) {
  g_return_val_if_fail(path, NULL);
  MsuReel *self = g_object_new(MSU_TYPE_REEL, NULL);
  struct work *work = g_new0(struct work, 1);
  g_atomic_ref_count_init(&work->references);
  work->path = g_strdup(path);
  g_mutex_init(&work->lock);
  g_cond_init(&work->wake);
  work->direction = 1;
  work->pixel_aspect = 1;
  work->pictures = g_hash_table_new_full(NULL, NULL, NULL, g_object_unref);
  work->times = g_array_new(FALSE, FALSE, sizeof(gint64));
  work->owner = self;
  self->work = work;
  g_thread_unref(g_thread_new("decode clip", work_thread, work_ref(work)));
  return self;
}

const char *msu_reel_get_error(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  if (g_strcmp0(self->error, self->work->error) != 0) {
    g_free(self->error);
    self->error = g_strdup(self->work->error);
  }
  g_mutex_unlock(&self->work->lock);
  return self->error;
}

gint64 msu_reel_get_frames(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  gint64 frames = self->work->frames;
  g_mutex_unlock(&self->work->lock);
  return frames;
}

gboolean msu_reel_get_exact(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  gboolean exact = self->work->exact;
  g_mutex_unlock(&self->work->lock);
  return exact;
}

gboolean msu_reel_has_sound(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  gboolean sound = self->work->sound;
  g_mutex_unlock(&self->work->lock);
  return sound;
}

double msu_reel_get_time(MsuReel *self, gint64 frame) {
  g_mutex_lock(&self->work->lock);
  double seconds = time_of(self->work, MAX(frame, 0)) / 1e9;
  g_mutex_unlock(&self->work->lock);
  return seconds;
}

gint64 msu_reel_find(MsuReel *self, double seconds) {
  g_mutex_lock(&self->work->lock);
  gint64 frame = find(self->work, (gint64)(MAX(seconds, 0) * 1e9));
  g_mutex_unlock(&self->work->lock);
  return frame;
}

int msu_reel_get_width(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  int width = (int)lround(self->work->width * self->work->pixel_aspect);
  g_mutex_unlock(&self->work->lock);
  return width;
}

int msu_reel_get_height(MsuReel *self) {
  g_mutex_lock(&self->work->lock);
  int height = self->work->height;
  g_mutex_unlock(&self->work->lock);
  return height;
}

GdkTexture *msu_reel_peek(MsuReel *self, gint64 frame) {
  g_mutex_lock(&self->work->lock);
  GdkTexture *texture = g_hash_table_lookup(self->work->pictures, (gpointer)frame);
  if (texture)
    g_object_ref(texture);
  g_mutex_unlock(&self->work->lock);
  return texture;
}

void msu_reel_want(MsuReel *self, gint64 frame, int direction, gboolean loop) {
  g_mutex_lock(&self->work->lock);
  self->work->wanted = frame;
  self->work->direction = direction < 0 ? -1 : 1;
  self->work->loop = loop;
  g_cond_signal(&self->work->wake);
  g_mutex_unlock(&self->work->lock);
}
