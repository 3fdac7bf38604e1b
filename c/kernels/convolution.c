/* aten::convolution.out: 1 to 3 dimensions, groups, transposed or not, tensors in any dim orders. Here are the checks
 * and plain loops; fast ways are in convolution_*.c.
 *
 * Every size and step comes from a file: they are bounded here so that positions, computed in 64 bits, cannot overflow.
 */
#include "compute/floats.h"
#include "convolution_bytes.h"
#include "dtype.h"
#include "strided.h"

/* ---- arguments ---- */

/* A list of one number per spatial dimension, or one for all, into the last `rank` of `out`. */
static etude_status spatial_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t rank,
                                 int64_t least, const char *what, int64_t out[3]) {
  int64_t values[3];
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, index, values, 3, &count, NULL));
  if (count != rank && count != 1) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s has %u numbers for %u dimensions", what, count, rank);
  }
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t value = values[count == 1 ? 0 : d];
    if (value < least || value > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s cannot be %l", what, value);
    }
    out[3 - rank + d] = value;
  }
  return ETUDE_OK;
}

/* Arguments from `first` on: stride, padding, dilation, transposed, output_padding. */
static etude_status read_steps(etude_kernel_context *ctx, etude_value *const *args, uint32_t first, uint32_t rank,
                               etude_conv *c) {
  for (uint32_t d = 0; d < 3; ++d) {
    c->stride[d] = c->dilation[d] = 1;
    c->padding[d] = c->output_padding[d] = 0;
  }
  TRY(spatial_list(ctx, args, first, rank, 1, "stride", c->stride));
  TRY(spatial_list(ctx, args, first + 1, rank, 0, "padding", c->padding));
  TRY(spatial_list(ctx, args, first + 2, rank, 1, "dilation", c->dilation));
  TRY(etude_arg_bool(ctx, args, first + 3, &c->transposed));
  if (c->transposed) TRY(spatial_list(ctx, args, first + 4, rank, 0, "output_padding", c->output_padding));
  return ETUDE_OK;
}

static etude_status check_tensors(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                                  const etude_tensor *bias, const etude_tensor *out) {
  const int32_t dtype = in->scalar_type;
  if (!(etude_dtype_is_float(dtype) || etude_dtype_is_int(dtype)) || weight->scalar_type != dtype ||
      out->scalar_type != dtype || (bias != NULL && bias->scalar_type != dtype)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED,
                             "convolution of %y by %y to %y: wants one type of floats or integers for all", (int)dtype,
                             (int)weight->scalar_type, (int)out->scalar_type);
  }
  if (in->rank < 3 || in->rank > 5 || weight->rank != in->rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "convolution of %T by %T: wants 3 to 5 dimensions, the same "
                             "for both",
                             in, weight);
  }
  return ETUDE_OK;
}

static etude_status check_channels(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                                   const etude_tensor *bias, int64_t groups, etude_conv *c) {
  const int64_t in_channels = in->sizes[1];
  const int64_t first = weight->sizes[0], second = weight->sizes[1];
  const bool divides = groups > 0 && in_channels % groups == 0 && first % groups == 0;
  if (!divides || (c->transposed ? first != in_channels : second != in_channels / groups)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the weight %T does not fit an input of %T in %l groups",
                             weight, in, groups);
  }
  c->groups = (size_t)groups;
  c->in_channels = (size_t)(in_channels / groups);
  c->out_channels = (size_t)(c->transposed ? second : first / groups);
  if ((uint64_t)c->out_channels * c->groups > INT32_MAX) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "too many channels: the weight is %T, in %l groups", weight,
                             groups);
  }
  if (bias != NULL && (bias->rank != 1 || (size_t)bias->sizes[0] != c->out_channels * c->groups)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the bias %T does not fit the weight %T", bias, weight);
  }
  return ETUDE_OK;
}

/* The size of dimension `d` (of three) of the output: PyTorch's formula, or -1 where there is none. All terms are
   below 2^62. */
