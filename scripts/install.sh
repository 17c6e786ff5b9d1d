#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the programs, library, headers and documents of BUILD below $DESTDIR$PREFIX; --remove removes these files.
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

link() { # TO, NAME
    rm -f "$root/$2"
    [ "$remove" ] || ln -s "$1" "$root/$2"
}

for program in kinf kinf-reflector kinf-processor kinf-serve; do
    put 755 "$build/$program" "bin/$program"
done
# kubectl's plugin, and the completion of its command line.
link kinf bin/kubectl-kinf
link kinf bin/kubectl_complete-kinf
put 755 "$build/libkinf.so.0" lib/libkinf.so.0
for header in kinf kinf_informer kinf_queue; do
    put 644 "reader/$header.h" "include/$header.h"
    put 644 "reader/$header.hpp" "include/$header.hpp"
done
put 644 reader/completion/kinf.bash share/bash-completion/completions/kinf
put 644 reader/completion/_kinf share/zsh/site-functions/_kinf
put 644 reader/completion/kinf.fish share/fish/vendor_completions.d/kinf.fish
put 644 LICENSE share/doc/kinformer/LICENSE
put 644 README.md share/doc/kinformer/README.md
for page in $(find docs packaging/prometheus packaging/grafana tests/examples -type f ! -path 'docs/*.py'); do
    put 644 "$page" "share/doc/kinformer/$page"
done

# Each manual page, with a link for each function in its NAME section.
for page in reader/man/*.[135]; do
    section=share/man/man${page##*.}
    put 644 "$page" "$section/${page##*/}"
    for name in $(sed -n 's/^\.Nm \(kinf_[a-z_]*\).*/\1/p' "$page" | sort -u); do
        [ "$page" = "reader/man/$name.3" ] || link "${page##*/}" "$section/$name.3"
    done
done

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
link libkinf.so.0 lib/libkinf.so
[ -z "$remove" ] || [ ! -d "$root/share/doc/kinformer" ] || find "$root/share/doc/kinformer" -depth -type d -empty -delete
