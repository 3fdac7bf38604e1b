//! Backends written in Rust.
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use etude_sys as sys;

use crate::error::{c_text, call, tell, text_of, Error, Result, Status};
use crate::options::OptionValue;
use crate::tensor::{Element, TensorView};

/// A backend: what runs the parts of a method that an exporter lowered to its name.
///
/// One object serves all methods, from several threads at once; one handle is used by one thread at a time. A panic is
/// caught and reported as [`Status::Internal`].
pub trait Backend: Send + Sync + 'static {
    /// What `init` makes ready for one delegate, and `execute` uses.
    type Handle: Send + 'static;

    /// Can it work on this machine? Asked at each load.
    fn is_available(&self) -> bool {
        true
    }

    /// The options that it understands; asked once. Values are checked before they arrive.
    fn options(&self) -> Vec<OptionSpec> {
        Vec::new()
    }

    /// Make ready what a method needs from `payload`.
    fn init(&self, ctx: &mut InitContext<'_>, payload: &[u8]) -> Result<Self::Handle>;

    /// Run: `arguments` are the inputs, then the outputs.
    fn execute(
        &self,
        ctx: &mut ExecuteContext<'_>,
        handle: &mut Self::Handle,
        arguments: &mut Arguments<'_>,
    ) -> Result<()>;
}

/// An option that a backend understands; its type is that of its default.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    key: String,
    help: String,
    default: OptionValue,
    range: (i64, i64),
    effect_now: bool,
}

impl OptionSpec {
    /// An option with one line of help. It can be set process-wide and at load.
    pub fn new(key: &str, help: &str, default: impl Into<OptionValue>) -> OptionSpec {
        OptionSpec { key: key.into(), help: help.into(), default: default.into(), range: (0, 0), effect_now: false }
    }

    /// Bounds of an int, both allowed.
    pub fn range(mut self, minimum: i64, maximum: i64) -> OptionSpec {
        self.range = (minimum, maximum);
        self
    }

    /// A process-wide change reaches methods that are loaded already.
    pub fn effect_now(mut self) -> OptionSpec {
        self.effect_now = true;
        self
    }
}

/// What `init` may ask.
pub struct InitContext<'a> {
    ctx: *mut sys::etude_init_context,
    life: PhantomData<&'a ()>,
}

impl InitContext<'_> {
    /// For what of `etude_sys` is not wrapped; valid during the call.
    pub fn as_ptr(&mut self) -> *mut sys::etude_init_context {
        self.ctx
    }

    /// Name of the method being loaded.
    pub fn method_name(&self) -> String {
        unsafe { text_of(sys::etude_init_context_method_name(self.ctx)).into_owned() }
    }

    /// What the exporter noted for the backend: keys and values.
    pub fn compile_specs(&self) -> Vec<(String, Vec<u8>)> {
        let count = unsafe { sys::etude_init_context_spec_count(self.ctx) };
        (0..count)
            .filter_map(|i| {
                let mut spec: sys::etude_compile_spec = unsafe { std::mem::zeroed() };
                call(|error| unsafe { sys::etude_init_context_spec(self.ctx, i, &mut spec, error) }).ok()?;
                Some(unsafe { (text_of(spec.key).into_owned(), slice(&spec.value).to_vec()) })
            })
            .collect()
    }

    /// Named data of the program or its data files.
    pub fn named_data(&mut self, key: &str) -> Result<&[u8]> {
        let key = c_text(key, "the key")?;
        let mut data = sys::etude_bytes { data: std::ptr::null(), size: 0 };
        call(|error| unsafe { sys::etude_init_context_named_data(self.ctx, key.as_ptr().cast(), &mut data, error) })?;
        Ok(unsafe { slice(&data) })
    }

    /// Value of a bool option for this load.
    pub fn option_bool(&self, key: &str) -> Result<bool> {
        let (key, mut value) = (c_text(key, "the key")?, false);
        call(|error| unsafe { sys::etude_init_context_option_bool(self.ctx, key.as_ptr().cast(), &mut value, error) })?;
        Ok(value)
    }

    /// Value of an int option for this load.
    pub fn option_int(&self, key: &str) -> Result<i64> {
        let (key, mut value) = (c_text(key, "the key")?, 0);
        call(|error| unsafe { sys::etude_init_context_option_int(self.ctx, key.as_ptr().cast(), &mut value, error) })?;
        Ok(value)
    }

    /// Value of a string option for this load.
    pub fn option_string(&self, key: &str) -> Result<String> {
        let (key, mut value) = (c_text(key, "the key")?, std::ptr::null());
        call(|error| unsafe {
            sys::etude_init_context_option_string(self.ctx, key.as_ptr().cast(), &mut value, error)
        })?;
        Ok(unsafe { text_of(value).into_owned() })
    }
}

