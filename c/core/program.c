/* Opening a program: head of the file, header, root table, segments, names of methods; and the queries that need
   no plan. Layout of the file: pte-format chapter 1. */
#include "checked.h"
#include "deps.h"
#include "options.h"
#include "plan.h"
#include "segment.h"
#include "state.h"
#include "trace.h"

/* Slots of the root table. */
enum {
  SLOT_PLANS = 1,
  SLOT_CONSTANT_BUFFER = 2,
  SLOT_INLINE_PAYLOADS = 3,
  SLOT_SEGMENTS = 4,
  SLOT_CONSTANT_SEGMENT = 5,
  SLOT_MUTABLE_SEGMENTS = 6,
  SLOT_NAMED_DATA = 7
};

enum { SHORT_HEADER_SIZE = 24, HEADER_SIZE = 32 };

static const void *memory_map(void *self, uint64_t offset, size_t size) {
  (void)size;
  return (const uint8_t *)self + offset;
}

etude_data_loader etude_data_from_memory(const void *data, size_t size) {
  const etude_data_loader loader = {
      (uint32_t)sizeof loader, (void *)(uintptr_t)data, size, memory_map, NULL, NULL, {NULL}};
  return loader;
}

static etude_status check_identifier(const uint8_t *head, uint64_t size, etude_error *error) {
  if (size < 8) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the file is empty or cut short: it has %l bytes",
                           (int64_t)size);
  }
  if (memcmp(head + 4, "ET12", 4) == 0) return ETUDE_OK;
  if (memcmp(head + 4, "ET", 2) == 0) {
    const char version[3] = {(char)head[6], (char)head[7], 0};
    return etude_error_at(error, ETUDE_NOT_SUPPORTED, 4,
                          "a .pte of schema version %q, but this build reads '12': export it again with ExecuTorch 1.x",
                          version);
  }
  return etude_error_at(error, ETUDE_INVALID_ARGUMENT, 4, "not a .pte file, but %s: bytes 4 to 7 must be 'ET12'",
                        memcmp(head + 4, "FT", 2) == 0   ? "external data (.ptd)"
                        : memcmp(head + 4, "BP", 2) == 0 ? "a bundled program, of which only the program part runs"
                                                         : "something else");
}

/* The head of the file: how much of it is the flatbuffer, and where segments begin (0 = nowhere). */
static etude_status read_head(etude_program *program, uint64_t *out_base, etude_error *error) {
  const etude_data_loader *loader = &program->file.loader;
  uint8_t head[ETUDE_FILE_HEAD_SIZE];
  uint64_t size = loader->size;
  uint64_t end = 0;
  bool sound = true;
  *out_base = 0;
  ETUDE_TRY(etude_loader_head(&program->allocator, loader, head, error));
  if (ETUDE_CHECKS) ETUDE_TRY(check_identifier(head, loader->size, error));
  if (memcmp(head + 8, "eh00", 4) == 0 && loader->size >= 8 + SHORT_HEADER_SIZE) {
    const uint32_t length = (uint32_t)etude_head_u64(head, 12);
    size = etude_head_u64(head, 16);
    *out_base = etude_head_u64(head, 24);
    sound = length >= SHORT_HEADER_SIZE && (*out_base == 0 || *out_base >= size) &&
            etude_checked_add(*out_base, length >= HEADER_SIZE ? etude_head_u64(head, 32) : 0, &end);
  }
  if (ETUDE_CHECKS && (!sound || size < 8 || size > INT32_MAX)) {
    return etude_error_at(error, ETUDE_INVALID_PROGRAM, 8,
                          "the header is damaged: impossible length, program size or segment base");
  }
  if (end < size) end = size;
  if (ETUDE_CHECKS && end > loader->size) {
    return etude_error_at(error, ETUDE_INVALID_PROGRAM, loader->size,
                          "the file is cut short: it has %l bytes, its header says %l", (int64_t)loader->size,
                          (int64_t)end);
  }
  program->file.flatbuffer_size = (uint32_t)size;
  return ETUDE_OK;
}

