/* Packing of weights; see tiles.h for what a panel looks like. */
#include <string.h>

#include "convolution_plan.h"
#include "words.h"

typedef struct packer {
  const etude_convolution *c;
  const etude_convolution_plan *plan;
  const etude_weights *w;
} packer;

static void put(char **to, const void *value, size_t size) {
  memcpy(*to, value, size);
  *to += size;
}

static float bias_float(const packer *p, size_t out) {
  return p->w->bias == NULL ? 0.0f : ((const float *)p->w->bias)[out];
}

static float factor_float(const packer *p, size_t out) { return p->w->factors == NULL ? 1.0f : p->w->factors[out]; }

/* An output that a panel has columns for but the convolution doesn't is all zeros. */
static int8_t weight_s8(const packer *p, size_t out, size_t tap, size_t in) {
  return ((const int8_t *)p->w->data)[etude_weight_place(p->c, p->w, out, tap, in)];
}

/* The taps of a phase in the order of a panel. */
typedef struct taps {
  const packer *p;
  etude_convolution_phase phase;
  uint32_t ky, kx;
} taps;

static bool reaches(const taps *t) {
  const etude_convolution *c = t->p->c;
  return etude_convolution_reaches(c, t->phase.y, c->pad_top, c->dilation_height, c->stride_height, t->ky) &&
         etude_convolution_reaches(c, t->phase.x, c->pad_left, c->dilation_width, c->stride_width, t->kx);
}

static bool next_tap(taps *t, bool first) {
  const etude_convolution *c = t->p->c;
  for (;;) {
    if (!first && ++t->kx == c->kernel_width) {
      t->kx = 0;
      ++t->ky;
    }
    first = false;
    if (t->ky >= c->kernel_height) return false;
    if (reaches(t)) return true;
  }
}

/* Weights of all inputs of a tap, those of all columns together. */
static void put_f32(const packer *p, char **to, size_t out, size_t cols, size_t width, size_t tap) {
  const size_t depth = p->c->in_channels;
  const float *from = (const float *)p->w->data + etude_weight_place(p->c, p->w, out, tap, 0);
  float *w = (float *)(void *)*to;
  *to = (char *)(w + depth * width);
  if (cols < width) memset(w, 0, depth * width * sizeof(float));
  if (p->w->in_stride == 1) {
    etude_transpose_words(w, (ptrdiff_t)width, from, (ptrdiff_t)p->w->out_stride, depth, cols);
    return;
  }
  for (size_t k = 0; k < depth; ++k, from += p->w->in_stride, w += width) {
    for (size_t j = 0; j < cols; ++j) w[j] = from[j * p->w->out_stride];
  }
}

/* All weights of a panel where the taps of an input lie beside each other: [out][in][tap]. */
static void put_inner_taps(const packer *p, char *to, size_t out, size_t cols, size_t width) {
  enum { ROWS = 32, MOST_WIDTH = 32 };
  const size_t tap_count = p->w->in_stride, ins = p->c->in_channels, count = tap_count * ins;
  const float *from = (const float *)p->w->data + out * p->w->out_stride;
  float *w = (float *)(void *)to;
  float lines[ROWS * MOST_WIDTH] = {0.0f};
  size_t tap = 0, in = 0;
  for (size_t first = 0; first < count; first += ROWS) {
    const size_t rows = count - first < ROWS ? count - first : ROWS;
    etude_transpose_words(lines, (ptrdiff_t)width, from + first, (ptrdiff_t)p->w->out_stride, rows, cols);
    for (size_t r = 0; r < rows; ++r) {
      memcpy(w + (tap * ins + in) * width, lines + r * width, width * sizeof *w);
      if (++tap < tap_count) continue;
      tap = 0;
      ++in;
    }
  }
}

static bool has_inner_taps(const packer *p, size_t width) {
  const size_t tap_count = (size_t)p->c->kernel_height * p->c->kernel_width;
  return !p->c->transposed && tap_count > 1 && p->w->tap_stride == 1 && p->w->in_stride == tap_count && width <= 32;
}

/* Sums of a column of int8 weights over everything that its panel has. */
static int32_t column_sum(const packer *p, const etude_convolution_phase *phase, size_t out) {
  taps t = {p, *phase, 0, 0};
  int32_t sum = 0;
  for (bool more = next_tap(&t, true); more; more = next_tap(&t, false)) {
    const size_t tap = (size_t)t.ky * p->c->kernel_width + t.kx;
    for (size_t k = 0; k < p->c->in_channels; ++k) sum += weight_s8(p, out, tap, k);
  }
  return sum;
}

