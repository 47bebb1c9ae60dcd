/* The library over a real store: add, look, star, trash and restore, after a restart, a thousand clips. */
#include <glib/gstdio.h>
#include <string.h>

#include "core/rooms.h"
#include "harness.h"
#include "msa-studio.h"
#include "room.h"

static MsaStudio *open_studio(void) {
  g_autoptr(GAsyncResult) result = NULL;
  g_autoptr(GError) error = NULL;
  MsaStudio *studio = msa_studio_new();
  msa_studio_open_async(studio, room_done, &result);
  if (!msa_studio_open_finish(studio, room_wait(&result), &error))
    g_error("%s", error->message);
  return studio;
}

static void close_studio(MsaStudio *studio) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_studio_close_async(studio, room_done, &result);
  check_ok(msa_studio_close_finish(studio, room_wait(&result), NULL), "the studio closes");
  g_object_unref(studio);
}

static MsaClip *add(MsaLibrary *library, const char *path, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_library_add_async(library, path, room_done, &result);
  return msa_library_add_finish(library, room_wait(&result), error);
}

static MsaDropped *look(MsaLibrary *library, const char *path, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_library_look_async(library, path, NULL, room_done, &result);
  return msa_library_look_finish(library, room_wait(&result), error);
}

static gboolean trash(MsaLibrary *library, MsaClip *clip) {
  g_autoptr(GAsyncResult) result = NULL;
  g_autoptr(GError) error = NULL;
  msa_library_trash_async(library, clip, room_done, &result);
  const gboolean done = msa_library_trash_finish(library, room_wait(&result), &error);
  check_ok(done, "a clip goes to the trash %s", error ? error->message : "");
  return done;
}

static gboolean restore(MsaLibrary *library, MsaClip *clip, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_library_restore_async(library, clip, room_done, &result);
  return msa_library_restore_finish(library, room_wait(&result), error);
}

static guint count(MsaLibrary *library) {
  return g_list_model_get_n_items(G_LIST_MODEL(library));
}

static void check_look(MsaLibrary *library) {
  g_autofree char *made = room_path("made.mp4"), *bare = room_path("bare.mp4"),
                  *other = room_path("other.mp4"), *broken = room_path("broken.mp4"),
                  *huge = room_path("huge.mp4"), *newer = room_path("newer.mp4"),
                  *png = room_path("frames.png");
  g_autoptr(GError) error = NULL;
  room_generate(made, "a red ball rolls to the right", 77);
  room_clip(bare, 6, NULL);
  room_clip(
      other, 6,
      "{\"program\":\"megaslide\",\"prompt\":\"a cat\",\"model\":\"wan-huge\",\"seed\":5,\"width\":1280,"
      "\"height\":720,\"frames\":81,\"device\":\"cuda\"}");
  room_clip(
      huge, 3,
      "{\"prompt\":\"a cat\",\"model\":\"starter\",\"seed\":5,\"width\":1920,\"height\":1080,\"frames\":257,"
      "\"host_memory\":500000000}");
  room_clip(newer, 3, "{\"program\":\"megaslide\",\"prompt\":\"a cat\",\"sampler\":\"magic\"}");
  room_clip(png, 3, "{\"prompt\":\"still\",\"fps\":8}");
  room_write(broken, "no video at all");

  g_autoptr(MsaDropped) dropped = look(library, made, &error);
  check_ok(dropped && dropped->params, "a clip that was made here has settings %s",
           error ? error->message : "");
  if (dropped && dropped->params)
    check_ok(!strcmp(dropped->params->prompt, "a red ball rolls to the right") &&
                 dropped->params->seed == 77 && dropped->params->steps == 2 &&
                 !strcmp(dropped->params->model, "starter") && dropped->params->width == 64 &&
                 dropped->width == 64 && dropped->frames == 5,
             "those that it was made with");
  check_ok(dropped && dropped->notes && !dropped->notes[0], "this machine can make it again: %s",
           dropped && dropped->notes[0] ? dropped->notes[0] : "no notes");

  g_autoptr(MsaDropped) foreign = look(library, bare, NULL);
  check_ok(foreign && !foreign->params && foreign->frames == 6 && foreign->width == 96 && foreign->fps == 8 &&
               !foreign->notes[0],
           "a clip without settings is a clip");

  g_autoptr(MsaDropped) elsewhere = look(library, other, NULL);
  g_autofree char *notes = elsewhere ? g_strjoinv(" ", elsewhere->notes) : g_strdup("");
  check_ok(elsewhere && elsewhere->params && strstr(notes, "wan-huge") && strstr(notes, "CUDA"),
           "one that was made elsewhere: %s", notes);

  g_autoptr(MsaDropped) large = look(library, huge, NULL), ahead = look(library, newer, NULL);
  check_ok(large && large->params && large->notes[0] && strstr(large->notes[0], "1920 × 1080"),
           "one that does not fit: %s", large && large->notes[0] ? large->notes[0] : "no notes");
  check_ok(ahead && !ahead->params && ahead->notes[0] && strstr(ahead->notes[0], "sampler"),
           "settings of a newer program: %s", ahead && ahead->notes[0] ? ahead->notes[0] : "no notes");

  g_autoptr(MsaDropped) folder = look(library, png, NULL);
  check_ok(folder && folder->frames == 3 && folder->params && !strcmp(folder->params->prompt, "still"),
           "a folder of frames with its settings beside it");

  g_autoptr(MsaDropped) none = look(library, broken, &error);
  check_ok(!none && error && strstr(error->message, "broken.mp4"), "a broken file: %s",
           error ? error->message : "");
}

