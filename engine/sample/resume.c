#include "sample/resume.h"

#include <stdio.h>
#include <string.h>

#include "sample/settings.h"
#include "sample/state.h"

int ms_saved_job_read(struct ms_saved_job *saved, const char *folder, struct ms_error *error) {
  json_t *root = NULL;
  char path[1200];
  int code = ms_state_read_job(folder, &root, error);
  *saved = (struct ms_saved_job){.job = ms_generate_job_default(), .owned = root};
  snprintf(path, sizeof path, "%.1100s/job.json", folder);
  if (code == 0)
    code = ms_settings_read(&saved->job, root, path, error);
  saved->job.output = json_string_value(json_object_get(root, "output"));
  saved->job.resume = folder;
  if (code < 0)
    ms_saved_job_release(saved);
  return code;
}

void ms_saved_job_release(struct ms_saved_job *saved) {
  json_decref(saved->owned);
  memset(saved, 0, sizeof *saved);
}

/* The first setting that differs, with the saved job's value. */
struct difference {
  const char *what;
  char own[256];
};

static void text_differs(struct difference *d, const char *what, const char *asked, const char *own,
                         const char *absent) {
  if (d->what || !asked || !strcmp(asked, own ? own : ""))
    return;
  d->what = what;
  snprintf(d->own, sizeof d->own, "%s", own && *own ? own : absent);
}

static void number_differs(struct difference *d, const char *what, int is_asked, double asked, double own) {
  if (d->what || !is_asked || asked == own)
    return;
  d->what = what;
  snprintf(d->own, sizeof d->own, "%g", own);
}

static void compare(struct difference *d, const struct ms_generate_job *asked,
                    const struct ms_generate_job *own) {
  text_differs(d, "the prompt", asked->prompt, own->prompt, "");
  text_differs(d, "--negative", asked->negative, own->negative, "none");
  text_differs(d, "--model", asked->model, own->model, "");
  text_differs(d, "--sampler", asked->sampler, own->sampler, "");
  text_differs(d, "--attention", asked->attention, own->attention, "the model's");
  number_differs(d, "--frames", asked->frames > 0, asked->frames, own->frames);
  number_differs(d, "--fps", asked->fps > 0, asked->fps, own->fps);
  number_differs(d, "--steps", asked->steps > 0, asked->steps, own->steps);
  number_differs(d, "--guidance", asked->guidance >= 0, asked->guidance, own->guidance);
  number_differs(d, "--shift", asked->shift > 0, asked->shift, own->shift);
  if (!d->what && asked->width && (asked->width != own->width || asked->height != own->height)) {
    d->what = "--size";
    snprintf(d->own, sizeof d->own, "%dx%d", own->width, own->height);
  }
  if (!d->what && asked->seed >= 0 && asked->seed != own->seed) { /* beyond what a double tells apart */
    d->what = "--seed";
    snprintf(d->own, sizeof d->own, "%lld", (long long)own->seed);
  }
}

int ms_resume_read(const struct ms_generate_job *asked, struct ms_saved_job *saved,
                   struct ms_generate_job *job, struct ms_error *error) {
  struct difference difference = {0};
  struct ms_generate_job own;
  int code = ms_saved_job_read(saved, asked->resume, error);
  if (code < 0)
    return code;
  own = saved->job;
  compare(&difference, asked, &own);
  if (difference.what)
    return ms_error_set(
        error, MS_EUSAGE,
        "%s is not that of the unfinished clip in \"%.200s\" (%s): leave it out to go on with that "
        "clip, or leave --resume out to begin another",
        difference.what, asked->resume, difference.own);
  own.keep_latents = asked->keep_latents;
  own.take = asked->take;
  if (asked->output)
    own.output = asked->output;
  *job = own;
  return 0;
}
