#include "msk-adamw.h"

#include <math.h>

#include "adamw-codes.h"
#include "adamw-sets.h"
#include "vec-avx512.h"
#include "vec-math.h"
#include "adamw-body.h"
#include "adamw-moments.h"
#include "adamw-moments-avx512.h"

void msk_adamw_init_avx512(struct msk_adamw_ops *ops) {
  ops->name = "avx512";
  ops->step_f32 = step_f32;
  ops->step_split = step_split;
  ops->step_split8 = step_split8_wide;
  ops->split = split;
  ops->join = join;
  ops->f32_to_bf16 = f32_to_bf16;
  ops->bf16_to_f32 = bf16_to_f32;
}
