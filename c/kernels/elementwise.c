/* See elementwise.h. The elements of out stand densely in memory, so the walk counts from 0 to their number in memory
   order. What lies in the same order and type is handed to the loop where it is; everything else is gathered,
   converted, into a run of a KiB on the stack, and results are cast on the way out. Sizes and strides are taken
   after out was resized: an input may be the same tensor. */
#include "elementwise.h"

/* Elements of a task of their own; below twice that there is one. */
#define BLOCK ((size_t)16384)

etude_operand etude_operand_tensor(const etude_tensor *tensor) {
  etude_operand operand = {tensor, tensor->scalar_type, tensor->rank == 0, {0}};
  return operand;
}

etude_operand etude_operand_number(etude_scalar number) {
  etude_operand operand = {NULL, ETUDE_LONG, false, {0}};
  if (number.tag == ETUDE_VALUE_DOUBLE) {
    operand.dtype = ETUDE_DOUBLE;
    operand.number.d = number.d;
  } else if (number.tag == ETUDE_VALUE_BOOL) {
    operand.dtype = ETUDE_BOOL;
    operand.number.b = number.i != 0;
  } else {
    operand.number.i = number.i;
  }
  return operand;
}

etude_status etude_operand_get(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                               etude_operand *out) {
  if (args[index]->tag == ETUDE_VALUE_TENSOR) {
    etude_tensor *tensor;
    TRY(etude_arg_tensor(ctx, args, index, &tensor));
    if (!etude_dtype_is_number(tensor->scalar_type)) {
      return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "argument %u: no arithmetic on %y tensors", index,
                               (int)tensor->scalar_type);
    }
    *out = etude_operand_tensor(tensor);
  } else {
    etude_scalar number;
    TRY(etude_arg_scalar(ctx, args, index, &number));
    *out = etude_operand_number(number);
  }
  return ETUDE_OK;
}

static const char *operand_data(const etude_operand *operand) {
  return operand->tensor != NULL ? operand->tensor->data : (const void *)&operand->number;
}

/* Is any element of integers or bools zero, once it is of type `common`? Numbers wrap in narrow types. */
static bool has_zero(const etude_operand *operand, int32_t common) {
  const uint32_t bits = common == ETUDE_BOOL ? 64 : 8u * (uint32_t)etude_scalar_size(common);
  const uint64_t kept = UINT64_MAX >> (64u - bits);
  const size_t count = operand->tensor != NULL ? etude_tensor_numel(operand->tensor) : 1;
  const size_t size = etude_scalar_size(operand->dtype);
  const char *data = operand_data(operand);
  etude_run run;
  const size_t most = sizeof run.ints / sizeof run.ints[0];
  for (size_t at = 0; at < count; at += most) {
    const size_t n = count - at < most ? count - at : most;
    etude_load_ints(run.ints, data + at * size, operand->dtype, 1, n);
    for (size_t i = 0; i < n; ++i) {
      if (((uint64_t)run.ints[i] & kept) == 0) return true;
    }
  }
  return false;
}

/* 0 bool, 1 integer, 2 float, 3 complex. */
static int category(int32_t dtype) {
  if (etude_dtype_is_complex(dtype)) return 3;
  return etude_dtype_among(dtype, ETUDE_FLOATS) ? 2 : dtype == ETUDE_BOOL ? 0 : 1;
}

static int32_t promote_present(int32_t a, int32_t b) {
  if (a == ETUDE_NO_DTYPE) return b;
  return b == ETUDE_NO_DTYPE ? a : etude_dtype_promote(a, b);
}

/* A lower rank of operands counts only where it is of a higher category; floats become complex in their precision. */
static int32_t combine(int32_t higher, int32_t lower) {
  if (higher == ETUDE_NO_DTYPE) return lower;
  if (etude_dtype_is_complex(lower) && etude_dtype_is_float(higher)) return etude_dtype_with_parts(higher);
  if (lower == ETUDE_NO_DTYPE || category(higher) >= category(lower)) return higher;
  return etude_dtype_promote(higher, lower);
}

