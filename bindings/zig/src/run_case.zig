//! The cases of the corpus: tests/languages/languages.py says what is expected of a runner.
const std = @import("std");
const etude = @import("etude");

/// Reads the format of examples/run_arena.c.
const Reader = struct {
    bytes: []align(16) const u8,
    at: usize = 0,
    arena: std.mem.Allocator,

    fn skip(in: *Reader, size: usize) []const u8 {
        in.at += size;
        return in.bytes[in.at - size .. in.at];
    }
    fn take(in: *Reader, comptime T: type) T {
        return std.mem.bytesToValue(T, in.skip(@sizeOf(T)));
    }
    fn text(in: *Reader) ![:0]const u8 {
        const bytes = in.skip(in.take(u32));
        const own = try in.arena.allocSentinel(u8, bytes.len, 0);
        @memcpy(own, bytes);
        return own;
    }
    fn value(in: *Reader) !etude.Value {
        return switch (in.take(i32)) {
            0 => .none,
            1 => .{ .tensor = try in.tensor() },
            2 => .{ .string = try in.text() },
            3 => .{ .double = in.take(f64) },
            4 => .{ .int = in.take(i64) },
            5 => .{ .bool = in.take(i64) != 0 },
            else => error.UnknownKind,
        };
    }
    fn tensor(in: *Reader) !etude.Tensor {
        const scalar_type: etude.ScalarType = @fromBackingInt(@intCast(in.take(u32)));
        const rank = in.take(u32);
        const sizes = try in.arena.alloc(i32, rank);
        const dim_order = try in.arena.alloc(u8, rank);
        for (sizes) |*size| size.* = in.take(i32);
        for (dim_order) |*dim| dim.* = @intCast(in.take(u32));
        const size = in.take(u32);
        in.at = std.mem.alignForward(usize, in.at, 16);
        return .{ .scalar_type = scalar_type, .sizes = sizes, .dim_order = dim_order, .bytes = in.skip(size) };
    }
};

const Writer = struct {
    out: std.ArrayList(u8) = .empty,
    arena: std.mem.Allocator,

    fn put(to: *Writer, comptime T: type, number: T) !void {
        try to.out.appendSlice(to.arena, std.mem.asBytes(&number));
    }
    fn value(to: *Writer, from: etude.Value) !void {
        switch (from) {
            .none => try to.put(i32, 0),
            .tensor => |tensor| {
                try to.put(i32, 1);
                try to.put(u32, @intCast(@backingInt(tensor.scalar_type)));
                try to.put(u32, @intCast(tensor.sizes.len));
                for (tensor.sizes) |size| try to.put(i32, size);
                for (0..tensor.sizes.len) |i| {
                    try to.put(u32, if (tensor.dim_order.len == 0) @intCast(i) else tensor.dim_order[i]);
                }
                try to.put(u32, @intCast(tensor.bytes.len));
                try to.out.appendNTimes(to.arena, 0, std.mem.alignForward(usize, to.out.items.len, 16) - to.out.items.len);
                try to.out.appendSlice(to.arena, tensor.bytes);
            },
            .string => |text| {
                try to.put(i32, 2);
                try to.put(u32, @intCast(text.len));
                try to.out.appendSlice(to.arena, text);
            },
            .double => |number| {
                try to.put(i32, 3);
                try to.put(f64, number);
            },
            .int => |number| {
                try to.put(i32, 4);
                try to.put(i64, number);
            },
            .bool => |truth| {
                try to.put(i32, 5);
                try to.put(i64, @intFromBool(truth));
            },
            .other => |form| try to.put(i32, form.tag),
        }
    }
};

