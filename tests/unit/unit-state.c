/* The saved state of a clip: what is saved comes back, damage is known, one folder has one owner, and saving
 * keeps to its share of the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "sample/denoise.h"
#include "scratch.h"

#define COUNT 1000

static void check_pace(void) {
  struct ms_save_pace pace = {0};
  check_ok(ms_save_due(&pace, 0.001) == MS_SAVE_QUICK, "the first step is saved");
  pace.quick_cost = 0.001;
  check_ok(ms_save_due(&pace, 0.023) == MS_SAVE_NOTHING && ms_save_due(&pace, 0.025) == MS_SAVE_QUICK,
           "a write of 1 ms is worth it every 24 ms");
  pace.durable_cost = 0.02;
  check_ok(ms_save_due(&pace, 1.9) == MS_SAVE_QUICK && ms_save_due(&pace, 2) == MS_SAVE_DURABLE,
           "a disk that takes 20 ms is waited for every 2 s");
  pace.durable_cost = 100;
  pace.quick_cost = 100;
  check_ok(ms_save_due(&pace, 14.9) == MS_SAVE_NOTHING && ms_save_due(&pace, 15) == MS_SAVE_DURABLE,
           "however slow the disk is, nothing older than 15 s is lost");
}

static void save(struct ms_state_folder *folder, struct ms_sampler *sampler, float *latents, int step,
                 int quick) {
  struct ms_sample_state state = {.step = step, .count = COUNT, .latents = latents, .sampler = sampler};
  struct ms_error error = {0};
  for (int i = 0; i < COUNT; i++) {
    latents[i] = (float)(step * COUNT + i);
    for (int h = 0; h < 3; h++)
      sampler->history[h][i] = latents[i] + (float)h;
  }
  sampler->order_reached = step < 2 ? step : 2;
  check_ok(ms_state_save(folder, &state, quick, &error) == 0, "step %d is saved: %s", step, error.message);
}

static void check_loaded(struct ms_state_folder *folder, int want) {
  struct ms_sampler sampler = {0};
  float *latents = calloc(COUNT, sizeof *latents);
  struct ms_sample_state state = {.count = COUNT, .latents = latents, .sampler = &sampler};
  struct ms_error error = {0};
  int stage = -1, step = -1, code;
  ms_sampler_init(&sampler, MS_SAMPLER_UNIPC, 10, 1, COUNT, &error);
  code = ms_state_peek(folder, &stage, &step, &error);
  check_ok(code == 1 && stage == 0 && step == want, "the newest state is that of step %d: %d %s", want, step,
           error.message);
  code = ms_state_load(folder, &state, &error);
  check_ok(code == 0 && latents[7] == (float)(want * COUNT + 7) &&
               sampler.history[2][999] == (float)(want * COUNT + 999 + 2) &&
               sampler.order_reached == (want < 2 ? want : 2),
           "with latents and history: %s", error.message);
  ms_sampler_release(&sampler);
  free(latents);
}

static void flip_byte(const char *name) {
  FILE *file = fopen(scratch_path(name), "r+b");
  fseek(file, -100, SEEK_END);
  fputc(0x55, file);
  fclose(file);
}

static void check_states(void) {
  struct ms_state_folder folder, other;
  struct ms_sampler sampler = {0};
  float *latents = calloc(COUNT, sizeof *latents);
  json_t *job = json_pack("{s:i, s:s}", "steps", 10, "output", "a.mp4"),
         *moved = json_pack("{s:i, s:s}", "steps", 10, "output", "b.mp4"),
         *changed = json_pack("{s:i}", "steps", 9);
  struct ms_error error = {0};
  int stage, step, code;
  ms_sampler_init(&sampler, MS_SAMPLER_UNIPC, 10, 1, COUNT, &error);
  code = ms_state_begin(&folder, scratch_path("job"), job, &error);
  check_ok(code == 0 && ms_state_peek(&folder, &stage, &step, &error) == 0, "a new job has no state: %s",
           error.message);
  code = ms_state_begin(&other, scratch_path("job"), job, &error);
  check_ok(code == MS_EOUTPUT && other.lock < 0 && strstr(error.message, "another run"),
           "a second owner is refused: %s", error.message);
  save(&folder, &sampler, latents, 3, 0);
  check_loaded(&folder, 3);
  save(&folder, &sampler, latents, 4, 1);
  save(&folder, &sampler, latents, 5, 1);
  check_loaded(&folder, 5);
  save(&folder, &sampler, latents, 6, 1);
  check_loaded(&folder, 6);
  flip_byte("job/latest-0.safetensors");
  check_loaded(&folder, 5);
  save(&folder, &sampler, latents, 6, 1);
  check_loaded(&folder, 6);
  scratch_put("job/latest-0.safetensors", "", 0);
  scratch_put("job/latest-1.safetensors", "", 0);
  check_loaded(&folder, 3);
  ms_state_end(&folder, 0);
  memset(&error, 0, sizeof error);
  code = ms_state_resume(&folder, scratch_path("job"), moved, &error);
  check_ok(code == 0, "a job that goes elsewhere is the same job: %s", error.message);
  check_loaded(&folder, 3);
  ms_state_end(&folder, 0);
  code = ms_state_resume(&folder, scratch_path("job"), changed, &error);
  code = code < 0 ? code : ms_state_peek(&folder, &stage, &step, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, "settings"), "one with other settings is not: %s",
           error.message);
  ms_state_end(&folder, 0);
  memset(&error, 0, sizeof error);
  code = ms_state_resume(&folder, scratch_path("job"), job, &error);
  flip_byte("job/state.safetensors");
  code = code < 0 ? code : ms_state_peek(&folder, &stage, &step, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, "damaged"), "damage without another state is told: %s",
           error.message);
  ms_state_end(&folder, 1);
  check_ok(!scratch_exists("job"), "an ended job leaves nothing");
  ms_sampler_release(&sampler);
  free(latents);
  json_decref(job);
  json_decref(moved);
  json_decref(changed);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  check_pace();
  check_states();
  scratch_end();
  return check_end();
}
