#include "model/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LENGTH 4096
#define MAX_VOCABULARY 1000000

struct ms_tokenizer_word {
  char *text; /* owned */
  size_t size;
  int token;
};

static int compare(const char *a, size_t a_size, const char *b, size_t b_size) {
  int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_words(const void *a, const void *b) {
  const struct ms_tokenizer_word *x = a, *y = b;
  return compare(x->text, x->size, y->text, y->size);
}

static int find(const struct ms_tokenizer *tokenizer, const char *text, size_t size) {
  int low = 0, high = tokenizer->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    const struct ms_tokenizer_word *word = &tokenizer->words[middle];
    int order = compare(text, size, word->text, word->size);
    if (!order)
      return word->token;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return -1;
}

static int add(struct ms_tokenizer *tokenizer, const char *text, int token, struct ms_error *error) {
  struct ms_tokenizer_word *word = &tokenizer->words[tokenizer->count];
  word->text = strdup(text);
  if (!word->text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while reading the vocabulary");
  word->size = strlen(text);
  word->token = token;
  tokenizer->count++;
  return 0;
}

static int sort(struct ms_tokenizer *tokenizer, struct ms_error *error) {
  if (tokenizer->count)
    qsort(tokenizer->words, (size_t)tokenizer->count, sizeof *tokenizer->words, compare_words);
  for (int i = 1; i < tokenizer->count; i++)
    if (!compare_words(&tokenizer->words[i - 1], &tokenizer->words[i]))
      return ms_error_set(error, MS_EINPUT, "\"text.vocabulary\" and \"text.same\" list \"%s\" twice",
                          tokenizer->words[i].text);
  return 0;
}

static int read_words(struct ms_tokenizer *tokenizer, const json_t *vocabulary, const json_t *same,
                      struct ms_error *error) {
  const char *key;
  const json_t *item;
  size_t i;
  int result;
  json_array_foreach(vocabulary, i, item) {
    if (!json_is_string(item) || !json_string_value(item)[0])
      return ms_error_set(error, MS_EINPUT, "\"text.vocabulary\" must hold words only");
    if ((result = add(tokenizer, json_string_value(item), (int)i, error)) < 0)
      return result;
  }
  tokenizer->vocabulary = tokenizer->count;
  if ((result = sort(tokenizer, error)) < 0)
    return result;
  tokenizer->pad = find(tokenizer, "<pad>", 5);
  tokenizer->bos = find(tokenizer, "<bos>", 5);
  if (tokenizer->pad < 0 || tokenizer->bos < 0)
    return ms_error_set(error, MS_EINPUT, "\"text.vocabulary\" must list \"<pad>\" and \"<bos>\"");
  /* all spellings are looked up among the vocabulary's words alone, so that their order does not matter */
  for (void *at = json_object_iter((json_t *)same); at; at = json_object_iter_next((json_t *)same, at)) {
    int count = tokenizer->count, token = -1;
    key = json_object_iter_key(at);
    item = json_object_iter_value(at);
    tokenizer->count = tokenizer->vocabulary;
    if (json_is_string(item))
      token = find(tokenizer, json_string_value(item), strlen(json_string_value(item)));
    tokenizer->count = count;
    if (token < 0)
      return ms_error_set(error, MS_EINPUT,
                          "\"text.same\" maps \"%s\" to a word that the vocabulary does not list", key);
    if ((result = add(tokenizer, key, token, error)) < 0)
      return result;
  }
  return sort(tokenizer, error);
}

int ms_tokenizer_open(struct ms_tokenizer *tokenizer, const json_t *config, struct ms_error *error) {
  const json_t *vocabulary = json_object_get(config, "vocabulary"), *same = json_object_get(config, "same");
  const json_t *length = json_object_get(config, "length");
  int result;
  memset(tokenizer, 0, sizeof *tokenizer);
  if (!json_is_array(vocabulary) || json_array_size(vocabulary) < 2 ||
      json_array_size(vocabulary) > MAX_VOCABULARY)
    return ms_error_set(error, MS_EINPUT, "\"text.vocabulary\" must be a list of words");
  if (same && (!json_is_object(same) || json_object_size(same) > MAX_VOCABULARY))
    return ms_error_set(error, MS_EINPUT, "\"text.same\" must be an object of words");
  if (length &&
      (!json_is_integer(length) || json_integer_value(length) < 1 || json_integer_value(length) > MAX_LENGTH))
    return ms_error_set(error, MS_EINPUT, "\"text.length\" must be a whole number from 1 to %d", MAX_LENGTH);
  tokenizer->length = length ? (int)json_integer_value(length) : 20;
  tokenizer->words = calloc(json_array_size(vocabulary) + json_object_size(same), sizeof *tokenizer->words);
  if (!tokenizer->words)
    return ms_error_set(error, MS_ENOMEM, "out of memory while reading the vocabulary");
  result = read_words(tokenizer, vocabulary, same, error);
  if (result < 0)
    ms_tokenizer_release(tokenizer);
  return result;
}

void ms_tokenizer_release(struct ms_tokenizer *tokenizer) {
  for (int i = 0; i < tokenizer->count; i++)
    free(tokenizer->words[i].text);
  free(tokenizer->words);
  memset(tokenizer, 0, sizeof *tokenizer);
}

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (unsigned char)c >= 128;
}

/* Whether the list has the word already; entries are parted by ", ". */
static int is_listed(const char *word, size_t word_size, const char *skipped) {
  for (const char *at = skipped; *at;) {
    const size_t n = strcspn(at, ",");
    if (n == word_size && !memcmp(at, word, n))
      return 1;
    at += n;
    at += strspn(at, ", ");
  }
  return 0;
}

/* Appends a word to the list of skipped ones, whole or not at all. */
static void report(const char *word, size_t word_size, char *skipped, size_t size) {
  size_t at = strlen(skipped), comma = at ? 2 : 0;
  if (at + comma + word_size + 1 > size || is_listed(word, word_size, skipped))
    return;
  memcpy(skipped + at, ", ", comma);
  memcpy(skipped + at + comma, word, word_size);
  skipped[at + comma + word_size] = 0;
}

/* The next word of the prompt: its size, 0 at the end; *token is -1 for an unknown one. */
static size_t next_word(const struct ms_tokenizer *tokenizer, const char **prompt, int *token) {
  char lower[64];
  size_t n = 0;
  *token = -1;
  while (**prompt && !is_letter(**prompt))
    ++*prompt;
  while (is_letter((*prompt)[n]))
    n++;
  if (n && n <= sizeof lower) {
    for (size_t i = 0; i < n; i++)
      lower[i] = (*prompt)[i] >= 'A' && (*prompt)[i] <= 'Z' ? (char)((*prompt)[i] + 'a' - 'A') : (*prompt)[i];
    *token = find(tokenizer, lower, n);
  }
  return n;
}

int ms_tokenizer_run(const struct ms_tokenizer *tokenizer, const char *prompt, int *tokens, char *skipped,
                     size_t size) {
  int count = 1, token;
  size_t n;
  for (int i = 0; i < tokenizer->length; i++)
    tokens[i] = i ? tokenizer->pad : tokenizer->bos;
  if (skipped && size)
    skipped[0] = 0;
  for (; (n = next_word(tokenizer, &prompt, &token)); prompt += n) {
    if (token >= 0 && count < tokenizer->length)
      tokens[count++] = token;
    else if (token < 0 && skipped && size)
      report(prompt, n, skipped, size);
  }
  return count;
}

int ms_tokenizer_left_out(const struct ms_tokenizer *tokenizer, const char *prompt) {
  int known = 0, token;
  size_t n;
  for (; (n = next_word(tokenizer, &prompt, &token)); prompt += n)
    known += token >= 0;
  return known > tokenizer->length - 1 ? known - (tokenizer->length - 1) : 0;
}
