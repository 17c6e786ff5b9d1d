#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need, if they are missing. No other script installs anything.
# usage: scripts/dependencies.sh [fuzz|arm64|clang|h2spec]    also what `make fuzz`, `make check-arm64`, `make check-clang`,
# `make check-h2spec` need
set -eu

packages='gcc g++ make pkg-config libcurl4-openssl-dev libmsgpack-dev liblmdb-dev libcriterion-dev
libsimdjson-dev libyaml-dev libxxhash-dev libmicrohttpd-dev python3 python3-pytest python3-pytest-xdist python3-yaml
python3-pip python3-setuptools python3-wheel openssl nghttp2-proxy libnghttp2-dev libssl-dev nghttp2-client curl
zsh fish'

case ${1:-} in
    fuzz) packages="$packages clang-14 libclang-rt-14-dev" ;;
    arm64) packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
    clang) packages="$packages clang" ;;
    h2spec) # by Go, which is not installed here: no package has it
        [ -x build/tools/h2spec ] || GOBIN=$(pwd)/build/tools go install github.com/summerwind/h2spec/cmd/h2spec@latest
        ;;
esac

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null || {
    echo "dependencies: there is no apt-get; install the equivalents of these packages:$missing" >&2
    exit 1
}
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
echo "dependencies: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq >&2
# shellcheck disable=SC2086 # words on purpose
$sudo apt-get install -y -qq --no-install-recommends $missing >&2
