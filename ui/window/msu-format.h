/* Numbers as people read them. All strings are the caller's, translated, with their unit. */
#pragma once
#include "msa-job.h"

/* "12 s", "2 min", "1 h 12 min", "3 d 4 h"; below half a second "under 1 s". */
char *msu_format_seconds(double seconds);
/* "640 KB", "1.1 GB", with powers of 1024 as the command line counts them. */
char *msu_format_bytes(guint64 bytes);
/* What a job does and how long it still takes: "Step 7 of 24, 12 s left", "Waiting", "Paused at step 7 of
 * 24". */
char *msu_format_job(MsaJob *job);
/* What the engine's word for a phase means: "decode" is "Decoding". */
char *msu_format_phase(const char *phase);
/* "320 × 192, 97 frames, 4.0 s" */
char *msu_format_clip(MsaClip *clip);
