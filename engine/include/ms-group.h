/* Processes that train one model together, started by an MPI launcher: mpirun, or srun of Slurm.
 *
 *   struct ms_group *group;
 *   code = ms_group_open (&group, &error);       // NULL: this process is alone
 *   machine.group = group;
 *   code = ms_train (&job, NULL, &machine, &hooks, &result, &error);
 *   if (ms_group_rank (group) == 0) ...           // who speaks for all
 *   ms_group_close (&group, status);
 *
 * The MPI library lies in a module that is loaded only where a launcher has started the process, so the
 * program starts on machines that have none. All calls, and all of a job that is given the group, come from
 * the thread that opened it. */
#pragma once
#include "ms-error.h"

struct ms_group;

/* *group: NULL if no launcher has started more than this process. Blocks until all have come here. MS_EUSAGE:
 * they were started together, but this program has no MPI module, or MPI knows nothing of the others. */
int ms_group_open(struct ms_group **group, struct ms_error *error);
/* From 0; 0 and 1 if group is NULL. */
int ms_group_rank(const struct ms_group *group);
int ms_group_size(const struct ms_group *group);
/* Whether this process failed where the others could not follow: what it has to say nobody else does. */
int ms_group_is_torn(const struct ms_group *group);
/* Waits for all, or, if the group is torn, ends all of them with `status`. Nulls the pointer. */
void ms_group_close(struct ms_group **group, int status);
