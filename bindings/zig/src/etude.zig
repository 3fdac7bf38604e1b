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
        if (sizes.len > c.ETUDE_MAX_RANK) return fail(report, Error.NotSupported, "a tensor has at most 16 dimensions");
        for (sizes) |size| {
            const factor = std.math.cast(usize, size) orelse return fail(report, Error.InvalidArgument, "a tensor can't have a negative size");
            count = std.math.mul(usize, count, factor) catch return fail(report, Error.InvalidArgument, "the sizes are beyond all memory");
        }
        if (count != elements.len) {
            _ = c.etude_error_set(head(report), c.ETUDE_INVALID_ARGUMENT, "%z elements do not fill a tensor of sizes %D", elements.len, sizes.ptr, @as(u32, @intCast(sizes.len)));
            return Error.InvalidArgument;
        }
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
    string: [:0]const u8,

    fn fromC(kind: i32, value: *const c.etude_option_value, buffer: []u8, report: ?*Report) Error!OptionValue {
        switch (kind) {
            c.ETUDE_OPTION_BOOL => return .{ .bool = value.bool_value },
            c.ETUDE_OPTION_INT => return .{ .int = value.int_value },
            else => {
                const text = std.mem.sliceTo(&value.string, 0);
                if (text.len >= buffer.len) return fail(report, Error.OutOfResources, "the option's value is longer than the buffer");
                @memcpy(buffer[0..text.len], text);
                buffer[text.len] = 0;
                return .{ .string = buffer[0..text.len :0] };
            },
        }
    }
};

/// A key and its value.
pub const Option = struct {
    key: [:0]const u8,
    value: OptionValue,

    fn toC(option: Option, report: ?*Report) Error!c.etude_option {
        var form = std.mem.zeroes(c.etude_option);
        var list: c.etude_options = undefined;
        c.etude_options_init(&list, &form, 1);
        const key = try plain(option.key, "the key has a NUL inside", report);
        try check(switch (option.value) {
            .bool => |truth| c.etude_options_add_bool(&list, key, truth, head(report)),
            .int => |number| c.etude_options_add_int(&list, key, number, head(report)),
            .string => |text| c.etude_options_add_string(&list, key, try plain(text, "the value has a NUL inside", report), head(report)),
        });
        return form;
    }
};

/// Options of one backend: `.{ .backend = "XnnpackBackend", .items = &.{.{ .key = "num_threads", .value = .{ .int = 1 } }} }`.
pub const BackendOptions = struct {
    backend: [:0]const u8,
    items: []const Option,

    /// The form of C, whose options are `items`.
    fn toC(options: BackendOptions, items: []c.etude_option, report: ?*Report) Error!c.etude_backend_options {
        for (items, options.items) |*item, option| item.* = try option.toC(report);
        const list: c.etude_options = .{ .items = items.ptr, .count = @intCast(items.len), .capacity = @intCast(items.len) };
        var row = std.mem.zeroes(c.etude_backend_options);
        const name = try plain(options.backend, "the backend's name has a NUL inside", report);
        try check(c.etude_backend_options_init(&row, name, &list, head(report)));
        return row;
    }
};

/// A text for C, which must not have its end inside.
fn plain(text: [:0]const u8, sentence: [*:0]const u8, report: ?*Report) Error![*:0]const u8 {
    if (std.mem.indexOfScalar(u8, text, 0) != null) return fail(report, Error.InvalidArgument, sentence);
    return text.ptr;
}

/// Options in the form of C, as long as `arena` lives.
fn optionRows(arena: Allocator, options: []const BackendOptions, report: ?*Report) Error![]const c.etude_backend_options {
    const rows = try arena.alloc(c.etude_backend_options, options.len);
    for (rows, options) |*row, from| row.* = try from.toC(try arena.alloc(c.etude_option, from.items.len), report);
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
    pub fn setOption(runtime: Runtime, backend: [:0]const u8, key: [:0]const u8, value: OptionValue, report: ?*Report) Error!void {
        var items: [1]c.etude_option = undefined;
        const options: BackendOptions = .{ .backend = backend, .items = &.{.{ .key = key, .value = value }} };
        const row = try options.toC(&items, report);
        try check(c.etude_runtime_set_option(runtime.handle, &row, 1, head(report)));
    }
    /// The process-wide value of a key, or its default. A string is copied to `buffer`; 256 bytes are always enough.
    pub fn option(runtime: Runtime, backend: [:0]const u8, key: [:0]const u8, buffer: []u8, report: ?*Report) Error!OptionValue {
        var item = try (Option{ .key = key, .value = .{ .bool = false } }).toC(report);
        try check(c.etude_runtime_get_option(runtime.handle, backend.ptr, &item, head(report)));
        return OptionValue.fromC(item.type, &item.value, buffer, report);
    }
    /// Take a key of a backend back to its default; null takes all of them.
    pub fn resetOptions(runtime: Runtime, backend: [:0]const u8, key: ?[:0]const u8, report: ?*Report) Error!void {
        try check(c.etude_runtime_reset_option(runtime.handle, backend.ptr, if (key) |text| text.ptr else null, head(report)));
    }
    /// The options that a backend understands, in the form of C. They live until the backend is unregistered.
    pub fn optionSchema(runtime: Runtime, backend: [:0]const u8, report: ?*Report) Error![]const c.etude_option_schema {
        var first: ?[*]const c.etude_option_schema = null;
        var count: u32 = 0;
        try check(c.etude_runtime_option_schema(runtime.handle, backend.ptr, @ptrCast(&first), &count, head(report)));
        return if (first) |rows| rows[0..count] else &.{};
    }
};

