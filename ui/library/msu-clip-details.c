#include "library/msu-clip-details.h"

#include <adwaita.h>
#include <glib/gi18n-lib.h>

#include "library/msu-export-view.h"
#include "player/msu-player.h"
#include "window/msu-format.h"

struct _MsuClipDetails {
  GtkWidget parent_instance;
  GtkWidget *stack, *player, *prompt, *star, *facts, *export_view;
  MsaClip *clip;
  int rows; /* of the facts */
};

G_DEFINE_FINAL_TYPE(MsuClipDetails, msu_clip_details, GTK_TYPE_WIDGET)

/* Takes the value; NULL or "" leaves the row out. */
static void add_fact(MsuClipDetails *self, const char *name, char *value) {
  g_autofree char *text = value;
  if (!text || !*text)
    return;
  GtkWidget *left = gtk_label_new(name), *right = gtk_label_new(text);
  gtk_label_set_xalign(GTK_LABEL(left), 0);
  gtk_label_set_yalign(GTK_LABEL(left), 0);
  gtk_widget_add_css_class(left, "dim-label");
  gtk_label_set_xalign(GTK_LABEL(right), 0);
  gtk_label_set_wrap(GTK_LABEL(right), TRUE);
  gtk_label_set_wrap_mode(GTK_LABEL(right), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_selectable(GTK_LABEL(right), TRUE);
  gtk_label_set_max_width_chars(GTK_LABEL(right), 20);
  gtk_widget_set_hexpand(right, TRUE);
  gtk_widget_add_css_class(right, "numeric");
  gtk_grid_attach(GTK_GRID(self->facts), left, 0, self->rows, 1, 1);
  gtk_grid_attach(GTK_GRID(self->facts), right, 1, self->rows++, 1, 1);
}

static void clear_facts(MsuClipDetails *self) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(self->facts)))
    gtk_grid_remove(GTK_GRID(self->facts), child);
  self->rows = 0;
}

static char *format_kind(const char *kind) {
  if (!g_strcmp0(kind, "partial"))
    return g_strdup(_("Stopped before its last step"));
  if (!g_strcmp0(kind, "sample"))
    return g_strdup(_("Sample of a training run"));
  if (!g_strcmp0(kind, "imported"))
    return g_strdup(_("Added from a file"));
  return NULL;
}

static char *format_created(MsaClip *clip) {
  g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(msa_clip_get_created(clip));
  if (!time || msa_clip_get_created(clip) <= 0)
    return NULL;
  g_autofree char *date = g_date_time_format(time, "%x, %H:%M");
  if (msa_clip_get_seconds(clip) <= 0)
    return g_steal_pointer(&date);
  g_autofree char *took = msu_format_seconds(msa_clip_get_seconds(clip));
  return g_strdup_printf(_("%s, took %s"), date, took);
}

static char *format_length(MsaClip *clip) {
  int frames = msa_clip_get_frames(clip);
  double fps = msa_clip_get_fps(clip);
  if (frames <= 0 || fps <= 0)
    return NULL;
  return g_strdup_printf(
      ngettext("%.2f s, %d frame at %g a second", "%.2f s, %d frames at %g a second", frames), frames / fps,
      frames, fps);
}

static void add_params(MsuClipDetails *self, const MsaGenerateParams *params) {
  add_fact(self, _("Avoid"), g_strdup(params->negative));
  if (params->seed >= 0)
    add_fact(self, _("Seed"), g_strdup_printf("%" G_GINT64_FORMAT, params->seed));
  if (params->steps > 0)
    add_fact(self, _("Steps"), g_strdup_printf("%d", params->steps));
  if (params->guidance >= 0)
    add_fact(self, _("Guidance"), g_strdup_printf("%g", params->guidance));
  if (params->shift > 0)
    add_fact(self, _("Shift"), g_strdup_printf("%g", params->shift));
  add_fact(self, _("Sampler"), g_strdup(params->sampler));
  add_fact(self, _("Attention"), g_strdup(params->attention));
  add_fact(self, _("Device"), g_strdup(params->device));
}

