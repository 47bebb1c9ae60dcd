/* Jobs that end early: stop one and discard it, keep what there is of another, and kill the program in the
 * middle of a third; then the queue is there, paused, with that job first, and it goes on. */
#include "studio.h"

#include <stdio.h>
#include <string.h>

static const char *const prompt = "a white square grows larger against red";

static int begin_long(struct scene *scene) {
  return scene_make_long(scene, prompt, "900");
}

static void discard(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[400];
  if (scene_step(begin_long(scene), "a long job begins with Ctrl+Enter")) {
    robot_tree(r);
    return;
  }
  robot_sleep(1);
  scene_picture(scene, "create-forming");
  scene_step(robot_press(r, "push button", "Stop", 3), "stop");
  scene_picture(scene, "create-stop");
  const double from = robot_now();
  scene_step(robot_press(r, NULL, "Discard*", 3), "discard");
  const int gone = robot_gone(r, "progress bar", "Progress of the clip", 10);
  check_ok(gone, "the job is gone");
  printf("# %.2f s after it was asked for\n", robot_now() - from);
  check_ok(scene_files(scene_path(scene, "clips", path), ".mp4") == 0, "and left no clip");
}

static void keep(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[400];
  if (scene_step(begin_long(scene), "another begins"))
    return;
  robot_sleep(1);
  robot_press(r, "push button", "Stop", 3);
  scene_step(robot_press(r, NULL, "Keep what there is*", 3), "keep what there is");
  AtspiAccessible *done = robot_find(r, "push button", "Keep seed", 60);
  check_ok(done != NULL, "what there is can be seen");
  g_clear_object(&done);
  check_ok(scene_files(scene_path(scene, "clips", path), ".mp4") == 1, "and is a file");
  scene_picture(scene, "create-partial");
}

static void power_cut(struct scene *scene, int dark) {
  struct robot *r = &scene->robot;
  if (scene_step(begin_long(scene), "a third begins"))
    return;
  robot_sleep(1);
  robot_kill(r);
  if (scene_start(scene, "en", dark, NULL))
    return;
  scene_step(robot_press(r, "push button", "Queue*", 5), "open the queue");
  AtspiAccessible *told = robot_find(r, "label", "A job was interrupted*", 5);
  check_ok(told != NULL, "the queue says that a job was interrupted");
  g_clear_object(&told);
  AtspiAccessible *row = robot_find(r, NULL, prompt, 5);
  check_ok(row != NULL, "and the job is there");
  g_clear_object(&row);
  scene_picture(scene, "queue-interrupted");
  scene_step(robot_press(r, "push button", "Resume", 5), "resume");
  AtspiAccessible *line = robot_find(r, NULL, "*tep * of 900*", 60);
  char *text = line ? robot_text(line) : NULL;
  printf("# %s\n", text ? text : "no step is told");
  check_ok(line != NULL, "it goes on");
  g_free(text);
  g_clear_object(&line);
  scene_picture(scene, "queue-running");
  scene_step(robot_press(r, "push button", "Cancel job", 5), "cancel it in the queue");
  AtspiAccessible *empty = robot_find(r, "label", "Nothing is waiting*", 10);
  check_ok(empty != NULL, "the queue is empty");
  g_clear_object(&empty);
}

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  if (scene_start(&scene, "en", 1, NULL) == 0) {
    discard(&scene);
    keep(&scene);
    power_cut(&scene, 1);
  }
  return scene_end(&scene);
}
