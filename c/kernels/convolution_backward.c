/* Gradients of a convolution: plain loops that go over each product once and add to both gradients, in double. */
#include "convolution.h"
#include "dtype.h"
#include "strided.h"

KERNEL(etude_aten_convolution_backward_out);

/* The products of one output element. `in`, `weight` and the gradients have the places of the tensors. */
typedef struct gradients {
  double *in, *weight, *bias; /* NULL: not wanted */
} gradients;

static void add_element(const etude_conv *c, const gradients *g, double gradient, size_t n, size_t group, size_t o,
                        const size_t at[3]) {
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
        for (size_t ic = 0; ic < c->in_channels; ++ic) {
          const size_t a = in + ic * c->in.channel, b = weight + ic * in_channel;
          if (g->in != NULL) g->in[a] += gradient * etude_element_double(c->weight.data, c->dtype, b);
          if (g->weight != NULL) g->weight[b] += gradient * etude_element_double(c->in.data, c->dtype, a);
        }
      }
    }
  }
}

static etude_status add_all(etude_kernel_context *ctx, const etude_conv *c, const gradients *g) {
  const uint64_t taps = etude_steps(etude_volume_positions(&c->weight), c->in_channels);
  const size_t channels = c->groups * c->out_channels, places = etude_volume_positions(&c->out);
  for (size_t n = 0; n < c->batch; ++n) {
    for (size_t oc = 0; oc < channels; ++oc) {
      TRY(etude_kernel_work(ctx, etude_steps(places, taps)));
      for (size_t place = 0; place < places; ++place) {
        const size_t w = place % c->out.sizes[2], rest = place / c->out.sizes[2];
        const size_t at[3] = {rest / c->out.sizes[1], rest % c->out.sizes[1], w};
        size_t out = n * c->out.batch + oc * c->out.channel;
        for (uint32_t d = 0; d < 3; ++d) out += at[d] * c->out.strides[d];
        const double gradient = etude_element_double(c->out.data, c->dtype, out);
        if (g->bias != NULL) g->bias[oc] += gradient;
        if (g->in == NULL && g->weight == NULL) continue;
        add_element(c, g, gradient, n, oc / c->out_channels, oc % c->out_channels, at);
      }
    }
  }
  return ETUDE_OK;
}

/* Zeros in scratch memory, for a result that is wanted and not empty. */
static etude_status take_zeros(etude_kernel_context *ctx, bool wanted, size_t count, double **out) {
  *out = NULL;
  if (!wanted || count == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, count, sizeof **out, out));
  if (!etude_kernel_is_asked(ctx)) memset(*out, 0, count * sizeof **out);
  return ETUDE_OK;
}

/* Gradients that lie like `like`, to a result of its sizes. */
static etude_status give(etude_kernel_context *ctx, const double *from, const etude_tensor *like, etude_tensor *out) {
  etude_view from_view, to;
  TRY(etude_kernel_resize(ctx, out, like->sizes, like->rank));
  etude_view_of(&from_view, like);
  etude_view_of(&to, out);
  if (from != NULL) etude_view_convert(out->data, out->scalar_type, &to, from, ETUDE_DOUBLE, &from_view);
  return ETUDE_OK;
}

static etude_status check(etude_kernel_context *ctx, const etude_tensor *grad, const etude_tensor *in,
                          etude_tensor *const *outs, const bool *wanted, const int64_t *sizes) {
  bool fits = etude_dtype_is_float(in->scalar_type) && grad->rank == in->rank;
  for (uint32_t d = 0; fits && d < grad->rank; ++d) fits = grad->sizes[d] == sizes[d];
  for (uint32_t k = 0; fits && k < 3; ++k) fits = !wanted[k] || outs[k]->scalar_type == in->scalar_type;
  if (fits) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is not the gradient of a convolution of %T", grad, in);
}

/* (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask,
   grad_input, grad_weight, grad_bias, […]). What the mask leaves out is not touched. */
KERNEL(etude_aten_convolution_backward_out) {
  etude_tensor *grad, *in, *weight, *outs[3];
  bool wanted[3];
  int64_t sizes[5];
  etude_conv c;
  gradients g;
  TRY(etude_arg_count(ctx, arg_count, 15));
  TRY(etude_arg_tensor(ctx, args, 0, &grad));
  TRY(etude_arg_tensor(ctx, args, 1, &in));
  TRY(etude_arg_tensor(ctx, args, 2, &weight));
  TRY(etude_arg_bool_list(ctx, args, 10, wanted, 3));
  for (uint32_t k = 0; k < 3; ++k) {
    outs[k] = NULL;
    if (wanted[k]) TRY(etude_arg_out(ctx, args, 11 + k, &outs[k]));
  }
  TRY(etude_conv_describe(ctx, args, 4, in, weight, NULL, grad, &c, sizes));
  TRY(check(ctx, grad, in, outs, wanted, sizes));
  c.out = etude_volume_of(grad);
  const int32_t channels = (int32_t)(c.groups * c.out_channels);
  TRY(take_zeros(ctx, wanted[0], etude_tensor_numel(in), &g.in));
  TRY(take_zeros(ctx, wanted[1], etude_tensor_numel(weight), &g.weight));
  TRY(take_zeros(ctx, wanted[2], (size_t)channels, &g.bias));
  SCRATCH_TAKEN(ctx);
  TRY(add_all(ctx, &c, &g));
  if (wanted[0]) TRY(give(ctx, g.in, in, outs[0]));
  if (wanted[1]) TRY(give(ctx, g.weight, weight, outs[1]));
  if (!wanted[2]) return ETUDE_OK;
  TRY(etude_kernel_resize(ctx, outs[2], &channels, 1));
  if (g.bias != NULL) etude_store_doubles(outs[2]->data, outs[2]->scalar_type, 1, g.bias, (size_t)channels);
  return ETUDE_OK;
}
