//! A method: a loaded function of a program.
use std::ffi::CString;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use etude_sys as sys;

use crate::error::{c_text, call, text, text_of, Error, Result, Status};
use crate::options::Options;
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
    pub(crate) fn load(program: &Program, name: &str, options: &Options) -> Result<Method> {
        let name = c_text(name, "the method's name")?;
        let rows = options.to_c()?;
        let mut config: sys::etude_method_config = unsafe { std::mem::zeroed() };
        config.struct_size = std::mem::size_of::<sys::etude_method_config>() as u32;
        config.backend_options = rows.as_ptr();
        config.backend_options_count = rows.count();
        let mut method = std::ptr::null_mut();
        call(|error| unsafe {
            sys::etude_method_load(program.inner.program, name.as_ptr().cast(), &config, &mut method, error)
        })?;
        let shared = Arc::new(Mutex::new(Some(Pointer(method))));
        Ok(Method { method, shared, program: program.inner.clone() })
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

    /// The right to touch the state that is shared with other methods of the program; None where none is.
    fn take_turn<'a>(&self) -> Result<Option<Turn<'a>>> {
        if self.memory().shared == 0 {
            return Ok(None);
        }
        if self.program.state_in_use.swap(true, Ordering::Acquire) {
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

    /// Execute without setting inputs, for methods that have none. [`Status::InvalidState`] where there are some.
    pub fn execute(&mut self) -> Result<Outputs<'_>> {
        if self.input_count() > 0 {
            let message = format!("method '{}' has {} inputs: give them to run", self.name(), self.input_count());
            return Err(Error::new(Status::InvalidState, message));
        }
        let turn = self.take_turn()?;
        self.execute_in(turn)
    }

    /// What ends an execution from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.shared.clone())
    }

    /// Take all state (mutable buffers) back to what it held when the program was loaded.
    pub fn reset_state(&mut self) -> Result<()> {
        let _turn = self.take_turn()?;
        call(|error| unsafe { sys::etude_method_reset_state(self.method, u32::MAX, error) })
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
        self.program.state_in_use.store(false, Ordering::Release);
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
