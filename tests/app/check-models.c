/* Models: the list, import and removal, plans and verdicts. */
#include <glib/gstdio.h>
#include <string.h>

#include "core/rooms.h"
#include "harness.h"
#include "msa-error.h"
#include "room.h"

static struct msa_studio_folders *folders;

static gboolean has_models(gpointer data) {
  return g_list_model_get_n_items(data) > 0;
}

static MsaModel *first(MsaModels *models) {
  g_autoptr(MsaModel) model = g_list_model_get_item(G_LIST_MODEL(models), 0);
  return model; /* the list holds it */
}

static void check_starter(MsaModels *models) {
  check_ok(room_until(has_models, models, 10), "the models are found");
  MsaModel *starter = first(models);
  check_ok(!strcmp(msa_model_get_name(starter), "starter") && !msa_model_get_own(starter) &&
               msa_models_find(models, "starter") == starter && !msa_models_find(models, "nobody"),
           "the starter is the first of them");
  check_ok(g_strv_length((char **)msa_model_get_examples(starter)) >= 3 &&
               g_strv_contains(msa_model_get_sizes(starter), "192x128") &&
               strstr(msa_model_get_card(starter), "What it knows") && *msa_model_get_license(starter),
           "with examples, sizes, card and licence");
  check_ok(msa_model_get_width(starter) == 192 && msa_model_get_frames(starter) == 33 &&
               msa_model_get_fps(starter) == 12 && msa_model_get_guidance(starter) == 2 &&
               msa_model_get_bytes(starter) > 1000000 && msa_model_get_parameters(starter) > 1000000,
           "and its numbers");
}

static gboolean import(MsaModels *models, const char *from, GCancellable *cancellable, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_models_import_async(models, from, NULL, NULL, cancellable, room_done, &result);
  return msa_models_import_finish(models, room_wait(&result), error);
}

static gboolean has_two(gpointer data) {
  return g_list_model_get_n_items(data) == 2;
}

static gboolean has_three(gpointer data) {
  return g_list_model_get_n_items(data) == 3;
}

static gboolean has_none(gpointer data) {
  return g_list_model_get_n_items(data) == 0;
}

static gboolean has_one(gpointer data) {
  return g_list_model_get_n_items(data) == 1;
}

static void copy(const char *from, const char *to, gsize most) {
  g_autofree char *data = NULL;
  gsize size;
  if (g_file_get_contents(from, &data, &size, NULL))
    g_file_set_contents(to, data, (gssize)MIN(size, most), NULL);
}

/* The starter, with one file cut off. */
static char *damaged(void) {
  static const char *const files[] = {"model.json", "dit.safetensors", "codec.safetensors",
                                      "text.safetensors"};
  char *folder = room_path("damaged");
  g_mkdir(folder, 0700);
  for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autofree char *from = g_build_filename(SOURCE_DATA "/models/starter", files[i], NULL),
                    *to = g_build_filename(folder, files[i], NULL);
    copy(from, to, i == 2 ? 1000000 : G_MAXINT);
  }
  return folder;
}

static void check_import(MsaModels *models) {
  g_autofree char *broken = damaged(), *text = room_path("words.txt"), *nowhere = room_path("nowhere"),
                  *mine = g_build_filename(folders->models, "starter-2", NULL);
  g_autoptr(GError) a = NULL, b = NULL, c = NULL, d = NULL, e = NULL;
  g_autoptr(GCancellable) cancellable = g_cancellable_new();
  gboolean good = import(models, broken, NULL, &a);
  check_ok(!good && a && room_count(folders->models) == 0, "a damaged model leaves nothing: %s",
           a ? a->message : "");
  room_write(text, "words");
  good = import(models, text, NULL, &b);
  check_ok(!good && b && room_count(folders->models) == 0, "a file that is no model: %s",
           b ? b->message : "");
  good = import(models, nowhere, NULL, &c);
  check_ok(!good && c, "what is not there: %s", c ? c->message : "");
  g_cancellable_cancel(cancellable);
  good = import(models, SOURCE_DATA "/models/starter", cancellable, &d);
  check_ok(!good && g_error_matches(d, G_IO_ERROR, G_IO_ERROR_CANCELLED) && room_count(folders->models) == 0,
           "one that is cancelled leaves nothing: %s", d ? d->message : "it was done");
  good = import(models, SOURCE_DATA "/models/starter/model.json", NULL, &e);
  check_ok(good && room_exists(mine), "a good one is copied, also by one of its files, under a free name %s",
           e ? e->message : "");
  check_ok(room_until(has_two, models, 10), "and is listed");
  MsaModel *copy = msa_models_find(models, "starter-2");
  check_ok(copy && msa_model_get_own(copy) && *msa_model_get_card(copy) &&
               !strcmp(msa_model_get_folder(copy), mine),
           "as one of the person's own, with its card");
}

