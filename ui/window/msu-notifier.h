/* Tells through the desktop when a job that took more than 30 s ends while the window is not in front. */
#pragma once
#include "msa-queue.h"

#define MSU_TYPE_NOTIFIER (msu_notifier_get_type())
G_DECLARE_FINAL_TYPE(MsuNotifier, msu_notifier, MSU, NOTIFIER, GObject)

/* The application gives the window and carries the notification; it is borrowed and must live longer. */
MsuNotifier *msu_notifier_new(GApplication *application, MsaQueue *queue);
