/* Pixels of a scene: signed distances, one pixel of coverage at every edge. Only the rows and columns around
 * an object are drawn; the ground is made once a clip. */
#include "msa-scenes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CORNERS 40
#define PIECE 64 /* pixels of a row that are drawn together */

struct outline { /* a closed polygon around the origin */
  int n;
  float x[MOST_CORNERS + 1], y[MOST_CORNERS + 1]; /* the last repeats the first */
  float inner, outer;                             /* radii of the circles inside and around it */
};

struct place {
  float x, y, r, angle; /* pixels */
};

static void corner(struct outline *outline, double x, double y) {
  outline->x[outline->n] = (float)x;
  outline->y[outline->n++] = (float)y;
}

static void regular(struct outline *outline, int n, double radius, double first) {
  for (int i = 0; i < n; i++)
    corner(outline, radius * cos(first + 2 * M_PI * i / n), radius * sin(first + 2 * M_PI * i / n));
}

/* Corners for radius 1, upright. Circle and ring have none. */
static void outline_of(enum msa_shape shape, struct outline *outline) {
  const double up = -M_PI / 2;
  outline->n = 0;
  switch (shape) {
  case MSA_SQUARE:
    regular(outline, 4, .82 * M_SQRT2, M_PI / 4);
    break;
  case MSA_TRIANGLE:
    regular(outline, 3, 1.25, up);
    break;
  case MSA_STAR:
    for (int i = 0; i < 10; i++)
      corner(outline, (i % 2 ? .46 : 1) * 1.25 * cos(up + M_PI * i / 5),
             (i % 2 ? .46 : 1) * 1.25 * sin(up + M_PI * i / 5));
    break;
  case MSA_DIAMOND:
    corner(outline, 0, -1.25);
    corner(outline, .8, 0);
    corner(outline, 0, 1.25);
    corner(outline, -.8, 0);
    break;
  case MSA_HEXAGON:
    regular(outline, 6, 1.1, 0);
    break;
  case MSA_HEART:
    for (int i = 0; i < MOST_CORNERS; i++) {
      double t = 2 * M_PI * i / MOST_CORNERS;
      corner(outline, 1.1 * pow(sin(t), 3),
             -(13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) * 1.1 / 16 - .06);
    }
    break;
  case MSA_CROSS: {
    static const signed char side[12][2] = {{-1, -2}, {1, -2}, {1, -1}, {2, -1}, {2, 1},   {1, 1},
                                            {1, 2},   {-1, 2}, {-1, 1}, {-2, 1}, {-2, -1}, {-1, -1}};
    for (int i = 0; i < 12; i++)
      corner(outline, abs(side[i][0]) == 2 ? side[i][0] * .575 : side[i][0] * .38,
             abs(side[i][1]) == 2 ? side[i][1] * .575 : side[i][1] * .38);
    break;
  }
  default:
    break;
  }
}

/* Turns, scales and measures. */
static void outline_place(struct outline *outline, const struct place *place) {
  const float c = cosf(place->angle) * place->r, s = sinf(place->angle) * place->r;
  float outer = 0, inner = INFINITY;
  for (int i = 0; i < outline->n; i++) {
    float x = outline->x[i], y = outline->y[i];
    outline->x[i] = c * x - s * y;
    outline->y[i] = s * x + c * y;
    outer = fmaxf(outer, hypotf(outline->x[i], outline->y[i]));
  }
  outline->x[outline->n] = outline->x[0];
  outline->y[outline->n] = outline->y[0];
  for (int i = 0; i < outline->n; i++) {
    float ex = outline->x[i + 1] - outline->x[i], ey = outline->y[i + 1] - outline->y[i];
    float t = -(outline->x[i] * ex + outline->y[i] * ey) / (ex * ex + ey * ey);
    t = fminf(fmaxf(t, 0), 1);
    inner = fminf(inner, hypotf(outline->x[i] + t * ex, outline->y[i] + t * ey));
  }
  outline->inner = inner;
  outline->outer = outer;
}

