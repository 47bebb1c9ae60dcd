#include "core/bridge.h"

struct msa_bridge {
  gatomicrefcount references;
  GCancellable *cancellable;
  gulong cancelled_handler;
  atomic_int cancel;
  MsaExportProgress progress;
  gpointer data;
  GMainContext *context;
  GMutex lock; /* guards what follows */
  gboolean pending;
  double fraction, seconds_left;
};

static void cancelled_cb(GCancellable *cancellable, struct msa_bridge *bridge) {
  atomic_store(&bridge->cancel, 1);
}

struct msa_bridge *msa_bridge_new(GCancellable *cancellable, MsaExportProgress progress, gpointer data) {
  struct msa_bridge *bridge = g_new0(struct msa_bridge, 1);
  g_atomic_ref_count_init(&bridge->references);
  g_mutex_init(&bridge->lock);
  bridge->progress = progress;
  bridge->data = data;
  bridge->context = g_main_context_ref_thread_default();
  if (cancellable) {
    bridge->cancellable = g_object_ref(cancellable);
    bridge->cancelled_handler = g_cancellable_connect(cancellable, G_CALLBACK(cancelled_cb), bridge, NULL);
  }
  return bridge;
}

void msa_bridge_unref(struct msa_bridge *bridge) {
  if (!g_atomic_ref_count_dec(&bridge->references))
    return;
  if (bridge->cancellable)
    g_cancellable_disconnect(bridge->cancellable, bridge->cancelled_handler);
  g_clear_object(&bridge->cancellable);
  g_main_context_unref(bridge->context);
  g_mutex_clear(&bridge->lock);
  g_free(bridge);
}

const atomic_int *msa_bridge_cancel(const struct msa_bridge *bridge) {
  return &bridge->cancel;
}

static gboolean carry_cb(gpointer data) {
  struct msa_bridge *bridge = data;
  g_mutex_lock(&bridge->lock);
  const double fraction = bridge->fraction, seconds_left = bridge->seconds_left;
  bridge->pending = FALSE;
  g_mutex_unlock(&bridge->lock);
  bridge->progress(fraction, seconds_left, bridge->data);
  return G_SOURCE_REMOVE;
}

void msa_bridge_tell(struct msa_bridge *bridge, double fraction, double seconds_left) {
  if (!bridge->progress)
    return;
  g_mutex_lock(&bridge->lock);
  const gboolean was_pending = bridge->pending;
  bridge->fraction = fraction;
  bridge->seconds_left = seconds_left;
  bridge->pending = TRUE;
  g_mutex_unlock(&bridge->lock);
  if (was_pending)
    return;
  g_atomic_ref_count_inc(&bridge->references);
  g_autoptr(GSource) source = g_idle_source_new();
  g_source_set_priority(source, G_PRIORITY_DEFAULT); /* of a task's end, so that it never comes after that */
  g_source_set_callback(source, carry_cb, bridge, (GDestroyNotify)msa_bridge_unref);
  g_source_attach(source, bridge->context);
}