/* Constants stand in a segment or, in older files, inside the flatbuffer. A list of one offset is a placeholder. */
static etude_status check_constants(etude_program *program, etude_fb *fb, etude_fb_table root, etude_error *error) {
  const etude_fb_table constants = etude_fb_child(fb, root, SLOT_CONSTANT_SEGMENT);
  const etude_fb_vector offsets = etude_fb_vector_of(fb, constants, 1, 8);
  const etude_fb_vector inline_constants = etude_fb_vector_of(fb, root, SLOT_CONSTANT_BUFFER, 4);
  const uint32_t count = etude_fb_count(fb, offsets);
  program->constant_segment = etude_fb_u32(fb, constants, 0);
  if (count == 0) program->constant_buffer = inline_constants;
  if (count <= 1) return ETUDE_OK;
  program->constant_offsets = offsets;
  if (!ETUDE_CHECKS ||
      (program->constant_segment < program->file.segment_count && etude_fb_count(fb, inline_constants) == 0))
    return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "constants are in segment %u of %u, or inline as well",
                         program->constant_segment, program->file.segment_count);
}

static etude_status read_methods(etude_program *program, etude_fb *fb, etude_fb_table root, etude_error *error) {
  const etude_fb_vector plans = etude_fb_vector_of(fb, root, SLOT_PLANS, 4);
  const uint32_t count = etude_fb_count(fb, plans);
  ETUDE_TRY(etude_fb_fault(fb, error));
  if (ETUDE_CHECKS && count == 0) return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the program has no methods");
  program->methods = etude_alloc_zeros(&program->allocator, (uint64_t)count * sizeof *program->methods, error);
  if (program->methods == NULL) return ETUDE_OUT_OF_MEMORY;
  program->method_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    program->methods[i].plan = etude_fb_element(fb, plans, i);
    program->methods[i].name = etude_fb_string(fb, program->methods[i].plan, 0);
    ETUDE_TRY(etude_fb_fault(fb, error));
    if (ETUDE_CHECKS && program->methods[i].name == NULL) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %u has no name", i);
    }
  }
  return ETUDE_OK;
}

static etude_status read_root(etude_program *program, uint64_t segment_base, etude_error *error) {
  etude_fb fb = etude_file_reader(&program->file);
  const etude_fb_table root = etude_fb_root(&fb);
  const etude_fb_vector segments = etude_fb_vector_of(&fb, root, SLOT_SEGMENTS, 4);
  program->mutable_segments = etude_fb_vector_of(&fb, root, SLOT_MUTABLE_SEGMENTS, 4);
  program->inline_payloads = etude_fb_vector_of(&fb, root, SLOT_INLINE_PAYLOADS, 4);
  program->file.named = etude_fb_vector_of(&fb, root, SLOT_NAMED_DATA, 4);
  ETUDE_TRY(etude_file_set_segments(&program->allocator, &program->file, &fb, segments, segment_base, error));
  ETUDE_TRY(etude_file_sort_keys(&program->allocator, &program->file, error));
  ETUDE_TRY(check_constants(program, &fb, root, error));
  program->segment_count = program->file.segment_count;
  return read_methods(program, &fb, root, error);
}

#ifndef ETUDE_NO_EXTERNAL_DATA
/* A key may stand in one external file only. */
static etude_status check_external_keys(const etude_program *program, uint32_t last, etude_error *error) {
  const etude_data_file *file = &program->externals[last];
  etude_fb fb = etude_file_reader(file);
  for (uint32_t i = 0; i < etude_fb_count(&fb, file->named); ++i) {
    const char *key = etude_fb_string(&fb, etude_fb_element(&fb, file->named, i), 0);
    for (uint32_t other = 0; key != NULL && other < last; ++other) {
      uint32_t segment;
      etude_fb_table layout;
      if (!etude_file_find_key(&program->externals[other], key, &segment, &layout)) continue;
      return etude_error_about(error, ETUDE_INVALID_ARGUMENT, key, "external data files %u and %u both have the key %q",
                               other, last, key);
    }
  }
  return ETUDE_OK;
}

