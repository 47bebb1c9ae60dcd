/* The queue in the header: a ring that fills with the running job and says the time left; opens the queue. */
#pragma once
#include "msa-queue.h"
#include <gtk/gtk.h>

#define MSU_TYPE_QUEUE_BUTTON (msu_queue_button_get_type())
G_DECLARE_FINAL_TYPE(MsuQueueButton, msu_queue_button, MSU, QUEUE_BUTTON, GtkWidget)

GtkWidget *msu_queue_button_new(MsaQueue *queue);
void msu_queue_button_open(MsuQueueButton *button);
