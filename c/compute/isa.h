/* Instruction sets that inner loops are built for beyond what the compiler builds for anyway: the one place that knows
 * their names, the attributes that turn them on, and whether this processor has them.
 *
 * A family of loops is a constant table for each set. Its `..._at(index)` gives the tables that this processor can run,
 * best first, so that tests reach every one; `..._select()` gives the first. Nothing is remembered between calls.
 */
#ifndef ETUDE_COMPUTE_ISA_H_
#define ETUDE_COMPUTE_ISA_H_

#include <stdbool.h>
#include <stdint.h>

typedef enum etude_isa {
  ETUDE_ISA_AVX2,        /* with FMA and F16C, which every processor with AVX2 has */
  ETUDE_ISA_AVX_VNNI,    /* AVX2 and the 256-bit int8 products of Alder Lake and Zen 5 */
  ETUDE_ISA_AVX512,      /* F, BW, DQ and VL, and AVX2 */
  ETUDE_ISA_AVX512_VNNI, /* AVX512 and its int8 products */
  ETUDE_ISA_DOTPROD,     /* aarch64: int8 products of four */
  ETUDE_ISA_I8MM         /* aarch64: int8 products of 2 x 8 matrices, and DOTPROD */
} etude_isa;

/* Can this processor, and the system, run it? */
bool etude_isa_has(etude_isa isa);

/* GCC for Windows does not align the stack for the vectors. */
#if !defined(ETUDE_NO_SIMD_VARIANTS) && defined(__GNUC__) && defined(__x86_64__) && \
    (defined(__clang__) || !defined(_WIN32))
#define ETUDE_WITH_X86_VARIANTS 1
#define ETUDE_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define ETUDE_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define ETUDE_TARGET_AVX512_VNNI __attribute__((target("avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#if defined(__clang__) ? __clang_major__ >= 14 : __GNUC__ >= 12
#define ETUDE_WITH_AVX_VNNI 1
#define ETUDE_TARGET_AVX_VNNI __attribute__((target("avxvnni,avx2,fma,f16c")))
#endif
#endif

#if !defined(ETUDE_NO_SIMD_VARIANTS) && defined(__GNUC__) && defined(__aarch64__) && !defined(__AARCH64EB__)
#define ETUDE_WITH_AARCH64_VARIANTS 1
#if defined(__clang__)
#define ETUDE_TARGET_DOTPROD __attribute__((target("dotprod")))
#define ETUDE_TARGET_I8MM __attribute__((target("dotprod,i8mm")))
#else
#define ETUDE_TARGET_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#define ETUDE_TARGET_I8MM __attribute__((target("arch=armv8.2-a+dotprod+i8mm")))
#endif
#endif

/* Cortex-M: known when compiling, since a program is made for one processor. */
#if !defined(ETUDE_NO_DSP) && defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32) && __ARM_ARCH_PROFILE == 'M'
#define ETUDE_WITH_DSP 1
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) != 0
#define ETUDE_WITH_HELIUM 1
#endif
#endif

/* What loops over vectors are written with. */
#if defined(__GNUC__)
#define ETUDE_INLINE static inline __attribute__((always_inline))
#define ETUDE_NOINLINE __attribute__((noinline))
#define ETUDE_UNROLL _Pragma("GCC unroll 16")
#else
#define ETUDE_NOINLINE
#define ETUDE_INLINE static inline
#define ETUDE_UNROLL
#endif
/* Ask for the line of memory `ahead` bytes from a place on, which need not be there. */
#if defined(__GNUC__)
#define ETUDE_PREFETCH(place, ahead) __builtin_prefetch((const void *)((uintptr_t)(place) + (ahead)))
#else
#define ETUDE_PREFETCH(place, ahead) ((void)0)
#endif
/* No turn of the loop reads what another one writes, though a result may lie over an argument, element on element. */
#if defined(__clang__)
#define ETUDE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ETUDE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ETUDE_INDEPENDENT
#endif

#endif /* ETUDE_COMPUTE_ISA_H_ */
