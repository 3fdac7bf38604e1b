//! A `.pte` file and its data files.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicPtr;
use std::sync::Arc;

use etude_sys as sys;

use crate::error::{c_text, call, text_of, Error, Result, Status};
use crate::method::{Memory, Method, MethodSettings};
use crate::options::Options;
use crate::runtime::{self, Runtime};
use crate::tensor::ScalarType;

pub(crate) struct Inner {
    pub(crate) program: *mut sys::etude_program,
    /// The method that touches state that it shares with others, or whose outputs are in use; null = none.
    pub(crate) state_user: AtomicPtr<sys::etude_method>,
    #[allow(dead_code)] // freed after the program
    runtime: Arc<runtime::Inner>,
}

// The hooks of a host's runtime have a lock: loading and freeing methods from several threads is allowed.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::etude_program_free(self.program) }
    }
}

/// A program. Clones are the same one.
#[derive(Clone)]
pub struct Program {
    pub(crate) inner: Arc<Inner>,
}

/// A value that stands in the file.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Constant {
    Int(i64),
    Double(f64),
    Bool(bool),
    String(String),
}

/// What a program says of an input or output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValueInfo {
    /// Its fully qualified name, if it has one.
    pub name: Option<String>,
    /// Code of its kind: a `VALUE_` of `etude_sys`.
    pub kind: i32,
    /// None for what is no tensor.
    pub scalar_type: Option<ScalarType>,
    /// Sizes of a tensor, at their largest.
    pub sizes: Vec<i32>,
    /// Dimensions as they lie in memory, outermost first.
    pub dim_order: Vec<u8>,
    /// Bytes of a tensor, at its largest.
    pub nbytes: u64,
    /// Sizes of a tensor may be smaller.
    pub dynamic: bool,
    /// Int, Double, Bool, String: the value in the file.
    pub value: Option<Constant>,
}

impl ValueInfo {
    unsafe fn from_c(info: &sys::etude_value_info) -> ValueInfo {
        let rank = info.rank as usize;
        let (held, count) = (info.constant.payload, info.constant.count as usize);
        ValueInfo {
            name: (!info.name.is_null()).then(|| text_of(info.name).into_owned()),
            kind: info.tag,
            scalar_type: (info.tag == sys::VALUE_TENSOR).then_some(ScalarType(info.scalar_type as i8)),
            sizes: info.sizes[..rank].to_vec(),
            dim_order: info.dim_order[..rank].to_vec(),
            nbytes: info.nbytes,
            dynamic: info.flags & u32::from(sys::TENSOR_DYNAMIC) != 0,
            value: match info.tag {
                sys::VALUE_INT => Some(Constant::Int(held.int_value)),
                sys::VALUE_DOUBLE => Some(Constant::Double(held.double_value)),
                sys::VALUE_BOOL => Some(Constant::Bool(held.bool_value)),
                sys::VALUE_STRING => {
                    let bytes = std::slice::from_raw_parts(held.string.cast(), count);
                    Some(Constant::String(String::from_utf8_lossy(bytes).into_owned()))
                }
                _ => None,
            },
        }
    }
}

/// What a program says of a method, without loading it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name.
    pub name: String,
    /// Its inputs.
    pub inputs: Vec<ValueInfo>,
    /// Its outputs.
    pub outputs: Vec<ValueInfo>,
    /// Number of its instructions.
    pub instruction_count: u32,
    /// Operators with overloads, each once.
    pub operators: Vec<String>,
    /// Operators with dtypes that this build has no kernel for.
    pub missing_operators: Vec<String>,
    /// The backend of each delegate.
    pub delegates: Vec<String>,
    /// Bytes of each planned buffer.
    pub buffers: Vec<u64>,
}

/// How a program is opened: its data files and the options of its backends.
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    data_files: Vec<PathBuf>,
    options: Options,
}

impl ProgramBuilder {
    /// Add a `.ptd` file.
    pub fn data_file(mut self, path: impl AsRef<Path>) -> Self {
        self.data_files.push(path.as_ref().to_owned());
        self
    }

