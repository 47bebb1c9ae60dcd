/* From FLOPs to seconds: what one pass of the DiT takes at known rates. */
#include <math.h>

#include "plan/plan-private.h"

/* Offsets seldom use their bounds whole. */
#define REACH_OF_BOUNDS 0.75

/* Keys that 3D-DSA reads around a token, as a part of those it would read far from the lattice's edges. A
 * token at i of L has min (i, r) + min (L - 1 - i, r) + 1 neighbours within its reach r; this is their mean
 * over 2 r + 1. */
static double share_in_reach(const struct ms_dit_config *config, const int lattice[3], int coarse) {
  const struct ms_attention_config *list = coarse ? config->coarse_attention : config->attention;
  double share = 1;
  int layer = 0;
  while (layer < config->layers && list[layer].kind != MS_ATTENTION_DSA)
    layer++;
  for (int a = 0; a < 3 && layer < config->layers; a++) {
    double length = (double)lattice[a] / config->patch[a];
    double reach = list[layer].window[a] / 2 + REACH_OF_BOUNDS * list[layer].bounds[a];
    double mean = length > reach ? 2 * reach + 1 - reach * (reach + 1) / length : length;
    share *= mean / (2 * reach + 1);
  }
  return share;
}

struct ms_plan_work ms_plan_pass_work(const struct ms_dit *dit, const int lattice[3], int coarse,
                                      int training) {
  struct ms_plan_work work = {
      .dense = ms_dit_attention_flops(dit, lattice, coarse, MS_ATTENTION_DENSE) +
               ms_dit_attention_flops(dit, lattice, coarse, MS_ATTENTION_WINDOW),
      .slide = ms_dit_attention_flops(dit, lattice, coarse, MS_ATTENTION_DSA),
  };
  work.product = ms_dit_forward_flops(dit, lattice, coarse) - work.dense - work.slide;
  work.slide *= share_in_reach(ms_dit_config(dit), lattice, coarse);
  if (training) {
    work.product *= 3;
    work.dense *= 3;
    work.slide *= 3;
  } else {
    /* products are linear in the tokens; what is left at none belongs to the text and the time */
    const int *patch = ms_dit_config(dit)->patch;
    int one[3] = {patch[0], patch[1], patch[2]}, two[3] = {2 * patch[0], patch[1], patch[2]};
    double rest = 0;
    for (int i = 0; i < 2; i++) {
      const int *tiny = i ? two : one;
      double flops = ms_dit_forward_flops(dit, tiny, coarse);
      for (int kind = MS_ATTENTION_DENSE; kind <= MS_ATTENTION_DSA; kind++)
        flops -= ms_dit_attention_flops(dit, tiny, coarse, (enum ms_attention_kind)kind);
      rest += i ? -flops : 2 * flops;
    }
    work.product -= rest;
  }
  return work;
}

/* Rates grow with the width, evenly over its logarithm; beyond the two that were measured they stay. */
static double between(double small, double large, double share) {
  return small * pow(large / small, share);
}

double ms_plan_pass_seconds(const struct ms_rates *rates, struct ms_dit *dit, const int lattice[3],
                            int coarse, int samples, int training) {
  const struct ms_layer_rates *a = &rates->layers[0], *b = &rates->layers[1];
  const struct ms_dit_config *config = ms_dit_config(dit);
  struct ms_plan_work work = ms_plan_pass_work(dit, lattice, coarse, training);
  double share = log((double)config->dim / a->dim) / log((double)b->dim / a->dim), seconds;
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  if (training)
    seconds = work.product / between(a->train_product, b->train_product, share) +
              work.dense / between(a->train_dense, b->train_dense, share) +
              work.slide / between(a->train_slide, b->train_slide, share);
  else
    seconds = work.product / between(a->product, b->product, share) +
              work.dense / between(a->dense, b->dense, share) +
              work.slide / between(a->slide, b->slide, share);
  seconds *= samples;
  /* what a pass takes however short it is: handing out tasks, or adding up the gradients of all weights */
  if (training)
    seconds += (double)ms_dit_params(dit)->total / rates->gradient;
  else
    seconds += config->layers * rates->layer_seconds;
  return seconds;
}
