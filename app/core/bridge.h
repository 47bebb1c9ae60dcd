/* Between a worker and the main thread: the worker says how far it is, the main thread says stop.
 *
 * Of what the worker tells only the latest is carried over, by at most one pending callback. Reference
 * counted; inside the app only. */
#pragma once
#include <stdatomic.h>
#include "msa-export.h"

struct msa_bridge;
/* cancellable and progress may be NULL. progress is called in the thread's default main context of now. */
struct msa_bridge *msa_bridge_new(GCancellable *cancellable, MsaExportProgress progress, gpointer data);
void msa_bridge_unref(struct msa_bridge *bridge);
/* Non-zero once the cancellable is cancelled; lives as long as the bridge. */
const atomic_int *msa_bridge_cancel(const struct msa_bridge *bridge);
/* Any thread. seconds_left < 0: not known. */
void msa_bridge_tell(struct msa_bridge *bridge, double fraction, double seconds_left);
