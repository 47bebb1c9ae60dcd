/* Keys, pointer and pictures of the screen, through the X server. */
#include "robot.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <cairo-xlib.h>
#include <stdio.h>
#include <string.h>

/* Opened for each use: a test takes hundreds of steps, not millions, and nothing has to be kept. */
static Display *display(void) {
  Display *d = XOpenDisplay(NULL);
  if (!d)
    printf("# no display\n");
  return d;
}

static int tap(Display *d, KeySym symbol, KeySym with) {
  const KeyCode key = XKeysymToKeycode(d, symbol), modifier = with ? XKeysymToKeycode(d, with) : 0;
  if (!key) {
    printf("# the keyboard has no key for symbol %lx\n", symbol);
    return -1;
  }
  if (modifier)
    XTestFakeKeyEvent(d, modifier, True, 0);
  XTestFakeKeyEvent(d, key, True, 0);
  XTestFakeKeyEvent(d, key, False, 0);
  if (modifier)
    XTestFakeKeyEvent(d, modifier, False, 0);
  XSync(d, False);
  return 0;
}

int robot_key(const char *keys) {
  KeySym with = 0;
  if (!strncmp(keys, "ctrl+", 5))
    with = XK_Control_L;
  else if (!strncmp(keys, "shift+", 6))
    with = XK_Shift_L;
  else if (!strncmp(keys, "alt+", 4))
    with = XK_Alt_L;
  Display *d = display();
  const char *name = with ? strchr(keys, '+') + 1 : keys;
  const int status = d ? tap(d, XStringToKeysym(name), with) : -1;
  if (d)
    XCloseDisplay(d);
  robot_sleep(.15);
  return status;
}

int robot_type(const char *text) {
  Display *d = display();
  int status = d ? 0 : -1;
  for (; status == 0 && *text; text++) {
    const unsigned char c = (unsigned char)*text;
    const KeySym symbol = c == '\n' ? XK_Return : c; /* Latin 1 symbols are their own codes */
    const KeyCode key = XKeysymToKeycode(d, symbol);
    const int upper = key && XkbKeycodeToKeysym(d, key, 0, 0) != symbol;
    status = tap(d, symbol, upper ? XK_Shift_L : 0);
  }
  if (d)
    XCloseDisplay(d);
  robot_sleep(.2);
  return status;
}

int robot_point(int x, int y) {
  Display *d = display();
  if (!d)
    return -1;
  XTestFakeMotionEvent(d, -1, x, y, 0);
  XCloseDisplay(d);
  robot_sleep(.1);
  return 0;
}

int robot_click_at(int x, int y) {
  Display *d = display();
  if (!d)
    return -1;
  XTestFakeMotionEvent(d, -1, x, y, 0);
  XTestFakeButtonEvent(d, 1, True, 30);
  XTestFakeButtonEvent(d, 1, False, 30);
  XCloseDisplay(d);
  robot_sleep(.2);
  return 0;
}

int robot_wheel(int x, int y, int down) {
  Display *d = display();
  const unsigned button = down < 0 ? Button4 : Button5;
  if (!d)
    return -1;
  XTestFakeMotionEvent(d, -1, x, y, 0);
  XTestFakeButtonEvent(d, button, True, 10);
  XTestFakeButtonEvent(d, button, False, 10);
  XCloseDisplay(d);
  robot_sleep(.15);
  return 0;
}

int robot_drag(int x0, int y0, int x1, int y1) {
  Display *d = display();
  if (!d)
    return -1;
  XTestFakeMotionEvent(d, -1, x0, y0, 0);
  XTestFakeButtonEvent(d, 1, True, 50);
  XSync(d, False);
  for (int i = 1; i <= 20; i++) {
    XTestFakeMotionEvent(d, -1, x0 + (x1 - x0) * i / 20, y0 + (y1 - y0) * i / 20, 0);
    XSync(d, False);
    robot_sleep(.05);
  }
  robot_sleep(.3);
  XTestFakeButtonEvent(d, 1, False, 50);
  XCloseDisplay(d);
  robot_sleep(.3);
  return 0;
}

int robot_picture(struct robot *robot, const char *name) {
  if (!robot->pictures)
    return 0;
  Display *d = display();
  if (!d)
    return -1;
  const int screen = DefaultScreen(d);
  const int width = DisplayWidth(d, screen) < 1280 ? DisplayWidth(d, screen) : 1280;
  const int height = DisplayHeight(d, screen) < 800 ? DisplayHeight(d, screen) : 800;
  cairo_surface_t *all =
      cairo_xlib_surface_create(d, RootWindow(d, screen), DefaultVisual(d, screen), width, height);
  char *path = g_strdup_printf("%s/%s.png", robot->pictures, name);
  const int status = cairo_surface_write_to_png(all, path) == CAIRO_STATUS_SUCCESS ? 0 : -1;
  if (status)
    printf("# cannot write the picture \"%s\"\n", path);
  g_free(path);
  cairo_surface_destroy(all);
  XCloseDisplay(d);
  return status;
}
