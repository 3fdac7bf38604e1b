//! A method: a loaded function of a program.
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use etude_sys as sys;

use crate::error::{c_text, call, text, text_of, Error, Result, Status};
use crate::options::{Explanation, Options};
use crate::program::{self, Program};
use crate::tensor::{Element, Tensor, TensorView};

/// An input.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Value<'a> {
    None,
    Int(i64),
    Double(f64),
    Bool(bool),
    String(&'a str),
    Tensor(Tensor<'a>),
}

impl<'a> Value<'a> {
    /// A tensor over `elements`, in row-major order.
    pub fn tensor<T: Element>(elements: &'a [T], sizes: &[usize]) -> Value<'a> {
        Value::Tensor(Tensor::new(elements, sizes))
    }
}

impl<'a> From<Tensor<'a>> for Value<'a> {
    fn from(tensor: Tensor<'a>) -> Self {
        Value::Tensor(tensor)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}
impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}
impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(text)
    }
}

/// How a method is loaded: its options and what it may take.
///
/// ```
/// let settings = etude::MethodSettings::new().work_limit(1 << 30).constant_limit(0);
/// ```
#[derive(Clone, Debug)]
pub struct MethodSettings {
    options: Options,
    constant_limit: u64,
    memory_limit: u64,
    instruction_limit: u64,
    work_limit: u64,
}

impl Default for MethodSettings {
    fn default() -> Self {
        let options = Options::new();
        MethodSettings { options, constant_limit: 256 << 20, memory_limit: 0, instruction_limit: 0, work_limit: 0 }
    }
}

impl MethodSettings {
    /// Those of all languages.
    pub fn new() -> MethodSettings {
        MethodSettings::default()
    }
    /// Options that override, key by key, those of the program.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }
    /// Most bytes for what is computed once, at load, as packed weights; 256 MiB unless set, 0 = nothing.
    pub fn constant_limit(mut self, bytes: u64) -> Self {
        self.constant_limit = bytes;
        self
    }
    /// Most bytes that the file may ask for; 1 GiB unless set.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }
    /// Most instructions of one execution; 10,000,000 unless set.
    pub fn instruction_limit(mut self, count: u64) -> Self {
        self.instruction_limit = count;
        self
    }
    /// Most work of one execution, in bytes of tensors taken and steps of heavy loops; 2^41 unless set.
    pub fn work_limit(mut self, amount: u64) -> Self {
        self.work_limit = amount;
        self
    }
}

impl From<Options> for MethodSettings {
    fn from(options: Options) -> Self {
        MethodSettings::new().options(options)
    }
}
impl From<&Options> for MethodSettings {
    fn from(options: &Options) -> Self {
        MethodSettings::new().options(options.clone())
    }
}

/// Time of an instruction or, at depth 1, of a node of what a backend runs for one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileRow {
    /// Operator, backend or node; empty for moves and jumps.
    pub name: String,
    /// Number of the instruction.
    pub instruction: u32,
    /// At depth 1, number that the backend gave to the node.
    pub node: u32,
    /// 0: the instruction; 1: a node.
    pub depth: u32,
    /// How long it took.
    pub nanoseconds: u64,
    /// Of the tensors that it got and gave.
    pub bytes: u64,
    /// Additions and multiplications; 0 = not known.
    pub flops: u64,
}

/// What an execution asks whether to end.
type Interrupt = Box<dyn FnMut() -> bool + Send>;

unsafe extern "C" fn ask(this: *mut c_void) -> bool {
    let interrupted = &mut *this.cast::<Interrupt>();
    catch_unwind(AssertUnwindSafe(interrupted)).unwrap_or(true)
}

/// Bytes that a method takes of its memory, region by region.
pub type Memory = sys::etude_memory_info;

/// The pointer that cancellers hold: None once the method is gone.
type Shared = Arc<Mutex<Option<Pointer>>>;

struct Pointer(*mut sys::etude_method);
unsafe impl Send for Pointer {}