/* What stands for column `out` of a panel of int8 at its head; `row` is 0 for the bias, 1 for the scale … */
static void put_head_s8(const packer *p, char **to, const etude_convolution_phase *phase, size_t out, size_t cols,
                        size_t width) {
  const int32_t offset = p->plan->set->x_offset;
  for (size_t j = 0; j < width; ++j) {
    uint32_t bias = 0; /* sums wrap as they do in the loops */
    if (j < cols) {
      bias = p->w->bias == NULL ? 0 : (uint32_t)((const int32_t *)p->w->bias)[out + j];
      bias -= (uint32_t)(p->w->x_zero + offset) * (uint32_t)column_sum(p, phase, out + j);
    }
    put(to, &bias, sizeof bias);
  }
  for (size_t j = 0; j < width; ++j) {
    const float scale = j < cols ? p->w->scales[out + j] : 0.0f;
    put(to, &scale, sizeof scale);
  }
}

static void put_head_qd8(const packer *p, char **to, const etude_convolution_phase *phase, size_t out, size_t cols,
                         size_t width) {
  for (size_t j = 0; j < width; ++j) {
    const float bias = j < cols ? bias_float(p, out + j) : 0.0f;
    put(to, &bias, sizeof bias);
  }
  for (size_t j = 0; j < width; ++j) {
    const float scale = j < cols ? p->w->scales[out + j] : 0.0f;
    put(to, &scale, sizeof scale);
  }
  for (size_t j = 0; j < width; ++j) {
    const int32_t sum = j < cols ? column_sum(p, phase, out + j) : 0;
    put(to, &sum, sizeof sum);
  }
}

/* Multiply the columns of a panel, `lines` weights long, by their factors. */
static void scale_panel(const packer *p, float *w, size_t lines, size_t out, size_t cols, size_t width) {
  enum { TOGETHER = 64 };
  float factors[TOGETHER];
  for (size_t first = 0; first < cols; first += TOGETHER) {
    const size_t count = cols - first < TOGETHER ? cols - first : TOGETHER;
    for (size_t j = 0; j < count; ++j) factors[j] = factor_float(p, out + first + j);
    for (size_t k = 0; k < lines; ++k) {
      float *line = w + k * width + first;
      for (size_t j = 0; j < count; ++j) line[j] *= factors[j];
    }
  }
}

static void pack_panel_f32(const packer *p, char *to, const etude_convolution_phase *phase, size_t out, size_t cols,
                           size_t width) {
  taps t = {p, *phase, 0, 0};
  for (size_t j = 0; j < width; ++j) {
    const float bias = j < cols ? bias_float(p, out + j) : 0.0f;
    put(&to, &bias, sizeof bias);
  }
  float *first = (float *)(void *)to;
  size_t lines = 0;
  if (has_inner_taps(p, width)) {
    put_inner_taps(p, to, out, cols, width);
    lines = p->w->in_stride * p->c->in_channels;
  } else {
    for (bool more = next_tap(&t, true); more; more = next_tap(&t, false), lines += p->c->in_channels) {
      const size_t tap = (size_t)t.ky * p->c->kernel_width + t.kx;
      put_f32(p, &to, out, cols, width, tap);
    }
  }
  if (p->w->factors != NULL) scale_panel(p, first, lines, out, cols, width);
}

static void pack_panel_s8(const packer *p, char *to, const etude_convolution_phase *phase, size_t out, size_t cols,
                          size_t width) {
  const size_t group = p->plan->set->group, ins = p->c->in_channels;
  taps t = {p, *phase, 0, 0};
  size_t k = 0; /* inputs written */
  if (p->c->arithmetic == ETUDE_ARITHMETIC_S8) {
    put_head_s8(p, &to, phase, out, cols, width);
  } else {
    put_head_qd8(p, &to, phase, out, cols, width);
  }
  for (bool more = next_tap(&t, true); more; more = next_tap(&t, false)) {
    const size_t tap = (size_t)t.ky * p->c->kernel_width + t.kx;
    for (size_t i = 0; i < ins; ++i, ++k) {
      char *line = to + k / group * group * width + k % group;
      if (k % group == 0) memset(line, 0, group * width);
      for (size_t j = 0; j < cols; ++j) line[j * group] = (char)weight_s8(p, out + j, tap, i);
    }
    if (!p->plan->merged || t.kx + 1 == p->c->kernel_width) k = (k + group - 1) / group * group;
  }
}

