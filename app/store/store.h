/* The data base of jobs, clips, runs and prompts; inside the app only.
 *
 *   store = msa_store_new (folders);
 *   msa_store_open_async (store, opened_cb, self);
 *   msa_store_add_clip_async (store, &row, added_cb, self);    // id = msa_store_add_clip_finish (result,
 * &error) msa_store_set_starred (store, id, TRUE);
 *   ...
 *   msa_store_close (store);                                   // off the main thread: waits for the thread
 *   msa_store_free (store);
 *
 * One thread of the store does all SQL, in the order in which it was asked. "..._async" calls and those
 * without an answer may come from any thread and return at once; callbacks come in the caller's main context,
 * or g_task's for it. Calls that say "waits" block until the store's thread has done it and are for other
 * threads than the main one. Rows and strings that are given are copied before the call returns. Errors are
 * MSA_ERROR_STORE with a sentence for a person. What fails without a callback is told to the handler of
 * msa_store_on_error. */
#pragma once
#include "core/studio-folders.h"
#include "msa-error.h"
#include "msa-job.h"
#include <gio/gio.h>

struct msa_store;

/* All strings are owned by the row. */
struct msa_clip_row {
  gint64 id;
  char *path, *prompt, *model;
  char *kind;     /* "made", "partial", "sample", "imported" */
  char *params;   /* settings as JSON (msa_generate_params_to_json), NULL: none */
  gint64 created; /* seconds since 1970; 0 when added: now */
  double seconds;
  guint64 bytes;
  int width, height, frames;
  double fps;
  gboolean starred;
};
struct msa_clip_row *msa_clip_row_copy(const struct msa_clip_row *row);
void msa_clip_row_free(struct msa_clip_row *row);
void msa_clip_row_clear(struct msa_clip_row *row); /* frees the strings alone */

/* Starts the thread, touches no file yet. folders are borrowed and outlive the store. */
struct msa_store *msa_store_new(const struct msa_studio_folders *folders);
/* Makes the folders, opens or makes the data base, brings an older one up to date. Refuses, and leaves as it
 * is, one that is damaged, made by a newer version or in use by another Studio. */
void msa_store_open_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data);
gboolean msa_store_open_finish(GAsyncResult *result, GError **error);
/* Does what was asked before, closes the data base, ends the thread. What is asked later fails. Waits. */
void msa_store_close(struct msa_store *store);
void msa_store_free(struct msa_store *store); /* one that is closed */
/* handler is called on the main context. */
void msa_store_on_error(struct msa_store *store, void (*handler)(const char *sentence, gpointer data),
                        gpointer data);

/* Clips. Those in the trash keep their row until they are purged. */
void msa_store_add_clip_async(struct msa_store *store, const struct msa_clip_row *row,
                              GAsyncReadyCallback callback, gpointer data);
gint64 msa_store_add_clip_finish(GAsyncResult *result, GError **error); /* its id; 0: failed */
/* GPtrArray of struct msa_clip_row, newest first, without those in the trash; owned by the caller. */
void msa_store_list_clips_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data);
GPtrArray *msa_store_list_clips_finish(GAsyncResult *result, GError **error);
void msa_store_set_starred(struct msa_store *store, gint64 clip, gboolean starred);
/* trashed: where the file went (any text that the library understands), NULL: it is back. */
void msa_store_set_trashed_async(struct msa_store *store, gint64 clip, const char *trashed,
                                 GAsyncReadyCallback callback, gpointer data);
gboolean msa_store_set_trashed_finish(GAsyncResult *result, GError **error);

/* Prompts, each once, newest first. The last 200 are kept. */
void msa_store_use_prompt(struct msa_store *store, const char *prompt);
void msa_store_list_prompts_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data);
char **msa_store_list_prompts_finish(GAsyncResult *result, GError **error); /* NULL-terminated; g_strfreev */
