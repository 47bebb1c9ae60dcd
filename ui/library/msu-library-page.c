#include "library/msu-library-page.h"

#include <adwaita.h>
#include <glib/gi18n-lib.h>

#include "library/msu-clip-cell.h"
#include "library/msu-clip-details.h"
#include "library/msu-clip-filter.h"
#include "library/msu-clip-jobs.h"
#include "library/msu-compare.h"
#include "library/msu-reveal.h"
#include "window/msu-message.h"
#include "window/msu-window.h"

#define VARIATIONS 4
#define CELL_WIDTH 232 /* pixels, with what is around a cell */

struct _MsuLibraryPage {
  GtkWidget parent_instance;
  GtkWidget *root, *flap, *search, *starred, *kind, *model, *order, *count, *messages, *found, *grid;
  GtkWidget *side, *details, *many, *compare, *menu;
  MsaStudio *studio;
  MsuClipFilter *filter;
  GtkSortListModel *sorted;
  GtkMultiSelection *selection;
  GtkStringList *models;
  GSimpleActionGroup *actions;
  GtkWidget *window; /* that has the actions; a weak pointer */
  MsaClip *first;    /* of two to compare, while the second is chosen */
  GtkWidget *choosing;
  GPtrArray *trashed; /* of GPtrArray of MsaClip: what one undo brings back, by its number */
  guint update;       /* idle after the library has changed */
  guint columns;      /* idle after the width has changed */
};

G_DEFINE_FINAL_TYPE(MsuLibraryPage, msu_library_page, GTK_TYPE_WIDGET)

static const char *const kinds[] = {NULL, "made", "partial", "sample", "imported"};

static MsaLibrary *library_of(MsuLibraryPage *self) {
  return msa_studio_get_library(self->studio);
}

static void toast(MsuLibraryPage *self, const char *text, const char *label, const char *action,
                  GVariant *target) {
  g_autoptr(GVariant) sunk = target ? g_variant_ref_sink(target) : NULL;
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  if (window)
    msu_window_toast(window, text, label, action, sunk);
}

/* In place of the last one: many files that are no clips would fill the page. */
static void show_error(MsuLibraryPage *self, const char *text) {
  GtkWidget *message = msu_message_new(MSU_MESSAGE_ERROR, text);
  msu_message_add_copy(MSU_MESSAGE(message));
  msu_message_put(GTK_BOX(self->messages), "failure", message);
}

/* ---- What is selected. ---- */

static GPtrArray *selected_clips(MsuLibraryPage *self) {
  GPtrArray *clips = g_ptr_array_new_with_free_func(g_object_unref);
  g_autoptr(GtkBitset) set = gtk_selection_model_get_selection(GTK_SELECTION_MODEL(self->selection));
  GtkBitsetIter iter;
  guint position;
  for (gboolean more = gtk_bitset_iter_init_first(&iter, set, &position); more;
       more = gtk_bitset_iter_next(&iter, &position))
    g_ptr_array_add(clips, g_list_model_get_item(G_LIST_MODEL(self->selection), position));
  return clips;
}

static MsaClip *selected_clip(MsuLibraryPage *self) {
  g_autoptr(GPtrArray) clips = selected_clips(self);
  return clips->len == 1 ? g_object_ref(clips->pdata[0]) : NULL;
}

static void enable(MsuLibraryPage *self, const char *name, gboolean enabled) {
  GAction *action = g_action_map_lookup_action(G_ACTION_MAP(self->actions), name);
  g_simple_action_set_enabled(G_SIMPLE_ACTION(action), enabled);
}

static void update_actions(MsuLibraryPage *self) {
  g_autoptr(GPtrArray) clips = selected_clips(self);
  MsaClip *clip = clips->len == 1 ? clips->pdata[0] : NULL;
  gboolean there = clip && !msa_clip_get_missing(clip), params = clip && msa_clip_get_params(clip);
  enable(self, "again", params);
  enable(self, "variations", params);
  enable(self, "use-settings", params);
  enable(self, "compare", there || clips->len == 2);
  enable(self, "export", there);
  enable(self, "show-in-folder", clip != NULL);
  enable(self, "trash", clips->len > 0);
  enable(self, "star", clip != NULL);
  GAction *star = g_action_map_lookup_action(G_ACTION_MAP(self->actions), "star");
  g_simple_action_set_state(G_SIMPLE_ACTION(star), g_variant_new_boolean(clip && msa_clip_get_starred(clip)));
}

