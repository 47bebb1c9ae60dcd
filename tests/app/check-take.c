/* A clip that is taken before it is done: what the network saw at that step, whole and playable. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "ms-generate.h"
#include "ms-media.h"
#include "room.h"

struct taking {
  atomic_int take, cancel;
  int at_step, steps_seen;
  int stop_step;     /* 0: never */
  const char *state; /* folder of the latents, kept if it is named */
  const char *resume;
  char phase[16]; /* of the last step */
};

static void on_progress(void *data, const struct ms_progress *progress) {
  struct taking *taking = data;
  if (strcmp(progress->phase, "sample") && strcmp(progress->phase, "refine"))
    return;
  snprintf(taking->phase, sizeof taking->phase, "%s", progress->phase);
  taking->steps_seen++;
  if (taking->steps_seen == taking->at_step)
    atomic_store(&taking->take, 1);
  if (taking->steps_seen == taking->stop_step)
    atomic_store(&taking->cancel, 1);
}

static int generate(const char *path, int width, int height, int at_step, struct taking *taking,
                    struct ms_generate_result *result) {
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_machine machine = {.threads = 2, .data_folder = getenv("MEGASLIDE_DATA")};
  struct ms_error error = {0};
  taking->steps_seen = 0;
  taking->at_step = at_step;
  atomic_store(&taking->take, at_step < 0);
  atomic_store(&taking->cancel, 0);
  const struct ms_hooks hooks = {.data = taking, .progress = on_progress, .cancel = &taking->cancel};
  job.prompt = "a red ball moves right on a blue background";
  job.output = path;
  job.width = width;
  job.height = height;
  job.frames = 5;
  job.steps = 6;
  job.seed = 3;
  job.take = &taking->take;
  job.keep_latents = taking->state;
  job.resume = taking->resume;
  const int code = ms_generate(&job, &machine, &hooks, result, &error);
  if (code < 0)
    printf("# %s\n", error.message);
  return code;
}

static void check_file(const char *path, int width, int height) {
  struct ms_video *video = NULL;
  struct ms_error error = {0};
  int code = ms_video_open(&video, path, &error);
  if (code == 0)
    code = ms_video_count(video, &error);
  check_ok(code == 0 && ms_video_info(video)->width == width && ms_video_info(video)->height == height &&
               ms_video_info(video)->frames == 5,
           "the file has 5 frames of %dx%d", width, height);
  ms_video_close(&video);
}

int main(int argc, char **argv) {
  struct taking taking = {0};
  struct ms_generate_result result;
  room_begin(argc, argv);
  g_autofree char *whole = room_path("whole.mp4"), *taken = room_path("taken.mp4"),
                  *late = room_path("late.mp4"), *small = room_path("small.mp4"), *a = NULL, *b = NULL,
                  *c = NULL;
  gsize a_size = 0, b_size = 0, c_size = 0;

  check_ok(generate(whole, 64, 64, 0, &taking, &result) == 0 && !result.partial && taking.steps_seen == 6,
           "a clip that nobody takes has all its steps");
  check_ok(generate(taken, 64, 64, 2, &taking, &result) == 0 && result.partial && taking.steps_seen == 2,
           "taken after two steps: no step is counted after the one at hand");
  check_file(taken, 64, 64);
  check_ok(generate(late, 64, 64, 5, &taking, &result) == 0 && !result.partial,
           "taken during the last step: the clip is whole");
  g_file_get_contents(whole, &a, &a_size, NULL);
  g_file_get_contents(taken, &b, &b_size, NULL);
  g_file_get_contents(late, &c, &c_size, NULL);
  check_ok(a_size && a_size == c_size && !memcmp(a, c, a_size), "and the same bytes as one that nobody took");
  check_ok(b_size && (a_size != b_size || memcmp(a, b, a_size)), "while the early one is another clip");

  /* stopped first, taken later */
  g_autofree char *state = room_path("state"), *later = room_path("later.mp4");
  taking.state = state;
  taking.stop_step = 3;
  check_ok(generate(later, 64, 64, 0, &taking, &result) == MS_ECANCELLED,
           "a clip is stopped after three steps");
  taking.stop_step = 0;
  taking.resume = state;
  check_ok(generate(later, 64, 64, -1, &taking, &result) == 0 && result.partial && taking.steps_seen == 0,
           "taken afterwards: one look more, and no step");
  check_file(later, 64, 64);
  taking.state = taking.resume = NULL;

  /* a large clip, taken while it is still small */
  check_ok(generate(small, 384, 256, 1, &taking, &result) == 0 && result.partial && result.stage_count > 1 &&
               !strcmp(taking.phase, "sample") && result.width < 384 && result.height < 256,
           "taken in the base stage: the clip has that stage's size");
  check_ok(result.width * 256 / 384 <= result.height + 2 && result.width * 256 / 384 >= result.height - 2 &&
               result.width % 2 == 0 && result.height % 2 == 0,
           "even, and as wide as high as it was asked for (%dx%d)", result.width, result.height);
  check_file(small, result.width, result.height);
  return room_end();
}
