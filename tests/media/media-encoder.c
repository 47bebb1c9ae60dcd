#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "harness.h"
#include "ms-media.h"
#include "scene.h"
#include "scratch.h"

enum { W = 160, H = 96, FRAMES = 14, BYTES = W * H * 3 };

static const char comment[] =
    "{\"prompt\":\"a \\\"red\\\" ball, r\xc3\xa9sum\xc3\xa9; 1=2\",\"seed\":7,\"fps\":24}";

static const struct clip {
  const char *name, *codec, *pixels;
  enum ms_format format;
  double psnr; /* measured less 1 dB; the halved chroma is what bounds most of them */
  int tagged;
} clips[] = {
    {"a.mp4", "h264", "yuv420p", MS_FORMAT_H264, 42, 1},
    {"a.mov", "h264", "yuv420p", MS_FORMAT_H264, 42, 1},
    {"a.mkv", "h264", "yuv420p", MS_FORMAT_H264, 42, 1},
    {"b.mp4", "hevc", "yuv420p", MS_FORMAT_H265, 42, 1},
    {"b.mkv", "hevc", "yuv420p", MS_FORMAT_H265, 42, 1},
    {"c.webm", "vp9", "yuv420p", MS_FORMAT_VP9, 42, 1},
    {"c.mp4", "vp9", "yuv420p", MS_FORMAT_VP9, 42, 1},
    {"d.mp4", "av1", "yuv420p", MS_FORMAT_AV1, 42, 1},
    {"d.webm", "av1", "yuv420p", MS_FORMAT_AV1, 42, 1},
    {"e.mov", "prores", "yuv422p10le", MS_FORMAT_PRORES, 46, 1},
    {"e.mkv", "prores", "yuv422p10le", MS_FORMAT_PRORES, 46, 1},
    {"f.mkv", "ffv1", "bgr0", MS_FORMAT_FFV1, 99, 1},
    {"g.gif", "gif", "bgra", MS_FORMAT_GIF, 38, 0},
    {"h.png", "png", "rgb24", MS_FORMAT_PNG, 99, 0},
};