/* Coverage 0..1 of n pixels of a row whose first centre lies at (x, y) from the polygon's origin. */
static void cover_polygon(const struct outline *outline, float x, float y, int n, float *cover) {
  float nearest[PIECE];
  int inside[PIECE];
  for (int i = 0; i < n; i++) {
    nearest[i] = INFINITY;
    inside[i] = 0;
  }
  for (int e = 0; e < outline->n; e++) {
    const float x0 = outline->x[e], y0 = outline->y[e], ex = outline->x[e + 1] - x0,
                ey = outline->y[e + 1] - y0;
    const float scale = 1 / (ex * ex + ey * ey), wy = y - y0;
    for (int i = 0; i < n; i++) {
      float wx = x + (float)i - x0, t = (wx * ex + wy * ey) * scale;
      t = t < 0 ? 0 : t > 1 ? 1 : t;
      float dx = wx - t * ex, dy = wy - t * ey, d = dx * dx + dy * dy;
      nearest[i] = d < nearest[i] ? d : nearest[i];
    }
    if ((y0 > y) != (outline->y[e + 1] > y)) {
      const float crossing = x0 + ex * wy / ey - x;
      for (int i = 0; i < n; i++)
        inside[i] ^= (float)i < crossing;
    }
  }
  for (int i = 0; i < n; i++) {
    float d = sqrtf(nearest[i]), c = inside[i] ? .5f + d : .5f - d;
    cover[i] = c < 0 ? 0 : c > 1 ? 1 : c;
  }
}

static void cover_round(float middle, float half, float x, float y, int n, float *cover) {
  for (int i = 0; i < n; i++) {
    float dx = x + (float)i, c = .5f + half - fabsf(sqrtf(dx * dx + y * y) - middle);
    cover[i] = c < 0 ? 0 : c > 1 ? 1 : c;
  }
}

/* Where a frame's pixels go: colours over a ground, or a mask. */
struct canvas {
  int width, height;
  uint8_t *rgb, *mask; /* one frame; one of them NULL */
};

static void put(const struct canvas *canvas, int x, int y, int n, const float *cover, const uint8_t rgb[3]) {
  const int64_t at = (int64_t)y * canvas->width + x;
  for (int i = 0; i < n; i++) {
    if (cover[i] <= 0)
      continue;
    if (canvas->mask) {
      canvas->mask[at + i] = 255;
      continue;
    }
    uint8_t *p = canvas->rgb + 3 * (at + i);
    for (int c = 0; c < 3; c++)
      p[c] = (uint8_t)((float)p[c] + ((float)rgb[c] - (float)p[c]) * cover[i] + .5f);
  }
}

static void draw_thing(const struct canvas *canvas, const struct msa_thing *thing,
                       const struct place *place) {
  struct outline outline;
  float middle = 0, half = 0;
  outline_of(thing->shape, &outline);
  if (outline.n) {
    outline_place(&outline, place);
  } else if (thing->shape == MSA_RING) {
    middle = .83f * place->r;
    half = .27f * place->r;
    outline.inner = 0;
    outline.outer = middle + half;
  } else { /* the disc: a ring around nothing */
    half = place->r;
    outline.inner = outline.outer = place->r;
  }
  const float reach = outline.outer + 1, full = outline.inner - 1;
  int left = (int)floorf(place->x - reach), right = (int)ceilf(place->x + reach);
  int top = (int)floorf(place->y - reach), bottom = (int)ceilf(place->y + reach);
  left = left < 0 ? 0 : left;
  top = top < 0 ? 0 : top;
  right = right > canvas->width ? canvas->width : right;
  bottom = bottom > canvas->height ? canvas->height : bottom;
  for (int y = top; y < bottom; y++) {
    const float dy = (float)y + .5f - place->y;
    for (int x = left; x < right; x += PIECE) {
      const int n = right - x < PIECE ? right - x : PIECE;
      const float first = (float)x + .5f - place->x, last = first + (float)(n - 1);
      const float far = fmaxf(first * first, last * last) + dy * dy,
                  near = first * last > 0 ? fminf(first * first, last * last) : 0;
      float cover[PIECE];
      if (near + dy * dy > reach * reach)
        continue;
      if (full > 0 && far < full * full)
        for (int i = 0; i < n; i++)
          cover[i] = 1;
      else if (outline.n)
        cover_polygon(&outline, first, dy, n, cover);
      else
        cover_round(middle, half, first, dy, n, cover);
      put(canvas, x, y, n, cover, thing->rgb);
    }
  }
}

/* Coverage of a square wave with edges at 0 and half a period, `scale` pixels long. */
static float wave(float periods, float scale) {
  float c = .5f + (.25f - fabsf(periods - floorf(periods) - .5f)) * scale;
  return c < 0 ? 0 : c > 1 ? 1 : c;
}