etude_status etude_common_dtype(etude_kernel_context *ctx, const etude_operand *operands, uint32_t count,
                                int32_t *out_dtype) {
  int32_t by_rank[3] = {ETUDE_NO_DTYPE, ETUDE_NO_DTYPE, ETUDE_NO_DTYPE}; /* tensors, rank-0 tensors, numbers */
  for (uint32_t k = 0; k < count; ++k) {
    const int rank = operands[k].tensor == NULL ? 2 : operands[k].zero_dim ? 1 : 0;
    const int32_t dtype = rank == 2 && operands[k].dtype == ETUDE_DOUBLE ? ETUDE_FLOAT : operands[k].dtype;
    const int32_t before = by_rank[rank];
    by_rank[rank] = promote_present(before, dtype);
    if (by_rank[rank] == ETUDE_NO_DTYPE) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%y and %y have no common type", (int)before, (int)dtype);
    }
  }
  *out_dtype = combine(by_rank[0], combine(by_rank[1], by_rank[2]));
  if (*out_dtype != ETUDE_NO_DTYPE) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the operands have no common type");
}

/* ----- the walk ----- */

/* How an input lies along the memory order of out; innermost dimension first. */
typedef struct source {
  const char *data;
  size_t element_size;
  uint32_t rank;
  bool direct;   /* in order and of the loop's type: no copy */
  bool repeated; /* one element for all */
  size_t sizes[ETUDE_MAX_RANK];
  size_t strides[ETUDE_MAX_RANK];
} source;

typedef struct walk {
  const etude_map *map;
  source in[ETUDE_MAX_INPUTS];
  char *out;
  int32_t out_dtype;
  size_t total;
  size_t block;
  size_t run; /* most elements that go to the loop at once */
  bool direct_out;
} walk;

/* A loop over real numbers reads nothing of complex ones. */
static etude_status check_seen(etude_kernel_context *ctx, const etude_map *map) {
  for (uint32_t k = 0; k < map->count; ++k) {
    const uint32_t reals = ETUDE_REALS; /* numbers, too, which tensors need not be */
    if (etude_dtype_among(map->in[k].dtype,
                          etude_dtype_is_complex(map->seen_as[k]) ? reals | ETUDE_COMPLEXES : reals)) {
      continue;
    }
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "not defined for %y", (int)map->in[k].dtype);
  }
  return ETUDE_OK;
}

static etude_status broadcast_shape(etude_kernel_context *ctx, const etude_map *map, int32_t *sizes, uint32_t *rank) {
  *rank = 0;
  for (uint32_t k = 0; k < map->count; ++k) {
    const etude_tensor *tensor = map->in[k].tensor;
    if (tensor != NULL && tensor->rank > *rank) *rank = tensor->rank;
  }
  for (uint32_t d = 0; d < *rank; ++d) sizes[d] = 1;
  for (uint32_t k = 0; k < map->count; ++k) {
    const etude_tensor *tensor = map->in[k].tensor;
    const uint32_t missing = tensor != NULL ? *rank - tensor->rank : *rank;
    for (uint32_t d = missing; d < *rank; ++d) {
      const int32_t size = tensor->sizes[d - missing];
      if (size == 1 || size == sizes[d]) continue;
      if (sizes[d] != 1) {
        return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not broadcast with the other operands, %D",
                                 tensor, sizes, *rank);
      }
      sizes[d] = size;
    }
  }
  return ETUDE_OK;
}

/* The dimensions of `out` of size other than 1, innermost in memory first. */
static uint32_t memory_order(const etude_tensor *out, uint8_t *order) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < out->rank; ++d) {
    uint32_t at = count;
    if (out->sizes[d] == 1) continue;
    for (; at > 0 && out->strides[order[at - 1]] >= out->strides[d]; --at) order[at] = order[at - 1];
    order[at] = (uint8_t)d;
    ++count;
  }
  return count;
}