/// What `execute` may ask.
pub struct ExecuteContext<'a> {
    ctx: *mut sys::etude_execute_context,
    life: PhantomData<&'a ()>,
}

/// A loop's body, and whether it panicked.
struct Task<'a> {
    body: &'a (dyn Fn(usize, usize) + Sync),
    panicked: AtomicBool,
}

unsafe extern "C" fn run_task(arg: *mut c_void, index: usize, worker: usize) {
    let task = &*(arg as *const Task<'_>);
    if catch_unwind(AssertUnwindSafe(|| (task.body)(index, worker))).is_err() {
        task.panicked.store(true, Ordering::Relaxed);
    }
}

impl ExecuteContext<'_> {
    /// For what of `etude_sys` is not wrapped; valid during the call.
    pub fn as_ptr(&mut self) -> *mut sys::etude_execute_context {
        self.ctx
    }

    /// Run `body(i, worker)` for every i below `count`, on the runtime's threads, in any order; `worker` is below
    /// [`ExecuteContext::worker_count`], and of two that run at once it differs. [`Status::Internal`] where one panicked.
    pub fn parallel_for(&mut self, count: usize, body: impl Fn(usize, usize) + Sync) -> Result<()> {
        let task = Task { body: &body, panicked: AtomicBool::new(false) };
        let arg = &task as *const Task<'_> as *mut c_void;
        unsafe { sys::etude_execute_context_parallel_for(self.ctx, count, Some(run_task), arg) };
        match task.panicked.into_inner() {
            true => Err(Error::new(Status::Internal, "a task of the backend panicked")),
            false => Ok(()),
        }
    }

    /// Workers of such loops, at least 1.
    pub fn worker_count(&self) -> usize {
        unsafe { sys::etude_execute_context_worker_count(self.ctx) }
    }

    /// Count work against the method's limit, and look whether the execution was cancelled: return what this returns.
    pub fn work(&mut self, amount: u64) -> Result<()> {
        call(|error| unsafe { sys::etude_execute_context_work(self.ctx, amount, error) })
    }

    /// Name of the method being executed.
    pub fn method_name(&self) -> String {
        unsafe { text_of(sys::etude_execute_context_method_name(self.ctx)).into_owned() }
    }

    /// Present value of a bool option.
    pub fn option_bool(&self, key: &str) -> Result<bool> {
        let (key, mut value) = (c_text(key, "the key")?, false);
        call(|error| unsafe {
            sys::etude_execute_context_option_bool(self.ctx, key.as_ptr().cast(), &mut value, error)
        })?;
        Ok(value)
    }

    /// Present value of an int option.
    pub fn option_int(&self, key: &str) -> Result<i64> {
        let (key, mut value) = (c_text(key, "the key")?, 0);
        call(|error| unsafe {
            sys::etude_execute_context_option_int(self.ctx, key.as_ptr().cast(), &mut value, error)
        })?;
        Ok(value)
    }

    /// Present value of a string option.
    pub fn option_string(&self, key: &str) -> Result<String> {
        let key = c_text(key, "the key")?;
        let mut room = [0 as sys::c_char; sys::OPTION_STRING_SIZE];
        call(|error| unsafe {
            let (value, size) = (room.as_mut_ptr(), room.len());
            sys::etude_execute_context_option_string(self.ctx, key.as_ptr().cast(), value, size, error)
        })?;
        Ok(unsafe { text_of(room.as_ptr()).into_owned() })
    }

    /// Give an output its sizes, before it is written.
    pub fn resize(&mut self, arguments: &mut Arguments<'_>, index: usize, sizes: &[i32]) -> Result<()> {
        let tensor = arguments.c_tensor(index)?;
        let rank = sizes.len() as u32;
        call(|error| unsafe { sys::etude_execute_context_resize(self.ctx, tensor, sizes.as_ptr(), rank, error) })
    }
}

