#include "train/msu-dataset-table.h"
#include "plot/ticks.h"
#include "train/msu-caption-entry.h"
#include "widgets/msu-moving-picture.h"
#include "window/msu-message.h"

#include <glib/gi18n.h>

struct _MsuDatasetTable {
  GtkWidget parent;
  GtkLabel *folder_label, *summary;
  GtkSpinner *spinner;
  GtkBox *messages;
  GtkColumnView *view;
  GtkColumnViewColumn *picture_column, *name_column, *size_column, *frames_column, *fps_column,
      *caption_column;
  GListStore *rows; /* of MsaDatasetClip */
  char *folder;
  GCancellable *checking; /* NULL: not now */
};

G_DEFINE_FINAL_TYPE(MsuDatasetTable, msu_dataset_table, GTK_TYPE_WIDGET)

enum { CHANGED, CHOOSE, SIGNALS };
static guint signals[SIGNALS];

static guint count(MsuDatasetTable *self, gboolean usable) {
  guint n = 0;
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(self->rows)); i++) {
    g_autoptr(MsaDatasetClip) clip = g_list_model_get_item(G_LIST_MODEL(self->rows), i);
    n += !msa_dataset_clip_get_usable(clip) == !usable;
  }
  return n;
}

static void summarise(MsuDatasetTable *self) {
  guint all = g_list_model_get_n_items(G_LIST_MODEL(self->rows)), bad = count(self, FALSE);
  char number[MSU_NUMBER_ROOM];
  g_autofree char *clips =
      g_strdup_printf(ngettext("%s clip", "%s clips", all), msu_number_whole(number, all));
  g_autofree char *text = NULL;
  if (bad)
    text = g_strdup_printf(ngettext("%s, %s cannot be used", "%s, %s cannot be used", bad), clips,
                           msu_number_whole(number, bad));
  else if (self->checking)
    text = g_strdup_printf(_("%s so far, looking at each"), clips);
  else
    text = g_strdup(clips);
  gtk_label_set_text(self->summary, text);
  gtk_spinner_set_spinning(self->spinner, self->checking != NULL);
  gtk_widget_set_visible(GTK_WIDGET(self->spinner), self->checking != NULL);
  g_signal_emit(self, signals[CHANGED], 0);
}

static void usable_cb(MsuDatasetTable *self) {
  summarise(self);
}

static void rows_changed_cb(MsuDatasetTable *self, guint position, guint removed, guint added) {
  for (guint i = position; i < position + added; i++) {
    g_autoptr(MsaDatasetClip) clip = g_list_model_get_item(G_LIST_MODEL(self->rows), i);
    g_signal_connect_object(clip, "notify::usable", G_CALLBACK(usable_cb), self, G_CONNECT_SWAPPED);
  }
  summarise(self);
}

static void clear_messages(MsuDatasetTable *self) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->messages))))
    gtk_box_remove(self->messages, child);
}

static void tell(MsuDatasetTable *self, const char *text) {
  clear_messages(self);
  gtk_box_append(self->messages, msu_message_new(MSU_MESSAGE_WARNING, text));
}

struct check {
  MsuDatasetTable *table; /* reference */
  GCancellable *cancellable;
};

static void checked_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct check *check = data;
  MsuDatasetTable *self = check->table;
  g_autoptr(GError) error = NULL;
  gboolean good = msa_dataset_check_finish(result, &error);
  /* a newer check has taken its place */
  if (check->cancellable == self->checking) {
    g_clear_object(&self->checking);
    if (!good)
      tell(self, error->message);
    summarise(self);
  }
  g_object_unref(check->cancellable);
  g_object_unref(check->table);
  g_free(check);
}

