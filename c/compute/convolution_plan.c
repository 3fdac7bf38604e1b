/* See convolution_plan.h. */
#include "convolution_plan.h"

#define WINOGRAD_CHANNELS 16
#define WINOGRAD_BYTES (5u << 20) /* of transformed weights */
#define FEW_BYTES 64              /* of inputs for each tap: merged below this */

static size_t align_64(size_t size) { return (size + 63) & ~(size_t)63; }

etude_convolution etude_product(etude_arithmetic arithmetic, size_t rows, size_t in, size_t out) {
  etude_convolution c = {0};
  c.arithmetic = arithmetic;
  c.groups = 1;
  c.in_channels = in;
  c.out_channels = out;
  c.kernel_height = c.kernel_width = c.stride_height = c.stride_width = c.dilation_height = c.dilation_width = 1;
  c.batch = c.in_height = c.out_height = 1;
  c.in_width = c.out_width = rows;
  return c;
}

static const etude_tiles *tiles_of(const etude_convolution *c) {
  return c->tiles == NULL ? etude_tiles_select() : c->tiles;
}

uint32_t etude_convolution_layout(const etude_convolution *c) { return tiles_of(c)->layout; }

bool etude_convolution_reaches(const etude_convolution *c, uint32_t first, size_t pad, uint32_t dilation,
                               uint32_t stride, uint32_t k) {
  return !c->transposed || (first + pad + (size_t)stride * dilation * k - (size_t)dilation * k) % stride == 0;
}

etude_convolution_phase etude_convolution_phase_of(const etude_convolution *c, uint32_t index) {
  etude_convolution_phase phase = {0};
  const uint32_t step_y = c->transposed ? c->stride_height : 1, step_x = c->transposed ? c->stride_width : 1;
  phase.y = index / step_x;
  phase.x = index % step_x;
  for (uint32_t k = 0; k < c->kernel_height; ++k) {
    phase.tap_rows +=
        etude_convolution_reaches(c, phase.y, c->pad_top, c->dilation_height, c->stride_height, k) ? 1 : 0;
  }
  for (uint32_t k = 0; k < c->kernel_width; ++k) {
    phase.tap_cols += etude_convolution_reaches(c, phase.x, c->pad_left, c->dilation_width, c->stride_width, k) ? 1 : 0;
  }
  phase.height = c->out_height > phase.y ? (c->out_height - phase.y - 1) / step_y + 1 : 0;
  phase.width = c->out_width > phase.x ? (c->out_width - phase.x - 1) / step_x + 1 : 0;
  return phase;
}

size_t etude_convolution_panel_taps(const etude_convolution_plan *plan, const etude_convolution_phase *phase) {
  return plan->merged ? phase->tap_rows : (size_t)phase->tap_rows * phase->tap_cols;
}

size_t etude_convolution_panel_depth(const etude_convolution *c, const etude_convolution_plan *plan) {
  return plan->merged ? c->kernel_width * c->in_channels : c->in_channels;
}

/* Bytes of a panel of a phase that is `width` columns wide. */
static size_t panel_size(const etude_convolution *c, const etude_convolution_plan *plan,
                         const etude_convolution_phase *phase, size_t width) {
  const size_t group = plan->set->group, taps = etude_convolution_panel_taps(plan, phase);
  const size_t depth = (etude_convolution_panel_depth(c, plan) + group - 1) / group * group;
  switch (c->arithmetic) {
    case ETUDE_ARITHMETIC_F32: return width * sizeof(float) * (1 + taps * depth);
    case ETUDE_ARITHMETIC_S8: return width * (8 + taps * depth);
    case ETUDE_ARITHMETIC_QD8: return width * (12 + taps * depth);
    case ETUDE_ARITHMETIC_QB4: break;
  }
  return width * (8 + c->in_channels / c->block * (c->block / 2 + 2));
}

/* Of one group of a phase. */
static size_t group_size(const etude_convolution *c, const etude_convolution_plan *plan,
                         const etude_convolution_phase *phase) {
  return (plan->panels - 1) * panel_size(c, plan, phase, plan->set->cols) +
         panel_size(c, plan, phase, plan->last_width);
}

etude_convolution_panels etude_convolution_panels_of(const etude_convolution *c, const etude_convolution_plan *plan,
                                                     uint32_t phase) {
  etude_convolution_panels panels = {0};
  for (uint32_t i = 0; i < phase; ++i) {
    const etude_convolution_phase before = etude_convolution_phase_of(c, i);
    panels.offset += c->groups * group_size(c, plan, &before);
  }
  const etude_convolution_phase own = etude_convolution_phase_of(c, phase);
  panels.size = panel_size(c, plan, &own, plan->set->cols);
  panels.group_size = group_size(c, plan, &own);
  return panels;
}

