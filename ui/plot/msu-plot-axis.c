#include "plot/msu-plot-private.h"

#include <math.h>

struct _MsuPlotAxis {
  GObject parent;
  GHashTable *extents; /* plot -> struct extent, owned; what each plot has to show */
  double low, high;    /* all of them together */
  double from, to, cross;
  gboolean whole; /* all is seen, and stays so as points come */
  gboolean follow;
};

struct extent {
  double low, high;
};

G_DEFINE_FINAL_TYPE(MsuPlotAxis, msu_plot_axis, G_TYPE_OBJECT)

enum { PROP_FROM = 1, PROP_TO, PROP_CROSS, PROP_FOLLOW, PROPERTIES };
static GParamSpec *properties[PROPERTIES];
enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

/* Steps are whole numbers; less than this on the whole width shows nothing more. */
#define LEAST_SPAN 4.0

static void set_view(MsuPlotAxis *self, double from, double to) {
  if (from == self->from && to == self->to)
    return;
  gboolean from_changed = from != self->from, to_changed = to != self->to;
  self->from = from;
  self->to = to;
  if (from_changed)
    g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_FROM]);
  if (to_changed)
    g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_TO]);
  g_signal_emit(self, signals[CHANGED], 0);
}

static void set_follow(MsuPlotAxis *self, gboolean follow) {
  if (self->follow == follow)
    return;
  self->follow = follow;
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_FOLLOW]);
}

static double whole_end(MsuPlotAxis *self) {
  return fmax(self->high, self->low + LEAST_SPAN);
}

static void show_whole(MsuPlotAxis *self) {
  self->whole = TRUE;
  set_follow(self, TRUE);
  set_view(self, self->low, whole_end(self));
}

void msu_plot_axis_look_at(MsuPlotAxis *self, double from, double to) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(self));
  double low = self->low, high = whole_end(self), span = to - from;
  if (!isfinite(from) || !isfinite(to) || span <= 0)
    return;
  if (span >= high - low) {
    show_whole(self);
    return;
  }
  if (span < LEAST_SPAN) {
    from -= (LEAST_SPAN - span) / 2;
    span = LEAST_SPAN;
  }
  from = CLAMP(from, low, high - span);
  self->whole = FALSE;
  set_follow(self, from + span >= high - 1e-9 * (high - low));
  set_view(self, from, from + span);
}

void msu_plot_axis_zoom(MsuPlotAxis *self, double at, double factor) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(self));
  if (self->whole && factor >= 1)
    return;
  msu_plot_axis_look_at(self, at - (at - self->from) * factor, at + (self->to - at) * factor);
}

void msu_plot_axis_pan(MsuPlotAxis *self, double steps) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(self));
  if (!self->whole)
    msu_plot_axis_look_at(self, self->from + steps, self->to + steps);
}

gboolean msu_plot_axis_is_whole(MsuPlotAxis *self) {
  return self->whole;
}

void msu_plot_axis_set_cross(MsuPlotAxis *self, double cross) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(self));
  if (cross == self->cross || (isnan(cross) && isnan(self->cross)))
    return;
  self->cross = cross;
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_CROSS]);
  g_signal_emit(self, signals[CHANGED], 0);
}

double msu_plot_axis_get_from(MsuPlotAxis *self) {
  return self->from;
}

double msu_plot_axis_get_to(MsuPlotAxis *self) {
  return self->to;
}

double msu_plot_axis_get_cross(MsuPlotAxis *self) {
  return self->cross;
}

void msu_plot_axis_set_extent(MsuPlotAxis *self, gpointer plot, double low, double high) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(self));
  if (low <= high) {
    struct extent *extent = g_hash_table_lookup(self->extents, plot);
    if (extent && extent->low == low && extent->high == high)
      return;
    if (!extent) {
      extent = g_new(struct extent, 1);
      g_hash_table_insert(self->extents, plot, extent);
    }
    *extent = (struct extent){low, high};
  } else if (!g_hash_table_remove(self->extents, plot)) {
    return;
  }
  double before = whole_end(self);
  self->low = INFINITY;
  self->high = -INFINITY;
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init(&iter, self->extents);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    const struct extent *extent = value;
    self->low = fmin(self->low, extent->low);
    self->high = fmax(self->high, extent->high);
  }
  if (!(self->low <= self->high))
    self->low = self->high = 0;
  if (self->whole) {
    show_whole(self);
  } else {
    double shift = self->follow ? whole_end(self) - before : 0;
    msu_plot_axis_look_at(self, self->from + shift, self->to + shift);
  }
}

static void msu_plot_axis_get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
  MsuPlotAxis *self = MSU_PLOT_AXIS(object);
  switch (id) {
  case PROP_FROM:
    g_value_set_double(value, self->from);
    break;
  case PROP_TO:
    g_value_set_double(value, self->to);
    break;
  case PROP_CROSS:
    g_value_set_double(value, self->cross);
    break;
  case PROP_FOLLOW:
    g_value_set_boolean(value, self->follow);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
  }
}

static void msu_plot_axis_finalize(GObject *object) {
  g_hash_table_unref(MSU_PLOT_AXIS(object)->extents);
  G_OBJECT_CLASS(msu_plot_axis_parent_class)->finalize(object);
}

static void msu_plot_axis_class_init(MsuPlotAxisClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->get_property = msu_plot_axis_get_property;
  object_class->finalize = msu_plot_axis_finalize;
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  properties[PROP_FROM] = g_param_spec_double("from", NULL, NULL, -G_MAXDOUBLE, G_MAXDOUBLE, 0, flags);
  properties[PROP_TO] = g_param_spec_double("to", NULL, NULL, -G_MAXDOUBLE, G_MAXDOUBLE, LEAST_SPAN, flags);
  properties[PROP_CROSS] = g_param_spec_double("cross", NULL, NULL, -G_MAXDOUBLE, G_MAXDOUBLE, 0, flags);
  properties[PROP_FOLLOW] = g_param_spec_boolean("follow", NULL, NULL, TRUE, flags);
  g_object_class_install_properties(object_class, PROPERTIES, properties);
  /* once for each change of what is seen or of the crosshair */
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_PLOT_AXIS, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_plot_axis_init(MsuPlotAxis *self) {
  self->extents = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  self->to = LEAST_SPAN;
  self->cross = NAN;
  self->whole = self->follow = TRUE;
}

MsuPlotAxis *msu_plot_axis_new(void) {
  return g_object_new(MSU_TYPE_PLOT_AXIS, NULL);
}

void msu_plot_axis_reset(MsuPlotAxis *axis) {
  g_return_if_fail(MSU_IS_PLOT_AXIS(axis));
  show_whole(axis);
}
