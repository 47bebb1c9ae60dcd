#include "robot.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double robot_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Lets the accessibility bus deliver while time passes. */
void robot_sleep(double seconds) {
  const double end = robot_now() + seconds;
  do {
    while (g_main_context_iteration(NULL, FALSE)) {
    }
    usleep(20000);
  } while (robot_now() < end);
}

/* GTK 4.8 says the name of a widget twice that has a label and is also labelled by it: "Save Save". */
static int is_doubled(const char *name) {
  const size_t n = name ? strlen(name) : 0;
  return n > 2 && n % 2 && name[n / 2] == ' ' && !strncmp(name, name + n / 2 + 1, n / 2);
}

static int matches(const char *name, const char *pattern) {
  char half[200];
  if (is_doubled(name) && strlen(name) / 2 < sizeof half) { /* in GTK's own dialogs */
    snprintf(half, sizeof half, "%.*s", (int)(strlen(name) / 2), name);
    if (fnmatch(pattern, half, 0) == 0)
      return 1;
  }
  return name && fnmatch(pattern, name, 0) == 0;
}

/* GTK 4.8 says "showing" of windows alone; what is hidden, or lies on a page that is, is not "visible". */
static int shows(AtspiAccessible *widget) {
  AtspiStateSet *states = atspi_accessible_get_state_set(widget);
  const int yes = states && atspi_state_set_contains(states, ATSPI_STATE_VISIBLE);
  g_clear_object(&states);
  return yes;
}

static int fits(AtspiAccessible *widget, const char *role, const char *name) {
  int yes = 1;
  if (role) {
    char *its = atspi_accessible_get_role_name(widget, NULL);
    yes = its && !strcmp(its, role);
    g_free(its);
  }
  if (yes && name) {
    char *its = atspi_accessible_get_name(widget, NULL);
    yes = matches(its, name);
    g_free(its);
  }
  return yes;
}

/* Depth first. What does not show has no children that do, but for the program itself. */
static AtspiAccessible *search(AtspiAccessible *widget, const char *role, const char *name, int root,
                               int *count) {
  if (!root && !shows(widget))
    return NULL;
  if (!root && fits(widget, role, name)) {
    if (!count)
      return g_object_ref(widget);
    ++*count;
  }
  const int n = atspi_accessible_get_child_count(widget, NULL);
  for (int i = 0; i < n; i++) {
    AtspiAccessible *child = atspi_accessible_get_child_at_index(widget, i, NULL);
    AtspiAccessible *found = child ? search(child, role, name, 0, count) : NULL;
    g_clear_object(&child);
    if (found)
      return found;
  }
  return NULL;
}

AtspiAccessible *robot_find_in(AtspiAccessible *root, const char *role, const char *name, double seconds) {
  const double end = robot_now() + seconds;
  for (;;) {
    AtspiAccessible *found = search(root, role, name, 1, NULL);
    if (found || robot_now() >= end)
      return found;
    robot_sleep(.1);
  }
}

AtspiAccessible *robot_find(struct robot *robot, const char *role, const char *name, double seconds) {
  return robot->app ? robot_find_in(robot->app, role, name, seconds) : NULL;
}

int robot_gone(struct robot *robot, const char *role, const char *name, double seconds) {
  const double end = robot_now() + seconds;
  do {
    AtspiAccessible *found = robot_find(robot, role, name, 0);
    if (!found)
      return 1;
    g_object_unref(found);
    robot_sleep(.1);
  } while (robot_now() < end);
  return 0;
}

int robot_count(struct robot *robot, const char *role, const char *name) {
  int count = 0;
  search(robot->app, role, name, 1, &count);
  return count;
}

static int doubled(AtspiAccessible *widget) {
  char *name = atspi_accessible_get_name(widget, NULL);
  int count = is_doubled(name);
  if (count)
    printf("# \"%s\"\n", name);
  g_free(name);
  const int n = atspi_accessible_get_child_count(widget, NULL);
  for (int i = 0; i < n; i++) {
    AtspiAccessible *child = atspi_accessible_get_child_at_index(widget, i, NULL);
    if (child && shows(child))
      count += doubled(child);
    g_clear_object(&child);
  }
  return count;
}

int robot_doubled(struct robot *robot) {
  return robot->app ? doubled(robot->app) : 0;
}

