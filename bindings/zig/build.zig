//! Offers the module `etude`, which links with the installed C library: pkg-config must find it, or -Dprefix says where
//! it is installed. `zig build test` runs the binding's own tests, `zig build` makes the runner of
//! tests/languages and the example.
const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const prefix = b.option([]const u8, "prefix", "Where libetude is installed; without it, pkg-config is asked");

    const etude = b.addModule("etude", .{
        .root_source_file = b.path("src/etude.zig"),
        .target = target,
        .optimize = optimize,
        .link_libc = true,
    });
    if (prefix) |folder| {
        etude.addLibraryPath(.{ .cwd_relative = b.pathJoin(&.{ folder, "lib" }) });
        etude.addRPath(.{ .cwd_relative = b.pathJoin(&.{ folder, "lib" }) });
        etude.linkSystemLibrary("etude", .{ .use_pkg_config = .no });
    } else {
        etude.linkSystemLibrary("etude", .{});
    }

    inline for (.{ .{ "run_case", "src/run_case.zig" }, .{ "generate", "examples/generate.zig" } }) |program| {
        b.installArtifact(b.addExecutable(.{
            .name = program[0],
            .root_module = b.createModule(.{
                .root_source_file = b.path(program[1]),
                .target = target,
                .optimize = optimize,
                .imports = &.{.{ .name = "etude", .module = etude }},
            }),
        }));
    }

    const tests = b.addTest(.{
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/test.zig"),
            .target = target,
            .optimize = optimize,
            .imports = &.{.{ .name = "etude", .module = etude }},
        }),
    });
    for ([_][]const u8{ "corpus/add.pte", "corpus/shared_state.pte", "data/backends.pte", "abi/layout64.txt", "tools/symbols.txt" }) |file| {
        tests.root_module.addAnonymousImport(file, .{ .root_source_file = b.path(b.pathJoin(&.{ "../../tests", file })) });
    }
    b.step("test", "Run the binding's own tests").dependOn(&b.addRunArtifact(tests).step);
}
