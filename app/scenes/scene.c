/* What a clip shows: draws a scene from its number. */
#include "msa-scenes.h"

#include <math.h>
#include <string.h>

#include "draws.h"

static const struct {
  const char *name;
  uint8_t rgb[3];
  double object_weight, ground_weight; /* colours that are easily mixed up, or dull, come half as often */
} colors[MSA_COLORS] = {
    [MSA_RED] = {"red", {215, 40, 40}, 1, 1},         [MSA_ORANGE] = {"orange", {240, 140, 30}, 1, 1},
    [MSA_YELLOW] = {"yellow", {245, 220, 50}, 1, 1},  [MSA_GREEN] = {"green", {50, 165, 70}, 1, 1},
    [MSA_CYAN] = {"cyan", {60, 200, 215}, .5, .5},    [MSA_BLUE] = {"blue", {45, 85, 205}, 1, 1},
    [MSA_PURPLE] = {"purple", {130, 60, 175}, 1, .5}, [MSA_PINK] = {"pink", {245, 140, 185}, 1, .5},
    [MSA_BROWN] = {"brown", {120, 75, 40}, .5, .5},   [MSA_WHITE] = {"white", {245, 245, 245}, 1, 1},
    [MSA_GRAY] = {"gray", {128, 128, 128}, .5, 1},    [MSA_BLACK] = {"black", {15, 15, 15}, 1, 1},
};

/* Pairs that people would hardly tell apart, or whose border video compression smears: never side by side.
 * All others are more than 35 apart in CIE Lab. */
static const uint8_t never[][2] = {
    {MSA_WHITE, MSA_YELLOW}, {MSA_RED, MSA_ORANGE},  {MSA_ORANGE, MSA_YELLOW}, {MSA_RED, MSA_PINK},
    {MSA_GRAY, MSA_WHITE},   {MSA_BLUE, MSA_PURPLE}, {MSA_WHITE, MSA_PINK},    {MSA_BROWN, MSA_RED},
    {MSA_BROWN, MSA_BLACK},  {MSA_BROWN, MSA_GRAY},  {MSA_BROWN, MSA_ORANGE},  {MSA_CYAN, MSA_WHITE},
    {MSA_CYAN, MSA_GRAY},    {MSA_CYAN, MSA_BLUE},
};

/* Distance of the outermost point from the centre, in radii. */
static const double reach[MSA_SHAPES] = {
    [MSA_CIRCLE] = 1,    [MSA_SQUARE] = 1.16, [MSA_TRIANGLE] = 1.25, [MSA_STAR] = 1.25,  [MSA_DIAMOND] = 1.25,
    [MSA_HEXAGON] = 1.1, [MSA_HEART] = 1.2,   [MSA_RING] = 1.1,      [MSA_CROSS] = 1.25,
};

static const char *const shape_names[MSA_SHAPES] = {"circle",  "square", "triangle", "star", "diamond",
                                                    "hexagon", "heart",  "ring",     "cross"};
static const char *const motion_names[MSA_MOTIONS] = {
    "right",      "up-right", "up",   "up-left", "left",      "down-left",        "down",
    "down-right", "still",    "grow", "shrink",  "clockwise", "counterclockwise", "bounce"};
static const char *const pattern_names[MSA_PATTERNS] = {
    "plain", "gradient-down", "gradient-across", "stripes-upright", "stripes-level", "checks", "dots"};
static const char *const relation_names[MSA_RELATIONS] = {"alone", "above", "below", "left-of", "right-of"};

const char *msa_color_name(enum msa_color color) {
  return colors[color].name;
}

const char *msa_shape_name(enum msa_shape shape) {
  return shape_names[shape];
}

const char *msa_motion_name(enum msa_motion motion) {
  return motion_names[motion];
}

const char *msa_pattern_name(enum msa_pattern pattern) {
  return pattern_names[pattern];
}

const char *msa_relation_name(enum msa_relation relation) {
  return relation_names[relation];
}

const uint8_t *msa_color_rgb(enum msa_color color) {
  return colors[color].rgb;
}

static int colors_meet(enum msa_color a, enum msa_color b) {
  if (a == b)
    return 0;
  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
    if ((never[i][0] == a && never[i][1] == b) || (never[i][0] == b && never[i][1] == a))
      return 0;
  return 1;
}

