#include "msk-cpu.h"

#include <stdio.h>
#include <string.h>

#if MSK_X86
#include <sys/syscall.h>
#include <unistd.h>

/* Linux: arch_prctl (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), Documentation/arch/x86/xstate.rst */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

static int amx_usable(void) {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(d & (1u << 22)) || !(d & (1u << 24))) /* AMX-BF16, AMX-TILE */
    return 0;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

unsigned msk_cpu_detect(void) {
  unsigned flags = 0;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    flags |= MSK_CPU_AVX2;
  if (flags && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    flags |= MSK_CPU_AVX512;
  if ((flags & MSK_CPU_AVX512) && __builtin_cpu_supports("avx512bf16"))
    flags |= MSK_CPU_AVX512BF16;
  if ((flags & MSK_CPU_AVX512BF16) && amx_usable())
    flags |= MSK_CPU_AMX;
  return flags;
}
#else
unsigned msk_cpu_detect(void) {
  return 0;
}
#endif

const char *msk_cpu_describe(unsigned flags, char *text, size_t size) {
  static const char *const names[] = {"avx2", "avx512", "avx512bf16", "amx"};
  size_t used = 0;
  text[0] = 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (flags & (1u << i))
      used += (size_t)snprintf(text + used, used < size ? size - used : 0, "%s%s", used ? " " : "", names[i]);
  if (!used)
    snprintf(text, size, "c");
  return text;
}
