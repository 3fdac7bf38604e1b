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
    compare!(golden, checked,
        etude_error { struct_size, status, offset, subject, message };
        etude_bytes { data, size };
        etude_allocator { this = "self", alloc, free };
        etude_buffer { data, size };
        etude_tensor { data, sizes, strides, dim_order, bounds, capacity, scalar_type, rank, flags, more };
        etude_value { tag, count, payload = "as" };
        etude_option_value { bool_value, int_value, string };
        etude_option { key, type_ = "type", reserved, value };
        etude_backend_options { backend, items, count };
        etude_option_schema { key, help, type_ = "type", scopes, flags, default_value, default_string, minimum, maximum, choices, more };
        etude_compile_spec { key, value };
        etude_delegate_needs { bytes, blocks, shared };
        etude_backend { struct_size, abi_version, is_available, init, execute, destroy, option_schema, check_options, set_option, get_option, release, measure };
        etude_data_loader { struct_size, this = "self", size, map, read, close, reserved };
        etude_program_config { struct_size, verification, allocator, external, external_count, backend_options_count, backend_options, unused_options_warn, copy, trace, trace_self };
        etude_value_info { struct_size, tag, scalar_type, rank, flags, buffer, buffer_offset, nbytes, name, sizes, dim_order, constant, item_count, external_file, external_status, value };
        etude_method_info { struct_size, input_count, output_count, value_count, instruction_count, operator_count, delegate_count, buffer_count, attribute_count };
        etude_memory_info { struct_size, buffer_count, structures, planned, shared, unplanned, loaded, scratch, delegates, total, peak, constants };
        etude_method_config { struct_size, allocator, planned, planned_count, backend_options_count, backend_options, scratch, instruction_limit, memory_limit, unused_options_warn, constant_limit, work_limit, trace, trace_self };
    );
    assert!(checked > 100);
    assert_eq!(unsafe { etude_abi_version() }, ABI_VERSION);
}
