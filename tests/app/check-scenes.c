/* Scenes show what they say: looked at in pixels, by other means than those that drew them. */
#include "msa-scenes.h"

#include <complex.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

struct sight {       /* of one frame, measured against the colour of the frame's corner */
  double area, x, y; /* pixels, centre from the middle of the frame */
  double complex harmonic[6];
  int rgb[3]; /* of the pixel that differs most */
};

static struct sight look(const uint8_t *rgb, int width, int height) {
  struct sight s = {0};
  double most = 0, full = 0;
  for (int i = 0; i < width * height; i++) {
    double d = 0;
    for (int c = 0; c < 3; c++)
      d += (double)((rgb[3 * i + c] - rgb[c]) * (rgb[3 * i + c] - rgb[c]));
    full = fmax(full, sqrt(d));
  }
  for (int pass = 0; pass < 2; pass++)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        const uint8_t *p = rgb + 3 * (y * width + x);
        double d = 0, w, px = x + .5 - .5 * width, py = y + .5 - .5 * height;
        for (int c = 0; c < 3; c++)
          d += (double)((p[c] - rgb[c]) * (p[c] - rgb[c]));
        w = sqrt(d) / full;
        if (!pass) {
          s.area += w;
          s.x += w * px;
          s.y += w * py;
          if (w > most) {
            most = w;
            for (int c = 0; c < 3; c++)
              s.rgb[c] = p[c];
          }
          continue;
        }
        double complex z = (px - s.x / s.area) - I * (py - s.y / s.area); /* y up */
        if (w <= 0)
          continue;
        double complex power = z * z;
        for (int n = 3; n <= 5; n++)
          s.harmonic[n] += w * (power *= z);
      }
  s.x /= s.area;
  s.y /= s.area;
  return s;
}

/* Radians anticlockwise over the clip, from the phase of the shape's own harmonic. */
static double turn_of(const struct sight *sights, int frames, int order) {
  double turn = 0;
  for (int f = 1; f < frames; f++)
    turn += carg(sights[f].harmonic[order] / sights[f - 1].harmonic[order]) / order;
  return turn;
}

static int motion_seen(const struct sight *sights, int frames, int side, enum msa_shape shape) {
  const struct sight *a = &sights[0], *b = &sights[frames - 1];
  const double dx = (b->x - a->x) / side, dy = (a->y - b->y) / side, way = hypot(dx, dy),
               ratio = b->area / a->area;
  const int order = shape == MSA_TRIANGLE ? 3 : shape == MSA_SQUARE ? 4 : shape == MSA_STAR ? 5 : 0;
  if (way > .15)
    return ((int)lround(atan2(dy, dx) / (M_PI / 4)) + 8) % 8;
  if (way > .02)
    return -1;
  if (ratio > 2)
    return MSA_GROW;
  if (ratio < .5)
    return MSA_SHRINK;
  double turn = order ? turn_of(sights, frames, order) : 0;
  return turn > 1.4 ? MSA_COUNTERCLOCKWISE : turn < -1.4 ? MSA_CLOCKWISE : fabs(turn) < .05 ? MSA_STILL : -1;
}

/* Nearest colour name by plain RGB distance: jitter is at most 8 a channel. */
static int color_seen(const int rgb[3]) {
  for (int c = 0; c < MSA_COLORS; c++) {
    const uint8_t *want = msa_color_rgb(c);
    if (abs(rgb[0] - want[0]) <= 8 && abs(rgb[1] - want[1]) <= 8 && abs(rgb[2] - want[2]) <= 8)
      return c;
  }
  return -1;
}

static void check_truth(void) {
  enum { SIDE = 72, FRAMES = 13, CLIPS = 260 };
  struct msa_scenes_params params = msa_scenes_params_default();
  uint8_t *rgb = malloc(FRAMES * SIDE * SIDE * 3);
  int motions = 0, colors = 0, grounds = 0;
  params.extras = 0;
  for (int clip = 0; clip < CLIPS; clip++) {
    struct msa_scene scene;
    struct sight sights[FRAMES];
    msa_scene_draw(&params, clip, &scene);
    msa_scene_render(&scene, SIDE, SIDE, FRAMES, rgb);
    for (int f = 0; f < FRAMES; f++)
      sights[f] = look(rgb + f * SIDE * SIDE * 3, SIDE, SIDE);
    motions += motion_seen(sights, FRAMES, SIDE, scene.things[0].shape) == (int)scene.motion;
    colors += color_seen(sights[6].rgb) == (int)scene.things[0].color;
    grounds += color_seen((int[]){rgb[0], rgb[1], rgb[2]}) == (int)scene.ground;
  }
  check_ok(motions == CLIPS, "motion seen in the pixels is the scene's: %d of %d", motions, CLIPS);
  check_ok(colors == CLIPS, "colour of the object: %d of %d", colors, CLIPS);
  check_ok(grounds == CLIPS, "colour of the ground: %d of %d", grounds, CLIPS);
  free(rgb);
}

