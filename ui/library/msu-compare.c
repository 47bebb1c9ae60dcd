#include "library/msu-compare.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "library/msu-compare-stage.h"
#include "player/msu-reel.h"
#include "player/msu-scrubber.h"
#include "player/msu-video-paintable.h"
#include "widgets/msu-clock.h"

struct _MsuCompare {
  GtkWidget parent_instance;
  GtkWidget *box, *area, *stage, *differs, *wipe, *left_tag, *right_tag, *error, *play_button, *scrubber,
      *times;
  MsaClip *clips[2];
  MsuReel *reels[2];
  MsuVideoPaintable *paintables[2];
  gint64 frames, frame; /* frames: of the longer one; the other stays on its last */
  double position;
  gboolean playing, flipped;
  struct msu_clock *clock;
};

enum { PROP_0, PROP_FRAME, PROP_PLAYING, PROP_WIPE, PROPS };
static GParamSpec *properties[PROPS];
enum { CLOSED, SIGNALS };
static guint signals[SIGNALS];

G_DEFINE_FINAL_TYPE(MsuCompare, msu_compare, GTK_TYPE_WIDGET)

static void set_playing(MsuCompare *self, gboolean playing);

/* The longer clip gives the times. */
static MsuReel *clock_reel(MsuCompare *self) {
  gint64 left = msu_reel_get_frames(self->reels[0]), right = msu_reel_get_frames(self->reels[1]);
  return self->reels[right > left];
}

static gint64 frame_of(MsuCompare *self, int which, gint64 frame) {
  return MIN(frame, MAX(msu_reel_get_frames(self->reels[which]) - 1, 0));
}

/* Both pictures change at once, or neither. */
static gboolean show_frame(MsuCompare *self, gint64 frame) {
  g_autoptr(GdkTexture) left = msu_reel_peek(self->reels[0], frame_of(self, 0, frame));
  g_autoptr(GdkTexture) right = msu_reel_peek(self->reels[1], frame_of(self, 1, frame));
  GdkTexture *both[2] = {left, right};
  if (!left || !right)
    return FALSE;
  for (int i = 0; i < 2; i++)
    msu_video_paintable_set_texture(self->paintables[i], both[i], frame, msu_reel_get_width(self->reels[i]),
                                    msu_reel_get_height(self->reels[i]));
  return TRUE;
}

static void update_times(MsuCompare *self) {
  g_autofree char *text = NULL;
  if (self->frames) {
    double seconds = msu_reel_get_time(clock_reel(self), self->frame);
    text = g_strdup_printf(_("%.2f s  ·  %" PRId64 " of %" PRId64), seconds, self->frame + 1, self->frames);
  }
  gtk_label_set_text(GTK_LABEL(self->times), text ? text : "");
  msu_scrubber_set_frame(MSU_SCRUBBER(self->scrubber), self->frame);
}

static void go_to(MsuCompare *self, gint64 frame, int direction) {
  frame = CLAMP(frame, 0, MAX(self->frames - 1, 0));
  for (int i = 0; i < 2; i++)
    msu_reel_want(self->reels[i], frame_of(self, i, frame), direction, self->playing);
  show_frame(self, frame);
  if (frame == self->frame)
    return;
  self->frame = frame;
  update_times(self);
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_FRAME]);
}

static void pause_at(MsuCompare *self, gint64 frame) {
  set_playing(self, FALSE);
  if (self->frames)
    go_to(self, frame, frame < self->frame ? -1 : 1);
}

static void pass(gpointer data, double passed) {
  MsuCompare *self = data;
  if (!self->frames)
    return;
  MsuReel *reel = clock_reel(self);
  double end = msu_reel_get_time(reel, self->frames), position = self->position + passed;
  while (position >= end && end > 0)
    position -= end;
  gint64 frame = msu_reel_find(reel, position);
  if (msu_compare_get_shown(self) == frame) {
    self->position = position;
    return;
  }
  go_to(self, frame, 1);
  /* As the player: the clock waits for frames, here for those of both. */
  self->position = msu_compare_get_shown(self) == frame ? position : msu_reel_get_time(reel, frame);
}

