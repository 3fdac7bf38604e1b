//! A language model: token ids in, token ids out, each as soon as it is chosen. For programs of the llama exporter with caches.
//!
//!     echo 43 72 270 | generate -n 8 model.pte
//!
//! Each line of the input is a turn, which goes on where the last one ended.
const std = @import("std");
const etude = @import("etude");

const Decoder = struct {
    program: etude.Program,
    forward: etude.Method,
    /// Most tokens of one call.
    bound: usize,
    /// Positions that the caches hold.
    window: i64,
    position: i64 = 0,
    report: *etude.Report,

    fn init(gpa: std.mem.Allocator, runtime: etude.Runtime, path: [:0]const u8, report: *etude.Report) !Decoder {
        const program = try etude.Program.open(gpa, runtime, path, .{}, report);
        errdefer program.deinit();
        const tokens = try (try program.method("forward", report)).input(0, report);
        const sizes = tokens.sizes();
        return .{
            .program = program,
            .bound = @intCast(sizes[sizes.len - 1]),
            .window = (try constant(program, "get_max_context_len", 0, report)).?,
            .forward = try program.load(gpa, "forward", .{}, report),
            .report = report,
        };
    }
    fn deinit(decoder: *Decoder) void {
        decoder.forward.deinit();
        decoder.program.deinit();
    }

    /// Number `index` of what a method without inputs returns.
    fn constant(program: etude.Program, name: [:0]const u8, index: u32, report: *etude.Report) !?i64 {
        const method = try program.method(name, report);
        if (index >= method.counts.output_count) return null;
        return (try method.output(index, report)).constant().int;
    }
    fn isEnd(decoder: *const Decoder, token: i64) !bool {
        var index: u32 = 0;
        while (try constant(decoder.program, "get_eos_ids", index, decoder.report)) |end| : (index += 1) {
            if (end == token) return true;
        }
        return false;
    }

    /// Read a prompt, then tell `listener.onToken` of up to `most` tokens, until one ends the text.
    fn generate(decoder: *Decoder, prompt: []const i64, most: usize, listener: anytype) !void {
        if (prompt.len == 0 or prompt.len > decoder.window - decoder.position) return error.PromptTooLong;
        var token = try decoder.feed(prompt);
        for (1..most + 1) |count| {
            try listener.onToken(token);
            if (count == most or decoder.position == decoder.window or try decoder.isEnd(token)) return;
            token = try decoder.feed(&.{token});
        }
    }

    /// Read tokens, as many a call as the program takes; the likeliest to follow.
    fn feed(decoder: *Decoder, tokens: []const i64) !i64 {
        var best: usize = 0;
        var left = tokens;
        while (left.len > 0) {
            const chunk = left[0..@min(left.len, decoder.bound)];
            left = left[chunk.len..];
            try decoder.forward.run(&.{
                .{ .tensor = try .of(i64, chunk, &.{ 1, @intCast(chunk.len) }, decoder.report) },
                .{ .tensor = try .of(i64, &.{decoder.position}, &.{1}, decoder.report) },
            }, decoder.report);
            const logits = (try decoder.forward.output(0, decoder.report)).tensor;
            const all = try logits.items(f32, decoder.report);
            const width: usize = @intCast(logits.sizes[logits.sizes.len - 1]);
            best = std.mem.indexOfMax(f32, all[all.len - width ..]);
            decoder.position += @intCast(chunk.len);
        }
        return @intCast(best);
    }
};

const Printer = struct {
    out: *std.Io.Writer,

    fn onToken(printer: Printer, token: i64) !void {
        try printer.out.print("{d} ", .{token});
        try printer.out.flush();
    }
};

pub fn main(init: std.process.Init) !u8 {
    const args = (try init.minimal.args.toSlice(init.arena.allocator()))[1..];
    if (args.len != 3 or !std.mem.eql(u8, args[0], "-n")) {
        std.debug.print("usage: generate -n MOST MODEL.pte\n", .{});
        return 2;
    }
    var report: etude.Report = .init;
    errdefer std.debug.print("generate: {s}\n", .{report.message()});
    const runtime = try etude.Runtime.init(1, &report);
    defer runtime.deinit();
    var decoder = try Decoder.init(init.gpa, runtime, args[2], &report);
    defer decoder.deinit();
    var in_buffer: [65536]u8 = undefined;
    var out_buffer: [1024]u8 = undefined;
    var in: std.Io.File.Reader = .init(.stdin(), init.io, &in_buffer);
    var out: std.Io.File.Writer = .init(.stdout(), init.io, &out_buffer);
    while (try in.interface.takeDelimiter('\n')) |line| {
        var prompt: std.ArrayList(i64) = .empty;
        defer prompt.deinit(init.gpa);
        var words = std.mem.tokenizeAny(u8, line, " \t\r");
        while (words.next()) |word| try prompt.append(init.gpa, try std.fmt.parseInt(i64, word, 10));
        try decoder.generate(prompt.items, try std.fmt.parseInt(usize, args[1], 10), Printer{ .out = &out.interface });
        try out.interface.print("\n", .{});
        try out.interface.flush();
    }
    return 0;
}
