/* Which clips of the library are listed, and in which order. A GtkFilter; the sorter goes with it. */
#pragma once
#include <gtk/gtk.h>

enum msu_clip_order {
  MSU_CLIPS_NEWEST,
  MSU_CLIPS_OLDEST,
  MSU_CLIPS_BY_PROMPT,
  MSU_CLIPS_LONGEST,
  MSU_CLIPS_LARGEST /* by pixels of a frame */
};

#define MSU_TYPE_CLIP_FILTER (msu_clip_filter_get_type())
G_DECLARE_FINAL_TYPE(MsuClipFilter, msu_clip_filter, MSU, CLIP_FILTER, GtkFilter)

MsuClipFilter *msu_clip_filter_new(void);
/* All words must be in the prompt or the file's name, in any order and case. */
void msu_clip_filter_set_search(MsuClipFilter *filter, const char *text);
void msu_clip_filter_set_starred(MsuClipFilter *filter, gboolean starred); /* TRUE: only those */
void msu_clip_filter_set_model(MsuClipFilter *filter, const char *model);  /* NULL: any */
void msu_clip_filter_set_kind(MsuClipFilter *filter, const char *kind);
/* TRUE while anything is left out. */
gboolean msu_clip_filter_is_set(MsuClipFilter *filter);
/* NULL for the library's own order, the newest first. New reference. */
GtkSorter *msu_clip_sorter_new(enum msu_clip_order order);
