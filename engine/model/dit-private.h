/* What the files of the DiT share. See dit.h for what they do together.
 *
 * A call works on blocks of rows: whole samples, or lines of the lattice of one sample, some hundred rows.
 * One task takes its block through all row-wise work between two places where tokens meet, so that
 * activations stay in a core's cache: enter:  LayerNorm, q k v, norm and rotation           (dit-forward.c)
 *   pack:   keys and values, once a sample
 *   mix:    attention, projection, cross-attention, MLP
 * A block of whole samples meets nobody: one task does all three, and in training the backward pass too. What
 * only one block needs lives in the worker's scratch memory, what others read in buffers of all rows (struct
 * dit_acts), and the same code writes to either. The partition used in training depends on the lattice alone,
 * and sums over rows are kept per block and added in order, so threads change no bit.
 *
 * A call takes several batches through one layer after the other. What belongs to one batch and outlives its
 * turn in a layer is in a struct dit_batch_run; ms_dit_select puts it into dit->run, so that what works on a
 * layer knows of one batch only. */
#pragma once
#include "base/arena.h"
#include "model/dit.h"

#define MS_DIT_PARTS 3 /* of a matrix, at most */

/* A [r,k] and B [n,r] of one part of a matrix; packed ones lie inside dit->packed. */
struct dit_adapter {
  const void *b; /* values, of params.type; read while the matrix is packed */
  void *merge;   /* A transposed, float32: what W + s B A is made with */
  void *down;    /* A: for x A^T. Down and up are there where gradients are computed */
  void *up;      /* B transposed: for dy B */
};

/* y = x W^T + b for W [n,k], which may be several parameters side by side (q, k and v). */
struct dit_matrix {
  int weight, bias, parts; /* first parameters; weights of all parts are adjacent */
  int adapters;            /* first parameter of them: A and B of a part, then of the next; 0: none */
  struct dit_adapter adapter[MS_DIT_PARTS];
  int64_t n, k;
  int exact; /* multiplied in float32 whatever the precision */
  enum msk_precision precision;
  void *forward,
      *backward; /* packed W and, where gradients are computed, its transpose; inside dit->packed */
  const float *bias_values; /* [n] */
};

struct dit_layer {
  struct dit_matrix qkv, out, cross_q, cross_kv, cross_out, up, down, offset_out;
  /* indices of parameters */
  int norm_q, norm_k, cross_norm_q, cross_norm_k, norm3_weight, norm3_bias, modulation;
  int offsets; /* has an offset head: */
  int conv_weight, conv_bias, offset_norm_weight, offset_norm_bias;
};

/* Where in a block's vector of partial sums the gradient of each small parameter is. */
struct dit_sums {
  int64_t qkv_bias, out_bias, cross_q_bias, cross_out_bias, up_bias, down_bias, norm_q, norm_k, cross_norm_q,
      norm3_weight, norm3_bias, offset_bias, offset_norm_weight, offset_norm_bias, total;
};

/* Rows [row, row + rows): `samples` whole samples, or (samples = 1) tokens [token, token + rows) of one. A
 * segment is the part of a block that lies in one sample; segments are numbered through. */
struct dit_block {
  int64_t row, rows, token;
  int sample, samples;
  int64_t segment;
};

struct dit_partition {
  int64_t lines;      /* of a sample's T*H lines, in a block */
  int64_t per_sample; /* blocks of a sample; 1: a block holds `samples` samples */
  int samples;
  int64_t blocks, segments, rows; /* rows: of the largest block */
};

/* Activations of one layer, all rows. NULL: a block's scratch, or not needed. Low: bf16 in bf16 precision,
 * else float32. */
