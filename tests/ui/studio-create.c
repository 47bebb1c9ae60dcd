/* A first clip: write a sentence, create, watch, step, find it in the library, export it, make another,
 * compare the two; drop the exported file on the window and find its settings. */
#include "studio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const prompt = "a red ball rolls to the right on a blue background";

/* The line under the picture: "0:00.08 · 2 of 33". */
static char *times(struct robot *r) {
  AtspiAccessible *label = robot_find(r, "label", "* of 33", 5);
  char *text = label ? robot_text(label) : NULL;
  g_clear_object(&label);
  return text;
}

/* The same once it differs from `other`, or is the same as it; after some seconds as it is. */
static char *times_when(struct robot *r, const char *other, int same) {
  char *text = times(r);
  for (int i = 0; i < 100 && other && text && (strcmp(text, other) == 0) != same; i++) {
    robot_sleep(.1);
    g_free(text);
    text = times(r);
  }
  return text;
}

static void first_clip(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[400];
  scene_picture(scene, "create-light");
  scene_step(scene_create(scene, prompt, 120), "a sentence becomes a clip");
  check_ok(scene_files(scene_path(scene, "clips", path), ".mp4") == 1, "the clip is a file");
  scene_picture(scene, "create-done-light");

  scene_step(robot_press(r, "push button", "Pause", 10), "the clip plays, and stops");
  AtspiAccessible *stopped = robot_find(r, "push button", "Play", 10);
  g_clear_object(&stopped);
  robot_sleep(.5);
  char *before = times(r);
  scene_step(robot_press(r, "push button", "One frame on", 3), "one frame on");
  char *after = times_when(r, before, 0);
  check_ok(before && after && strcmp(before, after) != 0, "the frame number moves (%s, then %s)", before,
           after);
  scene_step(robot_press(r, "push button", "One frame back", 3), "one frame back");
  char *again = times_when(r, before, 1);
  check_ok(before && again && !strcmp(before, again), "and comes back (%s, then %s)", before, again);
  g_free(before);
  g_free(after);
  g_free(again);
}

/* Returns the path of the exported file in `path`. */
static int export(struct scene *scene, char path[400]) {
  struct robot *r = &scene->robot;
  char folder[300];
  if (scene_step(robot_press(r, "push button", "Export*", 5), "open the export"))
    return -1;
  scene_picture(scene, "export-light");
  check_ok(robot_doubled(r) == 0, "none there either");
  scene_step(robot_press(r, "push button", "Export clip", 5), "export");
  AtspiAccessible *saved = robot_find(r, NULL, "Saved as*", 60);
  char *text = saved ? robot_text(saved) : NULL;
  /* Saved as “NAME” */
  char *from = text ? strstr(text, "\u201c") : NULL, *to = from ? strstr(from, "\u201d") : NULL;
  if (to)
    *to = 0;
  snprintf(folder, sizeof folder, "%s/Videos", scene->home);
  snprintf(path, 400, "%s/%.90s", scene_files(folder, ".mp4") > 0 ? folder : scene->home,
           from ? from + 3 : "");
  struct stat info;
  const int good = to && stat(path, &info) == 0 && info.st_size > 1000;
  check_ok(good, "the exported file is there");
  if (!good)
    printf("# %s\n", path);
  g_free(text);
  g_clear_object(&saved);
  return good ? 0 : -1;
}

static void check_field(struct robot *r, const char *name, const char *want) {
  AtspiAccessible *entry = robot_find(r, "text", name, 5);
  char *text = entry ? robot_text(entry) : NULL;
  for (int i = 0; i < 100 && text && strcmp(text, want); i++) {
    robot_sleep(.1);
    g_free(text);
    text = robot_text(entry);
  }
  check_ok(text && !strcmp(text, want), "%s is there again: %s", name, text ? text : "none");
  g_free(text);
  g_clear_object(&entry);
}

/* Clips are named PROMPT-SEED.mp4, and exports after their clips. */
static long long seed_in_name(const char *path) {
  const char *dash = strrchr(path, '-');
  return dash ? atoll(dash + 1) : -1;
}

