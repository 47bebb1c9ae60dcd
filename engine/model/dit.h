/* The video diffusion transformer: Wan-compatible blocks with a choice of self-attention (dense, window,
 * 3D-DSA).
 *
 *   ms_dit_open (&dit, &compute, &config, &error);           // lists the parameters, allocates nothing
 *   struct ms_params *params = ms_dit_params (dit);          // load or randomize, float32 or bf16
 *   ms_dit_prepare (dit, MSK_PRECISION_BF16, 0, &error);     // packs weights; again after every change
 *   ms_dit_forward (dit, &batch, 0, velocity, &error);
 *
 * Training: prepare with training = 1; forward with `keep` set stores each layer's input; ms_dit_backward
 * recomputes each layer from it and adds to the gradients, those of frozen parameters left out (their `kind`
 * may be changed between passes). All samples of a batch share one latent lattice; rows of all samples go
 * through a product together. Results do not depend on the number of threads. Names of parameters are those
 * of Wan checkpoints. */
#pragma once
#include "base/compute.h"
#include "weights/params.h"

enum ms_attention_kind { MS_ATTENTION_DENSE, MS_ATTENTION_WINDOW, MS_ATTENTION_DSA };

struct ms_attention_config {
  enum ms_attention_kind kind;
  enum msk_slide_mode mode; /* dsa */
  int window[3];            /* dsa, window: t, y, x in tokens */
  float bounds[3];          /* dsa; default 1, 4, 4 */
  int groups;               /* dsa; divides heads; default 4, or heads if fewer */
};

enum ms_positions {
  MS_POSITIONS_INTEGER, /* Wan: lattice indices; head_dim/2 pairs split c - 2 (c/3), c/3, c/3; base 10000 */
  MS_POSITIONS_SHORT_SIDE, /* space normalised by the short side, time by the clip: angle = 2.5 u 100^(-j/n),
                              j < n pairs of a part; u_t = 2 (i+.5)/T - 1, u_y,x = 2 (i+.5-n/2)/min (H,W);
                              parts 12, 10, 10 of 32 pairs, in general the same split as integer */
};

#define MS_MAX_LAYERS 256

struct ms_dit_config {
  int dim, ffn, heads, layers;
  int in_channels, out_channels;
  int patch[3]; /* 1, 2, 2 */
  int text_dim,
      text_len; /* text_len: rows that cross-attention sees; shorter texts are padded with zero rows */
  int freq_dim;
  float eps; /* 1e-6 */
  enum ms_positions positions;
  int coordinate_features; /* 15 features of the token's place are added to the patch before the embedding */
  int pooled_text;         /* e += MLP (first text row): pooled_embedding.{0,2} */
  struct ms_attention_config attention[MS_MAX_LAYERS]; /* per layer */
  struct ms_attention_config
      coarse_attention[MS_MAX_LAYERS]; /* used at the base stage; same as attention if not given */
  /* Low-rank adapters (LoRA, arXiv:2106.09685): every block ends with A [rank,k] and B [n,rank] of each of
   * its attention and ffn matrices W [n,k], named like it with ".lora_A.weight" and ".lora_B.weight". The
   * network multiplies by W + alpha / rank B A; all other parameters start out frozen. Random start: A
   * uniform, B zero.
   */
  int lora_rank;    /* 0: none */
  float lora_alpha; /* 0: the rank */
};

struct ms_dit_batch {
  int samples;
  int lattice[3]; /* latent frames, height, width (before the patch); height and width multiples of the patch
                   */
  const float *latents;     /* [samples, in_channels, T, H, W] */
  const float *timesteps;   /* [samples], 0..1000 */
  const float *const *text; /* [samples] pointers to [text_rows, text_dim] */
  const int *text_rows;     /* [samples] */
  int coarse;               /* use coarse_attention */
  int text_slot; /* sampling: 1, 2, ...: keys and values of this text are cached under that number until
                    ms_dit_forget_text; 0: no cache */
  /* called after each layer if not NULL (progress, timing) */
  void (*layer_done)(void *data, int layer);
  void *layer_data;
};

struct ms_dit;

enum ms_dit_pass { MS_PASS_FORWARD, MS_PASS_BACKWARD };

/* What a source lends for one layer of one pass. Lent until the matching `end`. */
struct ms_dit_loan {
  const void *values; /* the shard's parameters [count of its range], of params->type */
  float *gradient;    /* backward: the shard's gradients [count of its range]; added to. Those of frozen
                         parameters    are not touched and need not be there */
  float *x, *y; /* [batches][R,C] input and (forward) output of the layer; NULL: in the DiT's own memory. y of
                   shard -1 decides for the whole call: either all are lent or none. They may be the same only
                   where nothing is kept for a backward pass */
};

