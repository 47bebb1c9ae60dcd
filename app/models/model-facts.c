/* Reading model folders. */
#include <jansson.h>
#include <string.h>

#include "core/folders.h"
#include "core/main-thread.h"
#include "models/models-private.h"
#include "ms-models.h"

#define CARD_MAX ((gsize)1 << 20)

void msa_model_facts_free(struct msa_model_facts *facts) {
  g_free(facts->name);
  g_free(facts->folder);
  g_free(facts->family);
  g_free(facts->license);
  g_free(facts->card);
  g_strfreev(facts->examples);
  g_strfreev(facts->sizes);
  g_free(facts);
}

gboolean msa_model_facts_equal(const struct msa_model_facts *a, const struct msa_model_facts *b) {
  return !strcmp(a->name, b->name) && !strcmp(a->folder, b->folder) && !strcmp(a->family, b->family) &&
         !strcmp(a->license, b->license) && !strcmp(a->card, b->card) &&
         g_strv_equal((const char *const *)a->examples, (const char *const *)b->examples) &&
         g_strv_equal((const char *const *)a->sizes, (const char *const *)b->sizes) &&
         a->parameters == b->parameters && a->bytes == b->bytes && a->width == b->width &&
         a->height == b->height && a->frames == b->frames && a->steps == b->steps && a->fps == b->fps &&
         a->guidance == b->guidance && a->own == b->own && a->trained == b->trained;
}

/* The file as text, "" if there is none. */
static char *read_card(const char *folder) {
  g_autofree char *path = g_build_filename(folder, "README.md", NULL);
  g_autofree char *text = NULL;
  gsize length;
  if (!g_file_get_contents(path, &text, &length, NULL))
    return g_strdup("");
  return g_utf8_make_valid(text, (gssize)MIN(length, CARD_MAX));
}

static char **read_examples(const json_t *root) {
  GStrvBuilder *list = g_strv_builder_new();
  const json_t *examples = json_object_get(root, "examples"), *value;
  size_t i;
  json_array_foreach(examples, i, value) {
    const char *text = json_string_value(value);
    if (text && *text)
      g_strv_builder_add(list, text);
  }
  char **found = g_strv_builder_end(list);
  g_strv_builder_unref(list);
  return found;
}

static char **read_sizes(const json_t *root) {
  GStrvBuilder *list = g_strv_builder_new();
  const json_t *sizes = json_object_get(root, "sizes"), *value;
  size_t i;
  json_array_foreach(sizes, i, value) {
    const json_int_t width = json_integer_value(json_array_get(value, 0)),
                     height = json_integer_value(json_array_get(value, 1));
    if (width > 0 && height > 0) {
      g_autofree char *text = g_strdup_printf("%dx%d", (int)width, (int)height);
      g_strv_builder_add(list, text);
    }
  }
  char **found = g_strv_builder_end(list);
  g_strv_builder_unref(list);
  return found;
}

struct listing {
  GPtrArray *facts;
  gboolean own, trained;
};

/* A run's folder has its description first and its weights last. */
static gboolean is_whole(const char *folder) {
  static const char *const files[] = {"dit.safetensors", "codec.safetensors", "text.safetensors"};
  for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autofree char *path = g_build_filename(folder, files[i], NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
      return FALSE;
  }
  return TRUE;
}

static void found_cb(void *data, const struct ms_model_info *info) {
  const struct listing *listing = data;
  if (listing->trained && !is_whole(info->folder))
    return;
  struct msa_model_facts *facts = g_new0(struct msa_model_facts, 1);
  json_t *root = json_loads(info->json, 0, NULL);
  const json_t *guidance = json_object_get(json_object_get(root, "sampling"), "guidance");
  /* the folder's name is what a job may call it by; the one in its file may be another model's too */
  facts->name = g_path_get_basename(info->folder);
  facts->folder = g_strdup(info->folder);
  facts->family = g_utf8_make_valid(info->family, -1);
  facts->license = g_utf8_make_valid(info->license, -1);
  facts->card = read_card(info->folder);
  facts->examples = read_examples(root);
  facts->sizes = read_sizes(root);
  facts->parameters = info->parameters;
  facts->bytes = info->bytes;
  facts->width = info->width;
  facts->height = info->height;
  facts->frames = info->frames;
  facts->steps = info->steps;
  facts->fps = info->fps;
  facts->guidance = json_is_number(guidance) ? json_number_value(guidance) : 2; /* as the engine */
  facts->own = listing->own;
  facts->trained = listing->trained;
  json_decref(root);
  g_ptr_array_add(listing->facts, facts);
}

GPtrArray *msa_model_facts_list(const char *own_folder, const char *runs_folder) {
  GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)msa_model_facts_free);
  struct listing listing = {.facts = list};
  char data[4096];
  MSA_ASSERT_OFF_MAIN();
  g_autofree char *shipped = g_build_filename(msa_data_folder(data, sizeof data), "models", NULL);
  ms_models_list(shipped, found_cb, &listing);
  for (guint i = 1; i < list->len; i++) {
    const struct msa_model_facts *facts = list->pdata[i];
    if (!strcmp(facts->name, "starter"))
      g_ptr_array_insert(list, 0, g_ptr_array_steal_index(list, i));
  }
  listing.own = TRUE;
  ms_models_list(own_folder, found_cb, &listing);
  listing.own = FALSE;
  listing.trained = TRUE;
  ms_models_list(runs_folder, found_cb, &listing);
  return list;
}
