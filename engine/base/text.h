/* Text for people. */
#pragma once
#include <stddef.h>

/* A name that may hold any bytes, such as a file's, as one that can be printed: what would move a terminal's
 * cursor is written as \n or \x1b. Into text (size bytes, cut off where it is longer); returns text. */
const char *ms_text_printable(const char *name, char *text, size_t size);
