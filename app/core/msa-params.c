/* The two parameter structs as values, and as JSON by a table of their fields. */
#include "msa-params.h"

#include <glib/gi18n-lib.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "msa-error.h"

G_DEFINE_BOXED_TYPE(MsaGenerateParams, msa_generate_params, msa_generate_params_copy,
                    msa_generate_params_free)
G_DEFINE_BOXED_TYPE(MsaTrainParams, msa_train_params, msa_train_params_copy, msa_train_params_free)

enum field_kind { TEXT, INT, INT64, UINT64, REAL };

struct field {
  const char *key;
  size_t offset;
  enum field_kind kind;
  double least, most;  /* of numbers that are read */
  const char *choices; /* "|a|b|" for texts, NULL: any */
};

/* Whole numbers are exact in a double up to here, and the engine takes none above. */
#define WHOLE_MOST 9007199254740992.0

#define F(name) offsetof(MsaGenerateParams, name)
static const struct field generate_fields[] = {
    {"prompt", F(prompt), TEXT},
    {"negative", F(negative), TEXT},
    {"model", F(model), TEXT},
    {"width", F(width), INT, 0, 16384},
    {"height", F(height), INT, 0, 16384},
    {"frames", F(frames), INT, 0, 100000},
    {"steps", F(steps), INT, 0, 1000},
    {"fps", F(fps), REAL, 0, 1000},
    {"guidance", F(guidance), REAL, -1, 100},
    {"shift", F(shift), REAL, 0, 1000},
    {"seed", F(seed), INT64, -1, WHOLE_MOST},
    {"sampler", F(sampler), TEXT, .choices = "|euler|unipc|dpmpp|"},
    {"attention", F(attention), TEXT, .choices = "|dense|window|dsa|"},
    {"device", F(device), TEXT, .choices = "|cpu|cuda|"},
    {"host_memory", F(host_memory), UINT64, 0, WHOLE_MOST},
    {"threads", F(threads), INT, 0, 4096},
};
#undef F
#define F(name) offsetof(MsaTrainParams, name)
static const struct field train_fields[] = {
    {"name", F(name), TEXT},
    {"dataset", F(dataset), TEXT},
    {"model", F(model), TEXT},
    {"method", F(method), TEXT, .choices = "|full|offsets|lora|"},
    {"missing_caption", F(missing_caption), TEXT, .choices = "|error|empty|skip|"},
    {"sample_prompt", F(sample_prompt), TEXT},
    {"steps", F(steps), INT64, 1, 1e12},
    {"save_every", F(save_every), INT64, 0, 1e12},
    {"sample_every", F(sample_every), INT64, 0, 1e12},
    {"validate_every", F(validate_every), INT64, 0, 1e12},
    {"lr", F(lr), REAL, 0, 10},
    {"batch", F(batch), INT, 0, 4096},
    {"accumulate", F(accumulate), INT, 0, 4096},
    {"width", F(width), INT, 0, 16384},
    {"height", F(height), INT, 0, 16384},
    {"frames", F(frames), INT, 0, 100000},
    {"keep", F(keep), INT, 0, 100000},
    {"rank", F(rank), INT, 0, 4096},
    {"seed", F(seed), INT64, 0, WHOLE_MOST},
    {"host_memory", F(host_memory), UINT64, 0, WHOLE_MOST},
    {"threads", F(threads), INT, 0, 4096},
    {"moment_bits", F(moment_bits), INT, 0, 32},
};
#undef F

#define AT(base, field, type) (*(type *)(void *)((char *)(base) + (field)->offset))
#define AT_CONST(base, field, type) (*(type const *)(const void *)((const char *)(base) + (field)->offset))

static void free_texts(void *base, const struct field *fields, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fields[i].kind == TEXT)
      g_free(AT(base, &fields[i], char *));
}

/* After a copy of the whole struct: texts that both share become the copy's own. */
static void own_texts(void *base, const struct field *fields, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fields[i].kind == TEXT)
      AT(base, &fields[i], char *) = g_strdup(AT(base, &fields[i], char *));
}

static gboolean field_equal(const void *a, const void *b, const struct field *field) {
  switch (field->kind) {
  case TEXT:
    return g_strcmp0(AT_CONST(a, field, char *), AT_CONST(b, field, char *)) == 0;
  case INT:
    return AT_CONST(a, field, int) == AT_CONST(b, field, int);
  case INT64:
    return AT_CONST(a, field, gint64) == AT_CONST(b, field, gint64);
  case UINT64:
    return AT_CONST(a, field, guint64) == AT_CONST(b, field, guint64);
  case REAL:
    return AT_CONST(a, field, double) == AT_CONST(b, field, double);
  }
  return FALSE;
}

static json_t *field_json(const void *base, const struct field *field) {
  switch (field->kind) {
  case TEXT:
    return AT_CONST(base, field, char *) ? json_string(AT_CONST(base, field, char *)) : json_null();
  case INT:
    return json_integer(AT_CONST(base, field, int));
  case INT64:
    return json_integer(AT_CONST(base, field, gint64));
  case UINT64:
    return json_integer((json_int_t)AT_CONST(base, field, guint64));
  case REAL:
    return isfinite(AT_CONST(base, field, double)) ? json_real(AT_CONST(base, field, double)) : NULL;
  }
  return NULL;
}

/* Texts that are no UTF-8 and numbers that are not finite are left out. */
static char *write_fields(const void *base, const struct field *fields, size_t count) {
  json_t *root = json_object();
  for (size_t i = 0; i < count; i++) {
    json_t *value = field_json(base, &fields[i]);
    if (value)
      json_object_set_new(root, fields[i].key, value);
  }
  char *text = json_dumps(root, JSON_COMPACT), *own = g_strdup(text);
  free(text);
  json_decref(root);
  return own;
}

