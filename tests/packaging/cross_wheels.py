#!/usr/bin/env python3
"""Make wheels for other systems on this one, with clang and the C libraries that `ziglang` brings, and look at what is in them.

    cross_wheels.py WHEEL FOLDER [PLATFORM...]     WHEEL: the one that `.ci/wheel` made for this machine

A wheel for another system has the same Python files and headers; the library and the extension are compiled anew, against the stable
interface of Python 3.10 (headers of the Python that runs this, sizes by the target's compiler). For Windows the import library is made
from the names of that interface that the extension takes; on macOS they are looked up when it is loaded. Each wheel is then checked:
its tag, its RECORD, the machine of its binaries, what they need, and the oldest C library they run on. What can be installed here is
installed and run by the caller (.ci/run, job wheels).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZIG = [sys.executable, "-m", "ziglang"]
LIMITED = "-DPy_LIMITED_API=0x030a0000"
#: Most bytes of a wheel: clang unrolls more than gcc, with which the wheel for this machine is smaller.
BUDGET = 1_400_000


@dataclass(frozen=True)
class Platform:
    """A system: its target for zig, what Meson calls it, the machine in ELF, Mach-O or PE headers, and what binaries may need."""

    target: str
    system: str
    cpu: str
    machine: str
    needs: str
    glibc: tuple[int, int] | None = None


GLIBC = r"libetude\.so\.0|lib(c|m|dl|pthread)\.so\.[0-9]|ld-linux-.*"
MUSL = r"libetude\.so\.0|libc\.so"
WINDOWS = r"(lib)?etude-0\.dll|python3\.dll|KERNEL32\.dll|ntdll\.dll|api-ms-win-.*"
PLATFORMS = {
    "manylinux2014_x86_64": Platform("x86_64-linux-gnu.2.17", "linux", "x86_64", "x86-64", GLIBC, (2, 17)),
    "manylinux2014_aarch64": Platform("aarch64-linux-gnu.2.17", "linux", "aarch64", "aarch64", GLIBC, (2, 17)),
    "manylinux2014_armv7l": Platform("arm-linux-gnueabihf.2.17", "linux", "arm", "ARM", GLIBC, (2, 17)),
    "manylinux2014_i686": Platform("x86-linux-gnu.2.17", "linux", "x86", "Intel 80386", GLIBC, (2, 17)),
    "manylinux_2_31_riscv64": Platform("riscv64-linux-gnu.2.31", "linux", "riscv64", "RISC-V", GLIBC, (2, 31)),
    "musllinux_1_2_x86_64": Platform("x86_64-linux-musl", "linux", "x86_64", "x86-64", MUSL),
    "musllinux_1_2_aarch64": Platform("aarch64-linux-musl", "linux", "aarch64", "aarch64", MUSL),
    "musllinux_1_2_armv7l": Platform("arm-linux-musleabihf", "linux", "arm", "ARM", MUSL),
    "macosx_11_0_x86_64": Platform("x86_64-macos.11.0", "darwin", "x86_64", "Mach-O 64-bit x86_64", ""),
    "macosx_11_0_arm64": Platform("aarch64-macos.11.0", "darwin", "aarch64", "Mach-O 64-bit arm64", ""),
    "win_amd64": Platform("x86_64-windows-gnu", "windows", "x86_64", "PE32+", WINDOWS),
}

#: What Python.h asks of its configuration under the stable interface, by the compiler's own answers.
PYCONFIG = """
#define SIZEOF_SHORT __SIZEOF_SHORT__
#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_FLOAT __SIZEOF_FLOAT__
#define SIZEOF_DOUBLE __SIZEOF_DOUBLE__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_TIME_T 8
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define SIZEOF_PID_T 4
#define ALIGNOF_MAX_ALIGN_T 16
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_WCHAR_H 1
#ifdef _WIN32
#define MS_WIN32 1
#define MS_WINDOWS 1
#define MS_WIN64 1
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#endif
"""


def run(*command: str, cwd: Path | None = None) -> str:
    """Run a command and return what it printed; its failure ends the script with its message."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_library(platform: Platform, folder: Path) -> Path:
    """The shared library of a system, by Meson."""
    for tool in ("cc", "ar"):
        script = folder / tool
        target = f"-target {platform.target}" if tool == "cc" else ""
        script.write_text(f'#!/bin/sh\nexec {" ".join(ZIG)} {tool} {target} "$@"\n')
        script.chmod(0o755)
    (folder / "cross.ini").write_text(
        f"[binaries]\nc = '{folder}/cc'\nar = '{folder}/ar'\nstrip = 'true'\n"
        f"[host_machine]\nsystem = '{platform.system}'\ncpu_family = '{platform.cpu}'\ncpu = '{platform.cpu}'\nendian = 'little'\n"
    )
    options = ["-Dtests=false", "-Dstrip=true", "--cross-file", str(folder / "cross.ini")]
    run("meson", "setup", str(folder / "build"), str(ROOT), *options, cwd=folder)
    run("ninja", "-C", str(folder / "build"))
    pattern = {"linux": "libetude.so.0", "darwin": "libetude.*.dylib", "windows": "*etude-0.dll"}[platform.system]
    (library,) = (path for path in (folder / "build").glob(pattern) if not path.is_symlink())
    return library


