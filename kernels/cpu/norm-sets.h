/* The rungs of msk_norm_init: each replaces the slots that its instruction set does better. */
#pragma once
#include "msk-norm.h"

void msk_norm_init_avx2(struct msk_norm_ops *ops);
void msk_norm_init_avx512(struct msk_norm_ops *ops);
