#include "queue/estimate.h"

#include <math.h>

#include "msa-run.h"
#include "runs/run-private.h"

#define CLIPS_LOOKED_AT 200 /* the newest: the machine and the program change */

struct shape {
  const char *model;
  double pixels, steps, passes; /* passes of one step */
};

static struct shape shape_of(MsaModels *models, const MsaGenerateParams *params) {
  MsaModel *model = models ? msa_models_find(models, params->model ? params->model : "starter") : NULL;
  const double width = params->width ? params->width : model ? msa_model_get_width(model) : 0;
  const double height = params->height ? params->height : model ? msa_model_get_height(model) : 0;
  const double frames = params->frames ? params->frames : model ? msa_model_get_frames(model) : 0;
  const double guidance = params->guidance >= 0 ? params->guidance
                          : model               ? msa_model_get_guidance(model)
                                                : 2;
  return (struct shape){.model = params->model && *params->model ? params->model : "starter",
                        .pixels = width * height * frames,
                        .steps = params->steps ? params->steps
                                 : model       ? msa_model_get_steps(model)
                                               : 0,
                        .passes = guidance == 1 ? 1 : 2};
}

static double work_of(const struct shape *shape) {
  return shape->pixels * shape->steps * shape->passes;
}

double msa_estimate_generate(MsaLibrary *library, MsaModels *models, const MsaGenerateParams *params) {
  const struct shape wanted = shape_of(models, params);
  const double work = work_of(&wanted);
  const guint count = MIN(g_list_model_get_n_items(G_LIST_MODEL(library)), CLIPS_LOOKED_AT);
  double sum = 0, nearest = INFINITY, scaled = -1;
  int same = 0;
  if (!(work > 0))
    return -1;
  for (guint i = 0; i < count; i++) {
    g_autoptr(MsaClip) clip = g_list_model_get_item(G_LIST_MODEL(library), i);
    const MsaGenerateParams *made = msa_clip_get_params(clip);
    const double seconds = msa_clip_get_seconds(clip);
    if (!made || seconds <= 0 || g_strcmp0(msa_clip_get_kind(clip), "made"))
      continue;
    const struct shape shape = shape_of(models, made);
    const double distance = fabs(log(work_of(&shape) / work));
    if (g_strcmp0(shape.model, wanted.model) || !isfinite(distance))
      continue;
    if (shape.pixels == wanted.pixels && shape.steps == wanted.steps && shape.passes == wanted.passes) {
      sum += seconds;
      same++;
    } else if (distance < nearest) {
      nearest = distance;
      scaled = seconds * work / work_of(&shape);
    }
  }
  return same ? sum / same : scaled;
}

double msa_estimate_train(GListModel *runs, const MsaTrainParams *params) {
  for (guint i = 0; i < g_list_model_get_n_items(runs); i++) {
    g_autoptr(MsaRun) run = g_list_model_get_item(runs, i);
    const MsaTrainParams *other = msa_run_get_params(run);
    const double per_step = msa_run_get_seconds_per_step(run);
    if (per_step > 0 && other->width == params->width && other->height == params->height &&
        other->frames == params->frames && other->batch == params->batch &&
        other->accumulate == params->accumulate && !g_strcmp0(other->model, params->model) &&
        !g_strcmp0(other->method, params->method))
      return per_step * (double)params->steps;
  }
  return -1;
}
