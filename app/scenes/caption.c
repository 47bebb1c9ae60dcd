/* Sentences that say what a scene shows, in many wordings. */
#include "msa-scenes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "draws.h"
#include "words.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

struct line {
  char *text;
  size_t size, length;
  struct msa_draws draws;
  const struct msa_scene *scene;
};

static const struct {
  const char *she, *they, *ing;
} verbs[MSA_VERBS_COUNT] = {
#define X(name, she, they, ing) [MSA_VERB_##name] = {she, they, ing},
    MSA_VERBS(X)
#undef X
};

struct phrase {
  enum msa_verb verb;
  const char *rest;
};

/* In templates: %h right or left, %o the other; %v up or down; %t top or bottom, %b the other; %u upper or
 * lower. */
static const char *const sideways[] = {"to the %h",
                                       "to the %h",
                                       "%h",
                                       "%h",
                                       "%hwards",
                                       "from %o to %h",
                                       "from %o to %h",
                                       "from the %o to the %h",
                                       "towards the %h"};
static const char *const upright[] = {
    "%v", "%v", "%vwards", "to the %t", "from %b to %t", "towards the %t", "from the %b to the %t"};
static const char *const diagonal[] = {"diagonally %v and to the %h",
                                       "diagonally %v and to the %h",
                                       "diagonally %v and to the %h",
                                       "%v and to the %h",
                                       "%v and %h",
                                       "diagonally %v and %h",
                                       "diagonally to the %u %h",
                                       "to the %u %h",
                                       "to the %t %h",
                                       "towards the %u %h",
                                       "towards the %t %h",
                                       "diagonally %vwards to the %h",
                                       "%v to the %h",
                                       "diagonally from the %b %o to the %t %h",
                                       "from the %b %o to the %t %h",
                                       "to the %t %h corner",
                                       "towards the %u %h corner",
                                       "%v-%h",
                                       "diagonally %v %h"};
static const enum msa_verb travels[] = {MSA_VERB_MOVE,   MSA_VERB_MOVE,  MSA_VERB_MOVE,  MSA_VERB_MOVE,
                                        MSA_VERB_SLIDE,  MSA_VERB_SLIDE, MSA_VERB_DRIFT, MSA_VERB_GLIDE,
                                        MSA_VERB_TRAVEL, MSA_VERB_FLOAT, MSA_VERB_GO,    MSA_VERB_FLY};

static const struct phrase rises[] = {
    {MSA_VERB_RISE, ""},    {MSA_VERB_RISE, ""},   {MSA_VERB_CLIMB, ""},   {MSA_VERB_ASCEND, ""},
    {MSA_VERB_FLOAT, "up"}, {MSA_VERB_RISE, "up"}, {MSA_VERB_CLIMB, "up"}, {MSA_VERB_RISE, "upwards"}};
static const struct phrase falls[] = {
    {MSA_VERB_FALL, ""},     {MSA_VERB_FALL, ""},         {MSA_VERB_SINK, ""},     {MSA_VERB_SINK, ""},
    {MSA_VERB_DROP, ""},     {MSA_VERB_DESCEND, ""},      {MSA_VERB_FALL, "down"}, {MSA_VERB_COME, "down"},
    {MSA_VERB_DROP, "down"}, {MSA_VERB_FALL, "downwards"}};
static const struct phrase rises_aside[] = {
    {MSA_VERB_RISE, "to the %h"}, {MSA_VERB_CLIMB, "to the %h"}, {MSA_VERB_RISE, "diagonally to the %h"}};
static const struct phrase falls_aside[] = {
    {MSA_VERB_FALL, "to the %h"}, {MSA_VERB_SINK, "to the %h"}, {MSA_VERB_FALL, "diagonally to the %h"}};
