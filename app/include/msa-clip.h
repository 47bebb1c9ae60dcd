/* A clip of the library, as the main thread sees it. */
#pragma once
#include "msa-params.h"

#define MSA_TYPE_CLIP (msa_clip_get_type())
G_DECLARE_FINAL_TYPE(MsaClip, msa_clip, MSA, CLIP, GObject)

/* Properties (read only): "id" (int64), "path", "prompt", "starred" (gboolean), "missing" (gboolean: the file
 * is no longer there). */
gint64 msa_clip_get_id(MsaClip *clip);
const char *msa_clip_get_path(MsaClip *clip);
const char *msa_clip_get_prompt(MsaClip *clip);
const char *msa_clip_get_model(MsaClip *clip);
const char *
msa_clip_get_kind(MsaClip *clip);           /* "made", "partial", "sample" (of a training run), "imported" */
gint64 msa_clip_get_created(MsaClip *clip); /* seconds since 1970 */
double msa_clip_get_seconds(MsaClip *clip); /* that it took to make; 0: not known */
guint64 msa_clip_get_bytes(MsaClip *clip);
int msa_clip_get_width(MsaClip *clip);
int msa_clip_get_height(MsaClip *clip);
int msa_clip_get_frames(MsaClip *clip);
double msa_clip_get_fps(MsaClip *clip);
gboolean msa_clip_get_starred(MsaClip *clip);
gboolean msa_clip_get_missing(MsaClip *clip);
/* All settings with the seed that was used; NULL for a clip that carries none. Borrowed. */
const MsaGenerateParams *msa_clip_get_params(MsaClip *clip);
