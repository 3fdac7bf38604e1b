//! The C interface of etude as it stands: types and functions of `etude/*.h`, whose comments say what they do, who owns
//! what, and which thread may call. The crate `etude` is the safe form.
//!
//! `tests/layout.rs` compares sizes and offsets with those of the C compiler.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::c_void;

/// C's `char`, which `core` has only since Rust 1.64.
#[cfg(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64", target_arch = "riscv32"))]
pub type c_char = u8;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64", target_arch = "riscv32")))]
pub type c_char = i8;

// ---- base.h ----

pub const ABI_VERSION: u32 = 2;

pub type etude_status = i32;
pub const OK: etude_status = 0x00;
pub const INTERNAL: etude_status = 0x01;
pub const INVALID_STATE: etude_status = 0x02;
pub const END_OF_METHOD: etude_status = 0x03;
pub const ALREADY_LOADED: etude_status = 0x04;
pub const NOT_SUPPORTED: etude_status = 0x10;
pub const NOT_IMPLEMENTED: etude_status = 0x11;
pub const INVALID_ARGUMENT: etude_status = 0x12;
pub const INVALID_TYPE: etude_status = 0x13;
pub const OPERATOR_MISSING: etude_status = 0x14;
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

pub const NO_OFFSET: u64 = u64::MAX;

#[repr(C)]
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