static void source_add_dim(source *s, size_t size, size_t stride) {
  const uint32_t last = s->rank - 1;
  if (s->rank != 0 && stride == s->strides[last] * s->sizes[last]) {
    s->sizes[last] *= size;
    return;
  }
  s->sizes[s->rank] = size;
  s->strides[s->rank] = stride;
  ++s->rank;
}

/* False where the operand does not broadcast to out, which can only be when they are one tensor. */
static bool source_init(source *s, const etude_operand *operand, int32_t seen_as, const etude_tensor *out,
                        const uint8_t *order, uint32_t order_count) {
  const etude_tensor *tensor = operand->tensor;
  const uint32_t rank = tensor != NULL ? tensor->rank : 0;
  if (rank > out->rank) return false;
  s->data = operand_data(operand);
  s->element_size = etude_scalar_size(operand->dtype);
  s->rank = 0;
  for (uint32_t k = 0; k < order_count; ++k) {
    const uint32_t missing = out->rank - rank;
    const uint32_t d = order[k];
    const int32_t size = d < missing ? 1 : tensor->sizes[d - missing];
    if (size != 1 && size != out->sizes[d]) return false;
    source_add_dim(s, (size_t)out->sizes[d], size == 1 ? 0 : (size_t)tensor->strides[d - missing]);
  }
  if (s->rank == 0) source_add_dim(s, 1, 0);
  s->repeated = s->rank == 1 && s->strides[0] == 0;
  s->direct = s->rank == 1 && s->strides[0] == 1 && operand->dtype == seen_as;
  return true;
}

/* Spread the first element over all of them. */
static void spread(void *to, size_t size, size_t count) {
  if (size == sizeof(uint8_t)) {
    memset(to, *(uint8_t *)to, count);
  } else if (size == sizeof(float)) {
    float *floats = to;
    for (size_t i = 1; i < count; ++i) floats[i] = floats[0];
  } else if (size == 2 * sizeof(double)) {
    double *pairs = to;
    for (size_t i = 2; i < 2 * count; ++i) pairs[i] = pairs[i - 2];
  } else {
    int64_t *ints = to; /* doubles travel as their bits */
    for (size_t i = 1; i < count; ++i) ints[i] = ints[0];
  }
}

#define HAS_WHOLE ETUDE_HAS_LOOP_int64_t
#define HAS_COMPLEX ETUDE_HAS_LOOP_etude_complex

/* Load a dense, strided or repeated piece as the type that the loop sees. */
static void load(void *to, int32_t seen_as, const void *data, int32_t dtype, size_t stride, size_t count) {
  if (stride == 0) {
    load(to, seen_as, data, dtype, 1, 1);
    spread(to, etude_scalar_size(seen_as), count);
    return;
  }
  switch (seen_as) {
    case ETUDE_FLOAT: etude_load_floats(to, data, dtype, stride, count); return;
    case ETUDE_DOUBLE:
      if (ETUDE_HAS_DTYPE(ETUDE_DOUBLE)) etude_load_doubles(to, data, dtype, stride, count);
      return;
    case ETUDE_LONG:
      if (HAS_WHOLE) etude_load_ints(to, data, dtype, stride, count);
      return;
    case ETUDE_COMPLEX_DOUBLE:
      if (HAS_COMPLEX) etude_load_complexes(to, data, dtype, stride, count);
      return;
    default:
      if (ETUDE_HAS_DTYPE(ETUDE_BOOL)) etude_dtype_convert(to, ETUDE_BOOL, 1, data, dtype, stride, count);
  }
}

