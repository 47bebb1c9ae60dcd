#include "plot/msu-plot-private.h"

/* The colours of Okabe and Ito (2008), ordered so that the first ones are far apart and clear on their
 * ground; place by place the two orders keep the same family of hues where the ground allows it. */
GdkRGBA msu_palette(guint index, gboolean dark) {
  static const guint32 on_light[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9};
  static const guint32 on_dark[] = {0x56b4e9, 0xe69f00, 0x009e73, 0xcc79a7, 0xf0e442, 0xd55e00};
  guint32 rgb = dark ? on_dark[index % G_N_ELEMENTS(on_dark)] : on_light[index % G_N_ELEMENTS(on_light)];
  return (GdkRGBA){(rgb >> 16) / 255.0f, (rgb >> 8 & 255) / 255.0f, (rgb & 255) / 255.0f, 1};
}