static void check_remove(MsaModels *models) {
  g_autoptr(MsaModel) copy = msa_models_find(models, "starter-2");
  g_autoptr(GAsyncResult) a = NULL, b = NULL, c = NULL;
  g_autoptr(GError) error = NULL, refused = NULL;
  if (!copy)
    return;
  g_object_ref(copy);
  msa_models_remove_async(models, first(models), room_done, &a);
  g_autofree char *none = msa_models_remove_finish(models, room_wait(&a), &refused);
  check_ok(!none && refused, "the starter cannot be removed: %s", refused ? refused->message : "");
  msa_models_remove_async(models, copy, room_done, &b);
  g_autofree char *location = msa_models_remove_finish(models, room_wait(&b), &error);
  check_ok(location && !room_exists(msa_model_get_folder(copy)) && room_until(has_one, models, 10),
           "an own one goes to the trash %s", error ? error->message : "");
  if (!location)
    return;
  msa_models_restore_async(models, location, msa_model_get_folder(copy), room_done, &c);
  const gboolean back = msa_models_restore_finish(models, room_wait(&c), &error);
  check_ok(back && room_until(has_two, models, 10) && msa_models_find(models, "starter-2"),
           "and comes back %s", error ? error->message : "");
}

static MsaPlan *plan(MsaPlanner *planner, const MsaGenerateParams *params, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_planner_generate_async(planner, params, room_done, &result);
  return msa_planner_finish(planner, room_wait(&result), error);
}

static gboolean is_ready(gpointer data) {
  gboolean ready;
  g_object_get(data, "ready", &ready, NULL);
  return ready;
}

static gboolean has_time(gpointer data) {
  return strstr(msa_model_get_verdict(data), "about") != NULL;
}

static void check_plans(MsaPlanner *planner, MsaModels *models) {
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  g_autoptr(GError) error = NULL;
  g_autofree char *cached = g_build_filename(folders->cache, "rates.json", NULL);
  params->prompt = g_strdup("a ball");
  g_autoptr(MsaPlan) early = plan(planner, params, &error);
  check_ok(early && early->fits && early->host_bytes > 0 && early->tokens > 0,
           "a plan before the rates are known: %s", error ? error->message : "fits");
  check_ok(early && (early->seconds < 0 || is_ready(planner)), "does not make up a time");
  check_ok(early && early->width == 192 && early->height == 128 && early->frames == 33 && early->steps == 24,
           "it fills in what the model would choose");
  check_ok(room_until(is_ready, planner, 200), "the rates are measured");
  check_ok(room_exists(cached), "and kept");
  g_autoptr(MsaPlan) timed = plan(planner, params, NULL);
  check_ok(timed && timed->seconds > 0.05 && timed->seconds < 600 && timed->seconds_per_step > 0,
           "now a plan has a time: %.1f s", timed ? timed->seconds : 0);
  check_ok(room_until(has_time, first(models), 10) && msa_model_get_fits(first(models)),
           "so has the verdict: %s", msa_model_get_verdict(first(models)));

  params->width = 1920;
  params->height = 1080;
  params->frames = 257;
  params->host_memory = (guint64)1 << 30;
  g_autoptr(MsaPlan) large = plan(planner, params, NULL);
  check_ok(large && !large->fits && large->sentence && large->host_bytes > large->host_budget,
           "what does not fit: %s", large && large->sentence ? large->sentence : "fits");
  for (guint i = 0; large && i < large->suggestions->len; i++) {
    const MsaPlanSuggestion *suggestion = large->suggestions->pdata[i];
    g_autoptr(MsaPlan) smaller = suggestion->generate ? plan(planner, suggestion->generate, NULL) : NULL;
    check_ok(smaller && smaller->fits && !suggestion->train, "\"%s\" does", suggestion->label);
  }
  check_ok(large && large->suggestions->len > 0, "something near is named");
  g_free(params->model);
  params->model = g_strdup("nobody");
  g_autoptr(MsaPlan) none = plan(planner, params, &error);
  check_ok(!none && error && strstr(error->message, "nobody"), "a model that is not here: %s",
           error ? error->message : "");
}

