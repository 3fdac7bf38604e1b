/* ContextBinaryBackend: several named graphs and one table of weights in one payload; see README.md.
 *
 * Each init picks a graph by the method's name. The name comes with the init context and is kept in the handle: the
 * backend object serves all methods at once and can't know which one is meant. Weights are used in place, and methods
 * of one program see their payload at one address; `self` counts the users of each payload, under the runtime's lock. */
#include "context_binary.h"

#include <string.h>

#include "format.h"

/* ---- the backend's state ---- */

/* A payload whose weights are in use where they lie. */
typedef struct shared_weights {
  struct shared_weights *next;
  const void *at;
  uint32_t users;
} shared_weights;

typedef struct counters {
  int64_t init_count;
  int64_t loaded_count;
  int64_t loaded_weight_bytes;
} counters;

typedef struct backend_state {
  etude_allocator allocator;
  const etude_hooks *hooks;
  counters counts; /* under the lock, as all below */
  shared_weights *shared;
} backend_state;

static void lock(const backend_state *state) {
  if (state->hooks->lock != NULL) state->hooks->lock(state->hooks->self);
}

static void unlock(const backend_state *state) {
  if (state->hooks->lock != NULL) state->hooks->unlock(state->hooks->self);
}

/* ---- a delegate's state ---- */

typedef struct handle {
  etude_allocator allocator;
  size_t size;            /* of this block */
  const float *weights;   /* in the payload, or `private_weights` */
  float *private_weights; /* NULL = in the payload */
  size_t weight_bytes;
  uint32_t threads;
  uint32_t widest; /* features of the widest layer */
  uint32_t layer_count;
  etude_context_layer layers[1]; /* `layer_count` */
} handle;

/* The options that init reads. Strings live as long as the method. */
typedef struct load_options {
  int64_t threads;
  int64_t log_level;
  const char *precision;
  const char *log_label;
  const char *graph;
} load_options;

static etude_status read_options(const etude_init_context *ctx, load_options *out, etude_error *error) {
  etude_status status = etude_init_context_option_int(ctx, "threads", &out->threads, error);
  if (status == ETUDE_OK) status = etude_init_context_option_int(ctx, "log_level", &out->log_level, error);
  if (status == ETUDE_OK) status = etude_init_context_option_string(ctx, "precision", &out->precision, error);
  if (status == ETUDE_OK) status = etude_init_context_option_string(ctx, "log_label", &out->log_label, error);
  if (status == ETUDE_OK) status = etude_init_context_option_string(ctx, "graph", &out->graph, error);
  return status;
}

/* Weights may stand apart from the graphs: the compile spec `weights` then holds their key as named data, of the
 * program or of an external data file. *out_apart tells. */
static etude_status find_weights(etude_init_context *ctx, etude_context_binary *binary, bool *out_apart,
                                 etude_error *error) {
  etude_compile_spec spec;
  etude_bytes data;
  char key[128];
  *out_apart = etude_init_context_find_spec(ctx, "weights", &spec, NULL) == ETUDE_OK;
  if (!*out_apart) return ETUDE_OK;
  if (spec.value.size >= sizeof key) {
    return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE,
                           "the key of the weights has %z bytes, at most 127 are possible", spec.value.size);
  }
  if (spec.value.size > 0) memcpy(key, spec.value.data, spec.value.size);
  key[spec.value.size] = '\0';
  const etude_status status = etude_init_context_named_data(ctx, key, &data, error);
  if (status != ETUDE_OK) return status;
  binary->weights = data.data;
  binary->weight_count = data.size / sizeof(float) < UINT32_MAX ? (uint32_t)(data.size / sizeof(float)) : UINT32_MAX;
  return ETUDE_OK;
}

static void free_handle(handle *h) {
  const etude_allocator allocator = h->allocator;
  if (h->private_weights != NULL) allocator.free(allocator.self, h->private_weights, h->weight_bytes);
  allocator.free(allocator.self, h, h->size);
}