/* A pair (object, ground) by the product of its weights. */
static void draw_pair(struct msa_draws *draws, enum msa_color *object, enum msa_color *ground) {
  double total = 0;
  for (int pass = 0;; pass++) {
    double at = pass ? msa_draws_range(draws, 0, total) : 0;
    for (int a = 0; a < MSA_COLORS; a++)
      for (int b = 0; b < MSA_COLORS; b++) {
        if (!colors_meet(a, b))
          continue;
        double weight = colors[a].object_weight * colors[b].ground_weight;
        if (!pass) {
          total += weight;
          continue;
        }
        *object = a;
        *ground = b;
        if ((at -= weight) < 0)
          return;
      }
    if (pass)
      return; /* rounding left a crumb: the last pair stands */
  }
}

/* A further colour that may meet all of `others`; grounds always leave one (a test looks). */
static enum msa_color draw_color(struct msa_draws *draws, const enum msa_color *others, int n) {
  enum msa_color fits[MSA_COLORS];
  int count = 0;
  for (int c = 0; c < MSA_COLORS; c++) {
    int good = 1;
    for (int i = 0; i < n; i++)
      good &= colors_meet(c, others[i]);
    if (good)
      fits[count++] = c;
  }
  return count ? fits[msa_draws_below(draws, count)] : others[0];
}

static void jitter_rgb(struct msa_draws *draws, enum msa_color color, uint8_t rgb[3]) {
  for (int c = 0; c < 3; c++) {
    int value = colors[color].rgb[c] + msa_draws_below(draws, 17) - 8;
    rgb[c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
  }
}

static int turns(enum msa_motion motion) {
  return motion == MSA_CLOCKWISE || motion == MSA_COUNTERCLOCKWISE;
}

static enum msa_motion draw_motion(struct msa_draws *draws, int round) {
  const double still_weight = .7;
  for (;;) {
    double at = msa_draws_range(draws, 0, MSA_BOUNCE - 1 + still_weight);
    int motion = (int)at;
    if (motion >= MSA_STILL) /* the one shorter slot moves the later ones up */
      motion =
          at < MSA_STILL + still_weight ? MSA_STILL : MSA_STILL + 1 + (int)(at - MSA_STILL - still_weight);
    if (motion >= MSA_BOUNCE)
      motion = MSA_BOUNCE - 1;
    if (!round || !turns(motion))
      return motion;
  }
}

/* Places a thing around (x, y) with the scene's motion; `room` is how far its parts may get from the centre
 * of the frame. */
static void place_thing(struct msa_draws *draws, struct msa_scene *scene, struct msa_thing *thing, double x,
                        double y, double r, double room, double travel) {
  const double extent = r * reach[thing->shape];
  double dx = 0, dy = 0;
  thing->r0 = thing->r1 = r;
  thing->angle0 = thing->angle1 = msa_draws_range(draws, -.12, .12);
  if (scene->motion < MSA_STILL) {
    double most = 2 * (room - extent);
    travel = travel < most ? travel : most;
    dx = travel / 2 * cos(scene->motion * M_PI / 4);
    dy = -travel / 2 * sin(scene->motion * M_PI / 4);
  } else if (turns(scene->motion)) {
    double turn = msa_draws_range(draws, 1.6, 2.2);
    thing->angle1 += scene->motion == MSA_CLOCKWISE ? turn : -turn;
  }
  /* The centre's jitter stays so small that nothing reaches the border. */
  const double margin = .483; /* half a frame less the border pixel of the smallest one */
  double jx = margin - extent - fabs(x) - fabs(dx), jy = margin - extent - fabs(y) - fabs(dy);
  jx = jx < .03 ? fmax(jx, 0) : .03;
  jy = jy < .03 ? fmax(jy, 0) : .03;
  x += msa_draws_range(draws, -jx, jx);
  y += msa_draws_range(draws, -jy, jy);
  thing->x0 = x - dx;
  thing->y0 = y - dy;
  thing->x1 = x + dx;
  thing->y1 = y + dy;
}

static void place_one(struct msa_draws *draws, struct msa_scene *scene) {
  struct msa_thing *thing = &scene->things[0];
  double travel = msa_draws_range(draws, .36, .48), r = msa_draws_range(draws, .17, .23);
  if (scene->motion == MSA_BOUNCE) {
    scene->hop = msa_draws_range(draws, .24, .32);
    r = msa_draws_range(draws, .15, .19);
  }
  if (scene->motion == MSA_GROW || scene->motion == MSA_SHRINK) {
    double small = msa_draws_range(draws, .11, .13), large = msa_draws_range(draws, .23, .26);
    place_thing(draws, scene, thing, 0, 0, large, .483, travel);
    thing->r0 = scene->motion == MSA_GROW ? small : large;
    thing->r1 = scene->motion == MSA_GROW ? large : small;
    return;
  }
  place_thing(draws, scene, thing, 0, scene->hop / 2, r, .483, travel);
}

static void place_two(struct msa_draws *draws, struct msa_scene *scene) {
  static const int sides[MSA_RELATIONS][2] = {{0, 0}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}};
  const double apart = msa_draws_range(draws, .2, .23), travel = msa_draws_range(draws, .36, .48);
  for (int i = 0; i < 2; i++) {
    const double side = (i ? -1 : 1) * apart;
    struct msa_thing *thing = &scene->things[i];
    double r = msa_draws_range(draws, .105, .13);
    double small = r * msa_draws_range(draws, .45, .52);
    place_thing(draws, scene, thing, sides[scene->relation][0] * side, sides[scene->relation][1] * side, r,
                .483, travel);
    if (scene->motion == MSA_GROW)
      thing->r0 = small;
    else if (scene->motion == MSA_SHRINK)
      thing->r1 = small;
  }
}

