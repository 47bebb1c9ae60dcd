#include "msk-conv.h"

#include <string.h>

#include "conv-sets.h"
#include "vec-avx2.h"
#include "conv-lines.h"
#include "conv-gradient.h"

void msk_conv_init_avx2(struct msk_conv_ops *ops) {
  *ops = (struct msk_conv_ops){
      .name = "avx2",
      .depthwise_scratch = depthwise_scratch,
      .depthwise = depthwise,
      .depthwise_backward_x = depthwise_backward_x,
      .depthwise_backward_w = depthwise_backward_w,
  };
}
