/* A language model in C: token ids in, token ids out. For programs of the llama and optimum exporters.
 *
 *   generate [-n MOST] [-T TEMPERATURE] [-s SEED] [-t THREADS] MODEL.pte
 *
 * Each line of the input is a turn: the ids of a prompt, which goes on where the last turn ended; "reset" begins anew. For
 * each turn the new ids are printed as they come, on a line; an end token is the last. Temperature 0, the default, takes the
 * likeliest token. The tokenizer is the caller's: see docs/llm.md.
 *
 *   echo 1 43 72 270 | generate -n 20 model.pte
 *
 * Build: cc -std=c99 generate.c $(pkg-config --cflags --libs etude) -lm */
#include <etude/etude.h>
#include <etude/host.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ENDS 16

typedef struct model {
  etude_runtime *runtime;
  etude_program *program;
  etude_method *method;
  int64_t window;          /* positions that the caches hold */
  int64_t bound;           /* most tokens of one call */
  int64_t position;        /* where the next token goes */
  int64_t ends[MOST_ENDS]; /* tokens that end a text */
  uint32_t end_count;
  uint32_t input_count; /* 2 where the program wants positions */
  bool each;            /* positions of all tokens, not of the first */
  int64_t *tokens;      /* of one call: `bound` */
  int64_t *positions;
  float *logits; /* of the last token */
  size_t vocabulary;
  int64_t *history; /* of a model without caches, which reads all of it again */
  bool caches;
} model;

typedef struct sampler {
  double temperature;
  uint64_t state; /* not 0 */
} sampler;

static void die(const char *what, const char *why) {
  (void)fprintf(stderr, "generate: %s: %s\n", what, why);
  exit(1);
}

static void check(etude_status status, const etude_error *error, const char *what) {
  if (status != ETUDE_OK) {
    die(what, error->message[0] != '\0' ? error->message : etude_status_name(status));
  }
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    die("memory", "there is none");
  }
  return memory;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Constant `index` of a method without inputs; false where there is none. */
static bool read_constant(const etude_program *program, const char *name, uint32_t index, int64_t *number) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_value_info info;
  uint32_t method;

  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  if (etude_program_find_method(program, name, &method, &error) != ETUDE_OK ||
      etude_program_output_info(program, method, index, &info, &error) != ETUDE_OK) {
    return false;
  }
  switch (info.tag) {
    case ETUDE_VALUE_INT: *number = info.constant.as.int_value; return true;
    case ETUDE_VALUE_BOOL: *number = info.constant.as.bool_value; return true;
    case ETUDE_VALUE_DOUBLE: *number = (int64_t)info.constant.as.double_value; return true;
    default: return false;
  }
}

static etude_value_info describe_input(const etude_program *program, uint32_t method, uint32_t index) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_value_info info;

  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  check(etude_program_input_info(program, method, index, &info, &error), &error, "forward");
  if (info.tag != ETUDE_VALUE_TENSOR || info.scalar_type != ETUDE_LONG || info.rank < 1 || info.rank > 2) {
    die("forward", "its inputs are not (tokens, position), int64: this is no decoder that is known here");
  }
  return info;
}

static void read_facts(model *m) {
  etude_error error = ETUDE_ERROR_INIT;
  uint32_t method;
  int64_t caches = 1;
  etude_method_info info;

  check(etude_program_find_method(m->program, "forward", &method, &error), &error, "forward");
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  check(etude_program_method_info(m->program, method, &info, &error), &error, "forward");
  m->input_count = info.input_count;
  if (m->input_count < 1 || m->input_count > 2) {
    die("forward", "one or two inputs are understood: tokens, and positions");
  }
  const etude_value_info tokens = describe_input(m->program, method, 0);
  m->bound = tokens.sizes[tokens.rank - 1];
  if (m->input_count == 2) {
    m->each = describe_input(m->program, method, 1).sizes[0] > 1;
  }
  m->window = m->bound;
  (void)(read_constant(m->program, "get_max_context_len", 0, &m->window) ||
         read_constant(m->program, "get_max_seq_len", 0, &m->window));
  (void)read_constant(m->program, "use_kv_cache", 0, &caches);
  m->caches = caches != 0 && m->input_count == 2;
  while (m->end_count < MOST_ENDS && (read_constant(m->program, "get_eos_ids", m->end_count, &m->ends[m->end_count]) ||
                                      read_constant(m->program, "get_eos_id", m->end_count, &m->ends[m->end_count]))) {
    m->end_count++;
  }
}

