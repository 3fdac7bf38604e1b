//! The C interface of etude as it stands: types and functions of `etude/*.h`, whose comments say what they do, who owns
//! what, and which thread may call. The crate `etude` is the safe form.
//!
//! Names are those of C, but constants without `ETUDE_`, `self`, `type` and `as`, which are `this`, `type_` and `payload`.
//!
//! `generate.py` makes the declarations from the headers; `tests/layout.rs` compares sizes and offsets with those of the C
//! compiler.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::c_void;

/// C's `char`, which `core` has only since Rust 1.64.
#[cfg(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64", target_arch = "riscv32"))]
pub type c_char = u8;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64", target_arch = "riscv32")))]
pub type c_char = i8;

include!("bindings.rs");