fn run(init: std.process.Init, args: []const [:0]const u8, report: *etude.Report) !void {
    const arena = init.arena.allocator();
    const runtime = try etude.Runtime.init(2, report);
    defer runtime.deinit();
    const program = try etude.Program.open(init.gpa, runtime, args[0], .{ .data_files = args[3..] }, report);
    defer program.deinit();
    var methods: std.StringHashMapUnmanaged(etude.Method) = .empty;
    defer {
        var all = methods.valueIterator();
        while (all.next()) |method| method.deinit();
        methods.deinit(init.gpa);
    }
    const calls = try std.Io.Dir.cwd().readFileAllocOptions(init.io, args[1], arena, .unlimited, .@"16", null);
    var in: Reader = .{ .bytes = calls, .arena = arena };
    var out: Writer = .{ .arena = arena };
    for (0..in.take(u32)) |_| {
        const name = try in.text();
        const found = try methods.getOrPut(init.gpa, name);
        if (!found.found_existing) {
            errdefer _ = methods.remove(name);
            found.value_ptr.* = try program.load(init.gpa, name, .{}, report);
        }
        const method = found.value_ptr;
        const inputs = try arena.alloc(etude.Value, in.take(u32));
        for (inputs) |*input| input.* = try in.value();
        try method.run(inputs, report);
        try out.put(u32, method.outputCount());
        for (0..method.outputCount()) |i| try out.value(try method.output(@intCast(i), report));
    }
    try std.Io.Dir.cwd().writeFile(init.io, .{ .sub_path = args[2], .data = out.out.items });
}