static void check_add(MsaLibrary *library) {
  g_autofree char *made = room_path("made.mp4"), *missing = room_path("missing.mp4"),
                  *roundabout = room_path("data/../made.mp4");
  g_autoptr(GError) error = NULL;
  const guint before = count(library);
  g_autoptr(MsaClip) clip = add(library, made, &error);
  check_ok(clip && count(library) == before + 1, "a file is added %s", error ? error->message : "");
  if (!clip)
    return;
  check_ok(!strcmp(msa_clip_get_path(clip), made) && room_exists(made), "and stays where it is");
  check_ok(!strcmp(msa_clip_get_prompt(clip), "a red ball rolls to the right") &&
               !strcmp(msa_clip_get_kind(clip), "imported") && msa_clip_get_frames(clip) == 5 &&
               msa_clip_get_bytes(clip) > 1000 && msa_clip_get_params(clip)->seed == 77,
           "with what it says of itself");
  g_autoptr(MsaClip) again = add(library, roundabout, NULL);
  check_ok(again == clip && count(library) == before + 1, "the same file again is the same clip");
  g_autoptr(MsaClip) none = add(library, missing, &error);
  check_ok(!none && error, "what is not there: %s", error ? error->message : "");
  msa_library_set_starred(library, clip, TRUE);
  check_ok(msa_clip_get_starred(clip), "a star is shown at once");
}

static void check_trash(MsaLibrary *library) {
  g_autofree char *path = room_path("trashed.mp4"), *taken = NULL;
  g_autoptr(GError) error = NULL;
  room_clip(path, 4, NULL);
  g_autoptr(MsaClip) clip = add(library, path, NULL);
  const guint before = count(library);
  g_assert(clip);
  if (!trash(library, clip))
    return;
  check_ok(!room_exists(path) && count(library) == before - 1, "its file is gone, and its place in the list");
  check_ok(restore(library, clip, &error), "it comes back %s", error ? error->message : "");
  g_autoptr(MsaClip) first = g_list_model_get_item(G_LIST_MODEL(library), 0);
  check_ok(room_exists(path) && count(library) == before && first == clip, "file and place are as they were");
  check_ok(restore(library, clip, NULL), "restoring what is there does no harm");
  if (!trash(library, clip))
    return;
  room_write(path, "something else");
  const gboolean over = restore(library, clip, &error);
  g_file_get_contents(path, &taken, NULL, NULL);
  check_ok(!over && taken && !strcmp(taken, "something else") && error,
           "it does not come back over another file: %s", error ? error->message : "");
  g_unlink(path);
  check_ok(restore(library, clip, NULL) && room_exists(path), "but does once that is out of the way");
  g_unlink(path);
  if (trash(library, clip))
    check_ok(count(library) == before - 1, "a clip whose file is gone can be cleared away");
}

static gboolean seen_missing(gpointer data) {
  return msa_clip_get_missing(data);
}

static void check_restart(void) {
  g_autofree char *made = room_path("made.mp4");
  MsaStudio *studio = open_studio();
  MsaLibrary *library = msa_studio_get_library(studio);
  g_autoptr(MsaClip) clip = g_list_model_get_item(G_LIST_MODEL(library), 0);
  check_ok(
      count(library) == 1 && clip && !strcmp(msa_clip_get_path(clip), made) && msa_clip_get_starred(clip),
      "after a restart the clip is there with its star, and those in the trash are not (%u)", count(library));
  const char *const *prompts = msa_library_get_prompts(library);
  check_ok(prompts[0] && !strcmp(prompts[0], "two") && prompts[1] && !strcmp(prompts[1], "one") &&
               !prompts[2],
           "prompts are there, each once, the last one first");
  close_studio(studio);
  g_unlink(made);
  studio = open_studio();
  g_autoptr(MsaClip) gone = g_list_model_get_item(G_LIST_MODEL(msa_studio_get_library(studio)), 0);
  check_ok(gone && room_until(seen_missing, gone, 5), "a file that was taken away is said to be missing");
  close_studio(studio);
}