struct dit_acts {
  float *x; /* [R,C] input */
  void *u;  /* LN1 modulated: low, or float32 with an offset head, whose convolution reads it */
  float *mean1, *rstd1, *rstd_q, *rstd_k; /* [R] */
  float *qkv;                             /* [R,3C] */
  float *q, *k;         /* normed and rotated, row distance run.qk_ld: in place, or a buffer of their own */
  float *conv, *normed; /* [R,C] offset head: convolution, LayerNorm */
  float *conv_mean, *conv_rstd; /* [R] */
  void *offset_low;             /* GELU of normed, low */
  float *z;                     /* [R,offset_out.n] for the asked window */
  float *z_cut;          /* [R,z_ld] for the window that fits the lattice; z itself if that is all of it */
  float *attended, *lse; /* [R,C], [R,heads] */
  float *projected;      /* [R,C] before the gate */
  float *x1, *mean3, *rstd3;               /* after self-attention */
  void *normed3;                           /* low */
  float *cross_raw, *cross_q, *rstd_cross; /* q before and after its norm */
  float *crossed, *cross_lse;
  float *x2, *mean2, *rstd2;              /* after cross-attention */
  void *modulated2, *hidden_raw, *hidden; /* low; [R,ffn] the latter two */
  float *mlp;                             /* before the gate; in training the last product ends here */
  float *y;                               /* [R,C] output; NULL when recomputed */
};

/* The text as cross-attention sees it, T = samples * text_len rows. */
struct dit_text {
  int slot; /* -1: keys and values are not complete */
  int samples, training;
  int held; /* layers whose keys and values have a place: all in a slot, or one that each layer fills anew */
  struct ms_arena arena;     /* of a slot */
  float *padded;             /* [T,text_dim] */
  void *hidden_raw, *hidden; /* [T,C] of text_embedding, low */
  float *context;            /* [T,C] */
  float *kv;                 /* [held][T,2C], k before its norm in training */
  float *k;                  /* [held][T,k_ld] normed; in kv unless training */
  int64_t k_ld, k_stride;    /* stride: from layer to layer */
  float *rstd;               /* [held][T] */
  unsigned char *packed;     /* [held][samples][heads] x packed_bytes */
  size_t packed_bytes;
};

/* Buffers of a backward pass. dtime and dcontext are those of the batch that is selected. */
struct dit_grads {
  float *spare; /* [R,C] takes turns with each batch's dx */
  float *dmlp, *dhidden, *dcrossed, *dcross_q, *dprojected, *dattended, *dqkv,
      *du;                          /* [R,C] or [R,ffn], [R,3C] */
  float *dz, *dz_cut, *dconv;       /* offset head */
  float *head_mean, *head_rstd;     /* [R] of the last norm */
  float *block_sums, *segment_sums; /* [blocks, sums.total], [segments, 6C] */
  float *joined;                    /* [C,patch.k] of the patch matrix with coordinates */
  float *text_sums, *dtext;         /* [blocks of text rows][3C]; [T,text_dim] */
  float *dkv, *dtime, *dcontext;    /* [T,2C]; [S,6C] of time_projection; [T,C] */
  unsigned char *packed;            /* transposed activations, for weight gradients */
  float *adapters;                  /* x A^T and dy B of a layer's adapters, [rows,r] each */
};

struct dit_time {
  float *sinusoid, *first_raw, *first, *e, *e_act, *e0; /* [S,freq], [S,C] x4, [S,6C] */
  float *pooled_text, *pooled_raw, *pooled;             /* [S,text_dim], [S,C] x2 */
  float *modulation;                                    /* [S,6C] of the layer at work */
  float *head;                                          /* [S,2C] */
  float *de, *dhidden, *dpooled, *dhead;                /* backward: [S,C] x2, [S,text_dim], [S,2C] */
};

struct dit_window {       /* rows of the lattice, window after window */
  int64_t *rows, *starts; /* [tokens], [count + 1] */
  int64_t count;
};

/* One of many packs or products that share a run over the pool. */
struct dit_pack {
  enum msk_precision precision;
  struct msk_pack pack;
  void *dst;
  const struct dit_matrix *matrix; /* its adapters are added to what is packed; NULL: none are */
  int64_t first_task, step;        /* filled in */
};
struct dit_product {
  enum msk_precision precision;
  struct msk_product product;
  int64_t first_task, m_step, n_step; /* filled in */
};

