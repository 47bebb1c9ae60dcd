#include "train/msu-sample-strip.h"
#include "plot/ticks.h"
#include "widgets/msu-moving-picture.h"

#include <glib/gi18n.h>

#define WIDTH 104
#define HEIGHT 92
#define GAP 4
#define LARGE 440

/* A sample and its button; buttons are made when they first come into sight, and pictures loaded then. */
struct item {
  gint64 step;
  char *path, *prompt;
  GtkWidget *button, *picture; /* NULL: not made yet */
  int left;
  gboolean seen;
};

struct _MsuSampleStrip {
  GtkWidget parent;
  MsuPlotAxis *axis;
  MsaRun *run;
  GPtrArray *items;   /* of struct item, by step */
  GtkWidget *popover; /* the enlarged one; NULL: none was wanted yet */
};

G_DEFINE_FINAL_TYPE(MsuSampleStrip, msu_sample_strip, GTK_TYPE_WIDGET)

static void item_free(gpointer data) {
  struct item *item = data;
  g_clear_pointer(&item->button, gtk_widget_unparent);
  g_free(item->path);
  g_free(item->prompt);
  g_free(item);
}

static struct item *item_of(MsuSampleStrip *self, GtkWidget *button) {
  for (guint i = 0; i < self->items->len; i++) {
    struct item *item = self->items->pdata[i];
    if (item->button == button)
      return item;
  }
  return NULL;
}

static char *item_name(const struct item *item) {
  char step[MSU_NUMBER_ROOM];
  msu_number_whole(step, item->step);
  return g_strdup_printf(_("Sample clip of step %s: %s"), step, item->prompt);
}

static void closed_cb(GtkPopover *popover, gpointer picture) {
  msu_moving_picture_set_playing(picture, FALSE);
}

static void clicked_cb(GtkButton *button, gpointer data) {
  MsuSampleStrip *self = data;
  struct item *item = item_of(self, GTK_WIDGET(button));
  if (!item)
    return;
  g_clear_pointer(&self->popover, gtk_widget_unparent);
  GtkWidget *popover = self->popover = gtk_popover_new(), *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
  GtkWidget *picture = msu_moving_picture_new();
  g_autofree char *name = item_name(item);
  GtkWidget *label = gtk_label_new(name);
  gtk_widget_set_size_request(picture, LARGE, LARGE * 5 / 8);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_max_width_chars(GTK_LABEL(label), 50);
  gtk_box_append(GTK_BOX(box), picture);
  gtk_box_append(GTK_BOX(box), label);
  gtk_popover_set_child(GTK_POPOVER(popover), box);
  gtk_widget_set_parent(popover, GTK_WIDGET(self));
  gtk_popover_set_pointing_to(GTK_POPOVER(popover), &(GdkRectangle){item->left, 0, WIDTH, HEIGHT});
  g_signal_connect(popover, "closed", G_CALLBACK(closed_cb), picture);
  msu_moving_picture_load(MSU_MOVING_PICTURE(picture), item->path, LARGE, 96);
  msu_moving_picture_set_playing(MSU_MOVING_PICTURE(picture), TRUE);
  gtk_popover_popup(GTK_POPOVER(popover));
}

static void enter_cb(GtkEventControllerMotion *motion, double x, double y, gpointer picture) {
  msu_moving_picture_set_playing(picture, TRUE);
}

static void leave_cb(GtkEventControllerMotion *motion, gpointer picture) {
  msu_moving_picture_set_playing(picture, FALSE);
}