static etude_status open_externals(etude_program *program, const etude_program_config *config, etude_error *error) {
  if (config->external_count == 0) return ETUDE_OK;
  const uint64_t size = (uint64_t)config->external_count * sizeof *program->externals;
  program->externals = etude_alloc_zeros(&program->allocator, size, error);
  if (program->externals == NULL) return ETUDE_OUT_OF_MEMORY;
  program->external_count = config->external_count;
  const size_t stride = config->external->struct_size != 0 ? config->external->struct_size : sizeof(etude_data_loader);
  for (uint32_t i = 0; i < config->external_count; ++i) {
    etude_data_file *file = &program->externals[i];
    etude_data_loader loader;
    etude_struct_read(&loader, sizeof loader, (const uint8_t *)config->external + i * stride);
    const etude_status status = etude_external_open(&program->allocator, &loader, file, error);
    if (status != ETUDE_OK) return etude_error_within(error, status, NULL, "external data file %u: ", i);
    file->first_segment = program->segment_count;
    program->segment_count += file->segment_count;
    ETUDE_TRY(check_external_keys(program, i, error));
  }
  return ETUDE_OK;
}
#else
static etude_status open_externals(const etude_program *program, const etude_program_config *config,
                                   etude_error *error) {
  (void)program;
  if (config->external_count == 0) return ETUDE_OK;
  return etude_error_set(error, ETUDE_NOT_SUPPORTED, "this build does without external data (.ptd)");
}
#endif

/* InternalConsistency: all plans, whose entries together are bounded by the file's size as those of one are. */
static etude_status check_plans(const etude_program *program, etude_error *error) {
  uint32_t work = 0;
  for (uint32_t i = 0; i < program->method_count; ++i) {
    etude_plan plan;
    etude_plan_counts counts;
    ETUDE_TRY(etude_plan_open(program, i, &plan, error));
    ETUDE_TRY(etude_plan_check(&plan, &counts));
    work += (counts.work + counts.dims) / 4; /* both below 2^31 */
    if (work > program->file.flatbuffer_size) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the plans have more entries than the file has bytes");
    }
  }
  return ETUDE_OK;
}

static void close_loader(const etude_data_loader *loader) {
  if (loader->close != NULL) loader->close(loader->self);
}

/* Free everything; `close` the loaders, too. Mapped memory goes with its loader, so each is closed after what it holds. */
static void dispose(etude_program *program, bool close) {
  const etude_allocator allocator = program->allocator;
  const etude_data_loader loader = program->file.loader;
  etude_option_rows_free(&allocator, program->options);
  while (program->shared != NULL) {
    etude_shared_buffer *buffer = program->shared;
    program->shared = buffer->next;
    etude_release(&allocator, buffer, buffer->size);
  }
#ifndef ETUDE_NO_EXTERNAL_DATA
  for (uint32_t i = program->external_count; i-- > 0;) {
    etude_file_clear(&allocator, &program->externals[i]);
    if (close) close_loader(&program->externals[i].loader);
  }
  etude_release(&allocator, program->externals, program->external_count * sizeof *program->externals);
#endif
  etude_release(&allocator, program->methods, program->method_count * sizeof *program->methods);
  etude_file_clear(&allocator, &program->file);
  etude_release(&allocator, program->copy, (size_t)loader.size);
  etude_release(&allocator, program, sizeof *program);
  if (close) close_loader(&loader);
}