/* Where the shards of a DiT come from that are not all in memory: see engine/stream/streamer.h. A pass over
 * all batches of a call asks for, in this order,
 *   forward:  shard -1 (values; y: where the first layer's input goes), layers 0 .. L-1 (values, x, y), and
 *             L (x: the last layer's output, for the head);
 *   backward: L (x; gradient: of shard -1, for the head), layers L-1 .. 0 (values, gradient, x), and
 *             -1 (gradient), after which all gradients are complete.
 * Called on the caller's thread. begin returns 0 or an error, which ends the pass without a call of end;
 * every other loan is ended, also where the pass fails or is cancelled, and then what was written is of no
 * use. Values of shard -1 are lent once: what the head and the backward pass need of them has been copied. */
struct ms_dit_source {
  void *data;
  int (*begin)(void *data, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
               struct ms_error *error);
  int (*end)(void *data, enum ms_dit_pass pass, int shard, struct ms_error *error);
};

/* MS_EUSAGE names what is impossible in the configuration (heads that do not divide dim, groups, odd
 * head_dim...). */
int ms_dit_open(struct ms_dit **dit, struct ms_compute *compute, const struct ms_dit_config *config,
                struct ms_error *error);
void ms_dit_close(struct ms_dit **dit);
struct ms_params *ms_dit_params(struct ms_dit *dit);
const struct ms_dit_config *ms_dit_config(const struct ms_dit *dit);
int ms_dit_prepare(struct ms_dit *dit, enum msk_precision precision, int training, struct ms_error *error);
void ms_dit_forget_text(struct ms_dit *dit);
/* Whether a parameter belongs to an adapter. */
int ms_dit_is_adapter(const struct ms_dit *dit, int param);
/* The shard's place in the flat list of parameters: -1 what belongs to no block, 0 .. layers - 1 the blocks.
 */
void ms_dit_shard_range(const struct ms_dit *dit, int shard, int64_t *begin, int64_t *count);
/* Instead of ms_dit_prepare: shards come from `source` (its data borrowed until the next prepare or close),
 * values are of params->type; params->data is not read and may be NULL. Only shard -1 and one layer are
 * packed at a time. A backward pass asks for every layer's values again. */
int ms_dit_prepare_source(struct ms_dit *dit, const struct ms_dit_source *source,
                          enum msk_precision precision, int training, struct ms_error *error);

/* velocity [samples, out_channels, T, H, W]. 0, MS_ECANCELLED, MS_ENOMEM, or MS_ENOTFINITE naming the layer.
 */
int ms_dit_forward(struct ms_dit *dit, const struct ms_dit_batch *batch, int keep, float *velocity,
                   struct ms_error *error);
/* After forward with keep = 1 on the same batch. Adds to grad [params->total]. dlatents (same shape as
 * latents) and dtext
 * ([samples] pointers to [text_rows, text_dim], or NULL) are written if not NULL. */
int ms_dit_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, const float *dvelocity, float *grad,
                    float *dlatents, float *const *dtext, struct ms_error *error);

/* The same for several batches of one shape (same lattice, samples and coarse), layer by layer: what
 * accumulates gradients over them with two passes over the weights. The bits are those of one batch after the
 * other. velocities, dvelocities: [count] pointers. grad is not used (NULL) with a source. With keep = 1 the
 * memory of activations that wait for the backward pass is count times as large. */
int ms_dit_forward_all(struct ms_dit *dit, const struct ms_dit_batch *batches, int count, int keep,
                       float *const *velocities, struct ms_error *error);
int ms_dit_backward_all(struct ms_dit *dit, const struct ms_dit_batch *batches, int count,
                        const float *const *dvelocities, float *grad, struct ms_error *error);

/* Multiply-adds counted twice, matrix products and attention; model FLOPs of one forward pass of one sample
 * (no recomputation), and bytes of activations that forward / backward need at their peak. */
double ms_dit_forward_flops(const struct ms_dit *dit, const int lattice[3], int coarse);
size_t ms_dit_activation_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int training);
/* Parts of that: activations of `count` batches of this shape without the layers' inputs that a source lends,
 * and one layer's input, [count][R,C]. */
size_t ms_dit_working_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count,
                            int training);
size_t ms_dit_input_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count);
/* The part of the FLOPs that layers of one kind spend on self-attention, in 3D-DSA with its offset head. */
double ms_dit_attention_flops(const struct ms_dit *dit, const int lattice[3], int coarse,
                              enum ms_attention_kind kind);
/* Mean |Delta| in tokens per layer of the last forward (0 for layers without 3D-DSA); out [layers]. */
void ms_dit_offset_means(const struct ms_dit *dit, float *out);