static void fill_facts(MsuClipDetails *self) {
  MsaClip *clip = self->clip;
  clear_facts(self);
  if (!clip)
    return;
  add_fact(self, _("Model"), g_strdup(msa_clip_get_model(clip)));
  if (msa_clip_get_width(clip) > 0)
    add_fact(self, _("Size"),
             g_strdup_printf(_("%d × %d"), msa_clip_get_width(clip), msa_clip_get_height(clip)));
  add_fact(self, _("Length"), format_length(clip));
  if (msa_clip_get_params(clip))
    add_params(self, msa_clip_get_params(clip));
  add_fact(self, _("Made"), format_created(clip));
  add_fact(self, _("Kind"), format_kind(msa_clip_get_kind(clip)));
  g_autofree char *name = g_filename_display_basename(msa_clip_get_path(clip));
  g_autofree char *bytes = msa_clip_get_bytes(clip) ? msu_format_bytes(msa_clip_get_bytes(clip)) : NULL;
  add_fact(self, _("File"),
           msa_clip_get_missing(clip) ? g_strdup_printf(_("%s, no longer there"), name)
           : bytes                    ? g_strdup_printf(_("%s, %s"), name, bytes)
                                      : g_strdup(name));
  add_fact(self, _("Folder"), g_path_get_dirname(msa_clip_get_path(clip)));
}

static void update_star(MsuClipDetails *self) {
  gboolean starred = self->clip && msa_clip_get_starred(self->clip);
  gtk_button_set_icon_name(GTK_BUTTON(self->star), starred ? "starred-symbolic" : "non-starred-symbolic");
}

static void export_closed_cb(MsuClipDetails *self) {
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "details");
}

static void dispose(GObject *object) {
  MsuClipDetails *self = MSU_CLIP_DETAILS(object);
  if (self->clip)
    g_signal_handlers_disconnect_by_data(self->clip, self);
  g_clear_object(&self->clip);
  g_clear_pointer(&self->stack, gtk_widget_unparent);
  G_OBJECT_CLASS(msu_clip_details_parent_class)->dispose(object);
}

static void msu_clip_details_class_init(MsuClipDetailsClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  g_type_ensure(MSU_TYPE_PLAYER);
  g_type_ensure(MSU_TYPE_EXPORT_VIEW);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/library/msu-clip-details.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, stack);
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, player);
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, prompt);
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, star);
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, facts);
  gtk_widget_class_bind_template_child(widget_class, MsuClipDetails, export_view);
  gtk_widget_class_bind_template_callback(widget_class, export_closed_cb);
}

static void msu_clip_details_init(MsuClipDetails *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_clip_details_new(void) {
  return g_object_new(MSU_TYPE_CLIP_DETAILS, NULL);
}

void msu_clip_details_set_clip(MsuClipDetails *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_CLIP_DETAILS(self));
  if (clip == self->clip)
    return;
  if (self->clip)
    g_signal_handlers_disconnect_by_data(self->clip, self);
  g_set_object(&self->clip, clip);
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "details");
  const char *prompt = clip ? msa_clip_get_prompt(clip) : NULL;
  g_autofree char *name = clip ? g_filename_display_basename(msa_clip_get_path(clip)) : g_strdup("");
  gtk_label_set_text(GTK_LABEL(self->prompt), prompt && *prompt ? prompt : name);
  msu_player_set_path(MSU_PLAYER(self->player), clip ? msa_clip_get_path(clip) : NULL);
  msu_player_set_playing(MSU_PLAYER(self->player), clip != NULL);
  update_star(self);
  fill_facts(self);
  if (clip) {
    g_signal_connect_object(clip, "notify::starred", G_CALLBACK(update_star), self, G_CONNECT_SWAPPED);
    g_signal_connect_object(clip, "notify::missing", G_CALLBACK(fill_facts), self, G_CONNECT_SWAPPED);
  }
}

void msu_clip_details_export(MsuClipDetails *self) {
  g_return_if_fail(MSU_IS_CLIP_DETAILS(self));
  if (!self->clip)
    return;
  msu_player_set_playing(MSU_PLAYER(self->player), FALSE);
  msu_export_view_set_clip(MSU_EXPORT_VIEW(self->export_view), self->clip);
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "export");
}
