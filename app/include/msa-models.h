/* The models that are here: those that came with the program, the person's own, what training runs made. */
#pragma once
#include "msa-export.h"
#include <gio/gio.h>

#define MSA_TYPE_MODEL (msa_model_get_type())
G_DECLARE_FINAL_TYPE(MsaModel, msa_model, MSA, MODEL, GObject)
/* Properties: "name", "verdict" (string: "runs here: about 6 s a clip", "needs 11 GB more memory"), "fits".
 */
const char *msa_model_get_name(MsaModel *model);
const char *msa_model_get_folder(MsaModel *model);
const char *msa_model_get_family(MsaModel *model);
const char *msa_model_get_license(MsaModel *model);
const char *msa_model_get_card(MsaModel *model); /* text of its README.md, "" if none */
gint64 msa_model_get_parameters(MsaModel *model);
guint64 msa_model_get_bytes(MsaModel *model);
int msa_model_get_width(MsaModel *model); /* of its default clip */
int msa_model_get_height(MsaModel *model);
int msa_model_get_frames(MsaModel *model);
int msa_model_get_steps(MsaModel *model);
double msa_model_get_fps(MsaModel *model);
double msa_model_get_guidance(MsaModel *model);
const char *msa_model_get_verdict(MsaModel *model);
gboolean msa_model_get_fits(MsaModel *model);
gboolean msa_model_get_own(MsaModel *model);     /* in the person's folder, so it can be removed */
gboolean msa_model_get_trained(MsaModel *model); /* the result of a training run, which keeps it */
/* What a job is to call it by ("model" of its parameters): its name, or its folder where a name is not
 * enough.
 */
const char *msa_model_get_reference(MsaModel *model);
/* Prompts that show what it knows, NULL-terminated, at least three for the starter ("examples" of its
 * model.json); and sizes it was trained at as "192x128" (from its model.json, may be empty). */
const char *const *msa_model_get_examples(MsaModel *model);
const char *const *msa_model_get_sizes(MsaModel *model);

/* A GListModel of MsaModel, the starter first. */
#define MSA_TYPE_MODELS (msa_models_get_type())
G_DECLARE_FINAL_TYPE(MsaModels, msa_models, MSA, MODELS, GObject)
void msa_models_reload(MsaModels *models);                      /* looks at the folders again */
MsaModel *msa_models_find(MsaModels *models, const char *name); /* borrowed; by reference or folder; NULL */
/* Copies a model folder (or the folder of the file that is named) into the person's own after checking every
 * tensor. A name that is taken gets a number. progress as in msa-export.h, may be NULL. A cancelled or failed
 * import leaves nothing. */
void msa_models_import_async(MsaModels *models, const char *from, MsaExportProgress progress,
                             gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer data);
gboolean msa_models_import_finish(MsaModels *models, GAsyncResult *result, GError **error);
/* Moves one of the person's own to the trash. Finish gives where it is there, for restore (free it), or NULL.
 */
void msa_models_remove_async(MsaModels *models, MsaModel *model, GAsyncReadyCallback callback, gpointer data);
char *msa_models_remove_finish(MsaModels *models, GAsyncResult *result, GError **error);
/* Brings it back to the folder where it was. */
void msa_models_restore_async(MsaModels *models, const char *location, const char *folder,
                              GAsyncReadyCallback callback, gpointer data);
gboolean msa_models_restore_finish(MsaModels *models, GAsyncResult *result, GError **error);
