#!/usr/bin/env bash
# Build bare-metal images and run them under QEMU. Usage: run.sh PYTHON; the Python needs numpy.
#
# One image has the portable kernels and no backend, the other XnnpackBackend and no kernel: the programs of int8 and 4-bit
# networks that it runs are all delegate.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
board=$root/python/etude/embed/boards
python=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
machine="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"

compile() { # FOLDER FLAG... -- SOURCE...: freestanding where no libm is needed
  folder=$1
  shift
  flags=
  while [ "$1" != -- ]; do flags="$flags $1"; shift; done
  shift
  for source in "$@"; do
    standalone=$(case $source in */c/core/* | */c/backends/*) echo -ffreestanding ;; *) echo -fno-math-errno ;; esac)
    # shellcheck disable=SC2086
    arm-none-eabi-gcc $machine $flags $standalone -ffunction-sections -fdata-sections -std=c99 -pedantic -DETUDE_BUILD -DNDEBUG \
      -Wall -Wextra -Werror -I"$root/include" -I"$root/c" -I"$folder" -I"$board" \
      -c "$source" -o "$folder/$(basename "$(dirname "$source")")_$(basename "$source" .c).o"
  done
}

run() { # FOLDER: link what was compiled there, and run it
  # shellcheck disable=SC2086
  arm-none-eabi-gcc $machine -nostartfiles -Wl,--gc-sections -T "$out/link.ld" "$1"/*.o -lm -lc -lgcc -o "$1/firmware.elf"
  arm-none-eabi-size "$1/firmware.elf"
  if arm-none-eabi-nm "$1/firmware.elf" | grep -wE 'malloc|_malloc_r|calloc|realloc|_sbrk'; then
    echo "the image contains a heap" >&2
    return 1
  fi
  timeout 300 qemu-system-arm -M mps2-an386 -kernel "$1/firmware.elf" -nographic -monitor none -serial none \
    -semihosting-config enable=on,target=native
}

mkdir "$out/portable" "$out/delegated"
sed 's/@CODE@/0x00000000, LENGTH = 4M/; s/@DATA@/0x20000000, LENGTH = 4M/' "$board/link.ld" >"$out/link.ld"

echo "portable kernels (-O2):"
"$python" "$here/embed.py" "$out/portable/models.h" add mlp_softmax lenet cond counter
compile "$out/portable" -O2 -- "$root"/c/core/*.c "$root"/c/compute/*.c "$root"/c/kernels/*.c "$board/cortex_m.c" "$here/firmware.c"
run "$out/portable"

echo "XnnpackBackend (-Os):"
"$python" "$here/embed.py" "$out/delegated/models.h" q8_linear q8_cnn q8_elementwise q8_dynamic_linear q4_linear_groupwise
# with all left out that docs/embedded.md has, but for texts
small="-DETUDE_NO_VIEWS -DETUDE_NO_SHARED_STATE -DETUDE_NO_EXTERNAL_DATA -DETUDE_NO_WORK_LIMIT -DETUDE_NO_TRACE -DETUDE_NO_METADATA -DETUDE_NO_NAMES"
# shellcheck disable=SC2086
compile "$out/delegated" -Os -DETUDE_BACKEND_XNNPACK -DETUDE_NO_FOLDING $small -DFIRMWARE_BACKENDS -- \
  "$root"/c/core/*.c "$root"/c/compute/*.c "$root"/c/backends/*.c "$root"/c/backends/xnnpack/*.c "$board/cortex_m.c" "$here/firmware.c"
run "$out/delegated"