static void open_model(model *m, const char *path, uint32_t threads) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;

  memset(m, 0, sizeof *m);
  check(etude_host_runtime_create(threads, &m->runtime, &error), &error, "runtime");
  check(etude_data_from_file(path, ETUDE_FILE_MAP, &loader, &error), &error, path);
  check(etude_program_load(m->runtime, &loader, NULL, &m->program, &error), &error, path);
  read_facts(m);
  check(etude_method_load(m->program, "forward", NULL, &m->method, &error), &error, path);
  m->tokens = allocate((size_t)m->bound, sizeof *m->tokens);
  m->positions = allocate((size_t)m->bound, sizeof *m->positions);
  m->history = allocate((size_t)m->bound, sizeof *m->history);
}

static void close_model(model *m) {
  free(m->tokens);
  free(m->positions);
  free(m->history);
  free(m->logits);
  etude_method_free(m->method);
  etude_program_free(m->program);
  etude_host_runtime_free(m->runtime);
}

static void reset_model(model *m) {
  etude_error error = ETUDE_ERROR_INIT;
  check(etude_method_reset_state(m->method, UINT32_MAX, &error), &error, "reset");
  m->position = 0;
}

/* ---- tokens to logits -------------------------------------------------------------------------------------------- */

/* The last row of [1, V] or [1, S, V], as floats. */
static void keep_logits(model *m, const etude_tensor *out) {
  const size_t width = out->rank > 0 ? (size_t)out->sizes[out->rank - 1] : 0;
  const size_t first = width > 0 ? etude_tensor_numel(out) - width : 0;

  if (width == 0 || (out->scalar_type != ETUDE_FLOAT && out->scalar_type != ETUDE_BFLOAT16)) {
    die("forward", "it gives no logits, float or bfloat16");
  }
  if (m->logits == NULL) {
    m->logits = allocate(width, sizeof *m->logits);
    m->vocabulary = width;
  }
  if (out->scalar_type == ETUDE_FLOAT) {
    memcpy(m->logits, (const float *)out->data + first, width * sizeof *m->logits);
    return;
  }
  for (size_t i = 0; i < width; i++) {
    const uint32_t bits = (uint32_t)((const uint16_t *)out->data)[first + i] << 16;
    memcpy(&m->logits[i], &bits, sizeof bits);
  }
}

static void call(model *m, int64_t *tokens, int64_t count, int64_t start) {
  etude_error error = ETUDE_ERROR_INIT;
  int32_t token_sizes[2] = {1, (int32_t)count}, position_sizes[1] = {m->each ? (int32_t)count : 1};
  etude_tensor tensors[2];
  etude_value values[2];
  etude_value out;

  memset(tensors, 0, sizeof tensors);
  memset(values, 0, sizeof values);
  tensors[0].data = tokens;
  tensors[0].sizes = token_sizes;
  tensors[0].rank = 2;
  tensors[0].capacity = (size_t)count * sizeof *tokens;
  tensors[1].data = m->positions;
  tensors[1].sizes = position_sizes;
  tensors[1].rank = 1;
  tensors[1].capacity = (size_t)position_sizes[0] * sizeof *m->positions;
  for (int64_t i = 0; i < count; i++) {
    m->positions[i] = start + i;
  }
  for (uint32_t i = 0; i < m->input_count; i++) {
    tensors[i].scalar_type = ETUDE_LONG;
    values[i].tag = ETUDE_VALUE_TENSOR;
    values[i].as.tensor = &tensors[i];
  }
  check(etude_method_set_inputs(m->method, values, m->input_count, &error), &error, "forward");
  check(etude_method_execute(m->method, &error), &error, "forward");
  check(etude_method_get_output(m->method, 0, &out, &error), &error, "forward");
  if (out.tag != ETUDE_VALUE_TENSOR) {
    die("forward", "it gives no logits");
  }
  keep_logits(m, out.as.tensor);
}