/* Two things move across the line that joins them, so that neither gets into the other's way. */
static enum msa_motion draw_motion_of_two(struct msa_draws *draws, enum msa_relation relation, int round) {
  for (;;) {
    enum msa_motion motion = draw_motion(draws, round);
    int upright = relation == MSA_ABOVE || relation == MSA_BELOW;
    if (motion >= MSA_STILL ||
        (upright ? motion == MSA_RIGHT || motion == MSA_LEFT : motion == MSA_UP || motion == MSA_DOWN))
      return motion;
  }
}

static enum msa_shape draw_shape(struct msa_draws *draws, int further) {
  return further ? MSA_STAR + 1 + msa_draws_below(draws, MSA_SHAPES - MSA_STAR - 1)
                 : msa_draws_below(draws, MSA_STAR + 1);
}

static int is_round(enum msa_shape shape) {
  return shape == MSA_CIRCLE || shape == MSA_RING;
}

void msa_scene_draw(const struct msa_scenes_params *params, int64_t clip, struct msa_scene *scene) {
  struct msa_draws draws = msa_draws_start(params->seed, (uint64_t)clip, 'S');
  const int extra = msa_draws_chance(&draws, params->extras);
  /* One thing makes a clip an extra; each of the others joins in now and then. */
  const int kind = extra ? msa_draws_below(&draws, 20) : -1;
  const int patterned = extra && (kind < 7 || msa_draws_chance(&draws, .1));
  const int shaped = extra && ((kind >= 7 && kind < 14) || msa_draws_chance(&draws, .1));
  const int two = extra && kind >= 14 && kind < 18;
  const int bounce = extra && kind >= 18;
  struct msa_thing *thing = scene->things;
  enum msa_color used[4];
  memset(scene, 0, sizeof *scene);

  scene->count = two ? 2 : 1;
  thing[0].shape = draw_shape(&draws, shaped);
  thing[1].shape = draw_shape(&draws, shaped && msa_draws_chance(&draws, .5));
  draw_pair(&draws, &thing[0].color, &scene->ground);
  used[0] = scene->ground;
  used[1] = thing[0].color;
  thing[1].color = draw_color(&draws, used, 2);
  if (patterned) {
    scene->pattern = 1 + msa_draws_below(&draws, MSA_PATTERNS - 1);
    used[2] = thing[1].color;
    scene->ground2 = draw_color(&draws, used, two ? 3 : 2);
    if (!colors_meet(scene->ground2, scene->ground))
      scene->pattern = MSA_PLAIN; /* three colours left no fourth */
  }
  if (two) {
    scene->relation = 1 + msa_draws_below(&draws, MSA_RELATIONS - 1);
    scene->motion =
        draw_motion_of_two(&draws, scene->relation, is_round(thing[0].shape) || is_round(thing[1].shape));
    place_two(&draws, scene);
  } else {
    scene->motion = bounce ? MSA_BOUNCE : draw_motion(&draws, is_round(thing[0].shape));
    place_one(&draws, scene);
  }
  for (int i = 0; i < 2; i++)
    jitter_rgb(&draws, thing[i].color, thing[i].rgb);
  jitter_rgb(&draws, scene->ground, scene->ground_rgb[0]);
  jitter_rgb(&draws, scene->ground2, scene->ground_rgb[1]);
  scene->cell = msa_draws_range(&draws, .22, .36);
  scene->phase = msa_draws_range(&draws, 0, 1);
  if (!two && scene->pattern == MSA_PLAIN && msa_draws_chance(&draws, params->unsaid)) {
    int what = msa_draws_below(&draws, 4);
    scene->ground_unsaid = what < 2;
    scene->color_unsaid = what == 2;
    scene->shape_unsaid = what == 3;
  }
}