struct dit_batch_run {   /* one of a call's batches */
  struct dit_time time;  /* modulation and what is worked in while going back are all batches' */
  struct dit_text text;  /* without a slot: context of its own, keys and values in memory of all batches */
  struct dit_text *used; /* that one or a slot's */
  float *dx;             /* [R,C] gradient of the stream where the backward pass is */
  float *dtime, *dcontext;
};

struct dit_run {                    /* one call's shapes and buffers */
  int samples, count, coarse, keep; /* count: batches */
  int lent;                         /* a source says where layers' inputs and outputs are */
  int own_text;                     /* some batch has no slot for its text */
  int outward;                      /* the backward pass goes on to what belongs to no block */
  int latent[3], lattice[3];        /* before and after the patch */
  int64_t tokens, rows, text_rows;
  const struct ms_attention_config *attention;
  struct dit_partition blocks;
  int whole;     /* blocks hold whole samples */
  int64_t qk_ld; /* of the pass at work: 3C in place, 2C where the backward pass keeps both */
  struct ms_arena arena;
  float *saved; /* [layers + 1][count][R,C] inputs of layers and the last output; without keep [count][R,C],
                   worked on in place; NULL if lent */
  struct dit_batch_run *each; /* [count]; borrowed from ms_dit */
  struct dit_acts acts;
  struct dit_grads grads;
  struct dit_time time;
  float *rope[3];           /* [L,pairs,2] */
  float *places;            /* [tokens,15] coordinate features */
  struct dit_window window; /* of the layer at work */
  unsigned char *packed;    /* keys and values of self-attention */
  double *offset_sum;       /* [blocks] */
  size_t kernel_scratch;    /* first part of a task's scratch */
  int ready;                /* a backward pass may follow */
  atomic_int bad;           /* a value that is not finite was seen */
};

struct ms_dit {
  struct ms_compute *compute;
  struct ms_dit_config config;
  struct ms_params params;
  enum msk_precision precision;
  int training, prepared;
  struct dit_matrix patch, text0, text2, time0, time2, projection, pooled0, pooled2, head;
  int patch_weight, coordinate_weight, head_modulation;
  int64_t patch_in,
      patch_out; /* elements of a patch: in_channels and out_channels times the patch's points */
  struct dit_layer layers[MS_MAX_LAYERS];
  struct dit_sums sums;
  float attention_scale;
  int pairs[3];                /* rotary pairs of t, y, x in a head */
  struct ms_dit_source source; /* begin NULL: all values are in params.data, all shards are bound */
  /* With a source the memory below is that of shard -1, then that of the layer at work. */
  const float **vectors; /* [params.count] float32 values of vectors and tables; NULL for matrices */
  float *vector_store;   /* copies of them, fused biases, the patch matrix with its coordinates */
  int64_t vector_elements, outer_elements; /* room; the part of shard -1 */
  struct ms_arena packed;                  /* weights */
  size_t outer_packed;                     /* the part of shard -1 */
  struct dit_pack *pack_list;              /* [2 * matrices] */
  struct dit_pack *adapter_list;           /* [3 * parts of all matrices] or NULL: no adapters */
  float lora_scale, *lora_scales;          /* alpha / rank; as many of them as a matrix has columns */
  struct dit_text *slots;                  /* [slot_count] */
  int slot_count;
  struct dit_batch_run *each; /* [each_room] */
  int each_room;
  struct dit_run run;
  float offset_means[MS_MAX_LAYERS];
};