static int encode(const char *name, enum ms_format format, double fps, int frames, const char *text,
                  struct ms_error *error) {
  static uint8_t rgb[BYTES];
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder;
  int code;
  params.width = W;
  params.height = H;
  params.fps = fps;
  params.format = format;
  params.comment = text;
  code = ms_encoder_open(&encoder, scratch_path(name), &params, error);
  for (int i = 0; code == 0 && i < frames; i++) {
    scene_draw(rgb, W, H, i);
    code = ms_encoder_write(encoder, rgb, error);
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  return code;
}

static void check_clip(const struct clip *clip) {
  static uint8_t got[BYTES], want[BYTES];
  struct ms_error error = {0};
  struct ms_video *video;
  const struct ms_video_info *info;
  double time, worst = 99, late = 0;
  int n = 0, code = encode(clip->name, clip->format, 24, FRAMES, comment, &error);
  check_ok(code == 0 && scratch_exists(clip->name), "%s is written %s", clip->name, error.message);
  check_ok(ms_format_available(clip->format) == (code == 0), "and its format was said to be available");
  if (code < 0 || ms_video_open(&video, scratch_path(clip->name), &error) < 0) {
    check_ok(0, "%s opens: %s", clip->name, error.message);
    return;
  }
  check_ok(ms_video_count(video, &error) == 0, "%s is counted", clip->name);
  info = ms_video_info(video);
  check_ok(info->width == W && info->height == H && info->frames == FRAMES, "%s has %d frames of %dx%d",
           clip->name, (int)info->frames, info->width, info->height);
  check_ok(!strcmp(info->codec, clip->codec) && !strcmp(info->pixel_format, clip->pixels), "%s is %s in %s",
           clip->name, info->codec, info->pixel_format);
  check_ok(fabs(info->fps - 24) < (clip->format == MS_FORMAT_GIF ? 1e-9 : 0.02) && !info->variable_rate,
           "%s runs at %g frames a second", clip->name, info->fps);
  check_ok(fabs(info->duration - FRAMES / 24.0) < 0.011, "%s lasts %g s", clip->name, info->duration);
  if (clip->tagged && clip->format != MS_FORMAT_FFV1)
    check_ok(!strcmp(info->color_space, "bt709") && !strcmp(info->color_primaries, "bt709") &&
                 !strcmp(info->color_transfer, "bt709") &&
                 (!strcmp(info->color_range, "tv") || clip->format == MS_FORMAT_PRORES),
             "%s is tagged %s %s %s %s", clip->name, info->color_space, info->color_primaries,
             info->color_transfer, info->color_range);
  check_ok(ms_video_comment(video) && !strcmp(ms_video_comment(video), comment), "%s carries its settings",
           clip->name);
  while ((code = ms_video_read(video, 0, 0, NULL, got, &time, &error)) > 0) {
    double psnr;
    scene_draw(want, W, H, n);
    psnr = scene_psnr(got, want, BYTES);
    worst = psnr < worst ? psnr : worst;
    late = fmax(late, fabs(time - n / 24.0));
    n++;
  }
  check_ok(code == 0 && n == FRAMES && worst >= clip->psnr, "%s: worst of %d frames has %.1f dB", clip->name,
           n, worst);
  check_ok(late < (clip->format == MS_FORMAT_GIF ? 0.0051 : 0.00051), "%s: times are right to %.4f s",
           clip->name, late);
  ms_video_close(&video);
}

/* Pure colours through the whole chain: a wrong matrix or range shows as tens of steps. */
static void check_colors(const struct clip *clip) {
  static const int colors[][3] = {{255, 0, 0},     {0, 255, 0},   {0, 0, 255},     {255, 255, 0},
                                  {0, 255, 255},   {255, 0, 255}, {255, 255, 255}, {0, 0, 0},
                                  {128, 128, 128}, {200, 120, 60}};
  enum { COLORS = sizeof colors / sizeof *colors };
  static uint8_t rgb[BYTES];
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder;
  struct ms_video *video;
  struct ms_error error = {0};
  double time;
  int worst = 0, n = 0, code;
  params.width = W;
  params.height = H;
  params.format = clip->format;
  code = ms_encoder_open(&encoder, scratch_path(clip->name), &params, &error);
  for (int i = 0; code == 0 && i < COLORS; i++) {
    scene_fill(rgb, W, H, colors[i][0], colors[i][1], colors[i][2]);
    code = ms_encoder_write(encoder, rgb, &error);
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, &error);
  ms_encoder_close(&encoder);
  if (code == 0)
    code = ms_video_open(&video, scratch_path(clip->name), &error);
  if (code < 0) {
    check_ok(0, "%s: colours: %s", clip->name, error.message);
    return;
  }
  check_ok(clip->tagged || !ms_video_comment(video),
           "%s: no settings are left of the clip that was there before", clip->name);
  while (ms_video_read(video, 0, 0, NULL, rgb, &time, &error) > 0 && n < COLORS) {
    for (int i = 0; i < BYTES; i++) {
      int d = abs(rgb[i] - colors[n][i % 3]);
      worst = d > worst ? d : worst;
    }
    n++;
  }
  check_ok(n == COLORS && worst <= 3, "%s: %d pure colours come back within %d of 255", clip->name, n, worst);
  ms_video_close(&video);
}

static void check_same(const struct clip *clip) {
  char other[32], *one = NULL, *two = NULL;
  size_t one_size = 0, two_size = 1;
  struct ms_error error = {0};
  if (clip->format == MS_FORMAT_PNG) /* the folder's first frame stands for all */
    return;
  snprintf(other, sizeof other, "again-%s", clip->name);
  encode(clip->name, clip->format, 24, FRAMES, comment, &error);
  encode(other, clip->format, 24, FRAMES, comment, &error);
  ms_file_read_all(scratch_path(clip->name), 1 << 24, &one, &one_size, &error);
  ms_file_read_all(scratch_path(other), 1 << 24, &two, &two_size, &error);
  check_ok(one_size == two_size && !memcmp(one, two, one_size), "%s: the same frames make the same %zu bytes",
           clip->name, one_size);
  free(one);
  free(two);
}

static void check_gif_rate(double fps, int frames, const char *settings, double wanted) {
  struct ms_error error = {0};
  struct ms_video *video;
  int code = encode("rate.gif", MS_FORMAT_GIF, fps, frames, settings, &error);
  if (code == 0)
    code = ms_video_open(&video, scratch_path("rate.gif"), &error);
  if (code == 0)
    code = ms_video_count(video, &error);
  check_ok(code == 0 && fabs(ms_video_info(video)->fps - wanted) < 1e-9,
           "a GIF of %g frames a second with the settings %s runs at %.4f %s", fps,
           settings ? settings : "of none", code == 0 ? ms_video_info(video)->fps : 0, error.message);
  ms_video_close(&video);
}

static void check_rates(void) {
  static const double rates[] = {12.5, 23.976, 24000 / 1001.0, 25, 30000 / 1001.0, 90000 / 2999.0, 60, 1, 8};
  struct ms_error error = {0};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    struct ms_video *video;
    check_ok(encode("rate.mp4", MS_FORMAT_H264, rates[i], 7, NULL, &error) == 0, "%g frames a second: %s",
             rates[i], error.message);
    if (ms_video_open(&video, scratch_path("rate.mp4"), &error) == 0) {
      double fps = ms_video_info(video)->fps;
      check_ok(fabs(fps - rates[i]) < 1e-9 * rates[i], "are %.9g when read back", fps);
      check_ok(!ms_video_comment(video), "no settings, no comment");
      ms_video_close(&video);
    }
  }
  check_ok(encode("one.mp4", MS_FORMAT_H264, 24, 1, comment, &error) == 0, "one frame is a clip %s",
           error.message);
  check_ok(encode("one.webm", MS_FORMAT_VP9, 24, 1, comment, &error) == 0, "also in WebM %s", error.message);
  check_ok(encode("one.gif", MS_FORMAT_GIF, 24, 1, comment, &error) == 0, "also as GIF %s", error.message);
  check_gif_rate(12, 33, NULL, 12);     /* delays of 8 and 9 hundredths */
  check_gif_rate(12.5, 33, NULL, 12.5); /* of 8 */
  check_gif_rate(11.97, 7, "{\"fps\": 11.97}", 11.97);
  check_gif_rate(10, 33, "{\"fps\": 24}", 10); /* of another clip */
  check_ok(encode("rate.gif", MS_FORMAT_GIF, 60, 2, NULL, &error) == MS_EUSAGE, "too fast for a GIF: %s",
           error.message);
}