static float pattern_at(const struct msa_scene *scene, int width, int height, int x, int y) {
  const float side = (float)(width < height ? width : height), cell = (float)scene->cell * side,
              phase = (float)scene->phase;
  const float u = ((float)x + .5f - .5f * (float)width) / cell + phase,
              v = ((float)y + .5f - .5f * (float)height) / cell + phase;
  switch (scene->pattern) {
  case MSA_GRADIENT_DOWN:
    return ((float)y + .5f) / (float)height;
  case MSA_GRADIENT_ACROSS:
    return ((float)x + .5f) / (float)width;
  case MSA_STRIPES_UPRIGHT:
    return wave(u, cell);
  case MSA_STRIPES_LEVEL:
    return wave(v, cell);
  case MSA_CHECKS: {
    float a = wave(.5f * u, 2 * cell), b = wave(.5f * v, 2 * cell);
    return a + b - 2 * a * b;
  }
  case MSA_DOTS: {
    float du = u - floorf(u) - .5f, dv = v - floorf(v) - .5f,
          c = .5f + (.27f - sqrtf(du * du + dv * dv)) * cell;
    return c < 0 ? 0 : c > 1 ? 1 : c;
  }
  default:
    return 0;
  }
}

static void draw_ground(const struct msa_scene *scene, int width, int height, uint8_t *rgb) {
  const size_t row = (size_t)width * 3;
  if (scene->pattern == MSA_PLAIN) {
    for (int x = 0; x < width; x++)
      memcpy(rgb + 3 * x, scene->ground_rgb[0], 3);
    for (int y = 1; y < height; y++)
      memcpy(rgb + row * y, rgb, row);
    return;
  }
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      float k = pattern_at(scene, width, height, x, y);
      uint8_t *p = rgb + row * y + 3 * x;
      for (int c = 0; c < 3; c++)
        p[c] = (uint8_t)((float)scene->ground_rgb[0][c] * (1 - k) + (float)scene->ground_rgb[1][c] * k + .5f);
    }
}

static struct place place_at(const struct msa_scene *scene, const struct msa_thing *thing, int width,
                             int height, double u) {
  const double side = width < height ? width : height, v = 2 * u - floor(2 * u),
               lift = scene->hop * 4 * v * (1 - v);
  return (struct place){
      .x = (float)(.5 * width + side * (thing->x0 + (thing->x1 - thing->x0) * u)),
      .y = (float)(.5 * height + side * (thing->y0 + (thing->y1 - thing->y0) * u - lift)),
      .r = (float)(side * (thing->r0 + (thing->r1 - thing->r0) * u)),
      .angle = (float)(thing->angle0 + (thing->angle1 - thing->angle0) * u),
  };
}

static void draw_things(const struct msa_scene *scene, const struct canvas *canvas, int frame, int frames) {
  const double u = frames > 1 ? (double)frame / (frames - 1) : .5;
  for (int i = 0; i < scene->count; i++) {
    const struct place place = place_at(scene, &scene->things[i], canvas->width, canvas->height, u);
    draw_thing(canvas, &scene->things[i], &place);
  }
}

void msa_scene_render(const struct msa_scene *scene, int width, int height, int frames, uint8_t *rgb) {
  const size_t bytes = (size_t)width * height * 3;
  draw_ground(scene, width, height, rgb);
  for (int f = frames - 1; f >= 0; f--) { /* frame 0 is the ground for the others, so it comes last */
    struct canvas canvas = {.width = width, .height = height, .rgb = rgb + bytes * f};
    if (f)
      memcpy(canvas.rgb, rgb, bytes);
    draw_things(scene, &canvas, f, frames);
  }
}

void msa_scene_render_frame(const struct msa_scene *scene, int width, int height, int frames, int frame,
                            uint8_t *rgb) {
  const struct canvas canvas = {.width = width, .height = height, .rgb = rgb};
  draw_ground(scene, width, height, rgb);
  draw_things(scene, &canvas, frame, frames);
}

void msa_scene_mask(const struct msa_scene *scene, int width, int height, int frames, uint8_t *mask) {
  const size_t bytes = (size_t)width * height;
  memset(mask, 0, bytes * frames);
  for (int f = 0; f < frames; f++) {
    struct canvas canvas = {.width = width, .height = height, .mask = mask + bytes * f};
    draw_things(scene, &canvas, f, frames);
  }
}