/* dit-params.c */
int ms_dit_list_params(struct ms_dit *dit, struct ms_error *error);
int ms_dit_check_config(const struct ms_dit_config *config, struct ms_error *error);
int64_t ms_dit_window_points(const struct ms_attention_config *attention);
/* The attention that an offset head serves: the layer's own or its coarse one. */
const struct ms_attention_config *ms_dit_offset_attention(const struct ms_dit_config *config, int layer);
/* Parameters [first, end) of a shard. */
void ms_dit_shard_params(const struct ms_dit *dit, int shard, int *first, int *end);
/* Calls fn for every matrix, or every one of a shard. */
typedef void (*dit_matrix_fn)(struct ms_dit *dit, struct dit_matrix *matrix, void *data);
void ms_dit_each_matrix(struct ms_dit *dit, dit_matrix_fn fn, void *data);
void ms_dit_shard_matrices(struct ms_dit *dit, int shard, dit_matrix_fn fn, void *data);

/* Whether a parameter has a gradient; any of shard -1. */
int ms_dit_is_trained(const struct ms_dit *dit, int param);
int ms_dit_is_outer_trained(const struct ms_dit *dit);

/* dit-prepare.c */
/* Floats for vectors, and bytes for packed matrices, of a shard. copied: vectors are copied whatever their
 * type. */
struct dit_shard_size {
  int64_t floats;
  size_t bytes;
};
struct dit_shard_size ms_dit_shard_size(struct ms_dit *dit, int shard, enum msk_precision precision,
                                        int copied, int training);
/* Makes a shard's vectors and packed matrices from what a source has lent. */
void ms_dit_bind(struct ms_dit *dit, int shard, const void *values, int backward);

/* dit-lora.c */
/* Bytes that a matrix's packed adapters take. */
size_t ms_dit_adapter_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix,
                            enum msk_precision precision, int training);
/* Lists the packs of a matrix's adapters at `list`, their memory at `packed`; returns how many. values: of
 * the list of parameters from element `begin` on. */
int ms_dit_bind_adapters(const struct ms_dit *dit, struct dit_matrix *matrix, const char *values,
                         int64_t begin, int backward, unsigned char *packed, struct dit_pack *list);
/* Columns [n0,n1) of what `item` packs, with the adapters added, made in scratch: the pack to do instead. */
struct msk_pack ms_dit_merge(const struct ms_dit *dit, const struct dit_pack *item, int64_t n0, int64_t n1,
                             void *scratch);
/* Scratch bytes of that; 0: no adapters. */
size_t ms_dit_merge_scratch(const struct ms_dit *dit);

/* dit-products.c */
/* Columns that one task packs. */
int64_t ms_dit_pack_step(const struct ms_dit *dit, enum msk_precision precision, int64_t n, int64_t k,
                         int merged);
void ms_dit_pack_all(struct ms_dit *dit, struct dit_pack *list, int count);
void ms_dit_product_all(struct ms_dit *dit, struct dit_product *list, int count);
size_t ms_dit_pack_bytes(const struct ms_dit *dit, enum msk_precision precision, int64_t n, int64_t k);
size_t ms_dit_product_scratch(const struct ms_dit *dit, enum msk_precision precision, int64_t m, int64_t n,
                              int64_t k);
/* y = x W^T + b of whole buffers; y accumulates with residual = y. raw: before the activation, or NULL. */
struct dit_linear {
  const struct dit_matrix *matrix;
  const void *x;
  enum msk_type x_type;
  int64_t rows;
  void *y;
  enum msk_type y_type;
  enum msk_act act;
  void *raw;
  enum msk_type raw_type;
  const float *residual;
};
void ms_dit_linear(struct ms_dit *dit, const struct dit_linear *linear);
/* grad of weight and bias += ; dx = (NULL: not wanted). Packs x into grads.packed. */
void ms_dit_linear_backward(struct ms_dit *dit, const struct dit_matrix *matrix, const void *x,
                            enum msk_type x_type, const float *dy, int64_t rows, float *dx, int accumulate,
                            float *grad);
/* Adds to the gradients of a matrix's biases (parts side by side) the column sums of `rows` rows. */
void ms_dit_add_bias_sums(struct ms_dit *dit, const struct dit_matrix *matrix, const float *sums, int64_t ld,
                          int64_t rows, float *grad);

