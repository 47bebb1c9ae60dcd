/* The sound of a clip, played beside its pictures.
 *
 * A worker thread owns a pipeline of its own, so that nothing here blocks: opening a device can take seconds.
 * Where there is no device the pipeline plays into nothing. */
#pragma once
#include <glib.h>

struct msu_sound;
/* Nothing is opened before the first play. */
struct msu_sound *msu_sound_new(const char *path);
/* Returns at once; the thread ends soon after. */
void msu_sound_free(struct msu_sound *sound);
/* From a time of the clip on, in seconds. */
void msu_sound_play(struct msu_sound *sound, double from);
void msu_sound_pause(struct msu_sound *sound);