static void stop_choosing(MsuLibraryPage *self) {
  g_clear_object(&self->first);
  if (self->choosing && gtk_widget_get_parent(self->choosing))
    gtk_box_remove(GTK_BOX(self->messages), self->choosing);
  g_clear_weak_pointer(&self->choosing);
}

static void start_compare(MsuLibraryPage *self, MsaClip *left, MsaClip *right) {
  msu_clip_details_set_clip(MSU_CLIP_DETAILS(self->details), NULL);
  msu_compare_set_clips(MSU_COMPARE(self->compare), left, right);
  gtk_stack_set_visible_child_name(GTK_STACK(self->root), "compare");
  gtk_widget_grab_focus(self->compare);
}

static void update_details(MsuLibraryPage *self) {
  g_autoptr(GPtrArray) clips = selected_clips(self);
  MsaClip *clip = clips->len == 1 ? clips->pdata[0] : NULL;
  msu_clip_details_set_clip(MSU_CLIP_DETAILS(self->details), clip);
  if (clips->len > 1) {
    g_autofree char *title =
        g_strdup_printf(ngettext("%u clip selected", "%u clips selected", clips->len), clips->len);
    adw_status_page_set_title(ADW_STATUS_PAGE(self->many), title);
  }
  gtk_stack_set_visible_child_name(GTK_STACK(self->side), clips->len > 1 ? "many" : "one");
  adw_flap_set_reveal_flap(ADW_FLAP(self->flap), clips->len > 0);
}

static void selection_cb(MsuLibraryPage *self) {
  update_actions(self);
  if (self->first) {
    g_autoptr(MsaClip) second = selected_clip(self);
    g_autoptr(MsaClip) first = g_object_ref(self->first);
    if (second && second != first) {
      stop_choosing(self);
      start_compare(self, first, second);
      return;
    }
  }
  update_details(self);
}

/* ---- What is listed. ---- */

static void update_found(MsuLibraryPage *self) {
  guint all = g_list_model_get_n_items(G_LIST_MODEL(library_of(self)));
  guint found = g_list_model_get_n_items(G_LIST_MODEL(self->sorted));
  const char *seen = gtk_stack_get_visible_child_name(GTK_STACK(self->root));
  g_autofree char *text = found == all
                              ? g_strdup_printf(ngettext("%u clip", "%u clips", all), all)
                              : g_strdup_printf(ngettext("%u of %u clip", "%u of %u clips", all), found, all);
  gtk_label_set_text(GTK_LABEL(self->count), text);
  gtk_stack_set_visible_child_name(GTK_STACK(self->found), found ? "some" : "none");
  if (g_strcmp0(seen, "compare") != 0)
    gtk_stack_set_visible_child_name(GTK_STACK(self->root), all ? "list" : "empty");
}

/* The models that clips were made with, after "All models". */
static void update_models(MsuLibraryPage *self) {
  g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
  GListModel *clips = G_LIST_MODEL(library_of(self));
  for (guint i = 1; i < g_list_model_get_n_items(G_LIST_MODEL(self->models)); i++)
    g_hash_table_add(known, (gpointer)gtk_string_list_get_string(self->models, i));
  for (guint i = 0; i < g_list_model_get_n_items(clips); i++) {
    g_autoptr(MsaClip) clip = g_list_model_get_item(clips, i);
    const char *model = msa_clip_get_model(clip);
    if (!model || !*model || g_hash_table_contains(known, model))
      continue;
    gtk_string_list_append(self->models, model);
    g_hash_table_add(known, (gpointer)gtk_string_list_get_string(
                                self->models, g_list_model_get_n_items(G_LIST_MODEL(self->models)) - 1));
  }
}

static gboolean update_idle_cb(gpointer data) {
  MsuLibraryPage *self = data;
  self->update = 0;
  update_models(self);
  update_found(self);
  return G_SOURCE_REMOVE;
}

static void library_changed_cb(MsuLibraryPage *self) {
  if (!self->update)
    self->update = g_idle_add(update_idle_cb, self);
}