static etude_status make_handle(const etude_init_context *ctx, const etude_context_binary *binary,
                                const etude_context_graph *graph, handle **out, etude_error *error) {
  const etude_allocator *allocator = etude_init_context_allocator(ctx);
  /* The layers lie in the payload, 20 bytes each, so that this can't overflow where the payload fits in memory. */
  const size_t size = sizeof(handle) + (graph->layer_count - 1) * sizeof(etude_context_layer);
  handle *h = allocator->alloc(allocator->self, size, sizeof(void *));
  if (h == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for %u layers", graph->layer_count);
  memset(h, 0, size);
  h->allocator = *allocator;
  h->size = size;
  h->layer_count = graph->layer_count;
  h->weight_bytes = (size_t)binary->weight_count * sizeof(float);
  const etude_status status = etude_context_binary_layers(binary, graph, h->layers, error);
  if (status != ETUDE_OK) {
    free_handle(h);
    return status;
  }
  for (uint32_t i = 0; i < h->layer_count; ++i) {
    if (h->layers[i].out > h->widest) h->widest = h->layers[i].out;
  }
  *out = h;
  return ETUDE_OK;
}

/* ---- weights ---- */

/* To the nearest number with 8 significant bits, ties to even; NaN stays NaN. */
static float round_to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return value;
  bits = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static etude_status copy_weights(handle *h, const etude_context_binary *binary, bool rounded, etude_error *error) {
  if (h->weight_bytes == 0) return ETUDE_OK;
  h->private_weights = h->allocator.alloc(h->allocator.self, h->weight_bytes, sizeof(float));
  if (h->private_weights == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a copy of %z bytes of weights", h->weight_bytes);
  }
  memcpy(h->private_weights, binary->weights, h->weight_bytes);
  for (uint32_t i = 0; rounded && i < binary->weight_count; ++i) {
    h->private_weights[i] = round_to_bfloat16(h->private_weights[i]);
  }
  h->weights = h->private_weights;
  return ETUDE_OK;
}

static void count_bytes(backend_state *state, size_t bytes, bool more) {
  state->counts.loaded_weight_bytes += more ? (int64_t)bytes : -(int64_t)bytes;
}

static shared_weights **find_shared(backend_state *state, const void *at) {
  shared_weights **link = &state->shared;
  while (*link != NULL && (*link)->at != at) link = &(*link)->next;
  return link;
}

/* Count a loaded delegate, and its weights: private ones always, those of a payload by their first user. */
static etude_status enlist(backend_state *state, const handle *h, etude_error *error) {
  shared_weights *fresh = state->allocator.alloc(state->allocator.self, sizeof *fresh, sizeof(void *));
  if (fresh == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to count the users of the weights");
  lock(state);
  state->counts.init_count++;
  state->counts.loaded_count++;
  shared_weights **link = find_shared(state, h->weights);
  if (h->private_weights != NULL) {
    count_bytes(state, h->weight_bytes, true);
  } else if (*link != NULL) {
    (*link)->users++;
  } else {
    fresh->next = NULL;
    fresh->at = h->weights;
    fresh->users = 1;
    *link = fresh;
    fresh = NULL;
    count_bytes(state, h->weight_bytes, true);
  }
  unlock(state);
  if (fresh != NULL) state->allocator.free(state->allocator.self, fresh, sizeof *fresh);
  return ETUDE_OK;
}

static void delist(backend_state *state, const handle *h) {
  shared_weights *last = NULL;
  lock(state);
  state->counts.loaded_count--;
  if (h->private_weights == NULL) {
    shared_weights **link = find_shared(state, h->weights);
    if (--(*link)->users == 0) {
      last = *link;
      *link = last->next;
    }
  }
  if (h->private_weights != NULL || last != NULL) count_bytes(state, h->weight_bytes, false);
  unlock(state);
  if (last != NULL) state->allocator.free(state->allocator.self, last, sizeof *last);
}

/* ---- init and destroy ---- */

static void log_choice(const etude_init_context *ctx, const load_options *options, const char *graph) {
  char line[ETUDE_OPTION_STRING_SIZE + 128];
  const char *const parts[] = {options->log_label, options->log_label[0] != '\0' ? ": " : "",
                               "method ",          etude_init_context_method_name(ctx),
                               " runs graph ",     graph};
  size_t used = 0;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
    const size_t room = sizeof line - 1 - used;
    const size_t length = strlen(parts[i]);
    const size_t taken = length < room ? length : room;
    memcpy(line + used, parts[i], taken);
    used += taken;
  }
  line[used] = '\0';
  etude_init_context_log(ctx, (int32_t)options->log_level, line);
}

static etude_status prepare(handle *h, const etude_context_binary *binary, const load_options *options,
                            etude_error *error) {
  const bool rounded = strcmp(options->precision, "bfloat16") == 0;
  h->threads = (uint32_t)options->threads;
  h->weights = (const float *)(const void *)binary->weights;
  if (!rounded && (uintptr_t)binary->weights % sizeof(float) == 0) return ETUDE_OK;
  return copy_weights(h, binary, rounded, error);
}

static etude_status context_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                                 etude_error *error) {
  etude_context_binary binary;
  etude_context_graph graph;
  load_options options;
  bool apart = false;
  handle *h = NULL;
  const char *method = etude_init_context_method_name(ctx);
  etude_status status = read_options(ctx, &options, error);
  if (status != ETUDE_OK) return status;
  status = etude_context_binary_open(payload, &binary, error);
  if (status == ETUDE_OK) status = find_weights(ctx, &binary, &apart, error);
  if (status != ETUDE_OK) return status;
  status = etude_context_binary_find(&binary, options.graph[0] != '\0' ? options.graph : method, method, &graph, error);
  if (status != ETUDE_OK) return status;
  status = make_handle(ctx, &binary, &graph, &h, error);
  if (status != ETUDE_OK) return status;
  status = prepare(h, &binary, &options, error);
  if (status == ETUDE_OK) status = enlist(self, h, error);
  if (status != ETUDE_OK) {
    free_handle(h);
    return status;
  }
  log_choice(ctx, &options, graph.name);
  if (apart || h->private_weights != NULL) etude_init_context_release(ctx); /* what we need of the payload is copied */
  *out_handle = h;
  return ETUDE_OK;
}

