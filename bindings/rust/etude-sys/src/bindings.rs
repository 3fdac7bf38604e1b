// Made by generate.py; do not edit.
pub const VERSION_MAJOR: u32 = 0;
pub const VERSION_MINOR: u32 = 1;
pub const VERSION_PATCH: u32 = 0;
pub const ABI_VERSION: u32 = 2;
pub const MEMORY_ALIGNMENT: usize = 64;
pub const MAX_RANK: usize = 16;
pub const OPTION_KEY_SIZE: usize = 64;
pub const OPTION_STRING_SIZE: usize = 256;
pub const BACKEND_NAME_SIZE: usize = 64;
pub type etude_status = i32;
pub const OK: etude_status = 0x0;
pub const INTERNAL: etude_status = 0x1;
pub const INVALID_STATE: etude_status = 0x2;
pub const END_OF_METHOD: etude_status = 0x3;
pub const ALREADY_LOADED: etude_status = 0x4;
pub const NOT_SUPPORTED: etude_status = 0x10;
pub const NOT_IMPLEMENTED: etude_status = 0x11;
pub const INVALID_ARGUMENT: etude_status = 0x12;
pub const INVALID_TYPE: etude_status = 0x13;
pub const OPERATOR_MISSING: etude_status = 0x14;
pub const TOO_MANY_KERNELS: etude_status = 0x15;
pub const ALREADY_REGISTERED: etude_status = 0x16;
pub const NOT_FOUND: etude_status = 0x20;
pub const OUT_OF_MEMORY: etude_status = 0x21;
pub const ACCESS_FAILED: etude_status = 0x22;
pub const INVALID_PROGRAM: etude_status = 0x23;
pub const INVALID_EXTERNAL_DATA: etude_status = 0x24;
pub const OUT_OF_RESOURCES: etude_status = 0x25;
pub const DELEGATE_INCOMPATIBLE: etude_status = 0x30;
pub const DELEGATE_OUT_OF_MEMORY: etude_status = 0x31;
pub const DELEGATE_INVALID_HANDLE: etude_status = 0x32;
pub const CANCELLED: etude_status = 0x40;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_error {
    pub struct_size: u32,
    pub status: etude_status,
    pub offset: u64,
    pub subject: [c_char; 64],
    pub message: [c_char; 432],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_bytes {
    pub data: *const c_void,
    pub size: usize,
}
pub const LOG_DEBUG: i32 = 0;
pub const LOG_INFO: i32 = 1;
pub const LOG_WARNING: i32 = 2;
pub const LOG_ERROR: i32 = 3;
pub type etude_task = Option<unsafe extern "C" fn(arg: *mut c_void, index: usize, worker: usize)>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_hooks {
    pub struct_size: u32,
    pub log_level: i32,
    pub this: *mut c_void,
    pub log: Option<unsafe extern "C" fn(this: *mut c_void, level: i32, message: *const c_char)>,
    pub clock: Option<unsafe extern "C" fn(this: *mut c_void) -> u64>,
    pub parallel_for: Option<unsafe extern "C" fn(this: *mut c_void, count: usize, task: etude_task, arg: *mut c_void)>,
    pub worker_count: usize,
    pub lock: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub unlock: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub map_file: Option<unsafe extern "C" fn(this: *mut c_void, path: *const c_char, out_bytes: *mut etude_bytes, out_file: *mut *mut c_void, error: *mut etude_error) -> etude_status>,
    pub unmap_file: Option<unsafe extern "C" fn(this: *mut c_void, file: *mut c_void)>,
    pub save_file: Option<unsafe extern "C" fn(this: *mut c_void, path: *const c_char, pieces: *const etude_bytes, count: usize, error: *mut etude_error) -> etude_status>,
    pub reserved: [*mut c_void; 4],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_allocator {
    pub this: *mut c_void,
    pub alloc: Option<unsafe extern "C" fn(this: *mut c_void, size: usize, alignment: usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(this: *mut c_void, ptr: *mut c_void, size: usize)>,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_buffer {
    pub data: *mut c_void,
    pub size: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_arena {
    pub base: *mut u8,
    pub size: usize,
    pub used: usize,
    pub peak: usize,
    pub needed: usize,
    pub last: usize,
    pub reserved: [usize; 2],
}
pub const BYTE: i32 = 0;
pub const CHAR: i32 = 1;
pub const SHORT: i32 = 2;
pub const INT: i32 = 3;
pub const LONG: i32 = 4;
pub const HALF: i32 = 5;
pub const FLOAT: i32 = 6;
pub const DOUBLE: i32 = 7;
pub const COMPLEX_HALF: i32 = 8;
pub const COMPLEX_FLOAT: i32 = 9;
pub const COMPLEX_DOUBLE: i32 = 10;
pub const BOOL: i32 = 11;
pub const QINT8: i32 = 12;
pub const QUINT8: i32 = 13;
pub const QINT32: i32 = 14;
pub const BFLOAT16: i32 = 15;
pub const QUINT4X2: i32 = 16;
pub const QUINT2X4: i32 = 17;
pub const BITS1X8: i32 = 18;
pub const BITS2X4: i32 = 19;
pub const BITS4X2: i32 = 20;
pub const BITS8: i32 = 21;
pub const BITS16: i32 = 22;
pub const FLOAT8_E5M2: i32 = 23;
pub const FLOAT8_E4M3FN: i32 = 24;
pub const FLOAT8_E5M2FNUZ: i32 = 25;
pub const FLOAT8_E4M3FNUZ: i32 = 26;
pub const UINT16: i32 = 27;
pub const UINT32: i32 = 28;
pub const UINT64: i32 = 29;
pub const SCALAR_TYPE_COUNT: i32 = 30;
pub const TENSOR_DYNAMIC: u16 = 1;
pub const TENSOR_READONLY: u16 = 2;
pub const TENSOR_PLANNED: u16 = 4;
pub const TENSOR_CONSTANT: u16 = 8;
pub const TENSOR_STATE: u16 = 16;
pub const TENSOR_ALIAS: u16 = 32;
pub const TENSOR_EXTERNAL: u16 = 64;
pub const TENSOR_LATE: u16 = 128;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_tensor {
    pub data: *mut c_void,
    pub sizes: *mut i32,
    pub strides: *mut i32,
    pub dim_order: *const u8,
    pub bounds: *const i32,
    pub capacity: usize,
    pub scalar_type: i8,
    pub rank: u8,
    pub flags: u16,
    pub more: *const c_void,
}
pub const VALUE_NONE: i32 = 0;
pub const VALUE_TENSOR: i32 = 1;
pub const VALUE_STRING: i32 = 2;
pub const VALUE_DOUBLE: i32 = 3;
pub const VALUE_INT: i32 = 4;
pub const VALUE_BOOL: i32 = 5;
pub const VALUE_BOOL_LIST: i32 = 6;
pub const VALUE_DOUBLE_LIST: i32 = 7;
pub const VALUE_INT_LIST: i32 = 8;
pub const VALUE_TENSOR_LIST: i32 = 9;
pub const VALUE_OPTIONAL_TENSOR_LIST: i32 = 11;
#[repr(C)]
#[derive(Clone, Copy)]
pub union etude_value_payload {
    pub int_value: i64,
    pub double_value: f64,
    pub bool_value: bool,
    pub string: *const c_char,
    pub tensor: *mut etude_tensor,
    pub bools: *const u8,
    pub doubles: *const f64,
    pub items: *const *mut etude_value,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_value {
    pub tag: i32,
    pub count: u32,
    pub payload: etude_value_payload,
}
pub const OPTION_BOOL: i32 = 0;
pub const OPTION_INT: i32 = 1;
pub const OPTION_STRING: i32 = 2;
#[repr(C)]
#[derive(Clone, Copy)]
pub union etude_option_value {
    pub bool_value: bool,
    pub int_value: i64,
    pub string: [c_char; 256],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_option {
    pub key: [c_char; 64],
    pub type_: i32,
    pub reserved: u32,
    pub value: etude_option_value,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_options {
    pub items: *mut etude_option,
    pub count: u32,
    pub capacity: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_backend_options {
    pub backend: [c_char; 64],
    pub items: *const etude_option,
    pub count: u32,
}
pub const SCOPE_PROCESS: u32 = 1;
pub const SCOPE_LOAD: u32 = 2;
pub const SCOPE_BOTH: u32 = 3;
pub const OPTION_READ_ONLY: u32 = 1;
pub const OPTION_EFFECT_NOW: u32 = 2;
pub const OPTION_ALLOW_EMPTY: u32 = 4;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_option_schema {
    pub key: *const c_char,
    pub help: *const c_char,
    pub type_: i32,
    pub scopes: u32,
    pub flags: u32,
    pub default_value: i64,
    pub default_string: *const c_char,
    pub minimum: i64,
    pub maximum: i64,
    pub choices: *const *const c_char,
    pub more: *const c_void,
}
#[repr(C)]
pub struct etude_init_context {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_execute_context {
    _opaque: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_compile_spec {
    pub key: *const c_char,
    pub value: etude_bytes,
}
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct etude_delegate_needs {
    pub bytes: u64,
    pub blocks: u64,
    pub shared: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_backend {
    pub struct_size: u32,
    pub abi_version: u32,
    pub is_available: Option<unsafe extern "C" fn(this: *mut c_void) -> bool>,
    pub init: Option<unsafe extern "C" fn(this: *mut c_void, ctx: *mut etude_init_context, payload: etude_bytes, out_handle: *mut *mut c_void, error: *mut etude_error) -> etude_status>,
    pub execute: Option<unsafe extern "C" fn(this: *mut c_void, ctx: *mut etude_execute_context, handle: *mut c_void, args: *const *mut etude_value, arg_count: u32, error: *mut etude_error) -> etude_status>,
    pub destroy: Option<unsafe extern "C" fn(this: *mut c_void, handle: *mut c_void)>,
    pub option_schema: Option<unsafe extern "C" fn(this: *mut c_void, out_count: *mut u32) -> *const etude_option_schema>,
    pub check_options: Option<unsafe extern "C" fn(this: *mut c_void, method_name: *const c_char, items: *const etude_option, count: u32, error: *mut etude_error) -> etude_status>,
    pub set_option: Option<unsafe extern "C" fn(this: *mut c_void, items: *const etude_option, count: u32, error: *mut etude_error) -> etude_status>,
    pub get_option: Option<unsafe extern "C" fn(this: *mut c_void, item: *mut etude_option, error: *mut etude_error) -> etude_status>,
    pub release: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub measure: Option<unsafe extern "C" fn(this: *mut c_void, ctx: *mut etude_init_context, payload: etude_bytes, out_needs: *mut etude_delegate_needs, error: *mut etude_error) -> etude_status>,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_kernel_context {
    pub this: *mut c_void,
}
pub type etude_kernel_function = Option<unsafe extern "C" fn(ctx: *mut etude_kernel_context, args: *const *mut etude_value, arg_count: u32) -> etude_status>;
pub const KERNEL_LINEAR: i32 = 1;
pub const KERNEL_ANY_ORDER: i32 = 2;
pub const KERNEL_ONE_ORDER: i32 = 4;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_kernel_traits {
    pub struct_size: u32,
    pub flags: u32,
    pub dtypes: u32,
    pub updates: u32,
    pub scratch_need: Option<unsafe extern "C" fn(ctx: *const etude_kernel_context, args: *const *mut etude_value, arg_count: u32) -> usize>,
    pub prepare: Option<unsafe extern "C" fn(ctx: *mut etude_kernel_context, args: *const *mut etude_value, arg_count: u32)>,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_kernel {
    pub name: *const c_char,
    pub function: etude_kernel_function,
    pub traits: *const etude_kernel_traits,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_kernel_neighbour {
    pub name: *const c_char,
    pub args: *const *mut etude_value,
    pub arg_count: u32,
}
#[repr(C)]
pub struct etude_runtime {
    _opaque: [u8; 0],
}
pub const ORIGIN_DEFAULT: i32 = 0;
pub const ORIGIN_PROCESS: i32 = 1;
pub const ORIGIN_PROGRAM: i32 = 2;
pub const ORIGIN_METHOD: i32 = 3;
pub const ORIGIN_COUNT: usize = 4;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_option_explanation {
    pub struct_size: u32,
    pub type_: i32,
    pub winner: i32,
    pub is_set: u32,
    pub values: [etude_option_value; 4],
}
#[repr(C)]
pub struct etude_program {
    _opaque: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_data_loader {
    pub struct_size: u32,
    pub this: *mut c_void,
    pub size: u64,
    pub map: Option<unsafe extern "C" fn(this: *mut c_void, offset: u64, size: usize) -> *const c_void>,
    pub read: Option<unsafe extern "C" fn(this: *mut c_void, offset: u64, buffer: *mut c_void, size: usize, error: *mut etude_error) -> etude_status>,
    pub close: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub reserved: [*mut c_void; 3],
}
pub const VERIFY_MINIMAL: i32 = 0;
pub const VERIFY_INTERNAL_CONSISTENCY: i32 = 1;
pub type etude_trace = Option<unsafe extern "C" fn(this: *mut c_void, event: *const etude_event, error: *mut etude_error) -> etude_status>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_program_config {
    pub struct_size: u32,
    pub verification: i32,
    pub allocator: *const etude_allocator,
    pub external: *const etude_data_loader,
    pub external_count: u32,
    pub backend_options_count: u32,
    pub backend_options: *const etude_backend_options,
    pub unused_options_warn: bool,
    pub copy: bool,
    pub trace: etude_trace,
    pub trace_self: *mut c_void,
}
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct etude_method_info {
    pub struct_size: u32,
    pub input_count: u32,
    pub output_count: u32,
    pub value_count: u32,
    pub instruction_count: u32,
    pub operator_count: u32,
    pub delegate_count: u32,
    pub buffer_count: u32,
    pub attribute_count: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_value_info {
    pub struct_size: u32,
    pub tag: i32,
    pub scalar_type: i32,
    pub rank: u32,
    pub flags: u32,
    pub buffer: u32,
    pub buffer_offset: u64,
    pub nbytes: u64,
    pub name: *const c_char,
    pub sizes: [i32; 16],
    pub dim_order: [u8; 16],
    pub constant: etude_value,
    pub item_count: u32,
    pub external_file: u32,
    pub external_status: etude_status,
    pub value: u32,
}
pub const KERNEL_CALL: i32 = 1;
pub const DELEGATE_CALL: i32 = 2;
pub const MOVE_CALL: i32 = 3;
pub const JUMP_FALSE: i32 = 4;
pub const FREE_CALL: i32 = 5;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_instruction_info {
    pub struct_size: u32,
    pub kind: i32,
    pub index: u32,
    pub argument_count: u32,
    pub arguments: *const u32,
    pub operands: [u32; 2],
}
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct etude_segment_info {
    pub struct_size: u32,
    pub kind: i32,
    pub offset: u64,
    pub size: u64,
}
pub const SEGMENT_UNUSED: i32 = 0;
pub const SEGMENT_CONSTANT: i32 = 1;
pub const SEGMENT_MUTABLE: i32 = 2;
pub const SEGMENT_DELEGATE: i32 = 3;
pub const SEGMENT_NAMED: i32 = 4;
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct etude_memory_info {
    pub struct_size: u32,
    pub buffer_count: u32,
    pub structures: u64,
    pub planned: u64,
    pub shared: u64,
    pub unplanned: u64,
    pub loaded: u64,
    pub scratch: u64,
    pub delegates: u64,
    pub total: u64,
    pub peak: u64,
    pub constants: u64,
}
#[repr(C)]
pub struct etude_method {
    _opaque: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_method_config {
    pub struct_size: u32,
    pub allocator: *const etude_allocator,
    pub planned: *const etude_buffer,
    pub planned_count: u32,
    pub backend_options_count: u32,
    pub backend_options: *const etude_backend_options,
    pub scratch: etude_buffer,
    pub instruction_limit: u64,
    pub memory_limit: u64,
    pub unused_options_warn: bool,
    pub constant_limit: u64,
    pub work_limit: u64,
    pub trace: etude_trace,
    pub trace_self: *mut c_void,
}
pub const EVENT_BEFORE: i32 = 0;
pub const EVENT_AFTER: i32 = 1;
pub const LOAD_READ: i32 = 64;
pub const LOAD_VERIFY: i32 = 65;
pub const LOAD_BUILD: i32 = 66;
pub const LOAD_FOLD: i32 = 67;
pub const LOAD_INIT: i32 = 68;
pub const LOAD_SEGMENT: i32 = 80;
pub const LOAD_PACK: i32 = 81;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_event {
    pub struct_size: u32,
    pub moment: i32,
    pub method: *const etude_method,
    pub instruction: u32,
    pub kind: i32,
    pub depth: u32,
    pub node: u32,
    pub name: *const c_char,
    pub status: etude_status,
    pub argument_count: u32,
    pub arguments: *const *const etude_value,
    pub time: u64,
    pub duration: u64,
    pub run: u64,
    pub flops: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_profile_row {
    pub name: *const c_char,
    pub instruction: u32,
    pub node: u32,
    pub depth: u32,
    pub kind: i32,
    pub calls: u64,
    pub total: u64,
    pub least: u64,
    pub most: u64,
    pub bytes: u64,
    pub flops: u64,
    pub reserved: u64,
}
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct etude_profile_event {
    pub row: u32,
    pub run: u32,
    pub start: u64,
    pub duration: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_profile {
    pub rows: *mut etude_profile_row,
    pub row_capacity: usize,
    pub row_count: usize,
    pub events: *mut etude_profile_event,
    pub event_capacity: usize,
    pub event_count: usize,
    pub rows_missed: u64,
    pub events_missed: u64,
    pub runs: u32,
    pub first: u64,
    pub last: u64,
    pub next: usize,
    pub known: u32,
    pub run: u64,
    pub reserved: [u64; 3],
}
pub const FILE_MAP: i32 = 0;
pub const FILE_READ: i32 = 1;
#[repr(C)]
pub struct etude_plugin_library {
    _opaque: [u8; 0],
}
pub const NO_OFFSET: u64 = u64::MAX;

extern "C" {
    pub fn etude_status_name(status: etude_status) -> *const c_char;
    pub fn etude_version() -> *const c_char;
    pub fn etude_abi_version() -> u32;
    pub fn etude_error_set(error: *mut etude_error, status: etude_status, format: *const c_char, ...) -> etude_status;
    pub fn etude_error_subject(error: *mut etude_error, subject: *const c_char);
    pub fn etude_arena_init(arena: *mut etude_arena, memory: *mut c_void, size: usize);
    pub fn etude_arena_reset(arena: *mut etude_arena);
    pub fn etude_arena_allocator(arena: *mut etude_arena) -> etude_allocator;
    pub fn etude_scalar_size(scalar_type: i32) -> usize;
    pub fn etude_scalar_name(scalar_type: i32) -> *const c_char;
    pub fn etude_tensor_numel(tensor: *const etude_tensor) -> usize;
    pub fn etude_tensor_nbytes(tensor: *const etude_tensor) -> usize;
    pub fn etude_strides_from_dim_order(sizes: *const i32, dim_order: *const u8, rank: u32, out_strides: *mut i32) -> bool;
    pub fn etude_tensor_is_contiguous(tensor: *const etude_tensor) -> bool;
    pub fn etude_tensor_same_layout(a: *const etude_tensor, b: *const etude_tensor) -> bool;
    pub fn etude_tensor_resize(tensor: *mut etude_tensor, sizes: *const i32, rank: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_value_kind_name(tag: i32) -> *const c_char;
    pub fn etude_options_init(options: *mut etude_options, items: *mut etude_option, capacity: u32);
    pub fn etude_options_add_bool(options: *mut etude_options, key: *const c_char, value: bool, error: *mut etude_error) -> etude_status;
    pub fn etude_options_add_int(options: *mut etude_options, key: *const c_char, value: i64, error: *mut etude_error) -> etude_status;
    pub fn etude_options_add_string(options: *mut etude_options, key: *const c_char, value: *const c_char, error: *mut etude_error) -> etude_status;
    pub fn etude_backend_options_init(row: *mut etude_backend_options, backend: *const c_char, options: *const etude_options, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_method_name(ctx: *const etude_init_context) -> *const c_char;
    pub fn etude_init_context_allocator(ctx: *const etude_init_context) -> *const etude_allocator;
    pub fn etude_init_context_program(ctx: *const etude_init_context) -> *const c_void;
    pub fn etude_init_context_spec_count(ctx: *const etude_init_context) -> u32;
    pub fn etude_init_context_spec(ctx: *const etude_init_context, index: u32, out_spec: *mut etude_compile_spec, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_find_spec(ctx: *const etude_init_context, key: *const c_char, out_spec: *mut etude_compile_spec, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_named_data(ctx: *mut etude_init_context, key: *const c_char, out_data: *mut etude_bytes, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_release(ctx: *mut etude_init_context);
    pub fn etude_init_context_option_bool(ctx: *const etude_init_context, key: *const c_char, out_value: *mut bool, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_option_int(ctx: *const etude_init_context, key: *const c_char, out_value: *mut i64, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_option_string(ctx: *const etude_init_context, key: *const c_char, out_value: *mut *const c_char, error: *mut etude_error) -> etude_status;
    pub fn etude_init_context_hooks(ctx: *const etude_init_context) -> *const etude_hooks;
    pub fn etude_init_context_log(ctx: *const etude_init_context, level: i32, message: *const c_char);
    pub fn etude_execute_context_method_name(ctx: *const etude_execute_context) -> *const c_char;
    pub fn etude_execute_context_hooks(ctx: *const etude_execute_context) -> *const etude_hooks;
    pub fn etude_execute_context_scratch(ctx: *mut etude_execute_context, size: usize) -> *mut c_void;
    pub fn etude_execute_context_resize(ctx: *mut etude_execute_context, out: *mut etude_tensor, sizes: *const i32, rank: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_execute_context_parallel_for(ctx: *mut etude_execute_context, count: usize, task: etude_task, arg: *mut c_void);
    pub fn etude_execute_context_work(ctx: *mut etude_execute_context, amount: u64, error: *mut etude_error) -> etude_status;
    pub fn etude_execute_context_worker_count(ctx: *const etude_execute_context) -> usize;
    pub fn etude_execute_context_option_bool(ctx: *const etude_execute_context, key: *const c_char, out_value: *mut bool, error: *mut etude_error) -> etude_status;
    pub fn etude_execute_context_option_int(ctx: *const etude_execute_context, key: *const c_char, out_value: *mut i64, error: *mut etude_error) -> etude_status;
    pub fn etude_execute_context_option_string(ctx: *const etude_execute_context, key: *const c_char, out_value: *mut c_char, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_kernel_name(ctx: *const etude_kernel_context) -> *const c_char;
    pub fn etude_kernel_error(ctx: *const etude_kernel_context) -> *const etude_error;
    pub fn etude_kernel_fail(ctx: *mut etude_kernel_context, status: etude_status, format: *const c_char, ...) -> etude_status;
    pub fn etude_kernel_resize(ctx: *mut etude_kernel_context, out: *mut etude_tensor, sizes: *const i32, rank: u32) -> etude_status;
    pub fn etude_kernel_scratch(ctx: *mut etude_kernel_context, size: usize) -> *mut c_void;
    pub fn etude_kernel_keep(ctx: *mut etude_kernel_context, size: usize) -> *mut c_void;
    pub fn etude_kernel_origin(ctx: *const etude_kernel_context, tensor: *const etude_tensor, out_args: *mut *const *mut etude_value, out_arg_count: *mut u32) -> *const c_char;
    pub fn etude_kernel_replace(ctx: *mut etude_kernel_context, index: u32);
    pub fn etude_kernel_kept(ctx: *const etude_kernel_context) -> *const c_void;
    pub fn etude_kernel_follower(ctx: *const etude_kernel_context, index: u32, out: *mut etude_kernel_neighbour) -> bool;
    pub fn etude_kernel_take_followers(ctx: *mut etude_kernel_context, count: u32) -> bool;
    pub fn etude_kernel_maker(ctx: *const etude_kernel_context, index: u32, out: *mut etude_kernel_neighbour) -> bool;
    pub fn etude_kernel_take_maker(ctx: *mut etude_kernel_context, index: u32, argument: u32) -> bool;
    pub fn etude_kernel_ask(ctx: *const etude_kernel_context, args: *const *mut etude_value, arg_count: u32) -> usize;
    pub fn etude_kernel_is_asked(ctx: *const etude_kernel_context) -> bool;
    pub fn etude_kernel_parallel_for(ctx: *mut etude_kernel_context, count: usize, task: etude_task, arg: *mut c_void);
    pub fn etude_kernel_work(ctx: *mut etude_kernel_context, amount: u64) -> etude_status;
    pub fn etude_kernel_worker_count(ctx: *const etude_kernel_context) -> usize;
    pub fn etude_kernel_random(ctx: *mut etude_kernel_context, count: u64, out_seed: *mut u64) -> u64;
    pub fn etude_runtime_create(allocator: *const etude_allocator, hooks: *const etude_hooks, out_runtime: *mut *mut etude_runtime, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_free(runtime: *mut etude_runtime);
    pub fn etude_runtime_allocator(runtime: *const etude_runtime) -> *const etude_allocator;
    pub fn etude_runtime_hooks(runtime: *const etude_runtime) -> *const etude_hooks;
    pub fn etude_runtime_add_kernels(runtime: *mut etude_runtime, kernels: *const etude_kernel, count: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_add_kernels_with(runtime: *mut etude_runtime, kernels: *const etude_kernel, count: u32, this: *mut c_void, release: Option<unsafe extern "C" fn(this: *mut c_void)>, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_remove_kernels(runtime: *mut etude_runtime, kernels: *const etude_kernel, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_kernel_users(runtime: *const etude_runtime, kernels: *const etude_kernel) -> u32;
    pub fn etude_runtime_kernel_count(runtime: *const etude_runtime) -> u32;
    pub fn etude_runtime_kernel(runtime: *const etude_runtime, index: u32) -> *const etude_kernel;
    pub fn etude_runtime_find_kernel(runtime: *const etude_runtime, name: *const c_char) -> *const etude_kernel;
    pub fn etude_runtime_register_backend(runtime: *mut etude_runtime, name: *const c_char, backend: *const etude_backend, this: *mut c_void, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_unregister_backend(runtime: *mut etude_runtime, name: *const c_char, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_backend_count(runtime: *const etude_runtime) -> u32;
    pub fn etude_runtime_backend_name(runtime: *const etude_runtime, index: u32) -> *const c_char;
    pub fn etude_runtime_backend_users(runtime: *const etude_runtime, name: *const c_char) -> u32;
    pub fn etude_runtime_backend_available(runtime: *const etude_runtime, name: *const c_char) -> bool;
    pub fn etude_runtime_option_schema(runtime: *const etude_runtime, backend: *const c_char, out_schema: *mut *const etude_option_schema, out_count: *mut u32, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_set_option(runtime: *mut etude_runtime, rows: *const etude_backend_options, row_count: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_get_option(runtime: *mut etude_runtime, backend: *const c_char, inout_item: *mut etude_option, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_option_is_set(runtime: *mut etude_runtime, backend: *const c_char, key: *const c_char, out_is_set: *mut bool, error: *mut etude_error) -> etude_status;
    pub fn etude_runtime_reset_option(runtime: *mut etude_runtime, backend: *const c_char, key: *const c_char, error: *mut etude_error) -> etude_status;
    pub fn etude_data_from_memory(data: *const c_void, size: usize) -> etude_data_loader;
    pub fn etude_program_load(runtime: *mut etude_runtime, loader: *const etude_data_loader, config: *const etude_program_config, out_program: *mut *mut etude_program, error: *mut etude_error) -> etude_status;
    pub fn etude_program_free(program: *mut etude_program);
    pub fn etude_program_method_count(program: *const etude_program) -> u32;
    pub fn etude_program_method_name(program: *const etude_program, index: u32) -> *const c_char;
    pub fn etude_program_find_method(program: *const etude_program, name: *const c_char, out_index: *mut u32, error: *mut etude_error) -> etude_status;
    pub fn etude_program_method_info(program: *const etude_program, method: u32, out_info: *mut etude_method_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_input_info(program: *const etude_program, method: u32, index: u32, out_info: *mut etude_value_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_output_info(program: *const etude_program, method: u32, index: u32, out_info: *mut etude_value_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_attribute_info(program: *const etude_program, method: u32, index: u32, out_info: *mut etude_value_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_value_info(program: *const etude_program, method: u32, value: u32, out_info: *mut etude_value_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_list_item(program: *const etude_program, method: u32, value: u32, item: u32, out_value: *mut u32, error: *mut etude_error) -> etude_status;
    pub fn etude_program_instructions(program: *const etude_program, method: u32, first: u32, out_infos: *mut etude_instruction_info, count: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_program_operator_name(program: *const etude_program, method: u32, index: u32, out_name: *mut c_char, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_program_delegate_backend(program: *const etude_program, method: u32, index: u32, out_name: *mut *const c_char, error: *mut etude_error) -> etude_status;
    pub fn etude_program_buffer_size(program: *const etude_program, method: u32, index: u32, out_size: *mut u64, error: *mut etude_error) -> etude_status;
    pub fn etude_program_segment_count(program: *const etude_program) -> u32;
    pub fn etude_program_segment_info(program: *const etude_program, index: u32, out_info: *mut etude_segment_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_method_memory(program: *const etude_program, method: u32, out_info: *mut etude_memory_info, error: *mut etude_error) -> etude_status;
    pub fn etude_program_missing_operator(program: *const etude_program, method: u32, index: u32, out_text: *mut c_char, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_method_load(program: *mut etude_program, name: *const c_char, config: *const etude_method_config, out_method: *mut *mut etude_method, error: *mut etude_error) -> etude_status;
    pub fn etude_method_free(method: *mut etude_method);
    pub fn etude_method_name(method: *const etude_method) -> *const c_char;
    pub fn etude_method_input_count(method: *const etude_method) -> u32;
    pub fn etude_method_output_count(method: *const etude_method) -> u32;
    pub fn etude_method_set_input(method: *mut etude_method, index: u32, value: *const etude_value, error: *mut etude_error) -> etude_status;
    pub fn etude_method_set_inputs(method: *mut etude_method, values: *const etude_value, count: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_method_get_input(method: *mut etude_method, index: u32, out_value: *mut etude_value, error: *mut etude_error) -> etude_status;
    pub fn etude_method_set_output(method: *mut etude_method, index: u32, data: *mut c_void, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_method_execute(method: *mut etude_method, error: *mut etude_error) -> etude_status;
    pub fn etude_method_cancel(method: *mut etude_method);
    pub fn etude_method_set_interrupt(method: *mut etude_method, interrupted: Option<unsafe extern "C" fn(this: *mut c_void) -> bool>, this: *mut c_void);
    pub fn etude_method_step(method: *mut etude_method, error: *mut etude_error) -> etude_status;
    pub fn etude_method_reset(method: *mut etude_method);
    pub fn etude_method_position(method: *const etude_method) -> u32;
    pub fn etude_method_get_output(method: *const etude_method, index: u32, out_value: *mut etude_value, error: *mut etude_error) -> etude_status;
    pub fn etude_method_state_count(method: *const etude_method) -> u32;
    pub fn etude_method_state(method: *const etude_method, index: u32, out_name: *mut *const c_char, out_tensor: *mut etude_tensor, error: *mut etude_error) -> etude_status;
    pub fn etude_method_find_state(method: *const etude_method, name: *const c_char, out_index: *mut u32, error: *mut etude_error) -> etude_status;
    pub fn etude_method_read_state(method: *const etude_method, index: u32, data: *mut c_void, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_method_write_state(method: *mut etude_method, index: u32, data: *const c_void, size: usize, error: *mut etude_error) -> etude_status;
    pub fn etude_method_reset_state(method: *mut etude_method, index: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_method_set_seed(method: *mut etude_method, seed: u64);
    pub fn etude_method_memory(method: *const etude_method, out_info: *mut etude_memory_info) -> etude_status;
    pub fn etude_method_explain_option(method: *const etude_method, backend: *const c_char, key: *const c_char, out_explanation: *mut etude_option_explanation, error: *mut etude_error) -> etude_status;
    pub fn etude_method_set_trace(method: *mut etude_method, trace: etude_trace, this: *mut c_void);
    pub fn etude_method_set_trace_after(method: *mut etude_method, trace: etude_trace, this: *mut c_void);
    pub fn etude_method_program(method: *const etude_method) -> *const etude_program;
    pub fn etude_method_index(method: *const etude_method) -> u32;
    pub fn etude_execute_context_is_traced(ctx: *const etude_execute_context) -> bool;
    pub fn etude_execute_context_trace(ctx: *mut etude_execute_context, moment: i32, node: u32, name: *const c_char, arguments: *const *const etude_value, argument_count: u32, status: etude_status, error: *mut etude_error) -> etude_status;
    pub fn etude_execute_context_flops(ctx: *mut etude_execute_context, flops: u64);
    pub fn etude_init_context_trace(ctx: *mut etude_init_context, moment: i32, kind: i32, index: u32, name: *const c_char);
    pub fn etude_profile_start(profile: *mut etude_profile, rows: *mut etude_profile_row, row_capacity: usize, events: *mut etude_profile_event, event_capacity: usize);
    pub fn etude_profile_trace(this: *mut c_void, event: *const etude_event, error: *mut etude_error) -> etude_status;
    pub fn etude_portable_kernels(out_count: *mut u32) -> *const etude_kernel;
    pub fn etude_register_builtin_backends(runtime: *mut etude_runtime, error: *mut etude_error) -> etude_status;
    pub fn etude_malloc_allocator() -> etude_allocator;
    pub fn etude_data_from_file(path: *const c_char, mode: i32, out_loader: *mut etude_data_loader, error: *mut etude_error) -> etude_status;
    pub fn etude_host_core_count() -> u32;
    pub fn etude_host_hooks_create(threads: u32, out_hooks: *mut etude_hooks, error: *mut etude_error) -> etude_status;
    pub fn etude_host_hooks_free(hooks: *mut etude_hooks);
    pub fn etude_plugin_load(runtime: *mut etude_runtime, path: *const c_char, out_library: *mut *mut etude_plugin_library, error: *mut etude_error) -> etude_status;
    pub fn etude_plugin_backend(library: *const etude_plugin_library, index: u32) -> *const c_char;
    pub fn etude_plugin_operator(library: *const etude_plugin_library, index: u32) -> *const c_char;
    pub fn etude_plugin_unload(library: *mut etude_plugin_library, error: *mut etude_error) -> etude_status;
    pub fn etude_check_backend(runtime: *mut etude_runtime, backend: *const c_char, report: Option<unsafe extern "C" fn(arg: *mut c_void, passed: bool, what: *const c_char)>, arg: *mut c_void, out_failed: *mut u32, error: *mut etude_error) -> etude_status;
    pub fn etude_host_runtime_create(threads: u32, out_runtime: *mut *mut etude_runtime, error: *mut etude_error) -> etude_status;
    pub fn etude_host_runtime_free(runtime: *mut etude_runtime);
}
