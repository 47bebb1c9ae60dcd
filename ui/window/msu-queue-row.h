/* A job in the queue's popover: preview, title, what it does, and the buttons that its state allows. Waiting
 * rows are dragged to another place, or moved with Alt+Up and Alt+Down. */
#pragma once
#include "msa-queue.h"
#include <gtk/gtk.h>

#define MSU_TYPE_QUEUE_ROW (msu_queue_row_get_type())
G_DECLARE_FINAL_TYPE(MsuQueueRow, msu_queue_row, MSU, QUEUE_ROW, GtkListBoxRow)

GtkWidget *msu_queue_row_new(MsaQueue *queue, MsaJob *job);
