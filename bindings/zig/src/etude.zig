//! Run ExecuTorch programs (`.pte` files) with the C library etude.
//!
//!     var report: etude.Report = .init;
//!     errdefer std.debug.print("{s}\n", .{report.message()});
//!     const runtime = try etude.Runtime.init(2, &report);
//!     defer runtime.deinit();
//!     const program = try etude.Program.open(allocator, runtime, "model.pte", .{}, &report);
//!     defer program.deinit();
//!     var forward = try program.load(allocator, "forward", .{}, &report);
//!     defer forward.deinit();
//!     try forward.run(&.{.{ .tensor = try .of(f32, &x, &.{ 2, 3 }, &report) }}, &report);
//!     const y = try (try forward.output(0, &report)).tensor.items(f32, &report);
//!
//! Ownership: what `init`, `open`, `fromBytes` or `load` made is ended by `deinit`, methods before their program and
//! programs before their runtime, which is the order of `defer`. Inputs are borrowed: elements must stay, unchanged, until
//! the input is set again or the method ends. Outputs are views that live until the method runs again or an input is set.
//!
//! Errors: a call that fails returns an `Error` and has changed nothing, except where etude/method.h says so. The last
//! argument, which may be null, is a `Report` that then has the sentence: what, where, what to do.
//!
//! Threads: as in C. A `Runtime` and a `Program` may be used by several threads, a `Method` by one at a time, except for
//! `Method.cancel`.
const std = @import("std");
const Allocator = std.mem.Allocator;

/// The C interface, for what this module does not wrap: `runtime.handle` and its like are its pointers.
pub const c = @import("c.zig");

/// Version of the linked library, "MAJOR.MINOR.PATCH".
pub fn version() [:0]const u8 {
    return std.mem.span(c.etude_version());
}

/// Kind of an error; the names are those of ExecuTorch's `Error` enumeration.
pub const Error = error{
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
    /// A status that this module does not know: `Report.status` has its number.
    Unknown,
};

const statuses = .{
    .{ c.ETUDE_INTERNAL, Error.Internal },
    .{ c.ETUDE_INVALID_STATE, Error.InvalidState },
    .{ c.ETUDE_END_OF_METHOD, Error.EndOfMethod },
    .{ c.ETUDE_ALREADY_LOADED, Error.AlreadyLoaded },
    .{ c.ETUDE_NOT_SUPPORTED, Error.NotSupported },
    .{ c.ETUDE_NOT_IMPLEMENTED, Error.NotImplemented },
    .{ c.ETUDE_INVALID_ARGUMENT, Error.InvalidArgument },
    .{ c.ETUDE_INVALID_TYPE, Error.InvalidType },
    .{ c.ETUDE_OPERATOR_MISSING, Error.OperatorMissing },
    .{ c.ETUDE_ALREADY_REGISTERED, Error.AlreadyRegistered },
    .{ c.ETUDE_NOT_FOUND, Error.NotFound },
    .{ c.ETUDE_OUT_OF_MEMORY, Error.OutOfMemory },
    .{ c.ETUDE_ACCESS_FAILED, Error.AccessFailed },
    .{ c.ETUDE_INVALID_PROGRAM, Error.InvalidProgram },
    .{ c.ETUDE_INVALID_EXTERNAL_DATA, Error.InvalidExternalData },
    .{ c.ETUDE_OUT_OF_RESOURCES, Error.OutOfResources },
    .{ c.ETUDE_DELEGATE_INCOMPATIBLE, Error.DelegateIncompatible },
    .{ c.ETUDE_DELEGATE_OUT_OF_MEMORY, Error.DelegateOutOfMemory },
    .{ c.ETUDE_DELEGATE_INVALID_HANDLE, Error.DelegateInvalidHandle },
    .{ c.ETUDE_CANCELLED, Error.Cancelled },
};

/// Nothing, or the error that a status of C stands for. FOR CALLERS of `c`.
pub fn check(status: c.etude_status) Error!void {
    if (status == c.ETUDE_OK) return;
    inline for (statuses) |row| {
        if (status == row[0]) return row[1];
    }
    return Error.Unknown;
}

fn statusOf(err: Error) c.etude_status {
    inline for (statuses) |row| {
        if (err == row[1]) return row[0];
    }
    return c.ETUDE_INTERNAL;
}