/// The steps of `--errors`, each with the line that it prints.
const Steps = struct {
    gpa: std.mem.Allocator,
    out: *std.Io.Writer,
    report: *etude.Report,

    fn attempt(steps: Steps, what: []const u8, result: anyerror!void) !void {
        if (result) |_| {
            try steps.out.print("{s}: ok\n", .{what});
        } else |err| {
            if (err == error.Unknown) return err;
            const name = etude.c.etude_status_name(steps.report.status());
            try steps.out.print("{s}: {s} '{s}' {s}\n", .{ what, name, steps.report.subject(), steps.report.message() });
        }
    }
    fn get(steps: Steps, runtime: etude.Runtime, backend: [:0]const u8, key: [:0]const u8) !void {
        const value = try runtime.option(backend, key, &.{}, steps.report);
        try steps.out.print("get: {d}\n", .{value.int});
    }
    fn load(steps: Steps, program: etude.Program, name: [:0]const u8, settings: etude.Method.Settings) !void {
        var method = try program.load(steps.gpa, name, settings, steps.report);
        method.deinit();
    }
    fn open(steps: Steps, opened: etude.Error!etude.Program) !void {
        const program = try opened;
        defer program.deinit();
        try steps.load(program, "forward", .{});
    }
    /// Whether a call that gives something fails.
    fn nothing(result: anytype) etude.Error!void {
        _ = try result;
    }
    fn option(comptime backend: [:0]const u8, comptime key: [:0]const u8, comptime value: i64) []const etude.BackendOptions {
        return &.{.{ .backend = backend, .items = &.{.{ .key = key, .value = .{ .int = value } }} }};
    }

    fn all(steps: Steps, init: std.process.Init, model: [:0]const u8) !void {
        const xnn = "XnnpackBackend";
        const mode = "workspace_sharing_mode";
        const report = steps.report;
        const runtime = try etude.Runtime.init(1, report);
        defer runtime.deinit();
        try steps.attempt("set", runtime.setOption(xnn, mode, .{ .int = 1 }, report));
        try steps.get(runtime, xnn, mode);
        try steps.attempt("set out of range", runtime.setOption(xnn, mode, .{ .int = 3 }, report));
        try steps.attempt("set of wrong type", runtime.setOption(xnn, mode, .{ .string = "one" }, report));
        try steps.attempt("set unknown key", runtime.setOption(xnn, "workspace_mode", .{ .int = 1 }, report));
        try steps.attempt("set unknown backend", runtime.setOption("XnnBackend", mode, .{ .int = 1 }, report));
        try steps.attempt("set with one unknown", runtime.setOptions(steps.gpa, &.{.{ .backend = xnn, .items = &.{
            .{ .key = mode, .value = .{ .int = 2 } },
            .{ .key = "none", .value = .{ .bool = true } },
        } }}, report));
        try steps.attempt("set long key", runtime.setOption(xnn, &@as([64:0]u8, @splat('k')), .{ .int = 1 }, report));
        try steps.attempt("set empty key", runtime.setOption(xnn, "", .{ .int = 1 }, report));
        try steps.attempt("get unknown key", nothing(runtime.option(xnn, "workspace_mode", &.{}, report)));
        try steps.attempt("reset unknown key", runtime.resetOptions(xnn, "workspace_mode", report));
        try steps.attempt("schema of unknown backend", nothing(runtime.optionSchema("XnnBackend", report)));
        try steps.get(runtime, xnn, mode);
        try steps.attempt("reset", runtime.resetOptions(xnn, null, report));
        try steps.get(runtime, xnn, mode);
        const program = try etude.Program.open(steps.gpa, runtime, model, .{}, report);
        defer program.deinit();
        try steps.attempt("load", steps.load(program, "forward", .{ .options = option(xnn, mode, 0) }));
        try steps.attempt("load out of range", steps.load(program, "forward", .{ .options = option(xnn, mode, 3) }));
        try steps.attempt("load unused option", steps.load(program, "forward", .{ .options = option("NullBackend", "key", 1) }));
        try steps.attempt("load unknown method", steps.load(program, "backward", .{}));
        try steps.attempt("load within 100 bytes", steps.load(program, "forward", .{ .constant_limit = 0, .memory_limit = 100 }));
        try steps.attempt("describe unknown method", nothing(program.method("backward", report)));
        var method = try program.load(steps.gpa, "forward", .{}, report);
        defer method.deinit();
        try steps.attempt("execute without inputs", method.execute(report));
        try steps.attempt("too few inputs", method.run(&.{}, report));
        try steps.attempt("explain unknown key", nothing(method.explainOption(xnn, "workspace_mode", report)));
        try steps.attempt("reset unknown state", method.resetState("cache", report));
        try steps.attempt("input of wrong type", method.run(&.{.{ .int = 1 }}, report));
        const whole: [6]i64 = @splat(0);
        try steps.attempt("input of wrong dtype", method.run(&.{.{ .tensor = try .of(i64, &whole, &.{ 2, 3 }, report) }}, report));
        const arena = init.arena.allocator();
        const missing = try std.mem.concatWithSentinel(arena, u8, &.{ model, ".missing" }, 0);
        const data = try std.mem.concatWithSentinel(arena, u8, &.{ model, ".ptd" }, 0);
        const bytes = try std.Io.Dir.cwd().readFileAlloc(init.io, model, arena, .unlimited);
        try steps.attempt("no such file", steps.open(etude.Program.open(steps.gpa, runtime, missing, .{}, report)));
        try steps.attempt("no such data file", steps.open(etude.Program.open(steps.gpa, runtime, model, .{ .data_files = &.{data} }, report)));
        try steps.attempt("copied", steps.open(etude.Program.fromBytes(steps.gpa, runtime, bytes, .{}, report)));
        try steps.attempt("cut short", steps.open(etude.Program.fromBytes(steps.gpa, runtime, bytes[0 .. bytes.len / 2], .{}, report)));
        try steps.attempt("no program", steps.open(etude.Program.fromBytes(steps.gpa, runtime, "not a program", .{}, report)));
    }
};

pub fn main(init: std.process.Init) !u8 {
    const args = (try init.minimal.args.toSlice(init.arena.allocator()))[1..];
    var report: etude.Report = .init;
    errdefer std.debug.print("{s}\n", .{report.message()});
    if (args.len == 2 and std.mem.eql(u8, args[0], "--errors")) {
        var buffer: [1024]u8 = undefined;
        var file: std.Io.File.Writer = .init(.stdout(), init.io, &buffer);
        try (Steps{ .gpa = init.gpa, .out = &file.interface, .report = &report }).all(init, args[1]);
        try file.interface.flush();
    } else if (args.len >= 3) {
        try run(init, args, &report);
    } else {
        std.debug.print("usage: run_case MODEL CALLS OUT [DATA.ptd...] | run_case --errors MODEL\n", .{});
        return 2;
    }
    return 0;
}
