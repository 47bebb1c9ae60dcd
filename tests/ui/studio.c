#include "studio.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_cb(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  return remove(path);
}

void scene_begin(struct scene *scene, int argc, char **argv) {
  memset(scene, 0, sizeof *scene);
  if (argc < 5) {
    printf("1..0 # SKIP usage: %s PROGRAM GUARD DRAG_SOURCE PICTURES\n", argv[0]);
    exit(77);
  }
  scene->program = argv[1];
  scene->guard = argv[2];
  scene->drag_source = argv[3];
  scene->robot.pictures = argv[4];
  mkdir(argv[4], 0777);
  const char *tmp = getenv("TMPDIR");
  snprintf(scene->home, sizeof scene->home, "%s/megaslide-studio-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(scene->home)) {
    perror(scene->home);
    exit(1);
  }
  snprintf(scene->report, sizeof scene->report, "%s/report", scene->home);
  check_begin(1, argv);
  atspi_init();
  /* A press that was not answered in time would be made once more. */
  atspi_set_timeout(20000, 30000);
}

int scene_start(struct scene *scene, const char *language, int dark, const char *argument) {
  setenv("MEGASLIDE_GUARD", scene->report, 1);
  char folders[700];
  snprintf(folders, sizeof folders, "%s/data/megaslide:%s/cache/megaslide:%s/Videos", scene->home,
           scene->home, scene->home);
  setenv("MEGASLIDE_GUARD_FOLDERS", folders, 1);
  setenv("LD_PRELOAD", scene->guard, 1);
  setenv("G_DEBUG", "fatal-criticals", 1);
  const int status = robot_start(&scene->robot, scene->program, scene->home, language, dark, argument, 30);
  unsetenv("LD_PRELOAD");
  unsetenv("G_DEBUG");
  robot_sleep(1);
  if (status)
    robot_picture(&scene->robot, "no-window");
  return scene_step(status, "the window comes up");
}

int scene_step(int status, const char *what) {
  check_ok(status == 0, "%s", what);
  fflush(stdout);
  return status;
}

void scene_picture(struct scene *scene, const char *name) {
  robot_sleep(.6);
  scene_step(robot_picture(&scene->robot, name), "a picture is taken");
}

int scene_end(struct scene *scene) {
  char line[600];
  int lines = 0;
  robot_kill(&scene->robot);
  if (scene->drag > 0) {
    kill(scene->drag, SIGKILL);
    waitpid(scene->drag, NULL, 0);
  }
  FILE *report = fopen(scene->report, "re");
  while (report && fgets(line, sizeof line, report)) {
    if (lines++ < 20)
      printf("# on the main thread: %s", line);
  }
  if (report)
    fclose(report);
  check_ok(lines == 0, "the main thread touches neither the person's files nor the data base (%d times)",
           lines);
  nftw(scene->home, remove_cb, 16, FTW_DEPTH | FTW_PHYS);
  return check_end();
}

const char *scene_path(const struct scene *scene, const char *below, char path[400]) {
  snprintf(path, 400, "%s/data/megaslide/%s", scene->home, below);
  return path;
}

int scene_files(const char *folder, const char *ending) {
  DIR *d = opendir(folder);
  int count = 0;
  if (!d)
    return -1;
  for (struct dirent *entry; (entry = readdir(d));) {
    const size_t n = strlen(entry->d_name), m = strlen(ending);
    count += n > m && !strcmp(entry->d_name + n - m, ending);
  }
  closedir(d);
  return count;
}

/* Until the new job begins the clip before is on the stage, so the file is waited for first. */
int scene_create(struct scene *scene, const char *prompt, double seconds) {
  struct robot *r = &scene->robot;
  char path[400];
  const char *clips = scene_path(scene, "clips", path);
  const int before = MAX(scene_files(clips, ".mp4"), 0);
  if (robot_fill(r, "text", "Prompt", prompt, 5) || robot_press(r, "push button", "Create", 5))
    return -1;
  const gint64 end = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);
  while (scene_files(clips, ".mp4") <= before && g_get_monotonic_time() < end)
    robot_sleep(.1);
  AtspiAccessible *done = robot_find(r, "push button", "Keep seed", 10);
  if (!done) {
    robot_tree(r);
    return -1;
  }
  g_object_unref(done);
  return 0;
}

