/* The rungs of msk_adamw_init: each replaces the slots that its instruction set does better. */
#pragma once
#include "msk-adamw.h"

void msk_adamw_init_avx2(struct msk_adamw_ops *ops);
void msk_adamw_init_avx512(struct msk_adamw_ops *ops);
