/* A small world of captioned clips, drawn by this program itself: coloured shapes that move over plain (now
 * and then patterned) grounds. The starter model learns from it.
 *
 *   struct msa_scenes_params params = msa_scenes_params_default ();
 *   params.seed = 7;
 *   if (msa_scenes_open (&source, &params, &error) < 0) ...
 *   source.read (source.data, 12, 0, &(struct ms_clip_request){.width = 64, .height = 64, .frames = 9}, rgb,
 * caption, 256, &error); source.close (source.data);
 *
 * Clip i depends on (seed, i) and the shares of the parameters alone. Lengths are in units of the frame's
 * short side and the motion always spans the whole clip, so the same clip can be drawn at any size and with
 * any number of frames. The variant picks the wording of the caption and nothing else. All calls are free of
 * shared state: several threads may read from one source. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-clips.h"

enum msa_color {
  MSA_RED,
  MSA_ORANGE,
  MSA_YELLOW,
  MSA_GREEN,
  MSA_CYAN,
  MSA_BLUE,
  MSA_PURPLE,
  MSA_PINK,
  MSA_BROWN,
  MSA_WHITE,
  MSA_GRAY,
  MSA_BLACK,
  MSA_COLORS
};
enum msa_shape {
  MSA_CIRCLE,
  MSA_SQUARE,
  MSA_TRIANGLE,
  MSA_STAR,
  MSA_DIAMOND,
  MSA_HEXAGON,
  MSA_HEART,
  MSA_RING,
  MSA_CROSS,
  MSA_SHAPES
};
enum msa_motion {
  MSA_RIGHT,
  MSA_UP_RIGHT,
  MSA_UP,
  MSA_UP_LEFT,
  MSA_LEFT,
  MSA_DOWN_LEFT,
  MSA_DOWN,
  MSA_DOWN_RIGHT, /* 45 degrees apart, from 0 */
  MSA_STILL,
  MSA_GROW,
  MSA_SHRINK,
  MSA_CLOCKWISE,
  MSA_COUNTERCLOCKWISE,
  MSA_BOUNCE,
  MSA_MOTIONS
};
enum msa_pattern { /* of the ground; all but the plain one have a second colour */
                   MSA_PLAIN,
                   MSA_GRADIENT_DOWN,
                   MSA_GRADIENT_ACROSS,
                   MSA_STRIPES_UPRIGHT,
                   MSA_STRIPES_LEVEL,
                   MSA_CHECKS,
                   MSA_DOTS,
                   MSA_PATTERNS
};
enum msa_relation {
  MSA_ALONE,
  MSA_ABOVE,
  MSA_BELOW,
  MSA_LEFT_OF,
  MSA_RIGHT_OF,
  MSA_RELATIONS
}; /* of the first object to the second */

struct msa_scenes_params {
  uint64_t seed; /* default 1 */
  int64_t count; /* clips in the source; default 1,000,000 */
  double extras; /* share of clips with a pattern, a further shape, a second object or a bounce; default .2 */
  double
      unsaid; /* share of clips whose captions leave the ground, the colour or the shape open; default .06 */
};
struct msa_scenes_params msa_scenes_params_default(void);

/* What a clip shows. Lengths in short sides, angles in radians clockwise on the screen, positions from the
 * centre, y down. */
struct msa_thing {
  enum msa_color color;
  enum msa_shape shape;
  uint8_t rgb[3];
  double x0, y0, x1, y1; /* centre in the first and the last frame */
  double r0, r1;         /* radius; a shape's outermost point is at most 1.25 radii from its centre */
  double angle0, angle1;
};
struct msa_scene {
  struct msa_thing things[2];
  int count; /* 1 or 2 */
  enum msa_relation relation;
  enum msa_motion motion; /* of both */
  double hop;             /* bounce: height of the two hops; else 0 */
  enum msa_pattern pattern;
  enum msa_color ground, ground2;
  uint8_t ground_rgb[2][3];
  double cell, phase;                            /* patterns: period and start */
  int ground_unsaid, color_unsaid, shape_unsaid; /* captions leave it open */
};

/* Fills in the source. MS_EUSAGE: a share outside 0..1, a count below 1. close frees everything. `read` wants
 * frames and sizes of at least 1 and returns MS_EUSAGE otherwise; request.fps is not used. Labels: colour
 * (the last class: unsaid), ground (same), shape (same), motion, pattern with its second colour, relation,
 * colour and shape of the second object (the last class: none). */
int msa_scenes_open(struct ms_clip_source *source, const struct msa_scenes_params *params,
                    struct ms_error *error);

/* The scene of clip i, and what `read` gives for it. */
void msa_scene_draw(const struct msa_scenes_params *params, int64_t clip, struct msa_scene *scene);
void msa_scene_render(const struct msa_scene *scene, int width, int height, int frames,
                      uint8_t *rgb /* [F,H,W,3] */);
/* Frame number `frame` of the same clip alone, for clips that are written as they are drawn. */
void msa_scene_render_frame(const struct msa_scene *scene, int width, int height, int frames, int frame,
                            uint8_t *rgb /* [H,W,3] */);
/* 255 wherever an object touches a pixel, else 0. */
void msa_scene_mask(const struct msa_scene *scene, int width, int height, int frames,
                    uint8_t *mask /* [F,H,W] */);
/* At most MSA_CAPTION_WORDS words, lower case. */
#define MSA_CAPTION_WORDS 23
void msa_scene_caption(const struct msa_scene *scene, uint64_t seed, char *caption, size_t size);

const char *msa_color_name(enum msa_color color);
const char *msa_shape_name(enum msa_shape shape);
const char *msa_motion_name(enum msa_motion motion);
const char *msa_pattern_name(enum msa_pattern pattern);
const char *msa_relation_name(enum msa_relation relation);
/* sRGB centre of a colour. */
const uint8_t *msa_color_rgb(enum msa_color color);

/* The words of all captions, "<pad>" and "<bos>" first, NULL last. */
const char *const *msa_scenes_vocabulary(void);
/* Words that mean the same to the model: pairs (word, word of the vocabulary), NULL last. */
const char *const *msa_scenes_same(void);