/* Boxes without a name of their own say nothing. */
static void tree(AtspiAccessible *widget, int depth) {
  char *role = atspi_accessible_get_role_name(widget, NULL), *name = atspi_accessible_get_name(widget, NULL);
  const int plain =
      role && (!strcmp(role, "panel") || !strcmp(role, "filler") || !strcmp(role, "scroll pane") ||
               !strcmp(role, "scroll bar") || !strcmp(role, "image"));
  const int told = !plain || (name && name[0] && strncmp(name, "Gtk", 3) && strncmp(name, "Adw", 3));
  if (told)
    printf("# %*s%s \"%s\"\n", depth * 2, "", role ? role : "?", name ? name : "");
  g_free(role);
  g_free(name);
  const int n = atspi_accessible_get_child_count(widget, NULL);
  for (int i = 0; i < n; i++) {
    AtspiAccessible *child = atspi_accessible_get_child_at_index(widget, i, NULL);
    if (child && shows(child))
      tree(child, depth + told);
    g_clear_object(&child);
  }
}

void robot_tree(struct robot *robot) {
  if (robot->app)
    tree(robot->app, 0);
  fflush(stdout);
}

static int missing(const char *what, const char *role, const char *name) {
  printf("# cannot %s the %s \"%s\": it is not showing\n", what, role ? role : "widget", name ? name : "");
  return -1;
}

static int press(AtspiAccessible *widget) {
  AtspiAction *action = atspi_accessible_get_action_iface(widget);
  int done = -1;
  const int n = action ? atspi_action_get_n_actions(action, NULL) : 0;
  for (int i = 0; i < n && done; i++) {
    char *name = atspi_action_get_action_name(action, i, NULL);
    if (name && (strstr(name, "click") || strstr(name, "activate") || strstr(name, "toggle") ||
                 strstr(name, "press")))
      done = atspi_action_do_action(action, i, NULL) ? 0 : -1;
    g_free(name);
  }
  g_clear_object(&action);
  if (done) { /* no action of its own: the pointer */
    int x, y, width, height;
    if (robot_extents(widget, &x, &y, &width, &height) == 0)
      done = robot_click_at(x + width / 2, y + height / 2);
  }
  robot_sleep(.15);
  return done;
}

static int is_sensitive(AtspiAccessible *widget) {
  AtspiStateSet *states = atspi_accessible_get_state_set(widget);
  const int yes = states && atspi_state_set_contains(states, ATSPI_STATE_SENSITIVE);
  g_clear_object(&states);
  return yes;
}

/* A press on what cannot be pressed yet would be lost. */
int robot_press_in(AtspiAccessible *root, const char *role, const char *name, double seconds) {
  const double end = robot_now() + seconds;
  AtspiAccessible *widget = robot_find_in(root, role, name, seconds);
  if (!widget)
    return missing("press", role, name);
  while (!is_sensitive(widget) && robot_now() < end)
    robot_sleep(.1);
  const int status = press(widget);
  g_object_unref(widget);
  return status;
}

int robot_press(struct robot *robot, const char *role, const char *name, double seconds) {
  const int status = robot->app ? robot_press_in(robot->app, role, name, seconds) : -1;
  if (status < 0)
    robot_tree(robot);
  return status;
}

/* The scroll pane that a widget lies in; NULL: none. */
static AtspiAccessible *pane_of(AtspiAccessible *widget) {
  AtspiAccessible *at = atspi_accessible_get_parent(widget, NULL);
  while (at && !fits(at, "scroll pane", NULL)) {
    AtspiAccessible *parent = atspi_accessible_get_parent(at, NULL);
    g_object_unref(at);
    at = parent;
  }
  return at;
}

/* Turns the wheel over the left edge of the pane, where nothing takes it for itself, until the widget shows.
 */
static void scroll_to(AtspiAccessible *widget) {
  AtspiAccessible *pane = pane_of(widget);
  int x, y, width, height, top, left, wide, high;
  for (int i = 0; pane && i < 60; i++) {
    if (robot_extents(widget, &x, &y, &width, &height) || robot_extents(pane, &left, &top, &wide, &high) ||
        (y >= top && y + height <= top + high))
      break;
    robot_wheel(left + 6, top + high / 2, y < top ? -1 : 1);
  }
  g_clear_object(&pane);
}

int robot_focus(struct robot *robot, const char *role, const char *name, double seconds) {
  AtspiAccessible *widget = robot_find(robot, role, name, seconds);
  if (!widget) {
    missing("focus", role, name);
    robot_tree(robot);
    return -1;
  }
  AtspiComponent *component = atspi_accessible_get_component_iface(widget);
  int x, y, width, height;
  int status = component && atspi_component_grab_focus(component, NULL) ? 0 : -1;
  if (status)
    scroll_to(widget);
  if (status && robot_extents(widget, &x, &y, &width, &height) == 0)
    status = robot_click_at(x + width / 2, y + height / 2);
  g_clear_object(&component);
  g_object_unref(widget);
  robot_sleep(.15);
  return status;
}

