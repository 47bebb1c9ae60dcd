/* The two kinds of work of the engine thread. Each does the whole of a job and tells the task's mailbox how
 * it ended. */
#pragma once
#include "ms-job.h"
#include "queue/engine.h"

struct msa_workplace {
  struct msa_store *store;
  const struct msa_studio_folders *folders;
  char program_data[4096];
};

void msa_work_generate(const struct msa_workplace *place, struct msa_task *task);
void msa_work_train(const struct msa_workplace *place, struct msa_task *task);

/* engine.c: what both share. MS_EDEVICE if there is no such device. */
int msa_work_machine(const struct msa_workplace *place, const char *device, guint64 host_memory, int threads,
                     struct ms_machine *machine, struct ms_error *error);
struct ms_hooks msa_work_hooks(struct msa_task *task);
/* Tells that it stopped (code MS_ECANCELLED) or failed. Takes skipped. */
void msa_work_end(struct msa_task *task, const struct ms_error *error, char *skipped);