/* Read tokens, as many a call as the program takes; `logits` are those of the last. */
static void feed(model *m, const int64_t *tokens, int64_t count) {
  if (!m->caches) {
    memcpy(m->history + m->position, tokens, (size_t)count * sizeof *tokens);
    m->position += count;
    call(m, m->history, m->position, 0);
    return;
  }
  while (count > 0) {
    const int64_t chunk = count < m->bound ? count : m->bound;
    memcpy(m->tokens, tokens, (size_t)chunk * sizeof *tokens);
    call(m, m->tokens, chunk, m->position);
    m->position += chunk;
    tokens += chunk;
    count -= chunk;
  }
}

/* ---- logits to tokens -------------------------------------------------------------------------------------------- */

static int64_t likeliest(const model *m) {
  size_t best = 0;
  for (size_t i = 1; i < m->vocabulary; i++) {
    best = m->logits[i] > m->logits[best] ? i : best;
  }
  return (int64_t)best;
}

/* Numbers in [0, 1), by xorshift64*. */
static double draw(sampler *s) {
  s->state ^= s->state >> 12;
  s->state ^= s->state << 25;
  s->state ^= s->state >> 27;
  return (double)((s->state * 0x2545F4914F6CDD1Du) >> 11) / 9007199254740992.0;
}

static int64_t choose(const model *m, sampler *s) {
  const int64_t best = likeliest(m);
  double sum = 0.0, left;

  if (s->temperature <= 0.0) {
    return best;
  }
  for (size_t i = 0; i < m->vocabulary; i++) {
    sum += exp((m->logits[i] - m->logits[best]) / s->temperature);
  }
  left = draw(s) * sum;
  for (size_t i = 0; i < m->vocabulary; i++) {
    left -= exp((m->logits[i] - m->logits[best]) / s->temperature);
    if (left < 0.0) {
      return (int64_t)i;
    }
  }
  return best;
}

static bool is_end(const model *m, int64_t token) {
  for (uint32_t i = 0; i < m->end_count; i++) {
    if (m->ends[i] == token) {
      return true;
    }
  }
  return false;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* The last token that is chosen is never read: the next turn begins in its place. */
static void take_turn(model *m, sampler *s, const int64_t *prompt, int64_t count, int64_t most) {
  /* without caches the last token must be read to be counted, and the program has its bound */
  const int64_t window = m->caches ? m->window : m->bound;
  int64_t token;

  if (count > window - m->position) {
    die("prompt", "it is longer than what is left of the model's window");
  }
  feed(m, prompt, count);
  for (int64_t i = 1;; i++) {
    token = choose(m, s);
    printf("%s%lld", i == 1 ? "" : " ", (long long)token);
    (void)fflush(stdout);
    if (is_end(m, token) || i == most || m->position == window) {
      break;
    }
    feed(m, &token, 1);
  }
  printf("\n");
}

/* Ids of a line; the number of them. */
static int64_t parse(const char *line, int64_t *ids, int64_t most) {
  int64_t count = 0;
  char *end;

  for (;;) {
    const long long id = strtoll(line, &end, 10);
    if (end == line) {
      if (line[strspn(line, " \t\r\n")] != '\0') {
        die("prompt", "token ids are numbers");
      }
      return count;
    }
    if (count == most) {
      die("prompt", "it is longer than the model's window");
    }
    ids[count++] = id;
    line = end;
  }
}

int main(int argc, char **argv) {
  static char line[1u << 20];
  long long most = INT64_MAX;
  unsigned long threads = 1;
  sampler s = {0.0, 1};
  model m;
  int i = 1;

  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    switch (argv[i][1]) {
      case 'n': most = strtoll(argv[i + 1], NULL, 10); break;
      case 'T': s.temperature = strtod(argv[i + 1], NULL); break;
      case 's': s.state = strtoull(argv[i + 1], NULL, 10) * 2 + 1; break;
      case 't': threads = strtoul(argv[i + 1], NULL, 10); break;
      default: die(argv[i], "no such option");
    }
  }
  if (i + 1 != argc || most < 1) {
    die("usage", "generate [-n MOST] [-T TEMPERATURE] [-s SEED] [-t THREADS] MODEL.pte");
  }
  open_model(&m, argv[i], (uint32_t)threads);
  int64_t *ids = allocate((size_t)m.window, sizeof *ids);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "reset", 5) == 0) {
      reset_model(&m);
      continue;
    }
    const int64_t count = parse(line, ids, m.window);
    if (count > 0) {
      take_turn(&m, &s, ids, count, most);
    }
  }
  free(ids);
  close_model(&m);
  return 0;
}