    /// Options for every method that is loaded.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Open a file.
    ///
    /// It is mapped, so it must not be written over or shortened while the program or a method of it is there: reading
    /// what is gone ends the process (SIGBUS). Replacing or deleting it is fine. [`ProgramBuilder::from_bytes`] reads from a copy.
    pub fn open(self, runtime: &Runtime, path: impl AsRef<Path>) -> Result<Program> {
        let mut loaders = Loaders::default();
        loaders.open(path.as_ref())?;
        self.load(runtime, loaders, false)
    }

    /// Over the bytes of a file, which are copied.
    pub fn from_bytes(self, runtime: &Runtime, bytes: &[u8]) -> Result<Program> {
        let mut loaders = Loaders::default();
        loaders.all.push(unsafe { sys::etude_data_from_memory(bytes.as_ptr().cast(), bytes.len()) });
        self.load(runtime, loaders, true)
    }

    /// Over the bytes of a file, which are read in place: those of `include_bytes!`, say.
    pub fn from_static(self, runtime: &Runtime, bytes: &'static [u8]) -> Result<Program> {
        let mut loaders = Loaders::default();
        loaders.all.push(unsafe { sys::etude_data_from_memory(bytes.as_ptr().cast(), bytes.len()) });
        self.load(runtime, loaders, false)
    }

    fn load(self, runtime: &Runtime, mut loaders: Loaders, copy: bool) -> Result<Program> {
        for path in &self.data_files {
            loaders.open(path)?;
        }
        let rows = self.options.to_c()?;
        let config = sys::etude_program_config {
            struct_size: std::mem::size_of::<sys::etude_program_config>() as u32,
            verification: 0,
            allocator: std::ptr::null(),
            external: loaders.all[1..].as_ptr(),
            external_count: loaders.all.len() as u32 - 1,
            backend_options_count: rows.count(),
            backend_options: rows.as_ptr(),
            unused_options_warn: false,
            copy,
            trace: None,
            trace_self: std::ptr::null_mut(),
        };
        let mut program = std::ptr::null_mut();
        call(|error| unsafe {
            sys::etude_program_load(runtime.inner.0, &loaders.all[0], &config, &mut program, error)
        })?;
        loaders.all.clear(); // they are the program's now
        Ok(Program { inner: Arc::new(Inner { program, state_user: AtomicPtr::new(std::ptr::null_mut()), runtime: runtime.inner.clone() }) })
    }
}

/// Open files: closed here unless a program has taken them.
#[derive(Default)]
struct Loaders {
    all: Vec<sys::etude_data_loader>,
}

impl Loaders {
    fn open(&mut self, path: &Path) -> Result<()> {
        let text = path.to_str().ok_or_else(|| Error::new(Status::NotSupported, "the path is no UTF-8"))?;
        let name = c_text(text, "the path")?;
        let mut loader = std::mem::MaybeUninit::<sys::etude_data_loader>::zeroed();
        call(|error| unsafe { sys::etude_data_from_file(name.as_ptr().cast(), 0, loader.as_mut_ptr(), error) })?;
        self.all.push(unsafe { loader.assume_init() });
        Ok(())
    }
}

impl Drop for Loaders {
    fn drop(&mut self) {
        for loader in &self.all {
            if let Some(close) = loader.close {
                unsafe { close(loader.this) }
            }
        }
    }
}

impl Program {
    /// Open a file. [`Program::builder`] takes data files and options.
    ///
    /// It is mapped, so it must not be written over or shortened while the program or a method of it is there: reading
    /// what is gone ends the process (SIGBUS). Replacing or deleting it is fine. [`Program::from_bytes`] reads from a copy.
    pub fn open(runtime: &Runtime, path: impl AsRef<Path>) -> Result<Program> {
        Program::builder().open(runtime, path)
    }

    /// Over the bytes of a file, which are copied.
    pub fn from_bytes(runtime: &Runtime, bytes: &[u8]) -> Result<Program> {
        Program::builder().from_bytes(runtime, bytes)
    }

    /// Over the bytes of a file, which are read in place: those of `include_bytes!`, say.
    pub fn from_static(runtime: &Runtime, bytes: &'static [u8]) -> Result<Program> {
        Program::builder().from_static(runtime, bytes)
    }

    /// Data files and options first.
    pub fn builder() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// For what of `etude_sys` is not wrapped. It lives as long as this does, and stays this one's to free.
    pub fn as_ptr(&self) -> *mut sys::etude_program {
        self.inner.program
    }

