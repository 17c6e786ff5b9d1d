#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks HEAD for a release, and builds its archive; with --tag also makes the annotated tag
# v<VERSION> with the section of CHANGELOG.md as its message. CONTRIBUTING.md, Release, has the
# steps before and after.
# usage: scripts/release.sh [--tag [--sign]]
set -eu
cd "$(dirname "$0")/.."

tag= annotate=--annotate
for word; do
    case $word in
    --tag) tag=yes ;;
    --sign) annotate=--sign ;;
    *) echo "usage: scripts/release.sh [--tag [--sign]]" >&2; exit 2 ;;
    esac
done

fail() { echo "release: $1" >&2; exit 1; }

version=$(sed -n 's/^VERSION := //p' Makefile)
name=v$version
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
git rev-parse -q --verify "refs/tags/$name" >/dev/null && fail "the tag $name exists; raise VERSION"
scripts/check-version.sh || fail "the version differs between files"
message=$(awk -v version="$version" \
    '/^## / { inside = $2 == version; next } inside && (NF || text) { text = 1; print }' CHANGELOG.md)
[ -n "$message" ] || fail "CHANGELOG.md has no section $version"

make check-style
make test
make dist

# A packager gets the archive alone: it has to build alone, and to print its version.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xzf "build/kinformer-$version.tar.gz" -C "$scratch"
make -C "$scratch/kinformer-$version" -j"$(nproc)" all >"$scratch/log" 2>&1 ||
    { tail -n 40 "$scratch/log"; fail "the archive does not build"; }
"$scratch/kinformer-$version/build/release/kinf" --version | grep -qF "$version" ||
    fail "kinf --version of the archive does not say $version"
(cd build && sha256sum "kinformer-$version.tar.gz")

if [ -n "$tag" ]; then
    printf 'kinformer %s\n\n%s\n' "$version" "$message" |
        git tag "$annotate" --cleanup=verbatim --file=- "$name"
    echo "made the tag $name; publish it with: git push origin $name"
else
    echo "HEAD can be released: scripts/release.sh --tag makes the tag $name"
fi
