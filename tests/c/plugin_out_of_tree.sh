#!/bin/sh
# Build the example plugin as docs/backends.md says, in a folder of its own, with a copy of the headers and nothing
# else; it must need no symbol of etude, and pass the conformance check.
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
"${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror -O2 -shared -fPIC -I include scale_backend.c -o scale_backend.so
if nm -D --undefined-only scale_backend.so | grep etude_; then
  echo "the plugin needs symbols of etude" >&2
  exit 1
fi
"$conformance" ./scale_backend.so
