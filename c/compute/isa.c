/* See isa.h. */
#include "isa.h"

#if defined(ETUDE_WITH_X86_VARIANTS)
#if defined(ETUDE_WITH_AVX_VNNI) && !defined(__clang__)
static bool has_avx_vnni(void) { return __builtin_cpu_supports("avxvnni"); }
#elif defined(ETUDE_WITH_AVX_VNNI)
#include <cpuid.h>

/* Asked of the processor itself, which takes long on virtual machines: not every Clang that can use it knows its name in
   __builtin_cpu_supports. */
static bool has_avx_vnni(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#endif

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool etude_isa_has(etude_isa isa) {
  switch (isa) {
    case ETUDE_ISA_AVX2: return has_avx2();
    case ETUDE_ISA_AVX512: return has_avx512();
    case ETUDE_ISA_AVX512_VNNI: return has_avx512() && __builtin_cpu_supports("avx512vnni");
#if defined(ETUDE_WITH_AVX_VNNI)
    case ETUDE_ISA_AVX_VNNI: return has_avx2() && has_avx_vnni();
#endif
    default: return false;
  }
}
#elif defined(ETUDE_WITH_AARCH64_VARIANTS)
#if defined(__linux__)
/* Of the C library, where there is one: a system without it has what the compiler builds for. */
extern unsigned long getauxval(unsigned long type) __attribute__((weak));

static bool system_says(unsigned long type, unsigned bit) {
  return getauxval != 0 && (getauxval(type) >> bit & 1) != 0;
}

/* Bits of AT_HWCAP (16) and AT_HWCAP2 (26), from Linux' asm/hwcap.h. */
static bool has_dotprod(void) { return system_says(16, 20); }
static bool has_i8mm(void) { return system_says(26, 13); }
#else
#if defined(__ARM_FEATURE_DOTPROD)
static bool has_dotprod(void) { return true; }
#else
static bool has_dotprod(void) { return false; }
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
static bool has_i8mm(void) { return true; }
#else
static bool has_i8mm(void) { return false; }
#endif
#endif

bool etude_isa_has(etude_isa isa) {
  switch (isa) {
    case ETUDE_ISA_DOTPROD: return has_dotprod();
    case ETUDE_ISA_I8MM: return has_dotprod() && has_i8mm();
    default: return false;
  }
}
#else
bool etude_isa_has(etude_isa isa) {
  (void)isa;
  return false;
}
#endif
