/* A fine-tune of 20 steps: drop a folder on the Train page, start, watch points come, save graph and curves.
 */
#include "studio.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

static void train(struct scene *scene) {
  struct robot *r = &scene->robot;
  char folder[300], path[400];
  if (scene_step(scene_draw_clips(scene, folder), "six clips with captions are drawn"))
    return;
  scene_step(robot_press(r, "page tab", "Train", 3), "open the Train page");
  scene_picture(scene, "train-empty");
  scene_step(scene_drop(scene, folder), "drop the folder on it");
  AtspiAccessible *counted = robot_find(r, "label", "*6 clips*", 20);
  check_ok(counted != NULL, "the table tells how many clips there are");
  g_clear_object(&counted);
  scene_step(robot_fill(r, "spin button", "Steps", "20", 5), "twenty steps");
  robot_key("Tab");
  robot_sleep(1.5);
  scene_picture(scene, "train-new");
  check_ok(robot_doubled(r) == 0, "no name is said twice");
  scene_step(robot_press(r, "push button", "Start", 5), "start");
  AtspiAccessible *graph = robot_find(r, "image", "Loss: *points", 120);
  check_ok(graph != NULL, "points come into the graph");
  g_clear_object(&graph);
  scene_picture(scene, "train-running");
  AtspiAccessible *use = robot_find(r, "push button", "Use this model", 180);
  check_ok(use != NULL, "the run ends with a model");
  g_clear_object(&use);
  graph = robot_find(r, "image", "Loss: *20 points", 10);
  check_ok(graph != NULL, "the graph has twenty points");
  g_clear_object(&graph);
  scene_picture(scene, "train-done");
  snprintf(path, sizeof path, "%s/loss.png", scene->home);
  scene_step(scene_save_as(scene, "Save graphs as PNG", path), "the graphs are saved as a picture");
  snprintf(path, sizeof path, "%s/loss.csv", scene->home);
  if (scene_step(scene_save_as(scene, "Save curves as CSV", path), "the curves are saved as a table") == 0) {
    char *text = NULL, *end;
    int lines = 0;
    g_file_get_contents(path, &text, NULL, NULL);
    for (end = text; end && (end = strchr(end, '\n')); end++)
      lines++;
    check_ok(text && !strncmp(text, "step,", 5) && lines == 21, "the table has a head and twenty rows (%d)",
             lines);
    g_free(text);
  }
  scene_step(robot_press(r, "push button", "Use this model", 5), "use it");
  AtspiAccessible *prompt = robot_find(r, "text", "Prompt", 5);
  check_ok(prompt != NULL, "the Create page shows");
  g_clear_object(&prompt);
}

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  if (scene_start(&scene, "en", 0, NULL) == 0)
    train(&scene);
  return scene_end(&scene);
}
