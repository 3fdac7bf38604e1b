#!/usr/bin/env python3
"""The folders that `etude embed --layout` writes, compiled against stand-ins of Zephyr, ESP-IDF and Arduino, and CMake as it is.

    layouts.py       the package must be installed; needs cmake, cc and c++

Then the library itself with CMake: as a subproject, and installed and found with find_package.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.pte"

MAIN = """#include "model.h"
static uint8_t arena[MODEL_ARENA_BYTES] __attribute__((aligned(64)));
static model digits;
static float image[64];
int main(void) {
  if (model_open(&digits, arena, sizeof arena, NULL) != ETUDE_OK || model_forward(&digits, image, NULL) != ETUDE_OK) return 1;
  float sum = 0;
  for (int i = 0; i < model_forward_output_0_count; ++i) sum += model_forward_output_0(&digits)[i];
  return sum > 0.999f && sum < 1.001f ? 0 : 1;
}
"""

#: What calls a folder of each layout; the functions stand for those of the system.
CALLERS = {
    "cmake": "add_subdirectory(folder)\n",
    "zephyr": """set(CONFIG_MODEL y)
function(zephyr_library_named name)
  add_library(${name} STATIC)
  set(current ${name} PARENT_SCOPE)
endfunction()
macro(zephyr_library_sources)
  target_sources(${current} PRIVATE ${ARGN})
endmacro()
macro(zephyr_include_directories)
  include_directories(${ARGN})
  set_property(GLOBAL PROPERTY directories ${CMAKE_CURRENT_SOURCE_DIR}/${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${current} PRIVATE ${ARGN})
endmacro()
add_subdirectory(folder/zephyr)
get_property(directories GLOBAL PROPERTY directories)
include_directories(${directories})
""",
    "esp-idf": """macro(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  set(COMPONENT_LIB model)
  add_library(model STATIC ${given_SRCS})
  target_include_directories(model PUBLIC ${given_INCLUDE_DIRS})
endmacro()
add_subdirectory(folder)
""",
}
SYSTEM = """#include <stddef.h>
#include <stdint.h>
struct Stream { void begin(long) {} template <class T> void println(T) {} };
static Stream Serial;
void setup();
void loop();
"""
USER = """#include <etude/etude.h>
#include <etude/host.h>
#include <stdio.h>
int main(int argc, char **argv) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_data_loader loader;
  if (etude_host_runtime_create(1, &runtime, &error) != ETUDE_OK ||
      etude_data_from_file(argv[argc - 1], ETUDE_FILE_MAP, &loader, &error) != ETUDE_OK ||
      etude_program_load(runtime, &loader, NULL, &program, &error) != ETUDE_OK) {
    puts(error.message);
    return 1;
  }
  etude_program_free(program);
  etude_runtime_free(runtime);
  return 0;
}
"""


def run(*command: str | Path) -> None:
    """Run a command; its failure ends the script."""
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def cmake(folder: Path, *options: str) -> None:
    """Configure and build a folder in its own `build`."""
    run("cmake", "-S", folder, "-B", folder / "build", *options)
    run("cmake", "--build", folder / "build", "-j2")


def embed(layout: str, folder: Path) -> None:
    """Run the command."""
    run(sys.executable, "-m", "etude", "embed", DIGITS, "-o", folder, "--layout", layout)


def try_cmake_layout(layout: str, place: Path) -> None:
    """Call the folder from a project, link a program with it, and run that."""
    embed(layout, place / "folder")
    (place / "main.c").write_text(MAIN)
    linked = "add_executable(app main.c)\ntarget_link_libraries(app model m)\n"
    (place / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.16)\nproject(app C)\n{CALLERS[layout]}{linked}")
    cmake(place)
    run(place / "build/app")


def try_arduino(place: Path) -> None:
    """Manifest, folders, the sources as C, and the sketch as C++."""
    embed("arduino", place)
    keys = dict(line.split("=", 1) for line in (place / "library.properties").read_text().splitlines() if not line.startswith("#"))
    wanted = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures", "includes"}
    if set(keys) != wanted or not re.fullmatch(r"\d+\.\d+\.\d+", keys["version"]) or not (place / "src" / keys["includes"]).exists():
        sys.exit(f"library.properties: {keys}")
    sketch = next(place.glob("examples/*/*.ino"))
    if sketch.stem != sketch.parent.name:
        sys.exit(f"{sketch}: a sketch is named as its folder")
    (place / "Arduino.h").write_text(SYSTEM)
    for source in (place / "src").glob("*.c"):
        run("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu99", "-c", source, "-o", source.with_suffix(".o"))
    run("c++", "-std=gnu++11", "-Wall", "-Werror", "-include", place / "Arduino.h", "-I", place / "src", "-x", "c++", "-c", sketch, "-o", place / "sketch.o")


def try_library(place: Path) -> None:
    """The whole library: as a subproject, and found where it was installed."""
    for how, line in (("subproject", f'add_subdirectory("{ROOT}" etude)'), ("installed", "find_package(etude REQUIRED)")):
        folder = place / how
        folder.mkdir()
        (folder / "main.c").write_text(USER)
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.16)\nproject(user C)\n{line}\nadd_executable(user main.c)\ntarget_link_libraries(user etude::etude)\n"
        )
        cmake(folder, f"-DCMAKE_PREFIX_PATH={place / 'prefix'}", "-DCMAKE_BUILD_TYPE=Release")
        run(folder / "build/user", DIGITS)
        print(f"library, {how}: right")
        if how == "subproject":
            run("cmake", "--install", folder / "build", "--prefix", place / "prefix")


def main() -> int:
    """Try all."""
    with tempfile.TemporaryDirectory() as name:
        for layout in CALLERS:
            place = Path(name) / layout
            place.mkdir()
            try_cmake_layout(layout, place)
            print(f"{layout}: right")
        try_arduino(Path(name) / "arduino")
        print("arduino: compiles")
        (Path(name) / "library").mkdir()
        try_library(Path(name) / "library")
    print(f"{len(CALLERS) + 3} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