static void update_play_button(MsuCompare *self) {
  const char *label = self->playing ? _("Pause both") : _("Play both");
  g_autofree char *tip = g_strdup_printf(_("%s (P)"), label);
  gtk_button_set_icon_name(GTK_BUTTON(self->play_button),
                           self->playing ? "media-playback-pause-symbolic" : "media-playback-start-symbolic");
  gtk_widget_set_tooltip_text(self->play_button, tip);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->play_button), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
}

static void set_playing(MsuCompare *self, gboolean playing) {
  if (playing == self->playing)
    return;
  self->playing = playing;
  if (playing && self->frames)
    self->position = msu_reel_get_time(clock_reel(self), self->frame);
  msu_clock_set_running(self->clock, playing && self->reels[0]);
  update_play_button(self);
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_PLAYING]);
}

static void reel_changed_cb(MsuReel *reel, MsuCompare *self) {
  const char *error = msu_reel_get_error(reel);
  if (error) {
    gtk_label_set_text(GTK_LABEL(self->error), error);
    gtk_widget_set_visible(self->error, TRUE);
  }
  gint64 left = msu_reel_get_frames(self->reels[0]), right = msu_reel_get_frames(self->reels[1]);
  gint64 frames = left && right ? MAX(left, right) : 0;
  if (frames != self->frames) {
    self->frames = frames;
    msu_scrubber_set_frames(MSU_SCRUBBER(self->scrubber), frames,
                            frames ? msu_reel_get_time(clock_reel(self), frames) : 0);
    update_times(self);
  }
  if (frames && msu_compare_get_shown(self) < 0)
    show_frame(self, self->frame);
  else if (frames && !msu_clock_turns(self->clock) && msu_compare_get_shown(self) != self->frame)
    show_frame(self, self->frame);
}

/* ---- What differs. ---- */

static const char *title_of(MsaClip *clip) {
  const char *prompt = msa_clip_get_prompt(clip);
  return prompt && *prompt ? prompt : _("Clip without a prompt");
}

static void add_text(GString *line, const char *name, const char *left, const char *right) {
  if (g_strcmp0(left, right) != 0)
    g_string_append_printf(line, _("%s%s: %s and %s"), line->len ? ",  " : "", name,
                           left ? left : _("default"), right ? right : _("default"));
}

static void add_number(GString *line, const char *name, double left, double right) {
  if (left != right)
    g_string_append_printf(line, _("%s%s: %.10g and %.10g"), line->len ? ",  " : "", name, left, right);
}

static void update_differs(MsuCompare *self) {
  MsaClip *left = self->clips[0], *right = self->clips[1];
  const MsaGenerateParams *a = msa_clip_get_params(left), *b = msa_clip_get_params(right);
  g_autoptr(GString) line = g_string_new(NULL);
  add_text(line, _("Model"), msa_clip_get_model(left), msa_clip_get_model(right));
  add_number(line, _("Width"), msa_clip_get_width(left), msa_clip_get_width(right));
  add_number(line, _("Height"), msa_clip_get_height(left), msa_clip_get_height(right));
  add_number(line, _("Frames"), msa_clip_get_frames(left), msa_clip_get_frames(right));
  if (a && b) {
    add_number(line, _("Seed"), (double)a->seed, (double)b->seed);
    add_number(line, _("Steps"), a->steps, b->steps);
    add_number(line, _("Guidance"), a->guidance, b->guidance);
    add_number(line, _("Shift"), a->shift, b->shift);
    add_text(line, _("Sampler"), a->sampler, b->sampler);
    add_text(line, _("Attention"), a->attention, b->attention);
  }
  if (!line->len)
    g_string_append(line, g_strcmp0(title_of(left), title_of(right)) ? _("The prompts differ")
                                                                     : _("Made with the same settings"));
  gtk_label_set_text(GTK_LABEL(self->differs), line->str);
  gtk_widget_set_tooltip_text(self->differs, line->str);
}

static void update_tags(MsuCompare *self) {
  if (!self->clips[0])
    return;
  gtk_label_set_text(GTK_LABEL(self->left_tag), title_of(self->clips[self->flipped]));
  gtk_label_set_text(GTK_LABEL(self->right_tag), title_of(self->clips[!self->flipped]));
}

/* ---- Input. ---- */

static void set_flipped(MsuCompare *self, gboolean flipped) {
  self->flipped = flipped;
  msu_compare_stage_set_flipped(MSU_COMPARE_STAGE(self->stage), flipped);
  update_tags(self);
}

static void close_cb(MsuCompare *self) {
  g_signal_emit(self, signals[CLOSED], 0);
}

