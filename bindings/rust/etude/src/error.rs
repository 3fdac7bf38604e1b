//! What went wrong.
use std::ffi::CStr;
use std::fmt;

use etude_sys as sys;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of an error; names and numbers are those of ExecuTorch's `Error` enumeration.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    Internal,
    InvalidState,
    EndOfMethod,
    AlreadyLoaded,
    NotSupported,
    NotImplemented,
    InvalidArgument,
    InvalidType,
    OperatorMissing,
    AlreadyRegistered,
    NotFound,
    OutOfMemory,
    AccessFailed,
    InvalidProgram,
    InvalidExternalData,
    OutOfResources,
    DelegateIncompatible,
    DelegateOutOfMemory,
    DelegateInvalidHandle,
    Cancelled,
    /// A status that this version of the crate does not know.
    Other(i32),
}

const KNOWN: &[(sys::etude_status, Status)] = &[
    (sys::INTERNAL, Status::Internal),
    (sys::INVALID_STATE, Status::InvalidState),
    (sys::END_OF_METHOD, Status::EndOfMethod),
    (sys::ALREADY_LOADED, Status::AlreadyLoaded),
    (sys::NOT_SUPPORTED, Status::NotSupported),
    (sys::NOT_IMPLEMENTED, Status::NotImplemented),
    (sys::INVALID_ARGUMENT, Status::InvalidArgument),
    (sys::INVALID_TYPE, Status::InvalidType),
    (sys::OPERATOR_MISSING, Status::OperatorMissing),
    (sys::ALREADY_REGISTERED, Status::AlreadyRegistered),
    (sys::NOT_FOUND, Status::NotFound),
    (sys::OUT_OF_MEMORY, Status::OutOfMemory),
    (sys::ACCESS_FAILED, Status::AccessFailed),
    (sys::INVALID_PROGRAM, Status::InvalidProgram),
    (sys::INVALID_EXTERNAL_DATA, Status::InvalidExternalData),
    (sys::OUT_OF_RESOURCES, Status::OutOfResources),
    (sys::DELEGATE_INCOMPATIBLE, Status::DelegateIncompatible),
    (sys::DELEGATE_OUT_OF_MEMORY, Status::DelegateOutOfMemory),
    (sys::DELEGATE_INVALID_HANDLE, Status::DelegateInvalidHandle),
    (sys::CANCELLED, Status::Cancelled),
];

impl Status {
    pub(crate) fn from_c(code: sys::etude_status) -> Status {
        KNOWN.iter().find(|(known, _)| *known == code).map_or(Status::Other(code), |(_, status)| *status)
    }

    pub(crate) fn to_c(self) -> sys::etude_status {
        match self {
            Status::Other(code) => code,
            _ => KNOWN.iter().find(|(_, status)| *status == self).map_or(sys::INTERNAL, |(code, _)| *code),
        }
    }

    /// The name as ExecuTorch spells it: "InvalidArgument".
    pub fn name(self) -> &'static str {
        unsafe { text(sys::etude_status_name(self.to_c())) }
    }
}

/// What went wrong: one sentence with what, where, and what to do.
#[derive(Clone, Debug)]
pub struct Error {
    status: Status,
    message: String,
    subject: String,
    offset: Option<u64>,
}

impl Error {
    /// An error of one's own, for backends.
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into(), subject: String::new(), offset: None }
    }

    /// Kind of the error.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The method, operator, backend or option key at fault; may be empty.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The byte of the file at fault, if one is.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A report for the C library to fill, with room for long lists.
#[repr(C)]
pub(crate) struct Report {
    error: sys::etude_error,
    more: [sys::c_char; 3584],
}

impl Report {
    pub(crate) fn new() -> Box<Report> {
        // All zero is a valid report.
        let mut report: Box<Report> = Box::new(unsafe { std::mem::zeroed() });
        report.error.struct_size = std::mem::size_of::<Report>() as u32;
        report.error.offset = sys::NO_OFFSET;
        report
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut sys::etude_error {
        // of the whole report, which the library may write to
        (self as *mut Report).cast()
    }

    /// Ok, or the error that the library wrote.
    pub(crate) fn check(&self, status: sys::etude_status) -> Result<()> {
        if status == sys::OK {
            return Ok(());
        }
        let message = unsafe {
            // the text goes on beyond the struct's own room for it
            let report = self as *const Report;
            let place = self.error.message.as_ptr() as usize - report as usize;
            text_of(report.cast::<sys::c_char>().add(place)).into_owned()
        };
        Err(Error {
            status: Status::from_c(status),
            message,
            subject: unsafe { text_of(self.error.subject.as_ptr()).into_owned() },
            offset: (self.error.offset != sys::NO_OFFSET).then_some(self.error.offset),
        })
    }
}

/// Call `function` with a report; Ok or the error that it wrote.
pub(crate) fn call(function: impl FnOnce(*mut sys::etude_error) -> sys::etude_status) -> Result<()> {
    let mut report = Report::new();
    let status = function(report.as_mut_ptr());
    report.check(status)
}

/// A C string of static storage.
pub(crate) unsafe fn text(pointer: *const sys::c_char) -> &'static str {
    CStr::from_ptr(pointer.cast()).to_str().unwrap_or("?")
}

/// A copy-free text where it is UTF-8, which texts cut to a fixed room may not be.
pub(crate) unsafe fn text_of<'a>(pointer: *const sys::c_char) -> std::borrow::Cow<'a, str> {
    CStr::from_ptr(pointer.cast()).to_string_lossy()
}

/// Tell C what went wrong.
pub(crate) unsafe fn tell(error: &Error, report: *mut sys::etude_error) -> sys::etude_status {
    let clean = |text: &str| std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    let message = clean(&error.message);
    sys::etude_error_set(report, error.status.to_c(), b"%s\0".as_ptr().cast(), message.as_ptr());
    if !error.subject.is_empty() {
        sys::etude_error_subject(report, clean(&error.subject).as_ptr().cast());
    }
    error.status.to_c()
}

/// `text` for C; a text with a NUL inside is refused, as `what`.
pub(crate) fn c_text(text: &str, what: &str) -> Result<std::ffi::CString> {
    std::ffi::CString::new(text)
        .map_err(|_| Error::new(Status::InvalidArgument, format!("{what} {text:?} has a NUL inside")))
}
