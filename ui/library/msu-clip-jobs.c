#include "library/msu-clip-jobs.h"

gboolean msu_clip_make_again(MsaQueue *queue, MsaClip *clip) {
  const MsaGenerateParams *params = msa_clip_get_params(clip);
  if (!params)
    return FALSE;
  g_autoptr(MsaJob) job = msa_queue_add_generate(queue, params);
  return TRUE;
}

gboolean msu_clip_make_variations(MsaQueue *queue, MsaClip *clip, int count) {
  if (!msa_clip_get_params(clip))
    return FALSE;
  for (int i = 0; i < count; i++) {
    g_autoptr(MsaGenerateParams) params = msa_generate_params_copy(msa_clip_get_params(clip));
    gint64 seed = params->seed;
    while (seed == params->seed)
      seed = g_random_int();
    params->seed = seed;
    g_autoptr(MsaJob) job = msa_queue_add_generate(queue, params);
  }
  return TRUE;
}