/// A loaded method, with memory of its own.
pub struct Method {
    method: *mut sys::etude_method,
    shared: Shared,
    interrupt: Option<Box<Interrupt>>,
    #[allow(dead_code)] // freed after the method
    program: Arc<program::Inner>,
}

// One thread at a time uses a method; it need not always be the same.
unsafe impl Send for Method {}

impl Drop for Method {
    fn drop(&mut self) {
        if let Ok(mut pointer) = self.shared.lock() {
            *pointer = None;
        }
        unsafe { sys::etude_method_free(self.method) }
        // the turn of outputs that were leaked
        let none = std::ptr::null_mut();
        let _ = self.program.state_user.compare_exchange(self.method, none, Ordering::Release, Ordering::Relaxed);
    }
}

/// Ends executions of a method from another thread.
#[derive(Clone)]
pub struct Canceller(Shared);

impl Canceller {
    /// End the execution that goes on, with [`Status::Cancelled`]; where there is none, the next one. Nothing happens if
    /// the method is gone.
    pub fn cancel(&self) {
        if let Ok(pointer) = self.0.lock() {
            if let Some(method) = &*pointer {
                unsafe { sys::etude_method_cancel(method.0) }
            }
        }
    }
}

impl Method {
    pub(crate) fn load(program: &Program, name: &str, settings: &MethodSettings) -> Result<Method> {
        let name = c_text(name, "the method's name")?;
        let rows = settings.options.to_c()?;
        let mut config: sys::etude_method_config = unsafe { std::mem::zeroed() };
        config.struct_size = std::mem::size_of::<sys::etude_method_config>() as u32;
        config.backend_options = rows.as_ptr();
        config.backend_options_count = rows.count();
        config.constant_limit = settings.constant_limit;
        config.memory_limit = settings.memory_limit;
        config.instruction_limit = settings.instruction_limit;
        config.work_limit = settings.work_limit;
        let mut method = std::ptr::null_mut();
        call(|error| unsafe {
            sys::etude_method_load(program.inner.program, name.as_ptr().cast(), &config, &mut method, error)
        })?;
        let shared = Arc::new(Mutex::new(Some(Pointer(method))));
        Ok(Method { method, shared, interrupt: None, program: program.inner.clone() })
    }

    /// For what of `etude_sys` is not wrapped. It lives as long as this does, and stays this one's to free.
    pub fn as_ptr(&mut self) -> *mut sys::etude_method {
        self.method
    }

    /// Its name.
    pub fn name(&self) -> String {
        unsafe { text_of(sys::etude_method_name(self.method)).into_owned() }
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        unsafe { sys::etude_method_input_count(self.method) as usize }
    }

    /// Number of outputs.
    pub fn output_count(&self) -> usize {
        unsafe { sys::etude_method_output_count(self.method) as usize }
    }

    /// Set all inputs, execute, and look at the outputs: views into the method, or into inputs that it returns.
    ///
    /// Methods that share state (as `prefill` and `decode` share caches) run one after the other:
    /// [`Status::InvalidState`] while another one runs, or its outputs are in use.
    pub fn run<'a>(&'a mut self, inputs: &[Value<'a>]) -> Result<Outputs<'a>> {
        let mut tensors = Vec::with_capacity(inputs.len()); // never grows: `values` point into it
        let mut texts = Vec::new();
        let mut values = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            values.push(to_c(i, input, &mut tensors, &mut texts)?);
        }
        let turn = self.take_turn()?; // setting an input may write to memory that is shared
        call(|error| unsafe {
            sys::etude_method_set_inputs(self.method, values.as_ptr(), values.len() as u32, error)
        })?;
        self.execute_in(turn)
    }