static const struct phrase stays[] = {{MSA_VERB_STAY, "still"},
                                      {MSA_VERB_STAY, "still"},
                                      {MSA_VERB_STAND, "still"},
                                      {MSA_VERB_STAND, "in the middle"},
                                      {MSA_VERB_STAND, "in the middle"},
                                      {MSA_VERB_STAY, "in the middle"},
                                      {MSA_VERB_BE, "still"},
                                      {MSA_VERB_DO, "not move"},
                                      {MSA_VERB_REMAIN, "still"},
                                      {MSA_VERB_REMAIN, "in place"},
                                      {MSA_VERB_STAY, "in place"},
                                      {MSA_VERB_SIT, "in the middle"},
                                      {MSA_VERB_SIT, "still"},
                                      {MSA_VERB_REST, "in the center"},
                                      {MSA_VERB_BE, "motionless"},
                                      {MSA_VERB_STAY, "in the center"},
                                      {MSA_VERB_REST, ""},
                                      {MSA_VERB_STAY, "motionless"},
                                      {MSA_VERB_BE, "in the middle"},
                                      {MSA_VERB_HOVER, "in place"}};
static const struct phrase grows[] = {
    {MSA_VERB_GROW, ""},       {MSA_VERB_GROW, ""},        {MSA_VERB_GROW, "larger"},
    {MSA_VERB_GROW, "larger"}, {MSA_VERB_GROW, "bigger"},  {MSA_VERB_GET, "bigger"},
    {MSA_VERB_GET, "bigger"},  {MSA_VERB_GET, "larger"},   {MSA_VERB_BECOME, "bigger"},
    {MSA_VERB_EXPAND, ""},     {MSA_VERB_SWELL, ""},       {MSA_VERB_GROW, "in size"},
    {MSA_VERB_COME, "closer"}, {MSA_VERB_BECOME, "larger"}};
static const struct phrase shrinks[] = {{MSA_VERB_SHRINK, ""},      {MSA_VERB_SHRINK, ""},
                                        {MSA_VERB_SHRINK, ""},      {MSA_VERB_GET, "smaller"},
                                        {MSA_VERB_GET, "smaller"},  {MSA_VERB_BECOME, "smaller"},
                                        {MSA_VERB_GROW, "smaller"}, {MSA_VERB_CONTRACT, ""},
                                        {MSA_VERB_GO, "away"},      {MSA_VERB_SHRINK, "in size"}};
static const struct phrase bounces[] = {
    {MSA_VERB_BOUNCE, ""},         {MSA_VERB_BOUNCE, ""},          {MSA_VERB_BOUNCE, "up and down"},
    {MSA_VERB_HOP, "up and down"}, {MSA_VERB_JUMP, "up and down"}, {MSA_VERB_HOP, ""},
    {MSA_VERB_BOUNCE, "in place"}};
static const enum msa_verb spins[] = {MSA_VERB_SPIN,   MSA_VERB_SPIN, MSA_VERB_SPIN,    MSA_VERB_ROTATE,
                                      MSA_VERB_ROTATE, MSA_VERB_TURN, MSA_VERB_REVOLVE, MSA_VERB_WHIRL};
static const char *const clockwise[] = {"clockwise",          "clockwise",
                                        "clockwise",          "clockwise",
                                        "clockwise in place", "in a clockwise direction",
                                        "around clockwise",   "clockwise in the middle"};
static const char *const counterclockwise[] = {"counterclockwise",
                                               "counterclockwise",
                                               "anticlockwise",
                                               "anticlockwise",
                                               "counter-clockwise",
                                               "anti-clockwise",
                                               "counterclockwise in place",
                                               "anticlockwise in place",
                                               "in a counterclockwise direction",
                                               "in an anticlockwise direction",
                                               "around counterclockwise",
                                               "anticlockwise in the middle"};

