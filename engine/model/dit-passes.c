/* A forward and a backward pass: batches go through the network shard after shard, each lent by the source if
 * there is one. In a shard they follow each other in their order, and so does what they add to its gradients.
 */
#include <assert.h>
#include <string.h>

#include "model/dit-private.h"

static int stopped(struct ms_dit *dit, struct ms_error *error) {
  return ms_pool_stopped(dit->compute->pool, "cancelled", error);
}

/* Ends the loan of a shard; returns the first error. */
static int end_shard(struct ms_dit *dit, enum ms_dit_pass pass, int shard, int code, struct ms_error *error) {
  struct ms_error dropped = {0};
  int ended =
      dit->source.end ? dit->source.end(dit->source.data, pass, shard, code < 0 ? &dropped : error) : 0;
  return code < 0 ? code : ended;
}

/* Makes a shard's weights usable and says what is lent with it. After 0 end_shard must follow. */
static int begin_shard(struct ms_dit *dit, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
                       struct ms_error *error) {
  int code = stopped(dit, error);
  memset(loan, 0, sizeof *loan);
  if (code < 0 || !dit->source.begin)
    return code;
  code = dit->source.begin(dit->source.data, pass, shard, loan, error);
  if (code < 0)
    return code;
  if (shard < 0 && pass == MS_PASS_FORWARD) /* the backward pass finds it as it is now */
    ms_dit_bind(dit, shard, loan->values, dit->training);
  else if (shard >= 0 && shard < dit->config.layers)
    ms_dit_bind(dit, shard, loan->values, pass == MS_PASS_BACKWARD);
  code = stopped(dit, error);
  return code < 0 ? end_shard(dit, pass, shard, code, error) : 0;
}

/* A batch's input or output of a layer; `lent` for all batches, NULL: in own memory, before layer `layer`. */
static float *stream(const struct ms_dit *dit, float *lent, int layer, int batch) {
  const struct dit_run *run = &dit->run;
  int64_t size = run->rows * dit->config.dim, place = run->keep ? layer * (int64_t)run->count : 0;
  assert(!lent == !run->lent);
  return lent ? lent + batch * size : run->saved + (place + batch) * size;
}

/* Gradients of a shard as seen from the beginning of the list of parameters. */
static float *gradients(const struct ms_dit *dit, int shard, const struct ms_dit_loan *loan, float *grad) {
  int64_t begin, count;
  if (!dit->source.begin)
    return grad;
  ms_dit_shard_range(dit, shard, &begin, &count);
  return loan->gradient - begin;
}

/* The layer's view of the buffers. On the way through (not `recomputed`) only what one stage hands to the
 * next is written; the backward pass computes the layer again. */
static struct dit_acts layer_acts(struct ms_dit *dit, int layer, int recomputed, float *x, float *y) {
  struct dit_run *run = &dit->run;
  struct dit_acts acts = run->acts;
  if (!recomputed) {
    struct dit_acts lean = {.qkv = acts.qkv, .q = acts.qkv};
    if (!run->whole &&
        run->attention[layer].kind == MS_ATTENTION_DSA) /* the convolution reads beyond a block */
      lean.u = acts.u;
    if (!run->whole && run->attention[layer].kind == MS_ATTENTION_WINDOW)
      lean.attended = acts.attended;
    acts = lean;
  }
  if (acts.q)
    acts.k = acts.q + dit->config.dim;
  acts.x = x;
  acts.y = y;
  if (acts.z && run->attention[layer].kind == MS_ATTENTION_DSA &&
      ms_dit_offset_width(dit, run, layer) == dit->layers[layer].offset_out.n)
    acts.z_cut = acts.z;
  return acts;
}

static void note_offsets(struct ms_dit *dit, int layer) {
  struct dit_run *run = &dit->run;
  double sum = 0;
  dit->offset_means[layer] = 0;
  if (run->attention[layer].kind != MS_ATTENTION_DSA)
    return;
  for (int64_t i = 0; i < run->blocks.blocks; i++)
    sum += run->offset_sum[i];
  dit->offset_means[layer] = (float)(sum / (double)ms_dit_offset_watched(run));
}

