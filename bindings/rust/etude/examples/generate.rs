//! A language model: token ids in, token ids out, each as soon as it is chosen. For programs of the llama exporter with caches.
//!
//!     echo 43 72 270 | cargo run --example generate -- -n 8 model.pte
//!
//! Each line of the input is a turn, which goes on where the last one ended.
use std::error::Error;
use std::io::{BufRead, Write};

use etude::{Constant, Method, Program, Runtime, Value};

struct Decoder {
    forward: Method,
    /// Most tokens of one call.
    bound: usize,
    /// Positions that the caches hold.
    window: i64,
    ends: Vec<i64>,
    position: i64,
}

/// What a method without inputs returns.
fn constants(program: &Program, method: &str) -> etude::Result<Vec<i64>> {
    let outputs = program.method(method)?.outputs;
    Ok(outputs.iter().filter_map(|output| if let Some(Constant::Int(number)) = output.value { Some(number) } else { None }).collect())
}

impl Decoder {
    fn open(path: &str) -> Result<Decoder, Box<dyn Error>> {
        let program = Program::open(&Runtime::new(1)?, path)?;
        let tokens = &program.method("forward")?.inputs[0];
        Ok(Decoder {
            bound: *tokens.sizes.last().ok_or("the tokens are a scalar")? as usize,
            window: *constants(&program, "get_max_context_len")?.first().ok_or("no window is told")?,
            ends: constants(&program, "get_eos_ids")?,
            position: 0,
            forward: program.load("forward")?,
        })
    }

    /// Read a prompt, then tell `on_token` of up to `most` tokens, until one ends the text or `on_token` says false.
    fn generate(&mut self, prompt: &[i64], most: usize, mut on_token: impl FnMut(i64) -> bool) -> Result<(), Box<dyn Error>> {
        if prompt.is_empty() || prompt.len() as i64 > self.window - self.position {
            return Err("the prompt is empty, or longer than what is left of the window".into());
        }
        let mut token = self.feed(prompt)?;
        let mut count = 1;
        while on_token(token) && count < most && self.position < self.window && !self.ends.contains(&token) {
            token = self.feed(&[token])?;
            count += 1;
        }
        Ok(())
    }

    /// Read tokens, as many a call as the program takes; the likeliest to follow.
    fn feed(&mut self, tokens: &[i64]) -> etude::Result<i64> {
        let mut best = 0;
        for chunk in tokens.chunks(self.bound) {
            let position = [self.position];
            let inputs = [Value::tensor(chunk, &[1, chunk.len()]), Value::tensor(&position, &[1])];
            let outputs = self.forward.run(&inputs)?;
            let logits = outputs[0].tensor()?;
            let width = logits.sizes()[logits.rank() - 1] as usize;
            let last = logits.data::<f32>()?.rchunks(width).next().unwrap_or(&[]);
            // the first of equals
            best = (0..width).fold(0, |best, i| if last[i] > last[best] { i } else { best }) as i64;
            self.position += chunk.len() as i64;
        }
        Ok(best)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (most, model) = match args.as_slice() {
        [flag, most, model] if flag == "-n" => (most.parse()?, model),
        _ => return Err("usage: generate -n MOST MODEL.pte".into()),
    };
    let mut decoder = Decoder::open(model)?;
    for line in std::io::stdin().lock().lines() {
        let prompt = line?.split_whitespace().map(str::parse).collect::<Result<Vec<i64>, _>>()?;
        let mut out = std::io::stdout();
        decoder.generate(&prompt, most, |token| write!(out, "{token} ").and_then(|()| out.flush()).is_ok())?;
        println!();
    }
    Ok(())
}
