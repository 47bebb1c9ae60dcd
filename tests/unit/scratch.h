/* A folder of its own for the files of one test program, removed at its end. */
#pragma once
#include <stddef.h>

void scratch_begin(void);                   /* makes the folder, or ends the program with status 99 */
const char *scratch_path(const char *name); /* FOLDER/name; valid for the next seven calls */
void scratch_put(const char *name, const void *data, size_t size);
int scratch_exists(const char *name);
int scratch_count(void); /* files in the folder */
void scratch_end(void);  /* removes folder and files */
