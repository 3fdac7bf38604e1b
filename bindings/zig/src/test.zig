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
    try testing.expectEqualStrings("method 'forward' takes 2 inputs, not 1", report.message());
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
    try testing.expectError(error.InvalidArgument, runtime.setOption("XnnpackBackend", &@as([64]u8, @splat('k')), .{ .int = 1 }, &report));
    try testing.expectError(error.InvalidArgument, runtime.setOption("XnnpackBackend", "key", .{ .string = "a\x00b" }, &report));
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
