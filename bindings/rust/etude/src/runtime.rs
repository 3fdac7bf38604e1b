//! Kernels, backends and process-wide options.
use std::sync::Arc;

use etude_sys as sys;

use crate::backend::{self, Backend};
use crate::error::{c_text, call, text_of, Result};
use crate::options::{named, OptionSchema, OptionValue, Options};

pub(crate) struct Inner(pub(crate) *mut sys::etude_runtime);

// The C library allows any thread; registration, which it does not, takes `&mut Runtime`, the only handle.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::etude_host_runtime_free(self.0) }
    }
}

/// A runtime with the portable kernels and the built-in backends. Clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl Runtime {
    /// Loops run on `threads` threads, the calling one included (0 = 1), or on [`Runtime::cores`] if that is less.
    pub fn new(threads: u32) -> Result<Runtime> {
        let mut runtime = std::ptr::null_mut();
        call(|error| unsafe { sys::etude_host_runtime_create(threads, &mut runtime, error) })?;
        Ok(Runtime { inner: Arc::new(Inner(runtime)) })
    }

    /// For what of `etude_sys` is not wrapped. It lives as long as this does, and stays this one's to free.
    pub fn as_ptr(&self) -> *mut sys::etude_runtime {
        self.inner.0
    }

    /// Cores that this process may use.
    pub fn cores() -> u32 {
        unsafe { sys::etude_host_core_count() }
    }

    /// Names of the registered backends.
    pub fn backends(&self) -> Vec<String> {
        let count = unsafe { sys::etude_runtime_backend_count(self.inner.0) };
        (0..count)
            .map(|i| unsafe { text_of(sys::etude_runtime_backend_name(self.inner.0, i)).into_owned() })
            .collect()
    }

    /// Register a backend of one's own under the name that programs know it by. Before anything else uses the runtime:
    /// [`crate::Status::InvalidState`] if there are clones or programs.
    pub fn register_backend<B: Backend>(&mut self, name: &str, backend: B) -> Result<()> {
        if Arc::get_mut(&mut self.inner).is_none() {
            return Err(crate::Error::new(
                crate::Status::InvalidState,
                format!("backend '{name}' must be registered before the runtime is cloned or has programs"),
            ));
        }
        backend::register(self.inner.0, name, backend)
    }

    /// Set process-wide options, all or none of them.
    pub fn set_options(&self, options: &Options) -> Result<()> {
        let rows = options.to_c()?;
        call(|error| unsafe { sys::etude_runtime_set_option(self.inner.0, rows.as_ptr(), rows.count(), error) })
    }

    /// Set one process-wide option.
    pub fn set_option(&self, backend: &str, key: &str, value: impl Into<OptionValue>) -> Result<()> {
        self.set_options(&Options::new().set(backend, key, value))
    }

    /// The process-wide value of a key, or its default.
    pub fn option(&self, backend: &str, key: &str) -> Result<OptionValue> {
        let name = c_text(backend, "the backend's name")?;
        let mut item = named(key)?;
        call(|error| unsafe {
            sys::etude_runtime_get_option(self.inner.0, name.as_ptr().cast(), &mut item, error)
        })?;
        Ok(unsafe { OptionValue::from_c(item.type_, &item.value) })
    }

    /// Take a key of a backend back to its default; `None` takes all of them.
    pub fn reset_options(&self, backend: &str, key: Option<&str>) -> Result<()> {
        let name = c_text(backend, "the backend's name")?;
        let key = key.map(|key| c_text(key, "the key")).transpose()?;
        let key = key.as_ref().map_or(std::ptr::null(), |key| key.as_ptr().cast());
        call(|error| unsafe { sys::etude_runtime_reset_option(self.inner.0, name.as_ptr().cast(), key, error) })
    }

    /// The options that a backend understands.
    pub fn option_schema(&self, backend: &str) -> Result<Vec<OptionSchema>> {
        let name = c_text(backend, "the backend's name")?;
        let (mut rows, mut count) = (std::ptr::null(), 0);
        call(|error| unsafe {
            sys::etude_runtime_option_schema(self.inner.0, name.as_ptr().cast(), &mut rows, &mut count, error)
        })?;
        // backends are never taken out here, so the rows stay
        Ok((0..count as usize).map(|i| unsafe { OptionSchema::from_c(&*rows.add(i)) }).collect())
    }
}
