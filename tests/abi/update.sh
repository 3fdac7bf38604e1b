#!/bin/sh
# Write the golden files of the binary interface anew, after a change that README.md allows:  update.sh
# At a release, and for changes that the first release has not frozen yet, the archived headers too:  update.sh release
# CC and CC32 name compilers for machines of 64 and of 32 bits.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/layout.py" --write "$here/layout64.txt" ${CC:-cc}
python3 "$here/layout.py" --write "$here/layout32.txt" ${CC32:-arm-none-eabi-gcc}
if [ "${1-}" = release ]; then
  rm -f "$here"/previous/etude/*.h
  cp "$here"/../../include/etude/*.h "$here/previous/etude/"
fi