void msu_dataset_table_check(MsuDatasetTable *self, const char *folder, const char *missing_caption) {
  g_return_if_fail(MSU_IS_DATASET_TABLE(self));
  char *copy = g_strdup(folder);
  if (self->checking)
    g_cancellable_cancel(self->checking);
  g_clear_object(&self->checking);
  g_free(self->folder);
  self->folder = copy;
  clear_messages(self);
  /* rows of an older check that are still on their way go to the older list */
  if (self->rows)
    g_signal_handlers_disconnect_by_data(self->rows, self);
  g_clear_object(&self->rows);
  self->rows = g_list_store_new(MSA_TYPE_DATASET_CLIP);
  g_signal_connect_object(self->rows, "items-changed", G_CALLBACK(rows_changed_cb), self, G_CONNECT_SWAPPED);
  g_autoptr(GtkNoSelection) selection = gtk_no_selection_new(G_LIST_MODEL(g_object_ref(self->rows)));
  gtk_column_view_set_model(self->view, GTK_SELECTION_MODEL(selection));
  g_autofree char *name = folder ? g_filename_display_name(folder) : NULL;
  g_autofree char *base = name ? g_path_get_basename(name) : NULL;
  gtk_label_set_text(self->folder_label, base ? base : "");
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->folder_label), name);
  if (folder) {
    struct check *check = g_new0(struct check, 1);
    check->table = g_object_ref(self);
    self->checking = g_cancellable_new();
    check->cancellable = g_object_ref(self->checking);
    msa_dataset_check_async(self->folder, missing_caption, self->rows, self->checking, checked_cb, check);
  }
  summarise(self);
}

const char *msu_dataset_table_get_folder(MsuDatasetTable *table) {
  g_return_val_if_fail(MSU_IS_DATASET_TABLE(table), NULL);
  return table->folder;
}

gboolean msu_dataset_table_is_checking(MsuDatasetTable *table) {
  g_return_val_if_fail(MSU_IS_DATASET_TABLE(table), FALSE);
  return table->checking != NULL;
}

guint msu_dataset_table_count_usable(MsuDatasetTable *table) {
  g_return_val_if_fail(MSU_IS_DATASET_TABLE(table), 0);
  return count(table, TRUE);
}

guint msu_dataset_table_count_uncaptioned(MsuDatasetTable *table) {
  guint n = 0;
  g_return_val_if_fail(MSU_IS_DATASET_TABLE(table), 0);
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(table->rows)); i++) {
    g_autoptr(MsaDatasetClip) clip = g_list_model_get_item(G_LIST_MODEL(table->rows), i);
    n += msa_dataset_clip_get_frames(clip) > 0 && !*msa_dataset_clip_get_caption(clip);
  }
  return n;
}

double msu_dataset_table_shortest_seconds(MsuDatasetTable *table) {
  double shortest = 0;
  g_return_val_if_fail(MSU_IS_DATASET_TABLE(table), 0);
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(table->rows)); i++) {
    g_autoptr(MsaDatasetClip) clip = g_list_model_get_item(G_LIST_MODEL(table->rows), i);
    double fps = msa_dataset_clip_get_fps(clip);
    double seconds = fps > 0 ? (double)msa_dataset_clip_get_frames(clip) / fps : 0;
    if (msa_dataset_clip_get_usable(clip) && seconds > 0 && (shortest == 0 || seconds < shortest))
      shortest = seconds;
  }
  return shortest;
}

/* Cells. */

static void enter_cb(GtkEventControllerMotion *motion, double x, double y, gpointer picture) {
  msu_moving_picture_set_playing(picture, TRUE);
}

static void leave_cb(GtkEventControllerMotion *motion, gpointer picture) {
  msu_moving_picture_set_playing(picture, FALSE);
}

static void picture_setup_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  GtkWidget *picture = msu_moving_picture_new();
  GtkEventController *motion = gtk_event_controller_motion_new();
  gtk_widget_set_size_request(picture, 76, 48);
  gtk_widget_add_css_class(picture, "thumbnail");
  gtk_widget_set_overflow(picture, GTK_OVERFLOW_HIDDEN);
  msu_moving_picture_set_playing(MSU_MOVING_PICTURE(picture), FALSE);
  g_signal_connect(motion, "enter", G_CALLBACK(enter_cb), picture);
  g_signal_connect(motion, "leave", G_CALLBACK(leave_cb), picture);
  gtk_widget_add_controller(picture, motion);
  gtk_list_item_set_child(item, picture);
}