int robot_fill(struct robot *robot, const char *role, const char *name, const char *text, double seconds) {
  if (robot_focus(robot, role, name, seconds) || robot_key("ctrl+a"))
    return -1;
  return robot_type(text);
}

int robot_extents(AtspiAccessible *widget, int *x, int *y, int *width, int *height) {
  AtspiComponent *component = atspi_accessible_get_component_iface(widget);
  AtspiRect *rect = component ? atspi_component_get_extents(component, ATSPI_COORD_TYPE_SCREEN, NULL) : NULL;
  g_clear_object(&component);
  if (!rect || rect->width <= 0) {
    g_free(rect);
    return -1;
  }
  *x = rect->x;
  *y = rect->y;
  *width = rect->width;
  *height = rect->height;
  g_free(rect);
  return 0;
}

char *robot_text(AtspiAccessible *widget) {
  AtspiText *text = atspi_accessible_get_text_iface(widget);
  char *all = NULL;
  if (text)
    all = atspi_text_get_text(text, 0, atspi_text_get_character_count(text, NULL), NULL);
  g_clear_object(&text);
  return all ? all : atspi_accessible_get_name(widget, NULL);
}

static AtspiAccessible *find_app(pid_t pid) {
  AtspiAccessible *desktop = atspi_get_desktop(0), *found = NULL;
  const int n = atspi_accessible_get_child_count(desktop, NULL);
  for (int i = 0; i < n && !found; i++) {
    AtspiAccessible *child = atspi_accessible_get_child_at_index(desktop, i, NULL);
    if (child && (pid_t)atspi_accessible_get_process_id(child, NULL) == pid &&
        atspi_accessible_get_child_count(child, NULL) > 0)
      found = g_object_ref(child);
    g_clear_object(&child);
  }
  g_object_unref(desktop);
  return found;
}

static void child(const char *program, const char *home, const char *language, int dark,
                  const char *argument) {
  static const char *const folders[][2] = {{"XDG_DATA_HOME", "data"},
                                           {"XDG_CONFIG_HOME", "config"},
                                           {"XDG_CACHE_HOME", "cache"},
                                           {"XDG_STATE_HOME", "state"}};
  char path[4096];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
    snprintf(path, sizeof path, "%s/%s", home, folders[i][1]);
    setenv(folders[i][0], path, 1);
  }
  setenv("HOME", home, 1);
  setenv("LANGUAGE", language, 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  setenv("ADW_DEBUG_COLOR_SCHEME", dark ? "prefer-dark" : "prefer-light", 1);
  setenv("GSK_RENDERER", "cairo", 1);
  setenv("GSETTINGS_BACKEND", "keyfile", 1);
  setenv("GTK_A11Y", "atspi", 1);
  execl(program, program, argument, (char *)NULL);
  _exit(127);
}

int robot_start(struct robot *robot, const char *program, const char *home, const char *language, int dark,
                const char *argument, double seconds) {
  const double end = robot_now() + seconds;
  int status = 0;
  g_clear_object(&robot->app);
  robot->pid = 0;
  while (!robot->app && status == 0 && robot_now() < end) {
    /* A program that was killed a moment ago may still have its name on the bus; the new one then believes
     * that it runs already, and ends well. */
    if (robot->pid == 0 || waitpid(robot->pid, &status, WNOHANG) == robot->pid) {
      fflush(stdout);
      robot->pid = status == 0 ? fork() : 0;
      if (robot->pid == 0 && status == 0)
        child(program, home, language, dark, argument);
    }
    robot_sleep(.3);
    robot->app = robot->pid > 0 ? find_app(robot->pid) : NULL;
  }
  if (status)
    printf("# %s ended by itself: %s %d\n", program, WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  if (!robot->app) {
    printf("# %s shows no window\n", program);
    return -1;
  }
  /* What is on the screen now, not what was there at the first look. */
  atspi_accessible_set_cache_mask(robot->app, ATSPI_CACHE_NONE);
  return 0;
}

void robot_kill(struct robot *robot) {
  if (robot->pid > 0) {
    kill(robot->pid, SIGKILL);
    waitpid(robot->pid, NULL, 0);
  }
  robot->pid = 0;
  g_clear_object(&robot->app);
  robot_sleep(.3);
}

int robot_wait(struct robot *robot, double seconds) {
  const double end = robot_now() + seconds;
  int status;
  while (robot_now() < end) {
    if (waitpid(robot->pid, &status, WNOHANG) == robot->pid) {
      robot->pid = 0;
      g_clear_object(&robot->app);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    robot_sleep(.1);
  }
  return -1;
}