/// What went wrong, in the caller's memory. Its contents mean something after a call that failed.
pub const Report = extern struct {
    head: c.etude_error,
    more: [3584]u8, // the text of `head` goes on here

    pub const init: Report = blk: {
        var report = std.mem.zeroes(Report);
        report.head.struct_size = @sizeOf(Report);
        report.head.offset = c.ETUDE_NO_OFFSET;
        break :blk report;
    };

    /// One sentence (lists: one item a line): what, where, what to do.
    pub fn message(report: *const Report) [:0]const u8 {
        const bytes: [*:0]const u8 = @ptrCast(report);
        return std.mem.span(bytes + @offsetOf(c.etude_error, "message"));
    }
    /// The method, operator, backend or option key at fault; may be empty.
    pub fn subject(report: *const Report) []const u8 {
        return std.mem.sliceTo(&report.head.subject, 0);
    }
    /// The byte of the file at fault, if one is.
    pub fn offset(report: *const Report) ?u64 {
        return if (report.head.offset == c.ETUDE_NO_OFFSET) null else report.head.offset;
    }
    /// The status of C.
    pub fn status(report: *const Report) c.etude_status {
        return report.head.status;
    }
};

fn head(report: ?*Report) ?*c.etude_error {
    return if (report) |r| &r.head else null;
}

/// Report an error of this module's own.
fn fail(report: ?*Report, err: Error, sentence: [*:0]const u8) Error {
    _ = c.etude_error_set(head(report), statusOf(err), "%s", sentence);
    return err;
}

/// Element types; the codes are those of ExecuTorch's (and PyTorch's) ScalarType.
pub const ScalarType = enum(i8) {
    uint8 = c.ETUDE_BYTE,
    int8 = c.ETUDE_CHAR,
    int16 = c.ETUDE_SHORT,
    int32 = c.ETUDE_INT,
    int64 = c.ETUDE_LONG,
    float16 = c.ETUDE_HALF,
    float32 = c.ETUDE_FLOAT,
    float64 = c.ETUDE_DOUBLE,
    bool = c.ETUDE_BOOL,
    bfloat16 = c.ETUDE_BFLOAT16,
    uint16 = c.ETUDE_UINT16,
    uint32 = c.ETUDE_UINT32,
    uint64 = c.ETUDE_UINT64,
    _, // the others of etude/tensor.h

    /// The type whose elements are of Zig's type `T`.
    pub fn of(comptime T: type) ScalarType {
        return switch (T) {
            u8 => .uint8,
            i8 => .int8,
            i16 => .int16,
            i32 => .int32,
            i64 => .int64,
            f16 => .float16,
            f32 => .float32,
            f64 => .float64,
            bool => .bool,
            u16 => .uint16,
            u32 => .uint32,
            u64 => .uint64,
            else => @compileError(@typeName(T) ++ " is no element of tensors"),
        };
    }
    /// Bytes of an element; 0 for a code that is none.
    pub fn size(scalar_type: ScalarType) usize {
        return c.etude_scalar_size(@backingInt(scalar_type));
    }
    /// ExecuTorch's name: "float", "long", …
    pub fn name(scalar_type: ScalarType) [:0]const u8 {
        return std.mem.span(c.etude_scalar_name(@backingInt(scalar_type)));
    }
};

