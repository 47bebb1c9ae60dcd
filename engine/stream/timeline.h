/* A schedule run against rates instead of a machine: when each operation begins and ends, how busy each lane
 * is, and how long computing waits for transfers. Takes milliseconds for a step of 105 G parameters. */
#pragma once
#include "stream/schedule.h"

struct ms_timeline_rates { /* of all threads together */
  double read, write;      /* bytes a second of the disk */
  double disk;             /* bytes a second of both together; 0: they do not share */
  double update;           /* parameters a second of AdamW, including what it reads and writes in memory */
  double up, down;         /* bytes a second of the link */
};

struct ms_timeline {
  double seconds;        /* from the first operation's begin to the last one's end */
  double busy[MS_LANES]; /* seconds in which a lane works */
  double exposed;        /* seconds in which the compute lane waits: seconds - busy[COMPUTE] */
  double *begin, *end;   /* [schedule->count], owned */
};

/* 0 or MS_ENOMEM; MS_EUSAGE if an operation needs a rate that is 0. */
int ms_timeline_run(struct ms_timeline *timeline, const struct ms_schedule *schedule,
                    const struct ms_timeline_rates *rates, struct ms_error *error);
void ms_timeline_release(struct ms_timeline *timeline);
