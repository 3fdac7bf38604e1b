//! A backend written in Rust, for a program that has a delegate of its name.
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use etude::{
    Arguments, Backend, Error, ExecuteContext, InitContext, MethodSettings, OptionSpec, OptionValue, Options, Origin, Program, Result, Runtime,
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
        ctx.work(args.tensor(0)?.numel() as u64)?;
        let (from, to) = args.input_and_output::<f32, f32>(0, 1)?;
        let scaled: Vec<AtomicU32> = from.iter().map(|_| AtomicU32::new(0)).collect();
        let workers = ctx.worker_count();
        ctx.parallel_for(from.len(), |i, worker| {
            assert!(worker < workers);
            assert_ne!(percent, 17, "another unlucky number");
            scaled[i].store((from[i] * percent as f32 / 100.0).to_bits(), Ordering::Relaxed);
        })?;
        for (y, x) in to.iter_mut().zip(scaled) {
            *y = f32::from_bits(x.into_inner());
        }
        Ok(())
    }
}

const X: [f32; 6] = [1.0, -2.0, 3.0, 4.0, 0.5, 6.0];

#[test]
fn a_backend_in_rust_runs() {
    let handles = Arc::new(AtomicUsize::new(0));
    let mut runtime = Runtime::new(2).unwrap();
    runtime.register_backend("ScaleBackend", Scale { handles: handles.clone() }).unwrap();
    let again = runtime.register_backend("ScaleBackend", Scale { handles: handles.clone() }).unwrap_err();
    assert_eq!(again.status(), Status::AlreadyRegistered);
    assert!(runtime.backends().contains(&"ScaleBackend".to_owned()));

    let program = Program::open(&runtime, file("data/backends.pte")).unwrap();
    let mut scale = program.load("scale").unwrap();
    runtime.set_option("ScaleBackend", "percent", 250i64).unwrap();
    assert_eq!(runtime.option("ScaleBackend", "percent").unwrap(), OptionValue::Int(250));
    {
        let outputs = scale.run(&[Value::tensor(&X, &[2, 3])]).unwrap();
        let want: Vec<f32> = X.iter().map(|x| x * 2.5).collect();
        assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap(), want);
    }
    // of one method, over the process-wide value
    let mut other = program.load_with("scale", Options::new().set("ScaleBackend", "percent", -100i64)).unwrap();
    let outputs = other.run(&[Value::tensor(&X, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].tensor().unwrap().data::<f32>().unwrap()[1], 2.0);
    drop(outputs);
    let why = scale.explain_option("ScaleBackend", "percent").unwrap();
    assert_eq!((why.value, why.origin), (OptionValue::Int(250), Origin::Process));
    let why = other.explain_option("ScaleBackend", "percent").unwrap();
    assert_eq!(why.origin, Origin::Method);
    assert_eq!(why.layers.len(), 3);
    assert_eq!(why.layers[0], (Origin::Default, OptionValue::Int(100)));
    let schema = runtime.option_schema("ScaleBackend").unwrap();
    assert_eq!((schema.len(), schema[0].range, schema[0].effect_now), (2, Some((-1000, 1000)), true));
    assert_eq!(schema[1].default, OptionValue::String("fine".into()));
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
    let wrong = program.load_with("scale", Options::new().set("ScaleBackend", "mood", "bad")).err().unwrap();
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
    runtime.set_option("ScaleBackend", "percent", 17i64).unwrap();
    let wrong = scale.run(&[Value::tensor(&X, &[2, 3])]).unwrap_err();
    assert!(wrong.message().contains("a task of the backend panicked"), "{wrong}");
    let mut limited = program.load_with("scale", MethodSettings::new().work_limit(1)).unwrap();
    assert!(limited.run(&[Value::tensor(&X, &[2, 3])]).unwrap_err().message().contains("work_limit"));
    runtime.set_option("ScaleBackend", "percent", 100i64).unwrap();
    assert!(scale.run(&[Value::tensor(&X, &[2, 3])]).is_ok());
}