    /// Names of the methods.
    pub fn method_names(&self) -> Vec<String> {
        let program = self.inner.program;
        let count = unsafe { sys::etude_program_method_count(program) };
        (0..count).map(|i| unsafe { text_of(sys::etude_program_method_name(program, i)).into_owned() }).collect()
    }

    fn find(&self, method: &str) -> Result<u32> {
        let name = c_text(method, "the method's name")?;
        let mut index = 0;
        let program = self.inner.program;
        call(|error| unsafe { sys::etude_program_find_method(program, name.as_ptr().cast(), &mut index, error) })?;
        Ok(index)
    }

    /// What the program says of a method, which is not loaded for it. [`Status::NotFound`] lists those that exist.
    pub fn method(&self, name: &str) -> Result<MethodInfo> {
        let program = self.inner.program;
        let index = self.find(name)?;
        let mut counts = sys::etude_method_info {
            struct_size: std::mem::size_of::<sys::etude_method_info>() as u32,
            ..Default::default()
        };
        call(|error| unsafe { sys::etude_program_method_info(program, index, &mut counts, error) })?;
        type Describe = unsafe extern "C" fn(
            *const sys::etude_program,
            u32,
            u32,
            *mut sys::etude_value_info,
            *mut sys::etude_error,
        ) -> sys::etude_status;
        let values = |count: u32, describe: Describe| -> Result<Vec<ValueInfo>> {
            (0..count)
                .map(|i| {
                    let mut info: sys::etude_value_info = unsafe { std::mem::zeroed() };
                    info.struct_size = std::mem::size_of::<sys::etude_value_info>() as u32;
                    call(|error| unsafe { describe(program, index, i, &mut info, error) })?;
                    Ok(unsafe { ValueInfo::from_c(&info) })
                })
                .collect()
        };
        let mut room = [0 as sys::c_char; 512];
        let (text, size) = (room.as_mut_ptr(), room.len());
        let mut info = MethodInfo {
            name: name.to_owned(),
            inputs: values(counts.input_count, sys::etude_program_input_info)?,
            outputs: values(counts.output_count, sys::etude_program_output_info)?,
            instruction_count: counts.instruction_count,
            operators: Vec::new(),
            missing_operators: Vec::new(),
            delegates: Vec::new(),
            buffers: Vec::new(),
        };
        for i in 0..counts.operator_count {
            call(|error| unsafe { sys::etude_program_operator_name(program, index, i, text, size, error) })?;
            info.operators.push(unsafe { text_of(text).into_owned() });
        }
        for i in 0.. {
            match call(|error| unsafe { sys::etude_program_missing_operator(program, index, i, text, size, error) }) {
                Ok(()) => info.missing_operators.push(unsafe { text_of(text).into_owned() }),
                Err(error) if error.status() == Status::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        for i in 0..counts.delegate_count {
            let mut backend = std::ptr::null();
            call(|error| unsafe { sys::etude_program_delegate_backend(program, index, i, &mut backend, error) })?;
            info.delegates.push(unsafe { text_of(backend).into_owned() });
        }
        for i in 0..counts.buffer_count {
            let mut bytes = 0;
            call(|error| unsafe { sys::etude_program_buffer_size(program, index, i, &mut bytes, error) })?;
            info.buffers.push(bytes);
        }
        Ok(info)
    }

    /// Bytes that loading and running a method would take, with inputs of the largest sizes.
    pub fn memory(&self, method: &str) -> Result<Memory> {
        let index = self.find(method)?;
        let mut info = Memory { struct_size: std::mem::size_of::<Memory>() as u32, ..Default::default() };
        let program = self.inner.program;
        call(|error| unsafe { sys::etude_program_method_memory(program, index, &mut info, error) })?;
        Ok(info)
    }

    /// Load a method.
    pub fn load(&self, name: &str) -> Result<Method> {
        self.load_with(name, MethodSettings::new())
    }

    /// Load a method with settings, or with [`Options`] alone, which override, key by key, those of the program.
    pub fn load_with(&self, name: &str, settings: impl Into<MethodSettings>) -> Result<Method> {
        Method::load(self, name, &settings.into())
    }
}
