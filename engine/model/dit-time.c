/* The time embedding, the pooled text beside it, and the modulation of a layer: one row a sample, in float32.
 */
#include <math.h>
#include <string.h>

#include "model/dit-private.h"

#define BASE 10000.0 /* of the sinusoids, as in Wan */

/* Cosines first. */
static void fill_sinusoid(double t, int n, float *out) {
  int half = n / 2;
  for (int i = 0; i < half; i++) {
    double angle = t * pow(BASE, -(double)i / half);
    out[i] = (float)cos(angle);
    out[half + i] = (float)sin(angle);
  }
}

static void apply(struct ms_dit *dit, const struct dit_matrix *matrix, const float *x, float *y,
                  enum msk_act act, float *raw, const float *residual) {
  struct dit_linear linear = {.matrix = matrix,
                              .x = x,
                              .rows = dit->run.samples,
                              .y = y,
                              .act = act,
                              .raw = raw,
                              .residual = residual};
  ms_dit_linear(dit, &linear);
}

void ms_dit_modulation(struct ms_dit *dit, int layer) {
  const struct dit_time *time = &dit->run.time;
  int64_t n = 6 * (int64_t)dit->config.dim;
  const float *table = dit->vectors[dit->layers[layer].modulation];
  for (int s = 0; s < dit->run.samples; s++)
    for (int64_t j = 0; j < n; j++)
      time->modulation[s * n + j] = table[j] + time->e0[s * n + j];
}

void ms_dit_time(struct ms_dit *dit, const struct ms_dit_batch *batch) {
  const struct ms_dit_config *c = &dit->config;
  struct dit_run *run = &dit->run;
  struct dit_time *time = &run->time;
  const float *table = dit->vectors[dit->head_modulation];
  for (int s = 0; s < run->samples; s++)
    fill_sinusoid(batch->timesteps[s], c->freq_dim, time->sinusoid + (int64_t)s * c->freq_dim);
  apply(dit, &dit->time0, time->sinusoid, time->first, MSK_ACT_SILU, time->first_raw, NULL);
  apply(dit, &dit->time2, time->first, time->e, MSK_ACT_NONE, NULL, NULL);
  if (c->pooled_text) {
    for (int s = 0; s < run->samples; s++) {
      float *to = time->pooled_text + (int64_t)s * c->text_dim;
      memset(to, 0, (size_t)c->text_dim * sizeof *to);
      if (batch->text_rows[s] > 0)
        memcpy(to, batch->text[s], (size_t)c->text_dim * sizeof *to);
    }
    apply(dit, &dit->pooled0, time->pooled_text, time->pooled, MSK_ACT_SILU, time->pooled_raw, NULL);
    apply(dit, &dit->pooled2, time->pooled, time->e, MSK_ACT_NONE, NULL, time->e);
  }
  dit->compute->norm.silu(time->e, time->e_act, (int64_t)run->samples * c->dim);
  apply(dit, &dit->projection, time->e_act, time->e0, MSK_ACT_NONE, NULL, NULL);
  for (int64_t s = 0; s < run->samples; s++)
    for (int64_t j = 0; j < 2 * c->dim; j++)
      time->head[s * 2 * c->dim + j] = table[j] + time->e[s * c->dim + j % c->dim];
}

/* dhead: [S,2C] gradient of the head's shift and scale, used as working memory; grads.dtime holds that of the
 * projection. */
void ms_dit_time_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, float *dhead, float *grad,
                          float *const *dtext) {
  const struct ms_dit_config *c = &dit->config;
  const struct msk_norm_ops *norm = &dit->compute->norm;
  struct dit_run *run = &dit->run;
  struct dit_time *time = &run->time;
  int64_t dim = c->dim, n = run->samples * dim;
  float *de = time->de, *dhidden = time->dhidden;
  if (ms_dit_is_trained(dit, dit->head_modulation))
    norm->column_sum(dhead, 2 * dim, 2 * dim, run->samples,
                     grad + dit->params.list[dit->head_modulation].offset);
  ms_dit_linear_backward(dit, &dit->projection, time->e_act, MSK_F32, run->grads.dtime, run->samples, de, 0,
                         grad);
  norm->silu_backward(time->e, de, de, n);
  for (int64_t s = 0; s < run->samples; s++)
    for (int64_t j = 0; j < dim; j++)
      de[s * dim + j] += dhead[s * 2 * dim + j] + dhead[s * 2 * dim + dim + j];
  ms_dit_linear_backward(dit, &dit->time2, time->first, MSK_F32, de, run->samples, dhidden, 0, grad);
  norm->silu_backward(time->first_raw, dhidden, dhidden, n);
  ms_dit_linear_backward(dit, &dit->time0, time->sinusoid, MSK_F32, dhidden, run->samples, NULL, 0, grad);
  if (!c->pooled_text)
    return;
  ms_dit_linear_backward(dit, &dit->pooled2, time->pooled, MSK_F32, de, run->samples, dhidden, 0, grad);
  norm->silu_backward(time->pooled_raw, dhidden, dhidden, n);
  ms_dit_linear_backward(dit, &dit->pooled0, time->pooled_text, MSK_F32, dhidden, run->samples,
                         dtext ? time->dpooled : NULL, 0, grad);
  for (int s = 0; s < run->samples && dtext; s++)
    if (batch->text_rows[s] > 0)
      norm->add(time->dpooled + (int64_t)s * c->text_dim, dtext[s], c->text_dim);
}
