/* What the files of tiles, one for each instruction set, share with each other and with nobody else. */
#ifndef ETUDE_COMPUTE_TILE_SETS_H_
#define ETUDE_COMPUTE_TILE_SETS_H_

#include <float.h>
#include <string.h>

#include "cortex_m.h"
#include "isa.h"
#include "tiles.h"
#include "winograd.h"

/* Loops over the rows of a tile are built for every second number of rows, since each takes some KB of code: where a row is
   missing, the last one is done twice. The row of `t` that is row `i` of so many. */
#define ETUDE_ROW(t, i, rows) ((i) + 1 < (rows) || (rows) == 1 ? (i) : (t)->rows - 1)

/* Of a loop over the points of a tile. */
#if defined(__GNUC__)
#define ETUDE_UNROLL_ALL _Pragma("GCC unroll 36")
#else
#define ETUDE_UNROLL_ALL
#endif

/* Bytes of weights of 4 bits that are asked for before they are read: of a product of one row they come from memory, and the
   processor itself does not ask soon enough where each takes some work. */
#define ETUDE_AHEAD 8192

/* The nearest whole number, ties to even, of a value of up to 2^22: above 2^23 floats are whole. */
static inline int32_t etude_round_small(float value) {
  const float magic = 12582912.0f;
#if FLT_EVAL_METHOD == 0
  const float moved = value + magic;
#else
  volatile float moved = value + magic; /* rounded to float */
#endif
  return (int32_t)(moved - magic);
}

/* How a row whose smallest and largest elements are low (not above 0) and high (not below) is quantised. */
typedef struct etude_quantizer {
  etude_row_scale row;
  float factor; /* 1 / row.scale, before rounding */
} etude_quantizer;
etude_quantizer etude_quantizer_of(float low, float high);

/* A result of int8: clamped before it is rounded, so that it is small; the bounds are whole. nan becomes the lower one. */
static inline int8_t etude_requantize(float real, int32_t zero, int32_t low, int32_t high) {
  const float least = (float)(low - zero), most = (float)(high - zero);
  const float value = real > least ? (real < most ? real : most) : least;
  return (int8_t)(etude_round_small(value) + zero);
}

/* Results of sums, each with its scale. */
#if defined(ETUDE_WITH_HELIUM)
ETUDE_INLINE void etude_requantize_row(int8_t *y, const int32_t *sums, const float *scales, size_t count, int32_t zero,
                                       int32_t low, int32_t high) {
  const float32x4_t least = vdupq_n_f32((float)(low - zero)), most = vdupq_n_f32((float)(high - zero));
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t some = vctp32q((uint32_t)(count - i));
    const float32x4_t real = vmulq_f32(vcvtq_f32_s32(vldrwq_z_s32(sums + i, some)), vldrwq_z_f32(scales + i, some));
    const int32x4_t whole = vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(real, least), most));
    vstrbq_p_s32(y + i, vaddq_n_s32(whole, zero), some);
  }
}
#else
ETUDE_INLINE void etude_requantize_row(int8_t *y, const int32_t *sums, const float *scales, size_t count, int32_t zero,
                                       int32_t low, int32_t high) {
  for (size_t i = 0; i < count; ++i) y[i] = etude_requantize((float)sums[i] * scales[i], zero, low, high);
}
#endif

static inline float etude_clamp_product(const etude_product_tile *t, float value) {
  const float raised = t->low > value ? t->low : value;
  return t->high < raised ? t->high : raised;
}

static inline float etude_float_of_bfloat16(const uint8_t *bytes) {
  uint16_t half;
  float value;
  memcpy(&half, bytes, sizeof half);
  const uint32_t bits = (uint32_t)half << 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Loops that sets share. */
void etude_plain_f32(const etude_product_tile *t);
void etude_plain_depthwise_f32(const etude_depthwise_tile *t);
void etude_plain_depthwise_s8(const etude_depthwise_tile *t);
void etude_plain_winograd_input(uint32_t m, float *to, size_t step, const void *const *points, size_t channels);
void etude_plain_winograd_output(uint32_t m, const etude_winograd_output *tile);
etude_row_scale etude_plain_quantize_row(int8_t *q, const float *x, size_t count);
#if defined(ETUDE_WITH_DSP)
#define ETUDE_PLAIN_F32_TILES {4, 4, 1, 1, 0, etude_plain_f32}
#elif defined(__aarch64__)
#define ETUDE_PLAIN_F32_TILES {6, 16, 4, 1, 0, etude_plain_f32}
#elif defined(__wasm_simd128__)
#define ETUDE_PLAIN_F32_TILES {4, 8, 4, 1, 0, etude_plain_f32}
#endif
#if defined(ETUDE_WITH_X86_VARIANTS)
void etude_avx2_s8(const etude_product_tile *t);
void etude_avx2_qd8(const etude_product_tile *t);
void etude_avx2_qb4(const etude_product_tile *t);
void etude_avx2_depthwise_s8(const etude_depthwise_tile *t);
#endif

extern const etude_tiles etude_tiles_plain;
#if defined(ETUDE_WITH_X86_VARIANTS)
extern const etude_tiles etude_tiles_avx2, etude_tiles_avx512, etude_tiles_avx512_vnni;
#endif
#if defined(ETUDE_WITH_DSP)
extern const etude_tiles etude_tiles_cortex_m;
#endif
#if defined(ETUDE_WITH_AVX_VNNI)
extern const etude_tiles etude_tiles_avx_vnni;
#endif
#if defined(ETUDE_WITH_AARCH64_VARIANTS)
extern const etude_tiles etude_tiles_dotprod, etude_tiles_i8mm;
#endif
#if defined(__wasm_simd128__)
extern const etude_tiles etude_tiles_simd128;
#endif

#endif /* ETUDE_COMPUTE_TILE_SETS_H_ */
