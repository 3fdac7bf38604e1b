#!/usr/bin/env bash
# A CPython of Debian's, of any of its processors and suites, unpacked in a folder of its own: nothing is installed.
#
#   debian_python.sh SUITE ARCHITECTURE FOLDER       debian_python.sh forky arm64 /tmp/arm64 && /tmp/arm64/bin/python -m pytest ...
#
# With it come NumPy, CFFI, pytest and what the tests take. FOLDER/bin/python starts it, by QEMU's user mode (`qemu-user`) where this
# machine has another processor, and by the loader and C library of that suite, which may be newer than the machine's. FOLDER/bin/cc
# compiles for it with the cross compiler (gcc-ARCH-linux-gnu); its programs start the same way. With FOLDER/bin first on PATH, tests
# that start Python or compile find both.
set -eu
suite=$1 architecture=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
root=$folder/root
case $architecture in
  amd64) triplet=x86_64-linux-gnu emulator="" ;;
  i386) triplet=i386-linux-gnu emulator="" ;;
  arm64) triplet=aarch64-linux-gnu emulator=qemu-aarch64 ;;
  armhf) triplet=arm-linux-gnueabihf emulator=qemu-arm ;;
  *) triplet=$architecture-linux-gnu emulator=qemu-$architecture ;;
esac

apt=$folder/apt
mkdir -p "$apt"/state/lists/partial "$apt"/cache/archives/partial "$apt"/etc/preferences.d "$root"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$apt/etc/sources.list"
get() {
  apt-get -q -y -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Dir::Etc="$apt/etc" \
    -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o APT::Sandbox::User=root \
    -o APT::Install-Recommends=false -o Acquire::Languages=none "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
}
get update
get install --download-only python3 python3-numpy python3-cffi python3-pytest python3-pytest-xdist python3-ml-dtypes python3-flatbuffers python3-jinja2
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -r "$apt"
# what an installation of Debian's would link
for name in lib lib64; do [ -e "$root/$name" ] || [ ! -e "$root/usr/$name" ] || ln -s "usr/$name" "$root/$name"; done
for library in blas/libblas lapack/liblapack; do ln -sf "$library.so.3" "$root/usr/lib/$triplet/"; done

write() { # FILE, from standard input: a script
  { echo '#!/bin/sh'; cat; } >"$1"
  chmod +x "$1"
}

mkdir -p "$folder/bin"
if [ -n "$emulator" ]; then
  write "$folder/bin/start" <<END
name=\$1 program=\$2
shift 2
exec $emulator -L '$root' -0 "\$name" "\$program" "\$@"
END
else
  write "$folder/bin/start" <<END
name=\$1 program=\$2
shift 2
exec $(echo "$root"/lib*/ld-linux*) --library-path '$root/usr/lib/$triplet' --argv0 "\$name" "\$program" "\$@"
END
fi
# beside the modules, where Python looks for them from the name by which it was started
ln -sfn "$root/usr/lib" "$folder/lib"
write "$folder/bin/python" <<END
exec '$folder/bin/start' "\$0" '$(readlink -f "$root/usr/bin/python3")' "\$@"
END
if [ "$architecture" != amd64 ]; then
  write "$folder/bin/cc" <<END
${triplet/i386/i686}-gcc "\$@" || exit
for argument; do
  case \$argument in -c | -shared | -fsyntax-only) exit ;; esac
  [ "\$before" != -o ] || output=\$argument
  before=\$argument
done
mv "\$output" "\$output.program"
printf '#!/bin/sh\nexec %s "\$0" "\$0.program" "\$@"\n' '$folder/bin/start' >"\$output"
chmod +x "\$output"
END
fi
