//! What the corpus does not say of this binding.
const std = @import("std");
const etude = @import("etude");
const testing = std.testing;

// out = x + y, both (2, 3) of float
const add = @embedFile("corpus/add.pte");

fn opened(runtime: etude.Runtime) !etude.Program {
    return etude.Program.fromBytes(testing.allocator, runtime, add, .{}, null);
}

test "outputs are views with sizes, and elements of their type alone" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, &report);
    defer runtime.deinit();
    const program = try opened(runtime);
    defer program.deinit();
    try testing.expectEqualStrings("forward", program.methodName(0).?);
    try testing.expectEqual(null, program.methodName(1));
    var forward = try program.load(testing.allocator, "forward", .{}, &report);
    defer forward.deinit();
    const x = [_]f32{ 1, 2, 3, 4, 5, 6 };
    const input: etude.Value = .{ .tensor = try .of(f32, &x, &.{ 2, 3 }, &report) };
    try forward.run(&.{ input, input }, &report);
    const y = (try forward.output(0, &report)).tensor;
    try testing.expectEqualSlices(i32, &.{ 2, 3 }, y.sizes);
    try testing.expect(y.isContiguous());
    try testing.expectEqualSlices(f32, &.{ 2, 4, 6, 8, 10, 12 }, try y.items(f32, &report));
    try testing.expectError(error.InvalidType, y.items(i32, &report));
    try testing.expectEqualStrings("the tensor holds float, not int", report.message());
    try testing.expectError(error.InvalidArgument, forward.output(1, &report));
}

test "a refused call says why, and changes nothing" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, &report);
    defer runtime.deinit();
    const program = try opened(runtime);
    defer program.deinit();
    var forward = try program.load(testing.allocator, "forward", .{}, &report);
    defer forward.deinit();
    const x: [6]f32 = @splat(1);
    const input: etude.Value = .{ .tensor = try .of(f32, &x, &.{ 2, 3 }, null) };
    try testing.expectError(error.InvalidArgument, forward.run(&.{input}, &report));
    try testing.expectEqualStrings("method 'forward' takes 2 inputs, 1 were given", report.message());
    try testing.expectError(error.InvalidArgument, etude.Tensor.of(f32, &x, &.{ 2, 2 }, &report));
    try testing.expectError(error.InvalidArgument, etude.Tensor.of(f32, &x, &.{ -2, -3 }, &report));
    const doubles: [6]f64 = @splat(1);
    try testing.expectError(error.InvalidArgument, forward.setInputs(&.{ input, .{ .tensor = try .of(f64, &doubles, &.{ 2, 3 }, null) } }, &report));
    try testing.expect(std.mem.indexOf(u8, report.message(), "double") != null);
    try testing.expectError(error.InvalidType, forward.setInputs(&.{ input, .{ .int = 1 } }, &report));
    try forward.run(&.{ input, input }, &report);
    forward.cancel();
    try testing.expectError(error.Cancelled, forward.execute(&report));
    try forward.run(&.{ input, input }, null);
}

test "memory of the caller's that runs out is an error, and nothing leaks" {
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    const options: []const etude.BackendOptions = &.{.{ .backend = "XnnpackBackend", .items = &.{.{ .key = "workspace_sharing_mode", .value = .{ .int = 1 } }} }};
    try testing.checkAllAllocationFailures(testing.allocator, struct {
        fn go(allocator: std.mem.Allocator, of: etude.Runtime, with: []const etude.BackendOptions) !void {
            try of.setOptions(allocator, with, null);
            const program = try etude.Program.fromBytes(allocator, of, add, .{}, null);
            defer program.deinit();
            var forward = try program.load(allocator, "forward", .{}, null);
            forward.deinit();
        }
    }.go, .{ runtime, options });
}