static void make_button(MsuSampleStrip *self, struct item *item) {
  char step[MSU_NUMBER_ROOM];
  g_autofree char *name = item_name(item);
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2),
            *label = gtk_label_new(msu_number_whole(step, item->step));
  item->picture = msu_moving_picture_new();
  item->button = gtk_button_new();
  gtk_widget_set_vexpand(item->picture, TRUE);
  gtk_widget_add_css_class(label, "caption");
  gtk_widget_add_css_class(label, "numeric");
  gtk_widget_add_css_class(item->button, "flat");
  gtk_box_append(GTK_BOX(box), item->picture);
  gtk_box_append(GTK_BOX(box), label);
  gtk_button_set_child(GTK_BUTTON(item->button), box);
  gtk_widget_set_tooltip_text(item->button, name);
  gtk_accessible_update_property(GTK_ACCESSIBLE(item->button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  g_signal_connect(item->button, "clicked", G_CALLBACK(clicked_cb), self);
  GtkEventController *motion = gtk_event_controller_motion_new();
  g_signal_connect(motion, "enter", G_CALLBACK(enter_cb), item->picture);
  g_signal_connect(motion, "leave", G_CALLBACK(leave_cb), item->picture);
  gtk_widget_add_controller(item->button, motion);
  gtk_widget_set_parent(item->button, GTK_WIDGET(self));
  msu_moving_picture_set_playing(MSU_MOVING_PICTURE(item->picture), FALSE);
  msu_moving_picture_load(MSU_MOVING_PICTURE(item->picture), item->path, 160, 24);
}

/* From the newest to the oldest, so that the newest is always there. */
static void place_items(MsuSampleStrip *self, int width) {
  double from = msu_plot_axis_get_from(self->axis), to = msu_plot_axis_get_to(self->axis);
  double room = MAX(width - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1);
  int free_to = G_MAXINT;
  for (guint i = self->items->len; i > 0; i--) {
    struct item *item = self->items->pdata[i - 1];
    double step = (double)item->step, x = MSU_PLOT_LEFT + (step - from) / (to - from) * room;
    item->left = CLAMP((int)(x - WIDTH / 2.0), 0, MAX(0, width - WIDTH));
    item->seen = step >= from && step <= to && item->left + WIDTH + GAP <= free_to;
    if (item->seen)
      free_to = item->left;
  }
}

static void msu_sample_strip_size_allocate(GtkWidget *widget, int width, int height, int baseline) {
  MsuSampleStrip *self = MSU_SAMPLE_STRIP(widget);
  place_items(self, width);
  for (guint i = 0; i < self->items->len; i++) {
    struct item *item = self->items->pdata[i];
    int minimum;
    if (!item->button)
      continue;
    gtk_widget_set_child_visible(item->button, item->seen);
    gtk_widget_measure(item->button, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, NULL, NULL, NULL);
    if (item->seen)
      gtk_widget_size_allocate(item->button, &(GtkAllocation){item->left, 0, MAX(WIDTH, minimum), height},
                               -1);
  }
  if (self->popover)
    gtk_popover_present(GTK_POPOVER(self->popover));
}

/* Apart from the allocation, which must not add children. */
static void make_buttons(MsuSampleStrip *self) {
  int width = gtk_widget_get_width(GTK_WIDGET(self));
  place_items(self, width > 0 ? width : 800);
  for (guint i = 0; i < self->items->len; i++) {
    struct item *item = self->items->pdata[i];
    if (item->seen && !item->button)
      make_button(self, item);
  }
  gtk_widget_queue_allocate(GTK_WIDGET(self));
}

static void samples_changed_cb(MsuSampleStrip *self) {
  GPtrArray *samples = self->run ? msa_run_get_samples(self->run) : NULL;
  g_autoptr(GPtrArray) old = g_steal_pointer(&self->items);
  self->items = g_ptr_array_new_with_free_func(item_free);
  for (guint i = 0; samples && i < samples->len; i++) {
    const MsaSample *sample = samples->pdata[i];
    struct item *item = NULL;
    for (guint k = 0; k < old->len && !item; k++) {
      struct item *one = old->pdata[k];
      if (one->step == sample->step && g_strcmp0(one->path, sample->path) == 0)
        item = g_ptr_array_steal_index(old, k);
    }
    if (!item) {
      item = g_new0(struct item, 1);
      *item = (struct item){
          .step = sample->step, .path = g_strdup(sample->path), .prompt = g_strdup(sample->prompt)};
    }
    g_ptr_array_add(self->items, item);
  }
  gtk_widget_set_visible(GTK_WIDGET(self), self->items->len > 0);
  make_buttons(self);
}

void msu_sample_strip_set_run(MsuSampleStrip *self, MsaRun *run) {
  g_return_if_fail(MSU_IS_SAMPLE_STRIP(self));
  if (run == self->run)
    return;
  if (self->run)
    g_signal_handlers_disconnect_by_data(self->run, self);
  g_set_object(&self->run, run);
  g_ptr_array_set_size(self->items, 0);
  if (run)
    g_signal_connect_object(run, "samples-changed", G_CALLBACK(samples_changed_cb), self, G_CONNECT_SWAPPED);
  samples_changed_cb(self);
}

static void msu_sample_strip_measure(GtkWidget *widget, GtkOrientation orientation, int for_size,
                                     int *minimum, int *natural, int *minimum_baseline,
                                     int *natural_baseline) {
  *minimum = *natural = orientation == GTK_ORIENTATION_HORIZONTAL ? WIDTH : HEIGHT;
}

static void msu_sample_strip_dispose(GObject *object) {
  MsuSampleStrip *self = MSU_SAMPLE_STRIP(object);
  g_clear_pointer(&self->popover, gtk_widget_unparent);
  g_ptr_array_set_size(self->items, 0);
  g_clear_object(&self->run);
  g_clear_object(&self->axis);
  G_OBJECT_CLASS(msu_sample_strip_parent_class)->dispose(object);
}

static void msu_sample_strip_finalize(GObject *object) {
  g_ptr_array_unref(MSU_SAMPLE_STRIP(object)->items);
  G_OBJECT_CLASS(msu_sample_strip_parent_class)->finalize(object);
}

static void msu_sample_strip_class_init(MsuSampleStripClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->dispose = msu_sample_strip_dispose;
  object_class->finalize = msu_sample_strip_finalize;
  GTK_WIDGET_CLASS(klass)->measure = msu_sample_strip_measure;
  GTK_WIDGET_CLASS(klass)->size_allocate = msu_sample_strip_size_allocate;
  gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(klass), "samplestrip");
  gtk_widget_class_set_accessible_role(GTK_WIDGET_CLASS(klass), GTK_ACCESSIBLE_ROLE_GROUP);
}

static void msu_sample_strip_init(MsuSampleStrip *self) {
  self->items = g_ptr_array_new_with_free_func(item_free);
  gtk_widget_set_overflow(GTK_WIDGET(self), GTK_OVERFLOW_HIDDEN);
  gtk_widget_set_visible(GTK_WIDGET(self), FALSE);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Sample clips"), -1);
}

GtkWidget *msu_sample_strip_new(MsuPlotAxis *axis) {
  MsuSampleStrip *self = g_object_new(MSU_TYPE_SAMPLE_STRIP, NULL);
  self->axis = g_object_ref(axis);
  g_signal_connect_object(axis, "notify::from", G_CALLBACK(make_buttons), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(axis, "notify::to", G_CALLBACK(make_buttons), self, G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}