/* Read all of the file, and from then on read from there. */
static etude_status copy_file(etude_program *program, etude_error *error) {
  const etude_data_loader *loader = &program->file.loader;
  const uint8_t *data;
  bool owned;
  if (loader->size == 0) return ETUDE_OK;
  ETUDE_TRY(etude_loader_bytes(&program->allocator, loader, 0, loader->size, &data, &owned, error));
  if (!owned) {
    uint8_t *copy = etude_alloc_block(&program->allocator, loader->size, error);
    if (copy == NULL) return ETUDE_OUT_OF_MEMORY;
    memcpy(copy, data, (size_t)loader->size);
    data = copy;
  }
  program->copy = (uint8_t *)(uintptr_t)data;
  program->file.loader = etude_data_from_memory(data, (size_t)loader->size);
  return ETUDE_OK;
}

static etude_status open_program(etude_program *program, const etude_program_config *config, etude_error *error) {
  uint64_t segment_base;
  etude_watch watch = {program->runtime, config->trace, config->trace_self, {0, 0}};
  etude_load_begin(&watch, false);
  if (config->copy) ETUDE_TRY(copy_file(program, error));
  ETUDE_TRY(read_head(program, &segment_base, error));
  ETUDE_TRY(etude_loader_bytes(&program->allocator, &program->file.loader, 0, program->file.flatbuffer_size,
                               &program->file.flatbuffer, &program->file.flatbuffer_owned, error));
  etude_load_tell(&watch, ETUDE_LOAD_READ, 0, NULL);
  ETUDE_TRY(read_root(program, segment_base, error));
  ETUDE_TRY(open_externals(program, config, error));
  if (ETUDE_CHECKS && config->verification != ETUDE_VERIFY_MINIMAL) ETUDE_TRY(check_plans(program, error));
  program->shared_mask = etude_program_find_shared(program);
  ETUDE_TRY(etude_option_rows_for_program(program, config, &program->options, error));
  etude_load_tell(&watch, ETUDE_LOAD_VERIFY, 0, NULL);
  return ETUDE_OK;
}

etude_status etude_program_load(etude_runtime *runtime, const etude_data_loader *loader,
                                const etude_program_config *config, etude_program **out_program, etude_error *error) {
  etude_program_config settings;
  etude_data_loader source;
  etude_struct_read(&settings, sizeof settings, config);
  etude_struct_read(&source, sizeof source, loader);
  if ((uint32_t)settings.verification > ETUDE_VERIFY_INTERNAL_CONSISTENCY) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "verification level %d: 0 and 1 exist",
                           settings.verification);
  }
  const etude_allocator allocator = settings.allocator != NULL ? *settings.allocator : runtime->allocator;
  etude_program *program = etude_alloc_zeros(&allocator, sizeof *program, error);
  if (program == NULL) return ETUDE_OUT_OF_MEMORY;
  program->runtime = runtime;
  program->allocator = allocator;
  program->file.loader = source;
  program->unused_options_warn = settings.unused_options_warn;
  const etude_status status = open_program(program, &settings, error);
  if (status != ETUDE_OK) {
    dispose(program, false);
    return status;
  }
  if (settings.copy) close_loader(&source);
  *out_program = program;
  return ETUDE_OK;
}

void etude_program_free(etude_program *program) {
  if (program != NULL) dispose(program, true);
}

uint32_t etude_program_method_count(const etude_program *program) { return program->method_count; }

const char *etude_program_method_name(const etude_program *program, uint32_t index) {
  return index < program->method_count ? program->methods[index].name : NULL;
}

etude_status etude_program_find_method(const etude_program *program, const char *name, uint32_t *out_index,
                                       etude_error *error) {
  for (uint32_t i = 0; i < program->method_count; ++i) {
    if (strcmp(program->methods[i].name, name) != 0) continue;
    *out_index = i;
    return ETUDE_OK;
  }
  etude_error_about(error, ETUDE_NOT_FOUND, name, "there is no method %q; the program has: ", name);
  for (uint32_t i = 0; i < program->method_count; ++i) {
    if (!etude_error_append(error, "%s%s", i > 0 ? ", " : "", program->methods[i].name)) break;
  }
  return ETUDE_NOT_FOUND;
}