static void search_cb(MsuLibraryPage *self) {
  msu_clip_filter_set_search(self->filter, gtk_editable_get_text(GTK_EDITABLE(self->search)));
}

static void starred_cb(MsuLibraryPage *self) {
  msu_clip_filter_set_starred(self->filter, gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->starred)));
}

static void kind_cb(MsuLibraryPage *self) {
  guint selected = gtk_drop_down_get_selected(GTK_DROP_DOWN(self->kind));
  if (self->filter)
    msu_clip_filter_set_kind(self->filter, selected < G_N_ELEMENTS(kinds) ? kinds[selected] : NULL);
}

static void model_cb(MsuLibraryPage *self) {
  guint selected = gtk_drop_down_get_selected(GTK_DROP_DOWN(self->model));
  gboolean all = selected == 0 || selected == GTK_INVALID_LIST_POSITION;
  if (self->filter)
    msu_clip_filter_set_model(self->filter, all ? NULL : gtk_string_list_get_string(self->models, selected));
}

static void order_cb(MsuLibraryPage *self) {
  if (!self->sorted)
    return;
  g_autoptr(GtkSorter) sorter = msu_clip_sorter_new(gtk_drop_down_get_selected(GTK_DROP_DOWN(self->order)));
  gtk_sort_list_model_set_sorter(self->sorted, sorter);
}

static void show_all_cb(MsuLibraryPage *self) {
  gtk_editable_set_text(GTK_EDITABLE(self->search), "");
  gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(self->starred), FALSE);
  gtk_drop_down_set_selected(GTK_DROP_DOWN(self->kind), 0);
  gtk_drop_down_set_selected(GTK_DROP_DOWN(self->model), 0);
  msu_clip_filter_set_search(self->filter, NULL);
}

/* ---- Cells. ---- */

/* The grid keeps thirty rows of as many widgets as there may be columns, so it is told how many fit. */
static gboolean columns_idle_cb(gpointer data) {
  MsuLibraryPage *self = data;
  GtkAdjustment *across = gtk_scrollable_get_hadjustment(GTK_SCROLLABLE(self->grid));
  self->columns = 0;
  gtk_grid_view_set_max_columns(GTK_GRID_VIEW(self->grid),
                                (guint)CLAMP(gtk_adjustment_get_page_size(across) / CELL_WIDTH, 1, 32));
  return G_SOURCE_REMOVE;
}

static void width_changed_cb(MsuLibraryPage *self) {
  if (!self->columns)
    self->columns = g_idle_add_full(G_PRIORITY_HIGH_IDLE, columns_idle_cb, self, NULL);
}

static void star_cb(MsuClipCell *cell, gboolean starred, MsuLibraryPage *self) {
  if (msu_clip_cell_get_clip(cell))
    msa_library_set_starred(library_of(self), msu_clip_cell_get_clip(cell), starred);
  update_actions(self);
}