/// Arguments of a call: the inputs, then the outputs.
pub struct Arguments<'a> {
    all: &'a [*mut sys::etude_value],
}

impl Arguments<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn c_tensor(&self, index: usize) -> Result<*mut sys::etude_tensor> {
        let value = self.all.get(index).map(|&value| unsafe { &*value });
        match value {
            Some(value) if value.tag == sys::VALUE_TENSOR => Ok(unsafe { value.payload.tensor }),
            _ => Err(Error::new(Status::InvalidType, format!("argument {index} is no tensor"))),
        }
    }

    /// The tensor at `index`.
    pub fn tensor(&self, index: usize) -> Result<TensorView<'_>> {
        Ok(unsafe { TensorView::new(self.c_tensor(index)?) })
    }

    /// The int at `index`.
    pub fn int(&self, index: usize) -> Result<i64> {
        match self.all.get(index).map(|&value| unsafe { &*value }) {
            Some(value) if value.tag == sys::VALUE_INT => Ok(unsafe { value.payload.int_value }),
            _ => Err(Error::new(Status::InvalidType, format!("argument {index} is no int"))),
        }
    }

    /// The elements of an output, to write.
    pub fn output<T: Element>(&mut self, index: usize) -> Result<&mut [T]> {
        let tensor = self.c_tensor(index)?;
        let view = unsafe { TensorView::new(tensor) };
        let count = view.data::<T>()?.len();
        if unsafe { (*tensor).flags } & sys::TENSOR_READONLY != 0 {
            return Err(Error::new(Status::InvalidArgument, format!("argument {index} can't be written")));
        }
        if count == 0 {
            return Ok(&mut []);
        }
        Ok(unsafe { std::slice::from_raw_parts_mut((*tensor).data.cast(), count) })
    }

    /// An input's elements beside an output's. [`Status::NotSupported`] where they lie over each other.
    pub fn input_and_output<T: Element, U: Element>(&mut self, input: usize, output: usize) -> Result<(&[T], &mut [U])> {
        // Lifetimes are those of `self`: what the two show is apart, as is checked.
        let from: &[T] = unsafe { &*(self.tensor(input)?.data::<T>()? as *const [T]) };
        let to = self.output::<U>(output)?;
        let (a, b) = (from.as_ptr_range(), to.as_ptr_range());
        if (a.start as usize) < b.end as usize && (b.start as usize) < a.end as usize {
            let message = format!("arguments {input} and {output} lie over each other");
            return Err(Error::new(Status::NotSupported, message));
        }
        Ok((from, to))
    }
}

unsafe fn slice<'a>(bytes: &sys::etude_bytes) -> &'a [u8] {
    match bytes.size {
        0 => &[],
        size => std::slice::from_raw_parts(bytes.data.cast(), size),
    }
}

/// A backend with what C needs of it.
struct Shell<B> {
    backend: B,
    schema: Vec<sys::etude_option_schema>,
    #[allow(dead_code)] // what `schema` points to
    texts: Vec<CString>,
}

impl<B: Backend> Shell<B> {
    const VTABLE: sys::etude_backend = sys::etude_backend {
        struct_size: std::mem::size_of::<sys::etude_backend>() as u32,
        abi_version: sys::ABI_VERSION,
        is_available: Some(Self::is_available),
        init: Some(Self::init),
        execute: Some(Self::execute),
        destroy: Some(Self::destroy),
        option_schema: Some(Self::option_schema),
        check_options: None,
        set_option: None,
        get_option: None,
        release: Some(Self::release),
        measure: None,
    };