static void picture_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  MsaDatasetClip *clip = gtk_list_item_get_item(item);
  /* no frames: the file is no video */
  msu_moving_picture_load(MSU_MOVING_PICTURE(gtk_list_item_get_child(item)),
                          msa_dataset_clip_get_frames(clip) > 0 ? msa_dataset_clip_get_path(clip) : NULL, 96,
                          16);
}

static void picture_unbind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  msu_moving_picture_load(MSU_MOVING_PICTURE(gtk_list_item_get_child(item)), NULL, 96, 16);
}

static void name_update(GtkListItem *item) {
  MsaDatasetClip *clip = gtk_list_item_get_item(item);
  GtkWidget *name = gtk_widget_get_first_child(gtk_list_item_get_child(item)),
            *reason = gtk_widget_get_next_sibling(name);
  if (!clip)
    return;
  gtk_label_set_text(GTK_LABEL(name), msa_dataset_clip_get_name(clip));
  gtk_widget_set_tooltip_text(name, msa_dataset_clip_get_name(clip));
  gboolean usable = msa_dataset_clip_get_usable(clip);
  g_autofree char *why =
      usable ? NULL : g_strdup_printf(_("Cannot be used: %s"), msa_dataset_clip_get_reason(clip));
  gtk_label_set_text(GTK_LABEL(reason), why ? why : "");
  gtk_widget_set_tooltip_text(reason, why);
  gtk_widget_set_visible(reason, !usable);
}

static GtkWidget *new_label(float xalign, const char *class) {
  GtkWidget *label = gtk_label_new(NULL);
  gtk_label_set_xalign(GTK_LABEL(label), xalign);
  if (class)
    gtk_widget_add_css_class(label, class);
  return label;
}

static void name_setup_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2), *name = new_label(0, NULL),
            *reason = new_label(0, "unusable");
  gtk_label_set_ellipsize(GTK_LABEL(name), PANGO_ELLIPSIZE_MIDDLE);
  gtk_label_set_width_chars(GTK_LABEL(name), 10);
  gtk_label_set_max_width_chars(GTK_LABEL(name), 20);
  gtk_widget_add_css_class(reason, "caption");
  gtk_label_set_wrap(GTK_LABEL(reason), TRUE);
  gtk_label_set_lines(GTK_LABEL(reason), 3);
  gtk_label_set_ellipsize(GTK_LABEL(reason), PANGO_ELLIPSIZE_END);
  gtk_label_set_width_chars(GTK_LABEL(reason), 10);
  gtk_label_set_max_width_chars(GTK_LABEL(reason), 24);
  gtk_widget_set_valign(box, GTK_ALIGN_CENTER);
  gtk_box_append(GTK_BOX(box), name);
  gtk_box_append(GTK_BOX(box), reason);
  gtk_list_item_set_child(item, box);
}

static void name_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  g_signal_connect_object(gtk_list_item_get_item(item), "notify::reason", G_CALLBACK(name_update), item,
                          G_CONNECT_SWAPPED);
  g_signal_connect_object(gtk_list_item_get_item(item), "notify::usable", G_CALLBACK(name_update), item,
                          G_CONNECT_SWAPPED);
  name_update(item);
}

static void name_unbind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  g_signal_handlers_disconnect_by_func(gtk_list_item_get_item(item), name_update, item);
}

static void number_setup_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  gtk_list_item_set_child(item, new_label(0, "numeric"));
}

static void size_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  MsaDatasetClip *clip = gtk_list_item_get_item(item);
  g_autofree char *text =
      msa_dataset_clip_get_width(clip) > 0
          ? g_strdup_printf("%d × %d", msa_dataset_clip_get_width(clip), msa_dataset_clip_get_height(clip))
          : g_strdup("–");
  gtk_label_set_text(GTK_LABEL(gtk_list_item_get_child(item)), text);
}

