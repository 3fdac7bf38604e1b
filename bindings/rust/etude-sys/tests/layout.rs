//! Sizes and offsets as the C compiler has them (tests/abi of the C library), on 64-bit platforms.
#![cfg(target_pointer_width = "64")]
use std::collections::HashMap;
use std::mem::{size_of, MaybeUninit};

use etude_sys::*;

const GOLDEN: &str = include_str!("../../../../tests/abi/layout64.txt");

/// `compare!(golden, struct { field, c_name: rust_name })`
macro_rules! compare {
    ($golden:ident, $checked:ident, $($name:ident { $($field:ident $(= $c_name:literal)?),* };)*) => {$(
        assert_eq!($golden[stringify!($name)], size_of::<$name>(), "size of {}", stringify!($name));
        $({
            let whole = MaybeUninit::<$name>::uninit();
            let start = whole.as_ptr();
            let place = unsafe { std::ptr::addr_of!((*start).$field) } as usize - start as usize;
            #[allow(unused_variables)]
            let c_name = stringify!($field);
            $(let c_name = $c_name;)?
            let key = format!("{}.{}", stringify!($name), c_name);
            assert_eq!(*$golden.get(key.as_str()).unwrap_or_else(|| panic!("no {key} in C")), place, "{key}");
            $checked += 1;
        })*
    )*};
}

#[test]
fn layouts_are_those_of_c() {
    let golden: HashMap<&str, usize> = GOLDEN
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, number)| (name, number.parse().expect("a number")))
        .collect();
    let mut checked = 0;
    include!("layouts.in");
    assert!(checked > 200);
    assert_eq!(unsafe { etude_abi_version() }, ABI_VERSION);
}

#[test]
fn every_function_is_declared() {
    const BINDINGS: &str = include_str!("../src/bindings.rs");
    let symbols = include_str!("../../../../tests/tools/symbols.txt");
    let missing: Vec<&str> = symbols.lines().filter(|name| !BINDINGS.contains(&format!("pub fn {name}("))).collect();
    assert!(missing.is_empty(), "run generate.py: {missing:?}");
}
