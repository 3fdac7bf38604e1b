//! A backend written in Rust, for a program that has a delegate of its name; and what the safe API promises.
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use etude::{
    Arguments, Backend, Error, ExecuteContext, InitContext, OptionSpec, OptionValue, Options, Program, Result, Runtime,
    Status, Value,
};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests").join(name)
}

/// Multiplies a float tensor by `percent` / 100.
struct Scale {
    handles: Arc<AtomicUsize>,
}

struct Handle {
    method: String,
    payload: usize,
    alive: Arc<AtomicUsize>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backend for Scale {
    type Handle = Handle;

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            OptionSpec::new("percent", "factor, in percent", 100i64).range(-1000, 1000).effect_now(),
            OptionSpec::new("mood", "how it goes", "fine"),
        ]
    }

    fn init(&self, ctx: &mut InitContext<'_>, payload: &[u8]) -> Result<Handle> {
        if ctx.option_string("mood")? == "bad" {
            return Err(Error::new(Status::DelegateIncompatible, "not in the mood"));
        }
        self.handles.fetch_add(1, Ordering::SeqCst);
        Ok(Handle { method: ctx.method_name(), payload: payload.len(), alive: self.handles.clone() })
    }

    fn execute(&self, ctx: &mut ExecuteContext<'_>, handle: &mut Handle, args: &mut Arguments<'_>) -> Result<()> {
        assert_eq!(handle.method, ctx.method_name());
        assert!(handle.payload > 0 && args.len() == 2);
        let percent = ctx.option_int("percent")?;
        assert_ne!(percent, 13, "an unlucky number");
        let sizes = args.tensor(0)?.sizes().to_vec();
        ctx.resize(args, 1, &sizes)?;
        let (from, to) = args.input_and_output::<f32, f32>(0, 1)?;
        for (y, x) in to.iter_mut().zip(from) {
            *y = x * percent as f32 / 100.0;
        }
        Ok(())
    }
}

const X: [f32; 6] = [1.0, -2.0, 3.0, 4.0, 0.5, 6.0];

