/* Plans off the main thread, of which only the newest counts; and the machine's rates, measured once. */
#include "msa-planner.h"

#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <stdatomic.h>

#include "core/main-thread.h"
#include "core/quiet.h"
#include "models/models-private.h"
#include "models/plan-work.h"

/* What workers share with the planner, and outlives it if they do. */
struct bench {
  gatomicrefcount references;
  atomic_int cancel;
  char *cache, *user_models, *runs;
  GWeakRef planner;
  GMutex lock; /* guards what follows */
  struct ms_rates rates;
  gboolean measured;
};

/* Requests of one kind. */
struct slot {
  gboolean busy;
  GTask *waiting;
};

struct _MsaPlanner {
  GObject parent;
  struct bench *bench;
  MsaModels *models;
  gboolean ready;
  struct slot clips, trainings;
  guint verdicts; /* number of the last round of verdicts */
};

enum { PROP_READY = 1, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsaPlanner, msa_planner, G_TYPE_OBJECT)

static struct bench *bench_ref(struct bench *bench) {
  g_atomic_ref_count_inc(&bench->references);
  return bench;
}

static void bench_unref(gpointer data) {
  struct bench *bench = data;
  if (!g_atomic_ref_count_dec(&bench->references))
    return;
  g_free(bench->cache);
  g_free(bench->user_models);
  g_free(bench->runs);
  g_weak_ref_clear(&bench->planner);
  g_mutex_clear(&bench->lock);
  g_free(bench);
}

static void place_of(struct bench *bench, struct msa_plan_place *place) {
  g_mutex_lock(&bench->lock);
  place->rates = bench->rates;
  place->measured = bench->measured;
  g_mutex_unlock(&bench->lock);
  place->user_models = bench->user_models;
  place->runs = bench->runs;
}

static void msa_planner_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  if (id == PROP_READY)
    g_value_set_boolean(value, MSA_PLANNER(object)->ready);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void msa_planner_dispose(GObject *object) {
  MsaPlanner *planner = MSA_PLANNER(object);
  if (planner->bench)
    atomic_store(&planner->bench->cancel, 1);
  g_clear_pointer(&planner->bench, bench_unref);
  g_clear_object(&planner->models);
  G_OBJECT_CLASS(msa_planner_parent_class)->dispose(object);
}

static void msa_planner_class_init(MsaPlannerClass *class) {
  G_OBJECT_CLASS(class)->get_property = msa_planner_get_property;
  G_OBJECT_CLASS(class)->dispose = msa_planner_dispose;
  properties[PROP_READY] =
      g_param_spec_boolean("ready", NULL, NULL, FALSE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties(G_OBJECT_CLASS(class), PROPS, properties);
}

static void msa_planner_init(MsaPlanner *planner) {
}

/* Verdicts: a plan of each model's own default clip. */
struct verdicts {
  struct bench *bench;
  GPtrArray *models; /* of MsaModel; their facts never change */
  GPtrArray *plans;  /* of MsaPlan or NULL, in the same order */
};

static void verdicts_free(gpointer data) {
  struct verdicts *verdicts = data;
  bench_unref(verdicts->bench);
  g_ptr_array_unref(verdicts->models);
  g_ptr_array_unref(verdicts->plans);
  g_free(verdicts);
}

static void plan_free(gpointer data) {
  if (data)
    msa_plan_free(data);
}

static void verdicts_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct verdicts *verdicts = data;
  struct msa_plan_place place;
  place_of(verdicts->bench, &place);
  for (guint i = 0; i < verdicts->models->len; i++) {
    g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
    g_free(params->model);
    params->model = g_strdup(msa_model_get_facts(verdicts->models->pdata[i])->folder);
    g_ptr_array_add(verdicts->plans, msa_plan_clip(&place, params, NULL));
  }
  g_task_return_boolean(task, TRUE);
}

