/* What the Studio remembers about a person's taste.
 *
 * The program also runs where its schema is not installed: beside its build it finds the compiled one there,
 * and without any it keeps to the defaults, which is why the settings may be NULL. Main thread. */
#pragma once
#include <gio/gio.h>

/* New reference, or NULL without a schema. Keys: data/desktop/org.megaslide.Studio.gschema.xml. */
GSettings *msu_settings_open(void);
/* Bytes that a job may use, 0: the program's choice. For MsaGenerateParams and MsaTrainParams. */
guint64 msu_settings_host_memory(void);
/* Threads that a job may use, 0: all. */
int msu_settings_threads(void);
/* The folder of the build if this program lies in it, else NULL. Static. */
const char *msu_settings_build_folder(void);
