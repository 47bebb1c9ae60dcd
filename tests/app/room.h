/* What the tests of the app's rooms share: folders of their own, clips, and waiting for an answer. */
#pragma once
#include <gio/gio.h>

/* Begins the TAP output, makes a folder for everything that the Studio keeps and points the environment
 * there. First call of a test; end returns the exit status. */
void room_begin(int argc, char **argv);
int room_end(void);
/* FOLDER/name, newly allocated. */
char *room_path(const char *name);
/* A drawn clip of 96x64 at 8 frames a second with settings as its comment (NULL: none). */
void room_clip(const char *path, int frames, const char *comment);
/* Clips that the starter makes: 64x64, 5 frames, 2 steps; or as it does when nothing is said. */
void room_generate(const char *path, const char *prompt, gint64 seed);
void room_generate_default(const char *path);
void room_write(const char *path, const char *text);
gboolean room_exists(const char *path);
guint room_count(const char *folder); /* entries in it */

/* For callbacks: room_done keeps the result in *data, room_wait runs the main loop until it is there. */
void room_done(GObject *source, GAsyncResult *result, gpointer data);
GAsyncResult *room_wait(GAsyncResult **result);
/* Runs the main loop until *flag, at most for so many seconds. */
gboolean room_until(gboolean (*holds)(gpointer data), gpointer data, double seconds);
