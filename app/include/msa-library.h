/* The library: every clip that was made or added, newest first. A GListModel of MsaClip, filled from the
 * store; thousands of clips cost a row each until they are looked at. Main thread only, nothing blocks. */
#pragma once
#include "msa-clip.h"
#include <gio/gio.h>

#define MSA_TYPE_LIBRARY (msa_library_get_type())
G_DECLARE_FINAL_TYPE(MsaLibrary, msa_library, MSA, LIBRARY, GObject)

void msa_library_set_starred(MsaLibrary *library, MsaClip *clip, gboolean starred);
/* Moves the clip out of the list at once and its file to the trash; on failure the clip is in the list again.
 * Restore undoes both. */
void msa_library_trash_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback, gpointer data);
gboolean msa_library_trash_finish(MsaLibrary *library, GAsyncResult *result, GError **error);
void msa_library_restore_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback,
                               gpointer data);
gboolean msa_library_restore_finish(MsaLibrary *library, GAsyncResult *result, GError **error);
/* The same for many clips (GPtrArray of MsaClip, not kept): the list changes once for them all. Finish tells
 * in *moved (may be NULL) how many were, and returns FALSE with the first error if there was one. Moves take
 * turns: a restore that is asked for while its clips are on their way brings all of them back. */
void msa_library_trash_many_async(MsaLibrary *library, GPtrArray *clips, GAsyncReadyCallback callback,
                                  gpointer data);
gboolean msa_library_trash_many_finish(MsaLibrary *library, GAsyncResult *result, guint *moved,
                                       GError **error);
void msa_library_restore_many_async(MsaLibrary *library, GPtrArray *clips, GAsyncReadyCallback callback,
                                    gpointer data);
gboolean msa_library_restore_many_finish(MsaLibrary *library, GAsyncResult *result, guint *moved,
                                         GError **error);
/* Looks into a file that was dropped: the settings with which it was made, if it carries any, and what of
 * them this machine cannot reproduce (`notes`: sentences, NULL-terminated, may be empty). Does not add it. */
typedef struct MsaDropped {
  MsaGenerateParams *params; /* NULL: a clip without settings */
  char **notes;
  int width, height, frames;
  double fps;
} MsaDropped;
void msa_dropped_free(MsaDropped *dropped);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MsaDropped, msa_dropped_free)
void msa_library_look_async(MsaLibrary *library, const char *path, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer data);
MsaDropped *msa_library_look_finish(MsaLibrary *library, GAsyncResult *result, GError **error);
/* Adds a file that lies elsewhere; the file stays where it is. */
void msa_library_add_async(MsaLibrary *library, const char *path, GAsyncReadyCallback callback,
                           gpointer data);
MsaClip *msa_library_add_finish(MsaLibrary *library, GAsyncResult *result, GError **error);
/* The last prompts, newest first, without repeats, NULL-terminated; the library's own, valid until its
 * "prompts-changed" signal. */
const char *const *msa_library_get_prompts(MsaLibrary *library);
