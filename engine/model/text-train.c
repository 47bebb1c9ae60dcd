#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/text-net.h"

int ms_text_set_classes(struct ms_text *text, const int *class_counts, int labels, struct ms_error *error) {
  assert(!text->params.data && !text->labels);
  if (labels < 1 || labels > MS_TEXT_MAX_LABELS)
    return ms_error_set(error, MS_EUSAGE, "%d labels: a text encoder learns from 1 to %d", labels,
                        MS_TEXT_MAX_LABELS);
  for (int i = 0; i < labels; i++) {
    char name[32];
    if (class_counts[i] < 1)
      return ms_error_set(error, MS_EUSAGE, "label %d has %d classes", i, class_counts[i]);
    snprintf(name, sizeof name, "classify.%d", i);
    if (ms_text_linear_list(&text->classify[i], &text->params, name, class_counts[i], text->dim, 0) < 0)
      return ms_error_set(error, MS_ENOMEM, "out of memory while opening the text encoder");
    text->labels = i + 1;
  }
  return 0;
}

/* Softmax cross-entropy of rows of logits, which become the gradient of the mean over `share` terms. */
static double cross_entropy(float *logits, int64_t classes, const int *right, int stride, int rows,
                            double share, int *hits) {
  double loss = 0;
  for (int row = 0; row < rows; row++) {
    float *z = logits + row * classes;
    int best = 0, want = right[row * stride];
    double sum = 0, most;
    for (int i = 1; i < classes; i++)
      if (z[i] > z[best])
        best = i;
    most = z[best];
    *hits += best == want;
    for (int i = 0; i < classes; i++)
      sum += exp((double)z[i] - most);
    loss += log(sum) + most - z[want];
    for (int i = 0; i < classes; i++)
      z[i] = (float)((exp((double)z[i] - most) / sum - (i == want)) / share);
  }
  return loss;
}

int ms_text_train_pass(struct ms_text *text, const char *const *captions, const int *classes,
                       int captions_count, float *grad, double *loss, double *right, struct ms_error *error) {
  int length = text->tokenizer.length, hits = 0, result;
  int64_t dim = text->dim, rows = 0;
  double share = (double)captions_count * text->labels, total = 0;
  struct ms_text_buffers *b;
  assert(text->prepared == 2 && text->labels && captions_count > 0);
  for (int i = 0; i < captions_count * text->labels; i++)
    if (classes[i] < 0 || classes[i] >= text->classify[i % text->labels].out)
      return ms_error_set(error, MS_EINPUT, "caption \"%s\" has class %d of %lld", captions[i / text->labels],
                          classes[i], (long long)text->classify[i % text->labels].out);
  if ((result = ms_text_buffers_open(&text->batch, text, (int64_t)captions_count * length, captions_count, 1,
                                     error)) < 0)
    return result;
  b = text->batch;
  for (int caption = 0; caption < captions_count;
       caption++) { /* a caption's padding is overwritten by the next one */
    int n = ms_tokenizer_run(&text->tokenizer, captions[caption], b->tokens + rows, NULL, 0);
    b->starts[caption] = rows;
    for (int i = 0; i < n; i++)
      b->places[rows + i] = i;
    rows += n;
  }
  b->starts[captions_count] = rows;
  ms_text_forward(text, b, captions_count);
  for (int caption = 0; caption < captions_count; caption++)
    memcpy(b->states + caption * dim, b->x + b->starts[caption] * dim, (size_t)dim * sizeof(float));
  ms_text_final_norm(text, b->states, captions_count, b->out, b->out_stats);
  for (int label = 0; label < text->labels; label++) {
    const struct ms_text_linear *head = &text->classify[label];
    ms_text_linear_run(text, head, captions_count, b->out, MSK_F32, NULL, b->logits, NULL, NULL);
    total += cross_entropy(b->logits, head->out, classes + label, text->labels, captions_count, share, &hits);
    if ((result = ms_text_linear_back(text, head, b, captions_count, b->out, MSK_F32, b->logits,
                                      label ? b->t : b->dstates, grad, error)) < 0)
      return result;
    if (label)
      text->compute->norm.add(b->t, b->dstates, captions_count * dim);
  }
  memset(b->g, 0, (size_t)(rows * dim) * sizeof(float));
  if ((result = ms_text_norm_back(text, &text->norm, b, captions_count, b->states, b->out_stats, b->dstates,
                                  b->t, 0, grad, error)) < 0)
    return result;
  for (int caption = 0; caption < captions_count; caption++)
    memcpy(b->g + b->starts[caption] * dim, b->t + caption * dim, (size_t)dim * sizeof(float));
  if ((result = ms_text_backward(text, b, captions_count, grad, error)) < 0)
    return result;
  if ((result = ms_pool_stopped(text->compute->pool, "cancelled", error)) < 0)
    return result;
  *loss = total / share;
  *right = hits / share;
  if (!isfinite(*loss))
    return ms_error_set(error, MS_ENOTFINITE, "the text encoder's loss is not finite");
  return 0;
}
