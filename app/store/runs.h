/* The store's side of training runs; see store.h for what all calls share. */
#pragma once
#include "store/store.h"

struct msa_run_row {
  gint64 id;
  char *name, *folder, *params; /* params: JSON */
  enum msa_job_state state;
  gint64 step, steps;
  double loss;    /* NaN: none */
  double seconds; /* of training so far */
  char *error;    /* or NULL */
};
struct msa_run_row *msa_run_row_copy(const struct msa_run_row *row);
void msa_run_row_free(struct msa_run_row *row);

/* One number of a curve. */
struct msa_point {
  const char *name; /* interned */
  gint64 step;
  double value;
};

/* GPtrArray of struct msa_run_row, newest first; owned by the caller. A run that was running when the program
 * ended is paused. */
void msa_store_list_runs_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data);
GPtrArray *msa_store_list_runs_finish(GAsyncResult *result, GError **error);
/* State, step, loss, seconds and sentence; the rest stays. */
void msa_store_set_run(struct msa_store *store, const struct msa_run_row *row);
/* Rows only: the folder stays. */
void msa_store_forget_run(struct msa_store *store, gint64 run);

/* Appends in one transaction. Points of a step that is not above a curve's last one replace what there is
 * from that step on. Takes a reference of points (GArray of struct msa_point), which must not change any
 * more. */
void msa_store_add_points(struct msa_store *store, gint64 run, GArray *points);

/* A block of a curve: at most `most` points after `after`, by step. */
struct msa_points_block {
  gint64 run, after;
  char *name;
  gsize most, count;
  double *x, *y;
};
void msa_store_read_points_async(struct msa_store *store, gint64 run, const char *name, gint64 after,
                                 gsize most, GAsyncReadyCallback callback, gpointer data);
/* Borrowed from the result; NULL: failed. */
const struct msa_points_block *msa_store_read_points_finish(GAsyncResult *result, GError **error);
/* The same for a thread that waits; msa_points_block_clear frees what it holds. */
gboolean msa_store_read_points(struct msa_store *store, struct msa_points_block *block, GError **error);
void msa_points_block_clear(struct msa_points_block *block);
/* Names of all curves of a run, NULL-terminated; g_strfreev. Waits. */
char **msa_store_read_names(struct msa_store *store, gint64 run, GError **error);

void msa_store_add_sample(struct msa_store *store, gint64 run, gint64 step, const char *prompt,
                          const char *path);
struct msa_sample_row {
  gint64 step;
  char *prompt, *path;
};
/* GPtrArray of struct msa_sample_row by step; owned by the caller. */
void msa_store_list_samples_async(struct msa_store *store, gint64 run, GAsyncReadyCallback callback,
                                  gpointer data);
GPtrArray *msa_store_list_samples_finish(GAsyncResult *result, GError **error);

/* jobs.c, inside a transaction of its own. */
gboolean msa_store_insert_run(struct msa_store *store, struct msa_run_row *row, GError **error);
gboolean msa_store_end_run(struct msa_store *store, gint64 run, enum msa_job_state state,
                           const char *sentence, GError **error);
