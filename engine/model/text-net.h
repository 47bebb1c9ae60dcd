/* The text encoder's network: parameters, buffers and passes over the stacked rows of many captions. Private
 * to text*.c. */
#pragma once
#include "model/conv.h"
#include "model/text.h"
#include "model/tokenizer.h"

#define MS_TEXT_MAX_LABELS 8
#define MS_TEXT_EPS 1e-5f

struct ms_text_linear { /* y = x W^T + b */
  int64_t in, out;
  int weight, bias;
  float *offsets;           /* owned: the bias in float32, or NULL */
  void *forward, *backward; /* owned, packed */
};

struct ms_text_norm {
  int weight, bias;
  float *factors, *offsets; /* owned, float32 */
};

struct ms_text_layer { /* x += o attention (qkv LN x); x += fc2 gelu fc1 LN x */
  struct ms_text_norm norm1, norm2;
  struct ms_text_linear qkv, o, fc1, fc2;
};

/* Buffers of `rows` rows of `captions` captions. Without a backward pass all layers share one set. */
struct ms_text_layer_buffers {
  float *x;        /* [rows, dim] input */
  void *n1, *n2;   /* [rows, dim] */
  float *stats;    /* [4, rows]: mean and 1 / deviation of both norms */
  float *qkv;      /* [rows, 3 dim] */
  float *lse;      /* [rows, heads] */
  float *attended; /* [rows, dim] */
  float *middle;   /* [rows, dim] after attention */
  float *pre;      /* [rows, ffn] before GELU */
  void *act;       /* [rows, ffn] */
};
struct ms_text_buffers {
  struct ms_arena arena;
  int64_t rows, captions, labels; /* room */
  int keep;
  int64_t *starts;                      /* [captions + 1] first row of each caption */
  int *tokens;                          /* [rows] */
  int *places;                          /* [rows] position of each row in its caption */
  struct ms_text_layer_buffers *layers; /* [layers], owned */
  float *x;                             /* [rows, dim] after the last layer */
  float *out;                           /* [rows, dim] after the final norm */
  float *out_stats;                     /* [2, rows] */
  /* backward */
  float *g, *t, *wide;     /* [rows, dim], [rows, dim], [rows, max (3 dim, ffn)] */
  float *states, *dstates; /* [captions, dim] of <bos> */
  float *logits;           /* [captions, classes] */
  void *read;              /* [rows, max (3 dim, ffn)] what products read of a gradient */
  void *packed;            /* of a weight gradient */
  struct ms_conv_work work;
};

struct ms_text {
  struct ms_compute *compute;
  struct ms_params params;
  struct ms_tokenizer tokenizer;
  enum msk_precision precision;
  enum msk_type type; /* of what products read */
  int prepared;       /* 1: for use, 2: for training */
  int64_t dim, ffn, heads;
  int layer_count, labels;
  int embedding, position;
  struct ms_text_layer *layers; /* [layer_count], owned */
  struct ms_text_norm norm;
  struct ms_text_linear classify[MS_TEXT_MAX_LABELS];
  struct ms_text_buffers *one, *batch; /* owned: of encode, of training */
};

int ms_text_linear_list(struct ms_text_linear *linear, struct ms_params *params, const char *name,
                        int64_t out, int64_t in, int bias);
int ms_text_linear_pack(struct ms_text *text, struct ms_text_linear *linear, int training,
                        struct ms_error *error);
void ms_text_linear_release(struct ms_text_linear *linear);

/* Buffers for at least rows, captions; those of *buffers are kept if they suffice. */
int ms_text_buffers_open(struct ms_text_buffers **buffers, const struct ms_text *text, int64_t rows,
                         int64_t captions, int keep, struct ms_error *error);
void ms_text_buffers_close(struct ms_text_buffers **buffers);

/* tokens, places, starts -> b->x. */
void ms_text_forward(const struct ms_text *text, struct ms_text_buffers *b, int64_t captions);
/* y = LN (x) over rows, final norm. */
void ms_text_final_norm(const struct ms_text *text, const float *x, int64_t rows, float *y, float *stats);
/* x [rows, in] of x_type; y = x W^T + b (+ residual); pre and act as in msk_product. */
void ms_text_linear_run(const struct ms_text *text, const struct ms_text_linear *linear, int64_t rows,
                        const void *x, enum msk_type x_type, const float *residual, float *y, float *pre,
                        void *act);
/* Adds the weight's and the bias's gradients; dx [rows, in] written unless NULL. */
int ms_text_linear_back(const struct ms_text *text, const struct ms_text_linear *linear,
                        struct ms_text_buffers *b, int64_t rows, const void *x, enum msk_type x_type,
                        const float *dy, float *dx, float *grad, struct ms_error *error);
/* dx of a norm from dy; adds the gradients of its weight and bias. */
int ms_text_norm_back(const struct ms_text *text, const struct ms_text_norm *norm, struct ms_text_buffers *b,
                      int64_t rows, const float *x, const float *stats, const float *dy, float *dx,
                      int accumulate, float *grad, struct ms_error *error);
/* b->g, the gradient of b->x, back to the embeddings. */
int ms_text_backward(const struct ms_text *text, struct ms_text_buffers *b, int64_t captions, float *grad,
                     struct ms_error *error);
