/* An export of what other programs make: odd sizes, a rate that varies. */
#include <string.h>

#include "export/export-work.h"
#include "harness.h"
#include "odd-clip.h"
#include "room.h"
#include "scene.h"

static void check_export(const char *clip, const char *name, int cancel) {
  g_autofree char *output = room_path(name);
  atomic_int stop = cancel;
  const struct msa_export_work work = {.clip = clip, .output = output, .quality = 85, .cancel = &stop};
  struct msa_export_result result = {0};
  struct ms_error error = {0};
  struct ms_video *video = NULL;
  const int code = msa_export_run(&work, &result, &error);
  if (cancel) {
    check_ok(code == MS_ECANCELLED && !room_exists(output), "%s: %s", name, error.message);
    return;
  }
  check_ok(code == 0 && result.clip_width == 67 && result.clip_height == 45 && result.width == 66 &&
               result.height == 44 && result.frames == 5,
           "%s: %d frames of %dx%d from %dx%d %s", name, (int)result.frames, result.width, result.height,
           result.clip_width, result.clip_height, error.message);
  if (ms_video_open(&video, output, &error) == 0 && ms_video_count(video, &error) == 0)
    check_ok(ms_video_info(video)->width == 66 && ms_video_info(video)->height == 44 &&
                 ms_video_info(video)->frames == 5,
             "as the file says");
  else
    check_ok(0, "%s", error.message);
  ms_video_close(&video);
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  g_autofree char *path = room_path("odd.mov");
  const struct odd_clip clip = {.path = path,
                                .muxer = "mov",
                                .encoder = "libx264",
                                .pixels = AV_PIX_FMT_YUV444P,
                                .width = 67,
                                .height = 45,
                                .frames = 5,
                                .matrix = AVCOL_SPC_BT709,
                                .tagged = 1,
                                .draw = scene_draw};
  check_ok(odd_clip_write(&clip), "a clip of 67x45 is made");
  check_export(path, "a.mp4", 0);
  check_export(path, "b.gif", 0);
  check_export(path, "c.png", 0);
  check_export(path, "d.webm", 1);
  return room_end();
}
