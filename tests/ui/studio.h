/* What the scenarios share: a home of their own for the Studio, its start and end, and steps in words.
 *
 *   studio-create PROGRAM GUARD DRAG_SOURCE PICTURES
 *
 * Each step is one TAP line. After a step that failed the later ones still run, so that one log tells all. */
#pragma once
#include "harness.h"
#include "robot.h"

struct scene {
  struct robot robot;
  const char *program, *guard, *drag_source;
  char home[200];
  char report[260]; /* what the guard saw on the main thread */
  pid_t drag;       /* the drag source; 0: none */
};

/* A new home. Leaves the process with 77 if arguments are missing. */
void scene_begin(struct scene *scene, int argc, char **argv);
/* Starts the window, or says that it did not. */
int scene_start(struct scene *scene, const char *language, int dark, const char *argument);
/* Writes a picture whose name is followed by the theme. */
void scene_picture(struct scene *scene, const char *name);
/* Checks that the main thread touched no file of the person's and no data base; removes the home. Exit
 * status. */
int scene_end(struct scene *scene);

/* One TAP line: the step and whether it was done. */
int scene_step(int status, const char *what);
/* Path below the data folder of this home. */
const char *scene_path(const struct scene *scene, const char *below, char path[400]);
/* Files in a folder whose names end so; -1 if there is no folder. */
int scene_files(const char *folder, const char *ending);
/* Writes a prompt and presses Create; waits until the clip is done. */
int scene_create(struct scene *scene, const char *prompt, double seconds);
/* Drags a file from the drag source onto the middle of the window. */
int scene_drop(struct scene *scene, const char *file);
/* Steps of the sampler, through the Advanced settings. */
int scene_set_steps(struct scene *scene, const char *steps);
/* Begins a clip of so many steps with Ctrl+Enter; waits until it tells its steps. */
int scene_make_long(struct scene *scene, const char *prompt, const char *steps);
/* Runs the program of the command line; 0, or -1 with what it said as comments. */
int scene_shell(const struct scene *scene, const char *arguments);
/* Six clips with captions, 64x64 of 9 frames, drawn by the program itself. */
int scene_draw_clips(struct scene *scene, char folder[300]);
/* An item of the run's menu, and the path typed into the dialog that it opens; waits for the file. */
int scene_save_as(struct scene *scene, const char *menu, const char *path);