static int64_t output_size(const etude_conv *c, int64_t in, int64_t kernel, uint32_t d) {
  const int64_t reach = c->dilation[d] * (kernel - 1) + 1;
  if (kernel < 1) return -1;
  if (c->transposed) {
    const int64_t more = c->stride[d] > c->dilation[d] ? c->stride[d] : c->dilation[d];
    if (c->output_padding[d] >= more || in < 1) return -1;
    return (in - 1) * c->stride[d] - 2 * c->padding[d] + (reach - 1) + c->output_padding[d] + 1;
  }
  return in + 2 * c->padding[d] < reach ? -1 : (in + 2 * c->padding[d] - reach) / c->stride[d] + 1;
}

static etude_status size_out(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                             const etude_conv *c, int64_t sizes[5]) {
  sizes[0] = in->sizes[0];
  sizes[1] = (int64_t)(c->out_channels * c->groups);
  for (uint32_t d = 2; d < in->rank; ++d) {
    sizes[d] = output_size(c, in->sizes[d], weight->sizes[d], 3u - in->rank + d);
    if (sizes[d] < 0 || (c->transposed && sizes[d] == 0)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                               "dimension %u: convolution of %T by %T with these steps "
                               "has no output",
                               d, in, weight);
    }
  }
  return ETUDE_OK;
}

etude_status etude_conv_describe(etude_kernel_context *ctx, etude_value *const *args, uint32_t first,
                                 const etude_tensor *in, const etude_tensor *weight, const etude_tensor *bias,
                                 const etude_tensor *out, etude_conv *c, int64_t out_sizes[5]) {
  int64_t groups;
  TRY(etude_arg_int(ctx, args, first + 5, &groups));
  TRY(check_tensors(ctx, in, weight, bias, out));
  memset(c, 0, sizeof *c);
  c->dtype = in->scalar_type;
  c->whole = etude_dtype_is_int(c->dtype);
  c->low = -etude_infinity();
  c->high = etude_infinity();
  c->batch = (size_t)in->sizes[0];
  TRY(read_steps(ctx, args, first, in->rank - 2u, c));
  TRY(check_channels(ctx, in, weight, bias, groups, c));
  TRY(size_out(ctx, in, weight, c, out_sizes));
  c->in = etude_volume_of(in);
  c->weight = etude_volume_of(weight);
  if (bias != NULL) {
    c->bias = bias->data;
    c->bias_stride = (size_t)bias->strides[0];
  }
  return ETUDE_OK;
}

/* ---- plain loops, for what is rare ---- */

/* A sum of products, of doubles or of integers, which wrap. */
typedef struct total {
  double real;
  uint64_t whole;
  float single; /* of floats in small builds */
} total;

#define IS_WHOLE(c) ((ETUDE_DTYPES & ETUDE_INTS) != 0 && (c)->whole)
#define IS_SINGLE(c) (ETUDE_SMALL && ((ETUDE_DTYPES & ~(1u << ETUDE_FLOAT)) == 0 || (c)->dtype == ETUDE_FLOAT))

static void add_products(const etude_conv *c, size_t in, size_t weight, size_t weight_step, total *sum) {
  for (size_t ic = 0; ic < c->in_channels; ++ic, in += c->in.channel, weight += weight_step) {
    if (IS_SINGLE(c)) {
      sum->single += ((const float *)(void *)c->in.data)[in] * ((const float *)(void *)c->weight.data)[weight];
    } else if (IS_WHOLE(c)) {
      sum->whole += (uint64_t)etude_element_int(c->in.data, c->dtype, in) *
                    (uint64_t)etude_element_int(c->weight.data, c->dtype, weight);
    } else {
      sum->real +=
          etude_element_double(c->in.data, c->dtype, in) * etude_element_double(c->weight.data, c->dtype, weight);
    }
  }
}

