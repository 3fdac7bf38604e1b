#!/bin/sh
# Write the golden files of the binary interface anew, after a change that README.md allows:  update.sh
# At a release, and for changes that the first release has not frozen yet, the archived headers too:  update.sh release
# CC, CC32 and CC_X86 name compilers for machines of 64 bits, of 32, and of 32 that align 64-bit integers to 4 bytes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/layout.py" --write "$here/layout64.txt" ${CC:-cc}
python3 "$here/layout.py" --write "$here/layout32.txt" ${CC32:-arm-none-eabi-gcc}
python3 "$here/layout.py" --write "$here/layout32_x86.txt" ${CC_X86:-i686-linux-gnu-gcc}
if [ "${1-}" = release ]; then
  rm -f "$here"/previous/etude/*.h
  cp "$here"/../../include/etude/*.h "$here/previous/etude/"
fi
