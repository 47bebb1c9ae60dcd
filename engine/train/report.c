#include "train/report.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system.h"
#include "msk-peak.h"

/* Bytes that the files of a folder and of those in it take on the disk. */
static double folder_bytes(const char *path, int depth) {
  double bytes = 0;
  struct dirent *entry;
  DIR *dir = depth > 8 ? NULL : opendir(path);
  while (dir && (entry = readdir(dir))) {
    char below[2048];
    struct stat info;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
      continue;
    if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below ||
        lstat(below, &info) < 0)
      continue;
    bytes += S_ISDIR(info.st_mode) ? folder_bytes(below, depth + 1) : 512.0 * (double)info.st_blocks;
  }
  if (dir)
    closedir(dir);
  return bytes;
}

void ms_train_report(const struct ms_hooks *hooks, const struct ms_train_figures *f, double peak,
                     const char *output, int64_t steps, double spent, double seconds_per_step) {
  struct ms_progress progress = {"train", f->step, steps, spent,
                                 seconds_per_step * (double)(steps - f->step)};
  struct ms_metric metrics[24];
  int n = 0;
  if (hooks && hooks->metrics) {
    metrics[n++] = (struct ms_metric){"loss", f->loss};
    metrics[n++] = (struct ms_metric){"learning_rate", f->learning_rate};
    metrics[n++] = (struct ms_metric){"gradient_norm", f->gradient_norm};
    metrics[n++] = (struct ms_metric){"smoothed_loss", f->smoothed_loss};
    metrics[n++] = (struct ms_metric){"seconds", f->seconds};
    metrics[n++] = (struct ms_metric){"tokens_per_second", f->tokens / f->seconds};
    metrics[n++] = (struct ms_metric){"model_flops_per_second", f->flops / f->seconds};
    if (peak > 0)
      metrics[n++] = (struct ms_metric){"mfu", f->flops / f->seconds / peak};
    metrics[n++] = (struct ms_metric){"host_bytes", (double)ms_memory_resident()};
    metrics[n++] = (struct ms_metric){"compute_seconds", f->lanes.busy[MS_LANE_COMPUTE]};
    metrics[n++] = (struct ms_metric){"read_seconds", f->lanes.busy[MS_LANE_READ]};
    metrics[n++] = (struct ms_metric){"write_seconds", f->lanes.busy[MS_LANE_WRITE]};
    metrics[n++] = (struct ms_metric){"optimizer_seconds", f->lanes.busy[MS_LANE_HOST]};
    metrics[n++] = (struct ms_metric){"waited_seconds", f->lanes.waited};
    metrics[n++] = (struct ms_metric){"read_bytes", f->lanes.bytes[MS_LANE_READ]};
    metrics[n++] = (struct ms_metric){"written_bytes", f->lanes.bytes[MS_LANE_WRITE]};
    if (f->layers) {
      metrics[n++] = (struct ms_metric){"layers", f->layers};
      metrics[n++] = (struct ms_metric){"disk_layers", f->disk_layers};
    }
    if (f->saved || f->layers)
      metrics[n++] = (struct ms_metric){"disk_bytes", folder_bytes(output, 0) + f->state_bytes};
    if (isfinite(f->validation_loss))
      metrics[n++] = (struct ms_metric){"validation_loss", f->validation_loss};
    hooks->metrics(hooks->data, f->step, metrics, n);
  }
  if (hooks && hooks->progress)
    hooks->progress(hooks->data, &progress);
}

#define PEAK_ROUNDS 200000
#define PEAK_TRIES 5

struct peak {
  struct msk_peak_ops ops;
  double done[1024]; /* FLOPs of each thread */
};

static void peak_task(void *data, int64_t task, void *scratch) {
  struct peak *peak = data;
  peak->done[task] = peak->ops.bf16(PEAK_ROUNDS);
}

double ms_train_peak(struct ms_compute *compute) {
  int threads = ms_pool_threads(compute->pool);
  struct peak *peak = threads <= 1024 ? calloc(1, sizeof *peak) : NULL;
  double best = 0;
  if (!peak)
    return 0;
  msk_peak_init(&peak->ops, compute->cpu_flags);
  for (int i = 0; i < PEAK_TRIES; i++) {
    double began = ms_seconds(), seconds, flops = 0;
    ms_pool_run(compute->pool, peak_task, peak, threads);
    seconds = ms_seconds() - began;
    for (int t = 0; t < threads; t++)
      flops += peak->done[t];
    if (flops / seconds > best)
      best = flops / seconds;
  }
  free(peak);
  return best;
}
