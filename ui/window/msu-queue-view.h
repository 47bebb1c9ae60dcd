/* The queue in its popover: the running job, the rest in order, and the time until all of it is done. */
#pragma once
#include "msa-queue.h"
#include <gtk/gtk.h>

#define MSU_TYPE_QUEUE_VIEW (msu_queue_view_get_type())
G_DECLARE_FINAL_TYPE(MsuQueueView, msu_queue_view, MSU, QUEUE_VIEW, GtkWidget)

GtkWidget *msu_queue_view_new(MsaQueue *queue);
/* The job that a crash or the end of the last session interrupted: paused, at the head of a paused queue.
 * New reference or NULL. */
MsaJob *msu_queue_dup_interrupted(MsaQueue *queue);
