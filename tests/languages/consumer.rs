//! The C interface from Rust, without any binding crate. Usage: consumer add.pte; prints the sum.
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    sizes: *mut i32,
    strides: *mut i32,
    dim_order: *const u8,
    bounds: *const i32,
    capacity: usize,
    scalar_type: i8,
    rank: u8,
    flags: u16,
    more: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Payload {
    int_value: i64,
    tensor: *mut Tensor,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    tag: i32,
    count: u32,
    payload: Payload,
}

#[repr(C)]
struct Error {
    struct_size: u32,
    status: i32,
    offset: u64,
    subject: [c_char; 64],
    message: [c_char; 432],
}

#[repr(C)]
struct DataLoader {
    struct_size: u32,
    this: *mut c_void,
    size: u64,
    map: *const c_void,
    read: *const c_void,
    close: *const c_void,
    reserved: [*mut c_void; 3],
}

#[link(name = "etude")]
extern "C" {
    fn etude_host_runtime_create(threads: u32, out: *mut *mut c_void, error: *mut Error) -> i32;
    fn etude_host_runtime_free(runtime: *mut c_void);
    fn etude_data_from_file(path: *const c_char, mode: i32, out: *mut DataLoader, error: *mut Error) -> i32;
    fn etude_program_load(
        runtime: *mut c_void, loader: *const DataLoader, config: *const c_void, out: *mut *mut c_void,
        error: *mut Error) -> i32;
    fn etude_program_free(program: *mut c_void);
    fn etude_method_load(
        program: *mut c_void, name: *const c_char, config: *const c_void, out: *mut *mut c_void,
        error: *mut Error) -> i32;
    fn etude_method_free(method: *mut c_void);
    fn etude_method_set_inputs(method: *mut c_void, values: *const Value, count: u32, error: *mut Error) -> i32;
    fn etude_method_execute(method: *mut c_void, error: *mut Error) -> i32;
    fn etude_method_get_output(method: *const c_void, index: u32, out: *mut Value, error: *mut Error) -> i32;
}

fn check(status: i32, error: &Error) {
    if status != 0 {
        let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        println!("status {}: {}", status, message.to_string_lossy());
        std::process::exit(1);
    }
}

fn tensor(data: &mut [f32], sizes: &mut [i32; 2]) -> Tensor {
    Tensor {
        data: data.as_mut_ptr() as *mut c_void,
        sizes: sizes.as_mut_ptr(),
        strides: null_mut(),
        dim_order: null(),
        bounds: null(),
        capacity: data.len() * 4,
        scalar_type: 6,
        rank: 2,
        flags: 0,
        more: null(),
    }
}

fn main() {
    let path = CString::new(std::env::args().nth(1).expect("a path")).expect("no NUL in the path");
    let name = CString::new("forward").expect("no NUL");
    let mut sizes = [2, 3];
    let (mut x, mut y) = ([1.0f32; 6], [2.0f32; 6]);
    let mut tensors = [tensor(&mut x, &mut sizes), tensor(&mut y, &mut sizes)];
    let values = [
        Value { tag: 1, count: 0, payload: Payload { tensor: &mut tensors[0] } },
        Value { tag: 1, count: 0, payload: Payload { tensor: &mut tensors[1] } },
    ];
    unsafe {
        let mut error: Error = std::mem::zeroed();
        let mut loader: DataLoader = std::mem::zeroed();
        let (mut runtime, mut program, mut method) = (null_mut(), null_mut(), null_mut());
        check(etude_host_runtime_create(1, &mut runtime, &mut error), &error);
        check(etude_data_from_file(path.as_ptr(), 0, &mut loader, &mut error), &error);
        check(etude_program_load(runtime, &loader, null(), &mut program, &mut error), &error);
        check(etude_method_load(program, name.as_ptr(), null(), &mut method, &mut error), &error);
        check(etude_method_set_inputs(method, values.as_ptr(), 2, &mut error), &error);
        check(etude_method_execute(method, &mut error), &error);
        let mut output = Value { tag: 0, count: 0, payload: Payload { int_value: 0 } };
        check(etude_method_get_output(method, 0, &mut output, &mut error), &error);
        let out = (*output.payload.tensor).data as *const f32;
        for i in 0..6 {
            print!("{} ", *out.add(i));
        }
        println!();
        etude_method_free(method);
        etude_program_free(program);
        etude_host_runtime_free(runtime);
    }
}