    /// As [`Method::run`], and where the time went.
    pub fn profile<'a>(&'a mut self, inputs: &[Value<'a>]) -> Result<(Outputs<'a>, Vec<ProfileRow>)> {
        let mut rows: Vec<sys::etude_profile_row> = vec![unsafe { std::mem::zeroed() }; 16384];
        let mut profile: sys::etude_profile = unsafe { std::mem::zeroed() };
        let method = self.method;
        let this: *mut sys::etude_profile = &mut profile;
        unsafe {
            sys::etude_profile_start(this, rows.as_mut_ptr(), rows.len(), std::ptr::null_mut(), 0);
            sys::etude_method_set_trace_after(method, Some(sys::etude_profile_trace), this.cast());
        }
        let done = self.run(inputs);
        unsafe { sys::etude_method_set_trace(method, None, std::ptr::null_mut()) };
        let outputs = done?;
        let all = rows[..unsafe { (*this).row_count }].iter().map(|row| ProfileRow {
            name: if row.name.is_null() { String::new() } else { unsafe { text_of(row.name).into_owned() } },
            instruction: row.instruction,
            node: row.node,
            depth: row.depth,
            nanoseconds: row.total,
            bytes: row.bytes,
            flops: row.flops,
        });
        Ok((outputs, all.collect()))
    }

    /// The right to touch the state that is shared with other methods of the program; None where none is.
    fn take_turn<'a>(&self) -> Result<Option<Turn<'a>>> {
        if self.memory().shared == 0 {
            return Ok(None);
        }
        let none = std::ptr::null_mut();
        let taken = self.program.state_user.compare_exchange(none, self.method, Ordering::Acquire, Ordering::Acquire);
        // a turn of its own is one of outputs that were leaked: they borrow the method
        if taken.is_err() && taken != Err(self.method) {
            let message = format!(
                "method '{}' shares state with a method that runs, or whose outputs are in use: drop them first",
                self.name()
            );
            return Err(Error::new(Status::InvalidState, message));
        }
        Ok(Some(Turn { program: self.program.clone(), life: PhantomData }))
    }

    /// Execute with the inputs as the method holds them.
    fn execute_in<'a>(&'a mut self, turn: Option<Turn<'a>>) -> Result<Outputs<'a>> {
        call(|error| unsafe { sys::etude_method_execute(self.method, error) })?;
        let all = (0..self.output_count())
            .map(|i| {
                let mut value = sys::etude_value {
                    tag: 0,
                    count: 0,
                    payload: sys::etude_value_payload { int_value: 0 },
                };
                call(|error| unsafe { sys::etude_method_get_output(self.method, i as u32, &mut value, error) })?;
                Ok(Output { value, life: PhantomData })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Outputs { all, turn })
    }

    /// Execute without setting inputs, for methods that have none; others fail as the library says.
    pub fn execute(&mut self) -> Result<Outputs<'_>> {
        if self.input_count() > 0 {
            // those that were set by `run` may be gone
            let message = format!("method '{}', input 0 has not been set", self.name());
            return Err(Error::new(Status::InvalidState, message));
        }
        let turn = self.take_turn()?;
        self.execute_in(turn)
    }

    /// Ask `interrupted` about every millisecond of an execution, on its thread, whether to end it with
    /// [`Status::Cancelled`]: for a deadline, or signals. A panic in it ends the execution, too. It takes the place of an
    /// earlier one.
    pub fn set_interrupt(&mut self, interrupted: impl FnMut() -> bool + Send + 'static) {
        let mut own: Box<Interrupt> = Box::new(Box::new(interrupted));
        let this: *mut Interrupt = &mut *own;
        unsafe { sys::etude_method_set_interrupt(self.method, Some(ask), this.cast()) };
        self.interrupt = Some(own);
    }

    /// Ask nobody any more.
    pub fn clear_interrupt(&mut self) {
        unsafe { sys::etude_method_set_interrupt(self.method, None, std::ptr::null_mut()) };
        self.interrupt = None;
    }