/* Text, time and patches. */
static int enter(struct ms_dit *dit, const struct ms_dit_batch *batches, int count, int keep,
                 struct ms_error *error) {
  struct ms_dit_loan loan;
  int code = begin_shard(dit, MS_PASS_FORWARD, -1, &loan, error);
  if (code < 0)
    return code;
  code = ms_dit_begin(dit, batches, count, keep, loan.y != NULL, error);
  if (code == 0)
    code = ms_dit_text_embed(dit, batches, error);
  if (code == 0) {
    ms_dit_fill_tables(dit);
    for (int b = 0; b < count; b++) {
      ms_dit_select(dit, b);
      ms_dit_time(dit, &batches[b]);
      ms_dit_embed(dit, batches[b].latents, stream(dit, loan.y, 0, b));
    }
  }
  return end_shard(dit, MS_PASS_FORWARD, -1, code, error);
}

static int layer_forward(struct ms_dit *dit, const struct ms_dit_batch *batch, int b, int layer,
                         const struct ms_dit_loan *loan, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct dit_text *text = run->each[b].used;
  struct dit_acts acts =
      layer_acts(dit, layer, 0, stream(dit, loan->x, layer, b), stream(dit, loan->y, layer + 1, b));
  int code = stopped(dit, error);
  if (code < 0)
    return code;
  ms_dit_select(dit, b);
  ms_dit_modulation(dit, layer);
  ms_dit_text_keys(dit, text, layer);
  ms_dit_layer_forward(dit, layer, text, &acts);
  note_offsets(dit, layer);
  if (atomic_load(&run->bad) && !stopped(dit, NULL))
    return ms_error_set(error, MS_ENOTFINITE,
                        "a value that is not finite came out of layer %d of %d of the transformer", layer + 1,
                        dit->config.layers);
  if (batch->layer_done)
    batch->layer_done(batch->layer_data, layer);
  return 0;
}

static int leave(struct ms_dit *dit, float *const *velocities, struct ms_error *error) {
  struct ms_dit_loan loan;
  int layers = dit->config.layers, code = begin_shard(dit, MS_PASS_FORWARD, layers, &loan, error);
  if (code < 0)
    return code;
  for (int b = 0; b < dit->run.count; b++) {
    ms_dit_select(dit, b);
    ms_dit_head(dit, stream(dit, loan.x, layers, b), velocities[b]);
  }
  return end_shard(dit, MS_PASS_FORWARD, layers, stopped(dit, error), error);
}

int ms_dit_forward_all(struct ms_dit *dit, const struct ms_dit_batch *batches, int count, int keep,
                       float *const *velocities, struct ms_error *error) {
  int code;
  assert(dit->prepared && (!keep || dit->training));
  dit->run.ready = 0;
  if ((code = ms_dit_check_batches(dit, batches, count, error)) < 0 ||
      (code = enter(dit, batches, count, keep, error)) < 0)
    return code;
  for (int i = 0; i < dit->config.layers; i++) {
    struct ms_dit_loan loan;
    if ((code = begin_shard(dit, MS_PASS_FORWARD, i, &loan, error)) < 0)
      return code;
    for (int b = 0; b < count && code == 0; b++)
      code = layer_forward(dit, &batches[b], b, i, &loan, error);
    if ((code = end_shard(dit, MS_PASS_FORWARD, i, code, error)) < 0)
      return code;
  }
  if ((code = stopped(dit, error)) < 0)
    return code;
  ms_dit_text_complete(dit, batches);
  if ((code = leave(dit, velocities, error)) < 0)
    return code;
  if (atomic_load(&dit->run.bad))
    return ms_error_set(error, MS_ENOTFINITE,
                        "a value that is not finite came out of the last matrix of the transformer");
  dit->run.ready = keep;
  return 0;
}

/* The head's shift and scale: sums over each sample's segments. */
static void sum_head(struct ms_dit *dit) {
  struct dit_run *run = &dit->run;
  int64_t dim = dit->config.dim, each = run->blocks.per_sample;
  memset(run->time.dhead, 0, (size_t)(run->samples * 2 * dim) * sizeof(float));
  for (int64_t i = 0; i < run->samples; i++)
    dit->compute->norm.column_sum(run->grads.segment_sums + i * each * 6 * dim, 6 * dim, 2 * dim, each,
                                  run->time.dhead + i * 2 * dim);
}