/* Areas of the shapes, by geometry, for radius 1. */
static void check_areas(void) {
  const double star = 5 * 1.25 * 1.25 * .46 * sin(M_PI / 5);
  const double want[MSA_STAR + 1] = {M_PI, 4 * .82 * .82, .75 * sqrt(3) * 1.25 * 1.25, star};
  uint8_t *rgb = malloc(200 * 240 * 3);
  for (int shape = 0; shape <= MSA_STAR; shape++) {
    struct msa_scene scene = {.count = 1, .ground_rgb = {{255, 255, 255}}};
    scene.things[0] = (struct msa_thing){
        .shape = shape, .r0 = .2, .r1 = .2, .angle0 = .3, .angle1 = .3, .x0 = .1, .x1 = .1};
    msa_scene_render(&scene, 240, 200, 1, rgb);
    struct sight s = look(rgb, 240, 200);
    double off = s.area / (want[shape] * 40 * 40) - 1;
    check_ok(fabs(off) < .01, "%s covers its area (off by %.4f)", msa_shape_name(shape), off);
    check_ok(fabs(s.x - 20) < .2 && fabs(s.y) < .2, "%s lies where it should (%.2f, %.2f)",
             msa_shape_name(shape), s.x, s.y);
  }
  free(rgb);
}

static int border_touched(const uint8_t *mask, int width, int height) {
  int touched = 0;
  for (int x = 0; x < width; x++)
    touched |= mask[x] | mask[(height - 1) * width + x];
  for (int y = 0; y < height; y++)
    touched |= mask[y * width] | mask[y * width + width - 1];
  return touched;
}

static void check_borders_and_mask(void) {
  static const int sizes[3][2] = {{64, 64}, {160, 96}, {96, 160}};
  struct msa_scenes_params params = msa_scenes_params_default();
  uint8_t *mask = malloc(9 * 160 * 96), *rgb = malloc(9 * 160 * 96 * 3);
  int touched = 0, outside = 0, empty = 0;
  params.extras = .5;
  for (int clip = 0; clip < 1500; clip++) {
    const int width = sizes[clip % 3][0], height = sizes[clip % 3][1];
    struct msa_scene scene;
    msa_scene_draw(&params, clip, &scene);
    msa_scene_mask(&scene, width, height, 9, mask);
    for (int f = 0; f < 9; f++)
      touched += border_touched(mask + f * width * height, width, height) != 0;
    empty += !memchr(mask + 8 * width * height, 255, (size_t)width * height);
    if (scene.pattern != MSA_PLAIN)
      continue;
    msa_scene_render(&scene, width, height, 9, rgb);
    for (int i = 0; i < 9 * width * height; i++)
      outside += !mask[i] && memcmp(rgb + 3 * i, scene.ground_rgb[0], 3);
  }
  check_ok(!touched, "nothing reaches the border (%d frames do)", touched);
  check_ok(!empty, "masks show an object");
  check_ok(!outside, "outside the mask there is ground (%d pixels are not)", outside);
  free(mask);
  free(rgb);
}

static void check_world(void) {
  struct msa_scenes_params params = msa_scenes_params_default();
  int pairs[MSA_COLORS][MSA_COLORS] = {{0}}, seen = 0, motions[MSA_MOTIONS] = {0}, round_spins = 0, plain = 1,
      all = 1, count[2] = {0};
  int kinds[MSA_PATTERNS] = {0}, shapes[MSA_SHAPES] = {0}, relations[MSA_RELATIONS] = {0};
  for (int clip = 0; clip < 40000; clip++) {
    struct msa_scene s;
    params.extras = 0;
    msa_scene_draw(&params, clip, &s);
    seen += !pairs[s.things[0].color][s.ground]++;
    motions[s.motion]++;
    round_spins +=
        s.things[0].shape == MSA_CIRCLE && (s.motion == MSA_CLOCKWISE || s.motion == MSA_COUNTERCLOCKWISE);
    plain &= s.pattern == MSA_PLAIN && s.count == 1 && s.things[0].shape <= MSA_STAR;
    params.extras = 1;
    msa_scene_draw(&params, clip, &s);
    kinds[s.pattern]++;
    shapes[s.things[0].shape]++;
    relations[s.relation]++;
    count[0] +=
        s.pattern != MSA_PLAIN || s.count > 1 || s.things[0].shape > MSA_STAR || s.motion == MSA_BOUNCE;
  }
  check_ok(seen == 104, "104 pairs of colours meet (%d do)", seen);
  check_ok(plain && !motions[MSA_BOUNCE] && !round_spins, "the core world is plain and circles do not spin");
  for (int m = 0; m < MSA_BOUNCE; m++)
    all &= motions[m] > (m == MSA_STILL ? 1500 : 1600);
  check_ok(all && motions[MSA_STILL] < motions[MSA_RIGHT], "13 motions, resting a little rarer");
  for (int k = 0; k < MSA_PATTERNS; k++)
    all &= kinds[k] > 500;
  for (int k = 0; k < MSA_SHAPES; k++)
    all &= shapes[k] > 500;
  for (int k = 0; k < MSA_RELATIONS; k++)
    all &= relations[k] > 500;
  check_ok(all, "every pattern, shape and relation occurs");
  check_ok(count[0] > 39500, "an extra shows something extra (%d of 40000)", count[0]);
}

