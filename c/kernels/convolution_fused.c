/* See convolution_fused.h. */
#include "convolution_fused.h"

#include <math.h>

#include "compute/floats.h"

#ifndef ETUDE_NO_FOLDING
static bool is_number(const etude_value *value, double *out) {
  if (value->tag == ETUDE_VALUE_DOUBLE) *out = value->as.double_value;
  if (value->tag == ETUDE_VALUE_INT) *out = (double)value->as.int_value;
  return value->tag == ETUDE_VALUE_DOUBLE || value->tag == ETUDE_VALUE_INT;
}

static bool is_like(const etude_tensor *tensor, const etude_tensor *out) {
  return tensor != NULL && tensor->scalar_type == ETUDE_FLOAT && tensor->rank == out->rank &&
         memcmp(tensor->sizes, out->sizes, out->rank * sizeof *out->sizes) == 0;
}

/* ---- batch norm ---- */

/* A parameter of a batch norm: one constant for each channel, or where that is allowed none. */
static bool get_parameter(const etude_value *value, int32_t channels, bool needed, const etude_tensor **out) {
  const etude_tensor *tensor = etude_value_tensor(value);
  *out = tensor;
  if (tensor == NULL) return !needed && value->tag == ETUDE_VALUE_NONE;
  return etude_has_constant(tensor) && tensor->scalar_type == ETUDE_FLOAT && tensor->rank == 1 &&
         tensor->sizes[0] == channels;
}

static bool read_batch_norm(const etude_kernel_neighbour *call, const etude_tensor *out, etude_conv_after *after) {
  etude_conv_after read = *after;
  const int32_t channels = out->sizes[1];
  if (call->arg_count != 11 || after->mean != NULL || after->add != NULL) return false;
  if (!is_like(etude_value_tensor(call->args[7]), out) ||
      !get_parameter(call->args[1], channels, false, &read.weight) ||
      !get_parameter(call->args[2], channels, false, &read.bias) ||
      !get_parameter(call->args[3], channels, true, &read.mean) ||
      !get_parameter(call->args[4], channels, true, &read.variance) || !is_number(call->args[6], &read.eps))
    return false;
  *after = read;
  return true;
}

static float parameter(const etude_tensor *tensor, size_t index, float otherwise) {
  return tensor == NULL ? otherwise : ((const float *)tensor->data)[index * (size_t)tensor->strides[0]];
}

void etude_conv_fold(const etude_conv *c, const etude_conv_after *after, float *factors, float *bias) {
  for (size_t oc = 0; oc < c->groups * c->out_channels; ++oc) {
    const double variance = (double)parameter(after->variance, oc, 1.0f);
    const double factor = (double)parameter(after->weight, oc, 1.0f) / sqrt(variance + after->eps);
    const double was = c->bias == NULL ? 0.0 : (double)((const float *)(void *)c->bias)[oc * c->bias_stride];
    factors[oc] = (float)factor;
    bias[oc] =
        (float)((was - (double)parameter(after->mean, oc, 0.0f)) * factor + (double)parameter(after->bias, oc, 0.0f));
  }
}

/* ---- additions and clamps ---- */

static bool read_add(const etude_kernel_neighbour *call, const etude_tensor *chain, const etude_tensor *out,
                     etude_conv_after *after) {
  double alpha;
  if (call->arg_count != 5 || after->add != NULL || !is_number(call->args[2], &alpha) || alpha != 1.0) return false;
  const etude_tensor *a = etude_value_tensor(call->args[0]), *b = etude_value_tensor(call->args[1]);
  const etude_tensor *other = a == chain ? b : a;
  if (!is_like(other, out) || !is_like(etude_value_tensor(call->args[3]), out) || other == chain) return false;
  after->add = other;
  return true;
}

bool etude_conv_is_clamp(const etude_kernel_neighbour *call, const etude_tensor *out, float *low, float *high) {
  const uint32_t count = call->arg_count;
  double bounds[2] = {-(double)etude_infinity(), (double)etude_infinity()};
  if (count < 3 || !is_like(etude_value_tensor(call->args[count - 1]), out)) return false;
  if (strcmp(call->name, "aten::relu.out") == 0 && count == 3) {
    bounds[0] = 0.0;
  } else if ((strcmp(call->name, "aten::hardtanh.out") == 0 || strcmp(call->name, "aten::clamp.out") == 0) &&
             count == 5) {
    for (uint32_t i = 0; i < 2; ++i) {
      if (call->args[1 + i]->tag != ETUDE_VALUE_NONE && !is_number(call->args[1 + i], &bounds[i])) return false;
    }
  } else {
    return false;
  }
  if (!(bounds[0] <= bounds[1])) return false;
  *low = (float)bounds[0];
  *high = (float)bounds[1];
  return true;
}

void etude_conv_read_after(etude_kernel_context *ctx, const etude_tensor *out, uint32_t most, etude_conv_after *after) {
  const etude_tensor *chain = out;
  etude_kernel_neighbour call;
  memset(after, 0, sizeof *after);
  after->low = -etude_infinity();
  after->high = etude_infinity();
  while (after->count < most && etude_kernel_follower(ctx, after->count, &call)) {
    bool last = false, known;
    if (strcmp(call.name, "aten::_native_batch_norm_legit_no_training.out") == 0) {
      known = read_batch_norm(&call, out, after);
      if (known) chain = call.args[7]->as.tensor;
    } else if (strcmp(call.name, "aten::add.out") == 0) {
      known = read_add(&call, chain, out, after);
      if (known) chain = call.args[3]->as.tensor;
    } else {
      known = last = etude_conv_is_clamp(&call, out, &after->low, &after->high);
    }
    if (!known) return;
    after->count++;
    if (last) return;
  }
}
#endif