static void wipe_cb(MsuCompare *self) {
  gboolean wipe = gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->wipe));
  msu_compare_stage_set_wipe(MSU_COMPARE_STAGE(self->stage), wipe);
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_WIPE]);
}

static void play_cb(MsuCompare *self) {
  set_playing(self, !self->playing);
}

static void back_cb(MsuCompare *self) {
  pause_at(self, self->frame - 1);
}

static void on_cb(MsuCompare *self) {
  pause_at(self, self->frame + 1);
}

static void scrub_cb(MsuCompare *self, gint64 frame) {
  pause_at(self, frame);
}

static gboolean key_cb(GtkEventControllerKey *controller, guint key, guint code, GdkModifierType state,
                       MsuCompare *self) {
  if (state & (GDK_CONTROL_MASK | GDK_ALT_MASK | GDK_SUPER_MASK))
    return GDK_EVENT_PROPAGATE;
  gint64 by = state & GDK_SHIFT_MASK ? 10 : 1;
  switch (key) {
  case GDK_KEY_space:
    set_flipped(self, TRUE);
    return GDK_EVENT_STOP;
  case GDK_KEY_Left:
    pause_at(self, self->frame - by);
    return GDK_EVENT_STOP;
  case GDK_KEY_Right:
    pause_at(self, self->frame + by);
    return GDK_EVENT_STOP;
  case GDK_KEY_Home:
    pause_at(self, 0);
    return GDK_EVENT_STOP;
  case GDK_KEY_End:
    pause_at(self, self->frames - 1);
    return GDK_EVENT_STOP;
  case GDK_KEY_p:
  case GDK_KEY_P:
    set_playing(self, !self->playing);
    return GDK_EVENT_STOP;
  case GDK_KEY_comma:
    msu_compare_stage_move(MSU_COMPARE_STAGE(self->stage), -.02);
    return GDK_EVENT_STOP;
  case GDK_KEY_period:
    msu_compare_stage_move(MSU_COMPARE_STAGE(self->stage), .02);
    return GDK_EVENT_STOP;
  case GDK_KEY_Escape:
    close_cb(self);
    return GDK_EVENT_STOP;
  default:
    return GDK_EVENT_PROPAGATE;
  }
}

static void key_released_cb(GtkEventControllerKey *controller, guint key, guint code, GdkModifierType state,
                            MsuCompare *self) {
  if (key == GDK_KEY_space)
    set_flipped(self, FALSE);
}

static void focus_left_cb(MsuCompare *self) {
  set_flipped(self, FALSE);
}

static void pressed_cb(MsuCompare *self) {
  gtk_widget_grab_focus(self->area);
}

/* ---- The object. ---- */

static gboolean grab_focus(GtkWidget *widget) {
  return gtk_widget_grab_focus(MSU_COMPARE(widget)->area);
}

static void clear(MsuCompare *self) {
  for (int i = 0; i < 2; i++) {
    if (self->reels[i])
      g_signal_handlers_disconnect_by_data(self->reels[i], self);
    g_clear_object(&self->reels[i]);
    g_clear_object(&self->clips[i]);
  }
  self->frames = self->frame = 0;
  self->position = 0;
}

