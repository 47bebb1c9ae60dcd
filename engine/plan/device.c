/* What a device with memory of its own needs to compute one layer.
 *
 * Tensors are bf16. A long clip's layer does not fit whole: it is computed over slabs of latent frames, one
 * after the other, with the frames beside them that attention reaches; the layer's input and output (the
 * residual stream, and its gradient) then lie in the host and pass slab by slab. Products are as long as a
 * slab, so they lose nothing; what is copied more is a few frames a slab. */
#include <math.h>

#include "plan/plan-private.h"

#define BF16 2
/* The driver's own memory and the scratch of products. */
#define DEVICE_BASE ((uint64_t)768 << 20)
/* Tensors [token, C] and [token, ffn] that live at once in a layer. Forward: input, output, norm, q, k, v,
 * attended and the offset head's features; the hidden layer. Backward, everything computed again and kept:
 * besides two norms, two residuals, the cross-attention's two, and gradients of input, q, k, v, attended,
 * features, norm and residual; the hidden layer before and after its activation, and its gradient. */
#define FORWARD_CHANNELS 8
#define FORWARD_HIDDEN 1
#define BACKWARD_CHANNELS 20
#define BACKWARD_HIDDEN 3
/* Of a frame beside the slab: keys, values, features; in the backward pass their gradients too. */
#define HALO_CHANNELS 3

/* Frames that attention reaches beyond its own, to one side. */
static int reach(const struct ms_dit_config *config, int frames, int coarse) {
  const struct ms_attention_config *list = coarse ? config->coarse_attention : config->attention;
  int most = 0;
  for (int l = 0; l < config->layers; l++) {
    int here = list[l].kind == MS_ATTENTION_DENSE ? frames : list[l].window[0] / 2;
    if (list[l].kind == MS_ATTENTION_DSA)
      here += (int)ceilf(list[l].bounds[0]);
    most = here > most ? here : most;
  }
  return most < frames ? most : frames;
}

void ms_plan_slab(const struct ms_dit *dit, const int lattice[3], int coarse, int samples, int training,
                  uint64_t room, struct ms_plan_slab *slab) {
  const struct ms_dit_config *c = ms_dit_config(dit);
  int frames = lattice[0] / c->patch[0], beside = 2 * reach(c, frames, coarse), at = frames;
  uint64_t area = (uint64_t)(lattice[1] / c->patch[1]) * (uint64_t)(lattice[2] / c->patch[2]);
  uint64_t channels = (uint64_t)c->dim * BF16, hidden = (uint64_t)c->ffn * BF16;
  uint64_t token = training ? BACKWARD_CHANNELS * channels + BACKWARD_HIDDEN * hidden
                            : FORWARD_CHANNELS * channels + FORWARD_HIDDEN * hidden;
  uint64_t halo = (training ? 2 : 1) * HALO_CHANNELS * channels;
  uint64_t inputs = training ? MS_PLACEMENT_INPUTS : 0;
  *slab = (struct ms_plan_slab){.input_bytes = (uint64_t)samples * (uint64_t)frames * area * channels};
  slab->working = DEVICE_BASE + (uint64_t)samples * (uint64_t)frames * area * token;
  if (slab->working + inputs * slab->input_bytes <= room)
    return;
  for (; at >= 1; at--) {
    int more = beside < frames - at ? beside : frames - at;
    slab->frames = at;
    slab->slab_bytes = (uint64_t)at * area * channels;
    slab->working = DEVICE_BASE + area * ((uint64_t)at * token + (uint64_t)more * halo);
    slab->halo = (double)more / at;
    if (slab->working + inputs * slab->slab_bytes <= room)
      return;
  }
}
