#include "window/msu-application.h"
#include "widgets/msu-stacks.h"
#include "window/msu-notifier.h"
#include "window/msu-preferences.h"
#include "window/msu-settings.h"
#include "window/msu-window-jobs.h"
#include <glib/gi18n.h>

struct _MsuApplication {
  AdwApplication parent_instance;
  MsaStudio *studio;
  MsuNotifier *notifier;
  GSettings *settings; /* NULL without a schema */
};

G_DEFINE_FINAL_TYPE(MsuApplication, msu_application, ADW_TYPE_APPLICATION)

static MsuWindow *find_window(MsuApplication *self) {
  for (GList *at = gtk_application_get_windows(GTK_APPLICATION(self)); at; at = at->next)
    if (MSU_IS_WINDOW(at->data))
      return at->data;
  return NULL;
}

static void opened_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuApplication) self = data;
  g_autoptr(GError) error = NULL;
  const gboolean good = msa_studio_open_finish(MSA_STUDIO(source), result, &error);
  MsuWindow *window = find_window(self);
  if (!window)
    return;
  if (good)
    msu_window_show_opened(window);
  else
    msu_window_show_failure(window, error->message);
}

static void open_store(MsuApplication *self) {
  msa_studio_open_async(self->studio, opened_cb, g_object_ref(self));
}

static MsuWindow *ensure_window(MsuApplication *self) {
  MsuWindow *window = find_window(self);
  if (window)
    return window;
  self->studio = msa_studio_new();
  g_set_object(&self->notifier, NULL);
  self->notifier = msu_notifier_new(G_APPLICATION(self), msa_studio_get_queue(self->studio));
  window = MSU_WINDOW(msu_window_new(ADW_APPLICATION(self), self->studio));
  open_store(self);
  return window;
}

static void activate(GApplication *application) {
  gtk_window_present(GTK_WINDOW(ensure_window(MSU_APPLICATION(application))));
}

static void open_files(GApplication *application, GFile **files, int count, const char *hint) {
  MsuWindow *window = ensure_window(MSU_APPLICATION(application));
  gtk_window_present(GTK_WINDOW(window));
  for (int i = 0; i < count; i++)
    msu_window_open_file(window, files[i]);
}

static void quit_action(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuWindow *window = find_window(data);
  if (window)
    gtk_window_close(GTK_WINDOW(window));
}

static void preferences_action(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuApplication *self = data;
  MsuWindow *window = find_window(self);
  if (window)
    gtk_window_present(GTK_WINDOW(msu_preferences_new(GTK_WINDOW(window), self->studio)));
}

static void show_action(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuWindow *window = find_window(data);
  if (!window)
    return;
  gtk_window_present(GTK_WINDOW(window));
  msu_window_show_page(window, g_variant_get_string(parameter, NULL));
}

static void open_store_action(GSimpleAction *action, GVariant *parameter, gpointer data) {
  open_store(data);
}

static void about_action(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuWindow *window = find_window(data);
  if (!window)
    return;
  adw_show_about_window(
      GTK_WINDOW(window), "application-name", "MegaSlide Studio", "application-icon", "org.megaslide.Studio",
      "version", MSU_VERSION, "developer-name", _("The MegaSlide authors"), "license-type",
      GTK_LICENSE_GPL_3_0, "comments",
      _("Turns a sentence into a clip, and your clips into a model, on this machine alone."),
      /* Translators: your name, a line for each of you. */
      "translator-credits", _("translator-credits"), NULL);
}

static void appearance_cb(GSettings *settings, const char *key, AdwApplication *application) {
  static const AdwColorScheme schemes[] = {ADW_COLOR_SCHEME_DEFAULT, ADW_COLOR_SCHEME_FORCE_LIGHT,
                                           ADW_COLOR_SCHEME_FORCE_DARK};
  adw_style_manager_set_color_scheme(adw_application_get_style_manager(application),
                                     schemes[CLAMP(g_settings_get_enum(settings, "appearance"), 0, 2)]);
}

