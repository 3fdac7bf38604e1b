/* Loops over rows (c/compute), for every instruction set that this processor runs: against <math.h> in double, over drawn
 * rows of drawn lengths, in place and not, and cut in two, which must not change a bit. */
#include "compute/rows.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compute/simd.h"
#include "compute/transpose.h"
#include "draw.h"
#include "etude_test.h"

enum { LONGEST = 300 };

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Any finite float, or a special one, or one of the size that networks have. */
static float draw_any(void) {
  static const float special[] = {0.0f, -0.0f,   1.0f,     -1.0f,   INFINITY, -INFINITY,
                                  NAN,  FLT_MIN, -FLT_MIN, FLT_MAX, 1e-42f};
  const uint32_t kind = draw(8);
  if (kind == 0) return special[draw(sizeof special / sizeof special[0])];
  if (kind == 1) return float_of(draw(0x7fffffffu) << 1 | draw(2));
  if (kind < 5) return ((float)draw(2000001) - 1000000.0f) / 250000.0f;
  return ((float)draw(2000001) - 1000000.0f) / 10000.0f;
}

/* ---- functions of one argument ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double neg(double x) { return -x; }
static double square(double x) { return x * x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double reciprocal(double x) { return 1 / x; }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) { return x / 2 * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x) { return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)); }
static double hardsigmoid(double x) { return (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6; }
static double hardswish(double x) { return x * hardsigmoid(x); }
static double elu(double x) { return x > 0 ? x : 0.75 * expm1(x); }
static double leaky_relu(double x) { return x > 0 ? x : 0.75 * x; }
static double clamp(double x) { return x < 0.75 ? 0.75 : x > 2.5 ? 2.5 : x; }

/* How far off: units in the last place of the result, or of `floor` where that is larger. */
typedef struct function {
  const char *name;
  double (*exact)(double x);
  double units, floor;
  bool by_argument; /* `floor` is for an argument of 1: where it is larger, so is the unit */
} function;

static const function functions[ETUDE_UNARY_COUNT] = {
    {"abs", fabs, 0, 0, false},
    {"neg", neg, 0, 0, false},
    {"square", square, 0.5, 0, false},
    {"sqrt", sqrt, 1, 0, false},
    {"rsqrt", rsqrt, 1.5, 0, false},
    {"reciprocal", reciprocal, 0.5, 0, false},
    {"floor", floor, 0, 0, false},
    {"ceil", ceil, 0, 0, false},
    {"trunc", trunc, 0, 0, false},
    {"round", nearbyint, 0, 0, false},
    {"exp", exp, 3, 0, false},
    {"expm1", expm1, 4, 0, false},
    {"log", log, 3, 0, false},
    {"sin", sin, 2, 0, false},
    {"cos", cos, 2, 0, false},
    {"tanh", tanh, 4, 0, false},
    {"erf", erf, 4, 0, false},
    {"sigmoid", sigmoid, 4, 0x1p-100, false},
    {"silu", silu, 5, 0x1p-100, false},
    {"gelu", gelu, 4, 1, true},
    {"gelu_tanh", gelu_tanh, 6, 0.1, true},
    {"hardsigmoid", hardsigmoid, 1.5, 1, false},
    {"hardswish", hardswish, 2, 1, true},
    {"elu", elu, 4, 0, false},
    {"leaky_relu", leaky_relu, 0.5, 0, false},
    {"clamp", clamp, 0, 0, false},
};

/* The distance of two floats around a value of this size. */
static double unit_at(double value) {
  int exponent;
  if (fabs(value) < FLT_MIN) return ldexp(1, -149);
  (void)frexp(value, &exponent);
  return ldexp(1, exponent - 24);
}