static void verdicts_cb(GObject *source, GAsyncResult *result, gpointer data) {
  const struct verdicts *verdicts = g_task_get_task_data(G_TASK(result));
  if (GPOINTER_TO_UINT(data) != MSA_PLANNER(source)->verdicts)
    return;
  for (guint i = 0; i < verdicts->plans->len; i++) {
    const MsaPlan *plan = verdicts->plans->pdata[i];
    g_autofree char *words =
        plan ? msa_plan_verdict(plan) : g_strdup(_("Cannot be used: its files are damaged"));
    msa_model_set_verdict(verdicts->models->pdata[i], words, plan && plan->fits);
  }
}

static void give_verdicts(MsaPlanner *planner) {
  GListModel *list = G_LIST_MODEL(planner->models);
  g_autoptr(GTask) task = g_task_new(planner, NULL, verdicts_cb, GUINT_TO_POINTER(++planner->verdicts));
  struct verdicts *verdicts = g_new0(struct verdicts, 1);
  verdicts->bench = bench_ref(planner->bench);
  verdicts->models = g_ptr_array_new_with_free_func(g_object_unref);
  verdicts->plans = g_ptr_array_new_with_free_func(plan_free);
  for (guint i = 0; i < g_list_model_get_n_items(list); i++)
    g_ptr_array_add(verdicts->models, g_list_model_get_item(list, i));
  g_task_set_task_data(task, verdicts, verdicts_free);
  g_task_run_in_thread(task, verdicts_work);
}

static void models_changed_cb(GListModel *list, guint position, guint removed, guint added,
                              MsaPlanner *planner) {
  if (planner->bench)
    give_verdicts(planner);
}

/* The rates. */
static gboolean measured_cb(gpointer data) {
  struct bench *bench = data;
  g_autoptr(MsaPlanner) planner = g_weak_ref_get(&bench->planner);
  if (planner && planner->bench) {
    planner->ready = TRUE;
    g_object_notify_by_pspec(G_OBJECT(planner), properties[PROP_READY]);
    give_verdicts(planner);
  }
  return G_SOURCE_REMOVE;
}

static gpointer measure_thread(gpointer data) {
  struct bench *bench = data;
  const struct ms_machine machine = {0};
  const struct ms_hooks hooks = {.cancel = &bench->cancel};
  g_autofree char *path = g_build_filename(bench->cache, "rates.json", NULL);
  struct ms_rates rates;
  msa_be_quiet();
  int code = ms_rates_load(&rates, path, &machine, NULL);
  if (code < 0) {
    const char *folder = g_mkdir_with_parents(bench->cache, 0777) == 0 ? bench->cache : g_get_tmp_dir();
    code = ms_rates_measure(&rates, &machine, folder, &hooks, NULL);
    if (code == 0)
      ms_rates_save(&rates, path, NULL); /* if it cannot be kept, the next start measures again */
  }
  if (code == 0) {
    g_mutex_lock(&bench->lock);
    bench->rates = rates;
    bench->measured = TRUE;
    g_mutex_unlock(&bench->lock);
    g_main_context_invoke_full(NULL, G_PRIORITY_DEFAULT, measured_cb, bench_ref(bench), bench_unref);
  }
  bench_unref(bench);
  return NULL;
}

MsaPlanner *msa_planner_new(const struct msa_studio_folders *folders, MsaModels *models) {
  MsaPlanner *planner = g_object_new(MSA_TYPE_PLANNER, NULL);
  struct bench *bench = planner->bench = g_new0(struct bench, 1);
  MSA_ASSERT_MAIN();
  g_atomic_ref_count_init(&bench->references);
  g_mutex_init(&bench->lock);
  g_weak_ref_init(&bench->planner, planner);
  bench->cache = g_strdup(folders->cache);
  bench->user_models = g_strdup(folders->models);
  bench->runs = g_strdup(folders->runs);
  msa_rates_stand_in(&bench->rates);
  planner->models = g_object_ref(models);
  g_signal_connect_object(models, "items-changed", G_CALLBACK(models_changed_cb), planner, 0);
  give_verdicts(planner);
  g_thread_unref(g_thread_new("rates", measure_thread, bench_ref(bench)));
  return planner;
}

/* Requests. */
struct request {
  struct bench *bench;
  struct slot *slot;
  MsaGenerateParams *generate; /* one of the two */
  MsaTrainParams *train;
};

