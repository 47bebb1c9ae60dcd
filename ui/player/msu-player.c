#include "player/msu-player.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "player/msu-fade.h"
#include "player/msu-reel.h"
#include "player/msu-scrubber.h"
#include "player/msu-sound.h"
#include "player/msu-stage.h"
#include "player/msu-video-paintable.h"
#include "widgets/msu-clock.h"
#include "widgets/msu-frames-texture.h"

#define POSTER_SIDE 256 /* as the library's cells have it, whose pictures are kept in memory */

struct _MsuPlayer {
  GtkWidget parent_instance;
  GtkWidget *body, *stage, *message, *message_label, *controls, *scrubber, *times;
  GtkWidget *play_button, *speed_label, *full_button, *sound_button;
  GSimpleActionGroup *actions;
  MsuFade *fade;
  MsuVideoPaintable *paintable;
  GtkWidget *window; /* full screen; NULL while the body is in its place */

  char *path;
  MsuReel *reel;
  GCancellable *poster;    /* its load; NULL: none is under way */
  struct msu_sound *sound; /* NULL: the clip has none, or it was not needed yet */
  gint64 frames, frame;
  double position; /* seconds of the clip, while it plays */
  double speed;
  gboolean playing, loop, show_controls;
  gboolean play_on; /* was playing when the bar was taken */
  struct msu_clock *clock;
};

enum { PROP_0, PROP_PLAYING, PROP_LOOP, PROP_FRAME, PROP_FRAMES, PROP_SPEED, PROP_ERROR, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsuPlayer, msu_player, GTK_TYPE_WIDGET)

static void notify(MsuPlayer *self, int property) {
  g_object_notify_by_pspec(G_OBJECT(self), properties[property]);
}

static const char *get_error(MsuPlayer *self) {
  return self->reel ? msu_reel_get_error(self->reel) : NULL;
}

static void set_enabled(MsuPlayer *self, const char *name, gboolean enabled) {
  GAction *action = g_action_map_lookup_action(G_ACTION_MAP(self->actions), name);
  g_simple_action_set_enabled(G_SIMPLE_ACTION(action), enabled);
}

static void set_state(MsuPlayer *self, const char *name, GVariant *state) {
  GAction *action = g_action_map_lookup_action(G_ACTION_MAP(self->actions), name);
  g_simple_action_set_state(G_SIMPLE_ACTION(action), state);
}

/* ---- What is seen. ---- */

static void update_times(MsuPlayer *self) {
  if (!self->frames) {
    gtk_label_set_text(GTK_LABEL(self->times), "");
    return;
  }
  double seconds = msu_reel_get_time(self->reel, self->frame);
  g_autofree char *text = g_strdup_printf(_("%d:%05.2f · %" PRId64 " of %" PRId64), (int)seconds / 60,
                                          seconds - (int)seconds / 60 * 60, self->frame + 1, self->frames);
  gtk_label_set_text(GTK_LABEL(self->times), text);
  msu_scrubber_set_frame(MSU_SCRUBBER(self->scrubber), self->frame);
}

static void update_controls(MsuPlayer *self) {
  gboolean there = self->frames > 0;
  gtk_widget_set_sensitive(self->controls, there);
  gtk_widget_set_visible(self->controls, self->show_controls && self->reel && !get_error(self));
  set_enabled(self, "play", self->frames > 1);
  set_enabled(self, "back", self->frame > 0);
  set_enabled(self, "on", self->frame < self->frames - 1);
}

static void update_play_button(MsuPlayer *self) {
  const char *label = self->playing ? _("Pause") : _("Play");
  g_autofree char *tip = g_strdup_printf(_("%s (Space)"), label);
  gtk_button_set_icon_name(GTK_BUTTON(self->play_button),
                           self->playing ? "media-playback-pause-symbolic" : "media-playback-start-symbolic");
  gtk_widget_set_tooltip_text(self->play_button, tip);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->play_button), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
}

static void stop_poster(MsuPlayer *self) {
  g_cancellable_cancel(self->poster);
  g_clear_object(&self->poster);
}