static const char *const color_words[MSA_COLORS][2] = {[MSA_RED] = {"red"},
                                                       [MSA_ORANGE] = {"orange"},
                                                       [MSA_YELLOW] = {"yellow"},
                                                       [MSA_GREEN] = {"green"},
                                                       [MSA_BLUE] = {"blue"},
                                                       [MSA_PINK] = {"pink"},
                                                       [MSA_CYAN] = {"cyan", "turquoise"},
                                                       [MSA_PURPLE] = {"purple", "violet"},
                                                       [MSA_BROWN] = {"brown"},
                                                       [MSA_WHITE] = {"white"},
                                                       [MSA_GRAY] = {"gray", "grey"},
                                                       [MSA_BLACK] = {"black"}};
static const char *const shape_words[MSA_SHAPES + 1][4] = {
    [MSA_CIRCLE] = {"circle", "ball", "disc", "disk"},
    [MSA_SQUARE] = {"square", "block", "box", "cube"},
    [MSA_TRIANGLE] = {"triangle"},
    [MSA_STAR] = {"star"},
    [MSA_DIAMOND] = {"diamond", "rhombus"},
    [MSA_HEXAGON] = {"hexagon"},
    [MSA_HEART] = {"heart"},
    [MSA_RING] = {"ring", "hoop"},
    [MSA_CROSS] = {"cross", "plus sign"},
    [MSA_SHAPES] = {"shape", "object", "thing", "figure"}};

/* %c the ground's colour with its article, %C without, %2 the second colour. */
static const char *const grounds[] = {" on %c background",
                                      " on %c background",
                                      " on %c background",
                                      " over %c background",
                                      " over %c background",
                                      " over %c background",
                                      " against %C",
                                      " against %C",
                                      ", %C background",
                                      ", %C background",
                                      " against %c background",
                                      " on %C",
                                      " with %c background",
                                      " on %c backdrop",
                                      " in front of %c background",
                                      " against %c backdrop",
                                      ", the background is %C",
                                      " over %C",
                                      " in front of %C",
                                      " on a plain %C background"};
static const char *const grounds_first[] = {"on %c background, ",
                                            "over %c background, ",
                                            "against %C, ",
                                            "%C background, ",
                                            "against %c background, ",
                                            "on %C, ",
                                            "in front of %c background, "};
static const char *const patterns[MSA_PATTERNS][5] = {
    [MSA_GRADIENT_DOWN] = {" on a gradient from %C at the top to %2 at the bottom",
                           " on a background that fades from %C down to %2",
                           " over a gradient from %C down to %2",
                           " against a gradient from %C at the top to %2 at the bottom",
                           " over a background that fades from %C at the top to %2"},
    [MSA_GRADIENT_ACROSS] = {" on a gradient from %C on the left to %2 on the right",
                             " over a background that fades from %C across to %2",
                             " over a gradient from %C across to %2",
                             " against a gradient from %C on the left to %2 on the right",
                             " on a background that fades from %C on the left to %2"},
    [MSA_STRIPES_UPRIGHT] = {" on vertical %C and %2 stripes", " over vertical stripes in %C and %2",
                             " on %c and %2 background with vertical stripes",
                             " against vertical %C and %2 stripes",
                             " on a background with vertical %C and %2 stripes"},
    [MSA_STRIPES_LEVEL] = {" on horizontal %C and %2 stripes", " over horizontal stripes in %C and %2",
                           " on %c and %2 background with horizontal stripes",
                           " against horizontal %C and %2 stripes",
                           " on a background with horizontal %C and %2 stripes"},
    [MSA_CHECKS] = {" on %c and %2 checkerboard", " over a checkered %C and %2 background",
                    " on a checkered background in %C and %2", " against %c and %2 checkerboard",
                    ", checkered %C and %2 background"},
    [MSA_DOTS] = {" on %c background with %2 dots", " over %c background with %2 dots",
                  " against %C with %2 dots", " on %c background with %2 spots",
                  ", %C background with %2 dots"}};

static void say_char(struct line *line, char c) {
  if (line->length + 1 < line->size) {
    line->text[line->length++] = c;
    line->text[line->length] = 0;
  }
}

static void say(struct line *line, const char *words) {
  for (; *words; words++)
    say_char(line, *words);
}

