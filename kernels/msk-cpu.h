/* Which instruction sets the processor (and the operating system) offers.
 *
 * A mask restricts them: tests run every set, `--reference` runs none. Each family has an
 * `msk_<family>_init (ops, flags)` that first sets every slot to the C version and then climbs. */
#pragma once
#include <stddef.h>

enum msk_cpu_flag {
  MSK_CPU_AVX2 = 1 << 0,       /* AVX2 and FMA */
  MSK_CPU_AVX512 = 1 << 1,     /* AVX-512 F, BW, DQ, VL */
  MSK_CPU_AVX512BF16 = 1 << 2, /* vdpbf16ps, vcvtneps2bf16 */
  MSK_CPU_AMX = 1 << 3,        /* AMX tiles with bf16; permission is asked of the kernel by msk_cpu_detect */
};

/* The flags of this processor. Asks Linux for permission to use AMX tiles (once per process is enough, again
 * is harmless); threads started afterwards inherit it. Thread-safe. */
unsigned msk_cpu_detect(void);

/* Names of the flags set, e.g. "avx2 avx512 amx", for a buffer of at least 64 bytes. */
const char *msk_cpu_describe(unsigned flags, char *text, size_t size);
