/* See trace.h here and in include/etude. */
#include "trace.h"

const char *etude_instruction_name(const etude_method *method, const etude_instruction *instruction) {
  if (instruction->kind == ETUDE_DELEGATE_CALL) return method->delegates[instruction->index].backend->name;
  return instruction->kind == ETUDE_KERNEL_CALL ? method->operators[instruction->index].kernel->name : NULL;
}

#ifdef ETUDE_NO_TRACE
bool etude_execute_context_is_traced(const etude_execute_context *ctx) {
  (void)ctx;
  return false;
}

etude_status etude_execute_context_trace(etude_execute_context *ctx, int32_t moment, uint32_t node, const char *name,
                                         const etude_value *const *arguments, uint32_t argument_count,
                                         etude_status status, etude_error *error) {
  (void)ctx, (void)moment, (void)node, (void)name, (void)arguments, (void)argument_count, (void)status, (void)error;
  return ETUDE_OK;
}

void etude_init_context_trace(etude_init_context *ctx, int32_t moment, int32_t kind, uint32_t index, const char *name) {
  (void)ctx, (void)moment, (void)kind, (void)index, (void)name;
}
#else
/* ---- executing ---- */

static uint64_t now(const etude_runtime *runtime) {
  const etude_hooks *hooks = &runtime->hooks;
  return hooks->clock != NULL ? hooks->clock(hooks->self) : 0;
}

/* Fill in what an event says of its instruction, and call the hook. */
static etude_status tell(etude_method *method, etude_event *event, uint32_t position, etude_error *error) {
  uint64_t *start = &method->trace_start[event->depth];
  if (event->moment == ETUDE_EVENT_BEFORE && method->trace_after) {
    *start = now(method->program->runtime);
    return ETUDE_OK;
  }
  event->struct_size = (uint32_t)sizeof *event;
  event->method = method;
  event->run = method->runs;
  event->instruction = position;
  event->kind = method->instructions[position].kind;
  event->time = now(method->program->runtime);
  event->duration = event->moment == ETUDE_EVENT_AFTER ? event->time - *start : 0;
  if (event->moment == ETUDE_EVENT_AFTER) {
    event->flops = method->trace_flops;
    method->trace_flops = 0;
  }
  const etude_status status = method->trace(method->trace_self, event, error);
  if (event->moment == ETUDE_EVENT_BEFORE) *start = now(method->program->runtime);
  return status;
}

etude_status etude_trace_instruction(etude_method *method, int32_t moment, uint32_t position, etude_status status,
                                     etude_error *error) {
  const etude_instruction *call = &method->instructions[position];
  etude_event event = {.moment = moment,
                       .name = etude_instruction_name(method, call),
                       .status = status,
                       .argument_count = call->arg_count,
                       .arguments = (const etude_value *const *)call->args};
  return tell(method, &event, position, error);
}

bool etude_execute_context_is_traced(const etude_execute_context *ctx) { return ETUDE_IS_TRACED(ctx->method); }

etude_status etude_execute_context_trace(etude_execute_context *ctx, int32_t moment, uint32_t node, const char *name,
                                         const etude_value *const *arguments, uint32_t argument_count,
                                         etude_status status, etude_error *error) {
  etude_event event = {.moment = moment,
                       .depth = 1,
                       .node = node,
                       .name = name,
                       .status = status,
                       .argument_count = argument_count,
                       .arguments = arguments};
  return ctx->method->trace != NULL ? tell(ctx->method, &event, ctx->method->position, error) : ETUDE_OK;
}

/* ---- loading ---- */

void etude_load_begin(etude_watch *watch, bool is_part) {
  if (watch != NULL && watch->trace != NULL) watch->start[is_part] = now(watch->runtime);
}

void etude_load_tell(etude_watch *watch, int32_t kind, uint32_t index, const char *name) {
  if (watch == NULL || watch->trace == NULL) return;
  const bool is_part = kind >= ETUDE_LOAD_SEGMENT;
  etude_event event = {.struct_size = (uint32_t)sizeof event,
                       .moment = ETUDE_EVENT_AFTER,
                       .instruction = index,
                       .kind = kind,
                       .depth = is_part,
                       .name = name,
                       .time = now(watch->runtime)};
  event.duration = event.time - watch->start[is_part];
  (void)watch->trace(watch->self, &event, NULL);
  etude_load_begin(watch, is_part);
}

void etude_init_context_trace(etude_init_context *ctx, int32_t moment, int32_t kind, uint32_t index, const char *name) {
  etude_watch *watch = ctx->method->loading;
  if (moment == ETUDE_EVENT_AFTER) {
    etude_load_tell(watch, kind, index, name);
  } else {
    etude_load_begin(watch, true);
  }
}
#endif

/* ---- whoever watches ---- */

void etude_execute_context_flops(etude_execute_context *ctx, uint64_t flops) { ctx->method->trace_flops = flops; }

void etude_method_set_trace(etude_method *method, etude_trace trace, void *self) {
  method->trace = trace;
  method->trace_self = self;
  method->trace_after = false;
}

void etude_method_set_trace_after(etude_method *method, etude_trace trace, void *self) {
  etude_method_set_trace(method, trace, self);
  method->trace_after = true;
}

const etude_program *etude_method_program(const etude_method *method) { return method->program; }

uint32_t etude_method_index(const etude_method *method) { return method->index; }
