/* Frames in memory, and loading them: a pool that serves the newest load first, over a cache. */
#include "msa-frames.h"

#include <string.h>
#include <sys/stat.h>

#include "core/errors.h"
#include "core/quiet.h"
#include "ms-media.h"

#define CACHE_BYTES ((gsize)64 << 20)
#define LOADERS 2 /* each decodes on threads of its own */
#define SIDE_MAX 4096
#define MOST_MAX 4096

struct frames_block {
  MsaFrames frames; /* first: a pointer to it is one to the block */
  gatomicrefcount references;
};

G_DEFINE_BOXED_TYPE(MsaFrames, msa_frames, msa_frames_ref, msa_frames_unref)

static MsaFrames *frames_take(GBytes *bytes, int width, int height, int count, double fps) {
  struct frames_block *block = g_new0(struct frames_block, 1);
  g_atomic_ref_count_init(&block->references);
  block->frames.width = width;
  block->frames.height = height;
  block->frames.count = count;
  block->frames.fps = fps;
  block->frames.bytes = bytes;
  block->frames.rgb = g_bytes_get_data(bytes, NULL);
  return &block->frames;
}

MsaFrames *msa_frames_new(const guint8 *rgb, int width, int height, int count, double fps) {
  g_return_val_if_fail(rgb && width > 0 && height > 0 && count > 0, NULL);
  return frames_take(g_bytes_new(rgb, (gsize)width * height * 3 * count), width, height, count, fps);
}

MsaFrames *msa_frames_ref(MsaFrames *frames) {
  g_atomic_ref_count_inc(&((struct frames_block *)frames)->references);
  return frames;
}

void msa_frames_unref(MsaFrames *frames) {
  struct frames_block *block = (struct frames_block *)frames;
  if (!g_atomic_ref_count_dec(&block->references))
    return;
  g_bytes_unref(frames->bytes);
  g_free(block);
}

/* What one load asks for. */
struct load {
  char *path;
  int side, most;
  gint64 number;   /* counts up: the newest is served first */
  gboolean cached; /* was in the cache when it was asked, so it takes no time */
};

static void load_free(gpointer data) {
  struct load *load = data;
  g_free(load->path);
  g_free(load);
}

/* An entry of the cache. `link` lies in order of use. */
struct entry {
  char *key;
  MsaFrames *frames;
  gsize bytes;
  gint64 changed,
      size; /* of the file (nanoseconds, bytes), so that one that was written again is read again */
  GList link;
};

static struct {
  GMutex lock;         /* guards all below; nothing is called under it that takes another */
  GHashTable *entries; /* key -> entry, owns it */
  GQueue used;         /* of entry, last used first */
  gsize bytes;
  GThreadPool *pool;
  gint64 number;
} loads;

static void entry_free(gpointer data) {
  struct entry *entry = data;
  g_free(entry->key);
  msa_frames_unref(entry->frames);
  g_free(entry);
}

static char *key_of(const struct load *load) {
  return g_strdup_printf("%d %d %s", load->side, load->most, load->path);
}

static void drop(struct entry *entry) {
  g_queue_unlink(&loads.used, &entry->link);
  loads.bytes -= entry->bytes;
  g_hash_table_remove(loads.entries, entry->key);
}

static gint64 changed_at(const struct stat *file) {
  return (gint64)file->st_mtim.tv_sec * 1000000000 + file->st_mtim.tv_nsec;
}

static MsaFrames *recall(const struct load *load, const struct stat *file) {
  g_autofree char *key = key_of(load);
  MsaFrames *found = NULL;
  g_mutex_lock(&loads.lock);
  struct entry *entry = g_hash_table_lookup(loads.entries, key);
  if (entry && (entry->changed != changed_at(file) || entry->size != file->st_size)) {
    drop(entry);
  } else if (entry) {
    g_queue_unlink(&loads.used, &entry->link);
    g_queue_push_head_link(&loads.used, &entry->link);
    found = msa_frames_ref(entry->frames);
  }
  g_mutex_unlock(&loads.lock);
  return found;
}

static void remember(const struct load *load, const struct stat *file, MsaFrames *frames) {
  const gsize bytes = g_bytes_get_size(frames->bytes);
  if (bytes > CACHE_BYTES / 4) /* would drive out everything else */
    return;
  struct entry *entry = g_new0(struct entry, 1);
  entry->key = key_of(load);
  entry->frames = msa_frames_ref(frames);
  entry->bytes = bytes;
  entry->changed = changed_at(file);
  entry->size = file->st_size;
  entry->link.data = entry;
  g_mutex_lock(&loads.lock);
  struct entry *old = g_hash_table_lookup(loads.entries, entry->key);
  if (old)
    drop(old);
  while (loads.bytes + bytes > CACHE_BYTES && loads.used.tail)
    drop(loads.used.tail->data);
  g_hash_table_insert(loads.entries, entry->key, entry);
  g_queue_push_head_link(&loads.used, &entry->link);
  loads.bytes += bytes;
  g_mutex_unlock(&loads.lock);
}

