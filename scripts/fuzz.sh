#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz target of DIRECTORY, or those in FUZZ_TARGETS, for FUZZ_SECONDS (default 60). Keeps inputs that reach new
# code in build/fuzz/corpus, where the next run begins, and failing inputs in build/fuzz/broken: commit these beside the
# seeds, with the fix. Exit 1 if an input failed.
# usage: scripts/fuzz.sh DIRECTORY
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=${FUZZ_SECONDS:-60}
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
failed=0
mkdir -p build/fuzz/broken
for program in "$1"/fuzz_*; do
    case $program in *.*) continue ;; esac
    target=${program##*/fuzz_}
    if [ -n "${FUZZ_TARGETS:-}" ] && [[ " $FUZZ_TARGETS " != *" $target "* ]]; then continue; fi
    corpus=build/fuzz/corpus/$target
    log=build/fuzz/$target.log
    mkdir -p "$corpus"
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/broken/$target-" "$corpus" "tests/fuzz/seeds/$target" >"$log" 2>&1; then
        printf '%-12s clean, %s runs\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    else
        failed=1
        printf '%-12s BROKEN\n---- %s ----\n' "$target" "$log"
        tail -n 60 "$log"
        echo "----"
    fi
done
exit $failed
