/* Names of files from sentences; inside the app only. */
#pragma once

/* "A red ball, rolling" -> "a-red-ball-rolling": letters and digits of any script, at most about `most`
 * bytes; `otherwise` if none is left. g_free. */
char *msa_slug(const char *sentence, unsigned most, const char *otherwise);