/* Number of the clip's frame that stands for the i-th of n equal parts of it: the one in the middle. */
static gint64 frame_of_part(int i, int n, gint64 frames) {
  return (gint64)((i + 0.5) / n * (double)frames);
}

static int fit(int length, int longest, int side) {
  return longest <= side ? length : MAX(1, (int)((double)length * side / longest + 0.5));
}

/* How many frames the clip has, without decoding it where its container says so. */
static int guess_frames(struct ms_video *video, gint64 *frames, struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  *frames = info->fps > 0 ? (gint64)(info->duration * info->fps + 0.5) : 0;
  if (*frames > 0)
    return 0;
  const int code = ms_video_count(video, error);
  *frames = info->frames;
  return code;
}

static MsaFrames *decode(const struct load *load, struct ms_video *video, GCancellable *cancellable,
                         struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  const int longest = MAX(info->width, info->height), width = fit(info->width, longest, load->side),
            height = fit(info->height, longest, load->side);
  const gsize frame_bytes = (gsize)width * height * 3;
  gint64 frames, seen = 0;
  double time;
  int got = 0, code = guess_frames(video, &frames, error);
  if (code < 0)
    return NULL;
  const int wanted = (int)MIN(MAX(frames, 1), load->most);
  guint8 *rgb = g_try_malloc_n(wanted, frame_bytes);
  if (!rgb) {
    ms_error_set(error, MS_ENOMEM, "the frames of \"%.300s\" do not fit in memory", load->path);
    return NULL;
  }
  code = 1;
  while (got < wanted && code > 0 && !g_cancellable_is_cancelled(cancellable)) {
    if (seen < frame_of_part(got, wanted, frames)) {
      code = ms_video_skip(video, &time, error);
    } else {
      code = ms_video_read(video, width, height, NULL, rgb + (gsize)got * frame_bytes, &time, error);
      got += code > 0;
    }
    seen += code > 0;
  }
  if (code == 0 && !got) {
    /* far fewer frames than its container says, so that it ended before the first one that was wanted */
    code = ms_video_rewind(video, error);
    if (code == 0)
      code = ms_video_read(video, width, height, NULL, rgb, &time, error);
    if (code == 0)
      code = ms_error_set(error, MS_EINPUT, "not one frame of \"%.300s\" can be decoded", load->path);
    frames = got = 1;
  }
  if (code < 0 || g_cancellable_is_cancelled(cancellable)) {
    g_free(rgb);
    return NULL;
  }
  const double fps = info->fps > 0 ? info->fps : 24;
  return frames_take(g_bytes_new_take(rgb, (gsize)got * frame_bytes), width, height, got,
                     fps * got / (double)MAX(code == 0 ? seen : frames, 1));
}

static void serve(gpointer data, gpointer unused) {
  g_autoptr(GTask) task = data;
  const struct load *load = g_task_get_task_data(task);
  struct ms_video *video = NULL;
  struct ms_error error = {0};
  struct stat file;
  msa_be_quiet();
  if (g_task_return_error_if_cancelled(task))
    return;
  if (stat(load->path, &file) < 0)
    memset(&file, 0, sizeof file); /* opening it says why */
  MsaFrames *frames = recall(load, &file);
  if (!frames && ms_video_open(&video, load->path, &error) == 0) {
    frames = decode(load, video, g_task_get_cancellable(task), &error);
    if (frames)
      remember(load, &file, frames);
  }
  ms_video_close(&video);
  if (frames) {
    g_task_return_pointer(task, frames, (GDestroyNotify)msa_frames_unref);
  } else if (!g_task_return_error_if_cancelled(task)) {
    GError *failure = NULL;
    msa_error_set_from_engine(&failure, &error);
    g_task_return_error(task, failure);
  }
}

/* What takes no time goes first, then the newest. */
static gint newest_first(gconstpointer a, gconstpointer b, gpointer unused) {
  const struct load *x = g_task_get_task_data((GTask *)a), *y = g_task_get_task_data((GTask *)b);
  if (x->cached != y->cached)
    return x->cached ? -1 : 1;
  return x->number > y->number ? -1 : x->number < y->number;
}

void msa_frames_load_async(const char *path, int side, int most, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, cancellable, callback, data);
  struct load *load = g_new0(struct load, 1);
  load->path = g_strdup(path);
  load->side = CLAMP(side, 1, SIDE_MAX);
  load->most = CLAMP(most, 1, MOST_MAX);
  g_task_set_source_tag(task, msa_frames_load_async);
  g_task_set_task_data(task, load, load_free);
  g_autofree char *key = key_of(load);
  g_mutex_lock(&loads.lock);
  if (!loads.pool) {
    loads.entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    loads.pool = g_thread_pool_new(serve, NULL, LOADERS, TRUE, NULL);
    g_thread_pool_set_sort_function(loads.pool, newest_first, NULL);
  }
  load->number = ++loads.number;
  load->cached = g_hash_table_contains(loads.entries, key);
  g_mutex_unlock(&loads.lock);
  g_thread_pool_push(loads.pool, task, NULL);
}

MsaFrames *msa_frames_load_finish(GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_frames_load_async), NULL);
  return g_task_propagate_pointer(G_TASK(result), error);
}