/* dit-layout.c: shapes, partition, buffers */
enum msk_type ms_dit_low_type(const struct ms_dit *dit);
void ms_dit_partition(struct dit_partition *partition, int samples, const int lattice[3], int64_t target);
struct dit_block ms_dit_block_at(const struct dit_run *run, int64_t i);
/* Segment i of a block. */
struct dit_block ms_dit_segment_at(const struct dit_run *run, const struct dit_block *block, int i);
int ms_dit_check_batches(const struct ms_dit *dit, const struct ms_dit_batch *batches, int count,
                         struct ms_error *error);
/* Sizes everything. Keeps what is there when nothing changes. */
int ms_dit_begin(struct ms_dit *dit, const struct ms_dit_batch *batches, int count, int keep, int lent,
                 struct ms_error *error);
/* own_text is left for the caller to set if it is 0. */
void ms_dit_shape(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count, int keep,
                  struct dit_run *run);
void ms_dit_select(struct ms_dit *dit, int i); /* batch i of the call is worked on */
void ms_dit_layout(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena);
size_t ms_dit_scratch_bytes(const struct ms_dit *dit, const struct dit_run *run, size_t *kernels);

/* Scratch of a task: first the kernels' part, then what the block takes. */
struct dit_scratch {
  unsigned char *kernels, *next;
};
struct dit_scratch ms_dit_scratch(const struct ms_dit *dit, const struct dit_run *run, void *scratch);
void *ms_dit_take(struct dit_scratch *scratch, int64_t elements, enum msk_type type);

/* Buffers that are NULL get memory in the scratch, moved back so that they are indexed by row like the
 * others. */
void ms_dit_localize_forward(const struct ms_dit *dit, int layer, const struct dit_block *block,
                             struct dit_acts *acts, struct dit_scratch *scratch);
void ms_dit_localize_backward(const struct ms_dit *dit, int layer, const struct dit_block *block,
                              struct dit_acts *acts, struct dit_grads *grads, struct dit_scratch *scratch);

/* dit-embed.c: patches, places, head */
void ms_dit_fill_tables(struct ms_dit *dit);
void ms_dit_embed(struct ms_dit *dit, const float *latents, float *x);
void ms_dit_head(struct ms_dit *dit, const float *x, float *velocity);
void ms_dit_head_backward(struct ms_dit *dit, const float *x, const float *dvelocity, float *dx, float *grad);
void ms_dit_embed_backward(struct ms_dit *dit, const float *latents, const float *dx, float *grad,
                           float *dlatents);

/* dit-time.c: time embedding, pooled text and the modulation of a layer */
void ms_dit_time(struct ms_dit *dit, const struct ms_dit_batch *batch);
void ms_dit_modulation(struct ms_dit *dit, int layer);
void ms_dit_time_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, float *dhead, float *grad,
                          float *const *dtext);

/* dit-text.c */
void ms_dit_text_init(struct dit_text *text);
void ms_dit_text_release(struct dit_text *text);
#define MS_DIT_TEXT_ROWS 128 /* rows of a task */
/* Finds each batch's text and embeds it unless a slot has it. */
int ms_dit_text_embed(struct ms_dit *dit, const struct ms_dit_batch *batches, struct ms_error *error);
/* Keys and values of one layer, unless they are there. */
void ms_dit_text_keys(struct ms_dit *dit, struct dit_text *text, int layer);
/* After the last layer: what slots hold is complete. */
void ms_dit_text_complete(struct ms_dit *dit, const struct ms_dit_batch *batches);
/* From grads.dkv: adds to the gradients of the keys' norm and of the biases, and to dcontext. */
void ms_dit_text_keys_backward(struct ms_dit *dit, const struct dit_text *text, int layer, float *grad);
void ms_dit_text_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, const struct dit_text *text,
                          float *grad, float *const *dtext);
/* Embedded text; keys and values of `held` layers. */
void ms_dit_context_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena);
void ms_dit_keys_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena);
/* Both, as a slot has them. */
void ms_dit_slot_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena);
struct msk_attention ms_dit_cross(const struct ms_dit *dit, const struct dit_text *text, int layer,
                                  int sample);

