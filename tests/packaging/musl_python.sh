#!/usr/bin/env bash
# A CPython on musl for x86-64, compiled in a folder of its own from Debian's sources: nothing is installed.
#
#   musl_python.sh FOLDER [WHEEL...]       musl_python.sh /tmp/musl etude-*-musllinux_1_2_x86_64.whl && /tmp/musl/bin/python -m pytest ...
#
# With it come NumPy and CFFI for musllinux, pytest and FlatBuffers, and the wheels given: pip of this machine unpacks them if their tags
# suit that Python. FOLDER/bin/python starts it; FOLDER/bin/cc compiles for it, by gcc with musl's headers and library. With FOLDER/bin
# first on PATH, tests that start Python or compile find both. It has zlib, bz2 and ctypes, but no ssl, sqlite3, lzma or readline.
# musl is newer than bookworm's 1.2.3, which crashes with NumPy's wheel: it does not know relative relocations (DT_RELR).
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
from=$PWD
musl=$folder/musl

quietly() { # COMMAND...: what it prints is shown if it fails
  "$@" >"$folder/log" 2>&1 || { tail -n 40 "$folder/log"; exit 1; }
}

apt=$folder/apt
mkdir -p "$apt"/state/lists/partial "$apt"/cache/archives/partial "$apt"/etc/preferences.d "$folder/bin" "$musl"
: >"$apt/status"
signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian"
printf '%s\n' "deb $signed trixie main" "deb-src $signed bookworm main" >"$apt/etc/sources.list"
get() {
  quietly apt-get -q -y -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Dir::Etc="$apt/etc" \
    -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
get update
cd "$apt"
get download musl musl-dev
get source --download-only --tar-only python3.11 zlib bzip2 libffi
for package in ./*.deb; do dpkg-deb -x "$package" "$musl"; done
for name in python3.11 zlib bzip2 libffi; do
  mkdir -p "$folder/$name"
  tar -C "$folder/$name" --strip-components 1 -xf "$name"_*.orig.tar.*
done
cd "$folder"
rm -r "$apt"

sed -e "s#/usr/#$musl/usr/#g" -e "s# /lib/# $musl/usr/lib/#g" "$musl/usr/lib/x86_64-linux-musl/musl-gcc.specs" >"$musl/specs"
# gcc would name its own C library, and CPython's configure compares that with what it finds
cat >"$folder/bin/cc" <<END
#!/bin/sh
case \$* in -print-multiarch | --print-multiarch) echo x86_64-linux-musl && exit ;; esac
exec gcc "\$@" -specs '$musl/specs'
END
chmod +x "$folder/bin/cc"

export CC="$folder/bin/cc" PKG_CONFIG_LIBDIR="$folder/prefix/lib/pkgconfig"
cd "$folder/zlib"
CFLAGS="-O2 -fPIC" quietly ./configure --static --prefix="$folder/prefix"
quietly make -j2 install
cd "$folder/bzip2"
quietly make CC="$CC" CFLAGS="-O2 -fPIC -D_FILE_OFFSET_BITS=64" libbz2.a
cp libbz2.a "$folder/prefix/lib"
cp bzlib.h "$folder/prefix/include"
cd "$folder/libffi"
quietly ./configure --build=x86_64-linux-musl --prefix="$folder/prefix" --disable-shared --with-pic --disable-docs --disable-exec-static-tramp
quietly make -j2 install
cd "$folder/python3.11"
quietly ./configure --build=x86_64-linux-musl --without-ensurepip --disable-test-modules OPT="-DNDEBUG -O2" \
  CPPFLAGS="-I$folder/prefix/include" LDFLAGS="-L$folder/prefix/lib"
quietly make -j2

cat >"$folder/bin/python" <<END
#!/bin/sh
export PYTHONPATH='$folder/site'\${PYTHONPATH:+:\$PYTHONPATH}
exec '$folder/python3.11/python' "\$@"
END
chmod +x "$folder/bin/python"
cd "$from"
quietly python3 -m pip install --only-binary :all: --target "$folder/site" --platform musllinux_1_2_x86_64 --implementation cp \
  --python-version 3.11 numpy cffi pytest flatbuffers "$@"
"$folder/bin/python" -c "import bz2, ctypes, hashlib, socket, zlib, cffi, numpy"
