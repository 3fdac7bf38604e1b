//! Run ExecuTorch programs (`.pte` files) with etude.
//!
//! ```no_run
//! use etude::{Program, Runtime, Value};
//!
//! fn main() -> etude::Result<()> {
//!     let runtime = Runtime::new(2)?;
//!     let program = Program::open(&runtime, "model.pte")?;
//!     let mut forward = program.load("forward")?;
//!     let x = [1.0f32; 6];
//!     let outputs = forward.run(&[Value::tensor(&x, &[2, 3])])?;
//!     println!("{:?}", outputs[0].tensor()?.data::<f32>()?);
//!     Ok(())
//! }
//! ```
//!
//! **Ownership.** A [`Method`] keeps its [`Program`] alive, and a program its [`Runtime`]; the last two are cheap to
//! clone. Outputs are views into the method, so it can't run again while one of them is in use.
//!
//! **Threads.** `Runtime` and `Program` are `Send + Sync`; a `Method` is `Send` and is used by one thread at a time,
//! which `&mut self` sees to. [`Method::canceller`] ends an execution from another thread.
//!
//! **Errors** are [`Error`]: the status of the C interface, a sentence, and what is at fault.
#![warn(missing_docs)]

mod backend;
mod error;
mod method;
mod options;
mod program;
mod runtime;
mod tensor;

pub use backend::{Arguments, Backend, ExecuteContext, InitContext, OptionSpec};
pub use error::{Error, Result, Status};
pub use method::{Canceller, Memory, Method, MethodSettings, Output, Outputs, ProfileRow, Value};
pub use options::{Explanation, OptionSchema, OptionValue, Options, Origin};
pub use program::{Constant, MethodInfo, Program, ProgramBuilder, ValueInfo};
pub use runtime::Runtime;
pub use tensor::{Element, ScalarType, Tensor, TensorView};

/// Version of the library that is linked: "MAJOR.MINOR.PATCH".
pub fn version() -> &'static str {
    unsafe { error::text(etude_sys::etude_version()) }
}

/// What the compiler refuses, held to by `cargo test`.
///
/// Outputs are views, so the method can't run again while one of them is in use:
/// ```compile_fail,E0499
/// # fn f(mut method: etude::Method) -> etude::Result<()> {
/// let first = method.run(&[])?;
/// method.run(&[])?;
/// println!("{first:?}");
/// # Ok(()) }
/// ```
/// nor end:
/// ```compile_fail,E0505
/// # fn f(mut method: etude::Method) -> etude::Result<()> {
/// let outputs = method.run(&[])?;
/// drop(method);
/// println!("{outputs:?}");
/// # Ok(()) }
/// ```
/// A view of an output does not outlive the outputs:
/// ```compile_fail,E0505
/// # fn f(mut method: etude::Method) -> etude::Result<()> {
/// let outputs = method.run(&[])?;
/// let view = outputs[0].tensor()?;
/// drop(outputs);
/// println!("{view:?}");
/// # Ok(()) }
/// ```
/// An output may be an input, whose elements must live as long:
/// ```compile_fail,E0597
/// # fn f(mut method: etude::Method) -> etude::Result<()> {
/// let outputs;
/// {
///     let x = [1.0f32; 6];
///     outputs = method.run(&[etude::Value::tensor(&x, &[2, 3])])?;
/// }
/// println!("{outputs:?}");
/// # Ok(()) }
/// ```
/// One thread at a time uses a method:
/// ```compile_fail,E0277
/// fn is_sync<T: Sync>() {}
/// is_sync::<etude::Method>();
/// ```
/// but it need not always be the same, and programs and runtimes are everybody's:
/// ```
/// fn is_send<T: Send>() {}
/// fn is_sync<T: Sync>() {}
/// is_send::<etude::Method>();
/// is_send::<etude::Canceller>();
/// is_send::<etude::Program>();
/// is_sync::<etude::Program>();
/// is_sync::<etude::Runtime>();
/// is_sync::<etude::Canceller>();
/// ```
/// Views stay on the thread that runs the method:
/// ```compile_fail,E0277
/// fn is_send<T: Send>() {}
/// is_send::<etude::Outputs<'static>>();
/// ```
/// A backend is used by several threads:
/// ```compile_fail,E0277
/// struct Counts(std::cell::Cell<u32>);
/// impl etude::Backend for Counts {
///     type Handle = ();
///     fn init(&self, _: &mut etude::InitContext<'_>, _: &[u8]) -> etude::Result<()> {
///         Ok(())
///     }
///     fn execute(&self, _: &mut etude::ExecuteContext<'_>, _: &mut (), _: &mut etude::Arguments<'_>) -> etude::Result<()> {
///         Ok(())
///     }
/// }
/// ```
/// and what it writes is apart from what it reads:
/// ```compile_fail,E0499
/// # fn f(mut arguments: etude::Arguments<'_>) -> etude::Result<()> {
/// let a = arguments.output::<f32>(1)?;
/// let b = arguments.output::<f32>(1)?;
/// a[0] = b[0];
/// # Ok(()) }
/// ```
#[cfg(doctest)]
mod promises {}
