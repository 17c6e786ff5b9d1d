#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the programs, library, headers, units and documents of BUILD below $DESTDIR$PREFIX;
# --remove removes these files.
# debian/*.install divides the same files among the packages.
# usage: DESTDIR= PREFIX=/usr/local VERSION= [LIBDIR= UNITDIR= PYTHONDIR= SYSCONFDIR=/etc] scripts/install.sh [--remove] BUILD
set -eu
remove=
[ "$1" = --remove ] && { remove=1; shift; }
build=$1
root=${DESTDIR:-}
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
unitdir=${UNITDIR:-$prefix/lib/systemd/system}
# The programs look for their configuration in /etc/kinf, with any prefix.
sysconfdir=${SYSCONFDIR:-/etc}
version=${VERSION:-0}
made=$(mktemp)
trap 'rm -f "$made"' EXIT

put() { # MODE FROM TO
    if [ "$remove" ]; then
        rm -f "$root$3"
    else
        install -D -m "$1" "$2" "$root$3"
    fi
}

link() { # TO, NAME
    rm -f "$root$2"
    [ "$remove" ] || { mkdir -p "$root${2%/*}" && ln -s "$1" "$root$2"; }
}

put_unit() { # FROM TO: with the paths of this installation
    sed "s|@bindir@|$prefix/bin|; s|@sysconfdir@|$sysconfdir|" "$1" >"$made"
    put 644 "$made" "$2"
}

for program in kinf kinf-reflector kinf-processor kinf-serve; do
    put 755 "$build/$program" "$prefix/bin/$program"
done
# kubectl's plugin, and the completion of its command line.
link kinf "$prefix/bin/kubectl-kinf"
link kinf "$prefix/bin/kubectl_complete-kinf"
put 644 "$build/libkinf.so.0" "$libdir/libkinf.so.0"
link libkinf.so.0 "$libdir/libkinf.so"
for header in kinf kinf_informer kinf_queue; do
    put 644 "reader/$header.h" "$prefix/include/$header.h"
    put 644 "reader/$header.hpp" "$prefix/include/$header.hpp"
done
put 644 command/completion/kinf.bash "$prefix/share/bash-completion/completions/kinf"
put 644 command/completion/_kinf "$prefix/share/zsh/site-functions/_kinf"
put 644 command/completion/kinf.fish "$prefix/share/fish/vendor_completions.d/kinf.fish"

# ---- the service ---------------------------------------------------------------------------------

for unit in packaging/systemd/*.service packaging/systemd/*.socket; do
    put_unit "$unit" "$unitdir/${unit##*/}"
done
put 644 packaging/systemd/sysusers.conf "$prefix/lib/sysusers.d/kinf.conf"
put 644 packaging/systemd/tmpfiles.conf "$prefix/lib/tmpfiles.d/kinf.conf"
put 644 packaging/systemd/preset.conf "$prefix/lib/systemd/system-preset/80-kinf.preset"
# A changed configuration stays.
conf=$root$sysconfdir/kinf/kinf.yaml
if [ ! -e "$conf" ] || cmp -s packaging/kinf.yaml "$conf"; then
    put 644 packaging/kinf.yaml "$sysconfdir/kinf/kinf.yaml"
else
    echo "install: $conf stays as it is; the new default is packaging/kinf.yaml" >&2
fi

# ---- the Python module ---------------------------------------------------------------------------

python=${PYTHONDIR:-$prefix/lib/$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/dist-packages}
for file in reader/python/kinf/*.py reader/python/kinf/*.pyi reader/python/kinf/py.typed; do
    [ ! -e "$file" ] || put 644 "$file" "$python/kinf/${file##*/}"
done
printf 'Metadata-Version: 2.1\nName: kinf\nVersion: %s\n' "$version" >"$made"
put 644 "$made" "$python/kinf-$version.dist-info/METADATA"

# ---- documents -----------------------------------------------------------------------------------

doc=$prefix/share/doc/kinformer
# At their places in the tree, for their links.
for page in LICENSE README.md CHANGELOG.md $(find docs packaging/README.md packaging/Containerfile packaging/grafana packaging/kubernetes \
    packaging/prometheus tests/examples -type f ! -path 'docs/*.py'); do
    put 644 "$page" "$doc/$page"
done
scripts/sbom.sh "$build" "$version" >"$made"
put 644 "$made" "$doc/kinformer.spdx"

# Each manual page, with a link for each function in its NAME section.
for page in reader/man/*.[135]; do
    section=$prefix/share/man/man${page##*.}
    put 644 "$page" "$section/${page##*/}"
    for name in $(sed -n 's/^\.Nm \(kinf_[a-z_]*\).*/\1/p' "$page" | sort -u); do
        [ "$page" = "reader/man/$name.3" ] || link "${page##*/}" "$section/$name.3"
    done
done
link kinf.1 "$prefix/share/man/man1/kubectl-kinf.1"
link kinf.1 "$prefix/share/man/man1/kubectl_complete-kinf.1"

cat >"$made" <<EOF
prefix=$prefix
libdir=$libdir
includedir=\${prefix}/include

Name: kinf
Description: The machine's Kubernetes informer cache, read from mapped files
Version: $version
Libs: -L\${libdir} -lkinf
Cflags: -I\${includedir}
EOF
put 644 "$made" "$libdir/pkgconfig/kinf.pc"
if [ "$remove" ]; then
    find "$root$doc" "$root$python/kinf" "$root$python/kinf-$version.dist-info" "$root$sysconfdir/kinf" \
        -depth -type d -empty -delete 2>/dev/null || true
fi