static void context_destroy(void *self, void *opaque) {
  delist(self, opaque);
  free_handle(opaque);
}

/* ---- execute ---- */

/* One execution: the rows are shared out to `tasks` tasks, each with two rows of scratch memory. */
typedef struct execution {
  const handle *h;
  const float *input;
  float *output;
  float *scratch;
  size_t rows;
  size_t tasks;
  float scale;
  bool clamp;
} execution;

static void run_layer(const etude_context_layer *layer, const float *weights, const float *x, float *y) {
  if (layer->kind == ETUDE_CONTEXT_RELU) {
    for (uint32_t i = 0; i < layer->in; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    return;
  }
  const float *row = weights + layer->weight;
  for (uint32_t o = 0; o < layer->out; ++o, row += layer->in) {
    float sum = layer->bias != ETUDE_CONTEXT_NO_BIAS ? weights[layer->bias + o] : 0.0f;
    for (uint32_t i = 0; i < layer->in; ++i) sum += row[i] * x[i];
    y[o] = sum;
  }
}

static void run_rows(void *arg, size_t task, size_t worker) {
  const execution *run = arg;
  const handle *h = run->h;
  (void)worker;
  const size_t in = h->layers[0].in;
  const size_t out = h->layers[h->layer_count - 1].out;
  float *scratch = run->scratch + task * 2 * h->widest;
  for (size_t row = run->rows * task / run->tasks; row < run->rows * (task + 1) / run->tasks; ++row) {
    const float *x = run->input + row * in;
    for (uint32_t i = 0; i < h->layer_count; ++i) {
      float *y = scratch + (i % 2) * h->widest;
      run_layer(&h->layers[i], h->weights, x, y);
      x = y;
    }
    for (size_t o = 0; o < out; ++o) {
      const float value = x[o] * run->scale;
      run->output[row * out + o] = run->clamp && value < 0.0f ? 0.0f : value;
    }
  }
}

static etude_status check_tensor(const etude_value *value, const char *what, etude_error *error) {
  if (value->tag != ETUDE_VALUE_TENSOR) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "the %s is %s, not a tensor", what,
                           etude_value_kind_name(value->tag));
  }
  const etude_tensor *tensor = value->as.tensor;
  if (tensor->scalar_type != ETUDE_FLOAT || tensor->rank != 2 || !etude_tensor_is_contiguous(tensor)) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "the %s is %T: a row-major float tensor [rows, features] is needed", what, tensor);
  }
  return ETUDE_OK;
}

