#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares the calls of libkinf's handlers with client-go's (tests/differential/README.md), first at
# the API server, then at a kinf-serve. Without Go, or without client-go in Go's module cache or a
# vendor directory, it prints the reason and passes; it downloads nothing.
# usage: scripts/check-differential.sh [--why-not] BUILD [SEED...]
# --why-not: only print the reason, if there is one
set -u
cd "$(dirname "$0")/.." || exit 1

why_not=
[ "${1:-}" = --why-not ] && { why_not=1; shift; }
build=${1:?BUILD}
shift
source=tests/differential/clientgo
client_go=$PWD/$build/differential/clientgo
export GOPROXY=off GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

missing() {
    command -v go >/dev/null || { echo "Go is not installed"; return; }
    # The last line has the reason, the others the files importing the module.
    (cd "$source" && go list -deps . 2>&1 >/dev/null) | tail -n 1
}

reason=$(missing)
if [ -n "$why_not" ]; then
    echo "$reason"
    exit 0
fi
if [ -n "$reason" ]; then
    echo "differential: skipped: $reason"
    exit 0
fi
mkdir -p "$(dirname "$client_go")"
(cd "$source" && go vet ./... && go build -o "$client_go" .) || exit 1
/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/differential/test_compare.py || exit 1
[ $# -gt 0 ] || set -- 1 2 3 4 5 6
seeds=()
for seed; do seeds+=(--seed "$seed"); done
KINF_BUILD=$build /usr/bin/python3 tests/differential/differential.py --client-go "$client_go" "${seeds[@]}" || exit 1
KINF_BUILD=$build exec /usr/bin/python3 tests/differential/differential.py --client-go "$client_go" --serve "${seeds[@]}"
