#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies what was built in BUILD below $DESTDIR$PREFIX, or takes the same files away again.
# usage: DESTDIR= PREFIX=/usr/local VERSION= scripts/install.sh [--remove] BUILD
set -eu
remove=
[ "$1" = --remove ] && { remove=1; shift; }
build=$1
root=${DESTDIR:-}${PREFIX:-/usr/local}

put() { # MODE FROM TO
    if [ "$remove" ]; then
        rm -f "$root/$3"
    else
        install -D -m "$1" "$2" "$root/$3"
    fi
}

for program in kinf kinf-reflector kinf-processor; do
    put 755 "$build/$program" "bin/$program"
done
put 755 "$build/libkinf.so.0" lib/libkinf.so.0
put 644 reader/kinf.h include/kinf.h
put 644 LICENSE share/doc/kinformer/LICENSE
put 644 README.md share/doc/kinformer/README.md

pc=$(mktemp)
trap 'rm -f "$pc"' EXIT
cat >"$pc" <<EOF
prefix=${PREFIX:-/usr/local}
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: kinf
Description: The machine's Kubernetes informer cache, read from mapped files
Version: ${VERSION:-0}
Libs: -L\${libdir} -lkinf
Cflags: -I\${includedir}
EOF
put 644 "$pc" lib/pkgconfig/kinf.pc
if [ "$remove" ]; then
    rm -f "$root/lib/libkinf.so"
    rmdir "$root/share/doc/kinformer" 2>/dev/null || true
else
    ln -sf libkinf.so.0 "$root/lib/libkinf.so"
fi