static bool is_close(const function *f, float x, float got) {
  const double exact = f->exact((double)x);
  const double floor_value = f->by_argument ? f->floor * fmax(1, fabs((double)x)) : f->floor;
  if (exact != exact) return got != got;
  if (fabs(exact) > FLT_MAX)
    return (double)got == (exact > 0 ? INFINITY : -INFINITY) || fabs(exact) < FLT_MAX * (1 + 1e-6);
  if (got == exact) return true;
  return fabs((double)got - exact) <= (f->units + 0.001) * unit_at(fmax(fabs(exact), floor_value));
}

static void check_unary(const etude_rows *rows, uint32_t which, double *worst) {
  const function *f = &functions[which];
  float in[LONGEST] = {0}, out[LONGEST], cut[LONGEST];
  const float values[2] = {0.75f, 2.5f};
  const size_t count = draw(LONGEST + 1), first = draw((uint32_t)count + 1);
  for (size_t i = 0; i < count; ++i) in[i] = draw_any();
  for (size_t i = 0; i < count; ++i) out[i] = -77.0f;
  rows->unary[which](out, in, count, values);
  for (size_t i = 0; i < count; ++i) {
    const bool close = is_close(f, in[i], out[i]);
    const double exact = f->exact((double)in[i]);
    if (!close) (void)fprintf(stderr, "%s(%.9g) is %.9g, not %.9g\n", f->name, (double)in[i], (double)out[i], exact);
    CHECK(close);
    if (exact == exact && fabs(exact) < FLT_MAX && fabs(exact) > FLT_MIN) {
      *worst = fmax(*worst, fabs((double)out[i] - exact) / unit_at(exact));
    }
  }
  memcpy(cut, in, sizeof cut);
  rows->unary[which](cut, cut, first, values);
  rows->unary[which](cut + first, cut + first, count - first, values);
  for (size_t i = 0; i < count; ++i) {
    CHECK(memcmp(&cut[i], &out[i], sizeof *out) == 0 || (isnan(cut[i]) && isnan(out[i])));
  }
}

static void test_unary(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (uint32_t which = 0; which < ETUDE_UNARY_COUNT; ++which) {
      double worst = 0;
      for (int round = 0; round < 400; ++round) check_unary(rows, which, &worst);
      if (getenv("ETUDE_TEST_PRINT") != NULL) printf("set %d %s: %.2f ulp\n", (int)set, functions[which].name, worst);
    }
  }
}

static void test_large_angles(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (int round = 0; round < 20000; ++round) {
      const float x = float_of(0x4b000000u + draw(0x7f800000u - 0x4b000000u)) * (draw(2) == 0 ? 1.0f : -1.0f);
      float s, c;
      rows->unary[ETUDE_UNARY_SIN](&s, &x, 1, NULL);
      rows->unary[ETUDE_UNARY_COS](&c, &x, 1, NULL);
      CHECK(is_close(&functions[ETUDE_UNARY_SIN], x, s) && is_close(&functions[ETUDE_UNARY_COS], x, c));
    }
  }
}

/* ---- of two ---- */

static float exact_binary(uint32_t which, float x, float y) {
  switch (which) {
    case ETUDE_BINARY_ADD: return x + y;
    case ETUDE_BINARY_SUB: return x - y;
    case ETUDE_BINARY_MUL: return x * y;
    case ETUDE_BINARY_DIV: return x / y;
    case ETUDE_BINARY_MIN: return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
    case ETUDE_BINARY_MAX: return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
    case ETUDE_BINARY_SQUARED_DIFFERENCE: return (x - y) * (x - y);
    default: return x > 0 ? x : x * y;
  }
}

static void test_binary(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (int round = 0; round < 3000; ++round) {
      const uint32_t which = draw(ETUDE_BINARY_COUNT), kind = draw(3);
      const size_t count = 1 + draw(LONGEST);
      const float low = draw(2) == 0 ? -INFINITY : -1.5f, high = draw(2) == 0 ? INFINITY : 6.0f;
      float a[LONGEST] = {0}, b[LONGEST] = {0}, out[LONGEST];
      for (size_t i = 0; i < count; ++i) a[i] = draw_any();
      for (size_t i = 0; i < count; ++i) b[i] = draw_any();
      rows->binary[which][kind](out, a, b, count, low, high);
      for (size_t i = 0; i < count; ++i) {
        float value = exact_binary(which, a[kind == ETUDE_SCALAR_ROW ? 0 : i], b[kind == ETUDE_ROW_SCALAR ? 0 : i]);
        value = value < low ? low : value > high ? high : value;
        CHECK(out[i] == value || (isnan(out[i]) && isnan(value)));
      }
    }
  }
}