static void plain_sum(const etude_conv *c, size_t n, size_t group, size_t o, const size_t at[3], total *sum) {
  const size_t in_channel = c->transposed ? c->weight.batch : c->weight.channel;
  const size_t out_channel = c->transposed ? c->weight.channel : c->weight.batch;
  const size_t group_step = c->weight.batch * (c->transposed ? c->in_channels : c->out_channels);
  const size_t in_base = n * c->in.batch + group * c->in_channels * c->in.channel;
  const size_t weight_base = group * group_step + o * out_channel;
  size_t k[3], i[3];
  for (k[0] = 0; k[0] < c->weight.sizes[0]; ++k[0]) {
    if (!etude_conv_source(c, 0, at[0], k[0], &i[0])) continue;
    for (k[1] = 0; k[1] < c->weight.sizes[1]; ++k[1]) {
      if (!etude_conv_source(c, 1, at[1], k[1], &i[1])) continue;
      for (k[2] = 0; k[2] < c->weight.sizes[2]; ++k[2]) {
        if (!etude_conv_source(c, 2, at[2], k[2], &i[2])) continue;
        size_t in = in_base, weight = weight_base;
        for (uint32_t d = 0; d < 3; ++d) {
          in += i[d] * c->in.strides[d];
          weight += k[d] * c->weight.strides[d];
        }
        add_products(c, in, weight, in_channel, sum);
      }
    }
  }
}

static etude_status run_plain(etude_kernel_context *ctx, const etude_conv *c) {
  const size_t channels = c->groups * c->out_channels, places = etude_volume_positions(&c->out);
  const uint64_t taps = etude_steps(etude_volume_positions(&c->weight), c->in_channels);
  for (size_t n = 0; n < c->batch; ++n) {
    for (size_t oc = 0; oc < channels; ++oc) {
      TRY(etude_kernel_work(ctx, etude_steps(places, taps)));
      total bias = {0.0, 0, 0.0f};
      if (c->bias != NULL && IS_SINGLE(c)) bias.single = ((const float *)(void *)c->bias)[oc * c->bias_stride];
      if (c->bias != NULL && IS_WHOLE(c))
        bias.whole = (uint64_t)etude_element_int(c->bias, c->dtype, oc * c->bias_stride);
      if (c->bias != NULL && !IS_WHOLE(c) && !IS_SINGLE(c))
        bias.real = etude_element_double(c->bias, c->dtype, oc * c->bias_stride);
      for (size_t place = 0; place < places; ++place) {
        const size_t w = place % c->out.sizes[2], rest = place / c->out.sizes[2];
        const size_t at[3] = {rest / c->out.sizes[1], rest % c->out.sizes[1], w};
        total sum = {0.0, bias.whole, 0.0f};
        plain_sum(c, n, oc / c->out_channels, oc % c->out_channels, at, &sum);
        size_t out = n * c->out.batch + oc * c->out.channel;
        for (uint32_t d = 0; d < 3; ++d) out += at[d] * c->out.strides[d];
        if (IS_SINGLE(c)) {
          ((float *)(void *)c->out.data)[out] = bias.single + sum.single;
        } else if (IS_WHOLE(c)) {
          etude_element_set_int(c->out.data, c->dtype, out, (int64_t)sum.whole);
        } else {
          etude_element_set_double(c->out.data, c->dtype, out, bias.real + sum.real);
        }
      }
    }
  }
  return ETUDE_OK;
}

static etude_status run(etude_kernel_context *ctx, etude_conv *c, etude_conv_kept *kept) {
  bool done = false;
  etude_conv_turn(c);
  if (!ETUDE_SMALL && c->dtype != ETUDE_DOUBLE && !c->whole) {
    if (kept != NULL) TRY(etude_conv_image(ctx, c, kept, &done));
    if (!done) TRY(etude_conv_depthwise(ctx, c, &done));
    if (!done) TRY(etude_conv_planes(ctx, c, &done));
    if (!done) TRY(etude_conv_image(ctx, c, NULL, &done));
    if (!done) TRY(etude_conv_product(ctx, c, &done));
  }
  SCRATCH_TAKEN(ctx);
  return done ? ETUDE_OK : run_plain(ctx, c);
}