test "options: all or none, by name of what is at fault" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, &report);
    defer runtime.deinit();
    var buffer: [8]u8 = undefined;
    const before = try runtime.option("XnnpackBackend", "workspace_sharing_mode", &buffer, &report);
    try testing.expectError(error.NotFound, runtime.setOptions(testing.allocator, &.{
        .{ .backend = "XnnpackBackend", .items = &.{.{ .key = "workspace_sharing_mode", .value = .{ .int = before.int ^ 1 } }} },
        .{ .backend = "NoBackend", .items = &.{.{ .key = "key", .value = .{ .bool = true } }} },
    }, &report));
    try testing.expectEqualStrings("NoBackend", report.subject());
    try testing.expectEqual(before, try runtime.option("XnnpackBackend", "workspace_sharing_mode", &buffer, &report));
    try testing.expectError(error.InvalidArgument, runtime.setOption("XnnpackBackend", &@as([64:0]u8, @splat('k')), .{ .int = 1 }, &report));
    try testing.expectError(error.InvalidArgument, runtime.setOption("XnnpackBackend", "key", .{ .string = "a\x00b" }, &report));
}

test "a program describes its methods" {
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    const program = try opened(runtime);
    defer program.deinit();
    const info = try program.method("forward", null);
    try testing.expectEqual(2, info.counts.input_count);
    const y = try info.input(1, null);
    try testing.expectEqual(etude.ScalarType.float32, y.scalarType());
    try testing.expectEqualSlices(i32, &.{ 2, 3 }, y.sizes());
    try testing.expect(!y.isDynamic() and y.name() == null and y.constant() == .none);
    var buffer: [128]u8 = undefined;
    try testing.expectEqualStrings("aten::add.out", try info.operator(0, &buffer, null));
    try testing.expectEqual(null, try info.missingOperator(0, &buffer, null));
    try testing.expectEqual((try info.memory(null)).planned, try info.bufferSize(0, null));
    try testing.expectError(error.InvalidArgument, info.output(1, null));
}

fn stop(count: ?*anyopaque) callconv(.c) bool {
    const asked: *u32 = @ptrCast(@alignCast(count));
    asked.* += 1;
    return true;
}

test "a method is profiled, limited and interrupted" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    const program = try opened(runtime);
    defer program.deinit();
    var forward = try program.load(testing.allocator, "forward", .{ .work_limit = 1000 }, null);
    defer forward.deinit();
    const x: [6]f32 = @splat(1);
    const input: etude.Value = .{ .tensor = try .of(f32, &x, &.{ 2, 3 }, null) };
    var rows: [8]etude.c.etude_profile_row = undefined;
    const told = try forward.profile(&.{ input, input }, &rows, null);
    try testing.expectEqual(1, told.len);
    try testing.expectEqualStrings("aten::add.out", std.mem.span(told[0].name));
    try testing.expectEqual(72, told[0].bytes);
    var asked: u32 = 0;
    forward.setInterrupt(stop, &asked);
    if (forward.execute(&report)) |_| try testing.expectEqual(0, asked) else |err| try testing.expectEqual(error.Cancelled, err);
    forward.setInterrupt(null, null);
    try forward.execute(&report);
    var limited = try program.load(testing.allocator, "forward", .{ .work_limit = 10 }, null);
    defer limited.deinit();
    try testing.expectError(error.InvalidProgram, limited.run(&.{ input, input }, &report));
    try testing.expect(std.mem.indexOf(u8, report.message(), "work_limit") != null);
}

test "state is seen in place, written and reset" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    const program = try etude.Program.fromBytes(testing.allocator, runtime, @embedFile("corpus/shared_state.pte"), .{}, null);
    defer program.deinit();
    var put = try program.load(testing.allocator, "put", .{}, null);
    defer put.deinit();
    const name = put.stateName(0).?;
    try testing.expectEqual(null, put.stateName(put.stateCount()));
    const before = try testing.allocator.dupe(u8, (try put.state(name, null)).bytes);
    defer testing.allocator.free(before);
    try put.run(&.{
        .{ .tensor = try .of(f32, &.{ 1, 2, 3 }, &.{ 1, 3 }, null) },
        .{ .tensor = try .of(i64, &.{2}, &.{1}, null) },
    }, null);
    try testing.expect(!std.mem.eql(u8, before, (try put.state(name, null)).bytes));
    try put.resetState(name, null);
    try testing.expectEqualSlices(u8, before, (try put.state(name, null)).bytes);
    try put.writeState(name, before, null);
    try testing.expectError(error.InvalidArgument, put.writeState(name, before[1..], null));
    try testing.expectError(error.NotFound, put.resetState("none", &report));
    try testing.expect(std.mem.indexOf(u8, report.message(), name) != null);
}