/* ---- conversions ---- */

static void test_halves(void) {
  const etude_rows *rows, *plain = NULL;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) plain = rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
      const uint16_t half = (uint16_t)bits;
      const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
      const double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024.0, (int)exponent - 25);
      const double exact = (bits & 0x8000u) != 0 ? -magnitude : magnitude;
      float value;
      uint16_t back;
      rows->half_to_float(&value, &half, 1);
      rows->float_to_half(&back, &value, 1);
      if (exponent == 31) {
        CHECK(fraction != 0 ? isnan(value) : isinf(value));
        CHECK(fraction != 0 ? (back & 0x7fffu) > 0x7c00u : back == half);
      } else {
        CHECK((double)value == exact && back == half);
      }
    }
    for (int round = 0; round < 2000; ++round) {
      const size_t count = draw(LONGEST);
      float in[LONGEST] = {0};
      uint16_t out[2][LONGEST];
      for (size_t i = 0; i < count; ++i) {
        const float any = draw_any();
        /* Between two halves, often in the middle. */
        in[i] = any != any ? 0.0f : draw(2) == 0 ? any : float_of(0x38000000u + (draw(0x10000) << 12));
      }
      rows->float_to_half(out[0], in, count);
      plain->float_to_half(out[1], in, count);
      CHECK(memcmp(out[0], out[1], count * sizeof out[0][0]) == 0);
      rows->float_to_bfloat16(out[0], in, count);
      for (size_t i = 0; i < count; ++i) {
        const float low = float_of((uint32_t)out[0][i] << 16);
        float near[2];
        uint16_t next[2] = {(uint16_t)(out[0][i] + 1), (uint16_t)(out[0][i] - 1)};
        rows->bfloat16_to_float(near, next, 2);
        if (isinf(low) || isinf(in[i]) || (out[0][i] & 0x7fffu) == 0) continue;
        for (int k = 0; k < 2; ++k) { /* nothing is nearer; in the middle it is even */
          const double here = fabs((double)low - (double)in[i]), there = fabs((double)near[k] - (double)in[i]);
          CHECK(here < there || (here == there && out[0][i] % 2 == 0) || !isfinite(near[k]));
        }
      }
    }
  }
}

static void check_quantize(const etude_rows *rows) {
  const size_t count = 1 + draw(LONGEST);
  const bool is_signed = draw(2) == 0;
  const float scale = ldexpf(1.0f + (float)draw(1000) / 1000.0f, (int)draw(12) - 8);
  etude_to_bytes type;
  float in[LONGEST] = {0}, back[LONGEST];
  uint8_t out[LONGEST];
  type.low = (is_signed ? -128 : 0) + (int32_t)draw(20);
  type.high = (is_signed ? 127 : 255) - (int32_t)draw(20);
  type.zero = draw(4) == 0 ? (int32_t)draw(1u << 21) : type.low + (int32_t)draw(200);
  type.factor = 1.0f / scale;
  type.nan = draw(2) == 0 ? type.low : type.high;
  for (size_t i = 0; i < count; ++i) {
    in[i] = draw(3) == 0 ? draw_any() : ((float)draw(513) - 256.0f) / (2.0f * type.factor); /* often in the middle */
  }
  rows->quantize(out, in, count, &type);
  (is_signed ? rows->dequantize_signed : rows->dequantize)(back, out, count, type.zero, scale);
  for (size_t i = 0; i < count; ++i) {
    const float value = in[i] * type.factor;
    const double q = fmin(fmax(rint((double)value) + type.zero, type.low), type.high);
    const int32_t got = is_signed ? (int32_t)(int8_t)out[i] : (int32_t)out[i];
    CHECK(got == (isnan(value) ? type.nan : (int32_t)q));
    CHECK(back[i] == (float)((double)(got - type.zero) * (double)scale));
  }
}

