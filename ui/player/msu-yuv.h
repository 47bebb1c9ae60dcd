/* Pictures of three planes to B, G, R, A, exact to the rounding. (GStreamer's own conversion takes
 * coefficients of 8 bits; white comes out as 251.) */
#pragma once
#include <glib.h>

struct msu_yuv {
  const guint8 *planes[3]; /* Y, U (Cb), V (Cr), 8 bits */
  gsize strides[3];
  int width, height;
  int chroma_width, chroma_height; /* equal to the above, or half rounded up */
  double kr, kb;                   /* of the matrix: 0.2126 and 0.0722 for BT.709 */
  gboolean full;                   /* 0..255 instead of 16..235 and 16..240 */
};

/* bgra: [height, width, 4], rows without gaps. Chroma is interpolated between its samples, which lie on the
 * left pixel of a pair and between the two rows (as MPEG-2 and H.264 have them). */
void msu_yuv_to_bgra(const struct msu_yuv *picture, guint8 *bgra);
