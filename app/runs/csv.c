/* All curves of a run as CSV, read from the store piece by piece. */
#include <errno.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>

#include "core/main-thread.h"
#include "runs/run-private.h"

#define BLOCK 8192

struct csv {
  struct msa_store *store;
  gint64 run;
  char *path;
};

static void csv_free(gpointer data) {
  struct csv *csv = data;
  g_free(csv->path);
  g_free(csv);
}

/* A curve being read: a block, and how much of it was written. */
struct reading {
  struct msa_points_block block;
  gsize at;
  gboolean ended;
};

static gboolean refill(const struct csv *csv, struct reading *reading, GError **error) {
  struct msa_points_block *block = &reading->block;
  if (reading->ended || reading->at < block->count)
    return TRUE;
  if (block->count)
    block->after = (gint64)block->x[block->count - 1];
  if (!msa_store_read_points(csv->store, block, error))
    return FALSE;
  reading->at = 0;
  reading->ended = block->count == 0;
  return TRUE;
}

static gboolean write_rows(const struct csv *csv, FILE *file, struct reading *readings, guint count,
                           GError **error) {
  for (;;) {
    double step = INFINITY;
    for (guint i = 0; i < count; i++) {
      if (!refill(csv, &readings[i], error))
        return FALSE;
      if (!readings[i].ended)
        step = MIN(step, readings[i].block.x[readings[i].at]);
    }
    if (!isfinite(step))
      return TRUE;
    fprintf(file, "%.0f", step);
    for (guint i = 0; i < count; i++) {
      char number[G_ASCII_DTOSTR_BUF_SIZE] = "";
      struct reading *reading = &readings[i];
      if (!reading->ended && reading->block.x[reading->at] == step)
        g_ascii_formatd(number, sizeof number, "%.9g", reading->block.y[reading->at++]);
      fprintf(file, ",%s", number);
    }
    fputc('\n', file);
  }
}

static gboolean write_csv(const struct csv *csv, FILE *file, GError **error) {
  g_auto(GStrv) names = msa_store_read_names(csv->store, csv->run, error);
  if (!names)
    return FALSE;
  const guint count = g_strv_length(names);
  struct reading *readings = g_new0(struct reading, count + 1);
  fputs("step", file);
  for (guint i = 0; i < count; i++) {
    readings[i].block = (struct msa_points_block){.run = csv->run,
                                                  .after = G_MININT64,
                                                  .name = g_strdup(names[i]),
                                                  .most = BLOCK,
                                                  .x = g_new(double, BLOCK),
                                                  .y = g_new(double, BLOCK)};
    fprintf(file, ",%s", names[i]);
  }
  fputc('\n', file);
  const gboolean good = write_rows(csv, file, readings, count, error);
  for (guint i = 0; i < count; i++)
    msa_points_block_clear(&readings[i].block);
  g_free(readings);
  return good;
}

static gboolean cannot_write(const char *path, int number, GError **error) {
  g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT, _("\"%s\" cannot be written: %s; choose another folder"),
              path, g_strerror(number));
  return FALSE;
}

static gboolean save(const struct csv *csv, GError **error) {
  g_autofree char *part = g_strconcat(csv->path, ".part", NULL);
  FILE *file = g_fopen(part, "we");
  if (!file)
    return cannot_write(csv->path, errno, error);
  gboolean good = write_csv(csv, file, error);
  if (good && (fflush(file) || ferror(file) || fsync(fileno(file))))
    good = cannot_write(csv->path, errno, error);
  if (fclose(file) && good)
    good = cannot_write(csv->path, errno, error);
  if (good && g_rename(part, csv->path))
    good = cannot_write(csv->path, errno, error);
  if (!good)
    g_unlink(part);
  return good;
}

static void save_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  GError *error = NULL;
  MSA_ASSERT_OFF_MAIN();
  if (save(data, &error))
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

void msa_run_save_csv_async(MsaRun *run, const char *path, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(run, NULL, callback, data);
  struct msa_store *store = msa_run_get_store(run);
  MSA_ASSERT_MAIN();
  g_task_set_source_tag(task, msa_run_save_csv_async);
  if (!store) {
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_STORE,
                            _("The library is closed. Start MegaSlide Studio again."));
    return;
  }
  struct csv *csv = g_new0(struct csv, 1);
  *csv = (struct csv){store, msa_run_get_id(run), g_strdup(path)};
  g_task_set_task_data(task, csv, csv_free);
  msa_run_flush(run);
  g_task_run_in_thread(task, save_work);
}

gboolean msa_run_save_csv_finish(MsaRun *run, GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}