static void test_quantize(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (int round = 0; round < 2000; ++round) check_quantize(rows);
  }
}

/* ---- softmax, pooling, sums ---- */

static void test_softmax(void) {
  const etude_softmax loops = etude_softmax_select();
  for (int round = 0; round < 500; ++round) {
    const size_t count = 1 + draw(LONGEST);
    float in[LONGEST] = {0}, out[LONGEST], logs[LONGEST];
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; ++i) in[i] = ((float)draw(2000001) - 1000000.0f) / 100000.0f;
    for (size_t i = 0; i < count; ++i) largest = fmax(largest, (double)in[i]);
    for (size_t i = 0; i < count; ++i) sum += exp((double)in[i] - largest);
    etude_softmax_row(&loops, out, in, count);
    etude_log_softmax_row(&loops, logs, in, count);
    for (size_t i = 0; i < count; ++i) {
      const double exact = exp((double)in[i] - largest) / sum;
      CHECK(fabs((double)out[i] - exact) <= 3e-6 * exact);
      CHECK(fabs((double)logs[i] - log(exact)) <= 3e-6 * (1 + fabs(log(exact))));
    }
  }
}

static void check_pools(const etude_rows *rows) {
  enum { MOST = 9 };
  const size_t channels = 1 + draw(LONGEST), taps = 1 + draw(MOST);
  const float low = draw(2) == 0 ? -INFINITY : -1.0f, high = draw(2) == 0 ? INFINITY : 2.0f;
  static float data[MOST * LONGEST];
  static int8_t bytes[MOST * LONGEST];
  const float *in[MOST];
  const int8_t *in8[MOST];
  float most[LONGEST], sums[LONGEST], columns[LONGEST];
  int8_t most8[LONGEST];
  for (size_t i = 0; i < taps * channels; ++i) data[i] = ((float)draw(2001) - 1000.0f) / 256.0f;
  for (size_t i = 0; i < taps * channels; ++i) bytes[i] = (int8_t)draw(256);
  for (size_t t = 0; t < taps; ++t) in[t] = data + t * channels;
  for (size_t t = 0; t < taps; ++t) in8[t] = bytes + t * channels;
  rows->pool_max(most, in, taps, channels, low, high);
  rows->pool_sum(sums, in, taps, channels, 0.25f, low, high);
  rows->sum_rows(columns, data, taps, channels, channels, 0.25f, low, high);
  rows->pool_max_s8(most8, in8, taps, channels, -100, 90);
  for (size_t c = 0; c < channels; ++c) {
    float best = -INFINITY, sum = 0;
    int best8 = -100;
    for (size_t t = 0; t < taps; ++t) {
      best = fmaxf(best, in[t][c]);
      sum += in[t][c]; /* exact: multiples of 1 / 256 */
      best8 = in8[t][c] > best8 ? in8[t][c] : best8;
    }
    CHECK(most[c] == fminf(fmaxf(best, low), high));
    CHECK(sums[c] == fminf(fmaxf(sum / 4, low), high) && columns[c] == sums[c]);
    CHECK(most8[c] == (best8 > 90 ? 90 : best8));
  }
}

static void check_largest(const etude_rows *rows) {
  const size_t count = 1 + draw(LONGEST), step = 1 + draw(4);
  float best[LONGEST], before[LONGEST];
  int32_t place[LONGEST];
  float in[LONGEST];
  for (size_t i = 0; i < count; ++i) in[i] = draw(20) == 0 ? NAN : (float)draw(8);
  for (size_t i = 0; i < count; ++i) best[i] = before[i] = draw(20) == 0 ? NAN : (float)draw(8);
  for (size_t i = 0; i < count; ++i) place[i] = -1;
  rows->take_largest(best, place, in, count, 1000, (int32_t)step);
  for (size_t i = 0; i < count; ++i) {
    const float x = in[i];
    const bool taken = isnan(x) || x > before[i];
    const float wanted = taken ? x : before[i];
    CHECK(place[i] == (taken ? 1000 + (int32_t)(i * step) : -1));
    CHECK(best[i] == wanted || (isnan(best[i]) && isnan(wanted)));
  }
}