/// A backend by the interface of C: multiplies a float tensor by a number that is an option.
const Scale = struct {
    factor: i64,

    const c = etude.c;
    const schema = [_]c.etude_option_schema{blk: {
        var row = std.mem.zeroes(c.etude_option_schema);
        row.key = "factor";
        row.help = "what is multiplied by";
        row.type = c.ETUDE_OPTION_INT;
        row.scopes = c.ETUDE_SCOPE_BOTH;
        row.default_value = 2;
        break :blk row;
    }};
    const vtable: c.etude_backend = blk: {
        var table = std.mem.zeroes(c.etude_backend);
        table.struct_size = @sizeOf(c.etude_backend);
        table.abi_version = c.ETUDE_ABI_VERSION;
        table.init = init;
        table.execute = execute;
        table.destroy = destroy;
        table.option_schema = options;
        break :blk table;
    };

    fn init(_: ?*anyopaque, ctx: ?*c.etude_init_context, payload: c.etude_bytes, out: ?*?*anyopaque, report: ?*c.etude_error) callconv(.c) c.etude_status {
        if (payload.size == 0) return c.etude_error_set(report, c.ETUDE_DELEGATE_INCOMPATIBLE, "there is no payload");
        const scale = testing.allocator.create(Scale) catch return c.etude_error_set(report, c.ETUDE_OUT_OF_MEMORY, "no memory");
        out.?.* = scale;
        return c.etude_init_context_option_int(ctx, "factor", &scale.factor, report);
    }
    fn execute(_: ?*anyopaque, ctx: ?*c.etude_execute_context, handle: ?*anyopaque, args: [*c]const [*c]c.etude_value, count: u32, report: ?*c.etude_error) callconv(.c) c.etude_status {
        const scale: *Scale = @ptrCast(@alignCast(handle));
        if (count != 2) return c.etude_error_set(report, c.ETUDE_INVALID_ARGUMENT, "expected 2 arguments, got %u", count);
        const from = args[0].*.as.tensor;
        const to = args[1].*.as.tensor;
        const status = c.etude_execute_context_resize(ctx, to, from.*.sizes, from.*.rank, report);
        if (status != c.ETUDE_OK) return status;
        const x: [*]const f32 = @ptrCast(@alignCast(from.*.data));
        const y: [*]f32 = @ptrCast(@alignCast(to.*.data));
        for (0..c.etude_tensor_numel(from)) |i| y[i] = x[i] * @as(f32, @floatFromInt(scale.factor));
        return c.ETUDE_OK;
    }
    fn destroy(_: ?*anyopaque, handle: ?*anyopaque) callconv(.c) void {
        const scale: *Scale = @ptrCast(@alignCast(handle));
        testing.allocator.destroy(scale);
    }
    fn options(_: ?*anyopaque, out_count: [*c]u32) callconv(.c) [*c]const c.etude_option_schema {
        out_count.* = schema.len;
        return &schema;
    }
};

test "a backend in Zig" {
    var report: etude.Report = .init;
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    try etude.check(etude.c.etude_runtime_register_backend(runtime.handle, "ScaleBackend", &Scale.vtable, null, &report.head));
    const program = try etude.Program.borrow(testing.allocator, runtime, @embedFile("data/backends.pte"), .{}, &report);
    defer program.deinit();
    try testing.expectEqualStrings("ScaleBackend", try (try program.method("scale", null)).delegate(0, null));
    const options: []const etude.BackendOptions = &.{.{ .backend = "ScaleBackend", .items = &.{.{ .key = "factor", .value = .{ .int = -3 } }} }};
    var scale = try program.load(testing.allocator, "scale", .{ .options = options }, &report);
    defer scale.deinit();
    const x = [_]f32{ 1, 2, 3, 4, 5, 6 };
    try scale.run(&.{.{ .tensor = try .of(f32, &x, &.{ 2, 3 }, null) }}, &report);
    try testing.expectEqualSlices(f32, &.{ -3, -6, -9, -12, -15, -18 }, try (try scale.output(0, null)).tensor.items(f32, null));
    try runtime.setOption("ScaleBackend", "factor", .{ .int = 5 }, null);
    var other = try program.load(testing.allocator, "scale", .{}, &report);
    defer other.deinit();
    try other.run(&.{.{ .tensor = try .of(f32, &x, &.{ 2, 3 }, null) }}, &report);
    try testing.expectEqual(5, (try (try other.output(0, null)).tensor.items(f32, null))[0]);
}