static int leave_backward(struct ms_dit *dit, const float *const *dvelocities, float *grad,
                          struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct ms_dit_loan loan;
  int layers = dit->config.layers, code = begin_shard(dit, MS_PASS_BACKWARD, layers, &loan, error);
  if (code < 0)
    return code;
  grad = gradients(dit, -1, &loan, grad);
  for (int b = 0; b < run->count; b++) {
    ms_dit_select(dit, b);
    memset(run->grads.dtime, 0, (size_t)(run->samples * 6 * dit->config.dim) * sizeof(float));
    ms_dit_head_backward(dit, stream(dit, loan.x, layers, b), dvelocities[b], run->each[b].dx, grad);
    sum_head(dit);
  }
  return end_shard(dit, MS_PASS_BACKWARD, layers, stopped(dit, error), error);
}

static int layer_backward(struct ms_dit *dit, int layer, float *grad, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct ms_dit_loan loan;
  int code = begin_shard(dit, MS_PASS_BACKWARD, layer, &loan, error);
  if (code < 0)
    return code;
  grad = gradients(dit, layer, &loan, grad);
  for (int b = 0; b < run->count && (code = stopped(dit, error)) == 0; b++) {
    struct dit_batch_run *batch = &run->each[b];
    struct dit_acts acts = layer_acts(dit, layer, 1, stream(dit, loan.x, layer, b), NULL);
    float *dx = batch->dx;
    ms_dit_select(dit, b);
    ms_dit_modulation(dit, layer);
    ms_dit_text_keys(dit, batch->used, layer);
    ms_dit_layer_backward(dit, layer, batch->used, &acts, dx, run->grads.spare, grad);
    batch->dx = run->grads.spare;
    run->grads.spare = dx;
  }
  return end_shard(dit, MS_PASS_BACKWARD, layer, code, error);
}

static int enter_backward(struct ms_dit *dit, const struct ms_dit_batch *batches, float *grad,
                          float *dlatents, float *const *dtext, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct ms_dit_loan loan;
  int code = begin_shard(dit, MS_PASS_BACKWARD, -1, &loan, error);
  if (code < 0)
    return code;
  grad = gradients(dit, -1, &loan, grad);
  for (int b = 0; b < run->count && run->outward; b++) {
    ms_dit_select(dit, b);
    ms_dit_embed_backward(dit, batches[b].latents, run->each[b].dx, grad, dlatents);
    ms_dit_text_backward(dit, &batches[b], run->each[b].used, grad, dtext);
    ms_dit_time_backward(dit, &batches[b], run->time.dhead, grad, dtext);
  }
  return end_shard(dit, MS_PASS_BACKWARD, -1, stopped(dit, error), error);
}

static int backward(struct ms_dit *dit, const struct ms_dit_batch *batches, int count,
                    const float *const *dvelocities, float *grad, float *dlatents, float *const *dtext,
                    struct ms_error *error) {
  struct dit_run *run = &dit->run;
  int code;
  if (!run->ready || count != run->count || batches->samples != run->samples ||
      memcmp(batches->lattice, run->latent, sizeof run->latent))
    return ms_error_set(error, MS_EUSAGE, "a backward pass needs a forward pass of the same batch before it");
  run->ready = 0;
  run->outward = dlatents || dtext || ms_dit_is_outer_trained(dit);
  code = leave_backward(dit, dvelocities, grad, error);
  for (int i = dit->config.layers - 1; i >= 0 && code == 0; i--)
    code = layer_backward(dit, i, grad, error);
  return code < 0 ? code : enter_backward(dit, batches, grad, dlatents, dtext, error);
}

int ms_dit_backward_all(struct ms_dit *dit, const struct ms_dit_batch *batches, int count,
                        const float *const *dvelocities, float *grad, struct ms_error *error) {
  return backward(dit, batches, count, dvelocities, grad, NULL, NULL, error);
}

int ms_dit_forward(struct ms_dit *dit, const struct ms_dit_batch *batch, int keep, float *velocity,
                   struct ms_error *error) {
  return ms_dit_forward_all(dit, batch, 1, keep, &velocity, error);
}

int ms_dit_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, const float *dvelocity, float *grad,
                    float *dlatents, float *const *dtext, struct ms_error *error) {
  return backward(dit, batch, 1, &dvelocity, grad, dlatents, dtext, error);
}