/// A tensor over somebody else's elements: an input over the caller's, an output over the method's.
pub const Tensor = struct {
    scalar_type: ScalarType,
    sizes: []const i32,
    /// Dimensions as they lie in memory, outermost first; empty = row-major.
    dim_order: []const u8 = &.{},
    /// The elements, without gaps, in the order of `dim_order`; aligned as their type is.
    bytes: []const u8,

    /// Over `elements` in row-major order. InvalidArgument where their number is not that of the sizes.
    pub fn of(comptime T: type, elements: []const T, sizes: []const i32, report: ?*Report) Error!Tensor {
        var count: usize = 1;
        for (sizes) |size| {
            const factor = std.math.cast(usize, size) orelse return fail(report, Error.InvalidArgument, "a tensor can't have a negative size");
            count = std.math.mul(usize, count, factor) catch return fail(report, Error.InvalidArgument, "the sizes are beyond all memory");
        }
        if (count != elements.len) return fail(report, Error.InvalidArgument, "the elements are not as many as the sizes say");
        return .{ .scalar_type = .of(T), .sizes = sizes, .bytes = std.mem.sliceAsBytes(elements) };
    }

    /// The elements as they lie in memory (`isContiguous`: in row-major order). InvalidType where they are none of `T`.
    pub fn items(tensor: Tensor, comptime T: type, report: ?*Report) Error![]const T {
        if (tensor.scalar_type != ScalarType.of(T)) {
            _ = c.etude_error_set(head(report), c.ETUDE_INVALID_TYPE, "the tensor holds %s, not %s", tensor.scalar_type.name().ptr, ScalarType.of(T).name().ptr);
            return Error.InvalidType;
        }
        if (!std.mem.isAligned(@intFromPtr(tensor.bytes.ptr), @alignOf(T))) {
            return fail(report, Error.InvalidArgument, "the tensor's elements are not aligned");
        }
        const first: [*]const T = @ptrCast(@alignCast(tensor.bytes.ptr));
        return first[0 .. tensor.bytes.len / @sizeOf(T)];
    }

    /// Do the elements lie in row-major order?
    pub fn isContiguous(tensor: Tensor) bool {
        var form = tensor.toC();
        var strides: [c.ETUDE_MAX_RANK]i32 = undefined;
        if (!c.etude_strides_from_dim_order(form.sizes, form.dim_order, form.rank, &strides)) return false;
        form.strides = &strides;
        return c.etude_tensor_is_contiguous(&form);
    }

    /// The form of C, which points to what this one points to.
    fn toC(tensor: Tensor) c.etude_tensor {
        var form = std.mem.zeroes(c.etude_tensor);
        form.data = @constCast(tensor.bytes.ptr);
        form.capacity = tensor.bytes.len;
        form.sizes = @constCast(tensor.sizes.ptr);
        form.rank = @intCast(tensor.sizes.len);
        form.dim_order = if (tensor.dim_order.len == 0) null else tensor.dim_order.ptr;
        form.scalar_type = @backingInt(tensor.scalar_type);
        form.flags = c.ETUDE_TENSOR_READONLY;
        return form;
    }
    fn fromC(form: *const c.etude_tensor) Tensor {
        const nbytes = c.etude_tensor_nbytes(form);
        return .{
            .scalar_type = @fromBackingInt(@intCast(form.scalar_type)),
            .sizes = if (form.rank == 0) &.{} else form.sizes[0..form.rank],
            .dim_order = if (form.rank == 0 or form.dim_order == null) &.{} else form.dim_order[0..form.rank],
            .bytes = if (nbytes == 0) &.{} else @as([*]const u8, @ptrCast(form.data))[0..nbytes],
        };
    }
};

/// An input or output.
pub const Value = union(enum) {
    none,
    tensor: Tensor,
    string: []const u8,
    double: f64,
    int: i64,
    bool: bool,
    /// An output of another kind (lists), in the form of C. As an input it is passed on as it stands.
    other: c.etude_value,

    /// The form of C, which points into `value` and to `tensor`.
    fn toC(value: Value, tensor: *c.etude_tensor, report: ?*Report) Error!c.etude_value {
        var form = std.mem.zeroes(c.etude_value);
        switch (value) {
            .none => form.tag = c.ETUDE_VALUE_NONE,
            .tensor => |t| {
                if (t.sizes.len > c.ETUDE_MAX_RANK) return fail(report, Error.NotSupported, "a tensor has at most 16 dimensions");
                if (t.dim_order.len != 0 and t.dim_order.len != t.sizes.len) {
                    return fail(report, Error.InvalidArgument, "dim_order must name each dimension once");
                }
                tensor.* = t.toC();
                form.tag = c.ETUDE_VALUE_TENSOR;
                form.as.tensor = tensor;
            },
            .string => |text| {
                form.tag = c.ETUDE_VALUE_STRING;
                form.count = std.math.cast(u32, text.len) orelse return fail(report, Error.InvalidArgument, "the string is too long");
                form.as.string = text.ptr;
            },
            .double => |number| {
                form.tag = c.ETUDE_VALUE_DOUBLE;
                form.as.double_value = number;
            },
            .int => |number| {
                form.tag = c.ETUDE_VALUE_INT;
                form.as.int_value = number;
            },
            .bool => |truth| {
                form.tag = c.ETUDE_VALUE_BOOL;
                form.as.bool_value = truth;
            },
            .other => |whole| form = whole,
        }
        return form;
    }
    fn fromC(form: c.etude_value) Value {
        return switch (form.tag) {
            c.ETUDE_VALUE_NONE => .none,
            c.ETUDE_VALUE_TENSOR => .{ .tensor = .fromC(form.as.tensor) },
            c.ETUDE_VALUE_STRING => .{ .string = form.as.string[0..form.count] },
            c.ETUDE_VALUE_DOUBLE => .{ .double = form.as.double_value },
            c.ETUDE_VALUE_INT => .{ .int = form.as.int_value },
            c.ETUDE_VALUE_BOOL => .{ .bool = form.as.bool_value },
            else => .{ .other = form },
        };
    }
};