static void poster_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuPlayer) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaFrames) frames = msa_frames_load_finish(result, &error);
  /* A cancelled load must not touch what took its place. */
  if (frames && !g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    msu_player_set_poster(self, frames);
}

/* Shows the frame if it is decoded; else what is seen stays. */
static gboolean show_frame(MsuPlayer *self) {
  if (msu_video_paintable_get_frame(self->paintable) == self->frame)
    return TRUE;
  g_autoptr(GdkTexture) texture = msu_reel_peek(self->reel, self->frame);
  if (!texture)
    return FALSE;
  stop_poster(self);
  msu_video_paintable_set_texture(self->paintable, texture, self->frame, msu_reel_get_width(self->reel),
                                  msu_reel_get_height(self->reel));
  return TRUE;
}

/* Makes it the present frame; `direction` is where the next ones are likely wanted. */
static void go_to(MsuPlayer *self, gint64 frame, int direction) {
  frame = CLAMP(frame, 0, MAX(self->frames - 1, 0));
  msu_reel_want(self->reel, frame, direction, self->loop);
  gboolean changed = frame != self->frame;
  self->frame = frame;
  show_frame(self);
  if (!changed)
    return;
  update_times(self);
  update_controls(self);
  notify(self, PROP_FRAME);
}

/* ---- Sound: only at the clip's own speed, and unless it is muted. ---- */

static void update_sound(MsuPlayer *self) {
  gboolean muted = !gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->sound_button));
  gboolean heard =
      msu_clock_turns(self->clock) && self->speed == 1 && !muted && msu_reel_has_sound(self->reel);
  if (heard && !self->sound)
    self->sound = msu_sound_new(self->path);
  if (heard)
    msu_sound_play(self->sound, self->position);
  else if (self->sound)
    msu_sound_pause(self->sound);
}

static void sound_cb(MsuPlayer *self) {
  gboolean on = gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->sound_button));
  gtk_button_set_icon_name(GTK_BUTTON(self->sound_button),
                           on ? "audio-volume-high-symbolic" : "audio-volume-muted-symbolic");
  update_sound(self);
}

/* ---- The clock. ---- */

static void pass(gpointer data, double passed) {
  MsuPlayer *self = data;
  if (!self->frames || get_error(self))
    return;
  double position = self->position + passed * self->speed;
  double end = msu_reel_get_time(self->reel, self->frames);
  if (position >= end) {
    if (!self->loop) {
      go_to(self, self->frames - 1, 1);
      msu_player_set_playing(self, FALSE);
      return;
    }
    while (position >= end && end > 0)
      position -= end;
    self->position = position;
    update_sound(self);
  }
  gint64 frame = msu_reel_find(self->reel, position);
  /* The clip waits for a frame that is not decoded yet, rather than leave it out. */
  if (msu_video_paintable_get_frame(self->paintable) == frame) {
    self->position = position;
    return;
  }
  g_autoptr(GdkTexture) texture = msu_reel_peek(self->reel, frame);
  self->position = texture ? position : msu_reel_get_time(self->reel, frame);
  go_to(self, frame, 1);
}

static void reel_changed_cb(MsuReel *reel, MsuPlayer *self) {
  gint64 frames = msu_reel_get_frames(reel);
  const char *error = msu_reel_get_error(reel);
  if (error && !gtk_widget_get_visible(self->message)) {
    gtk_label_set_text(GTK_LABEL(self->message_label), error);
    gtk_widget_set_visible(self->message, TRUE);
    stop_poster(self);
    msu_video_paintable_set_texture(self->paintable, NULL, -1, 0, 0);
    update_controls(self);
    notify(self, PROP_ERROR);
  }
  if (frames != self->frames) {
    if (!self->frames) {
      gtk_widget_set_visible(self->sound_button, msu_reel_has_sound(reel));
      update_sound(self);
    }
    self->frames = frames;
    msu_scrubber_set_frames(MSU_SCRUBBER(self->scrubber), frames, msu_reel_get_time(reel, frames));
    if (self->frame >= frames && msu_reel_get_exact(reel))
      go_to(self, frames - 1, 1);
    update_times(self);
    update_controls(self);
    notify(self, PROP_FRAMES);
  }
  if (!msu_clock_turns(self->clock) || msu_video_paintable_get_frame(self->paintable) < 0)
    show_frame(self);
}

