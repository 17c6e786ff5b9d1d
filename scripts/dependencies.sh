#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the missing Debian packages for building and testing. No other script installs anything.
# usage: scripts/dependencies.sh [fuzz|arm64|clang|go|h2spec|monitoring|python|packages]
# Also for `make fuzz`, `make check-arm64`, `make check-clang`, `make check-h2spec`,
# scripts/check-monitoring.sh, scripts/check-python.sh, `make deb` and `make check-packages`.
set -eu

packages='gcc g++ make pkg-config libcurl4-openssl-dev libmsgpack-dev liblmdb-dev libcriterion-dev
libsimdjson-dev libyaml-dev libarchive-dev libisal-dev libxxhash-dev libmicrohttpd-dev python3 python3-pyte python3-pytest python3-pytest-xdist python3-yaml
python3-pip python3-setuptools python3-wheel openssl nghttp2-proxy libnghttp2-dev libssl-dev nghttp2-client curl
zsh fish xfsprogs btrfs-progs systemd'

case ${1:-} in
    fuzz) packages="$packages clang-14 libclang-rt-14-dev" ;;
    arm64) packages="$packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static mmdebstrap" ;;
    clang) packages="$packages clang" ;;
    packages) packages="$packages debhelper dh-python lintian mmdebstrap abigail-tools fakeroot strace systemd-container" ;;
    go) command -v staticcheck >/dev/null || go install honnef.co/go/tools/cmd/staticcheck@latest ;;
    h2spec) # by Go, which is not installed here: no package has it
        [ -x build/tools/h2spec ] ||
            GOBIN=$(pwd)/build/tools go install github.com/summerwind/h2spec/cmd/h2spec@latest
        ;;
    python) packages="$packages mypy" ;;
    monitoring) # the programs of Debian's package alone: installed, it would start a service
        if [ ! -x build/tools/prometheus/usr/bin/promtool ]; then
            rm -rf build/tools/prometheus && mkdir -p build/tools/prometheus
            (cd build/tools/prometheus && apt-get download -qq prometheus &&
                dpkg-deb -x ./*.deb . && rm -rf ./*.deb usr/share) >&2
        fi
        ;;
esac

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || {
        echo "dependencies: there is no apt-get; install the equivalents of these packages:$missing" >&2
        exit 1
    }
    echo "dependencies: installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq >&2
    # shellcheck disable=SC2086 # words on purpose
    $sudo apt-get install -y -qq --no-install-recommends $missing >&2
fi
[ "${1:-}" = arm64 ] || exit 0

# The libraries for arm64, in a directory of their own: this machine's packages stay as they are.
if [ ! -e build/arm64-root/usr/lib/aarch64-linux-gnu/libcriterion.so ]; then
    echo "dependencies: making build/arm64-root" >&2
    rm -rf build/arm64-root
    mkdir -p build
    mmdebstrap --quiet --variant=extract --architectures=arm64 --include=libc6-dev,libstdc++-12-dev,libcurl4-openssl-dev,libmsgpack-dev,liblmdb-dev,libcriterion-dev,libsimdjson-dev,libyaml-dev,libarchive-dev,libxxhash-dev,libmicrohttpd-dev,libnghttp2-dev,libssl-dev,libisal-dev \
        bookworm build/arm64-root >&2
fi
# systemd does this at a start, where it runs.
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || $sudo mount -t binfmt_misc none $formats
[ -e $formats/qemu-aarch64 ] ||
    $sudo sh -c "cat /usr/lib/binfmt.d/qemu-aarch64.conf >$formats/register"