/* The menu is about what is selected, so the clip under the pointer is selected first. */
static void menu_cb(GtkGestureClick *gesture, int presses, double x, double y, GtkListItem *item) {
  GtkWidget *cell = gtk_event_controller_get_widget(GTK_EVENT_CONTROLLER(gesture));
  MsuLibraryPage *self = MSU_LIBRARY_PAGE(gtk_widget_get_ancestor(cell, MSU_TYPE_LIBRARY_PAGE));
  guint position = gtk_list_item_get_position(item);
  double on_page_x, on_page_y;
  if (!gtk_selection_model_is_selected(GTK_SELECTION_MODEL(self->selection), position))
    gtk_selection_model_select_item(GTK_SELECTION_MODEL(self->selection), position, TRUE);
  gtk_gesture_set_state(GTK_GESTURE(gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  gtk_widget_translate_coordinates(cell, GTK_WIDGET(self), x, y, &on_page_x, &on_page_y);
  gtk_popover_set_pointing_to(GTK_POPOVER(self->menu), &(GdkRectangle){(int)on_page_x, (int)on_page_y, 1, 1});
  gtk_popover_popup(GTK_POPOVER(self->menu));
}

static void setup_cb(GtkListItemFactory *factory, GtkListItem *item, MsuLibraryPage *self) {
  GtkWidget *cell = msu_clip_cell_new();
  g_signal_connect(cell, "star", G_CALLBACK(star_cb), self);
  GtkGesture *click = gtk_gesture_click_new();
  gtk_gesture_single_set_button(GTK_GESTURE_SINGLE(click), GDK_BUTTON_SECONDARY);
  g_signal_connect(click, "pressed", G_CALLBACK(menu_cb), item);
  gtk_widget_add_controller(cell, GTK_EVENT_CONTROLLER(click));
  gtk_list_item_set_child(item, cell);
}

static void bind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  msu_clip_cell_bind(MSU_CLIP_CELL(gtk_list_item_get_child(item)), gtk_list_item_get_item(item));
}

static void unbind_cb(GtkListItemFactory *factory, GtkListItem *item, gpointer data) {
  msu_clip_cell_bind(MSU_CLIP_CELL(gtk_list_item_get_child(item)), NULL);
}

static void activate_cb(MsuLibraryPage *self, guint position) {
  gtk_selection_model_select_item(GTK_SELECTION_MODEL(self->selection), position, TRUE);
  gtk_widget_child_focus(self->details, GTK_DIR_TAB_FORWARD);
}

/* ---- Actions. ---- */

static void again_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(MsaClip) clip = selected_clip(self);
  if (clip && msu_clip_make_again(msa_studio_get_queue(self->studio), clip))
    toast(self, _("Added to the queue"), _("Show queue"), "win.queue", NULL);
}

static void variations_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(MsaClip) clip = selected_clip(self);
  g_autofree char *text = g_strdup_printf(_("%d variations added to the queue"), VARIATIONS);
  if (clip && msu_clip_make_variations(msa_studio_get_queue(self->studio), clip, VARIATIONS))
    toast(self, text, _("Show queue"), "win.queue", NULL);
}

struct use {
  MsuLibraryPage *page;
  MsaClip *clip;
};

static void looked_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct use *use = data;
  /* A file that is gone has nothing to add; the settings are in the store. */
  g_autoptr(MsaDropped) dropped = msa_library_look_finish(MSA_LIBRARY(source), result, NULL);
  MsuWindow *window = use->page->root ? msu_window_of(GTK_WIDGET(use->page)) : NULL;
  if (window)
    msu_window_use_params(window, msa_clip_get_params(use->clip),
                          dropped ? (const char *const *)dropped->notes : NULL);
  g_object_unref(use->page);
  g_object_unref(use->clip);
  g_free(use);
}

static void use_settings_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(MsaClip) clip = selected_clip(self);
  if (!clip || !msa_clip_get_params(clip))
    return;
  struct use *use = g_new0(struct use, 1);
  use->page = g_object_ref(self);
  use->clip = g_object_ref(clip);
  msa_library_look_async(library_of(self), msa_clip_get_path(clip), NULL, looked_cb, use);
}

static void cancel_choosing(gpointer data) {
  MsuLibraryPage *self = data;
  g_clear_object(&self->first);
}

static void compare_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(GPtrArray) clips = selected_clips(self);
  if (clips->len == 2) {
    start_compare(self, clips->pdata[0], clips->pdata[1]);
  } else if (clips->len == 1 && !self->first) {
    self->first = g_object_ref(clips->pdata[0]);
    GtkWidget *message = msu_message_new(MSU_MESSAGE_NOTE, _("Choose the clip to compare with."));
    msu_message_add_button(MSU_MESSAGE(message), _("Cancel"), cancel_choosing, self, NULL);
    gtk_box_append(GTK_BOX(self->messages), message);
    g_set_weak_pointer(&self->choosing, message);
    /* In a narrow window the details lie over the clips. */
    if (adw_flap_get_folded(ADW_FLAP(self->flap)))
      adw_flap_set_reveal_flap(ADW_FLAP(self->flap), FALSE);
  }
}

static void export_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  msu_clip_details_export(MSU_CLIP_DETAILS(((MsuLibraryPage *)data)->details));
}

static void show_in_folder_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(MsaClip) clip = selected_clip(self);
  if (clip)
    msu_reveal_file(GTK_WIDGET(self), msa_clip_get_path(clip));
}