static void gather(const source *s, int32_t dtype, int32_t seen_as, size_t begin, size_t count, etude_run *run) {
  const size_t size = etude_scalar_size(seen_as);
  char *to = (char *)run;
  size_t index[ETUDE_MAX_RANK];
  size_t offset = 0;
  for (uint32_t d = 0; d < s->rank; ++d) {
    index[d] = begin % s->sizes[d];
    begin /= s->sizes[d];
    offset += index[d] * s->strides[d];
  }
  for (;;) {
    const size_t row = s->sizes[0] - index[0];
    const size_t n = row < count ? row : count;
    load(to, seen_as, s->data + offset * s->element_size, dtype, s->strides[0], n);
    count -= n;
    if (count == 0) return;
    to += n * size;
    offset -= index[0] * s->strides[0];
    index[0] = 0;
    for (uint32_t d = 1; d < s->rank; ++d) {
      offset += s->strides[d];
      if (++index[d] < s->sizes[d]) break;
      offset -= s->sizes[d] * s->strides[d];
      index[d] = 0;
    }
  }
}

/* The one element of a repeated source, in all of the run. */
static void repeat(const etude_map *map, uint32_t k, const source *s, size_t count, etude_run *run) {
  double rounded[2] = {0, 0};
  if (!ETUDE_ROUNDS_NUMBERS || map->rounded_to == ETUDE_NO_DTYPE) {
    load(run, map->seen_as[k], s->data, map->in[k].dtype, 0, count);
    return;
  }
  etude_dtype_convert(rounded, map->rounded_to, 1, s->data, map->in[k].dtype, 1, 1);
  load(run, map->seen_as[k], rounded, map->rounded_to, 0, count);
}

static void store_as(void *data, int32_t dtype, const etude_run *run, int32_t written, size_t count) {
  switch (written) {
    case ETUDE_FLOAT: etude_store_floats(data, dtype, 1, run->floats, count); return;
    case ETUDE_DOUBLE:
      if (ETUDE_HAS_DTYPE(ETUDE_DOUBLE)) etude_store_doubles(data, dtype, 1, run->doubles, count);
      return;
    case ETUDE_LONG:
      if (HAS_WHOLE) etude_store_ints(data, dtype, 1, run->ints, count);
      return;
    case ETUDE_COMPLEX_DOUBLE:
      if (HAS_COMPLEX) etude_store_complexes(data, dtype, 1, run->doubles, count);
      return;
    default:
      if (ETUDE_HAS_DTYPE(ETUDE_BOOL)) etude_dtype_convert(data, dtype, 1, run->bools, ETUDE_BOOL, 1, count);
  }
}

/* What the loop wrote becomes the result's dtype, and that becomes out's. */
static void store(const walk *w, void *data, const etude_run *run, size_t count) {
  const etude_map *map = w->map;
  etude_run rounded;
  if (w->out_dtype == map->result || map->result == map->writes) {
    store_as(data, w->out_dtype, run, map->writes, count);
    return;
  }
  store_as(&rounded, map->result, run, map->writes, count);
  etude_dtype_convert(data, w->out_dtype, 1, &rounded, map->result, 1, count);
}

static void walk_block(void *arg, size_t block, size_t worker) {
  const walk *w = arg;
  (void)worker;
  const etude_map *map = w->map;
  const size_t begin = block * w->block;
  const size_t end = w->total - begin < w->block ? w->total : begin + w->block;
  const size_t out_size = etude_scalar_size(w->out_dtype);
  etude_run runs[ETUDE_MAX_INPUTS];
  etude_run result;
  const void *in[ETUDE_MAX_INPUTS];
  for (uint32_t k = 0; k < map->count; ++k) {
    in[k] = &runs[k];
    if (w->in[k].repeated) repeat(map, k, &w->in[k], end - begin < w->run ? end - begin : w->run, &runs[k]);
  }
  for (size_t at = begin; at < end; at += w->run) {
    const size_t count = end - at < w->run ? end - at : w->run;
    char *to = w->out + at * out_size;
    for (uint32_t k = 0; k < map->count; ++k) {
      const source *s = &w->in[k];
      if (s->direct) {
        in[k] = s->data + at * s->element_size;
      } else if (!s->repeated) {
        gather(s, map->in[k].dtype, map->seen_as[k], at, count, &runs[k]);
      }
    }
    map->loop(w->direct_out ? to : (void *)&result, in, count, map->params);
    if (!w->direct_out) store(w, to, &result, count);
  }
}

