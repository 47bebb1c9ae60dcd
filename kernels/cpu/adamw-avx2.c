#include "msk-adamw.h"

#include <math.h>

#include "adamw-sets.h"
#include "vec-avx2.h"
#include "vec-math.h"
#include "adamw-body.h"

void msk_adamw_init_avx2(struct msk_adamw_ops *ops) {
  *ops = (struct msk_adamw_ops){
      .name = "avx2",
      .step_f32 = step_f32,
      .step_split = step_split,
      .split = split,
      .join = join,
      .f32_to_bf16 = f32_to_bf16,
      .bf16_to_f32 = bf16_to_f32,
  };
}