/* Check the two arguments, and give the output its size. */
static etude_status take_arguments(etude_execute_context *ctx, const handle *h, etude_value *const *args,
                                   uint32_t arg_count, execution *run, etude_error *error) {
  if (arg_count != 2) {
    return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE, "one input and one output are needed, not %u arguments",
                           arg_count);
  }
  etude_status status = check_tensor(args[0], "input", error);
  if (status == ETUDE_OK) status = check_tensor(args[1], "output", error);
  if (status != ETUDE_OK) return status;
  const etude_tensor *input = args[0]->as.tensor;
  etude_tensor *output = args[1]->as.tensor;
  if ((uint32_t)input->sizes[1] != h->layers[0].in) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the input is %T, the graph takes %u features", input,
                           h->layers[0].in);
  }
  const int32_t sizes[2] = {input->sizes[0], (int32_t)h->layers[h->layer_count - 1].out};
  status = etude_execute_context_resize(ctx, output, sizes, 2, error);
  run->input = input->data;
  run->output = output->data;
  run->rows = (size_t)input->sizes[0];
  return status;
}

static etude_status context_execute(void *self, etude_execute_context *ctx, void *opaque, etude_value *const *args,
                                    uint32_t arg_count, etude_error *error) {
  const handle *h = opaque;
  execution run = {h, NULL, NULL, NULL, 0, 0, 1.0f, false};
  int64_t percent;
  (void)self;
  etude_status status = take_arguments(ctx, h, args, arg_count, &run, error);
  if (status == ETUDE_OK) status = etude_execute_context_option_int(ctx, "output_scale_percent", &percent, error);
  if (status == ETUDE_OK) status = etude_execute_context_option_bool(ctx, "clamp", &run.clamp, error);
  if (status != ETUDE_OK || run.rows == 0) return status;
  run.scale = (float)percent / 100.0f;
  run.tasks = run.rows < h->threads ? run.rows : h->threads;
  const size_t scratch_bytes = run.tasks * 2 * h->widest * sizeof(float); /* at most 64 * 2 * 65536 * 4 */
  run.scratch = etude_execute_context_scratch(ctx, scratch_bytes);
  if (run.scratch == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for %z bytes of scratch", scratch_bytes);
  }
  etude_execute_context_parallel_for(ctx, run.tasks, run_rows, &run);
  return ETUDE_OK;
}

/* ---- options ---- */