static const char *pick(struct line *line, const char *const *list, int n) {
  return list[msa_draws_below(&line->draws, n)];
}

static const char *color_word(struct line *line, enum msa_color color) {
  int other = color_words[color][1] && msa_draws_chance(&line->draws, .4);
  return color_words[color][other];
}

static void say_article(struct line *line, const char *word) {
  say(line, strchr("aeiou", word[0]) ? "an " : "a ");
}

static void say_template(struct line *line, const char *words) {
  static const char *const horizontal[] = {"right", "right", "", "left", "left", "left", "", "right"};
  const struct msa_scene *scene = line->scene;
  const int moves = scene->motion < MSA_STILL;
  const char *h = moves ? horizontal[scene->motion] : "";
  const int up = moves && scene->motion >= MSA_UP_RIGHT && scene->motion <= MSA_UP_LEFT;
  for (; *words; words++) {
    if (*words != '%') {
      say_char(line, *words);
      continue;
    }
    switch (*++words) {
    case 'h':
      say(line, h);
      break;
    case 'o':
      say(line, *h == 'r' ? "left" : "right");
      break;
    case 'v':
      say(line, up ? "up" : "down");
      break;
    case 't':
      say(line, up ? "top" : "bottom");
      break;
    case 'b':
      say(line, up ? "bottom" : "top");
      break;
    case 'u':
      say(line, up ? "upper" : "lower");
      break;
    case 'c':
    case 'C': {
      const char *color = color_word(line, scene->ground);
      if (*words == 'c')
        say_article(line, color);
      say(line, color);
      break;
    }
    case '2':
      say(line, color_word(line, scene->ground2));
      break;
    }
  }
}

static void say_thing(struct line *line, const struct msa_thing *thing) {
  const struct msa_scene *scene = line->scene;
  const char *const *words = shape_words[scene->shape_unsaid ? MSA_SHAPES : (int)thing->shape];
  int known = 0;
  while (known < 4 && words[known])
    known++;
  const char *noun = pick(line, words, known),
             *color = scene->color_unsaid ? NULL : color_word(line, thing->color);
  const int article = msa_draws_below(&line->draws, 20);
  if (article < 15)
    say_article(line, color ? color : noun);
  else if (article < 18)
    say(line, "the ");
  else if (article < 19)
    say(line, "one ");
  if (color) {
    say(line, color);
    say(line, " ");
  }
  say(line, noun);
}

static struct phrase travel_phrase(struct line *line) {
  const struct msa_scene *scene = line->scene;
  const enum msa_motion motion = scene->motion;
  const int up = motion >= MSA_UP_RIGHT && motion <= MSA_UP_LEFT,
            rolls = scene->things[0].shape == MSA_CIRCLE || scene->things[0].shape == MSA_RING;
  struct phrase phrase = {.verb = travels[msa_draws_below(&line->draws, COUNT(travels))]};
  if (motion == MSA_RIGHT || motion == MSA_LEFT) {
    if (rolls && scene->count == 1 && !scene->shape_unsaid && msa_draws_chance(&line->draws, .25))
      phrase.verb = MSA_VERB_ROLL;
    phrase.rest = pick(line, sideways, COUNT(sideways));
  } else if (motion == MSA_UP || motion == MSA_DOWN) {
    if (msa_draws_chance(&line->draws, .45))
      return up ? rises[msa_draws_below(&line->draws, COUNT(rises))]
                : falls[msa_draws_below(&line->draws, COUNT(falls))];
    phrase.rest = pick(line, upright, COUNT(upright));
  } else {
    if (msa_draws_chance(&line->draws, .08)) {
      int i = msa_draws_below(&line->draws, COUNT(rises_aside));
      return up ? rises_aside[i] : falls_aside[i];
    }
    phrase.rest = pick(line, diagonal, COUNT(diagonal));
  }
  return phrase;
}