/// Value of an option of a backend.
pub const OptionValue = union(enum) {
    bool: bool,
    int: i64,
    string: []const u8,
};

/// A key and its value.
pub const Option = struct {
    key: []const u8,
    value: OptionValue,

    fn toC(option: Option, report: ?*Report) Error!c.etude_option {
        var form = try named(option.key, report);
        switch (option.value) {
            .bool => |truth| {
                form.type = c.ETUDE_OPTION_BOOL;
                form.value.bool_value = truth;
            },
            .int => |number| {
                form.type = c.ETUDE_OPTION_INT;
                form.value.int_value = number;
            },
            .string => |text| {
                form.type = c.ETUDE_OPTION_STRING;
                try fill(&form.value.string, text, "the value of an option has at most 255 bytes and no NUL", report);
            },
        }
        return form;
    }
    fn named(key: []const u8, report: ?*Report) Error!c.etude_option {
        var form = std.mem.zeroes(c.etude_option);
        try fill(&form.key, key, "the key of an option has at most 63 bytes and no NUL", report);
        return form;
    }
};

/// Options of one backend: `.{ .backend = "XnnpackBackend", .items = &.{.{ .key = "num_threads", .value = .{ .int = 1 } }} }`.
pub const BackendOptions = struct {
    backend: []const u8,
    items: []const Option,
};

/// Copy a text to a room of fixed size that is zero.
fn fill(room: []u8, text: []const u8, sentence: [*:0]const u8, report: ?*Report) Error!void {
    if (text.len >= room.len or std.mem.indexOfScalar(u8, text, 0) != null) return fail(report, Error.InvalidArgument, sentence);
    @memcpy(room[0..text.len], text);
}

/// Options in the form of C, as long as `arena` lives.
fn optionRows(arena: Allocator, options: []const BackendOptions, report: ?*Report) Error![]const c.etude_backend_options {
    const rows = try arena.alloc(c.etude_backend_options, options.len);
    for (rows, options) |*row, from| {
        const items = try arena.alloc(c.etude_option, from.items.len);
        for (items, from.items) |*item, option| item.* = try option.toC(report);
        row.* = std.mem.zeroes(c.etude_backend_options);
        try fill(&row.backend, from.backend, "the name of a backend has at most 63 bytes and no NUL", report);
        row.items = items.ptr;
        row.count = @intCast(items.len);
    }
    return rows;
}

/// Kernels, backends and process-wide options.
pub const Runtime = struct {
    handle: *c.etude_runtime,

    /// With the portable kernels and built-in backends; loops run on `threads` threads, the calling one included.
    pub fn init(threads: u32, report: ?*Report) Error!Runtime {
        var handle: ?*c.etude_runtime = null;
        try check(c.etude_host_runtime_create(threads, &handle, head(report)));
        return .{ .handle = handle.? };
    }
    pub fn deinit(runtime: Runtime) void {
        c.etude_host_runtime_free(runtime.handle);
    }

    /// Name of backend `index`, null beyond the last. Lives until the backend is unregistered.
    pub fn backendName(runtime: Runtime, index: u32) ?[:0]const u8 {
        const name = c.etude_runtime_backend_name(runtime.handle, index);
        return if (name == null) null else std.mem.span(name);
    }

    /// Set process-wide options of one or several backends, all or none of them. `allocator` serves for the call.
    pub fn setOptions(runtime: Runtime, allocator: Allocator, options: []const BackendOptions, report: ?*Report) Error!void {
        var arena: std.heap.ArenaAllocator = .init(allocator);
        defer arena.deinit();
        const rows = try optionRows(arena.allocator(), options, report);
        try check(c.etude_runtime_set_option(runtime.handle, rows.ptr, @intCast(rows.len), head(report)));
    }
    /// Set one process-wide option.
    pub fn setOption(runtime: Runtime, backend: []const u8, key: []const u8, value: OptionValue, report: ?*Report) Error!void {
        var item = try (Option{ .key = key, .value = value }).toC(report);
        var row = std.mem.zeroes(c.etude_backend_options);
        try fill(&row.backend, backend, "the name of a backend has at most 63 bytes and no NUL", report);
        row.items = &item;
        row.count = 1;
        try check(c.etude_runtime_set_option(runtime.handle, &row, 1, head(report)));
    }
    /// The process-wide value of a key, or its default. A string is copied to `buffer`, and must fit.
    pub fn option(runtime: Runtime, backend: [:0]const u8, key: []const u8, buffer: []u8, report: ?*Report) Error!OptionValue {
        var item = try Option.named(key, report);
        try check(c.etude_runtime_get_option(runtime.handle, backend.ptr, &item, head(report)));
        switch (item.type) {
            c.ETUDE_OPTION_BOOL => return .{ .bool = item.value.bool_value },
            c.ETUDE_OPTION_INT => return .{ .int = item.value.int_value },
            else => {
                const text = std.mem.sliceTo(&item.value.string, 0);
                if (text.len > buffer.len) return fail(report, Error.OutOfResources, "the option's value is longer than the buffer");
                @memcpy(buffer[0..text.len], text);
                return .{ .string = buffer[0..text.len] };
            },
        }
    }
};