static const etude_option_schema *context_option_schema(void *self, uint32_t *out_count) {
  static const char *const precisions[] = {"float32", "bfloat16", NULL};
  static const char *const levels[] = {"debug", "info", "warning", "error", NULL};
  static const etude_option_schema schema[] = {
      {"threads", "tasks among which the rows of a batch are shared out", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 1,
       NULL, 1, 64, NULL, NULL},
      {"precision", "weights as they are, in place, or rounded in a copy", ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH, 0, 0,
       "float32", 0, 0, precisions, NULL},
      {"graph", "graph to run; empty: the one with the method's name", ETUDE_OPTION_STRING, ETUDE_SCOPE_LOAD,
       ETUDE_OPTION_ALLOW_EMPTY, 0, "", 0, 0, NULL, NULL},
      {"output_scale_percent", "factor on all outputs", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, ETUDE_OPTION_EFFECT_NOW,
       100, NULL, 0, 1000, NULL, NULL},
      {"clamp", "negative outputs become 0", ETUDE_OPTION_BOOL, ETUDE_SCOPE_BOTH, ETUDE_OPTION_EFFECT_NOW, 0, NULL, 0,
       0, NULL, NULL},
      {"log_level", "level of the line that loading writes to the log", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 0, NULL,
       0, 3, levels, NULL},
      {"log_label", "text in front of that line, without a line break", ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH,
       ETUDE_OPTION_ALLOW_EMPTY, 0, "", 0, 0, NULL, NULL},
      {"init_count", "delegates initialised so far", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0,
       NULL, 0, INT64_MAX, NULL, NULL},
      {"loaded_count", "delegates loaded now", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0, NULL,
       0, INT64_MAX, NULL, NULL},
      {"loaded_weight_bytes", "memory that their weights take; shared weights count once", ETUDE_OPTION_INT,
       ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0, NULL, 0, INT64_MAX, NULL, NULL},
  };
  (void)self;
  *out_count = (uint32_t)(sizeof schema / sizeof schema[0]);
  return schema;
}

/* The one rule that a schema can't express: a log line is one line. */
static etude_status context_check_options(void *self, const char *method_name, const etude_option *items,
                                          uint32_t count, etude_error *error) {
  (void)self;
  (void)method_name;
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].type != ETUDE_OPTION_STRING || strchr(items[i].value.string, '\n') == NULL) continue;
    etude_error_set(error, ETUDE_INVALID_ARGUMENT, "option %q may not contain a line break", items[i].key);
    etude_error_subject(error, items[i].key);
    return ETUDE_INVALID_ARGUMENT;
  }
  return ETUDE_OK;
}

static etude_status context_get_option(void *self, etude_option *item, etude_error *error) {
  static const struct {
    const char *key;
    size_t offset;
  } keys[] = {
      {"init_count", offsetof(counters, init_count)},
      {"loaded_count", offsetof(counters, loaded_count)},
      {"loaded_weight_bytes", offsetof(counters, loaded_weight_bytes)},
  };
  const backend_state *state = self;
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
    if (strcmp(keys[i].key, item->key) != 0) continue;
    item->type = ETUDE_OPTION_INT;
    lock(state);
    memcpy(&item->value.int_value, (const uint8_t *)&state->counts + keys[i].offset, sizeof item->value.int_value);
    unlock(state);
    return ETUDE_OK;
  }
  return etude_error_set(error, ETUDE_NOT_FOUND, "it is in the schema, but has no value");
}

static void context_release(void *self) {
  backend_state *state = self;
  const etude_allocator allocator = state->allocator;
  allocator.free(allocator.self, state, sizeof *state);
}

static const etude_backend context_vtable = {
    sizeof(etude_backend), ETUDE_ABI_VERSION,     NULL, context_init,       context_execute, context_destroy,
    context_option_schema, context_check_options, NULL, context_get_option, context_release, NULL,
};

etude_status etude_context_binary_register(etude_runtime *runtime, etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(runtime);
  backend_state *state = allocator->alloc(allocator->self, sizeof *state, sizeof(void *));
  if (state == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for ContextBinaryBackend");
  memset(state, 0, sizeof *state);
  state->allocator = *allocator;
  state->hooks = etude_runtime_hooks(runtime);
  const etude_status status =
      etude_runtime_register_backend(runtime, "ContextBinaryBackend", &context_vtable, state, error);
  if (status != ETUDE_OK) context_release(state);
  return status;
}
