//! The C interface. Made by translate.py from include/etude; do not edit.

pub const etude_status = i32;
pub const ETUDE_OK: c_int = 0;
pub const ETUDE_INTERNAL: c_int = 1;
pub const ETUDE_INVALID_STATE: c_int = 2;
pub const ETUDE_END_OF_METHOD: c_int = 3;
pub const ETUDE_ALREADY_LOADED: c_int = 4;
pub const ETUDE_NOT_SUPPORTED: c_int = 16;
pub const ETUDE_NOT_IMPLEMENTED: c_int = 17;
pub const ETUDE_INVALID_ARGUMENT: c_int = 18;
pub const ETUDE_INVALID_TYPE: c_int = 19;
pub const ETUDE_OPERATOR_MISSING: c_int = 20;
pub const ETUDE_TOO_MANY_KERNELS: c_int = 21;
pub const ETUDE_ALREADY_REGISTERED: c_int = 22;
pub const ETUDE_NOT_FOUND: c_int = 32;
pub const ETUDE_OUT_OF_MEMORY: c_int = 33;
pub const ETUDE_ACCESS_FAILED: c_int = 34;
pub const ETUDE_INVALID_PROGRAM: c_int = 35;
pub const ETUDE_INVALID_EXTERNAL_DATA: c_int = 36;
pub const ETUDE_OUT_OF_RESOURCES: c_int = 37;
pub const ETUDE_DELEGATE_INCOMPATIBLE: c_int = 48;
pub const ETUDE_DELEGATE_OUT_OF_MEMORY: c_int = 49;
pub const ETUDE_DELEGATE_INVALID_HANDLE: c_int = 50;
pub const ETUDE_CANCELLED: c_int = 64;
pub const struct_etude_error = extern struct {
    struct_size: u32 = 0,
    status: etude_status = 0,
    offset: u64 = 0,
    subject: [64]u8 = zeroes([64]u8),
    message: [432]u8 = zeroes([432]u8),
};
pub const etude_error = struct_etude_error;
pub const struct_etude_bytes = extern struct {
    data: ?*const anyopaque = null,
    size: usize = 0,
};
pub const etude_bytes = struct_etude_bytes;
pub extern fn etude_status_name(status: etude_status) [*c]const u8;
pub extern fn etude_version() [*c]const u8;
pub extern fn etude_abi_version() u32;
pub extern fn etude_error_set(@"error": [*c]etude_error, status: etude_status, format: [*c]const u8, ...) etude_status;
pub extern fn etude_error_subject(@"error": [*c]etude_error, subject: [*c]const u8) void;
pub const ETUDE_LOG_DEBUG: c_int = 0;
pub const ETUDE_LOG_INFO: c_int = 1;
pub const ETUDE_LOG_WARNING: c_int = 2;
pub const ETUDE_LOG_ERROR: c_int = 3;
pub const etude_task = ?*const fn (arg: ?*anyopaque, index: usize, worker: usize) callconv(.c) void;
pub const struct_etude_hooks = extern struct {
    struct_size: u32 = 0,
    log_level: i32 = 0,
    self: ?*anyopaque = null,
    log: ?*const fn (self: ?*anyopaque, level: i32, message: [*c]const u8) callconv(.c) void = null,
    clock: ?*const fn (self: ?*anyopaque) callconv(.c) u64 = null,
    parallel_for: ?*const fn (self: ?*anyopaque, count: usize, task: etude_task, arg: ?*anyopaque) callconv(.c) void = null,
    worker_count: usize = 0,
    lock: ?*const fn (self: ?*anyopaque) callconv(.c) void = null,
    unlock: ?*const fn (self: ?*anyopaque) callconv(.c) void = null,
    map_file: ?*const fn (self: ?*anyopaque, path: [*c]const u8, out_bytes: [*c]etude_bytes, out_file: [*c]?*anyopaque, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    unmap_file: ?*const fn (self: ?*anyopaque, file: ?*anyopaque) callconv(.c) void = null,
    save_file: ?*const fn (self: ?*anyopaque, path: [*c]const u8, pieces: [*c]const etude_bytes, count: usize, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    reserved: [4]?*anyopaque = zeroes([4]?*anyopaque),
};
pub const etude_hooks = struct_etude_hooks;
pub const struct_etude_allocator = extern struct {
    self: ?*anyopaque = null,
    alloc: ?*const fn (self: ?*anyopaque, size: usize, alignment: usize) callconv(.c) ?*anyopaque = null,
    free: ?*const fn (self: ?*anyopaque, ptr: ?*anyopaque, size: usize) callconv(.c) void = null,
};
pub const etude_allocator = struct_etude_allocator;
pub const struct_etude_buffer = extern struct {
    data: ?*anyopaque = null,
    size: usize = 0,
};
pub const etude_buffer = struct_etude_buffer;
pub const struct_etude_arena = extern struct {
    base: [*c]u8 = null,
    size: usize = 0,
    used: usize = 0,
    peak: usize = 0,
    needed: usize = 0,
    last: usize = 0,
    reserved: [2]usize = zeroes([2]usize),
};
pub const etude_arena = struct_etude_arena;
pub extern fn etude_arena_init(arena: [*c]etude_arena, memory: ?*anyopaque, size: usize) void;
pub extern fn etude_arena_reset(arena: [*c]etude_arena) void;
pub extern fn etude_arena_allocator(arena: [*c]etude_arena) etude_allocator;
pub const ETUDE_OPTION_BOOL: c_int = 0;
pub const ETUDE_OPTION_INT: c_int = 1;
pub const ETUDE_OPTION_STRING: c_int = 2;
pub const union_etude_option_value = extern union {
    bool_value: bool,
    int_value: i64,
    string: [256]u8,
};
pub const etude_option_value = union_etude_option_value;
pub const struct_etude_option = extern struct {
    key: [64]u8 = zeroes([64]u8),
    type: i32 = 0,
    reserved: u32 = 0,
    value: etude_option_value = zeroes(etude_option_value),
};
pub const etude_option = struct_etude_option;
pub const struct_etude_options = extern struct {
    items: [*c]etude_option = null,
    count: u32 = 0,
    capacity: u32 = 0,
};
pub const etude_options = struct_etude_options;
pub const struct_etude_backend_options = extern struct {
    backend: [64]u8 = zeroes([64]u8),
    items: [*c]const etude_option = null,
    count: u32 = 0,
};
pub const etude_backend_options = struct_etude_backend_options;
pub extern fn etude_options_init(options: [*c]etude_options, items: [*c]etude_option, capacity: u32) void;
pub extern fn etude_options_add_bool(options: [*c]etude_options, key: [*c]const u8, value: bool, @"error": [*c]etude_error) etude_status;
pub extern fn etude_options_add_int(options: [*c]etude_options, key: [*c]const u8, value: i64, @"error": [*c]etude_error) etude_status;
pub extern fn etude_options_add_string(options: [*c]etude_options, key: [*c]const u8, value: [*c]const u8, @"error": [*c]etude_error) etude_status;
pub extern fn etude_backend_options_init(row: [*c]etude_backend_options, backend: [*c]const u8, options: [*c]const etude_options, @"error": [*c]etude_error) etude_status;
pub const ETUDE_SCOPE_PROCESS: c_int = 1;
pub const ETUDE_SCOPE_LOAD: c_int = 2;
pub const ETUDE_SCOPE_BOTH: c_int = 3;
pub const ETUDE_OPTION_READ_ONLY: c_int = 1;
pub const ETUDE_OPTION_EFFECT_NOW: c_int = 2;
pub const ETUDE_OPTION_ALLOW_EMPTY: c_int = 4;
pub const struct_etude_option_schema = extern struct {
    key: [*c]const u8 = null,
    help: [*c]const u8 = null,
    type: i32 = 0,
    scopes: u32 = 0,
    flags: u32 = 0,
    default_value: i64 = 0,
    default_string: [*c]const u8 = null,
    minimum: i64 = 0,
    maximum: i64 = 0,
    choices: [*c]const [*c]const u8 = null,
    more: ?*const anyopaque = null,
};
pub const etude_option_schema = struct_etude_option_schema;
pub const ETUDE_BYTE: c_int = 0;
pub const ETUDE_CHAR: c_int = 1;
pub const ETUDE_SHORT: c_int = 2;
pub const ETUDE_INT: c_int = 3;
pub const ETUDE_LONG: c_int = 4;
pub const ETUDE_HALF: c_int = 5;
pub const ETUDE_FLOAT: c_int = 6;
pub const ETUDE_DOUBLE: c_int = 7;
pub const ETUDE_COMPLEX_HALF: c_int = 8;
pub const ETUDE_COMPLEX_FLOAT: c_int = 9;
pub const ETUDE_COMPLEX_DOUBLE: c_int = 10;
pub const ETUDE_BOOL: c_int = 11;
pub const ETUDE_QINT8: c_int = 12;
pub const ETUDE_QUINT8: c_int = 13;
pub const ETUDE_QINT32: c_int = 14;
pub const ETUDE_BFLOAT16: c_int = 15;
pub const ETUDE_QUINT4X2: c_int = 16;
pub const ETUDE_QUINT2X4: c_int = 17;
pub const ETUDE_BITS1X8: c_int = 18;
pub const ETUDE_BITS2X4: c_int = 19;
pub const ETUDE_BITS4X2: c_int = 20;
pub const ETUDE_BITS8: c_int = 21;
pub const ETUDE_BITS16: c_int = 22;
pub const ETUDE_FLOAT8_E5M2: c_int = 23;
pub const ETUDE_FLOAT8_E4M3FN: c_int = 24;
pub const ETUDE_FLOAT8_E5M2FNUZ: c_int = 25;
pub const ETUDE_FLOAT8_E4M3FNUZ: c_int = 26;
pub const ETUDE_UINT16: c_int = 27;
pub const ETUDE_UINT32: c_int = 28;
pub const ETUDE_UINT64: c_int = 29;
pub const ETUDE_SCALAR_TYPE_COUNT: c_int = 30;
pub const ETUDE_TENSOR_DYNAMIC: c_int = 1;
pub const ETUDE_TENSOR_READONLY: c_int = 2;
pub const ETUDE_TENSOR_PLANNED: c_int = 4;
pub const ETUDE_TENSOR_CONSTANT: c_int = 8;
pub const ETUDE_TENSOR_STATE: c_int = 16;
pub const ETUDE_TENSOR_ALIAS: c_int = 32;
pub const ETUDE_TENSOR_EXTERNAL: c_int = 64;
pub const ETUDE_TENSOR_LATE: c_int = 128;
pub const struct_etude_tensor = extern struct {
    data: ?*anyopaque = null,
    sizes: [*c]i32 = null,
    strides: [*c]i32 = null,
    dim_order: [*c]const u8 = null,
    bounds: [*c]const i32 = null,
    capacity: usize = 0,
    scalar_type: i8 = 0,
    rank: u8 = 0,
    flags: u16 = 0,
    more: ?*const anyopaque = null,
};
pub const etude_tensor = struct_etude_tensor;
pub const ETUDE_VALUE_NONE: c_int = 0;
pub const ETUDE_VALUE_TENSOR: c_int = 1;
pub const ETUDE_VALUE_STRING: c_int = 2;
pub const ETUDE_VALUE_DOUBLE: c_int = 3;
pub const ETUDE_VALUE_INT: c_int = 4;
pub const ETUDE_VALUE_BOOL: c_int = 5;
pub const ETUDE_VALUE_BOOL_LIST: c_int = 6;
pub const ETUDE_VALUE_DOUBLE_LIST: c_int = 7;
pub const ETUDE_VALUE_INT_LIST: c_int = 8;
pub const ETUDE_VALUE_TENSOR_LIST: c_int = 9;
pub const ETUDE_VALUE_OPTIONAL_TENSOR_LIST: c_int = 11;
const union_unnamed_9 = extern union {
    int_value: i64,
    double_value: f64,
    bool_value: bool,
    string: [*c]const u8,
    tensor: [*c]etude_tensor,
    bools: [*c]const u8,
    doubles: [*c]const f64,
    items: [*c]const [*c]struct_etude_value,
};
pub const struct_etude_value = extern struct {
    tag: i32 = 0,
    count: u32 = 0,
    as: union_unnamed_9 = zeroes(union_unnamed_9),
};
pub const etude_value = struct_etude_value;
pub extern fn etude_scalar_size(scalar_type: i32) usize;
pub extern fn etude_scalar_name(scalar_type: i32) [*c]const u8;
pub extern fn etude_tensor_numel(tensor: [*c]const etude_tensor) usize;
pub extern fn etude_tensor_nbytes(tensor: [*c]const etude_tensor) usize;
pub extern fn etude_strides_from_dim_order(sizes: [*c]const i32, dim_order: [*c]const u8, rank: u32, out_strides: [*c]i32) bool;
pub extern fn etude_tensor_is_contiguous(tensor: [*c]const etude_tensor) bool;
pub extern fn etude_tensor_same_layout(a: [*c]const etude_tensor, b: [*c]const etude_tensor) bool;
pub extern fn etude_tensor_resize(tensor: [*c]etude_tensor, sizes: [*c]const i32, rank: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_value_kind_name(tag: i32) [*c]const u8;
pub const struct_etude_init_context = opaque {};
pub const etude_init_context = struct_etude_init_context;
pub const struct_etude_execute_context = opaque {};
pub const etude_execute_context = struct_etude_execute_context;
pub const struct_etude_compile_spec = extern struct {
    key: [*c]const u8 = null,
    value: etude_bytes = zeroes(etude_bytes),
};
pub const etude_compile_spec = struct_etude_compile_spec;
pub const struct_etude_delegate_needs = extern struct {
    bytes: u64 = 0,
    blocks: u64 = 0,
    shared: u64 = 0,
};
pub const etude_delegate_needs = struct_etude_delegate_needs;
pub const struct_etude_backend = extern struct {
    struct_size: u32 = 0,
    abi_version: u32 = 0,
    is_available: ?*const fn (self: ?*anyopaque) callconv(.c) bool = null,
    init: ?*const fn (self: ?*anyopaque, ctx: ?*etude_init_context, payload: etude_bytes, out_handle: [*c]?*anyopaque, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    execute: ?*const fn (self: ?*anyopaque, ctx: ?*etude_execute_context, handle: ?*anyopaque, args: [*c]const [*c]etude_value, arg_count: u32, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    destroy: ?*const fn (self: ?*anyopaque, handle: ?*anyopaque) callconv(.c) void = null,
    option_schema: ?*const fn (self: ?*anyopaque, out_count: [*c]u32) callconv(.c) [*c]const etude_option_schema = null,
    check_options: ?*const fn (self: ?*anyopaque, method_name: [*c]const u8, items: [*c]const etude_option, count: u32, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    set_option: ?*const fn (self: ?*anyopaque, items: [*c]const etude_option, count: u32, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    get_option: ?*const fn (self: ?*anyopaque, item: [*c]etude_option, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    release: ?*const fn (self: ?*anyopaque) callconv(.c) void = null,
    measure: ?*const fn (self: ?*anyopaque, ctx: ?*etude_init_context, payload: etude_bytes, out_needs: [*c]etude_delegate_needs, @"error": [*c]etude_error) callconv(.c) etude_status = null,
};
pub const etude_backend = struct_etude_backend;
pub extern fn etude_init_context_method_name(ctx: ?*const etude_init_context) [*c]const u8;
pub extern fn etude_init_context_allocator(ctx: ?*const etude_init_context) [*c]const etude_allocator;
pub extern fn etude_init_context_program(ctx: ?*const etude_init_context) ?*const anyopaque;
pub extern fn etude_init_context_spec_count(ctx: ?*const etude_init_context) u32;
pub extern fn etude_init_context_spec(ctx: ?*const etude_init_context, index: u32, out_spec: [*c]etude_compile_spec, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_find_spec(ctx: ?*const etude_init_context, key: [*c]const u8, out_spec: [*c]etude_compile_spec, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_named_data(ctx: ?*etude_init_context, key: [*c]const u8, out_data: [*c]etude_bytes, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_release(ctx: ?*etude_init_context) void;
pub extern fn etude_init_context_option_bool(ctx: ?*const etude_init_context, key: [*c]const u8, out_value: [*c]bool, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_option_int(ctx: ?*const etude_init_context, key: [*c]const u8, out_value: [*c]i64, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_option_string(ctx: ?*const etude_init_context, key: [*c]const u8, out_value: [*c][*c]const u8, @"error": [*c]etude_error) etude_status;
pub extern fn etude_init_context_hooks(ctx: ?*const etude_init_context) [*c]const etude_hooks;
pub extern fn etude_init_context_log(ctx: ?*const etude_init_context, level: i32, message: [*c]const u8) void;
pub extern fn etude_execute_context_method_name(ctx: ?*const etude_execute_context) [*c]const u8;
pub extern fn etude_execute_context_hooks(ctx: ?*const etude_execute_context) [*c]const etude_hooks;
pub extern fn etude_execute_context_scratch(ctx: ?*etude_execute_context, size: usize) ?*anyopaque;
pub extern fn etude_execute_context_resize(ctx: ?*etude_execute_context, out: [*c]etude_tensor, sizes: [*c]const i32, rank: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_execute_context_parallel_for(ctx: ?*etude_execute_context, count: usize, task: etude_task, arg: ?*anyopaque) void;
pub extern fn etude_execute_context_work(ctx: ?*etude_execute_context, amount: u64, @"error": [*c]etude_error) etude_status;
pub extern fn etude_execute_context_worker_count(ctx: ?*const etude_execute_context) usize;
pub extern fn etude_execute_context_option_bool(ctx: ?*const etude_execute_context, key: [*c]const u8, out_value: [*c]bool, @"error": [*c]etude_error) etude_status;
pub extern fn etude_execute_context_option_int(ctx: ?*const etude_execute_context, key: [*c]const u8, out_value: [*c]i64, @"error": [*c]etude_error) etude_status;
pub extern fn etude_execute_context_option_string(ctx: ?*const etude_execute_context, key: [*c]const u8, out_value: [*c]u8, size: usize, @"error": [*c]etude_error) etude_status;
pub const struct_etude_kernel_context = extern struct {
    self: ?*anyopaque = null,
};
pub const etude_kernel_context = struct_etude_kernel_context;
pub const etude_kernel_function = ?*const fn (ctx: [*c]etude_kernel_context, args: [*c]const [*c]etude_value, arg_count: u32) callconv(.c) etude_status;
pub const ETUDE_KERNEL_LINEAR: c_int = 1;
pub const ETUDE_KERNEL_ANY_ORDER: c_int = 2;
pub const ETUDE_KERNEL_ONE_ORDER: c_int = 4;
pub const struct_etude_kernel_traits = extern struct {
    struct_size: u32 = 0,
    flags: u32 = 0,
    dtypes: u32 = 0,
    updates: u32 = 0,
    scratch_need: ?*const fn (ctx: [*c]const etude_kernel_context, args: [*c]const [*c]etude_value, arg_count: u32) callconv(.c) usize = null,
    prepare: ?*const fn (ctx: [*c]etude_kernel_context, args: [*c]const [*c]etude_value, arg_count: u32) callconv(.c) void = null,
};
pub const etude_kernel_traits = struct_etude_kernel_traits;
pub const struct_etude_kernel = extern struct {
    name: [*c]const u8 = null,
    function: etude_kernel_function = null,
    traits: [*c]const etude_kernel_traits = null,
};
pub const etude_kernel = struct_etude_kernel;
pub extern fn etude_kernel_name(ctx: [*c]const etude_kernel_context) [*c]const u8;
pub extern fn etude_kernel_error(ctx: [*c]const etude_kernel_context) [*c]const etude_error;
pub extern fn etude_kernel_fail(ctx: [*c]etude_kernel_context, status: etude_status, format: [*c]const u8, ...) etude_status;
pub extern fn etude_kernel_resize(ctx: [*c]etude_kernel_context, out: [*c]etude_tensor, sizes: [*c]const i32, rank: u32) etude_status;
pub extern fn etude_kernel_scratch(ctx: [*c]etude_kernel_context, size: usize) ?*anyopaque;
pub extern fn etude_kernel_keep(ctx: [*c]etude_kernel_context, size: usize) ?*anyopaque;
pub extern fn etude_kernel_origin(ctx: [*c]const etude_kernel_context, tensor: [*c]const etude_tensor, out_args: [*c][*c]const [*c]etude_value, out_arg_count: [*c]u32) [*c]const u8;
pub extern fn etude_kernel_replace(ctx: [*c]etude_kernel_context, index: u32) void;
pub extern fn etude_kernel_kept(ctx: [*c]const etude_kernel_context) ?*const anyopaque;
pub const struct_etude_kernel_neighbour = extern struct {
    name: [*c]const u8 = null,
    args: [*c]const [*c]etude_value = null,
    arg_count: u32 = 0,
};
pub const etude_kernel_neighbour = struct_etude_kernel_neighbour;
pub extern fn etude_kernel_follower(ctx: [*c]const etude_kernel_context, index: u32, out: [*c]etude_kernel_neighbour) bool;
pub extern fn etude_kernel_take_followers(ctx: [*c]etude_kernel_context, count: u32) bool;
pub extern fn etude_kernel_maker(ctx: [*c]const etude_kernel_context, index: u32, out: [*c]etude_kernel_neighbour) bool;
pub extern fn etude_kernel_take_maker(ctx: [*c]etude_kernel_context, index: u32, argument: u32) bool;
pub extern fn etude_kernel_ask(ctx: [*c]const etude_kernel_context, args: [*c]const [*c]etude_value, arg_count: u32) usize;
pub extern fn etude_kernel_is_asked(ctx: [*c]const etude_kernel_context) bool;
pub extern fn etude_kernel_parallel_for(ctx: [*c]etude_kernel_context, count: usize, task: etude_task, arg: ?*anyopaque) void;
pub extern fn etude_kernel_work(ctx: [*c]etude_kernel_context, amount: u64) etude_status;
pub extern fn etude_kernel_worker_count(ctx: [*c]const etude_kernel_context) usize;
pub extern fn etude_kernel_random(ctx: [*c]etude_kernel_context, count: u64, out_seed: [*c]u64) u64;
pub const struct_etude_runtime = opaque {};
pub const etude_runtime = struct_etude_runtime;
pub extern fn etude_runtime_create(allocator: [*c]const etude_allocator, hooks: [*c]const etude_hooks, out_runtime: [*c]?*etude_runtime, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_free(runtime: ?*etude_runtime) void;
pub extern fn etude_runtime_allocator(runtime: ?*const etude_runtime) [*c]const etude_allocator;
pub extern fn etude_runtime_hooks(runtime: ?*const etude_runtime) [*c]const etude_hooks;
pub extern fn etude_runtime_add_kernels(runtime: ?*etude_runtime, kernels: [*c]const etude_kernel, count: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_add_kernels_with(runtime: ?*etude_runtime, kernels: [*c]const etude_kernel, count: u32, self: ?*anyopaque, release: ?*const fn (self: ?*anyopaque) callconv(.c) void, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_remove_kernels(runtime: ?*etude_runtime, kernels: [*c]const etude_kernel, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_kernel_users(runtime: ?*const etude_runtime, kernels: [*c]const etude_kernel) u32;
pub extern fn etude_runtime_kernel_count(runtime: ?*const etude_runtime) u32;
pub extern fn etude_runtime_kernel(runtime: ?*const etude_runtime, index: u32) [*c]const etude_kernel;
pub extern fn etude_runtime_find_kernel(runtime: ?*const etude_runtime, name: [*c]const u8) [*c]const etude_kernel;
pub extern fn etude_runtime_register_backend(runtime: ?*etude_runtime, name: [*c]const u8, backend: [*c]const etude_backend, self: ?*anyopaque, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_unregister_backend(runtime: ?*etude_runtime, name: [*c]const u8, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_backend_count(runtime: ?*const etude_runtime) u32;
pub extern fn etude_runtime_backend_name(runtime: ?*const etude_runtime, index: u32) [*c]const u8;
pub extern fn etude_runtime_backend_users(runtime: ?*const etude_runtime, name: [*c]const u8) u32;
pub extern fn etude_runtime_backend_available(runtime: ?*const etude_runtime, name: [*c]const u8) bool;
pub extern fn etude_runtime_option_schema(runtime: ?*const etude_runtime, backend: [*c]const u8, out_schema: [*c][*c]const etude_option_schema, out_count: [*c]u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_set_option(runtime: ?*etude_runtime, rows: [*c]const etude_backend_options, row_count: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_get_option(runtime: ?*etude_runtime, backend: [*c]const u8, inout_item: [*c]etude_option, @"error": [*c]etude_error) etude_status;
pub extern fn etude_runtime_option_is_set(runtime: ?*etude_runtime, backend: [*c]const u8, key: [*c]const u8, out_is_set: [*c]bool, @"error": [*c]etude_error) etude_status;
pub const ETUDE_ORIGIN_DEFAULT: c_int = 0;
pub const ETUDE_ORIGIN_PROCESS: c_int = 1;
pub const ETUDE_ORIGIN_PROGRAM: c_int = 2;
pub const ETUDE_ORIGIN_METHOD: c_int = 3;
pub const ETUDE_ORIGIN_COUNT: c_int = 4;
pub const struct_etude_option_explanation = extern struct {
    struct_size: u32 = 0,
    type: i32 = 0,
    winner: i32 = 0,
    is_set: u32 = 0,
    values: [4]etude_option_value = zeroes([4]etude_option_value),
};
pub const etude_option_explanation = struct_etude_option_explanation;
pub extern fn etude_runtime_reset_option(runtime: ?*etude_runtime, backend: [*c]const u8, key: [*c]const u8, @"error": [*c]etude_error) etude_status;
pub extern fn etude_portable_kernels(out_count: [*c]u32) [*c]const etude_kernel;
pub extern fn etude_register_builtin_backends(runtime: ?*etude_runtime, @"error": [*c]etude_error) etude_status;
pub const struct_etude_program = opaque {};
pub const etude_program = struct_etude_program;
pub const struct_etude_data_loader = extern struct {
    struct_size: u32 = 0,
    self: ?*anyopaque = null,
    size: u64 = 0,
    map: ?*const fn (self: ?*anyopaque, offset: u64, size: usize) callconv(.c) ?*const anyopaque = null,
    read: ?*const fn (self: ?*anyopaque, offset: u64, buffer: ?*anyopaque, size: usize, @"error": [*c]etude_error) callconv(.c) etude_status = null,
    close: ?*const fn (self: ?*anyopaque) callconv(.c) void = null,
    reserved: [3]?*anyopaque = zeroes([3]?*anyopaque),
};
pub const etude_data_loader = struct_etude_data_loader;
pub extern fn etude_data_from_memory(data: ?*const anyopaque, size: usize) etude_data_loader;
pub const ETUDE_VERIFY_MINIMAL: c_int = 0;
pub const ETUDE_VERIFY_INTERNAL_CONSISTENCY: c_int = 1;
pub const struct_etude_method = opaque {};
pub const etude_method = struct_etude_method;
pub const struct_etude_event = extern struct {
    struct_size: u32 = 0,
    moment: i32 = 0,
    method: ?*const etude_method = null,
    instruction: u32 = 0,
    kind: i32 = 0,
    depth: u32 = 0,
    node: u32 = 0,
    name: [*c]const u8 = null,
    status: etude_status = 0,
    argument_count: u32 = 0,
    arguments: [*c]const [*c]const etude_value = null,
    time: u64 = 0,
    duration: u64 = 0,
    run: u64 = 0,
    flops: u64 = 0,
};
pub const etude_event = struct_etude_event;
pub const etude_trace = ?*const fn (self: ?*anyopaque, event: [*c]const etude_event, @"error": [*c]etude_error) callconv(.c) etude_status;
pub const struct_etude_program_config = extern struct {
    struct_size: u32 = 0,
    verification: i32 = 0,
    allocator: [*c]const etude_allocator = null,
    external: [*c]const etude_data_loader = null,
    external_count: u32 = 0,
    backend_options_count: u32 = 0,
    backend_options: [*c]const etude_backend_options = null,
    unused_options_warn: bool = false,
    copy: bool = false,
    trace: etude_trace = null,
    trace_self: ?*anyopaque = null,
};
pub const etude_program_config = struct_etude_program_config;
pub extern fn etude_program_load(runtime: ?*etude_runtime, loader: [*c]const etude_data_loader, config: [*c]const etude_program_config, out_program: [*c]?*etude_program, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_free(program: ?*etude_program) void;
pub extern fn etude_program_method_count(program: ?*const etude_program) u32;
pub extern fn etude_program_method_name(program: ?*const etude_program, index: u32) [*c]const u8;
pub extern fn etude_program_find_method(program: ?*const etude_program, name: [*c]const u8, out_index: [*c]u32, @"error": [*c]etude_error) etude_status;
pub const struct_etude_method_info = extern struct {
    struct_size: u32 = 0,
    input_count: u32 = 0,
    output_count: u32 = 0,
    value_count: u32 = 0,
    instruction_count: u32 = 0,
    operator_count: u32 = 0,
    delegate_count: u32 = 0,
    buffer_count: u32 = 0,
    attribute_count: u32 = 0,
};
pub const etude_method_info = struct_etude_method_info;
pub extern fn etude_program_method_info(program: ?*const etude_program, method: u32, out_info: [*c]etude_method_info, @"error": [*c]etude_error) etude_status;
pub const struct_etude_value_info = extern struct {
    struct_size: u32 = 0,
    tag: i32 = 0,
    scalar_type: i32 = 0,
    rank: u32 = 0,
    flags: u32 = 0,
    buffer: u32 = 0,
    buffer_offset: u64 = 0,
    nbytes: u64 = 0,
    name: [*c]const u8 = null,
    sizes: [16]i32 = zeroes([16]i32),
    dim_order: [16]u8 = zeroes([16]u8),
    constant: etude_value = zeroes(etude_value),
    item_count: u32 = 0,
    external_file: u32 = 0,
    external_status: etude_status = 0,
    value: u32 = 0,
};
pub const etude_value_info = struct_etude_value_info;
pub extern fn etude_program_input_info(program: ?*const etude_program, method: u32, index: u32, out_info: [*c]etude_value_info, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_output_info(program: ?*const etude_program, method: u32, index: u32, out_info: [*c]etude_value_info, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_attribute_info(program: ?*const etude_program, method: u32, index: u32, out_info: [*c]etude_value_info, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_value_info(program: ?*const etude_program, method: u32, value: u32, out_info: [*c]etude_value_info, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_list_item(program: ?*const etude_program, method: u32, value: u32, item: u32, out_value: [*c]u32, @"error": [*c]etude_error) etude_status;
pub const ETUDE_KERNEL_CALL: c_int = 1;
pub const ETUDE_DELEGATE_CALL: c_int = 2;
pub const ETUDE_MOVE_CALL: c_int = 3;
pub const ETUDE_JUMP_FALSE: c_int = 4;
pub const ETUDE_FREE_CALL: c_int = 5;
pub const struct_etude_instruction_info = extern struct {
    struct_size: u32 = 0,
    kind: i32 = 0,
    index: u32 = 0,
    argument_count: u32 = 0,
    arguments: [*c]const u32 = null,
    operands: [2]u32 = zeroes([2]u32),
};
pub const etude_instruction_info = struct_etude_instruction_info;
pub extern fn etude_program_instructions(program: ?*const etude_program, method: u32, first: u32, out_infos: [*c]etude_instruction_info, count: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_operator_name(program: ?*const etude_program, method: u32, index: u32, out_name: [*c]u8, size: usize, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_delegate_backend(program: ?*const etude_program, method: u32, index: u32, out_name: [*c][*c]const u8, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_buffer_size(program: ?*const etude_program, method: u32, index: u32, out_size: [*c]u64, @"error": [*c]etude_error) etude_status;
pub const struct_etude_segment_info = extern struct {
    struct_size: u32 = 0,
    kind: i32 = 0,
    offset: u64 = 0,
    size: u64 = 0,
};
pub const etude_segment_info = struct_etude_segment_info;
pub const ETUDE_SEGMENT_UNUSED: c_int = 0;
pub const ETUDE_SEGMENT_CONSTANT: c_int = 1;
pub const ETUDE_SEGMENT_MUTABLE: c_int = 2;
pub const ETUDE_SEGMENT_DELEGATE: c_int = 3;
pub const ETUDE_SEGMENT_NAMED: c_int = 4;
pub extern fn etude_program_segment_count(program: ?*const etude_program) u32;
pub extern fn etude_program_segment_info(program: ?*const etude_program, index: u32, out_info: [*c]etude_segment_info, @"error": [*c]etude_error) etude_status;
pub const struct_etude_memory_info = extern struct {
    struct_size: u32 = 0,
    buffer_count: u32 = 0,
    structures: u64 = 0,
    planned: u64 = 0,
    shared: u64 = 0,
    unplanned: u64 = 0,
    loaded: u64 = 0,
    scratch: u64 = 0,
    delegates: u64 = 0,
    total: u64 = 0,
    peak: u64 = 0,
    constants: u64 = 0,
};
pub const etude_memory_info = struct_etude_memory_info;
pub extern fn etude_program_method_memory(program: ?*const etude_program, method: u32, out_info: [*c]etude_memory_info, @"error": [*c]etude_error) etude_status;
pub extern fn etude_program_missing_operator(program: ?*const etude_program, method: u32, index: u32, out_text: [*c]u8, size: usize, @"error": [*c]etude_error) etude_status;
pub const struct_etude_method_config = extern struct {
    struct_size: u32 = 0,
    allocator: [*c]const etude_allocator = null,
    planned: [*c]const etude_buffer = null,
    planned_count: u32 = 0,
    backend_options_count: u32 = 0,
    backend_options: [*c]const etude_backend_options = null,
    scratch: etude_buffer = zeroes(etude_buffer),
    instruction_limit: u64 = 0,
    memory_limit: u64 = 0,
    unused_options_warn: bool = false,
    constant_limit: u64 = 0,
    work_limit: u64 = 0,
    trace: etude_trace = null,
    trace_self: ?*anyopaque = null,
};
pub const etude_method_config = struct_etude_method_config;
pub extern fn etude_method_load(program: ?*etude_program, name: [*c]const u8, config: [*c]const etude_method_config, out_method: [*c]?*etude_method, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_free(method: ?*etude_method) void;
pub extern fn etude_method_name(method: ?*const etude_method) [*c]const u8;
pub extern fn etude_method_input_count(method: ?*const etude_method) u32;
pub extern fn etude_method_output_count(method: ?*const etude_method) u32;
pub extern fn etude_method_set_input(method: ?*etude_method, index: u32, value: [*c]const etude_value, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_set_inputs(method: ?*etude_method, values: [*c]const etude_value, count: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_get_input(method: ?*etude_method, index: u32, out_value: [*c]etude_value, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_set_output(method: ?*etude_method, index: u32, data: ?*anyopaque, size: usize, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_execute(method: ?*etude_method, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_cancel(method: ?*etude_method) void;
pub extern fn etude_method_set_interrupt(method: ?*etude_method, interrupted: ?*const fn (self: ?*anyopaque) callconv(.c) bool, self: ?*anyopaque) void;
pub extern fn etude_method_step(method: ?*etude_method, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_reset(method: ?*etude_method) void;
pub extern fn etude_method_position(method: ?*const etude_method) u32;
pub extern fn etude_method_get_output(method: ?*const etude_method, index: u32, out_value: [*c]etude_value, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_state_count(method: ?*const etude_method) u32;
pub extern fn etude_method_state(method: ?*const etude_method, index: u32, out_name: [*c][*c]const u8, out_tensor: [*c]etude_tensor, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_find_state(method: ?*const etude_method, name: [*c]const u8, out_index: [*c]u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_read_state(method: ?*const etude_method, index: u32, data: ?*anyopaque, size: usize, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_write_state(method: ?*etude_method, index: u32, data: ?*const anyopaque, size: usize, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_reset_state(method: ?*etude_method, index: u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_method_set_seed(method: ?*etude_method, seed: u64) void;
pub extern fn etude_method_memory(method: ?*const etude_method, out_info: [*c]etude_memory_info) etude_status;
pub extern fn etude_method_explain_option(method: ?*const etude_method, backend: [*c]const u8, key: [*c]const u8, out_explanation: [*c]etude_option_explanation, @"error": [*c]etude_error) etude_status;
pub const ETUDE_EVENT_BEFORE: c_int = 0;
pub const ETUDE_EVENT_AFTER: c_int = 1;
pub const ETUDE_LOAD_READ: c_int = 64;
pub const ETUDE_LOAD_VERIFY: c_int = 65;
pub const ETUDE_LOAD_BUILD: c_int = 66;
pub const ETUDE_LOAD_FOLD: c_int = 67;
pub const ETUDE_LOAD_INIT: c_int = 68;
pub const ETUDE_LOAD_SEGMENT: c_int = 80;
pub const ETUDE_LOAD_PACK: c_int = 81;
pub extern fn etude_method_set_trace(method: ?*etude_method, trace: etude_trace, self: ?*anyopaque) void;
pub extern fn etude_method_set_trace_after(method: ?*etude_method, trace: etude_trace, self: ?*anyopaque) void;
pub extern fn etude_method_program(method: ?*const etude_method) ?*const etude_program;
pub extern fn etude_method_index(method: ?*const etude_method) u32;
pub extern fn etude_execute_context_is_traced(ctx: ?*const etude_execute_context) bool;
pub extern fn etude_execute_context_trace(ctx: ?*etude_execute_context, moment: i32, node: u32, name: [*c]const u8, arguments: [*c]const [*c]const etude_value, argument_count: u32, status: etude_status, @"error": [*c]etude_error) etude_status;
pub extern fn etude_execute_context_flops(ctx: ?*etude_execute_context, flops: u64) void;
pub extern fn etude_init_context_trace(ctx: ?*etude_init_context, moment: i32, kind: i32, index: u32, name: [*c]const u8) void;
pub const struct_etude_profile_row = extern struct {
    name: [*c]const u8 = null,
    instruction: u32 = 0,
    node: u32 = 0,
    depth: u32 = 0,
    kind: i32 = 0,
    calls: u64 = 0,
    total: u64 = 0,
    least: u64 = 0,
    most: u64 = 0,
    bytes: u64 = 0,
    flops: u64 = 0,
    reserved: u64 = 0,
};
pub const etude_profile_row = struct_etude_profile_row;
pub const struct_etude_profile_event = extern struct {
    row: u32 = 0,
    run: u32 = 0,
    start: u64 = 0,
    duration: u64 = 0,
};
pub const etude_profile_event = struct_etude_profile_event;
pub const struct_etude_profile = extern struct {
    rows: [*c]etude_profile_row = null,
    row_capacity: usize = 0,
    row_count: usize = 0,
    events: [*c]etude_profile_event = null,
    event_capacity: usize = 0,
    event_count: usize = 0,
    rows_missed: u64 = 0,
    events_missed: u64 = 0,
    runs: u32 = 0,
    first: u64 = 0,
    last: u64 = 0,
    next: usize = 0,
    known: u32 = 0,
    run: u64 = 0,
    reserved: [3]u64 = zeroes([3]u64),
};
pub const etude_profile = struct_etude_profile;
pub extern fn etude_profile_start(profile: [*c]etude_profile, rows: [*c]etude_profile_row, row_capacity: usize, events: [*c]etude_profile_event, event_capacity: usize) void;
pub extern fn etude_profile_trace(self: ?*anyopaque, event: [*c]const etude_event, @"error": [*c]etude_error) etude_status;
pub extern fn etude_malloc_allocator() etude_allocator;
pub const ETUDE_FILE_MAP: c_int = 0;
pub const ETUDE_FILE_READ: c_int = 1;
pub extern fn etude_data_from_file(path: [*c]const u8, mode: i32, out_loader: [*c]etude_data_loader, @"error": [*c]etude_error) etude_status;
pub extern fn etude_host_core_count() u32;
pub extern fn etude_host_hooks_create(threads: u32, out_hooks: [*c]etude_hooks, @"error": [*c]etude_error) etude_status;
pub extern fn etude_host_hooks_free(hooks: [*c]etude_hooks) void;
pub const struct_etude_plugin_library = opaque {};
pub const etude_plugin_library = struct_etude_plugin_library;
pub extern fn etude_plugin_load(runtime: ?*etude_runtime, path: [*c]const u8, out_library: [*c]?*etude_plugin_library, @"error": [*c]etude_error) etude_status;
pub extern fn etude_plugin_backend(library: ?*const etude_plugin_library, index: u32) [*c]const u8;
pub extern fn etude_plugin_operator(library: ?*const etude_plugin_library, index: u32) [*c]const u8;
pub extern fn etude_plugin_unload(library: ?*etude_plugin_library, @"error": [*c]etude_error) etude_status;
pub extern fn etude_check_backend(runtime: ?*etude_runtime, backend: [*c]const u8, report: ?*const fn (arg: ?*anyopaque, passed: bool, what: [*c]const u8) callconv(.c) void, arg: ?*anyopaque, out_failed: [*c]u32, @"error": [*c]etude_error) etude_status;
pub extern fn etude_host_runtime_create(threads: u32, out_runtime: [*c]?*etude_runtime, @"error": [*c]etude_error) etude_status;
pub extern fn etude_host_runtime_free(runtime: ?*etude_runtime) void;
pub const ETUDE_VERSION_MAJOR = @as(c_int, 0);
pub const ETUDE_VERSION_MINOR = @as(c_int, 1);
pub const ETUDE_VERSION_PATCH = @as(c_int, 0);
pub const ETUDE_ABI_VERSION = @as(c_int, 2);
pub const ETUDE_NO_OFFSET = ~@as(u64, 0);
pub const ETUDE_MEMORY_ALIGNMENT = @as(c_int, 64);
pub const ETUDE_OPTION_KEY_SIZE = @as(c_int, 64);
pub const ETUDE_OPTION_STRING_SIZE = @as(c_int, 256);
pub const ETUDE_BACKEND_NAME_SIZE = @as(c_int, 64);
pub const ETUDE_MAX_RANK = @as(c_int, 16);

const zeroes = @import("std").mem.zeroes;
