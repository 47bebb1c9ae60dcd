#include "library/msu-clip-filter.h"

#include <string.h>

#include "msa-clip.h"

struct _MsuClipFilter {
  GtkFilter parent_instance;
  char **words; /* case-folded, NULL-terminated; NULL: none */
  char *model, *kind;
  gboolean starred;
};

G_DEFINE_FINAL_TYPE(MsuClipFilter, msu_clip_filter, GTK_TYPE_FILTER)

static gboolean holds_words(MsuClipFilter *self, MsaClip *clip) {
  const char *prompt = msa_clip_get_prompt(clip);
  g_autofree char *name = g_filename_display_basename(msa_clip_get_path(clip));
  g_autofree char *text = g_strconcat(prompt ? prompt : "", "\n", name, NULL);
  g_autofree char *folded = g_utf8_casefold(text, -1);
  for (char **word = self->words; *word; word++)
    if (!strstr(folded, *word))
      return FALSE;
  return TRUE;
}

static gboolean match(GtkFilter *filter, gpointer item) {
  MsuClipFilter *self = MSU_CLIP_FILTER(filter);
  MsaClip *clip = item;
  return (!self->starred || msa_clip_get_starred(clip)) &&
         (!self->model || !g_strcmp0(self->model, msa_clip_get_model(clip))) &&
         (!self->kind || !g_strcmp0(self->kind, msa_clip_get_kind(clip))) &&
         (!self->words || holds_words(self, clip));
}

static GtkFilterMatch get_strictness(GtkFilter *filter) {
  return msu_clip_filter_is_set(MSU_CLIP_FILTER(filter)) ? GTK_FILTER_MATCH_SOME : GTK_FILTER_MATCH_ALL;
}

static void finalize(GObject *object) {
  MsuClipFilter *self = MSU_CLIP_FILTER(object);
  g_strfreev(self->words);
  g_free(self->model);
  g_free(self->kind);
  G_OBJECT_CLASS(msu_clip_filter_parent_class)->finalize(object);
}

static void msu_clip_filter_class_init(MsuClipFilterClass *class) {
  G_OBJECT_CLASS(class)->finalize = finalize;
  GTK_FILTER_CLASS(class)->match = match;
  GTK_FILTER_CLASS(class)->get_strictness = get_strictness;
}

static void msu_clip_filter_init(MsuClipFilter *self) {
}

MsuClipFilter *msu_clip_filter_new(void) {
  return g_object_new(MSU_TYPE_CLIP_FILTER, NULL);
}

void msu_clip_filter_set_search(MsuClipFilter *self, const char *text) {
  g_autofree char *folded = g_utf8_casefold(text ? text : "", -1);
  g_auto(GStrv) parts = g_strsplit_set(folded, " \t\n", -1);
  g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
  for (char **part = parts; *part; part++)
    if (**part)
      g_ptr_array_add(words, g_strdup(*part));
  g_clear_pointer(&self->words, g_strfreev);
  if (words->len) {
    g_ptr_array_add(words, NULL);
    self->words = (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
  }
  gtk_filter_changed(GTK_FILTER(self), GTK_FILTER_CHANGE_DIFFERENT);
}

void msu_clip_filter_set_starred(MsuClipFilter *self, gboolean starred) {
  self->starred = starred;
  gtk_filter_changed(GTK_FILTER(self),
                     starred ? GTK_FILTER_CHANGE_MORE_STRICT : GTK_FILTER_CHANGE_LESS_STRICT);
}

static void set_text(MsuClipFilter *self, char **field, const char *text) {
  if (!g_strcmp0(*field, text))
    return;
  g_free(*field);
  *field = g_strdup(text);
  gtk_filter_changed(GTK_FILTER(self), GTK_FILTER_CHANGE_DIFFERENT);
}

void msu_clip_filter_set_model(MsuClipFilter *self, const char *model) {
  set_text(self, &self->model, model);
}

void msu_clip_filter_set_kind(MsuClipFilter *self, const char *kind) {
  set_text(self, &self->kind, kind);
}

gboolean msu_clip_filter_is_set(MsuClipFilter *self) {
  return self->words || self->model || self->kind || self->starred;
}

static GtkOrdering order_of(double a, double b) {
  return a < b ? GTK_ORDERING_SMALLER : a > b ? GTK_ORDERING_LARGER : GTK_ORDERING_EQUAL;
}

static double seconds_of(MsaClip *clip) {
  double fps = msa_clip_get_fps(clip);
  return fps > 0 ? msa_clip_get_frames(clip) / fps : 0;
}

static int compare(gconstpointer first, gconstpointer second, gpointer data) {
  MsaClip *a = (MsaClip *)first, *b = (MsaClip *)second;
  switch ((enum msu_clip_order)GPOINTER_TO_INT(data)) {
  case MSU_CLIPS_OLDEST:
    return order_of(msa_clip_get_created(a), msa_clip_get_created(b));
  case MSU_CLIPS_BY_PROMPT: {
    const char *left = msa_clip_get_prompt(a), *right = msa_clip_get_prompt(b);
    return order_of(g_utf8_collate(left ? left : "", right ? right : ""), 0);
  }
  case MSU_CLIPS_LONGEST:
    return order_of(seconds_of(b), seconds_of(a));
  case MSU_CLIPS_LARGEST:
    return order_of((double)msa_clip_get_width(b) * msa_clip_get_height(b),
                    (double)msa_clip_get_width(a) * msa_clip_get_height(a));
  case MSU_CLIPS_NEWEST:
    break;
  }
  return GTK_ORDERING_EQUAL;
}

GtkSorter *msu_clip_sorter_new(enum msu_clip_order order) {
  if (order == MSU_CLIPS_NEWEST)
    return NULL;
  return GTK_SORTER(gtk_custom_sorter_new(compare, GINT_TO_POINTER(order), NULL));
}
