#include "msk-norm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "norm-sets.h"
#include "vec-avx2.h"
#include "vec-math.h"
#include "norm-layer.h"
#include "norm-rope.h"
#include "norm-act.h"
#include "norm-sums.h"

void msk_norm_init_avx2(struct msk_norm_ops *ops) {
  *ops = (struct msk_norm_ops){
      .name = "avx2",
      .layer_norm = layer_norm,
      .layer_norm_backward = layer_norm_backward,
      .rms_rope = rms_rope,
      .rms_rope_backward = rms_rope_backward,
      .l2_norm = l2_norm,
      .l2_norm_backward = l2_norm_backward,
      .gelu = gelu,
      .gelu_backward = gelu_backward,
      .silu = silu,
      .silu_backward = silu_backward,
      .gate_backward = gate_backward,
      .column_sum = column_sum,
      .add = add,
      .axpby = axpby,
      .sum_squares = sum_squares,
  };
}