static void request_free(gpointer data) {
  struct request *request = data;
  bench_unref(request->bench);
  g_clear_pointer(&request->generate, msa_generate_params_free);
  g_clear_pointer(&request->train, msa_train_params_free);
  g_free(request);
}

static void request_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct request *request = g_task_get_task_data(data);
  struct msa_plan_place place;
  GError *error = NULL;
  place_of(request->bench, &place);
  MsaPlan *plan = request->generate ? msa_plan_clip(&place, request->generate, &error)
                                    : msa_plan_training(&place, request->train, &error);
  if (plan)
    g_task_return_pointer(task, plan, plan_free);
  else
    g_task_return_error(task, error);
}

static void start(MsaPlanner *planner, GTask *task);

static void planned_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  struct slot *slot = ((struct request *)g_task_get_task_data(task))->slot;
  GError *error = NULL;
  MsaPlan *plan = g_task_propagate_pointer(G_TASK(result), &error);
  slot->busy = FALSE;
  if (slot->waiting)
    start(MSA_PLANNER(source), g_steal_pointer(&slot->waiting));
  if (plan)
    g_task_return_pointer(task, plan, plan_free);
  else
    g_task_return_error(task, error);
}

/* Takes the task. */
static void start(MsaPlanner *planner, GTask *task) {
  struct slot *slot = ((struct request *)g_task_get_task_data(task))->slot;
  g_autoptr(GTask) work = g_task_new(planner, NULL, planned_cb, task);
  g_task_set_task_data(work, g_object_ref(task), g_object_unref);
  slot->busy = TRUE;
  g_task_run_in_thread(work, request_work);
}

static void ask(MsaPlanner *planner, struct slot *slot, MsaGenerateParams *generate, MsaTrainParams *train,
                GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(planner, NULL, callback, data), *older;
  struct request *request = g_new0(struct request, 1);
  MSA_ASSERT_MAIN();
  request->bench = bench_ref(planner->bench);
  request->slot = slot;
  request->generate = generate;
  request->train = train;
  g_task_set_source_tag(task, ask);
  g_task_set_task_data(task, request, request_free);
  if (!slot->busy) {
    start(planner, task);
    return;
  }
  older = g_steal_pointer(&slot->waiting);
  slot->waiting = task;
  if (older) {
    g_task_return_new_error(older, G_IO_ERROR, G_IO_ERROR_CANCELLED, _("A newer plan was asked for."));
    g_object_unref(older);
  }
}

void msa_planner_generate_async(MsaPlanner *planner, const MsaGenerateParams *params,
                                GAsyncReadyCallback callback, gpointer data) {
  ask(planner, &planner->clips, msa_generate_params_copy(params), NULL, callback, data);
}

void msa_planner_train_async(MsaPlanner *planner, const MsaTrainParams *params, GAsyncReadyCallback callback,
                             gpointer data) {
  ask(planner, &planner->trainings, NULL, msa_train_params_copy(params), callback, data);
}

/* For the queue: any number at once, none drives out another. */
static void estimate_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  request_work(task, source, task, cancellable);
}

void msa_planner_estimate_async(MsaPlanner *planner, const MsaGenerateParams *generate,
                                const MsaTrainParams *train, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(planner, NULL, callback, data);
  struct request *request = g_new0(struct request, 1);
  MSA_ASSERT_MAIN();
  request->bench = bench_ref(planner->bench);
  request->generate = msa_generate_params_copy(generate);
  request->train = msa_train_params_copy(train);
  g_task_set_source_tag(task, msa_planner_estimate_async);
  g_task_set_task_data(task, request, request_free);
  g_task_run_in_thread(task, estimate_work);
}

double msa_planner_estimate_finish(GAsyncResult *result) {
  g_autoptr(MsaPlan) plan = g_task_propagate_pointer(G_TASK(result), NULL);
  return plan ? plan->seconds : -1;
}

MsaPlan *msa_planner_finish(MsaPlanner *planner, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, ask), NULL);
  return g_task_propagate_pointer(G_TASK(result), error);
}