/* ---- Actions and keys. ---- */

static void step(MsuPlayer *self, gint64 by) {
  msu_player_set_frame(self, self->frame + by);
}

static void play_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  MsuPlayer *self = data;
  msu_player_set_playing(self, !self->playing);
}

static void back_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  step(data, -1);
}

static void on_cb(GSimpleAction *action, GVariant *parameter, gpointer data) {
  step(data, 1);
}

static void loop_cb(GSimpleAction *action, GVariant *state, gpointer data) {
  msu_player_set_loop(data, g_variant_get_boolean(state));
}

static void speed_cb(GSimpleAction *action, GVariant *state, gpointer data) {
  g_object_set(data, "speed", g_variant_get_double(state), NULL);
}

static void one_to_one_cb(GSimpleAction *action, GVariant *state, gpointer data) {
  msu_stage_set_one_to_one(MSU_STAGE(((MsuPlayer *)data)->stage), g_variant_get_boolean(state));
  g_simple_action_set_state(action, state);
}

static void set_full(MsuPlayer *self, gboolean full);

static void full_cb(GSimpleAction *action, GVariant *state, gpointer data) {
  set_full(data, g_variant_get_boolean(state));
}

static gboolean key_cb(GtkEventControllerKey *controller, guint key, guint code, GdkModifierType state,
                       MsuPlayer *self) {
  if (state & (GDK_CONTROL_MASK | GDK_ALT_MASK | GDK_SUPER_MASK) || !self->show_controls)
    return GDK_EVENT_PROPAGATE;
  gint64 by = state & GDK_SHIFT_MASK ? 10 : 1;
  switch (key) {
  case GDK_KEY_space:
    msu_player_set_playing(self, !self->playing);
    break;
  case GDK_KEY_Left:
    step(self, -by);
    break;
  case GDK_KEY_Right:
    step(self, by);
    break;
  case GDK_KEY_Home:
    msu_player_set_frame(self, 0);
    break;
  case GDK_KEY_End:
    msu_player_set_frame(self, self->frames - 1);
    break;
  case GDK_KEY_l:
  case GDK_KEY_L:
    msu_player_set_loop(self, !self->loop);
    break;
  case GDK_KEY_m:
  case GDK_KEY_M:
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(self->sound_button),
                                 !gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->sound_button)));
    break;
  case GDK_KEY_F11:
    set_full(self, !self->window);
    break;
  case GDK_KEY_Escape:
    if (!self->window)
      return GDK_EVENT_PROPAGATE;
    set_full(self, FALSE);
    break;
  default:
    return GDK_EVENT_PROPAGATE;
  }
  msu_fade_wake(self->fade);
  return GDK_EVENT_STOP;
}

static void pressed_cb(GtkGestureClick *gesture, int presses, double x, double y, MsuPlayer *self) {
  gtk_widget_grab_focus(self->body);
  if (presses == 2)
    set_full(self, !self->window);
}

static void scrub_cb(MsuPlayer *self, gint64 frame) {
  msu_player_set_frame(self, frame);
}

static void grabbed_cb(MsuPlayer *self) {
  self->play_on = self->playing;
}

static void released_cb(MsuPlayer *self) {
  if (self->play_on)
    msu_player_set_playing(self, TRUE);
  self->play_on = FALSE;
}

/* ---- Full screen: the body moves to a window of its own and back. ---- */

static gboolean close_request_cb(GtkWindow *window, MsuPlayer *self) {
  set_full(self, FALSE);
  return GDK_EVENT_STOP;
}

