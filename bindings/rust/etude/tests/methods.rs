//! What the safe API promises of programs and methods.
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use etude::{Constant, MethodSettings, OptionValue, Program, Runtime, ScalarType, Status, Tensor, Value};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests").join(name)
}

const X: [f32; 6] = [1.0, -2.0, 3.0, 4.0, 0.5, 6.0];

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
    for order in [&[0, 0][..], &[5, 9], &[0]] {
        let error = add.run(&[whole.clone(), Tensor::new(&X, &[2, 3]).with_dim_order(order).into()]).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.message().contains(&format!("{order:?} is invalid")), "{error}");
    }
    let error = add.run(&[whole.clone(), Value::tensor(&X, &[3, usize::MAX])]).unwrap_err();
    assert!(error.message().contains(&format!("[3, {}]", usize::MAX)), "{error}");
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
    assert_eq!(get.reset_state(None).unwrap_err().status(), Status::InvalidState);
    drop(first);
    assert!(get.run(&to_get).is_ok());
}

#[test]
fn outputs_that_are_leaked_lock_no_state_for_good() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/shared_state.pte")).unwrap();
    let (mut put, mut get) = (program.load("put").unwrap(), program.load("get").unwrap());
    let to_put = [Value::tensor(&[1.0f32, 2.0, 3.0], &[1, 3]), Value::tensor(&[2i64], &[1])];
    let to_get = [Value::tensor(&[2i64], &[1])];
    std::mem::forget(put.run(&to_put).unwrap());
    assert_eq!(get.run(&to_get).unwrap_err().status(), Status::InvalidState);
    std::mem::forget(put.run(&to_put).unwrap()); // its own turn
    drop(put);
    assert!(get.run(&to_get).is_ok());
}

#[test]
fn state_is_read_written_and_reset() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/shared_state.pte")).unwrap();
    let mut put = program.load("put").unwrap();
    let name = put.state_names().remove(0);
    let before = put.read_state(&name).unwrap();
    let outputs = put.run(&[Value::tensor(&[1.0f32, 2.0, 3.0], &[1, 3]), Value::tensor(&[2i64], &[1])]).unwrap();
    drop(outputs);
    let after = put.read_state(&name).unwrap();
    assert_ne!(before, after);
    let mut get = program.load("get").unwrap();
    get.write_state(&name, &before).unwrap();
    assert_eq!(put.read_state(&name).unwrap(), before);
    get.write_state(&name, &after).unwrap();
    put.reset_state(Some(&name)).unwrap();
    assert_eq!(get.read_state(&name).unwrap(), before);
    assert_eq!(get.write_state(&name, &before[1..]).unwrap_err().status(), Status::InvalidArgument);
    let wrong = get.read_state("none").unwrap_err();
    assert_eq!(wrong.status(), Status::NotFound);
    assert!(wrong.message().contains(&name), "{wrong}");
}

#[test]
fn programs_describe_their_methods() {
    let runtime = Runtime::new(1).unwrap();
    let bytes: &'static [u8] = include_bytes!("../../../../tests/corpus/add.pte");
    let program = Program::from_static(&runtime, bytes).unwrap();
    let info = program.method("forward").unwrap();
    assert_eq!((info.inputs.len(), info.outputs.len(), info.instruction_count), (2, 1, 1));
    let y = &info.inputs[1];
    assert_eq!((y.scalar_type, y.sizes.as_slice()), (Some(ScalarType::FLOAT32), &[2, 3][..]));
    assert_eq!((y.nbytes, y.dynamic, &y.value), (24, false, &None));
    assert_eq!(info.operators, ["aten::add.out"]);
    assert!(info.missing_operators.is_empty() && info.delegates.is_empty());
    assert_eq!(program.memory("forward").unwrap().planned, info.buffers.iter().sum::<u64>());

    let program = Program::open(&runtime, file("llm/l_runner.pte")).unwrap();
    let context = &program.method("get_max_context_len").unwrap().outputs[0];
    assert!(matches!(context.value, Some(Constant::Int(number)) if number > 0), "{context:?}");
}

#[test]
fn options_are_listed() {
    let runtime = Runtime::new(1).unwrap();
    let schema = runtime.option_schema("XnnpackBackend").unwrap();
    let mode = schema.iter().find(|option| option.key == "workspace_sharing_mode").unwrap();
    assert_eq!((mode.range, mode.read_only), (Some((0, 2)), false));
    assert_eq!(mode.choices, ["disabled", "per_model", "global"]);
    for option in schema.iter().filter(|option| !option.read_only) {
        assert_eq!(runtime.option("XnnpackBackend", &option.key).unwrap(), option.default);
    }
    runtime.set_option("XnnpackBackend", "workspace_sharing_mode", 0).unwrap();
    runtime.reset_options("XnnpackBackend", Some("workspace_sharing_mode")).unwrap();
    assert_eq!(runtime.option("XnnpackBackend", "workspace_sharing_mode").unwrap(), mode.default);
    assert!(matches!(mode.default, OptionValue::Int(_)));
}

#[test]
fn executions_are_interrupted_limited_and_profiled() {
    let runtime = Runtime::new(1).unwrap();
    let program = Program::open(&runtime, file("corpus/vit_tiny.pte")).unwrap();
    let sizes: Vec<usize> = program.method("forward").unwrap().inputs[0].sizes.iter().map(|&n| n as usize).collect();
    let x = vec![0.5f32; sizes.iter().product()];
    let inputs = [Value::tensor(&x, &sizes)];

    let mut vit = program.load("forward").unwrap();
    let (outputs, rows) = vit.profile(&inputs).unwrap();
    assert_eq!(outputs.len(), 1);
    assert!(rows.iter().any(|row| row.name.starts_with("aten::") && row.nanoseconds > 0), "{rows:?}");
    drop(outputs);

    let asked = Arc::new(AtomicU32::new(0));
    let counter = asked.clone();
    vit.set_interrupt(move || counter.fetch_add(1, Ordering::Relaxed) > 0);
    while vit.run(&inputs).is_ok() {} // asked twice sooner or later
    assert_eq!(vit.run(&inputs).err().map(|error| error.status()), Some(Status::Cancelled));
    vit.clear_interrupt();
    assert!(vit.run(&inputs).is_ok());
    assert_eq!(Arc::strong_count(&asked), 1);

    let mut limited = program.load_with("forward", MethodSettings::new().work_limit(10)).unwrap();
    assert!(limited.run(&inputs).unwrap_err().message().contains("work_limit"));
}