/* How many elements fit into a run of each type that the loop touches; all at once where nothing is copied. */
static size_t run_length(const walk *w) {
  const etude_map *map = w->map;
  bool direct = w->direct_out;
  size_t widest = etude_scalar_size(map->writes);
  for (uint32_t k = 0; k < map->count; ++k) {
    const size_t size = etude_scalar_size(map->seen_as[k]);
    direct = direct && w->in[k].direct;
    if (size > widest) widest = size;
  }
  if (direct) return w->block;
  return sizeof(etude_run) / (widest <= sizeof(float) ? sizeof(float) : widest);
}

/* Is every operand a tensor like `out`, which it may be, in all that the loop sees? */
static bool all_alike(const etude_map *map, const etude_tensor *out) {
  if (map->result != map->writes || out->scalar_type != map->writes) return false;
  for (uint32_t k = 0; k < map->count; ++k) {
    const etude_tensor *tensor = map->in[k].tensor;
    if (tensor == NULL || tensor->scalar_type != map->seen_as[k] || tensor->rank != out->rank) return false;
    for (uint32_t d = 0; d < out->rank; ++d) {
      if (tensor->sizes[d] != out->sizes[d] || tensor->strides[d] != out->strides[d]) return false;
    }
  }
  return true;
}

/* Small tensors that are all alike need no walk. */
static etude_status run_alike(etude_kernel_context *ctx, const etude_map *map, etude_tensor *out, size_t count) {
  const void *in[ETUDE_MAX_INPUTS];
  TRY(etude_kernel_resize(ctx, out, out->sizes, out->rank)); /* has no data yet, perhaps, or must not be written */
  for (uint32_t k = 0; k < map->count; ++k) in[k] = map->in[k].tensor->data;
  if (count != 0) map->loop(out->data, in, count, map->params);
  return ETUDE_OK;
}

etude_status etude_map_run(etude_kernel_context *ctx, const etude_map *map, etude_tensor *out) {
  int32_t sizes[ETUDE_MAX_RANK];
  uint8_t order[ETUDE_MAX_RANK];
  uint32_t rank, order_count;
  walk w;
  /* PyTorch would make complex numbers of real results; no exporter asks for that. */
  const int32_t to = out->scalar_type;
  if (!(etude_dtype_is_complex(map->result) ? etude_dtype_is_complex(to) : etude_dtype_is_real(to)) ||
      !etude_dtype_can_cast(map->result, to)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a result of type %y can't be stored in out, %y",
                             (int)map->result, (int)out->scalar_type);
  }
  TRY(check_seen(ctx, map));
  if (all_alike(map, out)) {
    w.total = etude_tensor_numel(out);
    if (w.total < 2 * BLOCK) return run_alike(ctx, map, out, w.total);
  }
  TRY(broadcast_shape(ctx, map, sizes, &rank));
  TRY(etude_kernel_resize(ctx, out, sizes, rank));
  w.map = map;
  w.out = out->data;
  w.out_dtype = out->scalar_type;
  w.total = etude_tensor_numel(out);
  if (w.total == 0) return ETUDE_OK;
  order_count = memory_order(out, order);
  for (uint32_t k = 0; k < map->count; ++k) {
    if (!source_init(&w.in[k], &map->in[k], map->seen_as[k], out, order, order_count)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out changed the shape of an operand that it also is");
    }
  }
  w.direct_out = map->result == map->writes && w.out_dtype == map->writes;
  w.block = w.total < 2 * BLOCK ? w.total : BLOCK;
  w.run = run_length(&w);
  if (w.block == w.total) {
    walk_block(&w, 0, 0);
  } else {
    etude_kernel_parallel_for(ctx, w.total / BLOCK + (w.total % BLOCK != 0), walk_block, &w);
  }
  return ETUDE_OK;
}

/* ----- operators as tables of loops ----- */

