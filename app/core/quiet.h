/* Work that takes long, on a thread of its own that the window does not feel; inside the app only. */
#pragma once
#include <gio/gio.h>

/* Lowers the calling thread's priority for good, that of threads which it starts included. Above the engine's
 * jobs, below the window. */
void msa_be_quiet(void);
/* As g_task_run_in_thread, but quietly and not on the shared pool, where short tasks would wait behind it. */
void msa_task_run_quietly(GTask *task, GTaskThreadFunc function);