static void show_file_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  msu_reveal_file(data, g_variant_get_string(parameter, NULL));
}

static void close_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  stop_choosing(self);
  gtk_selection_model_unselect_all(GTK_SELECTION_MODEL(self->selection));
  gtk_widget_grab_focus(self->grid);
}

static void change_star_cb(GSimpleAction *action, GVariant *state, gpointer data) {
  MsuLibraryPage *self = data;
  g_autoptr(MsaClip) clip = selected_clip(self);
  if (clip)
    msa_library_set_starred(library_of(self), clip, g_variant_get_boolean(state));
  g_simple_action_set_state(action, state);
}

static void trashed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuLibraryPage) self = data;
  g_autoptr(GError) error = NULL;
  if (!msa_library_trash_many_finish(MSA_LIBRARY(source), result, NULL, &error) && self->root)
    show_error(self, error->message);
}

static void trash_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  GPtrArray *clips = selected_clips(self);
  if (!clips->len) {
    g_ptr_array_unref(clips);
    return;
  }
  g_ptr_array_add(self->trashed, clips);
  gtk_selection_model_unselect_all(GTK_SELECTION_MODEL(self->selection));
  msa_library_trash_many_async(library_of(self), clips, trashed_cb, g_object_ref(self));
  g_autofree char *text = g_strdup_printf(
      ngettext("%u clip moved to the trash", "%u clips moved to the trash", clips->len), clips->len);
  toast(self, text, _("Undo"), "library.restore", g_variant_new_uint32(self->trashed->len - 1));
}

static void restored_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuLibraryPage) self = data;
  g_autoptr(GError) error = NULL;
  if (!msa_library_restore_many_finish(MSA_LIBRARY(source), result, NULL, &error) && self->root)
    show_error(self, error->message);
}

static void restore_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  guint number = g_variant_get_uint32(parameter);
  if (number >= self->trashed->len)
    return;
  GPtrArray *clips = self->trashed->pdata[number];
  msa_library_restore_many_async(library_of(self), clips, restored_cb, g_object_ref(self));
  g_ptr_array_set_size(clips, 0);
}

static void compare_closed_cb(MsuLibraryPage *self) {
  gtk_stack_set_visible_child_name(GTK_STACK(self->root), "list");
  msu_compare_set_clips(MSU_COMPARE(self->compare), NULL, NULL);
  update_details(self);
  update_found(self);
}

/* ---- Files from outside. ---- */

static void added_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuLibraryPage) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaClip) clip = msa_library_add_finish(MSA_LIBRARY(source), result, &error);
  if (!self->root)
    return;
  if (!clip) {
    show_error(self, error->message);
    if (!g_list_model_get_n_items(G_LIST_MODEL(library_of(self))))
      toast(self, error->message, NULL, NULL, NULL);
    return;
  }
  msu_library_page_show_clip(self, clip);
  toast(self, _("The clip is in the library"), NULL, NULL, NULL);
}

static void add_file(MsuLibraryPage *self, GFile *file) {
  g_autofree char *path = g_file_get_path(file);
  if (path)
    msa_library_add_async(library_of(self), path, added_cb, g_object_ref(self));
  else
    show_error(self, _("This file is not on this machine. Copy it here first."));
}

static void chosen_cb(GtkNativeDialog *dialog, int response, MsuLibraryPage *self) {
  if (response == GTK_RESPONSE_ACCEPT) {
    g_autoptr(GListModel) files = gtk_file_chooser_get_files(GTK_FILE_CHOOSER(dialog));
    for (guint i = 0; i < g_list_model_get_n_items(files); i++) {
      g_autoptr(GFile) file = g_list_model_get_item(files, i);
      add_file(self, file);
    }
  }
  g_object_unref(dialog);
}

static void add_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuLibraryPage *self = data;
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new(
      _("Add clips"), GTK_WINDOW(self->window), GTK_FILE_CHOOSER_ACTION_OPEN, _("_Add"), _("_Cancel"));
  GtkFileFilter *filter = gtk_file_filter_new();
  gtk_file_filter_set_name(filter, _("Moving pictures"));
  gtk_file_filter_add_mime_type(filter, "video/*");
  gtk_file_filter_add_mime_type(filter, "image/gif");
  gtk_file_chooser_add_filter(GTK_FILE_CHOOSER(dialog), filter);
  gtk_file_chooser_set_select_multiple(GTK_FILE_CHOOSER(dialog), TRUE);
  g_signal_connect_object(dialog, "response", G_CALLBACK(chosen_cb), self, 0);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(dialog));
}