static struct phrase spin_phrase(struct line *line) {
  struct phrase phrase = {.verb = spins[msa_draws_below(&line->draws, COUNT(spins))], .rest = ""};
  if (msa_draws_chance(&line->draws, .02)) /* "spins": either way will do */
    return phrase;
  phrase.rest = line->scene->motion == MSA_CLOCKWISE ? pick(line, clockwise, COUNT(clockwise))
                                                     : pick(line, counterclockwise, COUNT(counterclockwise));
  return phrase;
}

static struct phrase motion_phrase(struct line *line) {
  switch (line->scene->motion) {
  case MSA_STILL:
    return stays[msa_draws_below(&line->draws, COUNT(stays))];
  case MSA_GROW:
    return grows[msa_draws_below(&line->draws, COUNT(grows))];
  case MSA_SHRINK:
    return shrinks[msa_draws_below(&line->draws, COUNT(shrinks))];
  case MSA_BOUNCE:
    return bounces[msa_draws_below(&line->draws, COUNT(bounces))];
  case MSA_CLOCKWISE:
  case MSA_COUNTERCLOCKWISE:
    return spin_phrase(line);
  default:
    return travel_phrase(line);
  }
}

static void say_motion(struct line *line) {
  const struct phrase phrase = motion_phrase(line);
  const int many = line->scene->count > 1, form = msa_draws_below(&line->draws, 10);
  /* A thing that nothing is said of does not move. */
  if (line->scene->motion == MSA_STILL && msa_draws_chance(&line->draws, .08))
    return;
  say(line, many ? ", both " : " ");
  if (form < 8 || phrase.verb == MSA_VERB_BE || phrase.verb == MSA_VERB_DO) {
    say(line, many ? verbs[phrase.verb].they : verbs[phrase.verb].she);
  } else {
    if (form == 8 && !many)
      say(line, "is ");
    say(line, verbs[phrase.verb].ing);
  }
  if (*phrase.rest)
    say(line, " ");
  say_template(line, phrase.rest);
}

static void say_things(struct line *line) {
  static const char *const relations[MSA_RELATIONS][2] = {
      [MSA_ABOVE] = {" above ", " above "},
      [MSA_BELOW] = {" below ", " under "},
      [MSA_LEFT_OF] = {" left of ", " to the left of "},
      [MSA_RIGHT_OF] = {" right of ", " to the right of "}};
  const struct msa_scene *scene = line->scene;
  say_thing(line, &scene->things[0]);
  if (scene->count > 1) {
    say(line, pick(line, relations[scene->relation], 2));
    say_thing(line, &scene->things[1]);
  }
}

static int count_words(const char *text) {
  int words = 0, within = 0;
  for (; *text; text++) {
    int letter = isalnum((unsigned char)*text);
    words += letter && !within;
    within = letter;
  }
  return words;
}

void msa_scene_caption(const struct msa_scene *scene, uint64_t seed, char *caption, size_t size) {
  struct line line = {.text = caption, .size = size, .draws = msa_draws_start(seed, 0, 'C'), .scene = scene};
  if (!size)
    return;
  do {
    const int first = scene->pattern == MSA_PLAIN && msa_draws_chance(&line.draws, .12);
    line.length = 0;
    caption[0] = 0;
    if (msa_draws_chance(&line.draws, .03))
      say(&line, msa_draws_below(&line.draws, 2) ? "a clip of " : "a video of ");
    else if (first && !scene->ground_unsaid)
      say_template(&line, pick(&line, grounds_first, COUNT(grounds_first)));
    const int said = first && line.length && caption[line.length - 2] == ',';
    say_things(&line);
    say_motion(&line);
    if (scene->pattern != MSA_PLAIN)
      say_template(&line, pick(&line, patterns[scene->pattern], 5));
    else if (!scene->ground_unsaid && !said)
      say_template(&line, pick(&line, grounds, COUNT(grounds)));
  } while (count_words(caption) > MSA_CAPTION_WORDS);
}
