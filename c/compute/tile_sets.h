/* What the files of tiles, one for each instruction set, share with each other and with nobody else. */
#ifndef ETUDE_COMPUTE_TILE_SETS_H_
#define ETUDE_COMPUTE_TILE_SETS_H_

#include <string.h>

#include "tiles.h"

/* GCC for Windows does not align the stack for these vectors. */
#if defined(__GNUC__) && defined(__x86_64__) && (defined(__clang__) || !defined(_WIN32)) && \
    !defined(ETUDE_NO_SIMD_VARIANTS)
#define ETUDE_TILES_X86 1
#endif

#if defined(__GNUC__)
#define TILE_INLINE static inline __attribute__((always_inline))
#define TILE_UNROLL _Pragma("GCC unroll 16")
#else
#define TILE_INLINE static inline
#define TILE_UNROLL
#endif

/* The nearest whole number, ties to even, of a value of up to 2^22: above 2^23 floats are whole. */
static inline int32_t etude_round_small(float value) {
  const float magic = 12582912.0f;
  volatile float moved = value + magic; /* rounded to float, whatever the compiler computes in */
  return (int32_t)(moved - magic);
}

/* How a row whose smallest and largest elements are low (not above 0) and high (not below) is quantised. */
typedef struct etude_quantizer {
  etude_row_scale row;
  float factor; /* 1 / row.scale, before rounding */
} etude_quantizer;
etude_quantizer etude_quantizer_of(float low, float high);

extern const etude_tiles etude_tiles_plain;
#if defined(ETUDE_TILES_X86)
extern const etude_tiles etude_tiles_avx512_vnni;
#endif

#endif /* ETUDE_COMPUTE_TILE_SETS_H_ */
