/* Who implements the peaks: each function overwrites the slots that its set does better than the sets below
 * it. */
#pragma once
#include "msk-peak.h"

void msk_peak_init_avx2(struct msk_peak_ops *ops);
void msk_peak_init_avx512(struct msk_peak_ops *ops);
void msk_peak_init_avx512bf16(struct msk_peak_ops *ops);
void msk_peak_init_amx(struct msk_peak_ops *ops);
