#include "msk-conv.h"

#include <string.h>

#include "conv-sets.h"
#include "vec-avx512.h"
#include "conv-lines.h"
#include "conv-gradient.h"

void msk_conv_init_avx512(struct msk_conv_ops *ops) {
  *ops = (struct msk_conv_ops){
      .name = "avx512",
      .depthwise_scratch = depthwise_scratch,
      .depthwise = depthwise,
      .depthwise_backward_x = depthwise_backward_x,
      .depthwise_backward_w = depthwise_backward_w,
  };
}
