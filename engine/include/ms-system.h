/* Time and memory as the operating system tells them. Linux: clock_gettime, /proc/self/status, /proc/meminfo.
 */
#pragma once
#include <stddef.h>

double ms_seconds(void);         /* monotonic */
size_t ms_memory_peak(void);     /* VmHWM of this process in bytes, 0 if unknown */
size_t ms_memory_resident(void); /* VmRSS: what it holds now */
size_t
ms_memory_available(void); /* MemAvailable, or the control group's limit if that is less; 0 if unknown */
/* "1.50 GiB", "320 MiB", "12 KiB" or "100 B" into text (at least 32 bytes); returns text. */
const char *ms_format_bytes(double bytes, char *text, size_t size);