/* ---- The object. ---- */

static void drop_actions(MsuLibraryPage *self) {
  if (self->window)
    gtk_widget_insert_action_group(self->window, "library", NULL);
  g_clear_weak_pointer(&self->window);
}

/* Toasts lie in the window, outside of the page, and undo through these too. */
static void root(GtkWidget *widget) {
  MsuLibraryPage *self = MSU_LIBRARY_PAGE(widget);
  GTK_WIDGET_CLASS(msu_library_page_parent_class)->root(widget);
  g_set_weak_pointer(&self->window, GTK_WIDGET(gtk_widget_get_root(widget)));
  gtk_widget_insert_action_group(self->window, "library", G_ACTION_GROUP(self->actions));
}

static void unroot(GtkWidget *widget) {
  drop_actions(MSU_LIBRARY_PAGE(widget));
  GTK_WIDGET_CLASS(msu_library_page_parent_class)->unroot(widget);
}

static void dispose(GObject *object) {
  MsuLibraryPage *self = MSU_LIBRARY_PAGE(object);
  g_clear_handle_id(&self->update, g_source_remove);
  g_clear_handle_id(&self->columns, g_source_remove);
  g_clear_object(&self->first);
  g_clear_weak_pointer(&self->choosing);
  drop_actions(self);
  if (self->selection)
    g_signal_handlers_disconnect_by_data(self->selection, self);
  if (self->grid)
    gtk_grid_view_set_model(GTK_GRID_VIEW(self->grid), NULL);
  g_clear_pointer(&self->menu, gtk_widget_unparent);
  g_clear_pointer(&self->root, gtk_widget_unparent);
  self->grid = NULL;
  g_clear_object(&self->selection);
  g_clear_object(&self->sorted);
  g_clear_object(&self->filter);
  g_clear_object(&self->models);
  g_clear_object(&self->actions);
  g_clear_pointer(&self->trashed, g_ptr_array_unref);
  g_clear_object(&self->studio);
  G_OBJECT_CLASS(msu_library_page_parent_class)->dispose(object);
}

static gboolean find_cb(GtkWidget *widget, GVariant *arguments, gpointer data) {
  return gtk_widget_grab_focus(MSU_LIBRARY_PAGE(widget)->search);
}

static void msu_library_page_class_init(MsuLibraryPageClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  widget_class->root = root;
  widget_class->unroot = unroot;
  g_type_ensure(MSU_TYPE_CLIP_DETAILS);
  g_type_ensure(MSU_TYPE_COMPARE);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/library/msu-library-page.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, root);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, flap);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, search);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, starred);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, kind);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, model);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, order);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, count);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, found);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, grid);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, side);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, details);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, many);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, compare);
  gtk_widget_class_bind_template_child(widget_class, MsuLibraryPage, menu);
  gtk_widget_class_bind_template_callback(widget_class, search_cb);
  gtk_widget_class_bind_template_callback(widget_class, starred_cb);
  gtk_widget_class_bind_template_callback(widget_class, kind_cb);
  gtk_widget_class_bind_template_callback(widget_class, model_cb);
  gtk_widget_class_bind_template_callback(widget_class, order_cb);
  gtk_widget_class_bind_template_callback(widget_class, show_all_cb);
  gtk_widget_class_bind_template_callback(widget_class, activate_cb);
  gtk_widget_class_bind_template_callback(widget_class, compare_closed_cb);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_f, GDK_CONTROL_MASK, find_cb, NULL);
  gtk_widget_class_add_binding_action(widget_class, GDK_KEY_Delete, 0, "library.trash", NULL);
  gtk_widget_class_add_binding_action(widget_class, GDK_KEY_Escape, 0, "library.close", NULL);
}

