/* Inside the app: what the library changes about its clips. Main thread only. */
#pragma once
#include "core/rooms.h"

void msa_clip_set_starred(MsaClip *clip, gboolean starred);
void msa_clip_set_missing(MsaClip *clip, gboolean missing);
/* Where the file went when it was trashed (a location of trash.h), or NULL. Borrowed. */
const char *msa_clip_get_trashed(MsaClip *clip);
void msa_clip_set_trashed(MsaClip *clip, const char *location);