static void set_full(MsuPlayer *self, gboolean full) {
  if (full == !!self->window)
    return;
  g_autoptr(GtkWidget) body = g_object_ref(self->body);
  if (full) {
    GtkRoot *root = gtk_widget_get_root(GTK_WIDGET(self));
    self->window = gtk_window_new();
    gtk_widget_add_css_class(self->window, "player-window");
    gtk_widget_add_css_class(body, "full");
    g_autofree char *name = self->path ? g_filename_display_basename(self->path) : g_strdup(_("Clip"));
    gtk_window_set_title(GTK_WINDOW(self->window), name);
    if (GTK_IS_WINDOW(root)) {
      GdkSurface *surface = gtk_native_get_surface(GTK_NATIVE(root));
      GdkMonitor *monitor = gdk_display_get_monitor_at_surface(gdk_surface_get_display(surface), surface);
      GdkRectangle area = {.width = 1280, .height = 720};
      if (monitor)
        gdk_monitor_get_geometry(monitor, &area);
      /* For displays without a window manager, which nobody asks to fill the screen. */
      gtk_window_set_default_size(GTK_WINDOW(self->window), area.width, area.height);
      gtk_window_set_transient_for(GTK_WINDOW(self->window), GTK_WINDOW(root));
      gtk_window_set_application(GTK_WINDOW(self->window), gtk_window_get_application(GTK_WINDOW(root)));
    }
    g_signal_connect(self->window, "close-request", G_CALLBACK(close_request_cb), self);
    gtk_widget_unparent(body);
    gtk_window_set_child(GTK_WINDOW(self->window), body);
    gtk_window_fullscreen(GTK_WINDOW(self->window));
    gtk_window_present(GTK_WINDOW(self->window));
  } else {
    GtkWidget *window = g_steal_pointer(&self->window);
    gtk_window_set_child(GTK_WINDOW(window), NULL);
    gtk_widget_remove_css_class(body, "full");
    gtk_widget_set_parent(body, GTK_WIDGET(self));
    gtk_window_destroy(GTK_WINDOW(window));
  }
  /* Buttons lose sight of the actions while they have no window. */
  gtk_widget_insert_action_group(body, "player", NULL);
  gtk_widget_insert_action_group(body, "player", G_ACTION_GROUP(self->actions));
  gtk_button_set_icon_name(GTK_BUTTON(self->full_button),
                           full ? "view-restore-symbolic" : "view-fullscreen-symbolic");
  set_state(self, "full", g_variant_new_boolean(full));
  gtk_widget_grab_focus(body);
}

/* ---- The object. ---- */

static gboolean grab_focus(GtkWidget *widget) {
  return gtk_widget_grab_focus(MSU_PLAYER(widget)->body);
}

static void clear_reel(MsuPlayer *self) {
  stop_poster(self);
  if (self->reel)
    g_signal_handlers_disconnect_by_data(self->reel, self);
  g_clear_object(&self->reel);
  g_clear_pointer(&self->sound, msu_sound_free);
}

