//! The cases of etude's corpus through this crate: `tests/languages/languages.py` says what is expected of a runner.
use std::collections::HashMap;
use std::convert::TryInto;
use std::fs;

use etude::{Method, MethodSettings, OptionValue, Options, Output, Program, Result, Runtime, ScalarType, Tensor, Value};

/// Reads the format of `examples/run_arena.c`.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, size: usize) -> &'a [u8] {
        self.at += size;
        &self.bytes[self.at - size..self.at]
    }
    fn u32(&mut self) -> usize {
        u32::from_le_bytes(self.skip(4).try_into().unwrap()) as usize
    }
    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.skip(8).try_into().unwrap())
    }
    fn text(&mut self) -> &'a str {
        let size = self.u32();
        std::str::from_utf8(self.skip(size)).unwrap()
    }
    fn value(&mut self) -> Value<'a> {
        match self.u32() {
            0 => Value::None,
            1 => self.tensor().into(),
            2 => Value::String(self.text()),
            3 => Value::Double(f64::from_bits(self.i64() as u64)),
            4 => Value::Int(self.i64()),
            5 => Value::Bool(self.i64() != 0),
            kind => panic!("a value of unknown kind {kind}"),
        }
    }
    fn tensor(&mut self) -> Tensor<'a> {
        let scalar_type = ScalarType(self.u32() as i8);
        let rank = self.u32();
        let sizes: Vec<usize> = (0..rank).map(|_| self.u32()).collect();
        let dim_order: Vec<u8> = (0..rank).map(|_| self.u32() as u8).collect();
        let size = self.u32();
        self.at = (self.at + 15) / 16 * 16;
        Tensor::from_bytes(scalar_type, self.skip(size), &sizes).with_dim_order(&dim_order)
    }
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u32).to_le_bytes());
}

fn put(out: &mut Vec<u8>, output: &Output<'_>) -> Result<()> {
    put_u32(out, output.kind() as usize);
    match output.kind() {
        1 => {
            let tensor = output.tensor()?;
            put_u32(out, tensor.scalar_type().0 as usize);
            put_u32(out, tensor.rank());
            tensor.sizes().iter().for_each(|&size| put_u32(out, size as usize));
            tensor.dim_order().iter().for_each(|&dim| put_u32(out, dim.into()));
            put_u32(out, tensor.bytes().len());
            out.resize((out.len() + 15) / 16 * 16, 0);
            out.extend(tensor.bytes());
        }
        2 => {
            put_u32(out, output.string()?.len());
            out.extend(output.string()?);
        }
        3 => out.extend(output.double()?.to_le_bytes()),
        4 => out.extend(output.int()?.to_le_bytes()),
        5 => out.extend(i64::from(output.bool()?).to_le_bytes()),
        _ => {}
    }
    Ok(())
}

fn run(model: &str, calls: &str, results: &str, data_files: &[String]) -> Result<()> {
    let runtime = Runtime::new(2)?;
    let program = data_files.iter().fold(Program::builder(), |b, path| b.data_file(path)).open(&runtime, model)?;
    let bytes = fs::read(calls).expect("the calls");
    let mut input = Reader { bytes: &bytes, at: 0 };
    let mut methods: HashMap<&str, Method> = HashMap::new();
    let mut out = Vec::new();
    for _ in 0..input.u32() {
        let name = input.text();
        let inputs: Vec<_> = (0..input.u32()).map(|_| input.value()).collect();
        if !methods.contains_key(name) {
            methods.insert(name, program.load(name)?);
        }
        let outputs = methods.get_mut(name).unwrap().run(&inputs)?;
        put_u32(&mut out, outputs.len());
        for output in outputs.iter() {
            put(&mut out, output)?;
        }
    }
    fs::write(results, out).expect("the results");
    Ok(())
}

fn attempt<T>(what: &str, result: Result<T>) {
    match result {
        Ok(_) => println!("{what}: ok"),
        Err(error) => println!("{what}: {} '{}' {error}", error.status().name(), error.subject()),
    }
}

fn errors(model: &str) -> Result<()> {
    const XNN: &str = "XnnpackBackend";
    const MODE: &str = "workspace_sharing_mode";
    let runtime = Runtime::new(1)?;
    let get = || match runtime.option(XNN, MODE) {
        Ok(OptionValue::Int(mode)) => println!("get: {mode}"),
        other => println!("get: {other:?}"),
    };
    attempt("set", runtime.set_option(XNN, MODE, 1));
    get();
    attempt("set out of range", runtime.set_option(XNN, MODE, 3));
    attempt("set of wrong type", runtime.set_option(XNN, MODE, "one"));
    attempt("set unknown key", runtime.set_option(XNN, "workspace_mode", 1));
    attempt("set unknown backend", runtime.set_option("XnnBackend", MODE, 1));
    attempt("set with one unknown", runtime.set_options(&Options::new().set(XNN, MODE, 2).set(XNN, "none", true)));
    attempt("set long key", runtime.set_option(XNN, &"k".repeat(64), 1));
    attempt("set empty key", runtime.set_option(XNN, "", 1));
    attempt("get unknown key", runtime.option(XNN, "workspace_mode"));
    attempt("reset unknown key", runtime.reset_options(XNN, Some("workspace_mode")));
    attempt("schema of unknown backend", runtime.option_schema("XnnBackend"));
    get();
    attempt("reset", runtime.reset_options(XNN, None));
    get();
    let program = Program::open(&runtime, model)?;
    attempt("load", program.load_with("forward", Options::new().set(XNN, MODE, 0)));
    attempt("load out of range", program.load_with("forward", Options::new().set(XNN, MODE, 3)));
    attempt("load unused option", program.load_with("forward", Options::new().set("NullBackend", "key", 1)));
    attempt("load unknown method", program.load("backward"));
    attempt("load within 100 bytes", program.load_with("forward", MethodSettings::new().constant_limit(0).memory_limit(100)));
    attempt("describe unknown method", program.method("backward"));
    let mut method = program.load("forward")?;
    attempt("execute without inputs", method.execute());
    attempt("too few inputs", method.run(&[]));
    attempt("explain unknown key", method.explain_option(XNN, "workspace_mode"));
    attempt("reset unknown state", method.reset_state(Some("cache")));
    attempt("input of wrong type", method.run(&[Value::Int(1)]));
    attempt("input of wrong dtype", method.run(&[Value::tensor(&[0i64; 6], &[2, 3])]));
    attempt("no such file", Program::open(&runtime, format!("{model}.missing")));
    attempt("no such data file", Program::builder().data_file(format!("{model}.ptd")).open(&runtime, model));
    let bytes = fs::read(model).expect("the model");
    attempt("copied", Program::from_bytes(&runtime, &bytes).and_then(|program| program.load("forward")));
    let half = &bytes[..bytes.len() / 2];
    attempt("cut short", Program::from_bytes(&runtime, half).and_then(|program| program.load("forward")));
    attempt("no program", Program::from_bytes(&runtime, b"not a program"));
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [flag, model] if flag == "--errors" => errors(model),
        [model, calls, results, data_files @ ..] => run(model, calls, results, data_files),
        _ => panic!("usage: run_case MODEL CALLS OUT [DATA.ptd...] | run_case --errors MODEL"),
    };
    if let Err(error) = done {
        eprintln!("{}: {error}", error.status().name());
        std::process::exit(1);
    }
}
