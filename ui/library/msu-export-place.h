/* Where an export goes: a name that is not taken, in the person's folder of videos unless another is
 * chosen. */
#pragma once
#include <gio/gio.h>

/* folder NULL: videos, made if it is not there. extension NULL: a folder of files. Looks on a worker. */
void msu_export_place_async(const char *folder, const char *name, const char *extension,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data);
/* The full path; free it. */
char *msu_export_place_finish(GAsyncResult *result, GError **error);
