/* What the engine alone asks of the operating system, beside its front door. */
#pragma once
#include "ms-system.h"

/* Gives freed memory back to the system where the C library keeps it: after work that allocated a lot once,
 * such as decoding video with several threads. */
void ms_memory_trim(void);
