//! Options of backends.
use std::collections::BTreeMap;

use etude_sys as sys;

use crate::error::{c_text, call, text_of, Result};

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
impl From<i32> for OptionValue {
    fn from(value: i32) -> Self {
        OptionValue::Int(value.into())
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
/// let options = etude::Options::new().set("XnnpackBackend", "workspace_sharing_mode", 1);
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
            let mut items = vec![unsafe { std::mem::zeroed() }; keys.len()];
            let mut list = container(&mut items);
            for (key, value) in keys {
                add(&mut list, key, value)?;
            }
            let name = c_text(backend, "the backend's name")?;
            let mut row: sys::etude_backend_options = unsafe { std::mem::zeroed() };
            call(|error| unsafe { sys::etude_backend_options_init(&mut row, name.as_ptr().cast(), &list, error) })?;
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

fn container(items: &mut [sys::etude_option]) -> sys::etude_options {
    sys::etude_options { items: items.as_mut_ptr(), count: 0, capacity: items.len() as u32 }
}

fn add(list: &mut sys::etude_options, key: &str, value: &OptionValue) -> Result<()> {
    let key = c_text(key, "the key")?;
    let name = key.as_ptr().cast();
    match value {
        OptionValue::Bool(truth) => call(|error| unsafe { sys::etude_options_add_bool(list, name, *truth, error) }),
        OptionValue::Int(number) => call(|error| unsafe { sys::etude_options_add_int(list, name, *number, error) }),
        OptionValue::String(text) => {
            let text = c_text(text, "the value")?;
            call(|error| unsafe { sys::etude_options_add_string(list, name, text.as_ptr().cast(), error) })
        }
    }
}

/// An option with a key and no value.
pub(crate) fn named(key: &str) -> Result<sys::etude_option> {
    let mut items = [unsafe { std::mem::zeroed() }];
    add(&mut container(&mut items), key, &OptionValue::Bool(false))?;
    Ok(items[0])
}

/// An option that a backend understands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OptionSchema {
    /// Its name.
    pub key: String,
    /// One line.
    pub help: String,
    /// Its default, which says its type.
    pub default: OptionValue,
    /// Bounds of an int, both allowed.
    pub range: Option<(i64, i64)>,
    /// Strings allowed; for an int the names of the values from the first bound on.
    pub choices: Vec<String>,
    /// May it be set process-wide, and at load?
    pub scopes: (bool, bool),
    /// It can be read, never set.
    pub read_only: bool,
    /// A process-wide change reaches methods that are loaded already.
    pub effect_now: bool,
}

impl OptionSchema {
    pub(crate) unsafe fn from_c(row: &sys::etude_option_schema) -> OptionSchema {
        let text = |pointer: *const sys::c_char| match pointer.is_null() {
            true => String::new(),
            false => text_of(pointer).into_owned(),
        };
        let mut choices = Vec::new();
        let mut at = row.choices;
        while !at.is_null() && !(*at).is_null() {
            choices.push(text(*at));
            at = at.add(1);
        }
        let is_int = row.type_ == sys::OPTION_INT;
        OptionSchema {
            key: text(row.key),
            help: text(row.help),
            default: match row.type_ {
                sys::OPTION_BOOL => OptionValue::Bool(row.default_value != 0),
                sys::OPTION_INT => OptionValue::Int(row.default_value),
                _ => OptionValue::String(text(row.default_string)),
            },
            range: (is_int && (row.minimum, row.maximum) != (0, 0)).then_some((row.minimum, row.maximum)),
            choices,
            scopes: (row.scopes & sys::SCOPE_PROCESS != 0, row.scopes & sys::SCOPE_LOAD != 0),
            read_only: row.flags & sys::OPTION_READ_ONLY != 0,
            effect_now: row.flags & sys::OPTION_EFFECT_NOW != 0,
        }
    }
}

/// Where the value of an option comes from, weakest first.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    Process,
    Program,
    Method,
}

/// The value of an option as a method sees it, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The value that counts.
    pub value: OptionValue,
    /// The layer that it is of.
    pub origin: Origin,
    /// What each layer says that says something.
    pub layers: Vec<(Origin, OptionValue)>,
}

impl Explanation {
    pub(crate) unsafe fn from_c(told: &sys::etude_option_explanation) -> Explanation {
        let origins = [Origin::Default, Origin::Process, Origin::Program, Origin::Method];
        let value = |i: usize| OptionValue::from_c(told.type_, &told.values[i]);
        let winner = told.winner as usize;
        let all = origins.iter().enumerate().filter(|(i, _)| told.is_set >> i & 1 != 0);
        let layers = all.map(|(i, origin)| (*origin, value(i))).collect();
        Explanation { value: value(winner), origin: origins[winner], layers }
    }
}