static void library(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[400], seed[30];
  scene_step(robot_press(r, "page tab", "Library", 3), "open the library");
  AtspiAccessible *cell = robot_find(r, NULL, "a red ball*", 5);
  check_ok(cell != NULL, "the clip is in the library");
  g_clear_object(&cell);
  scene_step(robot_press(r, "table cell", NULL, 3), "choose it");
  scene_picture(scene, "library-light");
  check_ok(robot_doubled(r) == 0, "no name is said twice");
  if (export(scene, path))
    return;
  /* Dropping the file brings the settings back, whatever the page and whatever stands in the form. */
  robot_press(r, "page tab", "Create", 3);
  scene_step(robot_fill(r, "text", "Prompt", "something else", 5), "write something else");
  scene_step(scene_drop(scene, path), "drop the exported clip on the window");
  check_field(r, "Prompt", prompt);
  snprintf(seed, sizeof seed, "%lld", seed_in_name(path));
  check_field(r, "Seed", seed);
  scene_picture(scene, "create-restored-light");
}

/* Two files that are no clips, one after the other. */
static void drop_bad(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[2][400];
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(scene_path(scene, i ? "bad-two.mp4" : "bad-one.mp4", path[i]), "w");
    if (!file || fputs("no clip", file) < 0 || fclose(file)) {
      check_ok(0, "%s is written", path[i]);
      return;
    }
  }
  scene_step(scene_drop(scene, path[0]), "drop a file that is no clip");
  AtspiAccessible *first = robot_find(r, "label", "*bad-one.mp4*", 15);
  scene_step(scene_drop(scene, path[1]), "and another");
  AtspiAccessible *second = robot_find(r, "label", "*bad-two.mp4*", 15);
  check_ok(first && second && robot_gone(r, "label", "*bad-one.mp4*", 2), "only the last one is told of");
  g_clear_object(&first);
  g_clear_object(&second);
}

static void second_clip(struct scene *scene) {
  struct robot *r = &scene->robot;
  char path[400];
  scene_step(scene_create(scene, "a green star spins clockwise, black background", 120), "a second clip");
  check_ok(scene_files(scene_path(scene, "clips", path), ".mp4") == 2, "both are files");
  robot_press(r, "page tab", "Library", 3);
  scene_step(robot_press(r, "table cell", NULL, 3), "choose one");
  scene_step(robot_press(r, "push button", "Compare*", 3), "compare it");
  AtspiAccessible *table = robot_find(r, "table", "Clips", 3);
  AtspiAccessible *other = table ? atspi_accessible_get_child_at_index(table, 1, NULL) : NULL;
  int x, y, width, height;
  int status = other ? robot_extents(other, &x, &y, &width, &height) : -1;
  if (status == 0)
    status = robot_click_at(x + width / 2, y + height / 2);
  scene_step(status, "with the other");
  g_clear_object(&other);
  g_clear_object(&table);
  AtspiAccessible *both = robot_find(r, NULL, "Two clips", 5);
  check_ok(both != NULL, "two clips side by side");
  g_clear_object(&both);
  scene_step(robot_press(r, "push button", "One frame on in both", 5), "both one frame on");
  scene_picture(scene, "compare-light");
  scene_step(robot_press(r, NULL, "Wipe", 3), "wipe between them");
  scene_picture(scene, "compare-wipe-light");
  scene_step(robot_press(r, "push button", "Back to the library*", 3), "back");
  scene_step(robot_press(r, "push button", "Make variations*", 5), "make variations");
  for (int i = 0; i < 600 && scene_files(path, ".mp4") < 6; i++)
    robot_sleep(.2);
  check_ok(scene_files(path, ".mp4") == 6, "four more clips are made");
  robot_sleep(4); /* until the message has gone */
  scene_picture(scene, "library-many-light");
}

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  if (scene_start(&scene, "en", 0, NULL) == 0) {
    first_clip(&scene);
    library(&scene);
    drop_bad(&scene);
    second_clip(&scene);
  }
  return scene_end(&scene);
}
