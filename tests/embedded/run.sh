#!/usr/bin/env bash
# Build the bare-metal image and run it under QEMU. Usage: run.sh PYTHON [CASE...]; the Python needs numpy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=$1
shift
[ $# -gt 0 ] || set -- add mlp_softmax lenet cond counter
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$python" "$here/embed.py" "$out/models.h" "$@"
flags="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -ffunction-sections -fdata-sections -std=c99"
for source in "$root"/c/core/*.c "$root"/c/compute/*.c "$root"/c/kernels/*.c "$here/firmware.c"; do
  standalone=$(case $source in */c/core/*) echo -ffreestanding ;; *) echo -fno-math-errno ;; esac)
  # shellcheck disable=SC2086
  arm-none-eabi-gcc $flags $standalone -DETUDE_BUILD -DNDEBUG -Wall -Wextra -I"$root/include" -I"$root/c" -I"$out" \
    -c "$source" -o "$out/$(basename "$(dirname "$source")")_$(basename "$source" .c).o"
done
# shellcheck disable=SC2086
arm-none-eabi-gcc $flags -nostartfiles -Wl,--gc-sections -T "$here/mps2.ld" "$out"/*.o -lm -lc -lgcc -o "$out/firmware.elf"
arm-none-eabi-size "$out/firmware.elf"
if arm-none-eabi-nm "$out/firmware.elf" | grep -wE 'malloc|_malloc_r|calloc|realloc|_sbrk'; then
  echo "the image contains a heap" >&2
  exit 1
fi
timeout 300 qemu-system-arm -M mps2-an386 -kernel "$out/firmware.elf" -nographic -monitor none -serial none \
  -semihosting-config enable=on,target=native
