/* What would spoil the first clip, found before it is made; inside the app only. */
#pragma once
#include "core/studio-folders.h"

/* Sentences, NULL-terminated, empty if all is well; g_strfreev. Looks at the disk: not on the main thread. */
char **msa_probe(const struct msa_studio_folders *folders);