static void test_pools(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (int round = 0; round < 300; ++round) check_pools(rows);
    for (int round = 0; round < 300; ++round) check_largest(rows);
  }
}

static void test_bilinear(void) {
  const etude_rows *rows;
  for (size_t set = 0; (rows = etude_rows_at(set)) != NULL; ++set) {
    for (int round = 0; round < 300; ++round) {
      const size_t channels = 1 + draw(LONGEST);
      const float x = (float)draw(1000) / 1000.0f, y = (float)draw(1000) / 1000.0f;
      float in[4][LONGEST], out[LONGEST];
      for (size_t i = 0; i < 4 * channels; ++i) in[i % 4][i / 4] = ((float)draw(2001) - 1000.0f) / 256.0f;
      rows->bilinear(out, in[0], in[1], in[2], in[3], channels, x, y);
      for (size_t c = 0; c < channels; ++c) {
        const double exact = (1.0 - (double)y) * ((1.0 - (double)x) * (double)in[0][c] + (double)x * (double)in[1][c]) +
                             (double)y * ((1.0 - (double)x) * (double)in[2][c] + (double)x * (double)in[3][c]);
        CHECK(fabs((double)out[c] - exact) < 2e-6);
      }
    }
  }
}

/* ---- transposes ---- */

static void check_transpose(void) {
  enum { MOST_BYTES = 1 << 16 };
  static uint8_t in[MOST_BYTES], out[MOST_BYTES];
  static const size_t element_sizes[] = {1, 2, 4, 8, 3};
  const size_t size = element_sizes[draw(5)];
  const uint32_t rank = draw(ETUDE_TRANSPOSE_MOST_RANK + 1);
  size_t sizes[ETUDE_TRANSPOSE_MOST_RANK], strides[ETUDE_TRANSPOSE_MOST_RANK];
  uint32_t order[ETUDE_TRANSPOSE_MOST_RANK];
  size_t count = 1, stride = 1;
  for (uint32_t d = 0; d < rank; ++d) order[d] = d;
  for (uint32_t d = rank; d > 1; --d) {
    const uint32_t other = draw(d), kept = order[d - 1];
    order[d - 1] = order[other];
    order[other] = kept;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    const size_t most = MOST_BYTES / size / count;
    const size_t wanted = draw(3) == 0 ? 1 + draw(70) : 1 + draw(6);
    sizes[d] = wanted < most ? wanted : most;
    count *= sizes[d];
  }
  for (uint32_t d = rank; d-- > 0;) { /* the argument lies densely in the order `order` */
    strides[order[d]] = stride;
    stride *= sizes[order[d]];
  }
  for (size_t i = 0; i < count * size; ++i) in[i] = (uint8_t)draw(256);
  memset(out, 0, sizeof out);
  etude_transpose(out, in, rank, sizes, strides, size, NULL);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, from = 0;
    for (uint32_t d = rank; d-- > 0; rest /= sizes[d]) from += rest % sizes[d] * strides[d];
    CHECK(memcmp(out + i * size, in + from * size, size) == 0);
  }
}

static void test_transposes(void) {
  for (int round = 0; round < 3000; ++round) check_transpose();
}

int main(void) {
  RUN(test_unary);
  RUN(test_large_angles);
  RUN(test_binary);
  RUN(test_halves);
  RUN(test_quantize);
  RUN(test_softmax);
  RUN(test_pools);
  RUN(test_bilinear);
  RUN(test_transposes);
  return TEST_END();
}
