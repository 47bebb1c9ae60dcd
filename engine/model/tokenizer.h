/* The word tokenizer of the starter's text encoder: lower-case words of a listed vocabulary, other spellings
 * mapped to them.
 *
 * A word is a run of letters and digits; bytes above 127 count as letters, so words of other scripts stay
 * whole. Words that are not known, or for which no slot is left, are skipped and reported. Immutable once
 * open; any thread may use it. */
#pragma once
#include <jansson.h>
#include "ms-error.h"

struct ms_tokenizer {
  struct ms_tokenizer_word *words; /* [count], sorted, owned */
  int count;
  int vocabulary; /* number of tokens */
  int pad, bos;   /* tokens */
  int length;     /* slots */
};

/* config: "vocabulary" (list of words with "<pad>" and "<bos>"), "length" (default 20) and "same" (object of
 * word: vocabulary word). MS_EINPUT names the bad key, MS_ENOMEM. */
int ms_tokenizer_open(struct ms_tokenizer *tokenizer, const json_t *config, struct ms_error *error);
void ms_tokenizer_release(struct ms_tokenizer *tokenizer);
/* See ms_text_tokenize. */
int ms_tokenizer_run(const struct ms_tokenizer *tokenizer, const char *prompt, int *tokens, char *skipped,
                     size_t size);
/* See ms_text_left_out. */
int ms_tokenizer_left_out(const struct ms_tokenizer *tokenizer, const char *prompt);
