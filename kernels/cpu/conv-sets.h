/* The rungs of msk_conv_init: each replaces the slots that its instruction set does better. */
#pragma once
#include "msk-conv.h"

void msk_conv_init_avx2(struct msk_conv_ops *ops);
void msk_conv_init_avx512(struct msk_conv_ops *ops);
