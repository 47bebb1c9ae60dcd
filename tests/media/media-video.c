#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "harness.h"
#include "ms-media.h"
#include "odd-clip.h"
#include "scene.h"
#include "scratch.h"

static struct ms_video *open_clip(const struct odd_clip *clip) {
  struct ms_video *video = NULL;
  struct ms_error error = {0};
  if (!odd_clip_write(clip) || ms_video_open(&video, clip->path, &error) < 0)
    check_ok(0, "a %s clip is made and opens: %s", clip->muxer, error.message);
  return video;
}

/* The scene as a player would have to turn it back: mirrored top to bottom, then clockwise. */
static void turn(const uint8_t *in, int w, int h, int rotation, int mirror, uint8_t *out) {
  int width = rotation % 180 ? h : w, height = rotation % 180 ? w : h;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      int sx = rotation == 0 ? x : rotation == 90 ? y : rotation == 180 ? w - 1 - x : w - 1 - y;
      int sy = rotation == 0 ? y : rotation == 90 ? h - 1 - x : rotation == 180 ? h - 1 - y : x;
      if (mirror)
        sy = h - 1 - sy;
      memcpy(out + 3 * (y * width + x), in + 3 * (sy * w + sx), 3);
    }
}

static void check_turned(int rotation, int mirror) {
  enum { W = 67, H = 45 };
  const struct odd_clip clip = {.path = scratch_path("turned.mov"),
                                .muxer = "mov",
                                .encoder = "libx264",
                                .pixels = AV_PIX_FMT_YUV444P,
                                .width = W,
                                .height = H,
                                .frames = 3,
                                .rotation = rotation,
                                .mirror = mirror,
                                .matrix = AVCOL_SPC_BT709,
                                .tagged = 1,
                                .draw = scene_draw};
  static uint8_t stored[W * H * 3], want[W * H * 3], got[W * H * 3], part[13 * 9 * 3];
  struct ms_video *video = open_clip(&clip);
  const struct ms_video_info *info;
  struct ms_error error = {0};
  double time, psnr;
  int width = rotation % 180 ? H : W, height = rotation % 180 ? W : H, good = 1;
  const int crop[4] = {5, 7, 13, 9};
  if (!video)
    return;
  info = ms_video_info(video);
  check_ok(info->width == width && info->height == height && info->coded_width == W &&
               info->coded_height == H && info->rotation == rotation,
           "stored %dx%d, turned by %d: %dx%d", W, H, rotation, info->width, info->height);
  scene_draw(stored, W, H, 0);
  turn(stored, W, H, rotation, mirror, want);
  ms_video_read(video, 0, 0, NULL, got, &time, &error);
  psnr = scene_psnr(got, want, sizeof got);
  check_ok(psnr > 42, "turned by %d%s: frames come out upright (%.1f dB)", rotation,
           mirror ? " after mirroring" : "", psnr);
  ms_video_rewind(video, &error);
  check_ok(ms_video_read(video, 0, 0, crop, part, &time, &error) == 1, "a part is read %s", error.message);
  for (int y = 0; y < crop[3]; y++)
    good &= !memcmp(part + 3 * y * crop[2], got + 3 * ((y + crop[1]) * width + crop[0]), (size_t)crop[2] * 3);
  check_ok(good, "a part is the same pixels");
  ms_video_close(&video);
}

static void draw_flat(uint8_t *rgb, int width, int height, int frame) {
  static const int colors[][3] = {{255, 0, 0},     {0, 255, 0}, {0, 0, 255},
                                  {255, 255, 255}, {0, 0, 0},   {180, 90, 40}};
  scene_fill(rgb, width, height, colors[frame % 6][0], colors[frame % 6][1], colors[frame % 6][2]);
}

