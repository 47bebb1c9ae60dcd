/* From the latents of one stage to the noisy latents of the next: decode, enlarge the pixels, encode again,
 * one latent frame at a time with carried state, then mix with noise to a level sigma. */
#pragma once
#include "model/model.h"
#include "ms-job.h"
#include "sample/stages.h"

/* latents [C, from->lattice] -> out [C, to->lattice] = (1 - sigma) encoded + sigma noise (seed, stream).
 * `done` (may be NULL) is called after each latent frame. */
int ms_enlarge(struct ms_model *model, const struct ms_stage *from, const float *latents,
               const struct ms_stage *to, double sigma, uint64_t seed, uint64_t stream, float *out,
               void (*done)(void *data, int frame), void *data, struct ms_error *error);

/* Latent frame t of [C,T,H,W] as [C,H,W], and back. */
void ms_latents_take_frame(const float *latents, int channels, const int lattice[3], int t, float *frame);
void ms_latents_put_frame(float *latents, int channels, const int lattice[3], int t, const float *frame);