static void check_frames(void) { /* the folder of PNG files */
  struct ms_error error = {0};
  struct stat info;
  check_ok(encode("seq.png", MS_FORMAT_PNG, 24, 3, comment, &error) == 0 &&
               scratch_exists("seq.png/00003.png") && !scratch_exists("seq.png/00004.png") &&
               scratch_exists("seq.png.json"),
           "three frames make a folder of three files %s", error.message);
  check_ok(encode("seq.png", MS_FORMAT_PNG, 24, 2, NULL, &error) == 0 &&
               scratch_exists("seq.png/00002.png") && !scratch_exists("seq.png/00003.png") &&
               !scratch_exists("seq.png.json") && !scratch_exists("seq.png.part"),
           "which two frames replace %s", error.message);
  check_ok(encode("seq.png", MS_FORMAT_PNG, 24, 1, NULL, &error) == 0 &&
               stat(scratch_path("seq.png"), &info) == 0 && S_ISREG(info.st_mode) &&
               !scratch_exists("seq.png.part"),
           "one frame is a file %s", error.message);
  check_ok(encode("seq.png", MS_FORMAT_PNG, 24, 2, NULL, &error) == 0 && scratch_exists("seq.png/00002.png"),
           "and a folder again %s", error.message);
  scratch_put("seq.png/notes.txt", "mine", 4);
  check_ok(encode("seq.png", MS_FORMAT_PNG, 24, 2, NULL, &error) == MS_EOUTPUT &&
               scratch_exists("seq.png/notes.txt"),
           "a folder with other files is not touched: %s", error.message);
}

