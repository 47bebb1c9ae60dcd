/* New jobs from a clip of the library. */
#pragma once
#include "msa-clip.h"
#include "msa-queue.h"

/* With the very same settings and seed. FALSE: the clip carries none. */
gboolean msu_clip_make_again(MsaQueue *queue, MsaClip *clip);
/* The same with `count` other seeds. */
gboolean msu_clip_make_variations(MsaQueue *queue, MsaClip *clip, int count);