test "options are listed and explained" {
    const runtime = try etude.Runtime.init(1, null);
    defer runtime.deinit();
    const schema = try runtime.optionSchema("XnnpackBackend", null);
    try testing.expectEqualStrings("workspace_sharing_mode", std.mem.span(schema[0].key));
    try testing.expectEqual(2, schema[0].maximum);
    try runtime.setOption("XnnpackBackend", "workspace_sharing_mode", .{ .int = 0 }, null);
    const program = try opened(runtime);
    defer program.deinit();
    var forward = try program.load(testing.allocator, "forward", .{}, null);
    defer forward.deinit();
    const told = try forward.explainOption("XnnpackBackend", "workspace_sharing_mode", null);
    try testing.expectEqual(etude.c.ETUDE_ORIGIN_PROCESS, told.winner);
    try testing.expectEqual(0, told.values[etude.c.ETUDE_ORIGIN_PROCESS].int_value);
    try runtime.resetOptions("XnnpackBackend", "workspace_sharing_mode", null);
    try testing.expectEqual(schema[0].default_value, (try runtime.option("XnnpackBackend", "workspace_sharing_mode", &.{}, null)).int);
}

fn errorName(status: usize) []const u8 {
    etude.check(@intCast(status)) catch |err| return @errorName(err);
    return "";
}

test "every status that the library names is an error of its own" {
    try testing.expectEqualStrings("", errorName(etude.c.ETUDE_OK));
    for (1..0x80) |status| {
        const known = !std.mem.eql(u8, "Unknown", std.mem.span(etude.c.etude_status_name(@intCast(status))));
        // TooManyKernels is kept for numbering, and never returned
        const expected = known and status != etude.c.ETUDE_TOO_MANY_KERNELS;
        try testing.expectEqual(expected, !std.mem.eql(u8, "Unknown", errorName(status)));
        for (1..status) |other| {
            if (expected) try testing.expect(!std.mem.eql(u8, errorName(other), errorName(status)));
        }
    }
}

test "layouts and constants are those of C" {
    if (@sizeOf(usize) != 8) return error.SkipZigTest;
    @setEvalBranchQuota(1_000_000);
    comptime var checked = 0;
    comptime var lines = std.mem.tokenizeScalar(u8, @embedFile("abi/layout64.txt"), '\n');
    inline while (comptime lines.next()) |line| {
        const space = comptime std.mem.indexOfScalar(u8, line, ' ').?;
        const name = line[0..space];
        const number = comptime std.fmt.parseInt(u64, line[space + 1 ..], 10) catch unreachable;
        const dot = comptime std.mem.indexOfScalar(u8, name, '.') orelse name.len;
        // plugins are written in C: their header is not translated
        if (comptime std.mem.startsWith(u8, name, "etude_host_api") or std.mem.startsWith(u8, name, "etude_plugin")) continue;
        const meant = @field(etude.c, name[0..dot]);
        const of_union = comptime @TypeOf(meant) == type and @typeInfo(meant) == .@"union";
        const got = if (dot < name.len) (if (of_union) 0 else @offsetOf(meant, name[dot + 1 ..])) else if (@TypeOf(meant) == type) @sizeOf(meant) else meant;
        if (got != number) {
            std.debug.print("{s} is {d} in C, {d} here\n", .{ name, number, got });
            return error.TestUnexpectedResult;
        }
        checked += 1;
    }
    try testing.expect(checked > 300);
}

test "every function is declared" {
    @setEvalBranchQuota(1_000_000);
    comptime var lines = std.mem.tokenizeScalar(u8, @embedFile("tools/symbols.txt"), '\n');
    inline while (comptime lines.next()) |name| {
        if (!@hasDecl(etude.c, name)) {
            std.debug.print("{s} is not declared: run translate.py\n", .{name});
            return error.TestUnexpectedResult;
        }
    }
}