static void check_refused(const char *name, enum ms_format format, int width, int height, double fps,
                          int want) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder;
  struct ms_error error = {0};
  int code;
  params.width = width;
  params.height = height;
  params.fps = fps;
  params.format = format;
  code = ms_encoder_open(&encoder, scratch_path(name), &params, &error);
  check_ok(code == want && !encoder, "%s %s %dx%d: %s", name, ms_format_name(format), width, height,
           error.message);
  ms_encoder_close(&encoder);
}

static void check_names(void) {
  static const struct {
    const char *path;
    enum ms_format format;
  } names[] = {{"a.mp4", MS_FORMAT_H264}, {"/x.y/B.MP4", MS_FORMAT_H264}, {"a.mkv", MS_FORMAT_H264},
               {"a.webm", MS_FORMAT_VP9}, {"a.mov", MS_FORMAT_PRORES},    {"a.gif", MS_FORMAT_GIF},
               {"a.png", MS_FORMAT_PNG}};
  static const char *const bad[] = {"", "a", "a.", "a.txt", "mp4", ".mp4", "a.mp4/b", "/.mp4"};
  enum ms_format format, again;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    check_ok(ms_format_from_path(names[i].path, &format, NULL) == 0 && format == names[i].format &&
                 ms_format_from_name(ms_format_name(format), &again, NULL) == 0 && again == format,
             "%s asks for %s", names[i].path, ms_format_name(names[i].format));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct ms_error error = {0};
    check_ok(ms_format_from_path(bad[i], &format, &error) == MS_EUSAGE && strstr(error.message, ".webm"),
             "%s", error.message);
  }
  check_ok(ms_format_from_name("wmv", &format, NULL) == MS_EUSAGE, "an unknown format is refused");
}

static void check_outputs(void) {
  struct ms_error error = {0};
  int before = scratch_count();
  check_refused("x.webm", MS_FORMAT_H264, W, H, 24, MS_EUSAGE);
  check_refused("x.txt", MS_FORMAT_H264, W, H, 24, MS_EUSAGE);
  check_refused("x.mp4", MS_FORMAT_H264, W + 1, H, 24, MS_EUSAGE);
  check_refused("x.mp4", MS_FORMAT_H264, W, 0, 24, MS_EUSAGE);
  check_refused("x.mp4", MS_FORMAT_H264, W, H, 0, MS_EUSAGE);
  check_refused("x.mp4", MS_FORMAT_H264, W, H, NAN, MS_EUSAGE);
  check_refused("none/x.mp4", MS_FORMAT_H264, W, H, 24, MS_EOUTPUT);
  check_refused("none/x.gif", MS_FORMAT_GIF, W, H, 24, MS_EOUTPUT);
  check_refused("none/x.png", MS_FORMAT_PNG, W, H, 24, MS_EOUTPUT);
  mkdir(scratch_path("folder.mp4"), 0755);
  check_refused("folder.mp4", MS_FORMAT_H264, W, H, 24, MS_EOUTPUT);
  rmdir(scratch_path("folder.mp4"));
  check_ok(ms_output_check(scratch_path("new.mp4"), &error) == 0 &&
               ms_output_check(scratch_path("new.png"), &error) == 0,
           "a check of a good place passes %s", error.message);
  check_ok(ms_output_check(scratch_path("none/new.mp4"), &error) == MS_EOUTPUT,
           "of a missing folder fails: %s", error.message);
  check_ok(ms_output_check(scratch_path("new.doc"), NULL) == MS_EUSAGE, "of an unknown ending fails");
  check_ok(scratch_count() == before, "none of them leaves a file");
}

