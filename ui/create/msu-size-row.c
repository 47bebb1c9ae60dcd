#include "create/msu-size-row.h"
#include <glib/gi18n.h>

#define SMALLEST 64
#define LARGEST 8192

struct size {
  int width, height;
};

static const struct size common[] = {{192, 128}, {256, 256}, {320, 192}, {512, 288},
                                     {640, 384}, {832, 480}, {1280, 720}};

struct _MsuSizeRow {
  AdwComboRow parent_instance;
  GtkStringList *names; /* the last one is "Custom" */
  GArray *sizes;        /* of struct size, one fewer than names */
  GtkWidget *entry;
  gboolean filling; /* changes come from us */
};

enum { CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuSizeRow, msu_size_row, ADW_TYPE_COMBO_ROW)

/* "320x192", "320 × 192", "320*192". */
static gboolean parse_size(const char *text, struct size *size) {
  char *end;
  const guint64 width = g_ascii_strtoull(text, &end, 10);
  while (g_ascii_isspace(*end))
    end++;
  const gunichar by = g_utf8_get_char_validated(end, -1);
  if (end == text || (by != 'x' && by != 'X' && by != '*' && by != 0xd7))
    return FALSE;
  const char *rest = g_utf8_next_char(end);
  const guint64 height = g_ascii_strtoull(rest, &end, 10);
  while (g_ascii_isspace(*end))
    end++;
  if (end == rest || *end || width > LARGEST || height > LARGEST)
    return FALSE;
  *size = (struct size){(int)width, (int)height};
  return TRUE;
}

static gboolean size_is_good(struct size size) {
  return size.width >= SMALLEST && size.height >= SMALLEST && size.width % 2 == 0 && size.height % 2 == 0;
}

static gboolean is_custom(MsuSizeRow *self) {
  return adw_combo_row_get_selected(ADW_COMBO_ROW(self)) >= self->sizes->len;
}

gboolean msu_size_row_get_size(MsuSizeRow *self, int *width, int *height) {
  struct size size;
  g_return_val_if_fail(MSU_IS_SIZE_ROW(self), FALSE);
  if (!is_custom(self))
    size = g_array_index(self->sizes, struct size, adw_combo_row_get_selected(ADW_COMBO_ROW(self)));
  else if (!parse_size(gtk_editable_get_text(GTK_EDITABLE(self->entry)), &size) || !size_is_good(size))
    return FALSE;
  *width = size.width;
  *height = size.height;
  return TRUE;
}

static void update(MsuSizeRow *self) {
  int width, height;
  const gboolean custom = is_custom(self);
  const gboolean good = msu_size_row_get_size(self, &width, &height);
  gtk_widget_set_visible(self->entry, custom);
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self->entry),
                                good ? _("Width × height") : _("Even numbers from 64, as 320x192"));
  if (good)
    gtk_widget_remove_css_class(self->entry, "error");
  else
    gtk_widget_add_css_class(self->entry, "error");
  if (!self->filling)
    g_signal_emit(self, signals[CHANGED], 0);
}

static void add_size(MsuSizeRow *self, struct size size) {
  for (guint i = 0; i < self->sizes->len; i++) {
    const struct size *have = &g_array_index(self->sizes, struct size, i);
    if (have->width == size.width && have->height == size.height)
      return;
  }
  g_autofree char *name = g_strdup_printf("%d × %d", size.width, size.height);
  g_array_append_val(self->sizes, size);
  gtk_string_list_append(self->names, name);
}

void msu_size_row_set_size(MsuSizeRow *self, int width, int height) {
  g_return_if_fail(MSU_IS_SIZE_ROW(self));
  guint at = 0;
  while (at < self->sizes->len && (g_array_index(self->sizes, struct size, at).width != width ||
                                   g_array_index(self->sizes, struct size, at).height != height))
    at++;
  if (at == self->sizes->len) {
    g_autofree char *text = g_strdup_printf("%dx%d", width, height);
    gtk_editable_set_text(GTK_EDITABLE(self->entry), text);
  }
  adw_combo_row_set_selected(ADW_COMBO_ROW(self), at);
}

void msu_size_row_set_model(MsuSizeRow *self, MsaModel *model) {
  int width = 0, height = 0;
  g_return_if_fail(MSU_IS_SIZE_ROW(self));
  const gboolean had = msu_size_row_get_size(self, &width, &height);
  self->filling = TRUE;
  g_clear_object(&self->names);
  self->names = gtk_string_list_new(NULL);
  g_array_set_size(self->sizes, 0);
  if (model) {
    const char *const *sizes = msa_model_get_sizes(model);
    add_size(self, (struct size){msa_model_get_width(model), msa_model_get_height(model)});
    for (guint i = 0; sizes && sizes[i]; i++) {
      struct size size;
      if (parse_size(sizes[i], &size) && size_is_good(size))
        add_size(self, size);
    }
  }
  for (gsize i = 0; i < G_N_ELEMENTS(common); i++)
    add_size(self, common[i]);
  gtk_string_list_append(self->names, _("Custom"));
  adw_combo_row_set_model(ADW_COMBO_ROW(self), G_LIST_MODEL(self->names));
  if (had)
    msu_size_row_set_size(self, width, height);
  else
    adw_combo_row_set_selected(ADW_COMBO_ROW(self), 0);
  self->filling = FALSE;
  update(self);
}

GtkWidget *msu_size_row_get_entry(MsuSizeRow *self) {
  g_return_val_if_fail(MSU_IS_SIZE_ROW(self), NULL);
  return self->entry;
}

static void dispose(GObject *object) {
  MsuSizeRow *self = MSU_SIZE_ROW(object);
  g_clear_object(&self->entry);
  G_OBJECT_CLASS(msu_size_row_parent_class)->dispose(object);
}

static void finalize(GObject *object) {
  MsuSizeRow *self = MSU_SIZE_ROW(object);
  g_clear_object(&self->names);
  g_array_unref(self->sizes);
  G_OBJECT_CLASS(msu_size_row_parent_class)->finalize(object);
}

static void msu_size_row_class_init(MsuSizeRowClass *klass) {
  G_OBJECT_CLASS(klass)->dispose = dispose;
  G_OBJECT_CLASS(klass)->finalize = finalize;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_SIZE_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_size_row_init(MsuSizeRow *self) {
  self->sizes = g_array_new(FALSE, FALSE, sizeof(struct size));
  self->entry = g_object_ref_sink(adw_entry_row_new());
  g_signal_connect_object(self->entry, "changed", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  g_signal_connect(self, "notify::selected", G_CALLBACK(update), NULL);
  msu_size_row_set_model(self, NULL);
}