static void frames_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  char number[MSU_NUMBER_ROOM];
  gint64 frames = msa_dataset_clip_get_frames(gtk_list_item_get_item(item));
  gtk_label_set_text(GTK_LABEL(gtk_list_item_get_child(item)),
                     frames > 0 ? msu_number_whole(number, frames) : "–");
}

static void fps_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  double fps = msa_dataset_clip_get_fps(gtk_list_item_get_item(item));
  g_autofree char *text = fps > 0 ? g_strdup_printf("%.4g", fps) : g_strdup("–");
  gtk_label_set_text(GTK_LABEL(gtk_list_item_get_child(item)), text);
}

static void caption_failed_cb(MsuDatasetTable *self, const char *why) {
  tell(self, why);
}

static void caption_setup_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  GtkWidget *entry = msu_caption_entry_new();
  g_signal_connect_object(entry, "failed", G_CALLBACK(caption_failed_cb), data, G_CONNECT_SWAPPED);
  gtk_list_item_set_child(item, entry);
}

static void caption_bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  msu_caption_entry_set_clip(MSU_CAPTION_ENTRY(gtk_list_item_get_child(item)), gtk_list_item_get_item(item));
}

static void caption_unbind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  msu_caption_entry_set_clip(MSU_CAPTION_ENTRY(gtk_list_item_get_child(item)), NULL);
}

static void set_factory(MsuDatasetTable *self, GtkColumnViewColumn *column, gpointer setup, gpointer bind,
                        gpointer unbind) {
  g_autoptr(GtkListItemFactory) factory = gtk_signal_list_item_factory_new();
  g_signal_connect_object(factory, "setup", setup, self, 0);
  g_signal_connect_object(factory, "bind", bind, self, 0);
  if (unbind)
    g_signal_connect_object(factory, "unbind", unbind, self, 0);
  gtk_column_view_column_set_factory(column, factory);
}

static void choose_cb(MsuDatasetTable *self) {
  g_signal_emit(self, signals[CHOOSE], 0);
}

static void msu_dataset_table_dispose(GObject *object) {
  MsuDatasetTable *self = MSU_DATASET_TABLE(object);
  GtkWidget *child;
  if (self->checking)
    g_cancellable_cancel(self->checking);
  g_clear_object(&self->checking);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_object(&self->rows);
  g_clear_pointer(&self->folder, g_free);
  G_OBJECT_CLASS(msu_dataset_table_parent_class)->dispose(object);
}

static void msu_dataset_table_class_init(MsuDatasetTableClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_dataset_table_dispose;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_DATASET_TABLE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[CHOOSE] =
      g_signal_new("choose", MSU_TYPE_DATASET_TABLE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/train/msu-dataset-table.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, folder_label);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, summary);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, spinner);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, view);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, picture_column);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, name_column);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, size_column);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, frames_column);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, fps_column);
  gtk_widget_class_bind_template_child(widget_class, MsuDatasetTable, caption_column);
  gtk_widget_class_bind_template_callback(widget_class, choose_cb);
}

static void msu_dataset_table_init(MsuDatasetTable *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  set_factory(self, self->picture_column, picture_setup_cb, picture_bind_cb, picture_unbind_cb);
  set_factory(self, self->name_column, name_setup_cb, name_bind_cb, name_unbind_cb);
  set_factory(self, self->size_column, number_setup_cb, size_bind_cb, NULL);
  set_factory(self, self->frames_column, number_setup_cb, frames_bind_cb, NULL);
  set_factory(self, self->fps_column, number_setup_cb, fps_bind_cb, NULL);
  set_factory(self, self->caption_column, caption_setup_cb, caption_bind_cb, caption_unbind_cb);
  msu_dataset_table_check(self, NULL, NULL);
}

GtkWidget *msu_dataset_table_new(void) {
  return g_object_new(MSU_TYPE_DATASET_TABLE, NULL);
}