/// What a program says of an input or output.
pub const ValueInfo = struct {
    info: c.etude_value_info,

    /// Its kind: a `c.ETUDE_VALUE_`.
    pub fn kind(value: *const ValueInfo) i32 {
        return value.info.tag;
    }
    /// Type of a tensor's elements.
    pub fn scalarType(value: *const ValueInfo) ScalarType {
        return @fromBackingInt(@intCast(value.info.scalar_type));
    }
    /// Sizes of a tensor, at their largest.
    pub fn sizes(value: *const ValueInfo) []const i32 {
        return value.info.sizes[0..value.info.rank];
    }
    /// Sizes of a tensor may be smaller.
    pub fn isDynamic(value: *const ValueInfo) bool {
        return value.info.flags & c.ETUDE_TENSOR_DYNAMIC != 0;
    }
    /// Fully qualified name, if it has one. Lives as long as the program.
    pub fn name(value: *const ValueInfo) ?[:0]const u8 {
        return if (value.info.name == null) null else std.mem.span(value.info.name);
    }
    /// Int, Double, Bool, String: the value in the file; none for others.
    pub fn constant(value: *const ValueInfo) Value {
        return switch (value.info.tag) {
            c.ETUDE_VALUE_INT, c.ETUDE_VALUE_DOUBLE, c.ETUDE_VALUE_BOOL, c.ETUDE_VALUE_STRING => .fromC(value.info.constant),
            else => .none,
        };
    }
};

/// What a program says of a method, without loading it. Lives as long as the program.
pub const MethodInfo = struct {
    program: Program,
    index: u32,
    /// Numbers of inputs, outputs, instructions, operators, delegates, planned buffers.
    counts: c.etude_method_info,

    pub fn input(method: MethodInfo, index: u32, report: ?*Report) Error!ValueInfo {
        var value = sized(c.etude_value_info);
        try check(c.etude_program_input_info(method.program.handle, method.index, index, &value, head(report)));
        return .{ .info = value };
    }
    pub fn output(method: MethodInfo, index: u32, report: ?*Report) Error!ValueInfo {
        var value = sized(c.etude_value_info);
        try check(c.etude_program_output_info(method.program.handle, method.index, index, &value, head(report)));
        return .{ .info = value };
    }
    /// Name with overload of an operator, written to `buffer`; 128 bytes are always enough.
    pub fn operator(method: MethodInfo, index: u32, buffer: []u8, report: ?*Report) Error![]const u8 {
        try check(c.etude_program_operator_name(method.program.handle, method.index, index, buffer.ptr, buffer.len, head(report)));
        return std.mem.sliceTo(buffer, 0);
    }
    /// Operator, with dtypes, number `index` of those that this build has no kernel for; null beyond the last.
    pub fn missingOperator(method: MethodInfo, index: u32, buffer: []u8, report: ?*Report) Error!?[]const u8 {
        check(c.etude_program_missing_operator(method.program.handle, method.index, index, buffer.ptr, buffer.len, head(report))) catch |err| {
            return if (err == Error.NotFound) null else err;
        };
        return std.mem.sliceTo(buffer, 0);
    }
    /// Name of the backend of a delegate. Lives as long as the program.
    pub fn delegate(method: MethodInfo, index: u32, report: ?*Report) Error![:0]const u8 {
        var name: [*c]const u8 = null;
        try check(c.etude_program_delegate_backend(method.program.handle, method.index, index, &name, head(report)));
        return std.mem.span(name);
    }
    /// Bytes of a planned buffer.
    pub fn bufferSize(method: MethodInfo, index: u32, report: ?*Report) Error!u64 {
        var size: u64 = 0;
        try check(c.etude_program_buffer_size(method.program.handle, method.index, index, &size, head(report)));
        return size;
    }
    /// Bytes that loading and running the method would take, with inputs of the largest sizes.
    pub fn memory(method: MethodInfo, report: ?*Report) Error!c.etude_memory_info {
        var info = sized(c.etude_memory_info);
        try check(c.etude_program_method_memory(method.program.handle, method.index, &info, head(report)));
        return info;
    }
};

