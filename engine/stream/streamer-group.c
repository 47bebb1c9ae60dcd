/* What the ranks of a group do together in a pass. Each sees the same layers in the same order, so each calls
 * the group in the same order. */
#include <string.h>

#include "stream/streamer-private.h"

static struct ms_group *group_of(const struct ms_streamer *s) {
  return s->p.store->params.group;
}

void ms_streamer_gather(struct ms_streamer *s, const struct ms_op *op, int number) {
  const struct ms_shard *shard = ms_shard_store_at(s->p.store, number);
  uint16_t *weights = ms_streamer_weights(s, op, number);
  if (!group_of(s) || !shard->all_owned || (s->kind != MS_STREAM_AVERAGE && !s->stale[number + 1]))
    return;
  /* averages lie beside the weights; where this rank has none it has put nothing there */
  if (!shard->layout.owned && shard->weights && weights != shard->weights)
    memcpy(weights, shard->weights, (size_t)shard->layout.count * sizeof *weights);
  ms_group_gather(group_of(s), weights + shard->all_first, shard->all_owned);
  if (s->kind != MS_STREAM_AVERAGE)
    s->stale[number + 1] = 0;
}

void ms_streamer_reduce(struct ms_streamer *s, float *own, int number) {
  const struct ms_shard *shard = ms_shard_store_at(s->p.store, number);
  if (group_of(s) && shard->all_owned)
    ms_group_reduce(group_of(s), s->whole[number < 0], shard->all_owned, own);
}

int ms_streamer_drain(struct ms_streamer *s, struct ms_error *error) {
  int code = 0;
  for (int i = 0; i < s->schedule->count && code == 0; i++) {
    const struct ms_op *op = &s->schedule->ops[i];
    enum ms_dit_pass pass = op->kind == MS_OP_BACKWARD ? MS_PASS_BACKWARD : MS_PASS_FORWARD;
    struct ms_dit_loan loan;
    if (op->lane != MS_LANE_COMPUTE || s->done[i])
      continue;
    code = ms_streamer_source_begin(s, pass, op->layer, &loan, error);
    if (code == 0)
      code = ms_streamer_source_end(s, pass, op->layer, error);
  }
  return code;
}

/* Sums of squares are added in the order of the ranks; of parameters that are not finite the first is taken.
 */
static void share_figures(struct ms_streamer *s) {
  struct ms_group *g = group_of(s);
  const struct ms_params *params = s->p.params;
  int shards = s->schedule_params.layers + 1, count = 2 * shards;
  double *mine = s->told, *all = s->told + count;
  for (int i = 0; i < shards; i++) {
    mine[i] = s->squares[i];
    mine[shards + i] = -1;
    for (int j = 0; s->bad[i] && j < params->count; j++)
      if (params->list[j].name == s->bad[i])
        mine[shards + i] = j;
  }
  g->all_gather_doubles(g->data, mine, count, all);
  for (int i = 0; i < shards; i++) {
    s->squares[i] = 0;
    s->bad[i] = NULL;
    for (int r = 0; r < g->size; r++) {
      const double *theirs = all + (size_t)r * count;
      s->squares[i] += theirs[i];
      if (theirs[shards + i] >= 0 && !s->bad[i])
        s->bad[i] = params->list[(int)theirs[shards + i]].name;
    }
  }
}

int ms_streamer_agree(struct ms_streamer *s, int code, struct ms_error *error) {
  struct ms_group *g = group_of(s);
  if (code < 0 && code != MS_ENOTFINITE)
    g->torn = 1;
  if (g->torn)
    return code;
  if (s->kind == MS_STREAM_STEP)
    share_figures(s);
  return ms_group_agree(g, code, error);
}