/// A `.pte` file and its data files.
pub const Program = struct {
    handle: *c.etude_program,

    pub const Settings = struct {
        /// Paths of `.ptd` files.
        data_files: []const [:0]const u8 = &.{},
        /// Load-time options of every method that is loaded from the program.
        options: []const BackendOptions = &.{},
        /// Check every method when the program is opened, not only when it is loaded.
        verify: bool = false,
    };

    /// Open a file. `allocator` serves for the call.
    pub fn open(allocator: Allocator, runtime: Runtime, path: [:0]const u8, settings: Settings, report: ?*Report) Error!Program {
        var arena: std.heap.ArenaAllocator = .init(allocator);
        defer arena.deinit();
        var loader = try openFile(path, report);
        errdefer close(&loader);
        return finish(arena.allocator(), runtime, &loader, settings, false, report);
    }
    /// Over the bytes of a file, which are copied. `allocator` serves for the call.
    pub fn fromBytes(allocator: Allocator, runtime: Runtime, bytes: []const u8, settings: Settings, report: ?*Report) Error!Program {
        var arena: std.heap.ArenaAllocator = .init(allocator);
        defer arena.deinit();
        const loader = c.etude_data_from_memory(bytes.ptr, bytes.len);
        return finish(arena.allocator(), runtime, &loader, settings, true, report);
    }
    /// End the program; its methods must have ended.
    pub fn deinit(program: Program) void {
        c.etude_program_free(program.handle);
    }

    /// Name of method `index`, null beyond the last. Lives as long as the program.
    pub fn methodName(program: Program, index: u32) ?[:0]const u8 {
        const name = c.etude_program_method_name(program.handle, index);
        return if (name == null) null else std.mem.span(name);
    }

    /// Load a method. `allocator` also holds what `Method.setInputs` needs, until the method ends.
    pub fn load(program: Program, allocator: Allocator, name: [:0]const u8, settings: Method.Settings, report: ?*Report) Error!Method {
        var arena: std.heap.ArenaAllocator = .init(allocator);
        defer arena.deinit();
        const rows = try optionRows(arena.allocator(), settings.options, report);
        var config = std.mem.zeroes(c.etude_method_config);
        config.struct_size = @sizeOf(c.etude_method_config);
        config.backend_options = rows.ptr;
        config.backend_options_count = @intCast(rows.len);
        config.memory_limit = settings.memory_limit;
        config.constant_limit = settings.constant_limit;
        var handle: ?*c.etude_method = null;
        try check(c.etude_method_load(program.handle, name.ptr, &config, &handle, head(report)));
        errdefer c.etude_method_free(handle);
        const count = c.etude_method_input_count(handle);
        const tensors = try allocator.alloc(c.etude_tensor, count);
        errdefer allocator.free(tensors);
        const values = try allocator.alloc(c.etude_value, count);
        return .{ .handle = handle.?, .allocator = allocator, .tensors = tensors, .values = values };
    }

    fn openFile(path: [:0]const u8, report: ?*Report) Error!c.etude_data_loader {
        var loader: c.etude_data_loader = undefined;
        try check(c.etude_data_from_file(path.ptr, c.ETUDE_FILE_MAP, &loader, head(report)));
        return loader;
    }
    fn close(loader: *const c.etude_data_loader) void {
        if (loader.close) |function| function(loader.self);
    }
    fn finish(arena: Allocator, runtime: Runtime, loader: *const c.etude_data_loader, settings: Settings, copy: bool, report: ?*Report) Error!Program {
        const external = try arena.alloc(c.etude_data_loader, settings.data_files.len);
        var opened: usize = 0;
        errdefer for (external[0..opened]) |*one| close(one);
        for (settings.data_files) |path| {
            external[opened] = try openFile(path, report);
            opened += 1;
        }
        const rows = try optionRows(arena, settings.options, report);
        var config = std.mem.zeroes(c.etude_program_config);
        config.struct_size = @sizeOf(c.etude_program_config);
        config.verification = if (settings.verify) c.ETUDE_VERIFY_INTERNAL_CONSISTENCY else c.ETUDE_VERIFY_MINIMAL;
        config.external = external.ptr;
        config.external_count = @intCast(external.len);
        config.backend_options = rows.ptr;
        config.backend_options_count = @intCast(rows.len);
        config.copy = copy;
        var handle: ?*c.etude_program = null;
        try check(c.etude_program_load(runtime.handle, loader, &config, &handle, head(report)));
        return .{ .handle = handle.? };
    }
};