static void changed_cb(GListModel *model, guint position, guint removed, guint added, gpointer data) {
  ++*(int *)data;
}

/* Every other clip of a thousand, whose files never were, into the trash and back. */
static void check_trash_many(MsaLibrary *library) {
  g_autoptr(GPtrArray) clips = g_ptr_array_new_with_free_func(g_object_unref);
  g_autoptr(GAsyncResult) away = NULL, back = NULL;
  g_autoptr(GError) error = NULL;
  const guint before = count(library);
  guint moved = 0;
  int changes = 0;
  for (guint i = 0; i < before; i += 2)
    g_ptr_array_add(clips, g_list_model_get_item(G_LIST_MODEL(library), i));
  const gulong handler = g_signal_connect(library, "items-changed", G_CALLBACK(changed_cb), &changes);
  msa_library_trash_many_async(library, clips, room_done, &away);
  check_ok(count(library) == before - clips->len && changes < 20,
           "%u clips leave the list at once, in %d changes", clips->len, changes);
  /* Undone while they are on their way. */
  msa_library_restore_many_async(library, clips, room_done, &back);
  gboolean well = msa_library_trash_many_finish(library, room_wait(&away), &moved, &error);
  check_ok(well && moved == clips->len, "%u files are moved %s", moved, error ? error->message : "");
  well = msa_library_restore_many_finish(library, room_wait(&back), &moved, &error);
  check_ok(well && moved == clips->len, "and %u brought back %s", moved, error ? error->message : "");
  guint same = 0;
  for (guint i = 0; i < clips->len; i++) {
    g_autoptr(MsaClip) clip = g_list_model_get_item(G_LIST_MODEL(library), 2 * i);
    same += clip == clips->pdata[i];
  }
  check_ok(count(library) == before && same == clips->len && changes < 20, "to their places, in %d changes",
           changes);
  g_signal_handler_disconnect(library, handler);
}

static gboolean stored(gpointer data) {
  return *(int *)data == 1000;
}

static void stored_cb(GObject *source, GAsyncResult *result, gpointer data) {
  *(int *)data += msa_store_add_clip_finish(result, NULL) != 0;
}

static gpointer close_store(gpointer store) {
  msa_store_close(store);
  return NULL;
}

/* Rows of clips that never were. */
static void check_many(void) {
  struct msa_studio_folders *folders = msa_studio_folders_new();
  struct msa_store *store = msa_store_new(folders);
  g_autoptr(GAsyncResult) result = NULL;
  int done = 0;
  msa_store_open_async(store, room_done, &result);
  g_assert(msa_store_open_finish(room_wait(&result), NULL));
  for (int i = 0; i < 1000; i++) {
    g_autofree char *path = g_strdup_printf("/nowhere/clip-%d.mp4", i);
    const struct msa_clip_row row = {.path = path,
                                     .prompt = (char *)"a red ball rolls to the right",
                                     .model = (char *)"starter",
                                     .kind = (char *)"made",
                                     .params =
                                         (char *)"{\"prompt\":\"a red ball rolls to the right\",\"seed\":1}",
                                     .created = 1000 + i,
                                     .width = 192,
                                     .height = 128,
                                     .frames = 33,
                                     .fps = 12};
    msa_store_add_clip_async(store, &row, stored_cb, &done);
  }
  check_ok(room_until(stored, &done, 60), "a thousand rows are written");
  g_thread_join(g_thread_new("store", close_store, store));
  msa_store_free(store);
  msa_studio_folders_free(folders);
  const gint64 start = g_get_monotonic_time();
  MsaStudio *studio = open_studio();
  const double seconds = (double)(g_get_monotonic_time() - start) / 1e6;
  check_ok(count(msa_studio_get_library(studio)) == 1001 && seconds < 1, "1,001 clips are listed in %.3f s",
           seconds);
  check_trash_many(msa_studio_get_library(studio));
  close_studio(studio);
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  MsaStudio *studio = open_studio();
  MsaLibrary *library = msa_studio_get_library(studio);
  check_look(library);
  check_add(library);
  check_trash(library);
  msa_library_use_prompt(library, "one");
  msa_library_use_prompt(library, "two");
  msa_library_use_prompt(library, "one");
  msa_library_use_prompt(library, "two");
  close_studio(studio);
  check_restart();
  check_many();
  return room_end();
}
