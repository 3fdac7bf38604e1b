//! Options of backends.
use std::collections::BTreeMap;

use etude_sys as sys;

use crate::error::{text_of, Error, Result, Status};

/// Value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OptionValue {
    Bool(bool),
    Int(i64),
    String(String),
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> Self {
        OptionValue::Bool(value)
    }
}
impl From<i64> for OptionValue {
    fn from(value: i64) -> Self {
        OptionValue::Int(value)
    }
}
impl From<&str> for OptionValue {
    fn from(value: &str) -> Self {
        OptionValue::String(value.to_owned())
    }
}
impl From<String> for OptionValue {
    fn from(value: String) -> Self {
        OptionValue::String(value)
    }
}

impl OptionValue {
    pub(crate) unsafe fn from_c(type_: i32, value: &sys::etude_option_value) -> OptionValue {
        match type_ {
            sys::OPTION_BOOL => OptionValue::Bool(value.bool_value),
            sys::OPTION_INT => OptionValue::Int(value.int_value),
            _ => OptionValue::String(text_of(value.string.as_ptr()).into_owned()),
        }
    }
}

/// Options of one or several backends.
///
/// ```
/// let options = etude::Options::new().set("XnnpackBackend", "workspace_sharing_mode", 1i64);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    backends: BTreeMap<String, BTreeMap<String, OptionValue>>,
}

impl Options {
    /// None.
    pub fn new() -> Options {
        Options::default()
    }

    /// With the value of one more key.
    pub fn set(mut self, backend: impl Into<String>, key: impl Into<String>, value: impl Into<OptionValue>) -> Options {
        self.backends.entry(backend.into()).or_default().insert(key.into(), value.into());
        self
    }

    pub(crate) fn to_c(&self) -> Result<Rows> {
        let mut rows = Rows { items: Vec::new(), rows: Vec::new() };
        for (backend, keys) in &self.backends {
            let items = keys.iter().map(|(key, value)| to_item(key, value)).collect::<Result<Vec<_>>>()?;
            let mut row: sys::etude_backend_options = unsafe { std::mem::zeroed() };
            fill(&mut row.backend, backend, "a backend's name")?;
            row.items = items.as_ptr();
            row.count = items.len() as u32;
            rows.items.push(items);
            rows.rows.push(row);
        }
        Ok(rows)
    }
}

/// Options in the form of C, as long as they live.
pub(crate) struct Rows {
    #[allow(dead_code)] // what `rows` points to
    items: Vec<Vec<sys::etude_option>>,
    rows: Vec<sys::etude_backend_options>,
}

impl Rows {
    pub(crate) fn as_ptr(&self) -> *const sys::etude_backend_options {
        self.rows.as_ptr()
    }
    pub(crate) fn count(&self) -> u32 {
        self.rows.len() as u32
    }
}

fn to_item(key: &str, value: &OptionValue) -> Result<sys::etude_option> {
    let mut item = named(key)?;
    match value {
        OptionValue::Bool(truth) => {
            item.type_ = sys::OPTION_BOOL;
            item.value.bool_value = *truth;
        }
        OptionValue::Int(number) => {
            item.type_ = sys::OPTION_INT;
            item.value.int_value = *number;
        }
        OptionValue::String(text) => {
            item.type_ = sys::OPTION_STRING;
            fill(unsafe { &mut item.value.string }, text, &format!("the value of option '{key}'"))?;
        }
    }
    Ok(item)
}

/// An option with a key and no value.
pub(crate) fn named(key: &str) -> Result<sys::etude_option> {
    let mut item: sys::etude_option = unsafe { std::mem::zeroed() };
    fill(&mut item.key, key, "an option's key")?;
    Ok(item)
}

/// Copy a text to a room of fixed size that is zero.
pub(crate) fn fill(room: &mut [sys::c_char], text: &str, what: &str) -> Result<()> {
    if text.len() >= room.len() || text.contains('\0') {
        let message = format!("{what} has at most {} bytes and no NUL: {text:?}", room.len() - 1);
        return Err(Error::new(Status::InvalidArgument, message));
    }
    for (to, from) in room.iter_mut().zip(text.bytes()) {
        *to = from as sys::c_char;
    }
    Ok(())
}