static void check_unfinished(void) {
  static const char *const names[] = {"u.mp4", "u.gif", "u.png"};
  static uint8_t rgb[BYTES];
  for (int i = 0; i < 3; i++) {
    struct ms_encoder_params params = ms_encoder_params_default();
    struct ms_encoder *encoder, *second;
    struct ms_error error = {0};
    char part[32];
    int before = scratch_count();
    params.width = W;
    params.height = H;
    ms_format_from_path(names[i], &params.format, NULL);
    snprintf(part, sizeof part, "%s.part", names[i]);
    if (ms_encoder_open(&encoder, scratch_path(names[i]), &params, &error) < 0) {
      check_ok(0, "%s", error.message);
      continue;
    }
    ms_encoder_write(encoder, rgb, &error);
    check_ok(scratch_exists(part) && !scratch_exists(names[i]), "%s grows under another name", names[i]);
    check_ok(ms_encoder_open(&second, scratch_path(names[i]), &params, &error) == MS_EOUTPUT &&
                 scratch_exists(part),
             "a second encoder is kept away: %s", error.message);
    ms_encoder_close(&encoder);
    check_ok(scratch_count() == before, "and is gone when it is given up");
    ms_encoder_open(&encoder, scratch_path(names[i]), &params, &error);
    check_ok(ms_encoder_finish(encoder, NULL) == MS_EFAULT, "a clip without frames is refused");
    ms_encoder_close(&encoder);
    check_ok(scratch_count() == before, "and leaves nothing");
  }
}

static void
check_full(void) { /* a limit on the file size stands for a full disk: both end a write half way */
  static const char *const names[] = {"a.mp4", "c.webm", "f.mkv", "g.gif", "h2.png"};
  static const enum ms_format kinds[] = {MS_FORMAT_H264, MS_FORMAT_VP9, MS_FORMAT_FFV1, MS_FORMAT_GIF,
                                         MS_FORMAT_PNG};
  static uint8_t rgb[BYTES];
  struct rlimit old, low;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  low = old;
  for (int i = 0; i < 5; i++) {
    struct ms_encoder_params params = ms_encoder_params_default();
    struct ms_encoder *encoder = NULL;
    struct ms_error error = {0};
    int existed = scratch_exists(names[i]), before = scratch_count(), code;
    params.width = W;
    params.height = H;
    params.format = kinds[i];
    params.quality = 100;
    code = ms_encoder_open(&encoder, scratch_path(names[i]), &params, &error);
    low.rlim_cur = 20000;
    setrlimit(RLIMIT_FSIZE, &low);
    for (int f = 0; code == 0 && f < 20; f++) { /* noise, since it fills */
      for (int j = 0; j < BYTES; j++)
        rgb[j] = (uint8_t)check_below(256);
      code = ms_encoder_write(encoder, rgb, &error);
    }
    if (code == 0)
      code = ms_encoder_finish(encoder, &error);
    ms_encoder_close(&encoder);
    setrlimit(RLIMIT_FSIZE, &old);
    check_ok(code == MS_EOUTPUT && strstr(error.message, "large") && scratch_exists(names[i]) == existed &&
                 scratch_count() == before,
             "no room: %s", error.message);
  }
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  check_names();
  for (size_t i = 0; i < sizeof clips / sizeof *clips; i++) {
    check_clip(&clips[i]);
    check_same(&clips[i]);
    check_colors(&clips[i]);
  }
  check_rates();
  check_frames();
  check_outputs();
  check_unfinished();
  check_full();
  scratch_end();
  return check_end();
}