#[test]
fn a_backend_in_rust_runs() {
    let handles = Arc::new(AtomicUsize::new(0));
    let mut runtime = Runtime::new(1).unwrap();
    runtime.register_backend("ScaleBackend", Scale { handles: handles.clone() }).unwrap();
    let again = runtime.register_backend("ScaleBackend", Scale { handles: handles.clone() }).unwrap_err();
    assert_eq!(again.status(), Status::AlreadyRegistered);
    assert!(runtime.backends().contains(&"ScaleBackend".to_owned()));

    let program = Program::open(&runtime, file("data/backends.pte")).unwrap();
    let mut scale = program.load_with("scale", &Options::new()).unwrap();
    runtime.set_option("ScaleBackend", "percent", 250i64).unwrap();
    assert_eq!(runtime.option("ScaleBackend", "percent").unwrap(), OptionValue::Int(250));
    {
        let outputs = scale.run(&[Value::tensor(&X, &[2, 3])]).unwrap();
        let want: Vec<f32> = X.iter().map(|x| x * 2.5).collect();
        assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap(), want);
    }
    // of one method, over the process-wide value
    let mut other = program.load_with("scale", &Options::new().set("ScaleBackend", "percent", -100i64)).unwrap();
    let outputs = other.run(&[Value::tensor(&X, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap()[1], 2.0);
    drop(outputs);
    assert_eq!(handles.load(Ordering::SeqCst), 2);
    drop((program, runtime, scale)); // in any order: `other` still runs
    let outputs = other.run(&[Value::tensor(&X, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap()[0], -1.0);
    drop(outputs);
    drop(other);
    assert_eq!(handles.load(Ordering::SeqCst), 0);
}

#[test]
fn errors_and_panics_of_a_backend_arrive() {
    let handles = Arc::new(AtomicUsize::new(0));
    let mut runtime = Runtime::new(1).unwrap();
    runtime.register_backend("ScaleBackend", Scale { handles: handles.clone() }).unwrap();
    let program = Program::open(&runtime, file("data/backends.pte")).unwrap();
    let wrong = program.load_with("scale", &Options::new().set("ScaleBackend", "mood", "bad")).err().unwrap();
    assert_eq!(wrong.status(), Status::DelegateIncompatible);
    assert!(wrong.message().contains("not in the mood"), "{wrong}");
    assert_eq!(handles.load(Ordering::SeqCst), 0);
    let wrong = runtime.set_option("ScaleBackend", "percent", 1001i64).unwrap_err();
    assert_eq!((wrong.status(), wrong.subject()), (Status::InvalidArgument, "percent"));

    let mut scale = program.load("scale").unwrap();
    runtime.set_option("ScaleBackend", "percent", 13i64).unwrap();
    let wrong = scale.run(&[Value::tensor(&X, &[2, 3])]).unwrap_err();
    assert_eq!(wrong.status(), Status::Internal);
    assert!(wrong.message().contains("panicked"), "{wrong}");
    runtime.set_option("ScaleBackend", "percent", 100i64).unwrap();
    assert!(scale.run(&[Value::tensor(&X, &[2, 3])]).is_ok());
}

#[test]
fn methods_and_programs_go_to_other_threads() {
    let runtime = Runtime::new(2).unwrap();
    let program = Program::open(&runtime, file("corpus/add.pte")).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let program = program.clone();
            std::thread::spawn(move || {
                let mut add = program.load("forward").unwrap();
                let y = [n as f32; 6];
                for _ in 0..100 {
                    let outputs = add.run(&[Value::tensor(&X, &[2, 3]), Value::tensor(&y, &[2, 3])]).unwrap();
                    assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap()[2], 3.0 + n as f32);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn an_execution_is_cancelled_from_another_thread() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/add.pte")).unwrap();
    let mut add = program.load("forward").unwrap();
    let canceller = add.canceller();
    std::thread::spawn(move || canceller.cancel()).join().unwrap();
    let inputs = [Value::tensor(&X, &[2, 3]), Value::tensor(&X, &[2, 3])];
    assert_eq!(add.run(&inputs).unwrap_err().status(), Status::Cancelled);
    assert!(add.run(&inputs).is_ok());
    let canceller = add.canceller();
    drop(add);
    canceller.cancel(); // nothing is there any more
}

#[test]
fn wrong_inputs_are_refused() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/add.pte")).unwrap();
    let mut add = program.load("forward").unwrap();
    let whole = Value::tensor(&X, &[2, 3]);
    for (wrong, status) in [
        (Value::tensor(&X[..5], &[2, 3]), Status::InvalidArgument),
        (Value::tensor(&X, &[3, usize::MAX]), Status::InvalidArgument),
        (Value::tensor(&X, &[3, 2]), Status::NotSupported),
        (Value::tensor(&[1i32; 6], &[2, 3]), Status::InvalidArgument),
        (Value::Int(1), Status::InvalidType),
        (Value::String("text"), Status::InvalidType),
    ] {
        let error = add.run(&[whole.clone(), wrong.clone()]).unwrap_err();
        assert_eq!(error.status(), status, "{wrong:?}: {error}");
    }
    let outputs = add.run(&[whole.clone(), whole]).unwrap();
    assert_eq!(outputs[0].int().unwrap_err().status(), Status::InvalidType);
    assert_eq!(outputs[0].tensor().unwrap().data::<i64>().unwrap_err().status(), Status::InvalidType);
}

#[test]
fn methods_that_share_state_take_turns() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/shared_state.pte")).unwrap();
    let (mut put, mut get) = (program.load("put").unwrap(), program.load("get").unwrap());
    assert!(put.memory().shared > 0 && get.memory().shared > 0);
    let at = [2i64];
    let to_put = [Value::tensor(&[1.0f32, 2.0, 3.0], &[1, 3]), Value::tensor(&at, &[1])];
    let to_get = [Value::tensor(&at, &[1])];
    let first = put.run(&to_put).unwrap();
    assert_eq!(get.run(&to_get).unwrap_err().status(), Status::InvalidState);
    assert_eq!(get.reset_state().unwrap_err().status(), Status::InvalidState);
    drop(first);
    assert!(get.run(&to_get).is_ok());
}
