"""Folders as build systems for microcontrollers want them, around the files of an embedded program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import etude

Files = Mapping[str, str]


def _sources(files: Files) -> str:
    return " ".join(sorted(name for name in files if name.endswith(".c")))


def _cmake(name: str, files: Files) -> dict[str, str]:
    """A static library `name`, for add_subdirectory."""
    text = f"""cmake_minimum_required(VERSION 3.16)
project({name} C)
add_library({name} STATIC {_sources(files)})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 99)
find_library({name.upper()}_MATH m)
if({name.upper()}_MATH)
  target_link_libraries({name} PUBLIC m)
endif()
"""
    return {**files, "CMakeLists.txt": text}


def _esp_idf(name: str, files: Files) -> dict[str, str]:
    """A component of ESP-IDF: put the folder into `components/`."""
    manifest = f'version: "{etude.__version__}"\ndescription: "{name}, a model, with etude to run it"\nlicense: "BSD-3-Clause"\ndependencies:\n  idf: ">=5.0"\n'
    build = f"""idf_component_register(SRCS {" ".join(f'"{source}"' for source in _sources(files).split())} INCLUDE_DIRS ".")
target_compile_options(${{COMPONENT_LIB}} PRIVATE -std=gnu99 -fno-math-errno)
"""
    return {**files, "CMakeLists.txt": build, "idf_component.yml": manifest}


def _zephyr(name: str, files: Files) -> dict[str, str]:
    """A module of Zephyr: name the folder in ZEPHYR_EXTRA_MODULES, and set CONFIG_NAME."""
    option = f"CONFIG_{name.upper()}"
    module = f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n"
    sources = "\n".join(f"  ../{source}" for source in _sources(files).split())
    build = f"""if({option})
zephyr_include_directories(..)
zephyr_library_named({name})
zephyr_library_sources(
{sources}
)
zephyr_library_compile_options(-std=gnu99 -fno-math-errno)
endif()
"""
    kconfig = f'config {name.upper()}\n\tbool "{name}, a model, with etude to run it"\n\thelp\n\t  The model and the operators that it needs. Memory comes from an arena of the caller\'s.\n'
    return {**files, "zephyr/module.yml": module, "zephyr/CMakeLists.txt": build, "zephyr/Kconfig": kconfig}


def _arduino(name: str, files: Files) -> dict[str, str]:
    """A library for Arduino: put the folder into `libraries/`."""
    properties = f"""name={name}
version={etude.__version__}
author=etude
maintainer=etude
sentence={name}, a model, with etude to run it.
paragraph=The model is read in place from flash; memory comes from an arena.
category=Data Processing
url=https://pytorch.org/executorch
architectures=*
includes={name}.h
"""
    sketch = f"""// Loads the model and says how much memory it takes.
#include <{name}.h>

alignas(64) static uint8_t arena[{name.upper()}_ARENA_BYTES];
static {name} model_state;

void setup() {{
  Serial.begin(115200);
  etude_error error = ETUDE_ERROR_INIT;
  if ({name}_open(&model_state, arena, sizeof arena, &error) != ETUDE_OK) {{
    Serial.println((unsigned long)error.status); // of etude_status, in etude.h
    return;
  }}
  Serial.println((unsigned long)model_state.arena.peak);
}}

void loop() {{}}
"""
    moved = {f"src/{file}": text for file, text in files.items()}
    return {**moved, "library.properties": properties, f"examples/{name}_open/{name}_open.ino": sketch}


def say_how(layout: str, name: str, folder: str) -> str:
    """What to do with a folder, whose first program is `name`; the others are in the same library."""
    return {
        "cmake": f"now: add_subdirectory({folder}), target_link_libraries(APP {name})",
        "zephyr": f"now: -DZEPHYR_EXTRA_MODULES={folder}, CONFIG_{name.upper()}=y",
        "esp-idf": f"now: put {folder} into components/, and its name into REQUIRES",
        "arduino": f"now: put {folder} into libraries/; the example sketch is {name}_open",
    }[layout]


LAYOUTS: dict[str, Callable[[str, Files], dict[str, str]]] = {
    "plain": lambda _, files: dict(files),
    "cmake": _cmake,
    "zephyr": _zephyr,
    "esp-idf": _esp_idf,
    "arduino": _arduino,
}