static uint32_t nibble(const packer *p, size_t out, size_t in) {
  const uint8_t byte = ((const uint8_t *)p->w->data)[out * p->w->out_stride + in / 2];
  return in % 2 == 0 ? byte & 15u : byte >> 4;
}

static float block_scale(const packer *p, size_t out, size_t block) {
  const uint32_t bits = (uint32_t)p->w->block_scales[out * (p->c->in_channels / p->c->block) + block] << 16;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return scale;
}

/* Sum of the nibbles of `bytes` bytes, a multiple of 16. */
static int32_t sum_nibbles(const uint8_t *from, size_t bytes) {
  const uint64_t low = 0x0f0f0f0f0f0f0f0fu;
  int32_t sum = 0;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t eight;
    memcpy(&eight, from + i, sizeof eight);
    sum += (int32_t)(((eight & low) + (eight >> 4 & low)) * 0x0101010101010101u >> 56);
  }
  return sum;
}

/* Sum of scale * weight over a column. */
static float scaled_sum(const packer *p, size_t out) {
  const size_t block = p->c->block;
  const uint8_t *from = (const uint8_t *)p->w->data + out * p->w->out_stride;
  float sum = 0.0f;
  for (size_t b = 0; b < p->c->in_channels / block; ++b) {
    const int32_t block_sum = sum_nibbles(from + b * block / 2, block / 2) - 8 * (int32_t)block;
    sum += block_scale(p, out, b) * (float)block_sum;
  }
  return sum;
}

/* 2 * `group` inputs of a column from `in` on: pairs that lie `group` apart share a byte. */
static void put_nibbles(const packer *p, uint8_t *to, size_t out, size_t in, size_t group) {
  if (group == 4) {
    const uint8_t *from = (const uint8_t *)p->w->data + out * p->w->out_stride + in / 2;
    to[0] = (uint8_t)((from[0] & 15u) | (from[2] & 15u) << 4);
    to[1] = (uint8_t)(from[0] >> 4 | (from[2] & 0xf0u));
    to[2] = (uint8_t)((from[1] & 15u) | (from[3] & 15u) << 4);
    to[3] = (uint8_t)(from[1] >> 4 | (from[3] & 0xf0u));
    return;
  }
  for (size_t i = 0; i < group; ++i) to[i] = (uint8_t)(nibble(p, out, in + i) | nibble(p, out, in + i + group) << 4);
}

static void pack_panel_qb4(const packer *p, char *to, size_t out, size_t cols, size_t width) {
  const size_t group = p->plan->set->group, block = p->c->block, blocks = p->c->in_channels / block;
  const size_t block_size = width * (block / 2 + sizeof(uint16_t));
  for (size_t j = 0; j < width; ++j) {
    const float bias = j < cols ? bias_float(p, out + j) : 0.0f;
    put(&to, &bias, sizeof bias);
  }
  for (size_t j = 0; j < width; ++j) {
    const float sum = j < cols ? scaled_sum(p, out + j) : 0.0f;
    put(&to, &sum, sizeof sum);
  }
  if (cols < width) memset(to, 0, blocks * block_size); /* by scales of 0, whatever the weights */
  for (size_t b = 0; b < blocks; ++b, to += block_size) {
    for (size_t j = 0; j < cols; ++j) {
      uint8_t *column = (uint8_t *)to + j * group;
      for (size_t k = 0; k < block; k += 2 * group, column += width * group) {
        put_nibbles(p, column, out + j, b * block + k, group);
      }
      memcpy(to + width * block / 2 + 2 * j, &p->w->block_scales[(out + j) * blocks + b], sizeof(uint16_t));
    }
  }
}

/* Taps of a depthwise convolution are in the order of columns of the kernel, as pixels that lie beside each other share
   them. */
