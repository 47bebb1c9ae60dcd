#include "models/models-private.h"

struct _MsaModel {
  GObject parent;
  struct msa_model_facts *facts;
  char *verdict; /* "" until the planner has looked */
  gboolean fits;
};

enum { PROP_NAME = 1, PROP_VERDICT, PROP_FITS, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsaModel, msa_model, G_TYPE_OBJECT)

static void msa_model_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaModel *model = MSA_MODEL(object);
  switch (id) {
  case PROP_NAME:
    g_value_set_string(value, model->facts->name);
    break;
  case PROP_VERDICT:
    g_value_set_string(value, model->verdict);
    break;
  case PROP_FITS:
    g_value_set_boolean(value, model->fits);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_model_finalize(GObject *object) {
  MsaModel *model = MSA_MODEL(object);
  msa_model_facts_free(model->facts);
  g_free(model->verdict);
  G_OBJECT_CLASS(msa_model_parent_class)->finalize(object);
}

static void msa_model_class_init(MsaModelClass *class) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  G_OBJECT_CLASS(class)->get_property = msa_model_get_property;
  G_OBJECT_CLASS(class)->finalize = msa_model_finalize;
  properties[PROP_NAME] = g_param_spec_string("name", NULL, NULL, NULL, flags);
  properties[PROP_VERDICT] = g_param_spec_string("verdict", NULL, NULL, "", flags);
  properties[PROP_FITS] = g_param_spec_boolean("fits", NULL, NULL, TRUE, flags);
  g_object_class_install_properties(G_OBJECT_CLASS(class), PROPS, properties);
}

static void msa_model_init(MsaModel *model) {
  model->verdict = g_strdup("");
  model->fits = TRUE;
}

MsaModel *msa_model_new(struct msa_model_facts *facts) {
  MsaModel *model = g_object_new(MSA_TYPE_MODEL, NULL);
  model->facts = facts;
  return model;
}

const struct msa_model_facts *msa_model_get_facts(MsaModel *model) {
  return model->facts;
}

void msa_model_set_verdict(MsaModel *model, const char *verdict, gboolean fits) {
  if (g_strcmp0(model->verdict, verdict)) {
    g_free(model->verdict);
    model->verdict = g_strdup(verdict);
    g_object_notify_by_pspec(G_OBJECT(model), properties[PROP_VERDICT]);
  }
  if (model->fits != !!fits) {
    model->fits = !!fits;
    g_object_notify_by_pspec(G_OBJECT(model), properties[PROP_FITS]);
  }
}

const char *msa_model_get_name(MsaModel *model) {
  return model->facts->name;
}

const char *msa_model_get_folder(MsaModel *model) {
  return model->facts->folder;
}

const char *msa_model_get_family(MsaModel *model) {
  return model->facts->family;
}

const char *msa_model_get_license(MsaModel *model) {
  return model->facts->license;
}

const char *msa_model_get_card(MsaModel *model) {
  return model->facts->card;
}

gint64 msa_model_get_parameters(MsaModel *model) {
  return model->facts->parameters;
}

guint64 msa_model_get_bytes(MsaModel *model) {
  return model->facts->bytes;
}

int msa_model_get_width(MsaModel *model) {
  return model->facts->width;
}

int msa_model_get_height(MsaModel *model) {
  return model->facts->height;
}

int msa_model_get_frames(MsaModel *model) {
  return model->facts->frames;
}

int msa_model_get_steps(MsaModel *model) {
  return model->facts->steps;
}

double msa_model_get_fps(MsaModel *model) {
  return model->facts->fps;
}

double msa_model_get_guidance(MsaModel *model) {
  return model->facts->guidance;
}

const char *msa_model_get_verdict(MsaModel *model) {
  return model->verdict;
}

gboolean msa_model_get_fits(MsaModel *model) {
  return model->fits;
}

gboolean msa_model_get_own(MsaModel *model) {
  return model->facts->own;
}

gboolean msa_model_get_trained(MsaModel *model) {
  return model->facts->trained;
}

const char *msa_model_get_reference(MsaModel *model) {
  return model->facts->trained ? model->facts->folder : model->facts->name;
}

const char *const *msa_model_get_examples(MsaModel *model) {
  return (const char *const *)model->facts->examples;
}

const char *const *msa_model_get_sizes(MsaModel *model) {
  return (const char *const *)model->facts->sizes;
}