/// A function of a program, loaded, with memory of its own.
pub const Method = struct {
    handle: *c.etude_method,
    allocator: Allocator,
    tensors: []c.etude_tensor, // one for each input, for setInputs
    values: []c.etude_value,

    pub const Settings = struct {
        /// Load-time options: they override, key by key, those of the program.
        options: []const BackendOptions = &.{},
        /// Most bytes of memory that the file may ask for. 0 = 1 GiB.
        memory_limit: u64 = 0,
        /// Most bytes that may be kept so that what never changes is computed, and weights are packed, once, at load. 0 = none.
        constant_limit: u64 = 0,
    };

    /// End the method, and with it what `output` returned.
    pub fn deinit(method: *Method) void {
        c.etude_method_free(method.handle);
        method.allocator.free(method.tensors);
        method.allocator.free(method.values);
        method.* = undefined;
    }

    pub fn inputCount(method: *const Method) u32 {
        return c.etude_method_input_count(method.handle);
    }
    pub fn outputCount(method: *const Method) u32 {
        return c.etude_method_output_count(method.handle);
    }

    /// Set all inputs, or none of them. Elements are borrowed until they are set again or the method ends.
    pub fn setInputs(method: *Method, inputs: []const Value, report: ?*Report) Error!void {
        if (inputs.len != method.values.len) {
            _ = c.etude_error_set(head(report), c.ETUDE_INVALID_ARGUMENT, "method '%s' takes %z inputs, not %z", c.etude_method_name(method.handle), method.values.len, inputs.len);
            return Error.InvalidArgument;
        }
        for (inputs, method.values, method.tensors) |input, *value, *tensor| value.* = try input.toC(tensor, report);
        try check(c.etude_method_set_inputs(method.handle, method.values.ptr, @intCast(method.values.len), head(report)));
    }
    /// Run the method from its first instruction to its last.
    pub fn execute(method: *Method, report: ?*Report) Error!void {
        try check(c.etude_method_execute(method.handle, head(report)));
    }
    /// Set the inputs and execute.
    pub fn run(method: *Method, inputs: []const Value, report: ?*Report) Error!void {
        try method.setInputs(inputs, report);
        try method.execute(report);
    }
    /// Output `index` of the last execution: a view, until the method runs again or an input is set.
    pub fn output(method: *const Method, index: u32, report: ?*Report) Error!Value {
        var form: c.etude_value = undefined;
        try check(c.etude_method_get_output(method.handle, index, &form, head(report)));
        return .fromC(form);
    }
    /// End the execution that goes on in another thread with `error.Cancelled`; where there is none, the next one.
    pub fn cancel(method: *const Method) void {
        c.etude_method_cancel(method.handle);
    }
    /// Take all state (mutable buffers) back to what it held when the program was loaded.
    pub fn resetState(method: *Method, report: ?*Report) Error!void {
        try check(c.etude_method_reset_state(method.handle, std.math.maxInt(u32), head(report)));
    }
};
