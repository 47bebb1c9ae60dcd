#include "library/msu-clip-cell.h"

#include <glib/gi18n-lib.h>

#include "widgets/msu-moving-picture.h"

/* Of the thumbnails in pixels, and frames of one that moves. */
#define SIDE 256
#define MOST 24

struct _MsuClipCell {
  GtkWidget parent_instance;
  GtkWidget *box, *picture, *missing, *badge, *star, *prompt;
  MsaClip *clip;
  GtkEventController *motion;
  gboolean pointed, focused, moves;
  gboolean updating; /* the star is set from the clip, not by the person */
};

enum { STAR, SIGNALS };
static guint signals[SIGNALS];

G_DEFINE_FINAL_TYPE(MsuClipCell, msu_clip_cell, GTK_TYPE_WIDGET)

static void load(MsuClipCell *self, int most) {
  gboolean there = self->clip && !msa_clip_get_missing(self->clip);
  msu_moving_picture_load(MSU_MOVING_PICTURE(self->picture), there ? msa_clip_get_path(self->clip) : NULL,
                          SIDE, most);
}

static void update_motion(MsuClipCell *self) {
  gboolean moves = self->clip && (self->pointed || self->focused);
  if (moves == self->moves)
    return;
  self->moves = moves;
  if (moves)
    load(self, MOST);
  msu_moving_picture_set_playing(MSU_MOVING_PICTURE(self->picture), moves);
}

static const char *badge_of(MsaClip *clip) {
  const char *kind = msa_clip_get_kind(clip);
  if (!g_strcmp0(kind, "partial"))
    return _("Stopped early");
  if (!g_strcmp0(kind, "sample"))
    return _("Training sample");
  if (!g_strcmp0(kind, "imported"))
    return _("Added");
  return NULL;
}

static void update_star(MsuClipCell *self) {
  gboolean starred = self->clip && msa_clip_get_starred(self->clip);
  self->updating = TRUE;
  gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(self->star), starred);
  self->updating = FALSE;
  gtk_button_set_icon_name(GTK_BUTTON(self->star), starred ? "starred-symbolic" : "non-starred-symbolic");
  if (starred)
    gtk_widget_add_css_class(self->star, "starred");
  else
    gtk_widget_remove_css_class(self->star, "starred");
}

static void update_missing(MsuClipCell *self) {
  gtk_widget_set_visible(self->missing, self->clip && msa_clip_get_missing(self->clip));
  load(self, self->moves ? MOST : 1);
}

static void toggled_cb(MsuClipCell *self) {
  if (!self->updating)
    g_signal_emit(self, signals[STAR], 0, gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->star)));
}

static void pointer_cb(MsuClipCell *self) {
  self->pointed = gtk_event_controller_motion_contains_pointer(GTK_EVENT_CONTROLLER_MOTION(self->motion));
  update_motion(self);
}

static void focus_cb(GtkWidget *item, GParamSpec *spec, MsuClipCell *self) {
  self->focused = gtk_widget_has_visible_focus(item);
  update_motion(self);
}

/* The keyboard's focus is on the list's own widget around the cell. */
static void root(GtkWidget *widget) {
  GTK_WIDGET_CLASS(msu_clip_cell_parent_class)->root(widget);
  GtkWidget *item = gtk_widget_get_parent(widget);
  g_signal_connect_object(item, "notify::has-focus", G_CALLBACK(focus_cb), widget, 0);
}

static void unroot(GtkWidget *widget) {
  GtkWidget *item = gtk_widget_get_parent(widget);
  if (item)
    g_signal_handlers_disconnect_by_func(item, focus_cb, widget);
  GTK_WIDGET_CLASS(msu_clip_cell_parent_class)->unroot(widget);
}

static void dispose(GObject *object) {
  MsuClipCell *self = MSU_CLIP_CELL(object);
  if (self->box)
    msu_clip_cell_bind(self, NULL);
  g_clear_pointer(&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS(msu_clip_cell_parent_class)->dispose(object);
}

static void msu_clip_cell_class_init(MsuClipCellClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  widget_class->root = root;
  widget_class->unroot = unroot;
  signals[STAR] = g_signal_new("star", MSU_TYPE_CLIP_CELL, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 1, G_TYPE_BOOLEAN);
  g_type_ensure(MSU_TYPE_MOVING_PICTURE);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/library/msu-clip-cell.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, box);
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, picture);
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, missing);
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, badge);
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, star);
  gtk_widget_class_bind_template_child(widget_class, MsuClipCell, prompt);
  gtk_widget_class_bind_template_callback(widget_class, toggled_cb);
}

static void msu_clip_cell_init(MsuClipCell *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  self->motion = gtk_event_controller_motion_new();
  g_signal_connect_swapped(self->motion, "notify::contains-pointer", G_CALLBACK(pointer_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), self->motion);
}

GtkWidget *msu_clip_cell_new(void) {
  return g_object_new(MSU_TYPE_CLIP_CELL, NULL);
}

void msu_clip_cell_bind(MsuClipCell *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_CLIP_CELL(self));
  if (self->clip)
    g_signal_handlers_disconnect_by_data(self->clip, self);
  g_set_object(&self->clip, clip);
  if (self->moves) {
    self->moves = FALSE;
    msu_moving_picture_set_playing(MSU_MOVING_PICTURE(self->picture), FALSE);
  }
  update_star(self);
  update_missing(self);
  const char *badge = clip ? badge_of(clip) : NULL;
  gtk_label_set_text(GTK_LABEL(self->badge), badge ? badge : "");
  gtk_widget_set_visible(self->badge, badge != NULL);
  if (!clip) {
    gtk_label_set_text(GTK_LABEL(self->prompt), "");
    return;
  }
  const char *prompt = msa_clip_get_prompt(clip);
  g_autofree char *name = g_filename_display_basename(msa_clip_get_path(clip));
  const char *title = prompt && *prompt ? prompt : name;
  gtk_label_set_text(GTK_LABEL(self->prompt), title);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->picture), GTK_ACCESSIBLE_PROPERTY_LABEL, title, -1);
  GtkWidget *item = gtk_widget_get_parent(GTK_WIDGET(self));
  if (item)
    gtk_accessible_update_property(GTK_ACCESSIBLE(item), GTK_ACCESSIBLE_PROPERTY_LABEL, title, -1);
  g_signal_connect_object(clip, "notify::starred", G_CALLBACK(update_star), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(clip, "notify::missing", G_CALLBACK(update_missing), self, G_CONNECT_SWAPPED);
}

MsaClip *msu_clip_cell_get_clip(MsuClipCell *self) {
  g_return_val_if_fail(MSU_IS_CLIP_CELL(self), NULL);
  return self->clip;
}
