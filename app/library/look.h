/* Looking into a video file: what it is, and the settings that it carries. Inside the app, off the main
 * thread. */
#pragma once
#include "msa-library.h"
#include "store/store.h"

/* For msa_library_look_async. user_models is where the person's own models lie. NULL and an error for what is
 * no video. */
MsaDropped *msa_look(const char *path, const char *user_models, GError **error);
/* What a row of the store says of the file: all but id, kind and created. FALSE and an error for what is no
 * video. */
gboolean msa_look_row(const char *path, struct msa_clip_row *row, GError **error);
