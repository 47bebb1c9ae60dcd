/* Looks at a model in training from outside: the loss on clips that it never sees, a clip of the sample
 * prompt. Neither changes a bit of the training. */
#pragma once
#include "train/feed.h"
#include "train/objective.h"
#include "train/trained.h"

/* Mean loss over the held-out clips at fixed noise and noise levels, with the averaged weights. What waits is
 * flushed. The ranks of a group look at different clips. A run that is cancelled meanwhile gets NaN: the look
 * is left out. */
int ms_validate(struct ms_trained *trained, struct ms_feed *feed, struct ms_objective *objective,
                const struct ms_hooks *hooks, double start, double *loss, struct ms_error *error);
/* A clip of job->sample_prompt as OUT/samples/step-NNNNNN-prompt.mp4, by the model in OUT, which has been
 * exported. It has networks and threads of its own; that it cannot be made is told to hooks->log and no
 * failure. MS_EOUTPUT: no folder; MS_ECANCELLED. */
int ms_make_sample(const struct ms_train_job *job, int64_t step, const struct ms_machine *machine,
                   const struct ms_hooks *hooks, struct ms_error *error);
