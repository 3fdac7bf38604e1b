/** Layout of the C API's structs in 32-bit memory: sizes and offsets in bytes, those of tests/abi/layout32.txt. */

export const layouts = {
  etude_error: { size: 512, struct_size: 0, status: 4, offset: 8, subject: 16, message: 80 },
  etude_data_loader: { size: 40 },
  etude_program_config: {
    size: 40, struct_size: 0, verification: 4, external: 12, external_count: 16, backend_options_count: 20,
    backend_options: 24, unused_options_warn: 28,
  },
  etude_method_config: {
    size: 80, struct_size: 0, backend_options_count: 16, backend_options: 20, instruction_limit: 32, memory_limit: 40,
    unused_options_warn: 48, constant_limit: 56, work_limit: 64,
  },
  etude_option: { size: 328, key: 0, type: 64, value: 72 },
  etude_options: { size: 12 },
  etude_backend_options: { size: 72 },
  etude_option_schema: {
    size: 64, key: 0, help: 4, type: 8, scopes: 12, flags: 16, default_value: 24, default_string: 32, minimum: 40,
    maximum: 48, choices: 56,
  },
  etude_option_explanation: { size: 1040, struct_size: 0, type: 4, winner: 8, is_set: 12, values: 16 },
  etude_method_info: {
    size: 36, struct_size: 0, input_count: 4, output_count: 8, value_count: 12, instruction_count: 16,
    operator_count: 20, delegate_count: 24, buffer_count: 28,
  },
  etude_value_info: {
    size: 160, struct_size: 0, tag: 4, scalar_type: 8, rank: 12, flags: 16, buffer: 20, buffer_offset: 24, nbytes: 32,
    name: 40, sizes: 44, dim_order: 108, constant: 128, item_count: 144, external_file: 148, external_status: 152,
    value: 156,
  },
  etude_instruction_info: { size: 28, struct_size: 0, kind: 4, index: 8, argument_count: 12, arguments: 16, operands: 20 },
  etude_memory_info: {
    size: 88, struct_size: 0, structures: 8, planned: 16, shared: 24, unplanned: 32, loaded: 40, scratch: 48,
    delegates: 56, total: 64, peak: 72, constants: 80,
  },
  etude_tensor: { size: 32, data: 0, sizes: 4, dim_order: 12, capacity: 20, scalar_type: 24, rank: 25, flags: 26 },
  etude_value: { size: 16, tag: 0, count: 4, as: 8 },
};
