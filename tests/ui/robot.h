/* Drives the Studio's real window as a person does: finds widgets by role and name through the accessibility
 * bus, presses them, types, points, drags, and takes pictures of the screen.
 *
 * Needs a display and a session bus of its own: see with-display.sh. One thread. A step that fails prints the
 * tree of what is on the screen as TAP comments, so that the log says what stood there. */
#pragma once
#include <atspi/atspi.h>
#include <sys/types.h>

struct robot {
  pid_t pid;            /* of the Studio; 0: not running */
  AtspiAccessible *app; /* its root; owned */
  const char *pictures; /* folder for pictures; NULL: none */
};

/* Starts a program with the user's folders below `home`. language: "en_US.UTF-8" or e.g. "es"; dark: colour
 * scheme; argument may be NULL. Waits up to `seconds` for its window. Returns 0 or -1. */
int robot_start(struct robot *robot, const char *program, const char *home, const char *language, int dark,
                const char *argument, double seconds);
/* SIGKILL, as a crash or power cut would. */
void robot_kill(struct robot *robot);
/* Closes the window's process politely (SIGTERM is not asked about); exit status, or -1 after `seconds`. */
int robot_wait(struct robot *robot, double seconds);

/* The first visible widget of a role ("push button", "text", ...; NULL: any) whose name fits a shell pattern
 * ("Export*"). Waits up to `seconds`. New reference or NULL. */
AtspiAccessible *robot_find(struct robot *robot, const char *role, const char *name, double seconds);
/* The same below a widget. */
AtspiAccessible *robot_find_in(AtspiAccessible *root, const char *role, const char *name, double seconds);
/* 1 if nothing like it is showing within `seconds`. */
int robot_gone(struct robot *robot, const char *role, const char *name, double seconds);
int robot_count(struct robot *robot, const char *role, const char *name);
/* How many visible widgets have a name that says the same twice, each told as a TAP comment. */
int robot_doubled(struct robot *robot);

/* All return 0, or -1 with a comment on standard output. */
int robot_press(struct robot *robot, const char *role, const char *name, double seconds);
int robot_press_in(AtspiAccessible *root, const char *role, const char *name, double seconds);
int robot_focus(struct robot *robot, const char *role, const char *name, double seconds);
/* Keys through the X server: "ctrl+Return", "Left", "shift+Right". */
int robot_key(const char *keys);
/* Types letters, digits and common signs into whatever has the focus. */
int robot_type(const char *text);
/* Focuses a text, selects all of it, types over it. */
int robot_fill(struct robot *robot, const char *role, const char *name, const char *text, double seconds);
/* The pointer, in pixels of the screen. */
int robot_point(int x, int y);
int robot_click_at(int x, int y);
int robot_wheel(int x, int y, int down); /* one notch; below 0: up */
int robot_drag(int x0, int y0, int x1, int y1);
int robot_extents(AtspiAccessible *widget, int *x, int *y, int *width, int *height);

/* Text of a text widget or label; free with g_free. */
char *robot_text(AtspiAccessible *widget);
/* PNG of the window's place, the upper left 1280x800 of the screen, in the folder of pictures. */
int robot_picture(struct robot *robot, const char *name);
/* Prints role and name of everything that shows, as TAP comments. */
void robot_tree(struct robot *robot);
double robot_now(void);
void robot_sleep(double seconds);