static void dispose(GObject *object) {
  MsuPlayer *self = MSU_PLAYER(object);
  if (self->window)
    set_full(self, FALSE);
  g_signal_handlers_disconnect_by_func(self, update_sound, NULL);
  g_clear_pointer(&self->clock, msu_clock_free);
  clear_reel(self);
  g_clear_object(&self->fade);
  if (self->body) {
    gtk_widget_insert_action_group(self->body, "player", NULL);
    msu_stage_set_paintable(MSU_STAGE(self->stage), NULL);
  }
  g_clear_pointer(&self->body, gtk_widget_unparent);
  g_clear_object(&self->actions);
  g_clear_object(&self->paintable);
  g_clear_pointer(&self->path, g_free);
  G_OBJECT_CLASS(msu_player_parent_class)->dispose(object);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsuPlayer *self = MSU_PLAYER(object);
  switch (id) {
  case PROP_PLAYING:
    g_value_set_boolean(value, self->playing);
    break;
  case PROP_LOOP:
    g_value_set_boolean(value, self->loop);
    break;
  case PROP_FRAME:
    g_value_set_int64(value, self->frame);
    break;
  case PROP_FRAMES:
    g_value_set_int64(value, self->frames);
    break;
  case PROP_SPEED:
    g_value_set_double(value, self->speed);
    break;
  case PROP_ERROR:
    g_value_set_string(value, get_error(self));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void set_speed(MsuPlayer *self, double speed) {
  if (speed == self->speed)
    return;
  self->speed = speed;
  g_autofree char *text = g_strdup_printf("%g×", speed);
  gtk_label_set_text(GTK_LABEL(self->speed_label), text);
  set_state(self, "speed", g_variant_new_double(speed));
  update_sound(self);
  notify(self, PROP_SPEED);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
  MsuPlayer *self = MSU_PLAYER(object);
  switch (id) {
  case PROP_PLAYING:
    msu_player_set_playing(self, g_value_get_boolean(value));
    break;
  case PROP_LOOP:
    msu_player_set_loop(self, g_value_get_boolean(value));
    break;
  case PROP_FRAME:
    msu_player_set_frame(self, g_value_get_int64(value));
    break;
  case PROP_SPEED:
    set_speed(self, g_value_get_double(value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msu_player_class_init(MsuPlayerClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  object_class->dispose = dispose;
  object_class->get_property = get_property;
  object_class->set_property = set_property;
  widget_class->grab_focus = grab_focus;
  GParamFlags reads = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  GParamFlags writes = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  properties[PROP_PLAYING] = g_param_spec_boolean("playing", NULL, NULL, FALSE, writes);
  properties[PROP_LOOP] = g_param_spec_boolean("loop", NULL, NULL, TRUE, writes);
  properties[PROP_FRAME] = g_param_spec_int64("frame", NULL, NULL, 0, G_MAXINT64, 0, writes);
  properties[PROP_FRAMES] = g_param_spec_int64("frames", NULL, NULL, 0, G_MAXINT64, 0, reads);
  properties[PROP_SPEED] = g_param_spec_double("speed", NULL, NULL, .25, 4, 1, writes);
  properties[PROP_ERROR] = g_param_spec_string("error", NULL, NULL, NULL, reads);
  g_object_class_install_properties(object_class, PROPS, properties);

  g_type_ensure(MSU_TYPE_STAGE);
  g_type_ensure(MSU_TYPE_SCRUBBER);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/player/msu-player.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, body);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, stage);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, message);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, message_label);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, controls);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, scrubber);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, times);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, play_button);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, speed_label);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, full_button);
  gtk_widget_class_bind_template_child(widget_class, MsuPlayer, sound_button);
  gtk_widget_class_bind_template_callback(widget_class, sound_cb);
  gtk_widget_class_bind_template_callback(widget_class, scrub_cb);
  gtk_widget_class_bind_template_callback(widget_class, grabbed_cb);
  gtk_widget_class_bind_template_callback(widget_class, released_cb);
}

static void msu_player_init(MsuPlayer *self) {
  static const GActionEntry actions[] = {
      {.name = "play", .activate = play_cb},
      {.name = "back", .activate = back_cb},
      {.name = "on", .activate = on_cb},
      {.name = "loop", .state = "true", .change_state = loop_cb},
      {.name = "speed", .parameter_type = "d", .state = "1.0", .change_state = speed_cb},
      {.name = "one-to-one", .state = "false", .change_state = one_to_one_cb},
      {.name = "full", .state = "false", .change_state = full_cb},
  };
  self->loop = self->show_controls = TRUE;
  self->speed = 1;
  gtk_widget_init_template(GTK_WIDGET(self));
  self->actions = g_simple_action_group_new();
  g_action_map_add_action_entries(G_ACTION_MAP(self->actions), actions, G_N_ELEMENTS(actions), self);
  gtk_widget_insert_action_group(self->body, "player", G_ACTION_GROUP(self->actions));
  self->paintable = msu_video_paintable_new();
  msu_stage_set_paintable(MSU_STAGE(self->stage), GDK_PAINTABLE(self->paintable));
  self->fade = msu_fade_new(self->body, self->controls);
  /* The stage goes along to full screen, and the frame clock of a window that is covered may rest. */
  self->clock = msu_clock_new(GTK_WIDGET(self), self->stage, pass, self);
  g_signal_connect_after(self, "map", G_CALLBACK(update_sound), NULL);
  g_signal_connect_after(self, "unmap", G_CALLBACK(update_sound), NULL);

  GtkEventController *keys = gtk_event_controller_key_new();
  g_signal_connect(keys, "key-pressed", G_CALLBACK(key_cb), self);
  gtk_widget_add_controller(self->body, keys);
  GtkGesture *click = gtk_gesture_click_new();
  g_signal_connect(click, "pressed", G_CALLBACK(pressed_cb), self);
  gtk_widget_add_controller(self->stage, GTK_EVENT_CONTROLLER(click));
  update_play_button(self);
  update_controls(self);
}

