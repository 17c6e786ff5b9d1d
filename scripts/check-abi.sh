#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares libkinf of BUILD with reader/libkinf.0.abi, its programs' interface (libabigail). A
# removed function or a changed structure is an error: it needs a new soname. So is a new function,
# until --write has noted it. Exit 77, with the reason, if a tool is missing.
# usage: scripts/check-abi.sh [--why-not] [--write] BUILD
set -u
cd "$(dirname "$0")/.." || exit 1
if [ "${1:-}" = --why-not ]; then
    command -v abidw >/dev/null || echo "there is no abidw (scripts/dependencies.sh packages)"
    exit 0
fi
command -v abidw >/dev/null || {
    echo "check-abi: there is no abidw (scripts/dependencies.sh packages)" >&2
    exit 77
}
write=
[ "$1" = --write ] && { write=1; shift; }
baseline=reader/libkinf.0.abi
now=$(mktemp)
trap 'rm -f "$now"' EXIT
# The public headers only: the structures of opaque handles may change.
headers=$(mktemp -d)
trap 'rm -rf "$now" "$headers"' EXIT
cp reader/kinf*.h "$headers"
abidw --headers-dir "$headers" --drop-private-types --no-corpus-path --no-comp-dir-path --no-architecture --exported-interfaces-only --type-id-style hash \
    --no-elf-needed --out-file "$now" "$1/libkinf.so.0" || exit 1
if [ "$write" ]; then
    cp "$now" "$baseline"
    exit 0
fi
abidiff --headers-dir1 "$headers" --headers-dir2 "$headers" "$baseline" "$now"
status=$?
[ $status = 0 ] && exit 0
if [ $((status & 8)) != 0 ]; then
    echo "check-abi: programs that are built against libkinf.so.0 break: undo this, or change the soname (docs/operations.md, Versions)"
elif [ $((status & 4)) != 0 ]; then
    echo "check-abi: if this only adds something, note it: scripts/check-abi.sh --write $1, and debian/libkinf0.symbols; if not, programs break"
fi
exit 1