// ---- memory.h ----

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_allocator {
    pub this: *mut c_void,
    pub alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_buffer {
    pub data: *mut c_void,
    pub size: usize,
}

// ---- tensor.h ----

pub const MAX_RANK: usize = 16;

pub const TENSOR_DYNAMIC: u16 = 1 << 0;
pub const TENSOR_READONLY: u16 = 1 << 1;
pub const TENSOR_PLANNED: u16 = 1 << 2;
pub const TENSOR_CONSTANT: u16 = 1 << 3;
pub const TENSOR_STATE: u16 = 1 << 4;
pub const TENSOR_ALIAS: u16 = 1 << 5;

#[repr(C)]
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

// ---- options.h ----

pub const OPTION_KEY_SIZE: usize = 64;
pub const OPTION_STRING_SIZE: usize = 256;
pub const BACKEND_NAME_SIZE: usize = 64;
pub const OPTION_BOOL: i32 = 0;
pub const OPTION_INT: i32 = 1;
pub const OPTION_STRING: i32 = 2;
pub const SCOPE_PROCESS: u32 = 1;
pub const SCOPE_LOAD: u32 = 2;
pub const SCOPE_BOTH: u32 = 3;
pub const OPTION_READ_ONLY: u32 = 1;
pub const OPTION_EFFECT_NOW: u32 = 2;
pub const OPTION_ALLOW_EMPTY: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub union etude_option_value {
    pub bool_value: bool,
    pub int_value: i64,
    pub string: [c_char; OPTION_STRING_SIZE],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_option {
    pub key: [c_char; OPTION_KEY_SIZE],
    pub type_: i32,
    pub reserved: u32,
    pub value: etude_option_value,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_backend_options {
    pub backend: [c_char; BACKEND_NAME_SIZE],
    pub items: *const etude_option,
    pub count: u32,
}

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

// ---- hooks.h, kernel.h, backend.h ----

#[repr(C)]
pub struct etude_runtime {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_program {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_method {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_hooks {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_init_context {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct etude_execute_context {
    _opaque: [u8; 0],
}

pub type etude_task = unsafe extern "C" fn(arg: *mut c_void, index: usize, worker: usize);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_compile_spec {
    pub key: *const c_char,
    pub value: etude_bytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
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
    pub is_available: Option<unsafe extern "C" fn(*mut c_void) -> bool>,
    pub init: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut etude_init_context,
            etude_bytes,
            *mut *mut c_void,
            *mut etude_error,
        ) -> etude_status,
    >,
    pub execute: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut etude_execute_context,
            *mut c_void,
            *const *mut etude_value,
            u32,
            *mut etude_error,
        ) -> etude_status,
    >,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub option_schema: Option<unsafe extern "C" fn(*mut c_void, *mut u32) -> *const etude_option_schema>,
    pub check_options: Option<
        unsafe extern "C" fn(*mut c_void, *const c_char, *const etude_option, u32, *mut etude_error) -> etude_status,
    >,
    pub set_option:
        Option<unsafe extern "C" fn(*mut c_void, *const etude_option, u32, *mut etude_error) -> etude_status>,
    pub get_option: Option<unsafe extern "C" fn(*mut c_void, *mut etude_option, *mut etude_error) -> etude_status>,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub measure: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut etude_init_context,
            etude_bytes,
            *mut etude_delegate_needs,
            *mut etude_error,
        ) -> etude_status,
    >,
}

// ---- program.h ----

#[repr(C)]
#[derive(Clone, Copy)]
pub struct etude_data_loader {
    pub struct_size: u32,
    pub this: *mut c_void,
    pub size: u64,
    pub map: Option<unsafe extern "C" fn(*mut c_void, u64, usize) -> *const c_void>,
    pub read: Option<unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize, *mut etude_error) -> etude_status>,
    pub close: Option<unsafe extern "C" fn(*mut c_void)>,
    pub reserved: [*mut c_void; 3],
}

#[repr(C)]
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
    /// An `etude_trace` of trace.h, or null.
    pub trace: *const c_void,
    pub trace_self: *mut c_void,
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
    pub sizes: [i32; MAX_RANK],
    pub dim_order: [u8; MAX_RANK],
    pub constant: etude_value,
    pub item_count: u32,
    pub external_file: u32,
    pub external_status: etude_status,
    pub value: u32,
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

// ---- method.h ----

#[repr(C)]
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
    /// An `etude_trace` of trace.h, or null.
    pub trace: *const c_void,
    pub trace_self: *mut c_void,
}

extern "C" {
    pub fn etude_status_name(status: etude_status) -> *const c_char;
    pub fn etude_version() -> *const c_char;
    pub fn etude_abi_version() -> u32;
    pub fn etude_error_set(error: *mut etude_error, status: etude_status, format: *const c_char, ...) -> etude_status;
    pub fn etude_error_subject(error: *mut etude_error, subject: *const c_char);

    pub fn etude_scalar_size(scalar_type: i32) -> usize;
    pub fn etude_scalar_name(scalar_type: i32) -> *const c_char;
    pub fn etude_tensor_numel(tensor: *const etude_tensor) -> usize;
    pub fn etude_tensor_nbytes(tensor: *const etude_tensor) -> usize;
    pub fn etude_tensor_is_contiguous(tensor: *const etude_tensor) -> bool;
    pub fn etude_value_kind_name(tag: i32) -> *const c_char;

    pub fn etude_host_core_count() -> u32;
    pub fn etude_host_runtime_create(
        threads: u32,
        out_runtime: *mut *mut etude_runtime,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_host_runtime_free(runtime: *mut etude_runtime);
    pub fn etude_data_from_file(
        path: *const c_char,
        mode: i32,
        out_loader: *mut etude_data_loader,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_data_from_memory(data: *const c_void, size: usize) -> etude_data_loader;

    pub fn etude_runtime_register_backend(
        runtime: *mut etude_runtime,
        name: *const c_char,
        backend: *const etude_backend,
        this: *mut c_void,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_runtime_backend_count(runtime: *const etude_runtime) -> u32;
    pub fn etude_runtime_backend_name(runtime: *const etude_runtime, index: u32) -> *const c_char;
    pub fn etude_runtime_set_option(
        runtime: *mut etude_runtime,
        rows: *const etude_backend_options,
        row_count: u32,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_runtime_get_option(
        runtime: *const etude_runtime,
        backend: *const c_char,
        inout_item: *mut etude_option,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_runtime_option_schema(
        runtime: *const etude_runtime,
        backend: *const c_char,
        out_schema: *mut *const etude_option_schema,
        out_count: *mut u32,
        error: *mut etude_error,
    ) -> etude_status;

    pub fn etude_program_load(
        runtime: *mut etude_runtime,
        loader: *const etude_data_loader,
        config: *const etude_program_config,
        out_program: *mut *mut etude_program,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_program_free(program: *mut etude_program);
    pub fn etude_program_method_count(program: *const etude_program) -> u32;
    pub fn etude_program_method_name(program: *const etude_program, index: u32) -> *const c_char;
    pub fn etude_program_find_method(
        program: *const etude_program,
        name: *const c_char,
        out_index: *mut u32,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_program_method_info(
        program: *const etude_program,
        method: u32,
        out_info: *mut etude_method_info,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_program_input_info(
        program: *const etude_program,
        method: u32,
        index: u32,
        out_info: *mut etude_value_info,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_program_output_info(
        program: *const etude_program,
        method: u32,
        index: u32,
        out_info: *mut etude_value_info,
        error: *mut etude_error,
    ) -> etude_status;

    pub fn etude_method_load(
        program: *mut etude_program,
        name: *const c_char,
        config: *const etude_method_config,
        out_method: *mut *mut etude_method,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_method_free(method: *mut etude_method);
    pub fn etude_method_name(method: *const etude_method) -> *const c_char;
    pub fn etude_method_input_count(method: *const etude_method) -> u32;
    pub fn etude_method_output_count(method: *const etude_method) -> u32;
    pub fn etude_method_set_inputs(
        method: *mut etude_method,
        values: *const etude_value,
        count: u32,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_method_execute(method: *mut etude_method, error: *mut etude_error) -> etude_status;
    pub fn etude_method_cancel(method: *mut etude_method);
    pub fn etude_method_get_output(
        method: *const etude_method,
        index: u32,
        out_value: *mut etude_value,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_method_reset_state(method: *mut etude_method, index: u32, error: *mut etude_error) -> etude_status;
    pub fn etude_method_set_seed(method: *mut etude_method, seed: u64);
    pub fn etude_method_memory(method: *const etude_method, out_info: *mut etude_memory_info);

    pub fn etude_init_context_method_name(ctx: *const etude_init_context) -> *const c_char;
    pub fn etude_init_context_spec_count(ctx: *const etude_init_context) -> u32;
    pub fn etude_init_context_spec(
        ctx: *const etude_init_context,
        index: u32,
        out_spec: *mut etude_compile_spec,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_init_context_named_data(
        ctx: *mut etude_init_context,
        key: *const c_char,
        out_data: *mut etude_bytes,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_init_context_option_bool(
        ctx: *const etude_init_context,
        key: *const c_char,
        out_value: *mut bool,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_init_context_option_int(
        ctx: *const etude_init_context,
        key: *const c_char,
        out_value: *mut i64,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_init_context_option_string(
        ctx: *const etude_init_context,
        key: *const c_char,
        out_value: *mut *const c_char,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_execute_context_method_name(ctx: *const etude_execute_context) -> *const c_char;
    pub fn etude_execute_context_resize(
        ctx: *mut etude_execute_context,
        out: *mut etude_tensor,
        sizes: *const i32,
        rank: u32,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_execute_context_option_bool(
        ctx: *const etude_execute_context,
        key: *const c_char,
        out_value: *mut bool,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_execute_context_option_int(
        ctx: *const etude_execute_context,
        key: *const c_char,
        out_value: *mut i64,
        error: *mut etude_error,
    ) -> etude_status;
    pub fn etude_execute_context_option_string(
        ctx: *const etude_execute_context,
        key: *const c_char,
        out_value: *mut c_char,
        size: usize,
        error: *mut etude_error,
    ) -> etude_status;
}