/* a * b * factor, or SIZE_MAX / 4 for what is more, so that a few can be added. */
static size_t bounded(size_t a, size_t b, size_t factor) {
  const size_t most = SIZE_MAX / 4;
  if (a == 0 || b == 0) return 0;
  if (a > most / b || a * b > most / factor) return most;
  return a * b * factor;
}

static size_t depthwise_size(const etude_convolution *c, const etude_convolution_plan *plan) {
  const size_t lanes = plan->tiles->depthwise_lanes[c->arithmetic];
  const size_t taps = (size_t)c->kernel_height * c->kernel_width;
  const size_t each = c->arithmetic == ETUDE_ARITHMETIC_F32 ? (taps + 1) * sizeof(float) : taps + 8;
  return (c->groups + lanes - 1) / lanes * lanes * each;
}

/* At least what everything takes together, to see whether it is too much to compute with. */
static size_t upper_bound(const etude_convolution *c, const etude_tile_set *set) {
  const size_t taps = bounded(c->kernel_height, c->kernel_width, 1);
  const size_t outs =
      bounded(c->groups, c->out_channels > SIZE_MAX / 4 ? SIZE_MAX / 4 : c->out_channels + set->cols, 1);
  const size_t ins = bounded(taps, c->in_channels > SIZE_MAX / 4 ? SIZE_MAX / 4 : c->in_channels + 64, 1);
  return bounded(outs, ins > SIZE_MAX / 8 ? SIZE_MAX / 8 : ins + 16, 4);
}

/* The transforms pay off where there are channels enough; and the larger tiles as long as their weights, 4 times as many
   as they were, stay in the caches. */
static uint32_t winograd_tile(const etude_convolution *c) {
  const bool square = c->kernel_height == 3 && c->kernel_width == 3 && c->stride_height == 1 && c->stride_width == 1 &&
                      c->dilation_height == 1 && c->dilation_width == 1;
  if (c->arithmetic != ETUDE_ARITHMETIC_F32 || c->plain || c->transposed || c->groups != 1 || !square) return 0;
  if (c->in_channels < WINOGRAD_CHANNELS || c->out_channels < WINOGRAD_CHANNELS) return 0;
  const size_t weights = bounded(c->in_channels, c->out_channels, sizeof(float));
  if (weights <= WINOGRAD_BYTES / 36) return 4;
  return weights <= WINOGRAD_BYTES / 16 ? 2 : 0;
}

etude_convolution_plan etude_convolution_plan_of(const etude_convolution *c) {
  etude_convolution_plan plan = {0};
  plan.tiles = tiles_of(c);
  plan.set = &plan.tiles->product[c->arithmetic];
  plan.x_size = c->arithmetic == ETUDE_ARITHMETIC_F32 ? sizeof(float) : 1;
  plan.y_size = c->arithmetic == ETUDE_ARITHMETIC_S8 ? 1 : sizeof(float);
  plan.depthwise =
      !c->transposed && c->in_channels == 1 && c->out_channels == 1 && c->arithmetic <= ETUDE_ARITHMETIC_S8;
  plan.merged = !plan.depthwise && !c->transposed && c->groups == 1 && c->dilation_width == 1 && c->kernel_width > 1 &&
                c->in_channels * plan.x_size < FEW_BYTES;
  plan.phases = c->transposed ? c->stride_height * c->stride_width : 1;
  if (upper_bound(c, plan.set) >= SIZE_MAX / 4) {
    plan.packed_size = SIZE_MAX;
    return plan;
  }
  const size_t cols = plan.set->cols;
  plan.panels = (c->out_channels + cols - 1) / cols;
  plan.last_cols = c->out_channels - (plan.panels - 1) * cols;
  plan.last_width = plan.last_cols <= plan.set->lanes ? plan.set->lanes : cols;
  if (plan.depthwise) {
    plan.padding_offset = align_64(depthwise_size(c, &plan));
    plan.packed_size = plan.padding_offset + align_64(c->groups * plan.x_size);
    return plan;
  }
  plan.winograd = winograd_tile(c);
  if (plan.winograd != 0) {
    plan.padding_offset = etude_winograd_packed_size(c, &plan);
  } else if (c->out_channels != 0) {
    plan.padding_offset = align_64(etude_convolution_panels_of(c, &plan, plan.phases).offset);
  }
  plan.packed_size = plan.padding_offset + align_64(etude_convolution_panel_depth(c, &plan) * plan.x_size);
  return plan;
}

size_t etude_convolution_packed_size(const etude_convolution *c) { return etude_convolution_plan_of(c).packed_size; }

uint32_t etude_convolution_winograd(const etude_convolution *c) { return etude_convolution_plan_of(c).winograd; }
