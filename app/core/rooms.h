/* What the rooms of the app need of each other and the window does not see. Main thread only, nothing blocks.
 */
#pragma once
#include "core/studio-folders.h"
#include "msa-clip.h"
#include "msa-library.h"
#include "msa-models.h"
#include "msa-planner.h"
#include "store/store.h"

/* Strings are copied; the row's settings are read into params (NULL where there are none or they are bad). */
MsaClip *msa_clip_new(const struct msa_clip_row *row);

/* Store and folders are borrowed and outlive the object. */
MsaLibrary *msa_library_new(struct msa_store *store, const struct msa_studio_folders *folders);
/* Before the store is freed: what is still on its way ends with an error. */
void msa_library_close(MsaLibrary *library);
/* Once, after the store is open: rows newest first, prompts newest first and NULL-terminated. */
void msa_library_fill(MsaLibrary *library, GPtrArray *rows, const char *const *prompts);
/* A clip whose row is in the store already: it becomes the first of the list. Borrowed from the list. */
MsaClip *msa_library_insert(MsaLibrary *library, const struct msa_clip_row *row);
/* A clip that a training run made: looked at off the main thread, put into the store as kind "sample" and
 * into the list. */
void msa_library_add_sample(MsaLibrary *library, const char *path, const char *prompt, const char *model);
/* A prompt was used: becomes the newest, in the store too. */
void msa_library_use_prompt(MsaLibrary *library, const char *prompt);

MsaModels *msa_models_new(const struct msa_studio_folders *folders); /* starts to look at the folders */
MsaPlanner *msa_planner_new(const struct msa_studio_folders *folders, MsaModels *models);
/* Seconds that a whole job (one of the two) will take, < 0: not known; beside what the window asks for. */
void msa_planner_estimate_async(MsaPlanner *planner, const MsaGenerateParams *generate,
                                const MsaTrainParams *train, GAsyncReadyCallback callback, gpointer data);
double msa_planner_estimate_finish(GAsyncResult *result);
