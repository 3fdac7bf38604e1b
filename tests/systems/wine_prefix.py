#!/usr/bin/env python3
"""A wine prefix whose C runtime has complex functions, which wine's own has not (each ends the program that calls it).

    wine_prefix.py FOLDER      then WINEPREFIX=FOLDER wine PROGRAM

The prefix gets a `ucrtbase.dll` that forwards every function to wine's, under the name `ucrtwine.dll`, but those of <complex.h>: they are
musl's, of which `ziglang` brings the sources, in double precision. So Windows programs find in wine all that they find in Windows, and what
they compute with it is not wine's. Needs `wine`, `objdump`, and `ziglang` in the Python that runs this.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ZIG = [sys.executable, "-m", "ziglang"]
#: What musl computes by arithmetic and real functions alone; `l` of Windows is double, and `f` is computed in double.
FROM_MUSL = (
    *("cabs", "carg", "conj", "cproj", "cexp", "clog", "csqrt", "cacos", "cacosh", "casin", "casinh", "catan", "catanh"),
    *("ccos", "ccosh", "csin", "csinh", "ctan", "ctanh"),
)
OWN = ("cimag", "cpow", "creal")
SOURCE = """
#include <complex.h>
int _fltused; /* what the compiler asks for where there is floating point */
int DllMainCRTStartup(void *module, unsigned reason, void *reserved) {
  (void)module, (void)reason, (void)reserved;
  return 1;
}
double creal(double complex z) { return __real__ z; }
double cimag(double complex z) { return __imag__ z; }
double complex cpow(double complex z, double complex c) {
  const double complex l = clog(z);
  const double a = creal(l), b = cimag(l), p = creal(c), q = cimag(c);
  return cexp(__builtin_complex(a * p - b * q, a * q + b * p));
}
float complex cpowf(float complex z, float complex c) { return (float complex)cpow(z, c); }
"""
#: What musl's sources ask of headers that Windows has not.
HEADERS = {"endian.h": "#define __BYTE_ORDER 1234\n#define __LITTLE_ENDIAN 1234\n#define __BIG_ENDIAN 4321\n", "fp_arch.h": ""}


def exported(library: Path) -> list[str]:
    """The names that a DLL exports."""
    text = subprocess.run(["objdump", "-p", str(library)], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\t\[ *\d+\] (\S+)$", text[text.index("[Ordinal/Name Pointer] Table") :], re.M)


def define(path: Path, library: str, lines: list[str]) -> Path:
    """A module definition file."""
    path.write_text(f"LIBRARY {library}\nEXPORTS\n" + "".join(f"  {line}\n" for line in lines))
    return path


def make_runtime(names: list[str], folder: Path) -> Path:
    """The `ucrtbase.dll` with these exports."""
    complex_names = [*FROM_MUSL, *OWN]
    lines, rest = [], []
    for name in names:
        if name in complex_names or (name[-1] == "f" and name[:-1] in complex_names):
            lines.append(name)
        elif name[-1] == "l" and name[:-1] in complex_names:
            lines.append(f"{name} = {name[:-1]}")
        else:
            lines.append(f"{name} = ucrtwine.{name}")
            rest.append(name)
    exports = define(folder / "ucrtbase.def", "ucrtbase.dll", lines)
    imports = define(folder / "ucrtwine.def", "ucrtwine.dll", rest)
    subprocess.run([*ZIG, "dlltool", "-m", "i386:x86-64", "-d", str(imports), "-l", str(folder / "libucrtwine.a")], check=True)
    own = folder / "complex.c"
    real = {"cabs", "carg", "cimag", "creal"}
    floats = [(name, "float" if name in real else "float complex") for name in complex_names if name != "cpow"]
    own.write_text(SOURCE + "".join(f"{kind} {name}f(float complex z) {{ return ({kind}){name}(z); }}\n" for name, kind in floats))
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None and spec.origin is not None
    libc = Path(spec.origin).parent / "lib/libc"
    sources = [str(libc / f"musl/src/complex/{name}.c") for name in [*FROM_MUSL, "__cexp"]]
    includes = [f"-I{folder}", f"-I{libc}/musl/src/internal", f"-I{libc}/include/any-windows-any"]
    options = ["-target", "x86_64-windows-gnu", "-shared", "-nostdlib", "-O1", "-fno-builtin", "-w", "-Dhidden=", "-Wl,-s"]
    inputs = [str(own), *sources, str(folder / "libucrtwine.a"), str(exports)]
    target = folder / "ucrtbase.dll"
    subprocess.run([*ZIG, "cc", *options, *includes, *inputs, "-o", str(target)], check=True, cwd=folder)
    return target


def main() -> int:
    """Make it."""
    prefix = Path(sys.argv[1]).resolve()
    environment = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    subprocess.run(["wine", "wineboot", "--init"], check=True, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    subprocess.run(["wineserver", "--wait"], check=True, env=environment)
    system = prefix / "drive_c/windows/system32"
    runtime, kept = system / "ucrtbase.dll", system / "ucrtwine.dll"
    if not kept.exists():
        shutil.copyfile(runtime, kept)
    with tempfile.TemporaryDirectory() as folder:
        made = make_runtime(exported(kept), Path(folder))
        runtime.unlink()
        shutil.copyfile(made, runtime)
    setting = [r"HKEY_CURRENT_USER\Software\Wine\DllOverrides", "/v", "ucrtbase", "/d", "native", "/f"]
    subprocess.run(["wine", "reg", "add", *setting], check=True, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
