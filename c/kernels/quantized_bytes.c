/* See quantized_bytes.h. Elements are taken in the order of memory, in runs that share scale and zero point. */
#include "quantized_bytes.h"

#include "compute/rows.h"

/* Elements of a task. */
#define BLOCK 16384u
/* What the loops of rows.h take. */
#define MOST_ZERO (1 << 21)
/* Shorter runs are better left to loops that see a scale for each element. */
#define LEAST_RUN 8u

typedef struct work {
  const etude_byte_call *call;
  const etude_rows *rows;
  bool to_bytes;
  size_t total, run, channels; /* elements: of all, of a run; runs after which scales repeat */
} work;

static double scale_of(const etude_operand *operand, size_t channel) {
  if (operand->tensor == NULL) return operand->dtype == ETUDE_DOUBLE ? operand->number.d : (double)operand->number.i;
  return etude_element_double(operand->tensor->data, operand->dtype, channel * (size_t)operand->tensor->strides[0]);
}

static int64_t zero_of(const etude_operand *operand, size_t channel) {
  if (operand->tensor == NULL) return operand->number.i;
  return etude_element_int(operand->tensor->data, operand->dtype, channel * (size_t)operand->tensor->strides[0]);
}

static bool is_byte(int32_t dtype) { return dtype == ETUDE_BYTE || dtype == ETUDE_CHAR; }

static bool lie_alike(const etude_tensor *a, const etude_tensor *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; ++d) {
    if (a->sizes[d] != b->sizes[d] || (a->sizes[d] != 1 && a->strides[d] != b->strides[d])) return false;
  }
  return true;
}

static bool numbers_fit(const etude_byte_call *call) {
  const etude_operand *scale = &call->scale, *zero = &call->zero;
  return (scale->tensor != NULL || scale->dtype == ETUDE_DOUBLE || scale->dtype == ETUDE_LONG) &&
         (zero->tensor != NULL || zero->dtype == ETUDE_LONG);
}

static bool zeros_fit(const work *w) {
  for (size_t c = 0; c < w->channels; ++c) {
    const int64_t zero = zero_of(&w->call->zero, c);
    if (zero < -MOST_ZERO || zero > MOST_ZERO) return false;
  }
  return true;
}

static void quantize_run(const work *w, size_t at, size_t count, size_t channel) {
  const etude_byte_call *call = w->call;
  etude_to_bytes type;
  type.factor = (float)(1.0 / scale_of(&call->scale, channel));
  type.zero = (int32_t)zero_of(&call->zero, channel);
  type.low = type.nan = call->low;
  type.high = call->high;
  w->rows->quantize((uint8_t *)call->out->data + at, (const float *)call->self->data + at, count, &type);
}

static void dequantize_run(const work *w, size_t at, size_t count, size_t channel) {
  const etude_byte_call *call = w->call;
  const bool is_signed = call->self->scalar_type == ETUDE_CHAR;
  const double scale = scale_of(&call->scale, channel);
  const int32_t zero = (int32_t)zero_of(&call->zero, channel);
  const uint8_t *from = (const uint8_t *)call->self->data + at;
  float *to = (float *)call->out->data + at;
  if ((double)(float)scale == scale) {
    (is_signed ? w->rows->dequantize_signed : w->rows->dequantize)(to, from, count, zero, (float)scale);
    return;
  }
  for (size_t i = 0; i < count; ++i) { /* rounded once */
    const int32_t q = is_signed ? (int32_t)(int8_t)from[i] : (int32_t)from[i];
    to[i] = (float)((double)(q - zero) * scale);
  }
}

static void run_block(void *arg, size_t block, size_t worker) {
  const work *w = arg;
  const size_t end = w->total - block * BLOCK < BLOCK ? w->total : (block + 1) * BLOCK;
  (void)worker;
  for (size_t at = block * BLOCK; at < end;) {
    const size_t index = at / w->run, rest = (index + 1) * w->run - at;
    const size_t count = rest < end - at ? rest : end - at;
    (w->to_bytes ? quantize_run : dequantize_run)(w, at, count, index % w->channels);
    at += count;
  }
}

static etude_status run(etude_kernel_context *ctx, work *w, bool *done) {
  const etude_byte_call *call = w->call;
  const etude_tensor *self = call->self;
  *done = false;
  w->total = etude_tensor_numel(self);
  w->run = w->total;
  w->channels = 1;
  if (call->scale.tensor != NULL || call->zero.tensor != NULL) {
    w->run = (size_t)self->strides[call->axis];
    w->channels = (size_t)self->sizes[call->axis];
  }
  if (w->total == 0 || w->run < LEAST_RUN || !numbers_fit(call) || !zeros_fit(w)) return ETUDE_OK;
  TRY(etude_kernel_resize(ctx, call->out, self->sizes, self->rank));
  if (!lie_alike(self, call->out)) return ETUDE_OK;
  w->rows = etude_rows_select();
  etude_kernel_parallel_for(ctx, w->total / BLOCK + (w->total % BLOCK != 0), run_block, w);
  *done = true;
  return ETUDE_OK;
}

etude_status etude_quantize_bytes(etude_kernel_context *ctx, const etude_byte_call *call, bool *done) {
  work w = {call, NULL, true, 0, 0, 0};
  *done = false;
  if (call->self->scalar_type != ETUDE_FLOAT || !is_byte(call->out->scalar_type)) return ETUDE_OK;
  return run(ctx, &w, done);
}

etude_status etude_dequantize_bytes(etude_kernel_context *ctx, const etude_byte_call *call, bool *done) {
  work w = {call, NULL, false, 0, 0, 0};
  *done = false;
  if (!is_byte(call->self->scalar_type) || call->out->scalar_type != ETUDE_FLOAT) return ETUDE_OK;
  return run(ctx, &w, done);
}