static int index_of(const char *const *list, const char *word, int step) {
  for (int i = 0; list[i]; i += step)
    if (!strcmp(list[i], word))
      return i;
  return -1;
}

/* The word of the vocabulary that stands for `word`, or -1. */
static int token_of(const char *word) {
  const char *const *same = msa_scenes_same();
  int i = index_of(same, word, 2);
  return index_of(msa_scenes_vocabulary(), i < 0 ? word : same[i + 1], 1);
}

static int has_word(const char *caption, const char *word) {
  const char *at = caption;
  size_t n = strlen(word);
  while ((at = strstr(at, word))) {
    if ((at == caption || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[n]))
      return 1;
    at += n;
  }
  return 0;
}

static void check_vocabulary(void) {
  const char *const *vocabulary = msa_scenes_vocabulary(), *const *same = msa_scenes_same();
  int good = 1;
  check_ok(!strcmp(vocabulary[0], "<pad>") && !strcmp(vocabulary[1], "<bos>"), "<pad> and <bos> come first");
  for (int i = 0; vocabulary[i]; i++)
    if (index_of(vocabulary + i + 1, vocabulary[i], 1) >= 0)
      check_ok(good = 0, "\"%s\" stands twice in the vocabulary", vocabulary[i]);
  for (int i = 0; same[i]; i += 2)
    if (index_of(vocabulary, same[i + 1], 1) < 0 || index_of(vocabulary, same[i], 1) >= 0 ||
        index_of(same + i + 2, same[i], 2) >= 0)
      check_ok(good = 0, "\"%s\" = \"%s\" is no clean synonym", same[i], same[i + 1]);
  check_ok(good, "words and synonyms are consistent");
}

static void check_captions(void) {
  struct msa_scenes_params params = msa_scenes_params_default();
  const char *const *vocabulary = msa_scenes_vocabulary();
  int used[512] = {0}, unknown = 0, longest = 0, wrong = 0, cut = 0;
  char caption[256], word[64];
  params.extras = .5;
  for (int clip = 0; clip < 60000; clip++) {
    struct msa_scene s;
    int words = 0;
    msa_scene_draw(&params, clip, &s);
    msa_scene_caption(&s, clip * 7, caption, sizeof caption);
    cut += strlen(caption) > 200;
    for (const char *at = caption; *at;) {
      size_t n = 0;
      while (isalnum((unsigned char)at[n]) && n < sizeof word - 1) {
        word[n] = at[n];
        n++;
      }
      word[n] = 0;
      at += n ? n : 1;
      if (!n)
        continue;
      int token = token_of(word);
      words++;
      if (token < 0 && unknown++ < 5)
        check_ok(0, "\"%s\" in \"%s\" is not in the vocabulary", word, caption);
      if (token >= 0)
        used[token]++;
    }
    longest = words > longest ? words : longest;
    if (s.color_unsaid || s.ground_unsaid || s.count > 1 || s.pattern != MSA_PLAIN)
      continue;
    /* What is said holds, and nothing else is said. */
    int says_ccw = has_word(caption, "counterclockwise") || has_word(caption, "anticlockwise") ||
                   has_word(caption, "anti-clockwise") || has_word(caption, "counter-clockwise");
    int says_cw = !says_ccw && has_word(caption, "clockwise");
    wrong += (says_cw && s.motion != MSA_CLOCKWISE) || (says_ccw && s.motion != MSA_COUNTERCLOCKWISE);
    wrong += has_word(caption, "leftwards") && s.motion != MSA_LEFT;
    wrong += has_word(caption, "from left to right") && s.motion != MSA_RIGHT;
    wrong += has_word(caption, "moves up") && s.motion != MSA_UP && s.motion != MSA_UP_LEFT &&
             s.motion != MSA_UP_RIGHT;
    wrong += (has_word(caption, "shrinks") || has_word(caption, "smaller")) && s.motion != MSA_SHRINK;
    wrong += (has_word(caption, "bigger") || has_word(caption, "larger")) && s.motion != MSA_GROW;
    wrong += has_word(caption, "diagonally down and to the left") && s.motion != MSA_DOWN_LEFT;
    for (int c = 0; c < MSA_COLORS; c++)
      wrong += has_word(caption, msa_color_name(c)) && c != (int)s.things[0].color && c != (int)s.ground;
    for (int k = 0; k < MSA_SHAPES; k++)
      wrong += has_word(caption, msa_shape_name(k)) && k != (int)s.things[0].shape;
  }
  check_ok(!unknown, "all words are in the vocabulary");
  check_ok(longest <= MSA_CAPTION_WORDS && longest > 15, "captions have at most %d words (longest: %d)",
           MSA_CAPTION_WORDS, longest);
  check_ok(!cut, "captions fit 200 bytes");
  check_ok(!wrong, "captions say nothing wrong (%d do)", wrong);
  for (int i = 2; vocabulary[i]; i++)
    if (used[i] < 20)
      check_ok(0, "\"%s\" hardly occurs (%d times)", vocabulary[i], used[i]);
}

