/* The output folder of a run: model.json, the parts that are not trained. */
#pragma once
#include "model/model.h"
#include "ms-train.h"

/* MS_EUSAGE if the output is the folder of the clips, into which nothing is written. Before anything else. */
int ms_train_output_check(const char *dataset, const char *output, struct ms_error *error);
/* Makes the folder, or takes an existing one if it is empty or resume is set, and its lock, which *lock holds
 * (-1 on failure) until ms_train_output_close. MS_EINPUT if it exists otherwise, MS_EOUTPUT if it cannot be
 * made or written, or another run writes it. */
int ms_train_output_open(const char *output, int resume, int *lock, struct ms_error *error);
/* Gives the lock back; -1: nothing. */
void ms_train_output_close(const char *output, int lock);
/* Copies codec and text encoder of the model's folder, writes model.json (named after the output). */
int ms_train_output_parts(const struct ms_model *model, const char *model_folder,
                          const struct ms_train_job *job, struct ms_error *error);
/* Removes what output_open and output_parts made, if nothing else is in the folder. */
void ms_train_output_discard(const char *output);
