/* See convolution_bytes.h. */
#include "convolution_bytes.h"

#include <math.h>

#include "compute/transpose.h"
#include "convolution_image.h"
#include "dtype.h"

#ifndef ETUDE_NO_FOLDING
/* Scale and zero point of one tensor. */
typedef struct grid {
  double scale;
  int64_t zero;
} grid;

static etude_convolution describe(const etude_conv *c) {
  etude_convolution v = etude_conv_images(c);
  v.arithmetic = ETUDE_ARITHMETIC_S8;
  return v;
}

/* ---- what stands around it ---- */

static bool read_grid(etude_value *const *args, grid *g) {
  if (args[1]->tag != ETUDE_VALUE_DOUBLE || args[2]->tag != ETUDE_VALUE_INT) return false;
  g->scale = args[1]->as.double_value;
  g->zero = args[2]->as.int_value;
  return g->scale > 0 && g->zero >= INT8_MIN && g->zero <= INT8_MAX;
}

static bool is_dequantize(const etude_kernel_neighbour *call, grid *g) {
  if (strcmp(call->name, "quantized_decomposed::dequantize_per_tensor.out") != 0 || call->arg_count != 9) return false;
  const etude_tensor *from = etude_value_tensor(call->args[0]), *to = etude_value_tensor(call->args[7]);
  return from != NULL && to != NULL && from->scalar_type == ETUDE_CHAR && to->scalar_type == ETUDE_FLOAT &&
         read_grid(call->args, g);
}

/* A quantize to int8 with its range. */
static bool is_quantize(const etude_kernel_neighbour *call, grid *g, int64_t range[2]) {
  if (strcmp(call->name, "quantized_decomposed::quantize_per_tensor.out") != 0 || call->arg_count != 8) return false;
  const etude_tensor *to = etude_value_tensor(call->args[6]);
  if (to == NULL || to->scalar_type != ETUDE_CHAR || call->args[3]->tag != ETUDE_VALUE_INT ||
      call->args[4]->tag != ETUDE_VALUE_INT)
    return false;
  range[0] = call->args[3]->as.int_value;
  range[1] = call->args[4]->as.int_value;
  return range[0] >= INT8_MIN && range[1] <= INT8_MAX && range[0] <= range[1] && read_grid(call->args, g);
}

/* Calls that are done: clamps, a quantize, and after it clamps between a dequantize and a quantize by the same grid. */
typedef struct after {
  uint32_t count;
  grid y;
  int64_t low, high;
} after;

