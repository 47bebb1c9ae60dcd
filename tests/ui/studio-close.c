/* Closing the window while a job runs: it asks, and the job goes on, or rests until the next start, or ends
 * without the window; and where the job ends before there is an answer, the window closes as it was told to.
 */
#include "studio.h"

#include <string.h>

static const char *const prompt = "a white square grows larger against red";

static int ask(struct scene *scene) {
  struct robot *r = &scene->robot;
  int status = robot_press(r, "push button", "Close", 5);
  AtspiAccessible *question = status == 0 ? robot_find(r, NULL, "A clip is being made", 20) : NULL;
  status = question ? 0 : -1;
  g_clear_object(&question);
  return status;
}

static int clips(struct scene *scene) {
  char path[400];
  return scene_files(scene_path(scene, "clips", path), ".mp4");
}

static void cancel(struct scene *scene) {
  struct robot *r = &scene->robot;
  if (scene_step(scene_make_long(scene, prompt, "900"), "a long job begins"))
    return;
  scene_step(ask(scene), "closing the window asks");
  scene_picture(scene, "closing");
  scene_step(robot_press(r, "push button", "Cancel", 10), "do not close");
  check_ok(robot_gone(r, NULL, "A clip is being made", 5), "the question is gone");
  AtspiAccessible *line = robot_find(r, "label", "*tep * of 900*", 5);
  char *before = line ? robot_text(line) : NULL, *after = NULL;
  for (int i = 0; line && i < 100 && (!after || !strcmp(before, after)); i++) {
    robot_sleep(.1);
    g_free(after);
    after = robot_text(line);
  }
  check_ok(before && after && strcmp(before, after) != 0, "and the job goes on (%s, then %s)",
           before ? before : "", after ? after : "");
  g_free(before);
  g_free(after);
  g_clear_object(&line);
}

static void pause_and_close(struct scene *scene) {
  struct robot *r = &scene->robot;
  scene_step(ask(scene), "closing asks again");
  scene_step(robot_press(r, "push button", "Pause and close", 10), "pause and close");
  check_ok(robot_wait(r, 20) == 0, "the program ends well");
  check_ok(clips(scene) <= 0, "there is no clip yet");
  if (scene_start(scene, "en", 0, NULL))
    return;
  scene_step(robot_press(r, "push button", "Queue*", 5), "open the queue");
  AtspiAccessible *row = robot_find(r, NULL, prompt, 5);
  check_ok(row != NULL, "the job is there");
  g_clear_object(&row);
  scene_picture(scene, "queue-paused");
  scene_step(robot_press(r, "push button", "Cancel job", 5), "cancel it");
  AtspiAccessible *empty = robot_find(r, "label", "Nothing is waiting*", 10);
  check_ok(empty != NULL, "the queue is empty");
  g_clear_object(&empty);
  scene_step(robot_press(r, "push button", "Resume queue", 3), "new jobs may start");
  scene_step(robot_press(r, "push button", "Queue*", 3), "close the queue");
  robot_sleep(1);
}

static void keep_running(struct scene *scene) {
  struct robot *r = &scene->robot;
  if (scene_step(scene_make_long(scene, prompt, "300"), "another job begins"))
    return;
  scene_step(ask(scene), "closing asks");
  scene_step(robot_press(r, "push button", "Keep running", 10), "keep it running");
  check_ok(robot_gone(r, "frame", "MegaSlide Studio", 5) && clips(scene) <= 0,
           "the window goes while the clip is made");
  check_ok(robot_wait(r, 180) == 0 && clips(scene) == 1, "the program ends with the clip");
}

static void no_answer(struct scene *scene) {
  struct robot *r = &scene->robot;
  if (scene_start(scene, "en", 0, NULL))
    return;
  if (scene_step(scene_make_long(scene, prompt, "300"), "a third job begins"))
    return;
  scene_step(ask(scene), "closing asks");
  check_ok(robot_wait(r, 180) == 0 && clips(scene) == 2,
           "without an answer the program ends with the clip as well");
}

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  if (scene_start(&scene, "en", 0, NULL) == 0) {
    cancel(&scene);
    pause_and_close(&scene);
    keep_running(&scene);
    no_answer(&scene);
  }
  return scene_end(&scene);
}