static void msu_library_page_init(MsuLibraryPage *self) {
  static const GActionEntry actions[] = {
      {.name = "again", .activate = again_cb},
      {.name = "variations", .activate = variations_cb},
      {.name = "use-settings", .activate = use_settings_cb},
      {.name = "compare", .activate = compare_cb},
      {.name = "export", .activate = export_cb},
      {.name = "show-in-folder", .activate = show_in_folder_cb},
      {.name = "show-file", .activate = show_file_cb, .parameter_type = "s"},
      {.name = "add", .activate = add_cb},
      {.name = "trash", .activate = trash_cb},
      {.name = "restore", .activate = restore_cb, .parameter_type = "u"},
      {.name = "close", .activate = close_cb},
      {.name = "star", .state = "false", .change_state = change_star_cb},
  };
  gtk_widget_init_template(GTK_WIDGET(self));
  self->trashed = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
  self->actions = g_simple_action_group_new();
  g_action_map_add_action_entries(G_ACTION_MAP(self->actions), actions, G_N_ELEMENTS(actions), self);
  gtk_widget_set_parent(self->menu, GTK_WIDGET(self));
  self->models = gtk_string_list_new((const char *const[]){_("All models"), NULL});
  gtk_drop_down_set_model(GTK_DROP_DOWN(self->model), G_LIST_MODEL(self->models));

  g_autoptr(GtkListItemFactory) factory = gtk_signal_list_item_factory_new();
  g_signal_connect(factory, "setup", G_CALLBACK(setup_cb), self);
  g_signal_connect(factory, "bind", G_CALLBACK(bind_cb), NULL);
  g_signal_connect(factory, "unbind", G_CALLBACK(unbind_cb), NULL);
  gtk_grid_view_set_factory(GTK_GRID_VIEW(self->grid), factory);
  g_signal_connect_object(gtk_scrollable_get_hadjustment(GTK_SCROLLABLE(self->grid)), "notify::page-size",
                          G_CALLBACK(width_changed_cb), self, G_CONNECT_SWAPPED);
}

GtkWidget *msu_library_page_new(MsaStudio *studio) {
  g_return_val_if_fail(MSA_IS_STUDIO(studio), NULL);
  MsuLibraryPage *self = g_object_new(MSU_TYPE_LIBRARY_PAGE, NULL);
  self->studio = g_object_ref(studio);
  GListModel *library = G_LIST_MODEL(library_of(self));
  self->filter = msu_clip_filter_new();
  GtkFilterListModel *filtered =
      gtk_filter_list_model_new(g_object_ref(library), GTK_FILTER(g_object_ref(self->filter)));
  self->sorted = gtk_sort_list_model_new(G_LIST_MODEL(filtered), NULL);
  self->selection = gtk_multi_selection_new(G_LIST_MODEL(g_object_ref(self->sorted)));
  gtk_grid_view_set_model(GTK_GRID_VIEW(self->grid), GTK_SELECTION_MODEL(self->selection));
  g_signal_connect_swapped(self->selection, "selection-changed", G_CALLBACK(selection_cb), self);
  g_signal_connect_swapped(self->selection, "items-changed", G_CALLBACK(selection_cb), self);
  g_signal_connect_object(self->sorted, "items-changed", G_CALLBACK(update_found), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(library, "items-changed", G_CALLBACK(library_changed_cb), self, G_CONNECT_SWAPPED);
  update_actions(self);
  update_models(self);
  update_found(self);
  return GTK_WIDGET(self);
}

void msu_library_page_show_clip(MsuLibraryPage *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_LIBRARY_PAGE(self));
  g_return_if_fail(MSA_IS_CLIP(clip));
  stop_choosing(self);
  if (!g_strcmp0(gtk_stack_get_visible_child_name(GTK_STACK(self->root)), "compare"))
    compare_closed_cb(self);
  for (int attempt = 0; attempt < 2; attempt++) {
    for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(self->selection)); i++) {
      g_autoptr(MsaClip) item = g_list_model_get_item(G_LIST_MODEL(self->selection), i);
      if (item != clip)
        continue;
      gtk_selection_model_select_item(GTK_SELECTION_MODEL(self->selection), i, TRUE);
      gtk_widget_activate_action(self->grid, "list.scroll-to-item", "u", i);
      return;
    }
    /* It is there but filtered out. */
    show_all_cb(self);
  }
}
