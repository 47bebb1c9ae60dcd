/* A run within a budget below the model's state: the page says what is missing and takes the nearest budget
 * that fits; its lanes and its memory are in the graphs; and its weights are, byte for byte, those of the
 * command line without a budget. */
#include "studio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 5
#define FRAMES 13 /* what the page proposes for nine frames at eight a second */

/* The number in front of a unit: "Memory 420 MB", "Memory 1.2 GB". */
static double named_bytes(const char *text) {
  char unit = 0;
  double number = 0;
  if (!text || sscanf(text, "Memory %lf %cB", &number, &unit) != 2)
    return 0;
  return number * (unit == 'G' ? 1 << 30 : 1 << 20);
}

/* Types a budget that is too small and takes the one that the page names. Returns it in bytes, or 0. */
static double choose_budget(struct scene *scene) {
  struct robot *r = &scene->robot;
  double budget = 0;
  scene_step(robot_fill(r, "text", "Memory for the run", "90 MB", 5), "a budget below all that is needed");
  AtspiAccessible *sentence = robot_find(r, "label", "This needs * of memory and 90 MB may be used: *", 20);
  check_ok(sentence != NULL, "the page says how much is missing");
  if (!sentence)
    robot_tree(r);
  g_clear_object(&sentence);
  scene_picture(scene, "stream-short-light");
  AtspiAccessible *button = robot_find(r, "push button", "Memory *", 5);
  char *name = button ? atspi_accessible_get_name(button, NULL) : NULL;
  budget = named_bytes(name);
  check_ok(budget > 0, "and names the budget that fits: %s", name ? name : "");
  g_free(name);
  g_clear_object(&button);
  scene_step(robot_press(r, "push button", "Memory *", 3), "it is taken by pressing it");
  AtspiAccessible *where = robot_find(r, "label", "* of 6 layers on the disk: *", 20);
  char *text = where ? robot_text(where) : NULL;
  check_ok(text && strncmp(text, "0 ", 2), "then layers lie on the disk: %s", text ? text : "");
  g_free(text);
  g_clear_object(&where);
  scene_picture(scene, "stream-new-light");
  return budget;
}

/* Column of a table whose first line has the names; -1: none. */
static int column_of(const char *table, const char *name) {
  char *head = g_strndup(table, strcspn(table, "\n")), **names = g_strsplit(head, ",", -1);
  int column = -1;
  for (int i = 0; names[i] && column < 0; i++)
    if (!strcmp(names[i], name))
      column = i;
  g_strfreev(names);
  g_free(head);
  return column;
}

/* How many rows have a value in the column, and the least and the greatest of them. */
static int column_range(const char *table, const char *name, double *least, double *most) {
  const int column = column_of(table, name);
  char **lines = g_strsplit(table, "\n", -1);
  int count = 0;
  *least = *most = 0;
  for (int i = 1; column >= 0 && lines[i] && *lines[i]; i++) {
    char **cells = g_strsplit(lines[i], ",", -1);
    if ((int)g_strv_length(cells) > column && *cells[column]) {
      const double value = g_ascii_strtod(cells[column], NULL);
      *least = count ? MIN(*least, value) : value;
      *most = count ? MAX(*most, value) : value;
      count++;
    }
    g_strfreev(cells);
  }
  g_strfreev(lines);
  return count;
}

static void check_table(const char *path, double budget) {
  static const char *const lanes[] = {"compute_seconds",   "read_seconds", "write_seconds",
                                      "optimizer_seconds", "read_bytes",   "written_bytes"};
  char *table = NULL;
  double least, most;
  g_file_get_contents(path, &table, NULL, NULL);
  for (size_t i = 0; table && i < G_N_ELEMENTS(lanes); i++) {
    const int count = column_range(table, lanes[i], &least, &most);
    check_ok(count == STEPS && most > 0, "%s are told of each step: %d, up to %g", lanes[i], count, most);
  }
  const int host = table ? column_range(table, "host_bytes", &least, &most) : 0;
  check_ok(host == STEPS && most <= 1.03 * budget, "memory stays within the budget: %.0f of %.0f MB",
           most / (1 << 20), budget / (1 << 20));
  const int disk = table ? column_range(table, "disk_bytes", &least, &most) : 0;
  check_ok(disk >= 2 && least > 100 << 20, "and the disk is told, working state included: %.0f to %.0f MB",
           least / (1 << 20), most / (1 << 20));
  g_free(table);
}

static void check_trace(const char *path) {
  char *text = NULL;
  g_file_get_contents(path, &text, NULL, NULL);
  check_ok(text && text[0] == '[' && strstr(text, "\"ph\":\"X\"") && strstr(text, "\"cat\":\"read\""),
           "it is a Chrome trace in which the disk is read");
  g_free(text);
}