    /// What ends an execution from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.shared.clone())
    }

    /// Names of the state: the mutable buffers.
    pub fn state_names(&self) -> Vec<String> {
        (0..unsafe { sys::etude_method_state_count(self.method) })
            .filter_map(|i| {
                let mut name = std::ptr::null();
                let none = std::ptr::null_mut();
                call(|error| unsafe { sys::etude_method_state(self.method, i, &mut name, none, error) }).ok()?;
                Some(unsafe { text_of(name).into_owned() })
            })
            .collect()
    }

    fn find_state(&self, name: &str) -> Result<u32> {
        let (name, mut index) = (c_text(name, "the state's name")?, 0);
        call(|error| unsafe { sys::etude_method_find_state(self.method, name.as_ptr().cast(), &mut index, error) })?;
        Ok(index)
    }

    /// The bytes of a mutable buffer, copied. [`Status::NotFound`] lists those that exist.
    pub fn read_state(&self, name: &str) -> Result<Vec<u8>> {
        let index = self.find_state(name)?;
        let _turn = self.take_turn()?;
        let mut tensor: sys::etude_tensor = unsafe { std::mem::zeroed() };
        let none = std::ptr::null_mut();
        call(|error| unsafe { sys::etude_method_state(self.method, index, none, &mut tensor, error) })?;
        let mut bytes = vec![0; unsafe { sys::etude_tensor_nbytes(&tensor) }];
        let (data, size) = (bytes.as_mut_ptr().cast(), bytes.len());
        call(|error| unsafe { sys::etude_method_read_state(self.method, index, data, size, error) })?;
        Ok(bytes)
    }

    /// Overwrite a mutable buffer with as many bytes as it has.
    pub fn write_state(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let index = self.find_state(name)?;
        let _turn = self.take_turn()?;
        let data = bytes.as_ptr().cast();
        call(|error| unsafe { sys::etude_method_write_state(self.method, index, data, bytes.len(), error) })
    }

    /// Take a mutable buffer back to what it held when the program was loaded; `None` takes all of them.
    pub fn reset_state(&mut self, name: Option<&str>) -> Result<()> {
        let index = name.map_or(Ok(u32::MAX), |name| self.find_state(name))?;
        let _turn = self.take_turn()?;
        call(|error| unsafe { sys::etude_method_reset_state(self.method, index, error) })
    }

    /// The value of an option as this method sees it, and where it comes from.
    pub fn explain_option(&self, backend: &str, key: &str) -> Result<Explanation> {
        let (backend, key) = (c_text(backend, "the backend's name")?, c_text(key, "the key")?);
        let mut told: sys::etude_option_explanation = unsafe { std::mem::zeroed() };
        told.struct_size = std::mem::size_of::<sys::etude_option_explanation>() as u32;
        call(|error| unsafe {
            let (backend, key) = (backend.as_ptr().cast(), key.as_ptr().cast());
            sys::etude_method_explain_option(self.method, backend, key, &mut told, error)
        })?;
        Ok(unsafe { Explanation::from_c(&told) })
    }

    /// Start the method's random numbers anew.
    pub fn set_seed(&mut self, seed: u64) {
        unsafe { sys::etude_method_set_seed(self.method, seed) }
    }

    /// What the method takes of its memory now, in bytes.
    pub fn memory(&self) -> Memory {
        let mut info = Memory { struct_size: std::mem::size_of::<Memory>() as u32, ..Default::default() };
        unsafe { sys::etude_method_memory(self.method, &mut info) };
        info
    }
}

/// An input in the form of C; a tensor goes to `tensors`, which has room for it.
fn to_c(
    index: usize,
    input: &Value<'_>,
    tensors: &mut Vec<sys::etude_tensor>,
    texts: &mut Vec<CString>,
) -> Result<sys::etude_value> {
    let value = |tag, count, payload| sys::etude_value { tag, count, payload };
    Ok(match input {
        Value::None => value(sys::VALUE_NONE, 0, sys::etude_value_payload { int_value: 0 }),
        Value::Int(number) => value(sys::VALUE_INT, 0, sys::etude_value_payload { int_value: *number }),
        Value::Double(number) => value(sys::VALUE_DOUBLE, 0, sys::etude_value_payload { double_value: *number }),
        Value::Bool(truth) => {
            // the whole payload, not its first byte alone
            let mut payload = sys::etude_value_payload { int_value: 0 };
            payload.bool_value = *truth;
            value(sys::VALUE_BOOL, 0, payload)
        }
        Value::String(text) => {
            let copy = c_text(text, "the text of an input")?;
            let payload = sys::etude_value_payload { string: copy.as_ptr().cast() };
            texts.push(copy);
            value(sys::VALUE_STRING, text.len() as u32, payload)
        }
        Value::Tensor(tensor) => {
            tensor.check(index)?;
            tensors.push(sys::etude_tensor {
                data: tensor.bytes.as_ptr() as *mut _, // not written: it is marked as read-only
                sizes: tensor.sizes.as_ptr() as *mut i32,
                strides: std::ptr::null_mut(),
                dim_order: if tensor.dim_order.is_empty() { std::ptr::null() } else { tensor.dim_order.as_ptr() },
                bounds: std::ptr::null(),
                capacity: tensor.bytes.len(),
                scalar_type: tensor.scalar_type.0,
                rank: tensor.sizes.len() as u8,
                flags: sys::TENSOR_READONLY,
                more: std::ptr::null(),
            });
            let last = tensors.len() - 1;
            value(sys::VALUE_TENSOR, 0, sys::etude_value_payload { tensor: &mut tensors[last] })
        }
    })
}

