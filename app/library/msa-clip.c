/* A row of the store as an object. */
#include "library/clip-private.h"

struct _MsaClip {
  GObject parent;
  struct msa_clip_row *row;
  MsaGenerateParams *params; /* read from the row's settings when first asked for */
  gboolean read, missing;
  char *trashed;
};

enum { PROP_ID = 1, PROP_PATH, PROP_PROMPT, PROP_STARRED, PROP_MISSING, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsaClip, msa_clip, G_TYPE_OBJECT)

static void msa_clip_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaClip *clip = MSA_CLIP(object);
  switch (id) {
  case PROP_ID:
    g_value_set_int64(value, clip->row->id);
    break;
  case PROP_PATH:
    g_value_set_string(value, clip->row->path);
    break;
  case PROP_PROMPT:
    g_value_set_string(value, msa_clip_get_prompt(clip));
    break;
  case PROP_STARRED:
    g_value_set_boolean(value, clip->row->starred);
    break;
  case PROP_MISSING:
    g_value_set_boolean(value, clip->missing);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_clip_finalize(GObject *object) {
  MsaClip *clip = MSA_CLIP(object);
  msa_clip_row_free(clip->row);
  g_clear_pointer(&clip->params, msa_generate_params_free);
  g_free(clip->trashed);
  G_OBJECT_CLASS(msa_clip_parent_class)->finalize(object);
}

static void msa_clip_class_init(MsaClipClass *class) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  G_OBJECT_CLASS(class)->get_property = msa_clip_get_property;
  G_OBJECT_CLASS(class)->finalize = msa_clip_finalize;
  properties[PROP_ID] = g_param_spec_int64("id", NULL, NULL, G_MININT64, G_MAXINT64, 0, flags);
  properties[PROP_PATH] = g_param_spec_string("path", NULL, NULL, NULL, flags);
  properties[PROP_PROMPT] = g_param_spec_string("prompt", NULL, NULL, NULL, flags);
  properties[PROP_STARRED] = g_param_spec_boolean("starred", NULL, NULL, FALSE, flags);
  properties[PROP_MISSING] = g_param_spec_boolean("missing", NULL, NULL, FALSE, flags);
  g_object_class_install_properties(G_OBJECT_CLASS(class), PROPS, properties);
}

static void msa_clip_init(MsaClip *clip) {
}

MsaClip *msa_clip_new(const struct msa_clip_row *row) {
  MsaClip *clip = g_object_new(MSA_TYPE_CLIP, NULL);
  clip->row = msa_clip_row_copy(row);
  return clip;
}

gint64 msa_clip_get_id(MsaClip *clip) {
  return clip->row->id;
}

const char *msa_clip_get_path(MsaClip *clip) {
  return clip->row->path;
}

const char *msa_clip_get_prompt(MsaClip *clip) {
  return clip->row->prompt ? clip->row->prompt : "";
}

const char *msa_clip_get_model(MsaClip *clip) {
  return clip->row->model ? clip->row->model : "";
}

const char *msa_clip_get_kind(MsaClip *clip) {
  return clip->row->kind ? clip->row->kind : "";
}

gint64 msa_clip_get_created(MsaClip *clip) {
  return clip->row->created;
}

double msa_clip_get_seconds(MsaClip *clip) {
  return clip->row->seconds;
}

guint64 msa_clip_get_bytes(MsaClip *clip) {
  return clip->row->bytes;
}

int msa_clip_get_width(MsaClip *clip) {
  return clip->row->width;
}

int msa_clip_get_height(MsaClip *clip) {
  return clip->row->height;
}

int msa_clip_get_frames(MsaClip *clip) {
  return clip->row->frames;
}

double msa_clip_get_fps(MsaClip *clip) {
  return clip->row->fps;
}

gboolean msa_clip_get_starred(MsaClip *clip) {
  return clip->row->starred;
}

gboolean msa_clip_get_missing(MsaClip *clip) {
  return clip->missing;
}

const MsaGenerateParams *msa_clip_get_params(MsaClip *clip) {
  if (!clip->read && clip->row->params)
    clip->params = msa_generate_params_from_json(clip->row->params, NULL);
  clip->read = TRUE;
  return clip->params;
}

void msa_clip_set_starred(MsaClip *clip, gboolean starred) {
  if (clip->row->starred == !!starred)
    return;
  clip->row->starred = !!starred;
  g_object_notify_by_pspec(G_OBJECT(clip), properties[PROP_STARRED]);
}

void msa_clip_set_missing(MsaClip *clip, gboolean missing) {
  if (clip->missing == !!missing)
    return;
  clip->missing = !!missing;
  g_object_notify_by_pspec(G_OBJECT(clip), properties[PROP_MISSING]);
}

const char *msa_clip_get_trashed(MsaClip *clip) {
  return clip->trashed;
}

void msa_clip_set_trashed(MsaClip *clip, const char *location) {
  g_free(clip->trashed);
  clip->trashed = g_strdup(location);
}
