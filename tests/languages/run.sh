#!/usr/bin/env bash
# Install the library into a folder of its own and use it as strangers do. Usage: run.sh [MESON [PYTHON]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
meson=${1:-meson}
python=${2:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
model=$root/tests/corpus/add.pte
failed=0
passed=0

"$meson" setup "$work/build" "$root" --prefix "$prefix" --libdir lib -Dtests=false >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
"$meson" install -C "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig

# check NAME COMMAND...: the command must print the sum
check() {
  name=$1
  shift
  if got=$("$@" 2>&1) && [ "$(echo $got)" = "3 3 3 3 3 3" ]; then
    echo "ok $name"
    passed=$((passed + 1))
  else
    echo "FAILED $name: $got"
    failed=$((failed + 1))
  fi
}

# build NAME COMMAND...: the command must succeed in silence
build() {
  name=$1
  shift
  if got=$("$@" 2>&1) && [ -z "$got" ]; then
    passed=$((passed + 1))
  else
    echo "FAILED to build $name: $got"
    failed=$((failed + 1))
  fi
}

strict="-Wall -Wextra -Werror -pedantic"
# shellcheck disable=SC2046,SC2086
build "C99, pkg-config" cc -std=c99 $strict "$here/consumer.c" $(pkg-config --cflags --libs etude) \
  -Wl,-rpath,"$prefix/lib" -o "$work/c"
check "C99, pkg-config" "$work/c" "$model"
# shellcheck disable=SC2046,SC2086
build "C++17, pkg-config" c++ -std=c++17 $strict -x c++ "$here/consumer.c" -x none \
  $(pkg-config --cflags --libs etude) -Wl,-rpath,"$prefix/lib" -o "$work/cpp"
check "C++17, pkg-config" "$work/cpp" "$model"
# shellcheck disable=SC2086
build "static" cc -std=c99 $strict -DETUDE_STATIC "$here/consumer.c" -I"$prefix/include" "$prefix/lib/libetude.a" \
  -lm -lpthread -o "$work/static"
check "static" "$work/static" "$model"
# shellcheck disable=SC2046,SC2086
build "static, pkg-config" cc -std=c99 $strict -DETUDE_STATIC "$here/consumer.c" $(pkg-config --cflags etude) "$prefix/lib/libetude.a" \
  $(pkg-config --static --libs-only-l etude | sed 's/-letude//') -o "$work/static-pkg"
check "static, pkg-config" "$work/static-pkg" "$model"

# As a subproject of Meson: the library that is asked for, and neither tests nor fuzzers nor commands.
mkdir -p "$work/app/subprojects"
ln -s "$root" "$work/app/subprojects/etude"
cp "$here/consumer.c" "$work/app"
cat >"$work/app/meson.build" <<'MESON'
project('app', 'c', default_options: ['c_std=c99'])
executable('app', 'consumer.c', dependencies: dependency('etude', fallback: 'etude'))
MESON
for kind in static shared; do
  { "$meson" setup "$work/app-$kind" "$work/app" --force-fallback-for etude -Ddefault_library=$kind && "$meson" compile -C "$work/app-$kind"; } >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
  check "subproject, $kind" "$work/app-$kind/app" "$model"
  ldd "$work/app-$kind/app" >"$work/needed"
  [ "$(grep -c libetude "$work/needed")" = $([ $kind = static ] && echo 0 || echo 1) ] || { cat "$work/needed"; failed=$((failed + 1)); }
  find "$work/app-$kind/subprojects" -type f -perm -u+x -not -name '*.so*' >"$work/extra"
  [ ! -s "$work/extra" ] || { echo "FAILED: a subproject builds more than the library:" && cat "$work/extra" && failed=$((failed + 1)); }
done

# Without the build system: the sources, straight to the compiler.
build "plain cc" cc -std=c99 -O1 -D_POSIX_C_SOURCE=200809L -DETUDE_HAS_PORTABLE_KERNELS -I"$root/include" -I"$root/c" \
  "$root"/c/core/*.c "$root"/c/compute/*.c "$root"/c/kernels/*.c "$root"/c/platform/posix/*.c "$root"/c/host/*.c $(find "$root/c/backends" -name '*.c') \
  "$here/consumer.c" -lm -lpthread -o "$work/plain"
check "plain cc" "$work/plain" "$model"

for header in "$prefix"/include/etude/*.h; do
  name=etude/$(basename "$header")
  echo "#include <$name>" >"$work/alone.c"
  # shellcheck disable=SC2086
  build "$name alone, C99" cc -std=c99 $strict -Wno-empty-translation-unit -fsyntax-only -I"$prefix/include" "$work/alone.c"
  # shellcheck disable=SC2086
  build "$name alone, C++17" c++ -std=c++17 $strict -fsyntax-only -x c++ -I"$prefix/include" "$work/alone.c"
done

# The bindings: every case of the corpus with its golden, and the errors of options, methods and files.
# corpus NAME RUNNER: prints its line
corpus() {
  if "$python" "$here/languages.py" "$1" "$root/tests/corpus" "$2"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

# generates NAME PROGRAM: the example that is a language model, held to the official runner's recorded runs
generates() {
  if got=$("$python" "$root/tests/c/compare_generate.py" "$2" "$root/tests/llm" --runs); then
    echo "ok $1, generate"
    passed=$((passed + 1))
  else
    echo "FAILED $1, generate: $got"
    failed=$((failed + 1))
  fi
}

# example LANGUAGE [N]: the program of docs/languages.md in that language, the Nth of several
example() {
  awk -v fence='```' -v language="$1" -v wanted="${2:-1}" '
    index($0, fence) == 1 { inside = !inside; if (inside && $0 == fence language) n++; shown = inside && $0 == fence language && n == wanted; next }
    shown' "$root/docs/languages.md"
}
# quietly COMMAND...: what it prints only if it fails
quietly() {
  "$@" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
}
# numbers COMMAND...: what it prints, as plain numbers
numbers() {
  "$@" 2>&1 | sed 's/[][{},]//g; s/\.0//g; s/ <nil>//'
}
mkdir "$work/docs"
cp "$model" "$work/docs"
cd "$work/docs"

example c++ >add.cpp
# shellcheck disable=SC2046
build "C++, docs/languages.md" c++ -std=c++17 add.cpp $(pkg-config --cflags --libs etude) -Wl,-rpath,"$prefix/lib" -o add
check "C++, docs/languages.md" ./add
for n in 1 2; do
  mkdir "cmake$n"
  cp add.cpp "cmake$n"
  example cmake $n | sed "s#…/etude#$root#" >"cmake$n/CMakeLists.txt"
  build "CMake $n, docs/languages.md" quietly sh -c "cmake -S cmake$n -B cmake$n/build -DCMAKE_PREFIX_PATH='$prefix' -DCMAKE_C_FLAGS=-O0 && cmake --build cmake$n/build -j2"
  check "CMake $n, docs/languages.md" "cmake$n/build/add"
done
# what find_package offers beside, and versions that it refuses
mkdir cmake3
cat >cmake3/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(app C)
foreach(refused IN ITEMS 0.0 0.2 0.1.99 1.0)
  find_package(etude \${refused} QUIET PATHS "$prefix")
  if(etude_FOUND)
    message(FATAL_ERROR "found as \${refused}")
  endif()
endforeach()
find_package(etude 0.1 REQUIRED PATHS "$prefix")
add_executable(app "$here/consumer.c")
target_link_libraries(app PRIVATE etude::static)
CMAKE
build "CMake, static" quietly sh -c "cmake -S cmake3 -B cmake3/build && cmake --build cmake3/build"
check "CMake, static" cmake3/build/app "$model"

# shellcheck disable=SC2046,SC2086
build "C++17, etude.hpp" c++ -std=c++17 -O1 $strict -Wshadow -I"$root/bindings/cpp" "$here/run_case.cpp" \
  $(pkg-config --cflags --libs etude) -Wl,-rpath,"$prefix/lib" -o "$work/run_case_cpp"
corpus "C++" "$work/run_case_cpp"
cpp="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror -I$root/bindings/cpp -I$root/include"
# shellcheck disable=SC2046,SC2086
build "C++17, its tests" c++ -std=c++17 $cpp "$root/bindings/cpp/tests/test.cpp" $(pkg-config --libs etude) -pthread -Wl,-rpath,"$prefix/lib" -o "$work/test_cpp"
if "$work/test_cpp" "$root/tests"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
# shellcheck disable=SC2046,SC2086
build "C++17, generate" c++ -std=c++17 $cpp "$root/bindings/cpp/examples/generate.cpp" $(pkg-config --libs etude) -Wl,-rpath,"$prefix/lib" -o "$work/generate_cpp"
generates "C++" "$work/generate_cpp"
# shellcheck disable=SC2086
build "C++20, std::span" c++ -std=c++20 $cpp -fsyntax-only "$root/bindings/cpp/tests/test.cpp"
echo "#include <etude/backend.hpp>" >"$work/alone.cpp"
# shellcheck disable=SC2086
build "C++17 without exceptions" c++ -std=c++17 $cpp -fno-exceptions -fno-rtti -fsyntax-only "$work/alone.cpp"
if command -v clang++ >/dev/null; then
  # shellcheck disable=SC2086
  build "C++17 by clang" clang++ -std=c++17 $cpp -fsyntax-only "$root/bindings/cpp/tests/test.cpp"
fi

# Rust and Go write beside their sources: in a copy
cp -r "$root/bindings" "$work/bindings"
mkdir "$work/tests"
ln -s "$root/tests/corpus" "$root/tests/data" "$root/tests/abi" "$root/tests/llm" "$root/tests/tools" "$work/tests"
export LD_LIBRARY_PATH=$prefix/lib

example python >ctypes_add.py
check "ctypes, docs/languages.md" numbers "$python" ctypes_add.py

if command -v cargo >/dev/null && command -v rustc >/dev/null; then
  build "Rust" rustc --edition 2021 -L "$prefix/lib" -C link-arg=-Wl,-rpath,"$prefix/lib" "$here/consumer.rs" -o "$work/rust"
  check "Rust" "$work/rust" "$model"
  export CARGO_TARGET_DIR=$work/cargo ETUDE_LIB_DIR=$prefix/lib RUSTFLAGS=-Dwarnings
  build "Rust crates" cargo build -q --offline --examples --manifest-path "$work/bindings/rust/Cargo.toml"
  mkdir -p rust/src
  printf '[package]\nname = "add"\nversion = "0.1.0"\nedition = "2021"\n' >rust/Cargo.toml
  example toml | sed "s#…/etude/bindings#$work/bindings#" >>rust/Cargo.toml
  example rust >rust/src/main.rs
  build "Rust, docs/languages.md" cargo build -q --offline --manifest-path rust/Cargo.toml
  check "Rust, docs/languages.md" numbers "$work/cargo/debug/add"
  corpus "Rust" "$work/cargo/debug/examples/run_case"
  generates "Rust" "$work/cargo/debug/examples/generate"
  build "Rust, what it documents" env RUSTDOCFLAGS=-Dwarnings cargo doc -q --offline --no-deps --manifest-path "$work/bindings/rust/Cargo.toml"
  if cargo clippy --version >/dev/null 2>&1; then
    build "Rust, clippy" cargo clippy -q --offline --all-targets --manifest-path "$work/bindings/rust/Cargo.toml" -- -Dwarnings
  fi
  if "$python" -c "import pycparser" 2>/dev/null; then
    build "Rust, etude-sys is what the headers say" "$python" "$root/bindings/rust/etude-sys/generate.py" --check
  fi
  echo "Rust, its tests:"
  cargo test -q --offline --manifest-path "$work/bindings/rust/Cargo.toml" 2>&1 | grep -E '^test result: .* [1-9][0-9]* passed|FAILED|panicked|^error' &&
    [ "${PIPESTATUS[0]}" = 0 ] && passed=$((passed + 1)) || failed=$((failed + 1))
else
  echo "NOT RUN Rust: no rustc and cargo here"
fi

if command -v go >/dev/null; then
  export GOCACHE=$work/go-cache GOPATH=$work/go-path GOPROXY=off GOFLAGS=-mod=mod
  build "Go" sh -c "cd '$work/bindings/go' && test -z \"\$(gofmt -l .)\" && go vet ./... && go build -o '$work/run_case_go' ./internal/runcase && go build -o '$work/generate_go' ./examples/generate"
  mkdir go
  example go >go/add.go
  build "Go, docs/languages.md" sh -c "cd go && go mod init add 2>&1 | grep -v -e ^go: -e ^[[:space:]]; go mod edit -require etude@v0.0.0 -replace etude='$work/bindings/go' && go build -o ../add-go"
  check "Go, docs/languages.md" numbers ./add-go
  corpus "Go" "$work/run_case_go"
  generates "Go" "$work/generate_go"
  if (cd "$work/bindings/go" && go test -race .); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  chmod -R u+w "$work/go-path" 2>/dev/null || true
else
  echo "NOT RUN Go: no go here"
fi

zig=$(command -v zig || true)
[ -n "$zig" ] || ! "$python" -c "import ziglang" 2>/dev/null || zig="$python -m ziglang"
if [ -n "$zig" ]; then
  mkdir zig
  source=$root/bindings/zig/src
  flags="--cache-dir zig/cache -L$prefix/lib -letude -lc"
  example zig 1 >zig/add.zig
  example zig 2 >zig/build.zig
  cp "$root/bindings/zig/build.zig" zig/package.zig
  # build scripts are compiled, but not run: what they need of the compiler takes minutes to build
  cat >zig/scripts.zig <<'ZIG'
pub const dependencies = struct {
    pub const packages = struct {};
    pub const root_deps: []const struct { []const u8, []const u8 } = &.{};
};
export fn look() void {
    inline for (.{ @import("build.zig"), @import("package.zig") }) |script| _ = &script.build;
}
ZIG
  build "Zig, formatted" $zig fmt --check "$root/bindings/zig" zig/add.zig zig/build.zig
  build "Zig, build scripts" $zig build-obj -fno-emit-bin --cache-dir zig/cache zig/scripts.zig
  # shellcheck disable=SC2086
  build "C++17 for Windows, by zig" $zig c++ -target x86_64-windows-gnu -std=c++17 $cpp -c "$root/bindings/cpp/tests/test.cpp" -o zig/windows.obj
  check "Zig, docs/languages.md" numbers $zig run $flags --dep etude -Mroot=zig/add.zig -Metude="$source/etude.zig"
  build "Zig, run_case" $zig build-exe $flags -femit-bin="$work/run_case_zig" --dep etude -Mroot="$source/run_case.zig" -Metude="$source/etude.zig"
  corpus "Zig" "$work/run_case_zig"
  build "Zig, generate" $zig build-exe $flags -femit-bin="$work/generate_zig" --dep etude -Mroot="$root/bindings/zig/examples/generate.zig" -Metude="$source/etude.zig"
  generates "Zig" "$work/generate_zig"
  echo "Zig, its tests:"
  if got=$($zig test $flags --dep etude --dep corpus/add.pte --dep corpus/shared_state.pte --dep data/backends.pte --dep abi/layout64.txt --dep tools/symbols.txt -Mroot="$source/test.zig" \
    -Metude="$source/etude.zig" -Mcorpus/add.pte="$model" -Mcorpus/shared_state.pte="$root/tests/corpus/shared_state.pte" -Mdata/backends.pte="$root/tests/data/backends.pte" -Mabi/layout64.txt="$root/tests/abi/layout64.txt" \
    -Mtools/symbols.txt="$root/tests/tools/symbols.txt" 2>&1); then
    echo "$got" | grep passed
    passed=$((passed + 1))
  else
    echo "FAILED: $got"
    failed=$((failed + 1))
  fi
else
  echo "NOT RUN Zig: no zig here"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