    fn new(backend: B) -> Result<Shell<B>> {
        let (mut schema, mut texts) = (Vec::new(), Vec::new());
        let mut keep = |text: &str| -> Result<*const sys::c_char> {
            texts.push(c_text(text, "a text of an option")?);
            Ok(texts[texts.len() - 1].as_ptr().cast()) // the text's own memory: stays where it is
        };
        for spec in backend.options() {
            let mut row: sys::etude_option_schema = unsafe { std::mem::zeroed() };
            row.key = keep(&spec.key)?;
            row.help = keep(&spec.help)?;
            row.scopes = sys::SCOPE_BOTH;
            row.flags = if spec.effect_now { sys::OPTION_EFFECT_NOW } else { 0 };
            row.minimum = spec.range.0;
            row.maximum = spec.range.1;
            match &spec.default {
                OptionValue::Bool(truth) => {
                    row.type_ = sys::OPTION_BOOL;
                    row.default_value = (*truth).into();
                }
                OptionValue::Int(number) => {
                    row.type_ = sys::OPTION_INT;
                    row.default_value = *number;
                }
                OptionValue::String(text) => {
                    row.type_ = sys::OPTION_STRING;
                    row.default_string = keep(text)?;
                }
            }
            schema.push(row);
        }
        Ok(Shell { backend, schema, texts })
    }

    unsafe extern "C" fn is_available(this: *mut c_void) -> bool {
        let shell = &*(this as *const Self);
        catch_unwind(AssertUnwindSafe(|| shell.backend.is_available())).unwrap_or(false)
    }

    unsafe extern "C" fn init(
        this: *mut c_void,
        ctx: *mut sys::etude_init_context,
        payload: sys::etude_bytes,
        out_handle: *mut *mut c_void,
        error: *mut sys::etude_error,
    ) -> sys::etude_status {
        let shell = &*(this as *const Self);
        guard(error, || {
            let mut ctx = InitContext { ctx, life: PhantomData };
            let handle = shell.backend.init(&mut ctx, slice(&payload))?;
            *out_handle = Box::into_raw(Box::new(handle)).cast();
            Ok(())
        })
    }

    unsafe extern "C" fn execute(
        this: *mut c_void,
        ctx: *mut sys::etude_execute_context,
        handle: *mut c_void,
        args: *const *mut sys::etude_value,
        count: u32,
        error: *mut sys::etude_error,
    ) -> sys::etude_status {
        let shell = &*(this as *const Self);
        guard(error, || {
            let mut ctx = ExecuteContext { ctx, life: PhantomData };
            let all = if count == 0 { &[] } else { std::slice::from_raw_parts(args, count as usize) };
            shell.backend.execute(&mut ctx, &mut *handle.cast::<B::Handle>(), &mut Arguments { all })
        })
    }

    unsafe extern "C" fn destroy(_this: *mut c_void, handle: *mut c_void) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(handle.cast::<B::Handle>()))));
    }

    unsafe extern "C" fn option_schema(this: *mut c_void, out_count: *mut u32) -> *const sys::etude_option_schema {
        let shell = &*(this as *const Self);
        *out_count = shell.schema.len() as u32;
        shell.schema.as_ptr()
    }

    unsafe extern "C" fn release(this: *mut c_void) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(this as *mut Self))));
    }
}

/// Run what may fail or panic, and tell C.
unsafe fn guard(error: *mut sys::etude_error, action: impl FnOnce() -> Result<()>) -> sys::etude_status {
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(Ok(())) => sys::OK,
        Ok(Err(wrong)) => tell(&wrong, error),
        Err(_) => tell(&Error::new(Status::Internal, "the backend panicked"), error),
    }
}

pub(crate) fn register<B: Backend>(runtime: *mut sys::etude_runtime, name: &str, backend: B) -> Result<()> {
    let name = c_text(name, "the backend's name")?;
    let shell = Box::into_raw(Box::new(Shell::new(backend)?));
    let vtable: &'static sys::etude_backend = &Shell::<B>::VTABLE;
    let done = call(|error| unsafe {
        sys::etude_runtime_register_backend(runtime, name.as_ptr().cast(), vtable, shell.cast(), error)
    });
    if done.is_err() {
        drop(unsafe { Box::from_raw(shell) }); // still ours
    }
    done
}