/// A struct that the library fills in.
fn sized(comptime T: type) T {
    var info = std.mem.zeroes(T);
    info.struct_size = @sizeOf(T);
    return info;
}

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
    /// Over the bytes of a file, which are read in place and must outlive the program. `allocator` serves for the call.
    pub fn borrow(allocator: Allocator, runtime: Runtime, bytes: []const u8, settings: Settings, report: ?*Report) Error!Program {
        var arena: std.heap.ArenaAllocator = .init(allocator);
        defer arena.deinit();
        const loader = c.etude_data_from_memory(bytes.ptr, bytes.len);
        return finish(arena.allocator(), runtime, &loader, settings, false, report);
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

    /// What the program says of a method, which is not loaded for it. NotFound lists those that exist.
    pub fn method(program: Program, name: [:0]const u8, report: ?*Report) Error!MethodInfo {
        var index: u32 = 0;
        var counts = sized(c.etude_method_info);
        try check(c.etude_program_find_method(program.handle, name.ptr, &index, head(report)));
        try check(c.etude_program_method_info(program.handle, index, &counts, head(report)));
        return .{ .program = program, .index = index, .counts = counts };
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
        config.instruction_limit = settings.instruction_limit;
        config.work_limit = settings.work_limit;
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
        /// Most bytes for what is computed once, at load, as packed weights. 0 = none.
        constant_limit: u64 = 256 << 20,
        /// Most instructions of one execution. 0 = 10,000,000.
        instruction_limit: u64 = 0,
        /// Most work of one execution, in bytes of tensors taken and steps of heavy loops. 0 = 2^41.
        work_limit: u64 = 0,
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
        // of another number they are refused by the library, before it reads them
        if (inputs.len == method.values.len) {
            for (inputs, method.values, method.tensors) |input, *value, *tensor| value.* = try input.toC(tensor, report);
        }
        try check(c.etude_method_set_inputs(method.handle, method.values.ptr, @intCast(inputs.len), head(report)));
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
    /// Ask `interrupted` about every millisecond of an execution, on its thread, whether to end it. Null asks nobody.
    pub fn setInterrupt(method: *Method, interrupted: ?*const fn (?*anyopaque) callconv(.c) bool, context: ?*anyopaque) void {
        c.etude_method_set_interrupt(method.handle, interrupted, context);
    }
    /// Set the inputs, execute, and tell where the time went: instructions and nodes of backends, as many as `rows` has room for.
    pub fn profile(method: *Method, inputs: []const Value, rows: []c.etude_profile_row, report: ?*Report) Error![]const c.etude_profile_row {
        var sums: c.etude_profile = undefined;
        try method.setInputs(inputs, report);
        c.etude_profile_start(&sums, rows.ptr, rows.len, null, 0);
        c.etude_method_set_trace_after(method.handle, c.etude_profile_trace, &sums);
        defer c.etude_method_set_trace(method.handle, null, null);
        try method.execute(report);
        return rows[0..sums.row_count];
    }

    /// Number of state buffers: the mutable buffers of the module.
    pub fn stateCount(method: *const Method) u32 {
        return c.etude_method_state_count(method.handle);
    }
    /// Name of state buffer `index`, null beyond the last. Lives as long as the method.
    pub fn stateName(method: *const Method, index: u32) ?[:0]const u8 {
        var name: [*c]const u8 = null;
        check(c.etude_method_state(method.handle, index, &name, null, null)) catch return null;
        return std.mem.span(name);
    }
    /// A state buffer, in place: a view. NotFound lists those that exist.
    pub fn state(method: *const Method, name: [:0]const u8, report: ?*Report) Error!Tensor {
        var form: c.etude_tensor = undefined;
        try check(c.etude_method_state(method.handle, try method.findState(name, report), null, &form, head(report)));
        return .fromC(&form);
    }
    /// Overwrite a state buffer with as many bytes as it has.
    pub fn writeState(method: *Method, name: [:0]const u8, bytes: []const u8, report: ?*Report) Error!void {
        try check(c.etude_method_write_state(method.handle, try method.findState(name, report), bytes.ptr, bytes.len, head(report)));
    }
    /// Take a state buffer back to what it held when the program was loaded; null takes all of them.
    pub fn resetState(method: *Method, name: ?[:0]const u8, report: ?*Report) Error!void {
        const index = if (name) |text| try method.findState(text, report) else std.math.maxInt(u32);
        try check(c.etude_method_reset_state(method.handle, index, head(report)));
    }
    fn findState(method: *const Method, name: [:0]const u8, report: ?*Report) Error!u32 {
        var index: u32 = 0;
        try check(c.etude_method_find_state(method.handle, name.ptr, &index, head(report)));
        return index;
    }

    /// Start the method's random numbers anew.
    pub fn setSeed(method: *Method, seed: u64) void {
        c.etude_method_set_seed(method.handle, seed);
    }
    /// What the method takes of its memory now, in bytes.
    pub fn memory(method: *const Method) c.etude_memory_info {
        var info = sized(c.etude_memory_info);
        _ = c.etude_method_memory(method.handle, &info);
        return info;
    }
    /// The value of an option as this method sees it, and where it comes from, in the form of C.
    pub fn explainOption(method: *const Method, backend: [:0]const u8, key: [:0]const u8, report: ?*Report) Error!c.etude_option_explanation {
        var told = sized(c.etude_option_explanation);
        try check(c.etude_method_explain_option(method.handle, backend.ptr, key.ptr, &told, head(report)));
        return told;
    }
};
