#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs and the unit tests for arm64 with Debian's cross compiler, and runs the unit
# tests with qemu-user. The libraries are in build/arm64-root, made by `scripts/dependencies.sh
# arm64` (or in $ARM64_ROOT). Exit 77, with the reason, if something is missing.
# usage: scripts/check-arm64.sh [--why-not] [TEST...]
# TEST: the name without test_; default: all in TESTS
set -u
cd "$(dirname "$0")/.." || exit 1

# The processor-dependent tests: memory order, atomics, maps, byte order, futexes, forks, and their
# users. Left out are two failures of qemu-user itself (7.2): test_rebuild maps 64 GiB (ENOMEM
# there), and test_proc reads /proc/self/stat, with another state there.
TESTS="array base64 buf crc cursor_file datafile decimal doorbell entry env env_damage env_killed env_pages
env_path env_room follow forks generation hashtable hints history index index_damage
informer informer_wake journal journal_open json list pins pins_model postings queue ring ring_file ring_status
salvage scan snapshot sorted stats taken tables value verify verify_damage"
root=${ARM64_ROOT:-build/arm64-root}
LIMIT=600 # seconds for the tests of one program

why_not() {
    command -v aarch64-linux-gnu-g++ >/dev/null ||
        { echo "there is no aarch64-linux-gnu-g++"; return; }
    [ -e "$root/usr/lib/aarch64-linux-gnu/libcriterion.so" ] ||
        { echo "there are no libraries in $root"; return; }
    [ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] ||
        echo "the kernel does not start arm64 programs by qemu-user (binfmt_misc)"
}

reason=$(why_not)
if [ "${1:-}" = --why-not ]; then
    [ -z "$reason" ] || echo "$reason (scripts/dependencies.sh arm64)"
    exit 0
fi
[ -z "$reason" ] || { echo "check-arm64: $reason" >&2; exit 77; }
tests=${*:-$TESTS}
# shellcheck disable=SC2086 # words on purpose
make -j"$(nproc)" --no-print-directory VARIANT=arm64 ARM64_ROOT="$root" all $(printf 'build/arm64/unit/test_%s ' $tests) || exit 1
export QEMU_LD_PREFIX=$root
passed=0
failed=0
for test in $tests; do
    began=$SECONDS
    # Into a file: a hung child would keep a pipe open.
    timeout --kill-after 10 "$LIMIT" "build/arm64/unit/test_$test" -j1 --timeout 300 >build/arm64/said 2>&1
    status=$?
    said=$(cat build/arm64/said)
    [ $status != 124 ] || said+=$'\n'"not at its end after $LIMIT s"
    if [ $status = 0 ] && [[ $said != *" crashed "* ]]; then
        passed=$((passed + 1))
        echo "test_$test: passed in $((SECONDS - began)) s"
    else
        failed=$((failed + 1))
        printf '%s\n' "---- test_$test: failed (status $status) after $((SECONDS - began)) s" "$said"
    fi
done
echo "$passed unit tests passed, $failed failed"
[ "$failed" = 0 ]
