/* What the tests of the whole Studio without its window share. */
#pragma once
#include "msa-studio.h"
#include "room.h"

/* Opens one over the folders of room_begin and waits; NULL: *error. */
MsaStudio *room_try_open(GError **error);
MsaStudio *room_open(void);         /* must work */
void room_close(MsaStudio *studio); /* waits, and checks that nothing of it is left */

/* A tiny clip: 64x64, 5 frames; seed < 0: drawn. */
MsaGenerateParams *room_params(const char *prompt, int steps, gint64 seed);
MsaJob *room_add(MsaStudio *studio, const char *prompt, int steps, gint64 seed);

/* Runs the main loop until it is so, at most for so many seconds. */
gboolean room_reaches(MsaJob *job, enum msa_job_state state, double seconds);
gboolean room_listed(MsaStudio *studio, guint jobs, double seconds);
gboolean room_stepped(MsaJob *job, gint64 done, double seconds); /* at least so many of a phase's steps */
/* Runs the main loop for a while. */
void room_idle(double seconds);
MsaJob *room_nth(MsaStudio *studio, guint position); /* borrowed from the queue */
gboolean room_same_bytes(const char *a, const char *b);