static void check_newest(MsaPlanner *planner) {
  enum { ASKED = 30 };
  GAsyncResult *results[ASKED] = {NULL}, *training = NULL;
  int planned = 0, dropped = 0;
  gboolean last = FALSE;
  for (int i = 0; i < ASKED; i++) {
    g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
    params->prompt = g_strdup("a ball");
    params->frames = 5 + i;
    msa_planner_generate_async(planner, params, room_done, &results[i]);
  }
  g_autoptr(MsaTrainParams) train = msa_train_params_new();
  g_free(train->dataset);
  train->dataset = g_strdup("/nowhere");
  train->steps = 100;
  msa_planner_train_async(planner, train, room_done, &training);
  for (int i = 0; i < ASKED; i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MsaPlan) found = msa_planner_finish(planner, room_wait(&results[i]), &error);
    planned += found != NULL;
    dropped += g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    last = found && found->frames == 5 + i;
    g_object_unref(results[i]);
  }
  check_ok(planned + dropped == ASKED && planned <= 3 && last,
           "of %d requests at once %d are planned, the last one too", ASKED, planned);
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaPlan) found = msa_planner_finish(planner, room_wait(&training), &error);
  check_ok(found && found->seconds > 0 && found->seconds_per_step > 0 && found->host_bytes > 0,
           "a training run is planned beside them: %.0f s %s", found ? found->seconds : 0,
           error ? error->message : "");
  g_object_unref(training);
}

static void check_trained(MsaModels *models) {
  static const char *const files[] = {"model.json", "codec.safetensors", "text.safetensors",
                                      "dit.safetensors"};
  g_autofree char *run = g_build_filename(folders->runs, "mine", NULL);
  const guint before = g_list_model_get_n_items(G_LIST_MODEL(models));
  g_mkdir_with_parents(run, 0700);
  for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autofree char *from = g_build_filename(SOURCE_DATA "/models/starter", files[i], NULL),
                    *to = g_build_filename(run, files[i], NULL);
    copy(from, to, G_MAXINT);
    msa_models_reload(models);
    if (i < 3)
      room_until(has_none, models, 0.3);
    check_ok(i == 3 || g_list_model_get_n_items(G_LIST_MODEL(models)) == before,
             "a run whose %s was written is %s", files[i], i < 3 ? "no model yet" : "a model");
  }
  check_ok(room_until(has_three, models, 10), "and is listed");
  MsaModel *model = msa_models_find(models, run);
  check_ok(model && msa_model_get_trained(model) && !msa_model_get_own(model) &&
               !strcmp(msa_model_get_reference(model), run) && !strcmp(msa_model_get_name(model), "mine"),
           "under its name, called by its folder");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  folders = msa_studio_folders_new();
  MsaModels *models = msa_models_new(folders);
  MsaPlanner *planner = msa_planner_new(folders, models);
  check_starter(models);
  check_plans(planner, models);
  check_newest(planner);
  check_import(models);
  check_remove(models);
  check_trained(models);
  g_object_unref(planner);
  g_object_unref(models);
  msa_studio_folders_free(folders);
  return room_end();
}
