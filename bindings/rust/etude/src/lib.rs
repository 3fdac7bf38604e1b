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
pub use method::{Canceller, Memory, Method, Output, Outputs, Value};
pub use options::{OptionValue, Options};
pub use program::{InputInfo, Program, ProgramBuilder};
pub use runtime::Runtime;
pub use tensor::{Element, ScalarType, Tensor, TensorView};

/// Version of the library that is linked: "MAJOR.MINOR.PATCH".
pub fn version() -> &'static str {
    unsafe { error::text(etude_sys::etude_version()) }
}
