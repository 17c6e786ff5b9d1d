#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of the present tree into DIR, from a copy of git's files (of all, where
# there is no git): the tree stays unchanged.
# usage: scripts/deb.sh DIR
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/deb.sh DIR}
version=$(sed -n 's/^VERSION := //p' Makefile)
rm -rf "$out"
mkdir -p "$out/source/kinformer-$version"
out=$(cd "$out" && pwd)
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cT - |
        tar -x -C "$out/source/kinformer-$version"
else
    tar -c --exclude=./build --exclude=./.git . | tar -x -C "$out/source/kinformer-$version"
fi
(cd "$out/source/kinformer-$version" &&
    DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -b -us -uc) >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    echo "deb: dpkg-buildpackage failed; all of its output is in $out/log" >&2
    exit 1
}
mv "$out"/source/*.deb "$out"/source/*.changes "$out"/source/*.buildinfo "$out"
rm -rf "$out/source"
ls "$out"/*.deb