static int64_t clamped(double value, int64_t low, int64_t high) {
  return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

static bool same(const grid *a, const grid *b) { return a->scale == b->scale && a->zero == b->zero; }

/* Bounds as quantised within a range. */
static int64_t bound_of(float bound, const grid *g, const int64_t range[2]) {
  return clamped(nearbyint((double)bound / g->scale) + (double)g->zero, range[0], range[1]);
}

/* A clamp behind another: its bounds hold, and those before it as far as it lets them. */
static float limited(float bound, float low, float high) { return bound < low ? low : bound > high ? high : bound; }

static bool read_after(etude_kernel_context *ctx, const etude_tensor *out, uint32_t most, after *found) {
  float low = -HUGE_VALF, high = HUGE_VALF; /* of the clamps since the last quantize */
  bool quantised = false;
  memset(found, 0, sizeof *found);
  found->low = INT8_MIN;
  found->high = INT8_MAX;
  for (uint32_t i = 0; i < most; ++i) {
    etude_kernel_neighbour call;
    int64_t range[2];
    float lower, upper;
    grid g;
    if (!etude_kernel_follower(ctx, i, &call)) break;
    if (etude_conv_is_clamp(&call, out, &lower, &upper)) {
      low = limited(low, lower, upper);
      high = limited(high, lower, upper);
      continue;
    }
    if (is_dequantize(&call, &g)) {
      if (!quantised || !same(&g, &found->y)) break;
      continue;
    }
    if (!is_quantize(&call, &g, range) || (quantised && !same(&g, &found->y))) break;
    const int64_t least = bound_of(low, &g, range), largest = bound_of(high, &g, range);
    found->low = clamped((double)found->low, least, largest);
    found->high = clamped((double)found->high, least, largest);
    found->y = g;
    found->count = i + 1;
    quantised = true;
    low = -HUGE_VALF;
    high = HUGE_VALF;
  }
  return found->count > 0;
}

/* ---- weights ---- */

typedef struct int8_weights {
  const etude_tensor *q, *scales; /* scales NULL = all have `scale` */
  double scale;
} int8_weights;

static bool are_zero(const etude_tensor *zeros) {
  if (!etude_has_constant(zeros) || zeros->rank != 1 || !etude_dtype_is_int(zeros->scalar_type)) return false;
  for (size_t i = 0; i < etude_tensor_numel(zeros); ++i) {
    if (etude_element_int(zeros->data, zeros->scalar_type, i) != 0) return false;
  }
  return true;
}

static bool read_weights(etude_kernel_context *ctx, const etude_tensor *weight, int8_weights *w) {
  etude_value *const *args;
  uint32_t count;
  const char *name = etude_kernel_origin(ctx, weight, &args, &count);
  memset(w, 0, sizeof *w);
  if (name == NULL) return false;
  if (strcmp(name, "quantized_decomposed::dequantize_per_channel.out") == 0 && count == 10) {
    w->scales = etude_value_tensor(args[1]);
    if (!etude_has_constant(w->scales) || w->scales->scalar_type != ETUDE_FLOAT || w->scales->rank != 1 ||
        w->scales->sizes[0] != weight->sizes[0] || !are_zero(etude_value_tensor(args[2])) ||
        args[3]->tag != ETUDE_VALUE_INT || args[3]->as.int_value != 0)
      return false;
  } else if (strcmp(name, "quantized_decomposed::dequantize_per_tensor.out") == 0 && count == 9) {
    grid g;
    if (!read_grid(args, &g) || g.zero != 0) return false;
    w->scale = g.scale;
  } else {
    return false;
  }
  w->q = etude_value_tensor(args[0]);
  return etude_has_constant(w->q) && w->q->scalar_type == ETUDE_CHAR && w->q->rank == weight->rank &&
         memcmp(w->q->sizes, weight->sizes, weight->rank * sizeof *weight->sizes) == 0;
}

/* Factors from sums to results, and biases in units of the sums; false where these, or the sums, may be too large for
   32 bits, or the units too coarse: a bias is rounded by a 16th of a step of the result at most. */
static bool scale_all(const etude_conv *c, const int8_weights *w, const grid *x, const grid *y, float *scales,
                      int32_t *bias) {
  const double most = 1 << 30;
  if ((double)(c->in_channels * etude_volume_positions(&c->weight)) * 255.0 * 128.0 > most) return false;
  for (size_t oc = 0; oc < c->groups * c->out_channels; ++oc) {
    const double of =
        w->scales == NULL ? w->scale : (double)((const float *)w->scales->data)[oc * (size_t)w->scales->strides[0]];
    const double b = c->bias == NULL ? 0.0 : (double)((const float *)(void *)c->bias)[oc * c->bias_stride];
    scales[oc] = (float)(x->scale * of / y->scale);
    const double units = b == 0.0 ? 0.0 : nearbyint(b / (x->scale * of));
    if (!(fabs(units) <= most) || fabs(units * x->scale * of - b) > y->scale / 16) return false;
    bias[oc] = (int32_t)units;
  }
  return true;
}

bool etude_conv_bytes_prepare(etude_kernel_context *ctx, etude_value *const *args, const etude_conv *c) {
  const etude_tensor *weight = args[1]->as.tensor, *out = args[9]->as.tensor;
  const size_t channels = c->groups * c->out_channels;
  etude_kernel_neighbour maker;
  int8_weights w;
  after follows;
  grid x;
  if (c->transposed || !etude_conv_has_image(c) || !etude_kernel_maker(ctx, 0, &maker) || !is_dequantize(&maker, &x) ||
      !read_weights(ctx, weight, &w) || !read_after(ctx, out, UINT32_MAX, &follows))
    return false;
  etude_conv b = *c;
  b.weight = etude_volume_of(w.q);
  etude_conv_turn(&b);
  const etude_convolution v = describe(&b);
  const size_t size = etude_convolution_packed_size(&v);
  float *scales = etude_kernel_scratch(ctx, channels * (sizeof(float) + sizeof(int32_t)));
  if (scales == NULL || size > SIZE_MAX / 8) return false;
  int32_t *bias = (int32_t *)(void *)(scales + channels);
  if (!scale_all(c, &w, &x, &follows.y, scales, bias)) return false;
  etude_conv_kept *kept = etude_kernel_keep(ctx, ETUDE_CONV_HEAD + size);
  if (kept == NULL) return true; /* nor is there room for floats */
  memset(kept, 0, sizeof *kept);
  kept->unused = true;
  while (!etude_kernel_take_followers(ctx, follows.count)) {
    if (!read_after(ctx, out, follows.count - 1, &follows)) return true;
  }
  if (!etude_kernel_take_maker(ctx, 0, 0)) return true;
  const etude_weights weights = {
      w.q->data, b.weight.batch, b.weight.channel, b.weight.strides[2], bias, scales, NULL, (int32_t)x.zero, NULL};
  etude_convolution_pack(&v, (char *)kept + ETUDE_CONV_HEAD, &weights, 0, 1);
  etude_kernel_replace(ctx, 1);
  kept->unused = false;
  kept->packed = kept->fused = kept->bytes = true;
  kept->zero = (int32_t)follows.y.zero;
  kept->least = (int32_t)follows.low;
  kept->most = (int32_t)follows.high;
  return true;
}

/* ---- runs ---- */

typedef struct run {
  etude_convolution v;
  etude_convolution_io io;
  const void *packed;
  size_t parts;
  char *scratch;
} run;

static void run_task(void *arg, size_t part, size_t worker) {
  const run *r = arg;
  (void)worker;
  etude_convolution_run(&r->v, r->packed, &r->io, part, r->parts, r->scratch);
}

static bool is_last(const etude_volume *v, size_t channels) {
  return (v->channel == 1 || channels == 1) && v->strides[2] == channels;
}

/* Dense [batch][first][second], and where its elements lie in the tensor. */
static void copy_dense(char *to, const char *from, size_t batch, size_t batch_step, size_t first, size_t first_step,
                       size_t second, size_t second_step) {
  const size_t sizes[3] = {batch, first, second}, steps[3] = {batch_step, first_step, second_step};
  etude_transpose(to, from, 3, sizes, steps, 1, NULL);
}

etude_status etude_conv_bytes(etude_kernel_context *ctx, const etude_conv *c, etude_conv_kept *kept) {
  const size_t in_channels = c->groups * c->in_channels, out_channels = c->groups * c->out_channels;
  const size_t in_pixels = etude_volume_positions(&c->in), out_pixels = etude_volume_positions(&c->out);
  const bool in_last = is_last(&c->in, in_channels), out_last = is_last(&c->out, out_channels);
  run r;
  memset(&r, 0, sizeof r);
  r.v = describe(c);
  r.packed = etude_conv_packed(kept);
  r.parts = etude_convolution_parts(&r.v, etude_kernel_worker_count(ctx));
  const size_t size = etude_convolution_scratch_size(&r.v, r.parts);
  char *in = c->in.data, *out = c->out.data;
  r.scratch = etude_kernel_scratch(ctx, size == 0 ? 64 : size);
  if (r.scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  if (!in_last && (in = etude_kernel_scratch(ctx, c->batch * in_pixels * in_channels)) == NULL)
    return ETUDE_OUT_OF_MEMORY;
  if (!out_last && (out = etude_kernel_scratch(ctx, c->batch * out_pixels * out_channels)) == NULL)
    return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, (uint64_t)(etude_conv_work(c) / 16)));
  if (!in_last)
    copy_dense(in, c->in.data, c->batch, c->in.batch, in_pixels, c->in.strides[2], in_channels, c->in.channel);
  r.io = etude_conv_io(NULL, in_channels, NULL, out_channels);
  r.io.x = in;
  r.io.y = out;
  r.io.y_zero = kept->zero;
  r.io.y_low = kept->least;
  r.io.y_high = kept->most;
  etude_kernel_parallel_for(ctx, r.parts, run_task, &r);
  /* Results lie row-major where their channels are not innermost: see etude_kernel_traits. */
  if (!out_last)
    copy_dense(c->out.data, out, c->batch, out_pixels * out_channels, out_channels, 1, out_pixels, out_channels);
  return ETUDE_OK;
}
#endif
