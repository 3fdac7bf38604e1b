//! A `.pte` file and its data files.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use etude_sys as sys;

use crate::error::{c_text, call, text_of, Error, Result, Status};
use crate::method::Method;
use crate::options::Options;
use crate::runtime::{self, Runtime};
use crate::tensor::ScalarType;

pub(crate) struct Inner {
    pub(crate) program: *mut sys::etude_program,
    /// Is a method that shares state with others running, or are its outputs in use?
    pub(crate) state_in_use: AtomicBool,
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

/// What a method says of an input.
#[derive(Clone, Debug)]
pub struct InputInfo {
    /// None for inputs that are no tensor.
    pub scalar_type: Option<ScalarType>,
    /// Sizes of a tensor, at their largest.
    pub sizes: Vec<i32>,
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
            trace: std::ptr::null(),
            trace_self: std::ptr::null_mut(),
        };
        let mut program = std::ptr::null_mut();
        call(|error| unsafe {
            sys::etude_program_load(runtime.inner.0, &loaders.all[0], &config, &mut program, error)
        })?;
        loaders.all.clear(); // they are the program's now
        Ok(Program { inner: Arc::new(Inner { program, state_in_use: AtomicBool::new(false), runtime: runtime.inner.clone() }) })
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
    pub fn open(runtime: &Runtime, path: impl AsRef<Path>) -> Result<Program> {
        Program::builder().open(runtime, path)
    }

    /// Over the bytes of a file, which are copied.
    pub fn from_bytes(runtime: &Runtime, bytes: &[u8]) -> Result<Program> {
        Program::builder().from_bytes(runtime, bytes)
    }

    /// Data files and options first.
    pub fn builder() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// Names of the methods.
    pub fn method_names(&self) -> Vec<String> {
        let program = self.inner.program;
        let count = unsafe { sys::etude_program_method_count(program) };
        (0..count).map(|i| unsafe { text_of(sys::etude_program_method_name(program, i)).into_owned() }).collect()
    }

    /// The inputs of a method.
    pub fn inputs(&self, method: &str) -> Result<Vec<InputInfo>> {
        let name = c_text(method, "the method's name")?;
        let program = self.inner.program;
        let mut index = 0;
        let mut counts = sys::etude_method_info {
            struct_size: std::mem::size_of::<sys::etude_method_info>() as u32,
            ..Default::default()
        };
        call(|error| unsafe { sys::etude_program_find_method(program, name.as_ptr().cast(), &mut index, error) })?;
        call(|error| unsafe { sys::etude_program_method_info(program, index, &mut counts, error) })?;
        (0..counts.input_count)
            .map(|i| {
                let mut info: sys::etude_value_info = unsafe { std::mem::zeroed() };
                info.struct_size = std::mem::size_of::<sys::etude_value_info>() as u32;
                call(|error| unsafe { sys::etude_program_input_info(program, index, i, &mut info, error) })?;
                Ok(InputInfo {
                    scalar_type: (info.tag == sys::VALUE_TENSOR).then(|| ScalarType(info.scalar_type as i8)),
                    sizes: info.sizes[..info.rank as usize].to_vec(),
                })
            })
            .collect()
    }

    /// Load a method.
    pub fn load(&self, name: &str) -> Result<Method> {
        self.load_with(name, &Options::new())
    }

    /// Load a method with options that override, key by key, those of the program.
    pub fn load_with(&self, name: &str, options: &Options) -> Result<Method> {
        Method::load(self, name, options)
    }
}