/* Waits until it can be dragged from. */
static int start_source(struct scene *scene, const char *file) {
  int words[2];
  char ready;
  if (pipe2(words, O_CLOEXEC))
    return -1;
  scene->drag = fork();
  if (scene->drag == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(words[1], STDOUT_FILENO);
    execl(scene->drag_source, scene->drag_source, file, "1300", "100", (char *)NULL);
    _exit(127);
  }
  close(words[1]);
  struct pollfd source = {.fd = words[0], .events = POLLIN};
  const int status = poll(&source, 1, 30000) == 1 && read(words[0], &ready, 1) == 1 ? 0 : -1;
  close(words[0]);
  robot_sleep(.5);
  return status;
}

int scene_drop(struct scene *scene, const char *file) {
  int status = start_source(scene, file);
  if (status == 0)
    status = robot_drag(1350, 150, 500, 400);
  /* The file is asked for after it was let go; then the source ends by itself. */
  const double end = robot_now() + 20;
  while (scene->drag > 0 && robot_now() < end) {
    if (waitpid(scene->drag, NULL, WNOHANG) == scene->drag)
      scene->drag = 0;
    robot_sleep(.1);
  }
  if (scene->drag > 0) {
    kill(scene->drag, SIGKILL);
    waitpid(scene->drag, NULL, 0);
    scene->drag = 0;
  }
  return status;
}

int scene_set_steps(struct scene *scene, const char *steps) {
  struct robot *r = &scene->robot;
  AtspiAccessible *spin = robot_find(r, "spin button", "Steps", 3);
  int x, y, width, height;
  if (!spin)
    return -1;
  /* Closed rows keep their widgets; only an open one has a place on the screen that can be pressed. */
  AtspiComponent *component = atspi_accessible_get_component_iface(spin);
  atspi_component_scroll_to(component, ATSPI_SCROLL_ANYWHERE, NULL);
  g_clear_object(&component);
  const int there = robot_extents(spin, &x, &y, &width, &height) == 0 && height > 10;
  g_object_unref(spin);
  if (!there && robot_press(r, "list item", "Advanced", 3))
    return -1;
  robot_sleep(.8);
  if (robot_fill(r, "spin button", "Steps", steps, 3))
    return -1;
  return robot_key("Tab");
}

int scene_make_long(struct scene *scene, const char *prompt, const char *steps) {
  struct robot *r = &scene->robot;
  int status = robot_press(r, "page tab", "Create", 3);
  if (status == 0)
    status = scene_set_steps(scene, steps);
  if (status == 0)
    status = robot_fill(r, "text", "Prompt", prompt, 5);
  if (status == 0)
    status = robot_key("ctrl+Return");
  AtspiAccessible *line = status == 0 ? robot_find(r, "label", "*tep * of *", 60) : NULL;
  status = line ? 0 : -1;
  g_clear_object(&line);
  return status;
}

int scene_shell(const struct scene *scene, const char *arguments) {
  char *folder = g_path_get_dirname(scene->program);
  char *command =
      g_strdup_printf("exec \"%s/../app/megaslide\" %s >\"%s/shell\" 2>&1", folder, arguments, scene->home);
  const int status = system(command) == 0 ? 0 : -1;
  if (status) {
    char *text = NULL, line[600];
    snprintf(line, sizeof line, "%s/shell", scene->home);
    g_file_get_contents(line, &text, NULL, NULL);
    printf("# megaslide %s\n# %s\n", arguments, text ? text : "");
    g_free(text);
  }
  g_free(command);
  g_free(folder);
  return status;
}

int scene_draw_clips(struct scene *scene, char folder[300]) {
  char arguments[500];
  snprintf(folder, 300, "%s/my-clips", scene->home);
  snprintf(arguments, sizeof arguments, "render-scenes -o \"%s\" --clips 6 --size 64x64 --frames 9 --seed 3",
           folder);
  return scene_shell(scene, arguments);
}

int scene_save_as(struct scene *scene, const char *menu, const char *path) {
  struct robot *r = &scene->robot;
  int status = robot_press(r, "push button", "Save and more*", 3);
  if (status == 0)
    status = robot_press(r, NULL, menu, 3);
  robot_sleep(1);
  if (status == 0)
    status = robot_key("ctrl+a");
  if (status == 0)
    status = robot_type(path);
  if (status == 0)
    status = robot_press(r, "push button", "Save", 5);
  for (int i = 0; i < 50 && access(path, R_OK) != 0; i++)
    robot_sleep(.2);
  return status == 0 && access(path, R_OK) == 0 ? 0 : -1;
}
