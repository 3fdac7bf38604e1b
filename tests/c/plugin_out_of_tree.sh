#!/bin/sh
# Build two plugins in a folder of their own, with a copy of the headers and nothing else: the one of examples/plugin, and
# the source in docs/backends.md. They must need no symbol of etude, and pass the conformance check.
# Usage: plugin_out_of_tree.sh ETUDE_CONFORMANCE SOURCE_ROOT
set -eu
conformance=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/include"
cp -r "$root/include/etude" "$folder/include/etude"
cp "$root/examples/plugin/scale_backend.c" "$folder"
cd "$folder"
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$root/docs/backends.md" > offset_backend.c
for plugin in scale_backend offset_backend; do
  "${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror -O2 -shared -fPIC -I include $plugin.c -o $plugin.so
  if nm -D --undefined-only $plugin.so | grep etude_; then
    echo "$plugin needs symbols of etude" >&2
    exit 1
  fi
  "$conformance" ./$plugin.so
done
