//! Offers the module `etude`, which links with the installed C library: pkg-config must find it, or -Dprefix says where
//! it is installed. `zig build test` runs the binding's own tests, `zig build` makes the runner of tests/languages.
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

    const run_case = b.addExecutable(.{
        .name = "run_case",
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/run_case.zig"),
            .target = target,
            .optimize = optimize,
            .imports = &.{.{ .name = "etude", .module = etude }},
        }),
    });
    b.installArtifact(run_case);

    const tests = b.addTest(.{
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/test.zig"),
            .target = target,
            .optimize = optimize,
            .imports = &.{.{ .name = "etude", .module = etude }},
        }),
    });
    for ([_][]const u8{ "corpus/add.pte", "abi/layout64.txt", "tools/symbols.txt" }) |file| {
        tests.root_module.addAnonymousImport(file, .{ .root_source_file = b.path(b.pathJoin(&.{ "../../tests", file })) });
    }
    b.step("test", "Run the binding's own tests").dependOn(&b.addRunArtifact(tests).step);
}