static void check_matrix(const char *what, enum AVPixelFormat pixels, int width, enum AVColorSpace matrix,
                         int full, int tagged) {
  const struct odd_clip clip = {.path = scratch_path("color.mkv"),
                                .muxer = "matroska",
                                .encoder = "ffv1",
                                .pixels = pixels,
                                .width = width,
                                .height = 64,
                                .frames = 6,
                                .matrix = matrix,
                                .full_range = full,
                                .tagged = tagged,
                                .draw = draw_flat};
  uint8_t *got = malloc((size_t)width * 64 * 3), *want = malloc((size_t)width * 64 * 3);
  struct ms_video *video = open_clip(&clip);
  double time;
  int worst = 0, n = 0;
  while (video && ms_video_read(video, 0, 0, NULL, got, &time, NULL) == 1) {
    draw_flat(want, width, 64, n++);
    for (int i = 0; i < width * 64 * 3; i++)
      worst = abs(got[i] - want[i]) > worst ? abs(got[i] - want[i]) : worst;
  }
  check_ok(n == 6 && worst <= 3, "%s: colours are right within %d of 255", what, worst);
  ms_video_close(&video);
  free(got);
  free(want);
}

static void check_times(void) {
  static const int64_t uneven[] = {7, 8, 9, 12, 13, 17, 18}, even[] = {0, 2, 4, 6, 8, 10, 12};
  static const struct {
    const char *name, *muxer, *encoder;
    const int64_t *times;
    int variable;
    double fps;
  } cases[] = {
      {"vfr.mp4", "mp4", "libx264", uneven, 1, 0},    {"vfr.mkv", "matroska", "libx264", uneven, 1, 0},
      {"cfr.mp4", "mp4", "libx264", NULL, 0, 25},     {"cfr.mkv", "matroska", "ffv1", NULL, 0, 25},
      {"cfr.mpg", "mpeg", "mpeg2video", NULL, 0, 25}, {"cfr.avi", "avi", "mpeg4", NULL, 0, 25},
      {"half.mp4", "mp4", "libx264", even, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct odd_clip clip = {.path = scratch_path(cases[i].name),
                                  .muxer = cases[i].muxer,
                                  .encoder = cases[i].encoder,
                                  .pixels = AV_PIX_FMT_YUV420P,
                                  .width = 96,
                                  .height = 64,
                                  .frames = 7,
                                  .times = cases[i].times,
                                  .matrix = AVCOL_SPC_BT470BG,
                                  .draw = scene_draw};
    static uint8_t first[7][96 * 64 * 3], again[96 * 64 * 3];
    struct ms_video *video = open_clip(&clip);
    struct ms_error error = {0};
    double time, late = 0;
    int n = 0, same = 1;
    if (!video)
      continue;
    check_ok(ms_video_info(video)->frames == -1, "%s: frames are not counted yet", cases[i].name);
    while (n < 7 && ms_video_read(video, 0, 0, NULL, first[n], &time, &error) == 1) {
      double want = (double)(cases[i].times ? cases[i].times[n] - cases[i].times[0] : n) / 25;
      late = fmax(late, fabs(time - want));
      n++;
    }
    check_ok(n == 7 && late < 0.0011 && ms_video_read(video, 0, 0, NULL, again, &time, &error) == 0,
             "%s: %d frames with their times (off by %.4f s) %s", cases[i].name, n, late, error.message);
    check_ok(ms_video_count(video, &error) == 0 && ms_video_info(video)->frames == 7 &&
                 ms_video_info(video)->variable_rate == cases[i].variable,
             "%s: 7 frames counted, the rate %s %s", cases[i].name,
             cases[i].variable ? "varies" : "is constant", error.message);
    if (cases[i].fps > 0)
      check_ok(fabs(ms_video_info(video)->fps - cases[i].fps) < 0.02, "%s: %g frames a second", cases[i].name,
               ms_video_info(video)->fps);
    for (int round = 0; round < 3; round++) { /* also from the middle, where decoders hold frames back */
      for (int f = 0; f < 7 - 2 * round; f++) {
        ms_video_read(video, 0, 0, NULL, again, &time, &error);
        same &= !memcmp(again, first[f], sizeof again);
      }
      same &= ms_video_rewind(video, &error) == 0;
    }
    check_ok(same, "%s: the same frames after going back %s", cases[i].name, error.message);
    ms_video_close(&video);
  }
}

static void check_shapes(void) {
  static const struct {
    AVRational aspect;
    int width;
  } cases[] = {{{0, 0}, 180}, {{1, 1}, 180},   {{16, 15}, 192},
               {{8, 9}, 160}, {{64, 45}, 256}, {{1280, 1281}, 180}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct odd_clip clip = {.path = scratch_path("shape.mkv"),
                                  .muxer = "matroska",
                                  .encoder = "libx264",
                                  .pixels = AV_PIX_FMT_YUV420P,
                                  .width = 180,
                                  .height = 144,
                                  .frames = 2,
                                  .aspect = cases[i].aspect,
                                  .matrix = AVCOL_SPC_BT470BG,
                                  .audio = i == 1,
                                  .draw = scene_draw};
    static uint8_t got[256 * 144 * 3], want[256 * 144 * 3];
    struct ms_video *video = open_clip(&clip);
    double time, psnr;
    if (!video)
      continue;
    check_ok(ms_video_info(video)->width == cases[i].width && ms_video_info(video)->height == 144,
             "pixels of %d:%d make %d columns %d", cases[i].aspect.num, cases[i].aspect.den, 180,
             ms_video_info(video)->width);
    check_ok(ms_video_info(video)->has_audio == (i == 1), "an audio track is %s",
             i == 1 ? "seen" : "not there");
    /* the scene is smooth and its bar starts at a fixed place: what is compared is the gradient right of it
     */
    ms_video_read(video, 0, 0, NULL, got, &time, NULL);
    scene_draw(want, cases[i].width, 144, 0);
    psnr = scene_psnr(got + 3 * cases[i].width / 2, want + 3 * cases[i].width / 2, 3 * cases[i].width / 2);
    check_ok(psnr > 40, "and a stretched picture (%.1f dB)", psnr);
    ms_video_close(&video);
  }
}

static void check_scaling(void) {
  const struct odd_clip clip = {.path = scratch_path("scale.mkv"),
                                .muxer = "matroska",
                                .encoder = "ffv1",
                                .pixels = AV_PIX_FMT_YUV444P,
                                .width = 640,
                                .height = 480,
                                .frames = 1,
                                .matrix = AVCOL_SPC_BT470BG,
                                .draw = scene_draw};
  static const int sizes[][2] = {{320, 240}, {64, 64}, {1000, 500}, {641, 479}, {8, 8}};
  static const int crop[4] = {200, 40, 320, 400}, whole[4] = {0, 0, 640, 480};
  struct ms_video *video = open_clip(&clip);
  static uint8_t got[1000 * 500 * 3];
  struct ms_error error = {0};
  for (int i = 0; video && i < 10; i++) {
    const int *part = i % 2 ? crop : whole;
    int w = sizes[i / 2][0], h = sizes[i / 2][1];
    double time, worst = 0;
    ms_video_rewind(video, &error);
    if (ms_video_read(video, w, h, part, got, &time, &error) != 1)
      break;
    for (int y = 2; y < h - 2; y++) /* clear of the bar, and of edges where the filter is cut */
      for (int x = w / 4; x < w - 2; x++) {
        double sx = part[0] + (x + 0.5) * part[2] / w - 0.5, sy = part[1] + (y + 0.5) * part[3] / h - 0.5;
        worst = fmax(worst, fabs(got[3 * (y * w + x)] - (40 + 160 * sx / 640)));
        worst = fmax(worst, fabs(got[3 * (y * w + x) + 1] - (60 + 140 * sy / 480)));
      }
    check_ok(worst < 2.6, "%dx%d to %dx%d: every pixel lies where it should (off by %.2f of 255)", part[2],
             part[3], w, h, worst);
  }
  check_ok(!error.code, "scaling works %s", error.message);
  ms_video_rewind(video, &error);
  check_ok(ms_video_read(video, 8, 8, (const int[]){600, 0, 41, 8}, got, (double[]){0}, &error) == MS_EFAULT,
           "%s", error.message);
  ms_video_close(&video);
}

/* Opens and reads whatever it is. Returns the frames that came out; -1 for a proper refusal, -2 for anything
 * else. */
static int read_all(const char *name) {
  static uint8_t rgb[64 * 64 * 3];
  struct ms_video *video;
  struct ms_error error = {0};
  double time;
  int n = 0, code = ms_video_open(&video, scratch_path(name), &error);
  while (code == 0 && n < 1000 && ms_video_read(video, 64, 64, NULL, rgb, &time, &error) == 1)
    n++;
  ms_video_close(&video);
  if (!error.code)
    return n;
  if (error.code == MS_EINPUT && strstr(error.message, name))
    return -1;
  check_ok(0, "%s: code %d: %s", name, error.code, error.message);
  return -2;
}

static void check_broken(void) {
  static const char text[] = "this is not a video, but a text that pretends\n";
  static const char playlist[] = "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n#EXT-X-ENDLIST\n";
  static const char *const names[] = {"ok.mp4", "ok.mkv", "ok.mpg"};
  static const char *const muxers[] = {"mp4", "matroska", "mpeg"}, *const encoders[] = {"libx264", "libx264",
                                                                                        "mpeg2video"};
  for (int i = 0; i < 3; i++) {
    const struct odd_clip clip = {.path = scratch_path(names[i]),
                                  .muxer = muxers[i],
                                  .encoder = encoders[i],
                                  .pixels = AV_PIX_FMT_YUV420P,
                                  .width = 96,
                                  .height = 64,
                                  .frames = 12,
                                  .matrix = AVCOL_SPC_BT470BG,
                                  .draw = scene_draw};
    char *data = NULL;
    size_t size = 0;
    int some = 0, wrong = 0, refused = 0, cut;
    check_ok(odd_clip_write(&clip) && read_all(names[i]) == 12, "%s: whole, it has 12 frames", names[i]);
    ms_file_read_all(scratch_path(names[i]), 1 << 24, &data, &size, NULL);
    for (int round = 0; round < 60; round++) {
      char *copy = malloc(size);
      memcpy(copy, data, size);
      for (int flips = 0; flips < 1 << round % 8; flips++)
        copy[check_below((int64_t)size)] ^= (char)(1 << check_below(8));
      scratch_put("bad.bin", copy, size);
      free(copy);
      cut = read_all("bad.bin");
      wrong += cut == -2;
      refused += cut == -1;
      some += cut > 0;
    }
    check_ok(!wrong && some > 0,
             "%s: 60 times with flipped bits: %d gave frames, %d were refused, %d went wrong", names[i], some,
             refused, wrong);
    wrong = 0;
    for (int part = 0; part < 16; part++) {
      scratch_put("cut.bin", data, size * (size_t)part / 16);
      cut = read_all("cut.bin");
      wrong += cut == -2 || cut > 12;
    }
    check_ok(!wrong, "%s: cut off anywhere, it gives what is there or is refused", names[i]);
    if (i) /* MP4 keeps its index at the end */
      check_ok(cut > 0, "%s: fifteen sixteenths of it still have %d frames", names[i], cut);
    free(data);
  }
  scratch_put("text.mp4", text, strlen(text));
  check_ok(read_all("text.mp4") == -1, "a text is refused");
  scratch_put("empty.mp4", "", 0);
  check_ok(read_all("empty.mp4") == -1, "an empty file is refused");
  check_ok(read_all("missing.mp4") == -1, "a missing file is refused");
  mkdir(scratch_path("folder"), 0755);
  check_ok(read_all("folder") == -1, "a folder without frames is refused");
  scratch_put("list.m3u8", playlist, strlen(playlist));
  check_ok(read_all("list.m3u8") == -1, "a playlist that leads to the network is refused");
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  for (int rotation = 0; rotation < 360; rotation += 90) {
    check_turned(rotation, 0);
    check_turned(rotation, 1);
  }
  check_matrix("BT.601 limited", AV_PIX_FMT_YUV420P, 96, AVCOL_SPC_SMPTE170M, 0, 1);
  check_matrix("BT.709 limited", AV_PIX_FMT_YUV420P, 96, AVCOL_SPC_BT709, 0, 1);
  check_matrix("BT.601 full", AV_PIX_FMT_YUV444P, 96, AVCOL_SPC_BT470BG, 1, 1);
  check_matrix("BT.709 full", AV_PIX_FMT_YUV420P, 96, AVCOL_SPC_BT709, 1, 1);
  check_matrix("BT.709 10-bit", AV_PIX_FMT_YUV420P10, 96, AVCOL_SPC_BT709, 0, 1);
  check_matrix("small without tags", AV_PIX_FMT_YUV420P, 96, AVCOL_SPC_SMPTE170M, 0, 0);
  check_matrix("large without tags", AV_PIX_FMT_YUV420P, 1280, AVCOL_SPC_BT709, 0, 0);
  check_times();
  check_shapes();
  check_scaling();
  check_broken();
  scratch_end();
  return check_end();
}