/* dit-attention.c: the attention of a sample is done in parts: heads, offset groups, or windows */
size_t ms_dit_attention_bytes(const struct ms_dit *dit, const struct dit_run *run,
                              int layer); /* packed keys and values */
size_t ms_dit_attention_scratch(const struct ms_dit *dit, const struct dit_run *run,
                                int layer);                   /* of one call */
void ms_dit_attention_prepare(struct ms_dit *dit, int layer); /* before the layer's tasks */
int64_t ms_dit_attention_parts(const struct ms_dit *dit, int layer);
/* Packs keys and values; a window is attended to here, whole. */
void ms_dit_attention_pack(struct ms_dit *dit, int layer, const struct dit_acts *acts, int64_t sample,
                           int64_t part, void *scratch);
/* attended rows of one block, after its samples are packed. z, attended: of the block. */
void ms_dit_attention_block(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                            const struct dit_block *block, const float *z, float *attended, float *lse,
                            void *scratch);
void ms_dit_attention_backward(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                               const struct dit_grads *grads, int64_t sample, int64_t part, void *scratch);
struct msk_slide ms_dit_slide(const struct ms_dit *dit, const struct dit_run *run, int layer);

/* dit-offset.c: the offset head of 3D-DSA */
struct dit_offset_rows { /* buffers of a block */
  float *conv, *normed, *mean, *rstd, *z, *z_cut;
  void *low;
};
int64_t ms_dit_offset_width(const struct ms_dit *dit, const struct dit_run *run,
                            int layer);                   /* floats of z a token, cut to the lattice */
int64_t ms_dit_offset_watched(const struct dit_run *run); /* tokens that count in offset_sum */
/* index: the block's number, where the mean of its offsets is noted; -1: not noted */
void ms_dit_offset_block(struct ms_dit *dit, int layer, const float *u, const struct dit_block *block,
                         int64_t index, const struct dit_offset_rows *rows, void *scratch);
void ms_dit_offset_rows_backward(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                                 const struct dit_grads *grads, const struct dit_block *block, float *sums,
                                 struct dit_scratch *scratch);
void ms_dit_offset_conv_rows(struct ms_dit *dit, int layer, const struct dit_grads *grads, int64_t sample,
                             int64_t l0, int64_t l1, void *scratch); /* adds to du */
void ms_dit_offset_conv_weights(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                                const struct dit_grads *grads, float *grad);

/* dit-forward.c, dit-backward.c, dit-gradients.c */
struct dit_layer_run { /* one layer's tasks */
  struct ms_dit *dit;
  int layer;
  const struct dit_text *text;
  const struct dit_acts *acts;
  const struct dit_grads *grads; /* backward: */
  float *dx, *dx1; /* gradient of the stream behind and before cross-attention; dx comes in as that of the
                      layer's output */
};
void ms_dit_enter_block(const struct dit_layer_run *run, const struct dit_block *block,
                        struct dit_scratch scratch);
void ms_dit_pack_block(const struct dit_layer_run *run, const struct dit_block *block, void *scratch);
void ms_dit_mix_block(const struct dit_layer_run *run, const struct dit_block *block, int64_t index,
                      struct dit_scratch scratch);
void ms_dit_enter_all(struct dit_layer_run *run); /* enter and pack */
void ms_dit_layer_forward(struct ms_dit *dit, int layer, const struct dit_text *text,
                          const struct dit_acts *acts);
void ms_dit_layer_backward(struct ms_dit *dit, int layer, const struct dit_text *text,
                           const struct dit_acts *acts, float *dx, float *dx1, float *grad);
/* Adds to the gradients of a layer's parameters when its tasks are done. */
void ms_dit_layer_gradients(const struct dit_layer_run *run, float *grad);
/* Bytes of packed activations and floats of grads.adapters that this takes in any layer. */
void ms_dit_gradient_room(const struct ms_dit *dit, const struct dit_run *run, size_t *packed,
                          int64_t *floats);