static void dispose(GObject *object) {
  MsuCompare *self = MSU_COMPARE(object);
  clear(self);
  g_clear_pointer(&self->clock, msu_clock_free);
  g_clear_pointer(&self->box, gtk_widget_unparent);
  for (int i = 0; i < 2; i++)
    g_clear_object(&self->paintables[i]);
  G_OBJECT_CLASS(msu_compare_parent_class)->dispose(object);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsuCompare *self = MSU_COMPARE(object);
  if (id == PROP_FRAME)
    g_value_set_int64(value, self->frame);
  else if (id == PROP_PLAYING)
    g_value_set_boolean(value, self->playing);
  else if (id == PROP_WIPE)
    g_value_set_boolean(value, gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(self->wipe)));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
  MsuCompare *self = MSU_COMPARE(object);
  if (id == PROP_FRAME)
    pause_at(self, g_value_get_int64(value));
  else if (id == PROP_PLAYING)
    set_playing(self, g_value_get_boolean(value));
  else if (id == PROP_WIPE)
    gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(self->wipe), g_value_get_boolean(value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void msu_compare_class_init(MsuCompareClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  object_class->dispose = dispose;
  object_class->get_property = get_property;
  object_class->set_property = set_property;
  widget_class->grab_focus = grab_focus;
  GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  properties[PROP_FRAME] = g_param_spec_int64("frame", NULL, NULL, 0, G_MAXINT64, 0, flags);
  properties[PROP_PLAYING] = g_param_spec_boolean("playing", NULL, NULL, FALSE, flags);
  properties[PROP_WIPE] = g_param_spec_boolean("wipe", NULL, NULL, FALSE, flags);
  g_object_class_install_properties(object_class, PROPS, properties);
  signals[CLOSED] =
      g_signal_new("closed", MSU_TYPE_COMPARE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);

  g_type_ensure(MSU_TYPE_COMPARE_STAGE);
  g_type_ensure(MSU_TYPE_SCRUBBER);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/library/msu-compare.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, box);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, area);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, stage);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, differs);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, wipe);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, left_tag);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, right_tag);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, error);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, play_button);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, scrubber);
  gtk_widget_class_bind_template_child(widget_class, MsuCompare, times);
  gtk_widget_class_bind_template_callback(widget_class, close_cb);
  gtk_widget_class_bind_template_callback(widget_class, wipe_cb);
  gtk_widget_class_bind_template_callback(widget_class, play_cb);
  gtk_widget_class_bind_template_callback(widget_class, back_cb);
  gtk_widget_class_bind_template_callback(widget_class, on_cb);
  gtk_widget_class_bind_template_callback(widget_class, scrub_cb);
}

static void msu_compare_init(MsuCompare *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  self->clock = msu_clock_new(GTK_WIDGET(self), GTK_WIDGET(self), pass, self);
  for (int i = 0; i < 2; i++)
    self->paintables[i] = msu_video_paintable_new();
  msu_compare_stage_set_paintables(MSU_COMPARE_STAGE(self->stage), GDK_PAINTABLE(self->paintables[0]),
                                   GDK_PAINTABLE(self->paintables[1]));
  GtkEventController *keys = gtk_event_controller_key_new();
  g_signal_connect(keys, "key-pressed", G_CALLBACK(key_cb), self);
  g_signal_connect(keys, "key-released", G_CALLBACK(key_released_cb), self);
  gtk_widget_add_controller(self->area, keys);
  GtkEventController *focus = gtk_event_controller_focus_new();
  g_signal_connect_swapped(focus, "leave", G_CALLBACK(focus_left_cb), self);
  gtk_widget_add_controller(self->area, focus);
  GtkGesture *click = gtk_gesture_click_new();
  g_signal_connect_swapped(click, "pressed", G_CALLBACK(pressed_cb), self);
  gtk_widget_add_controller(self->stage, GTK_EVENT_CONTROLLER(click));
  update_play_button(self);
}

GtkWidget *msu_compare_new(void) {
  return g_object_new(MSU_TYPE_COMPARE, NULL);
}

void msu_compare_set_clips(MsuCompare *self, MsaClip *left, MsaClip *right) {
  g_return_if_fail(MSU_IS_COMPARE(self));
  g_return_if_fail(!left == !right);
  MsaClip *both[2] = {left, right};
  set_playing(self, FALSE);
  clear(self);
  set_flipped(self, FALSE);
  gtk_widget_set_visible(self->error, FALSE);
  msu_scrubber_set_path(MSU_SCRUBBER(self->scrubber), NULL);
  for (int i = 0; i < 2; i++) {
    msu_video_paintable_set_texture(self->paintables[i], NULL, -1, 0, 0);
    if (!both[i])
      continue;
    self->clips[i] = g_object_ref(both[i]);
    self->reels[i] = msu_reel_new(msa_clip_get_path(both[i]));
  }
  update_times(self);
  if (!left)
    return;
  for (int i = 0; i < 2; i++)
    g_signal_connect_object(self->reels[i], "changed", G_CALLBACK(reel_changed_cb), self, 0);
  update_differs(self);
  update_tags(self);
  set_playing(self, TRUE);
}

gint64 msu_compare_get_shown(MsuCompare *self) {
  g_return_val_if_fail(MSU_IS_COMPARE(self), -1);
  gint64 left = msu_video_paintable_get_frame(self->paintables[0]);
  return left == msu_video_paintable_get_frame(self->paintables[1]) ? left : -1;
}