/* The same run without a budget, from the command line. */
static void check_weights(struct scene *scene, const char *clips) {
  char path[400], arguments[1000];
  char *run = NULL, *shell = NULL;
  gsize run_size = 0, shell_size = 1;
  snprintf(arguments, sizeof arguments,
           "train \"%s\" -o \"%s/plain\" --model starter --steps %d --batch 1 --frames %d", clips,
           scene->home, STEPS, FRAMES);
  scene_step(scene_shell(scene, arguments), "the command line trains the same without a budget");
  g_file_get_contents(scene_path(scene, "runs/my-clips/dit.safetensors", path), &run, &run_size, NULL);
  snprintf(path, sizeof path, "%s/plain/dit.safetensors", scene->home);
  g_file_get_contents(path, &shell, &shell_size, NULL);
  check_ok(run && shell && run_size == shell_size && !memcmp(run, shell, run_size),
           "the weights are the same, byte for byte (%zu and %zu bytes)", run_size, shell_size);
  g_free(run);
  g_free(shell);
}

static void train(struct scene *scene) {
  struct robot *r = &scene->robot;
  char clips[300], path[400];
  if (scene_step(scene_draw_clips(scene, clips), "six clips with captions are drawn"))
    return;
  scene_step(robot_press(r, "page tab", "Train", 3), "open the Train page");
  scene_step(scene_drop(scene, clips), "drop the folder on it");
  AtspiAccessible *counted = robot_find(r, "label", "*6 clips*", 60);
  check_ok(counted != NULL, "the clips are counted");
  if (!counted)
    return;
  g_clear_object(&counted);
  snprintf(path, sizeof path, "%d", STEPS);
  scene_step(robot_fill(r, "spin button", "Steps", path, 5), "a few steps");
  scene_step(robot_fill(r, "spin button", "Batch", "1", 5), "of one clip each");
  robot_key("Tab");
  /* measuring takes memory, too, which counts while it goes on */
  AtspiAccessible *measured = robot_find(r, "label", "About *, 5 steps", 120);
  check_ok(measured != NULL, "the machine is measured");
  g_clear_object(&measured);
  const double budget = choose_budget(scene);
  if (!(budget > 0))
    return;
  scene_step(robot_press(r, "push button", "Start", 5), "start");
  AtspiAccessible *lanes = robot_find(r, "image", "Lanes: *points", 240);
  check_ok(lanes != NULL, "the lanes come into the graphs");
  if (!lanes) {
    scene_picture(scene, "stream-failed-light");
    robot_tree(r);
    return;
  }
  g_clear_object(&lanes);
  scene_picture(scene, "stream-running-light");
  AtspiAccessible *use = robot_find(r, "push button", "Use this model", 300);
  check_ok(use != NULL, "the run ends with a model");
  g_clear_object(&use);
  AtspiAccessible *where = robot_find(r, "label", "* of 6 layers on the disk; a step reads *", 5);
  char *text = where ? robot_text(where) : NULL;
  check_ok(text && strncmp(text, "0 ", 2), "its details say where the layers lay: %s", text ? text : "");
  g_free(text);
  g_clear_object(&where);
  AtspiAccessible *memory = robot_find(r, "image", "Memory: * at step 5, 5 points", 5);
  check_ok(memory != NULL, "and the graph of the memory has all steps");
  g_clear_object(&memory);
  scene_picture(scene, "stream-done-light");
  snprintf(path, sizeof path, "%s/lanes.csv", scene->home);
  if (scene_step(scene_save_as(scene, "Save curves as CSV", path), "the curves are saved") == 0)
    check_table(path, budget);
  snprintf(path, sizeof path, "%s/lanes.json", scene->home);
  if (scene_step(scene_save_as(scene, "Save trace of the lanes as JSON", path), "the trace is saved") == 0)
    check_trace(path);
  check_weights(scene, clips);
}

static void look_dark(struct scene *scene) {
  robot_kill(&scene->robot);
  if (scene_start(scene, "en", 1, NULL))
    return;
  scene_step(robot_press(&scene->robot, "page tab", "Train", 5), "the run is there after a start");
  AtspiAccessible *lanes = robot_find(&scene->robot, "image", "Lanes: *5 points", 20);
  check_ok(lanes != NULL, "with its lanes");
  g_clear_object(&lanes);
  scene_picture(scene, "stream-done-dark");
}

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  if (scene_start(&scene, "en", 0, NULL) == 0) {
    train(&scene);
    look_dark(&scene);
  }
  return scene_end(&scene);
}