GtkWidget *msu_player_new(void) {
  return g_object_new(MSU_TYPE_PLAYER, NULL);
}

void msu_player_set_path(MsuPlayer *self, const char *path) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  gboolean failed = get_error(self) != NULL;
  clear_reel(self);
  g_autofree char *old = g_steal_pointer(&self->path);
  self->path = g_strdup(path);
  self->frames = self->frame = 0;
  self->position = 0;
  self->play_on = FALSE;
  msu_player_set_playing(self, FALSE);
  gtk_widget_set_visible(self->message, FALSE);
  msu_video_paintable_set_texture(self->paintable, NULL, -1, 0, 0);
  msu_scrubber_set_path(MSU_SCRUBBER(self->scrubber), path);
  if (path) {
    self->reel = msu_reel_new(path);
    self->poster = g_cancellable_new();
    msa_frames_load_async(path, POSTER_SIDE, 1, self->poster, poster_cb, g_object_ref(self));
    g_signal_connect_object(self->reel, "changed", G_CALLBACK(reel_changed_cb), self, 0);
  } else if (self->window)
    set_full(self, FALSE);
  update_times(self);
  update_controls(self);
  msu_fade_wake(self->fade);
  notify(self, PROP_FRAME);
  notify(self, PROP_FRAMES);
  if (failed)
    notify(self, PROP_ERROR);
}

const char *msu_player_get_path(MsuPlayer *self) {
  g_return_val_if_fail(MSU_IS_PLAYER(self), NULL);
  return self->path;
}

void msu_player_set_poster(MsuPlayer *self, MsaFrames *frames) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  stop_poster(self);
  if (!self->reel || get_error(self) || msu_video_paintable_get_frame(self->paintable) >= 0)
    return;
  g_autoptr(GdkTexture) texture = msu_frames_texture_new(frames, 0);
  msu_video_paintable_set_texture(self->paintable, texture, -1, frames->width, frames->height);
}

void msu_player_set_playing(MsuPlayer *self, gboolean playing) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  playing = !!playing;
  if (playing == self->playing)
    return;
  self->playing = playing;
  if (playing && self->reel) {
    /* From the start again after the end. */
    gboolean ended = !self->loop && self->frames > 0 && self->frame >= self->frames - 1;
    self->position = ended ? 0 : msu_reel_get_time(self->reel, self->frame);
    msu_reel_want(self->reel, ended ? 0 : self->frame, 1, self->loop);
  }
  msu_clock_set_running(self->clock, playing && self->reel);
  update_sound(self);
  update_play_button(self);
  notify(self, PROP_PLAYING);
}

void msu_player_set_loop(MsuPlayer *self, gboolean loop) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  loop = !!loop;
  if (loop == self->loop)
    return;
  self->loop = loop;
  set_state(self, "loop", g_variant_new_boolean(loop));
  notify(self, PROP_LOOP);
}

void msu_player_set_frame(MsuPlayer *self, gint64 frame) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  msu_player_set_playing(self, FALSE);
  if (self->reel && self->frames)
    go_to(self, frame, frame < self->frame ? -1 : 1);
}

gint64 msu_player_get_frame(MsuPlayer *self) {
  g_return_val_if_fail(MSU_IS_PLAYER(self), 0);
  return self->frame;
}

gint64 msu_player_get_frames(MsuPlayer *self) {
  g_return_val_if_fail(MSU_IS_PLAYER(self), 0);
  return self->frames;
}

void msu_player_set_controls(MsuPlayer *self, gboolean controls) {
  g_return_if_fail(MSU_IS_PLAYER(self));
  self->show_controls = !!controls;
  update_controls(self);
}

GdkPaintable *msu_player_get_paintable(MsuPlayer *self) {
  g_return_val_if_fail(MSU_IS_PLAYER(self), NULL);
  return GDK_PAINTABLE(self->paintable);
}