static gboolean refuse(GError **error, const char *key, const char *why) {
  g_set_error(error, MSA_ERROR, MSA_ERROR_INPUT, _("the settings cannot be used: \"%s\" %s"), key, why);
  return FALSE;
}

static gboolean is_choice(const char *choices, const char *text) {
  g_autofree char *barred = g_strdup_printf("|%s|", text);
  return !strchr(text, '|') && strstr(choices, barred);
}

static gboolean read_text(char **text, const struct field *field, const json_t *value, GError **error) {
  const char *read = json_string_value(value);
  if (!read)
    return refuse(error, field->key, _("is no text"));
  if (field->choices && *read && !is_choice(field->choices, read))
    return refuse(error, field->key, _("is none of the possible values"));
  g_free(*text);
  *text = field->choices && !*read ? NULL : g_strdup(read);
  return TRUE;
}

static gboolean read_field(void *base, const struct field *field, const json_t *value, GError **error) {
  if (field->kind == TEXT)
    return read_text(&AT(base, field, char *), field, value, error);
  if (!json_is_number(value) || (field->kind != REAL && !json_is_integer(value)))
    return refuse(error, field->key, field->kind == REAL ? _("is no number") : _("is no whole number"));
  const double number = json_number_value(value);
  if (!(number >= field->least && number <= field->most))
    return refuse(error, field->key, _("is out of range"));
  switch (field->kind) {
  case INT:
    AT(base, field, int) = (int)json_integer_value(value);
    break;
  case INT64:
    AT(base, field, gint64) = json_integer_value(value);
    break;
  case UINT64:
    AT(base, field, guint64) = (guint64)json_integer_value(value);
    break;
  default:
    AT(base, field, double) = number;
  }
  return TRUE;
}

/* A key that is missing or null keeps what base holds. */
static gboolean read_fields(void *base, const struct field *fields, size_t count, const char *json,
                            const char *required, GError **error) {
  json_t *root = json ? json_loads(json, JSON_REJECT_DUPLICATES, NULL) : NULL;
  gboolean good = json_is_object(root);
  if (!good) {
    g_set_error_literal(error, MSA_ERROR, MSA_ERROR_INPUT,
                        _("the settings cannot be used: they are no JSON object"));
  } else if (!json_is_string(json_object_get(root, required))) {
    good = refuse(error, required, _("is missing"));
  }
  for (size_t i = 0; i < count && good; i++) {
    const json_t *value = json_object_get(root, fields[i].key);
    if (value && !json_is_null(value))
      good = read_field(base, &fields[i], value, error);
  }
  json_decref(root);
  return good;
}

MsaGenerateParams *msa_generate_params_new(void) {
  MsaGenerateParams *params = g_new0(MsaGenerateParams, 1);
  params->guidance = -1;
  params->seed = -1;
  return params;
}

MsaGenerateParams *msa_generate_params_copy(const MsaGenerateParams *params) {
  if (!params)
    return NULL;
  MsaGenerateParams *copy = g_memdup2(params, sizeof *params);
  own_texts(copy, generate_fields, G_N_ELEMENTS(generate_fields));
  return copy;
}

void msa_generate_params_free(MsaGenerateParams *params) {
  if (!params)
    return;
  free_texts(params, generate_fields, G_N_ELEMENTS(generate_fields));
  g_free(params);
}

gboolean msa_generate_params_equal(const MsaGenerateParams *a, const MsaGenerateParams *b) {
  if (!a || !b)
    return a == b;
  for (size_t i = 0; i < G_N_ELEMENTS(generate_fields); i++)
    if (!field_equal(a, b, &generate_fields[i]))
      return FALSE;
  return TRUE;
}

char *msa_generate_params_to_json(const MsaGenerateParams *params) {
  return write_fields(params, generate_fields, G_N_ELEMENTS(generate_fields));
}

MsaGenerateParams *msa_generate_params_from_json(const char *json, GError **error) {
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  if (!read_fields(params, generate_fields, G_N_ELEMENTS(generate_fields), json, "prompt", error))
    return NULL;
  return g_steal_pointer(&params);
}

MsaTrainParams *msa_train_params_new(void) {
  MsaTrainParams *params = g_new0(MsaTrainParams, 1);
  params->method = g_strdup("full");
  params->missing_caption = g_strdup("error");
  params->steps = 1000;
  params->save_every = 100;
  params->validate_every = 50;
  return params;
}

MsaTrainParams *msa_train_params_copy(const MsaTrainParams *params) {
  if (!params)
    return NULL;
  MsaTrainParams *copy = g_memdup2(params, sizeof *params);
  own_texts(copy, train_fields, G_N_ELEMENTS(train_fields));
  return copy;
}

void msa_train_params_free(MsaTrainParams *params) {
  if (!params)
    return;
  free_texts(params, train_fields, G_N_ELEMENTS(train_fields));
  g_free(params);
}

char *msa_train_params_to_json(const MsaTrainParams *params) {
  return write_fields(params, train_fields, G_N_ELEMENTS(train_fields));
}

MsaTrainParams *msa_train_params_from_json(const char *json, GError **error) {
  g_autoptr(MsaTrainParams) params = msa_train_params_new();
  if (!read_fields(params, train_fields, G_N_ELEMENTS(train_fields), json, "dataset", error))
    return NULL;
  return g_steal_pointer(&params);
}
