/* See integer.h. Two lines by two columns, or one line by four: so many sums stay in registers. */
#include "integer.h"

#include "tile_sets.h"

#if defined(ETUDE_WITH_HELIUM) || !defined(ETUDE_WITH_DSP) /* lines are read where they lie */
size_t etude_integer_line_size(size_t depth) {
  (void)depth;
  return 0;
}
const void *etude_integer_line(void *room, const int8_t *x, size_t depth, size_t number, size_t lines) {
  (void)room;
  (void)depth;
  (void)number;
  (void)lines;
  return x;
}

static int32_t sum_one(const void *line, const int8_t *w, size_t depth) {
  const int8_t *x = line;
  int32_t sum = 0;
  for (size_t k = 0; k < depth; ++k) sum += x[k] * w[k];
  return sum;
}
#endif

#if defined(ETUDE_WITH_HELIUM)
/* What is beyond the end is not read, and counts as 0. */
static void sum_square(int32_t sums[4], const void *first, const void *second, const int8_t *w, const int8_t *v,
                       size_t depth) {
  const int8_t *a = first, *b = second;
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (; depth >= 16; depth -= 16, a += 16, b += 16, w += 16, v += 16) {
    const int8x16_t of_a = vldrbq_s8(a), of_b = vldrbq_s8(b), of_w = vldrbq_s8(w), of_v = vldrbq_s8(v);
    s0 = vmladavaq_s8(s0, of_a, of_w);
    s1 = vmladavaq_s8(s1, of_a, of_v);
    s2 = vmladavaq_s8(s2, of_b, of_w);
    s3 = vmladavaq_s8(s3, of_b, of_v);
  }
  if (depth > 0) {
    const mve_pred16_t some = vctp8q((uint32_t)depth);
    const int8x16_t of_a = vldrbq_z_s8(a, some), of_b = vldrbq_z_s8(b, some);
    const int8x16_t of_w = vldrbq_z_s8(w, some), of_v = vldrbq_z_s8(v, some);
    s0 = vmladavaq_s8(s0, of_a, of_w);
    s1 = vmladavaq_s8(s1, of_a, of_v);
    s2 = vmladavaq_s8(s2, of_b, of_w);
    s3 = vmladavaq_s8(s3, of_b, of_v);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

static void sum_four(int32_t sums[4], const void *line, const int8_t *w, size_t depth) {
  const int8_t *x = line, *w1 = w + depth, *w2 = w1 + depth, *w3 = w2 + depth;
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (; depth >= 16; depth -= 16, x += 16, w += 16, w1 += 16, w2 += 16, w3 += 16) {
    const int8x16_t of_x = vldrbq_s8(x);
    s0 = vmladavaq_s8(s0, of_x, vldrbq_s8(w));
    s1 = vmladavaq_s8(s1, of_x, vldrbq_s8(w1));
    s2 = vmladavaq_s8(s2, of_x, vldrbq_s8(w2));
    s3 = vmladavaq_s8(s3, of_x, vldrbq_s8(w3));
  }
  if (depth > 0) {
    const mve_pred16_t some = vctp8q((uint32_t)depth);
    const int8x16_t of_x = vldrbq_z_s8(x, some);
    s0 = vmladavaq_s8(s0, of_x, vldrbq_z_s8(w, some));
    s1 = vmladavaq_s8(s1, of_x, vldrbq_z_s8(w1, some));
    s2 = vmladavaq_s8(s2, of_x, vldrbq_z_s8(w2, some));
    s3 = vmladavaq_s8(s3, of_x, vldrbq_z_s8(w3, some));
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

void etude_integer_sum_taps(int32_t sums[8], const int8_t *const *x, size_t channel, const int8_t *weights, size_t step,
                            size_t taps) {
  const uint32_t even[4] = {0, 2, 4, 6};
  const uint32x4_t at = vldrwq_u32(even);
  const uint32x4_t next = vaddq_n_u32(at, 1);
  int32x4_t s0 = vldrwq_gather_shifted_offset_s32(sums, at), s1 = vldrwq_gather_shifted_offset_s32(sums, next);
  for (size_t tap = 0; tap < taps; ++tap, weights += step) {
    const int16x8_t of_x = vldrbq_s16(x[tap] + channel), w = vldrbq_s16(weights);
    s0 = vaddq_s32(s0, vmullbq_int_s16(of_x, w));
    s1 = vaddq_s32(s1, vmulltq_int_s16(of_x, w));
  }
  vstrwq_scatter_shifted_offset_s32(sums, at, s0);
  vstrwq_scatter_shifted_offset_s32(sums, next, s1);
}
#elif defined(ETUDE_WITH_DSP)
/* Lines are of words of two inputs of 16 bits, in the order in which sxtb16 takes bytes apart: even ones, then odd ones. The words
 * of two lines that are multiplied together alternate. */
size_t etude_integer_line_size(size_t depth) { return (depth + 3) / 4 * 8; }

static uint32_t load_part(const int8_t *from, size_t count) {
  uint32_t word = 0;
  for (size_t i = 0; i < count; ++i) word |= (uint32_t)(uint8_t)from[i] << 8 * i;
  return word;
}

const void *etude_integer_line(void *room, const int8_t *x, size_t depth, size_t number, size_t lines) {
  int16x2_t *to = (int16x2_t *)room + number;
  for (; depth >= 4; depth -= 4, x += 4, to += 2 * lines) {
    const uint32_t word = etude_load_word(x);
    to[0] = etude_even_bytes(word);
    to[lines] = etude_odd_bytes(word);
  }
  if (depth > 0) {
    const uint32_t word = load_part(x, depth);
    to[0] = etude_even_bytes(word);
    to[lines] = etude_odd_bytes(word);
  }
  return room;
}

/* Written out, since compilers keep the sums in memory; it takes all registers that there are when optimising. */
static void sum_square(int32_t sums[4], const void *first, const void *second, const int8_t *w, const int8_t *v,
                       size_t depth) {
  const int16x2_t *x = first;
  const int8_t *const end = w + (depth & ~(size_t)3);
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  (void)second;
#if defined(__OPTIMIZE__) && !defined(__PIC__)
  if (w != end) {
    uint32_t of_w, of_v, some, a, b;
    __asm__ volatile(
        "1:\n"
        "ldr %[of_w], [%[w]], #4\n"
        "ldr %[of_v], [%[v]], #4\n"
        "ldr %[a], [%[x]], #4\n"
        "ldr %[b], [%[x]], #4\n"
        "sxtb16 %[some], %[of_w]\n"
        "smlad %[s0], %[a], %[some], %[s0]\n"
        "smlad %[s2], %[b], %[some], %[s2]\n"
        "sxtb16 %[some], %[of_v]\n"
        "smlad %[s1], %[a], %[some], %[s1]\n"
        "smlad %[s3], %[b], %[some], %[s3]\n"
        "ldr %[a], [%[x]], #4\n"
        "ldr %[b], [%[x]], #4\n"
        "sxtb16 %[some], %[of_w], ror #8\n"
        "smlad %[s0], %[a], %[some], %[s0]\n"
        "smlad %[s2], %[b], %[some], %[s2]\n"
        "sxtb16 %[some], %[of_v], ror #8\n"
        "smlad %[s1], %[a], %[some], %[s1]\n"
        "smlad %[s3], %[b], %[some], %[s3]\n"
        "cmp %[w], %[end]\n"
        "bne 1b\n"
        : [w] "+r"(w), [v] "+r"(v), [x] "+r"(x), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3),
          [of_w] "=&r"(of_w), [of_v] "=&r"(of_v), [some] "=&r"(some), [a] "=&r"(a), [b] "=&r"(b)
        : [end] "r"(end)
        : "cc", "memory");
  }
#else
  for (; w != end; w += 4, v += 4, x += 4) {
    const uint32_t of_w = etude_load_word(w), of_v = etude_load_word(v);
    s0 = __smlad(x[2], etude_odd_bytes(of_w), __smlad(x[0], etude_even_bytes(of_w), s0));
    s1 = __smlad(x[2], etude_odd_bytes(of_v), __smlad(x[0], etude_even_bytes(of_v), s1));
    s2 = __smlad(x[3], etude_odd_bytes(of_w), __smlad(x[1], etude_even_bytes(of_w), s2));
    s3 = __smlad(x[3], etude_odd_bytes(of_v), __smlad(x[1], etude_even_bytes(of_v), s3));
  }
#endif
  if ((depth & 3) != 0) {
    const uint32_t of_w = load_part(w, depth & 3), of_v = load_part(v, depth & 3);
    s0 = __smlad(x[2], etude_odd_bytes(of_w), __smlad(x[0], etude_even_bytes(of_w), s0));
    s1 = __smlad(x[2], etude_odd_bytes(of_v), __smlad(x[0], etude_even_bytes(of_v), s1));
    s2 = __smlad(x[3], etude_odd_bytes(of_w), __smlad(x[1], etude_even_bytes(of_w), s2));
    s3 = __smlad(x[3], etude_odd_bytes(of_v), __smlad(x[1], etude_even_bytes(of_v), s3));
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

ETUDE_INLINE int32_t add_word(int32_t sum, const int16x2_t *x, uint32_t word) {
  return __smlad(x[1], etude_odd_bytes(word), __smlad(x[0], etude_even_bytes(word), sum));
}

static int32_t sum_one(const void *line, const int8_t *w, size_t depth) {
  const int16x2_t *x = line;
  int32_t sum = 0;
  for (; depth >= 4; depth -= 4, w += 4, x += 2) sum = add_word(sum, x, etude_load_word(w));
  return depth == 0 ? sum : add_word(sum, x, load_part(w, depth));
}

static void sum_four(int32_t sums[4], const void *line, const int8_t *w, size_t depth) {
  const int16x2_t *x = line;
  const int8_t *w1 = w + depth, *w2 = w1 + depth, *w3 = w2 + depth, *const end = w + (depth & ~(size_t)3);
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (; w != end; w += 4, w1 += 4, w2 += 4, w3 += 4, x += 2) {
    s0 = add_word(s0, x, etude_load_word(w));
    s1 = add_word(s1, x, etude_load_word(w1));
    s2 = add_word(s2, x, etude_load_word(w2));
    s3 = add_word(s3, x, etude_load_word(w3));
  }
  if ((depth & 3) != 0) {
    s0 = add_word(s0, x, load_part(w, depth & 3));
    s1 = add_word(s1, x, load_part(w1, depth & 3));
    s2 = add_word(s2, x, load_part(w2, depth & 3));
    s3 = add_word(s3, x, load_part(w3, depth & 3));
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

/* Of four channels: the products of two taps in an instruction. */
static void sum_taps_of_four(int32_t *sums, const int8_t *const *x, size_t channel, const int8_t *w, size_t step,
                             size_t taps) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const int8_t *const *const end = x + (taps & ~(size_t)1);
  while (x != end) {
    const uint32_t a = etude_load_word(x[0] + channel), b = etude_load_word(x[1] + channel);
    const uint32_t u = etude_load_word(w), v = etude_load_word(w + step);
    const uint32_t low = etude_low_halves(a, b), high = etude_high_halves(a, b);
    const uint32_t low_w = etude_low_halves(u, v), high_w = etude_high_halves(u, v);
    s0 = __smlad(etude_even_bytes(low), etude_even_bytes(low_w), s0);
    s1 = __smlad(etude_odd_bytes(low), etude_odd_bytes(low_w), s1);
    s2 = __smlad(etude_even_bytes(high), etude_even_bytes(high_w), s2);
    s3 = __smlad(etude_odd_bytes(high), etude_odd_bytes(high_w), s3);
    w += 2 * step;
    x += 2;
  }
  if ((taps & 1) != 0) {
    const uint32_t a = etude_load_word(x[0] + channel), u = etude_load_word(w);
    s0 = __smlabb(etude_even_bytes(a), etude_even_bytes(u), s0);
    s1 = __smlabb(etude_odd_bytes(a), etude_odd_bytes(u), s1);
    s2 = __smlatt(etude_even_bytes(a), etude_even_bytes(u), s2);
    s3 = __smlatt(etude_odd_bytes(a), etude_odd_bytes(u), s3);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

void etude_integer_sum_taps(int32_t sums[8], const int8_t *const *x, size_t channel, const int8_t *weights, size_t step,
                            size_t taps) {
  sum_taps_of_four(sums, x, channel, weights, step, taps);
  sum_taps_of_four(sums + 4, x, channel + 4, weights + 4, step, taps);
}
#else
static void sum_square(int32_t sums[4], const void *first, const void *second, const int8_t *w, const int8_t *v,
                       size_t depth) {
  const int8_t *a = first, *b = second;
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (size_t k = 0; k < depth; ++k) {
    s0 += a[k] * w[k];
    s1 += a[k] * v[k];
    s2 += b[k] * w[k];
    s3 += b[k] * v[k];
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

static void sum_four(int32_t sums[4], const void *line, const int8_t *w, size_t depth) {
  const int8_t *x = line, *w1 = w + depth, *w2 = w1 + depth, *w3 = w2 + depth;
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (size_t k = 0; k < depth; ++k) {
    s0 += x[k] * w[k];
    s1 += x[k] * w1[k];
    s2 += x[k] * w2[k];
    s3 += x[k] * w3[k];
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

void etude_integer_sum_taps(int32_t sums[8], const int8_t *const *x, size_t channel, const int8_t *weights, size_t step,
                            size_t taps) {
  for (size_t tap = 0; tap < taps; ++tap, weights += step) {
    const int8_t *inputs = x[tap] + channel;
    for (size_t c = 0; c < 8; ++c) sums[c] += inputs[c] * weights[c];
  }
}
#endif

/* Columns whose sums are kept until they become results. */
#define COLUMNS 8

/* Results of `count` sums from a column on. A bias may be anything: sums wrap. */
static void finish(const etude_integer_product *p, size_t column, size_t count, int32_t *sums, int8_t *y) {
  for (size_t j = 0; j < count; ++j) sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)p->bias[column + j]);
  etude_requantize_row(y + column, sums, p->scales + column, count, p->zero, p->low, p->high);
}

static void multiply_two(const etude_integer_product *p, const void *first, const void *second, int8_t *y,
                         int8_t *second_y) {
  int32_t sums[2][COLUMNS], square[4];
  for (size_t column = 0; column < p->columns; column += COLUMNS) {
    const size_t count = p->columns - column < COLUMNS ? p->columns - column : COLUMNS;
    const int8_t *w = p->weights + column * p->depth;
    for (size_t j = 0; j < count; j += 2, w += 2 * p->depth) {
      sum_square(square, first, second, w, j + 1 < count ? w + p->depth : w, p->depth);
      sums[0][j] = square[0];
      sums[0][j + 1] = square[1];
      sums[1][j] = square[2];
      sums[1][j + 1] = square[3];
    }
    finish(p, column, count, sums[0], y);
    finish(p, column, count, sums[1], second_y);
  }
}

static void multiply_one(const etude_integer_product *p, const void *line, int8_t *y) {
  int32_t sums[COLUMNS];
  for (size_t column = 0; column < p->columns; column += COLUMNS) {
    const size_t count = p->columns - column < COLUMNS ? p->columns - column : COLUMNS;
    const int8_t *w = p->weights + column * p->depth;
    size_t j = 0;
    for (; j + 4 <= count; j += 4, w += 4 * p->depth) sum_four(sums + j, line, w, p->depth);
    for (; j < count; ++j, w += p->depth) sums[j] = sum_one(line, w, p->depth);
    finish(p, column, count, sums, y);
  }
}

void etude_integer_multiply(const etude_integer_product *p, const void *first, const void *second, int8_t *y,
                            int8_t *second_y) {
  if (second == NULL) {
    multiply_one(p, first, y);
  } else {
    multiply_two(p, first, second, y, second_y);
  }
}

void etude_integer_depthwise(const etude_integer_product *p, const int8_t *const *x, int8_t *y) {
  for (size_t channel = 0; channel < p->columns; channel += COLUMNS) {
    const size_t count = p->columns - channel < COLUMNS ? p->columns - channel : COLUMNS;
    int32_t sums[COLUMNS] = {0};
    if (count == COLUMNS) {
      etude_integer_sum_taps(sums, x, channel, p->weights + channel, p->columns, p->depth);
    } else {
      for (size_t tap = 0; tap < p->depth; ++tap) {
        for (size_t j = 0; j < count; ++j) sums[j] += x[tap][channel + j] * p->weights[tap * p->columns + channel + j];
      }
    }
    finish(p, channel, count, sums, y);
  }
}

void etude_integer_quantize(int8_t *q, const float *x, size_t count, float factor, int32_t zero, int32_t low,
                            int32_t high) {
  for (size_t i = 0; i < count; ++i) q[i] = etude_requantize(x[i] * factor, zero, low, high);
}
