/* The check of a folder of clips before training: what can be used, and why the rest cannot. */
#pragma once
#include <gio/gio.h>

#define MSA_TYPE_DATASET_CLIP (msa_dataset_clip_get_type())
G_DECLARE_FINAL_TYPE(MsaDatasetClip, msa_dataset_clip, MSA, DATASET_CLIP, GObject)
/* Properties: "caption" (string, "" if missing), "usable" (gboolean), "reason" (string or NULL). */
const char *msa_dataset_clip_get_path(MsaDatasetClip *clip);
const char *msa_dataset_clip_get_name(MsaDatasetClip *clip);
int msa_dataset_clip_get_width(MsaDatasetClip *clip);
int msa_dataset_clip_get_height(MsaDatasetClip *clip);
gint64 msa_dataset_clip_get_frames(MsaDatasetClip *clip);
double msa_dataset_clip_get_fps(MsaDatasetClip *clip);
const char *msa_dataset_clip_get_caption(MsaDatasetClip *clip);
gboolean msa_dataset_clip_get_usable(MsaDatasetClip *clip);
const char *msa_dataset_clip_get_reason(MsaDatasetClip *clip);
/* Writes NAME.txt beside the clip (safely: temp, sync, rename); the property follows when it is on disk. */
void msa_dataset_clip_set_caption_async(MsaDatasetClip *clip, const char *caption,
                                        GAsyncReadyCallback callback, gpointer data);
gboolean msa_dataset_clip_set_caption_finish(MsaDatasetClip *clip, GAsyncResult *result, GError **error);

/* Decodes every clip of the folder to count frames; rows are appended to `rows` (a GListStore of
 * MsaDatasetClip) as they are known. Finish gives an error if no clip can be used. */
void msa_dataset_check_async(const char *folder, const char *missing_caption, GListStore *rows,
                             GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data);
gboolean msa_dataset_check_finish(GAsyncResult *result, GError **error);
