/* Numbers as a person reads them, for the sentences that the app makes; inside the app only. Translated,
 * newly allocated. */
#pragma once
#include <glib.h>

/* "640 KB", "1.1 GB"; powers of 1024, as everywhere in the program. */
char *msa_words_bytes(guint64 bytes);
/* "6 s", "12 min", "1 h 12 min"; at least a second. */
char *msa_words_seconds(double seconds);