/// The right to touch the state that methods of a program share; ends when it is dropped.
struct Turn<'a> {
    program: Arc<program::Inner>,
    life: PhantomData<&'a ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.program.state_user.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// The outputs of an execution: a slice of [`Output`]. What they show lives as long as this.
pub struct Outputs<'a> {
    all: Vec<Output<'a>>,
    #[allow(dead_code)] // others that share state may run when it is dropped
    turn: Option<Turn<'a>>,
}

impl std::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

impl<'a> Deref for Outputs<'a> {
    type Target = [Output<'a>];
    fn deref(&self) -> &[Output<'a>] {
        &self.all
    }
}

/// An output. Its views live as long as the [`Outputs`] they are of.
pub struct Output<'a> {
    value: sys::etude_value,
    life: PhantomData<&'a [u8]>,
}

impl<'a> Output<'a> {
    fn expect(&self, tag: i32) -> Result<sys::etude_value_payload> {
        if self.value.tag == tag {
            return Ok(self.value.payload);
        }
        let name = |tag| unsafe { text(sys::etude_value_kind_name(tag)) };
        let message = format!("the output is of kind {}, not {}", name(self.value.tag), name(tag));
        Err(Error::new(Status::InvalidType, message))
    }

    /// Is it None?
    pub fn is_none(&self) -> bool {
        self.value.tag == sys::VALUE_NONE
    }

    /// Code of its kind: a `VALUE_` of `etude_sys`.
    pub fn kind(&self) -> i32 {
        self.value.tag
    }

    /// The tensor; [`Status::InvalidType`] for another kind, as below.
    pub fn tensor(&self) -> Result<TensorView<'_>> {
        Ok(unsafe { TensorView::new(self.expect(sys::VALUE_TENSOR)?.tensor) })
    }

    /// The int.
    pub fn int(&self) -> Result<i64> {
        Ok(unsafe { self.expect(sys::VALUE_INT)?.int_value })
    }

    /// The double.
    pub fn double(&self) -> Result<f64> {
        Ok(unsafe { self.expect(sys::VALUE_DOUBLE)?.double_value })
    }

    /// The truth value.
    pub fn bool(&self) -> Result<bool> {
        Ok(unsafe { self.expect(sys::VALUE_BOOL)?.bool_value })
    }

    /// The bytes of the text.
    pub fn string(&self) -> Result<&[u8]> {
        let start = unsafe { self.expect(sys::VALUE_STRING)?.string };
        Ok(unsafe { std::slice::from_raw_parts(start.cast(), self.value.count as usize) })
    }
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.tensor(), self.int(), self.double(), self.bool()) {
            (Ok(tensor), ..) => tensor.fmt(f),
            (_, Ok(number), ..) => number.fmt(f),
            (_, _, Ok(number), _) => number.fmt(f),
            (_, _, _, Ok(truth)) => truth.fmt(f),
            _ => f.write_str(unsafe { text(sys::etude_value_kind_name(self.value.tag)) }),
        }
    }
}