/* Every room may have a style.css of its own. */
static void load_styles(void) {
  static const char *const rooms[] = {"window", "create",  "player", "train",
                                      "plot",   "library", "models", "widgets"};
  for (gsize i = 0; i < G_N_ELEMENTS(rooms); i++) {
    g_autofree char *path = g_strdup_printf("/org/megaslide/Studio/%s/style.css", rooms[i]);
    if (!g_resources_get_info(path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL, NULL, NULL))
      continue;
    g_autoptr(GtkCssProvider) provider = gtk_css_provider_new();
    gtk_css_provider_load_from_resource(provider, path);
    gtk_style_context_add_provider_for_display(gdk_display_get_default(), GTK_STYLE_PROVIDER(provider),
                                               GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
  }
}

static void add_shortcuts(GtkApplication *application) {
  static const struct {
    const char *action, *keys[3];
  } table[] = {
      {"win.create", {"<Control>Return", "<Control>KP_Enter"}},
      {"win.page::create", {"<Alt>1"}},
      {"win.page::train", {"<Alt>2"}},
      {"win.page::library", {"<Alt>3"}},
      {"win.page::models", {"<Alt>4"}},
      {"win.queue", {"<Control>j"}},
      {"win.prompt", {"<Control>l"}},
      {"app.preferences", {"<Control>comma"}},
      {"app.quit", {"<Control>q"}},
      {"window.close", {"<Control>w"}},
      {"win.show-help-overlay", {"<Control>question"}},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
    gtk_application_set_accels_for_action(application, table[i].action, (const char *const *)table[i].keys);
}

static void startup(GApplication *application) {
  static const GActionEntry actions[] = {
      {"quit", quit_action},   {"preferences", preferences_action}, {"show", show_action, "s"},
      {"about", about_action}, {"open-store", open_store_action},
  };
  MsuApplication *self = MSU_APPLICATION(application);
  G_APPLICATION_CLASS(msu_application_parent_class)->startup(application);
  msu_stacks_tell_hidden_pages();
  g_action_map_add_action_entries(G_ACTION_MAP(self), actions, G_N_ELEMENTS(actions), self);
  add_shortcuts(GTK_APPLICATION(self));
  load_styles();
  gtk_window_set_default_icon_name("org.megaslide.Studio");
  self->settings = msu_settings_open();
  if (self->settings) {
    g_signal_connect_object(self->settings, "changed::appearance", G_CALLBACK(appearance_cb), self, 0);
    appearance_cb(self->settings, NULL, ADW_APPLICATION(self));
  }
}

static int handle_local_options(GApplication *application, GVariantDict *options) {
  if (!g_variant_dict_contains(options, "version"))
    return -1;
  g_print("megaslide-studio %s\n", MSU_VERSION);
  return 0;
}

static void shutdown(GApplication *application) {
  MsuApplication *self = MSU_APPLICATION(application);
  g_clear_object(&self->notifier);
  g_clear_object(&self->settings);
  g_clear_object(&self->studio);
  G_APPLICATION_CLASS(msu_application_parent_class)->shutdown(application);
}

static void msu_application_class_init(MsuApplicationClass *klass) {
  GApplicationClass *application_class = G_APPLICATION_CLASS(klass);
  application_class->startup = startup;
  application_class->activate = activate;
  application_class->open = open_files;
  application_class->shutdown = shutdown;
  application_class->handle_local_options = handle_local_options;
}

static void msu_application_init(MsuApplication *self) {
  GApplication *application = G_APPLICATION(self);
  g_application_set_option_context_parameter_string(application, _("[CLIP…]"));
  g_application_set_option_context_summary(
      application,
      _("The window of MegaSlide. A clip that is named here has its settings restored, as if it had "
        "been dropped on the window."));
  g_application_add_main_option(application, "version", 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_NONE,
                                _("Print the version"), NULL);
}

MsuApplication *msu_application_new(void) {
  return g_object_new(MSU_TYPE_APPLICATION, "application-id", "org.megaslide.Studio", "flags",
                      G_APPLICATION_HANDLES_OPEN, NULL);
}
