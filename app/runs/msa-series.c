#include "msa-run.h"

#include <math.h>

struct _MsaSeries {
  GObject parent;
  char *name;
  GArray *x, *y; /* of double, equally long */
};

G_DEFINE_FINAL_TYPE(MsaSeries, msa_series, G_TYPE_OBJECT)

enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

static void msa_series_finalize(GObject *object) {
  MsaSeries *self = MSA_SERIES(object);
  g_free(self->name);
  g_array_unref(self->x);
  g_array_unref(self->y);
  G_OBJECT_CLASS(msa_series_parent_class)->finalize(object);
}

static void msa_series_class_init(MsaSeriesClass *klass) {
  G_OBJECT_CLASS(klass)->finalize = msa_series_finalize;
  signals[CHANGED] = g_signal_new("changed", MSA_TYPE_SERIES, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                  G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void msa_series_init(MsaSeries *self) {
  self->x = g_array_new(FALSE, FALSE, sizeof(double));
  self->y = g_array_new(FALSE, FALSE, sizeof(double));
}

MsaSeries *msa_series_new(const char *name) {
  MsaSeries *self = g_object_new(MSA_TYPE_SERIES, NULL);
  self->name = g_strdup(name);
  return self;
}

const char *msa_series_get_name(MsaSeries *series) {
  g_return_val_if_fail(MSA_IS_SERIES(series), NULL);
  return series->name;
}

gsize msa_series_get_length(MsaSeries *series) {
  g_return_val_if_fail(MSA_IS_SERIES(series), 0);
  return series->x->len;
}

const double *msa_series_get_x(MsaSeries *series) {
  g_return_val_if_fail(MSA_IS_SERIES(series), NULL);
  return (const double *)(void *)series->x->data;
}

const double *msa_series_get_y(MsaSeries *series) {
  g_return_val_if_fail(MSA_IS_SERIES(series), NULL);
  return (const double *)(void *)series->y->data;
}

/* The first index whose x is at least `x`. */
static guint lower_bound(const GArray *array, double x) {
  guint low = 0, high = array->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    if (g_array_index(array, double, middle) < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void msa_series_append(MsaSeries *series, const double *x, const double *y, gsize count) {
  g_return_if_fail(MSA_IS_SERIES(series));
  guint first = series->x->len, length = first;
  for (gsize i = 0; i < count; i++) {
    if (!isfinite(x[i]))
      continue;
    if (series->x->len && x[i] <= g_array_index(series->x, double, series->x->len - 1)) {
      guint at = lower_bound(series->x, x[i]);
      g_array_set_size(series->x, at);
      g_array_set_size(series->y, at);
      first = MIN(first, at);
    }
    g_array_append_val(series->x, x[i]);
    g_array_append_val(series->y, y[i]);
  }
  if (first < length || series->x->len > length)
    g_signal_emit(series, signals[CHANGED], 0, (guint64)first);
}