static void check_source(void) {
  struct msa_scenes_params params = msa_scenes_params_default();
  const struct ms_clip_request request = {.width = 64, .height = 64, .frames = 9},
                               bad = {.width = 0, .height = 64, .frames = 9};
  enum { BYTES = 9 * 64 * 64 * 3 };
  uint8_t *a = malloc(BYTES), *b = malloc(BYTES), *mask = malloc(BYTES / 3);
  struct ms_clip_source source;
  struct ms_error error = {0};
  char one[256], two[256];
  int same = 1, differ = 0, in_range = 1, classes[8], counts[8], n = 0;
  check_ok(msa_scenes_open(&source, &params, &error) == 0 && source.count == params.count, "a source opens");
  for (int clip = 0; clip < 50; clip++) {
    same &= source.read(source.data, clip, 0, &request, a, one, sizeof one, &error) == 0;
    same &= source.read(source.data, clip, 0, &request, b, two, sizeof two, &error) == 0;
    same &= !memcmp(a, b, BYTES) && !strcmp(one, two);
    source.read(source.data, clip, 1, &request, b, two, sizeof two, &error);
    same &= !memcmp(a, b, BYTES);
    differ += strcmp(one, two) != 0;
    same &= source.read_mask(source.data, clip, &request, mask, &error) == 0;
    n = source.read_labels(source.data, clip, classes, counts);
    for (int i = 0; i < n; i++)
      in_range &= classes[i] >= 0 && classes[i] < counts[i];
  }
  check_ok(same, "a clip is the same whenever it is read, whatever the variant");
  check_ok(differ > 40, "variants change the wording (%d of 50)", differ);
  check_ok(n == 8 && in_range, "labels lie within their classes");
  check_ok(source.read(source.data, 0, 0, &bad, a, one, sizeof one, &error) == MS_EUSAGE && error.message[0],
           "an empty frame is refused");
  source.close(source.data);
  params.extras = 1.5;
  check_ok(msa_scenes_open(&source, &params, &error) == MS_EUSAGE, "a share above 1 is refused");
  params = msa_scenes_params_default();
  params.seed = 2;
  msa_scenes_open(&source, &params, &error);
  source.read(source.data, 0, 0, &request, b, two, sizeof two, &error);
  params.seed = 1;
  struct msa_scene scene;
  msa_scene_draw(&params, 0, &scene);
  msa_scene_render(&scene, 64, 64, 9, a);
  check_ok(memcmp(a, b, BYTES) != 0, "another seed, another clip");
  source.close(source.data);
  free(a);
  free(b);
  free(mask);
}

struct bench {
  struct msa_scenes_params params;
  uint8_t *rgb;
  int64_t clip;
};

static void bench_clip(void *data) {
  struct bench *bench = data;
  for (int i = 0; i < 100; i++) {
    struct msa_scene scene;
    msa_scene_draw(&bench->params, bench->clip++, &scene);
    msa_scene_render(&scene, 64, 64, 9, bench->rgb);
  }
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  check_areas();
  check_truth();
  check_borders_and_mask();
  check_world();
  check_vocabulary();
  check_captions();
  check_source();
  if (check_bench_wanted()) {
    struct bench bench = {.params = msa_scenes_params_default(), .rgb = malloc(64 * 64 * 9 * 3)};
    check_bench("100 clips of 64x64x9", check_time(bench_clip, &bench), 0, 100.0 * 64 * 64 * 9 * 3);
    free(bench.rgb);
  }
  return check_end();
}