#ifndef ETUDE_NO_FOLDING
/* Of int8, prepared: the weight and the bias, which are floats, stand packed, and the former has no data any more. */
static etude_status run_bytes(etude_kernel_context *ctx, etude_value *const *args, etude_conv_kept *kept) {
  etude_tensor as_bytes = *args[1]->as.tensor;
  etude_tensor *in, *out;
  int64_t sizes[5];
  etude_conv c;
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_out(ctx, args, 9, &out));
  as_bytes.scalar_type = ETUDE_CHAR;
  TRY(etude_conv_describe(ctx, args, 3, in, &as_bytes, NULL, out, &c, sizes));
  TRY(etude_out_resize(ctx, out, sizes, in->rank));
  c.out = etude_volume_of(out);
  etude_conv_turn(&c);
  return etude_conv_bytes(ctx, &c, kept);
}
#endif

KERNEL(etude_aten_convolution_out) {
  etude_conv_kept *kept = (etude_conv_kept *)(uintptr_t)etude_kernel_kept(ctx);
  etude_tensor *in, *weight, *bias, *out;
  int64_t sizes[5];
  etude_conv c;
  TRY(etude_arg_count(ctx, arg_count, 11));
  if (kept != NULL && kept->unused) kept = NULL;
#ifndef ETUDE_NO_FOLDING
  if (kept != NULL && kept->bytes) return run_bytes(ctx, args, kept);
#endif
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_tensor(ctx, args, 1, &weight));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &bias));
  TRY(etude_arg_out(ctx, args, 9, &out));
  TRY(etude_conv_describe(ctx, args, 3, in, weight, bias, out, &c, sizes));
  TRY(etude_out_resize(ctx, out, sizes, in->rank));
  c.out = etude_volume_of(out);
  if (kept != NULL) {
    c.low = kept->after.low;
    c.high = kept->after.high;
    if (kept->after.add != NULL) c.add = etude_volume_of(kept->after.add);
  }
  return etude_tensor_numel(out) == 0 ? ETUDE_OK : run(ctx, &c, kept);
}

#ifndef ETUDE_NO_FOLDING
/* Does it never change? Its elements need not be there yet. */
static bool is_constant(const etude_tensor *tensor) {
  return (tensor->flags & ETUDE_TENSOR_LATE) != 0 || etude_has_constant(tensor);
}

static bool describe_constant(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, etude_conv *c,
                              etude_tensor **out) {
  etude_tensor *in, *weight, *bias;
  int64_t sizes[5];
  if (etude_arg_count(ctx, arg_count, 11) != ETUDE_OK || etude_arg_tensor(ctx, args, 0, &in) != ETUDE_OK ||
      etude_arg_tensor(ctx, args, 1, &weight) != ETUDE_OK ||
      etude_arg_tensor_or_none(ctx, args, 2, &bias) != ETUDE_OK || etude_arg_out(ctx, args, 9, out) != ETUDE_OK ||
      !is_constant(weight) || (bias != NULL && !etude_has_constant(bias)) ||
      etude_conv_describe(ctx, args, 3, in, weight, bias, *out, c, sizes) != ETUDE_OK || (*out)->rank != in->rank) {
    return false; /* an execution will say what is wrong */
  }
  for (uint32_t d = 0; d < in->rank; ++d) {
    if ((*out)->sizes[d] != sizes[d]) return false;
  }
  c->out = etude_volume_of(*out);
  return etude_tensor_numel(*out) != 0 && c->dtype == ETUDE_FLOAT;
}

void etude_convolution_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  const size_t workers = etude_kernel_worker_count(ctx);
  etude_conv_after after;
  etude_tensor *out;
  etude_conv c;
  if (!describe_constant(ctx, args, arg_count, &c, &out) || etude_conv_bytes_prepare(ctx, args, &c)) return;
  etude_conv_read_after(ctx, out, c.transposed ? 0 : UINT32_MAX, &after);
  etude_conv_turn(&c);
  const size_t size = etude_conv_image_packed_size(&c, workers);
  if (size == 0 || (!etude_conv_is_depthwise(&c) && etude_conv_has_planes(&c))) return;
  etude_conv_kept *kept = etude_kernel_keep(ctx, ETUDE_CONV_HEAD + size);
  if (kept == NULL) return;
  while (!etude_kernel_take_followers(ctx, after.count)) etude_conv_read_after(ctx, out, after.count - 1, &after);
  memset(kept, 0, sizeof *kept);
  kept->fused = after.count > 0;
  kept->after = after;
}
#endif