static void pack_depthwise(const packer *p, char *to, size_t first, size_t end) {
  const etude_convolution *c = p->c;
  const size_t lanes = p->plan->tiles->depthwise_lanes[c->arithmetic];
  const bool floats = c->arithmetic == ETUDE_ARITHMETIC_F32;
  const size_t tap_count = (size_t)c->kernel_height * c->kernel_width;
  const etude_convolution_phase phase = etude_convolution_phase_of(c, 0);
  to += first * lanes * (floats ? (tap_count + 1) * sizeof(float) : tap_count + 8);
  for (size_t block = first; block < end; ++block) {
    const size_t out = block * lanes, cols = c->groups - out < lanes ? c->groups - out : lanes;
    if (floats) {
      for (size_t j = 0; j < lanes; ++j) {
        const float bias = j < cols ? bias_float(p, out + j) : 0.0f;
        put(&to, &bias, sizeof bias);
      }
    } else {
      packer exact = *p; /* depthwise loops add no offset */
      etude_convolution_plan plan = *p->plan;
      etude_tile_set set = *p->plan->set;
      set.x_offset = 0;
      plan.set = &set;
      exact.plan = &plan;
      put_head_s8(&exact, &to, &phase, out, cols, lanes);
    }
    for (uint32_t kx = 0; kx < c->kernel_width; ++kx) {
      for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
        const size_t tap = (size_t)ky * c->kernel_width + kx;
        for (size_t j = 0; j < lanes; ++j) {
          if (floats) {
            const float *from = (const float *)p->w->data;
            const float value = j < cols ? from[etude_weight_place(c, p->w, out + j, tap, 0)] : 0.0f;
            const float scaled = j < cols ? value * factor_float(p, out + j) : 0.0f;
            put(&to, &scaled, sizeof scaled);
          } else {
            const int8_t value = j < cols ? weight_s8(p, out + j, tap, 0) : 0;
            put(&to, &value, 1);
          }
        }
      }
    }
  }
}

/* Panel `panel` of everything, counted over phases and groups. */
static void pack_panel(const packer *p, char *packed, size_t number) {
  const etude_convolution *c = p->c;
  const size_t panel = number % p->plan->panels, group = number / p->plan->panels % c->groups;
  const uint32_t index = (uint32_t)(number / p->plan->panels / c->groups);
  const etude_convolution_phase phase = etude_convolution_phase_of(c, index);
  const bool last = panel == p->plan->panels - 1;
  const size_t cols = last ? p->plan->last_cols : p->plan->set->cols;
  const size_t width = last ? p->plan->last_width : p->plan->set->cols;
  const size_t out = group * c->out_channels + panel * p->plan->set->cols;
  const etude_convolution_panels panels = etude_convolution_panels_of(c, p->plan, index);
  char *to = packed + panels.offset + group * panels.group_size + panel * panels.size;
  switch (c->arithmetic) {
    case ETUDE_ARITHMETIC_F32: pack_panel_f32(p, to, &phase, out, cols, width); break;
    case ETUDE_ARITHMETIC_S8:
    case ETUDE_ARITHMETIC_QD8: pack_panel_s8(p, to, &phase, out, cols, width); break;
    case ETUDE_ARITHMETIC_QB4: pack_panel_qb4(p, to, out, cols, width); break;
  }
}

void etude_convolution_pack(const etude_convolution *c, void *packed, const etude_weights *weights, size_t part,
                            size_t parts) {
  const etude_convolution_plan plan = etude_convolution_plan_of(c);
  const packer p = {c, &plan, weights};
  const size_t lanes = plan.depthwise ? plan.tiles->depthwise_lanes[c->arithmetic] : 1;
  const size_t count = plan.depthwise ? (c->groups + lanes - 1) / lanes : plan.phases * c->groups * plan.panels;
  const size_t first = count / parts * part + (part < count % parts ? part : count % parts);
  const size_t end = first + count / parts + (part < count % parts ? 1 : 0);
  if (part == 0) {
    const int fill = c->arithmetic == ETUDE_ARITHMETIC_S8 ? weights->x_zero : 0;
    memset((char *)packed + plan.padding_offset, fill, plan.packed_size - plan.padding_offset);
  }
  if (plan.depthwise) {
    pack_depthwise(&p, packed, first, end);
    return;
  }
  for (size_t i = first; i < end; ++i) {
    if (plan.winograd != 0) {
      etude_winograd_pack_panel(c, &plan, weights, packed, i);
    } else {
      pack_panel(&p, packed, i);
    }
  }
}