static etude_status check_common(etude_kernel_context *ctx, const etude_op *op, int32_t common) {
  if (common == ETUDE_UINT64 || (common == ETUDE_BOOL && (op->flags & ETUDE_OP_NO_BOOL) != 0)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "not defined for %y", (int)common);
  }
  return ETUDE_OK;
}

static etude_loop_function loop_for(const etude_op *op, int32_t common) {
  switch (etude_dtype_compute(common)) {
    case ETUDE_FLOAT: return op->on_float;
    case ETUDE_DOUBLE: return op->on_double;
    case ETUDE_COMPLEX_DOUBLE: return op->on_complex;
    default: return op->on_int;
  }
}

etude_status etude_op_run(etude_kernel_context *ctx, const etude_op *op, const etude_operand *operands, uint32_t count,
                          etude_tensor *out, const void *params) {
  etude_map map;
  int32_t common;
  TRY(etude_common_dtype(ctx, operands, count, &common));
  TRY(check_common(ctx, op, common));
  if ((op->flags & ETUDE_OP_FLOAT) != 0 && category(common) < 2) common = ETUDE_FLOAT;
  map.loop = loop_for(op, common);
  if (map.loop == NULL) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "not defined for %y", (int)common);
  const bool empty = operands[0].tensor != NULL && etude_tensor_numel(operands[0].tensor) == 0;
  if (HAS_WHOLE && (op->flags & ETUDE_OP_NONZERO) != 0 && !empty && category(common) < 2 &&
      has_zero(&operands[1], common)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "integer division by zero");
  }
  map.count = count;
  map.params = params;
  for (uint32_t k = 0; k < count; ++k) {
    map.in[k] = operands[k];
    map.seen_as[k] = etude_dtype_compute(common);
  }
  map.writes = (op->flags & ETUDE_OP_BOOL) != 0 ? ETUDE_BOOL : etude_dtype_compute(common);
  map.result = (op->flags & ETUDE_OP_BOOL) != 0 ? ETUDE_BOOL : common;
  if ((op->flags & ETUDE_OP_REAL) != 0 && etude_dtype_is_complex(common)) {
    map.writes = ETUDE_DOUBLE;
    map.result = etude_dtype_part(common);
  }
  if (HAS_COMPLEX && (op->flags & ETUDE_OP_PAIRS) != 0) {
    map.writes = ETUDE_COMPLEX_DOUBLE;
    map.result = etude_dtype_with_parts(common);
  }
  map.rounded_to = (op->flags & ETUDE_OP_EXACT) != 0 && category(common) >= 2 ? ETUDE_NO_DTYPE : common;
  return etude_map_run(ctx, &map, out);
}

etude_status etude_op_call(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, const etude_op *op,
                           uint32_t count, uint32_t out_index, const void *params) {
  etude_operand operands[ETUDE_MAX_INPUTS];
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, out_index + 2));
  for (uint32_t k = 0; k < count; ++k) TRY(etude_operand_get(ctx, args, k, &operands[k]));
  TRY(etude_arg_out(ctx, args, out_index, &out));
  return etude_op_run(ctx, op, operands, count, out, params);
}

etude_status etude_op_call_bools(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 const etude_op *op, etude_loop_function on_bools, uint32_t count, uint32_t out_index) {
  etude_map map;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, out_index + 2));
  for (uint32_t k = 0; k < count; ++k) {
    TRY(etude_operand_get(ctx, args, k, &map.in[k]));
    if (map.in[k].tensor == NULL || map.in[k].dtype != ETUDE_BOOL) {
      return etude_op_call(ctx, args, arg_count, op, count, out_index, NULL);
    }
    map.seen_as[k] = ETUDE_BOOL;
  }
  TRY(etude_arg_out(ctx, args, out_index, &out));
  map.rounded_to = ETUDE_NO_DTYPE;
  map.count = count;
  map.writes = map.result = ETUDE_BOOL;
  map.loop = on_bools;
  map.params = NULL;
  return etude_map_run(ctx, &map, out);
}