def compile_extension(platform: Platform, folder: Path, library: Path) -> Path:
    """The extension of a system, linked with the library beside it."""
    source = folder / "_etude.c"
    run(sys.executable, str(ROOT / "python/cffi/build_ffi.py"), str(source))
    # a copy, since Python.h looks for its configuration beside itself first
    shutil.copytree(sysconfig.get_path("include"), folder / "python")
    (folder / "python/pyconfig.h").write_text(PYCONFIG)
    extension = folder / ("_etude.pyd" if platform.system == "windows" else "_etude.abi3.so")
    includes = [f"-I{folder}/python", f"-I{ROOT}/include", f"-I{ROOT}/python/cffi"]
    command = [str(folder / "cc"), "-shared", "-fPIC", "-Os", "-DNDEBUG", LIMITED, *includes, str(source), "-o", str(extension), "-Wl,-s"]
    if platform.system == "linux":
        command += [str(library), "-Wl,-rpath,$ORIGIN"]
    elif platform.system == "darwin":
        command += [str(library), "-Wl,-rpath,@loader_path", "-Wl,-undefined,dynamic_lookup"]
    else:
        objects = folder / "_etude.o"
        run(str(folder / "cc"), "-c", "-Os", "-DNDEBUG", LIMITED, *includes, str(source), "-o", str(objects))
        symbols = run("nm", "-u", str(objects))
        names = sorted(set(re.findall(r"(?:__imp_)?(_?Py\w+)$", symbols, re.M)))
        (folder / "python3.def").write_text("LIBRARY python3.dll\nEXPORTS\n" + "".join(f"  {name}\n" for name in names))
        run(*ZIG, "dlltool", "-m", "i386:x86-64", "-d", str(folder / "python3.def"), "-l", str(folder / "libpython3.a"))
        imports = [str(library.parent / "libetude.dll.a"), str(folder / "libpython3.a")]
        command = [item for item in command if item != "-fPIC"] + imports
    run(*command)
    return extension


def write_wheel(name: str, platform: Platform, template: Path, folder: Path, binaries: dict[str, Path]) -> Path:
    """A wheel like `template`, with other binaries, tag and RECORD."""
    target = folder / re.sub(r"-[^-]+\.whl$", f"-{name}.whl", template.name)
    library = next(path.name for path in binaries.values() if not path.name.startswith("_etude"))
    record, info = [], ""
    with zipfile.ZipFile(template) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:

        def add(path: str, data: bytes) -> None:
            new.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for item in old.infolist():
            data = old.read(item)
            if re.search(r"etude/(libetude\.|_etude\.abi3)", item.filename):
                continue
            if item.filename.endswith("/RECORD"):
                info = item.filename
                continue
            if item.filename.endswith("/WHEEL"):
                data = re.sub(rb"^Tag: .*$", f"Tag: cp310-abi3-{name}".encode(), data, flags=re.M)
            if item.filename.endswith("etude.pc"):
                data = data.replace(b"libetude.so.0", library.encode())
            add(item.filename, data)
        for path, file in binaries.items():
            add(path, file.read_bytes())
        new.writestr(info, "\n".join([*record, f"{info},,", ""]))
    return target


def check_elf(platform: Platform, path: Path) -> list[str]:
    """What is wrong with an ELF binary."""
    text = run("objdump", "-p", str(path)) if platform.cpu == "x86_64" else run("readelf", "-dV", "--wide", str(path))
    needed = re.findall(r"NEEDED\s+(?:.*\[)?([^\]\s]+)", text)
    problems = [f"needs {name}" for name in needed if not re.fullmatch(platform.needs, name)]
    versions = {tuple(map(int, found.split(".")[:2])) for found in re.findall(r"GLIBC_([0-9.]+)", text)}
    if platform.glibc is None and versions:
        problems.append("needs glibc")
    if platform.glibc is not None and versions and max(versions) > platform.glibc:
        problems.append(f"needs glibc {max(versions)}")
    if platform.glibc is not None and not versions and any(name.startswith("libc.") for name in needed):
        problems.append("needs a glibc of no version")
    return problems


def check_wheel(name: str, platform: Platform, wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    problems = []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = next(item for item in names if item.endswith("/RECORD"))
        if sorted(row.split(",")[0] for row in archive.read(record).decode().split()) != sorted(names):
            problems.append("RECORD lists other files than there are")
        if f"Tag: cp310-abi3-{name}" not in archive.read(record.replace("RECORD", "WHEEL")).decode():
            problems.append("WHEEL has another tag")
        binaries = [item for item in names if re.search(r"\.(so|so\.0|dylib|dll|pyd)$", item)]
        if len(binaries) != 2:
            problems.append(f"{len(binaries)} binaries, not a library and an extension")
        for item in binaries:
            path = Path(archive.extract(item, folder))
            kind = run("file", "-b", str(path))
            if platform.machine not in kind:
                problems.append(f"{item} is {kind.strip()}")
            elif platform.system == "linux":
                problems += [f"{item} {problem}" for problem in check_elf(platform, path)]
            elif platform.system == "windows":
                needed = re.findall(r"DLL Name: (\S+)", run("objdump", "-p", str(path)))
                problems += [f"{item} needs {found}" for found in needed if not re.fullmatch(platform.needs, found, re.I)]
    if wheel.stat().st_size > BUDGET:
        problems.append(f"{wheel.stat().st_size} bytes, more than {BUDGET}")
    return problems


def main() -> int:
    """Make and check them; a line for each."""
    template, target = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    target.mkdir(exist_ok=True)
    names = sys.argv[3:] or list(PLATFORMS)
    failed = 0
    for name in names:
        platform = PLATFORMS[name]
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            library = compile_library(platform, folder)
            extension = compile_extension(platform, folder, library)
            wheel = write_wheel(name, platform, template, target, {f"etude/{file.name}": file for file in (library, extension)})
        problems = check_wheel(name, platform, wheel)
        failed += bool(problems)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {'; '.join(problems) or 'as it should be'}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.pop("CC", None)
    sys.exit(main())
