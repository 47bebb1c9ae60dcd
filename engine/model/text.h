/* The starter's text side: a word tokenizer and a small transformer encoder.
 *
 * The tokenizer lowers, splits at everything that is not a letter or digit, maps synonyms that the vocabulary
 * lists to one token, skips unknown words (and reports them), begins with <bos>, and pads to text_len. */
#pragma once
#include <jansson.h>
#include "base/compute.h"
#include "weights/params.h"

struct ms_text;

/* config: the object "text" of a model.json, e.g. {"kind": "words", "dim": 128, "layers": 2, "heads": 4,
 * "ffn": 256, "length": 20, "vocabulary": ["<pad>", "<bos>", "a", ...], "same": {"an": "a"}}. */
int ms_text_open(struct ms_text **text, struct ms_compute *compute, const json_t *config,
                 struct ms_error *error);
void ms_text_close(struct ms_text **text);
struct ms_params *ms_text_params(struct ms_text *text);
int ms_text_prepare(struct ms_text *text, enum msk_precision precision, int training, struct ms_error *error);
int ms_text_dim(const struct ms_text *text);
int ms_text_length(const struct ms_text *text);

/* Tokens of a prompt into tokens[length]; returns their number (1 for an empty prompt). skipped (size bytes,
 * may be NULL) gets the unknown words, each once, separated by ", ". */
int ms_text_tokenize(const struct ms_text *text, const char *prompt, int *tokens, char *skipped, size_t size);
/* How many known words at the end of a prompt have no slot any more. */
int ms_text_left_out(const struct ms_text *text, const char *prompt);
/* States [count, dim] of a prompt's tokens into out; returns count. */
int ms_text_encode(struct ms_text *text, const char *prompt, float *out, char *skipped, size_t size,
                   struct ms_error *error);

/* Pre-training as a classifier: `captions` prompts, each with `labels` class numbers; one linear head per
 * label on the <bos> state. The heads are parameters "classify.N.weight" of ms_text_params with
 * class_counts[N] rows, listed when classes are set before prepare. Adds to grad; writes the mean loss and
 * the share of right answers. */
int ms_text_set_classes(struct ms_text *text, const int *class_counts, int labels, struct ms_error *error);
int ms_text_train_pass(struct ms_text *text, const char *const *captions, const int *classes,
                       int captions_count, float *grad, double *loss, double *right, struct ms_error *error);
