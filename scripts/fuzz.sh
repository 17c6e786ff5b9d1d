#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz target of DIRECTORY, or those in FUZZ_TARGETS, for FUZZ_SECONDS of CPU time
# (default 60). Prints the inputs run and the target's covered edges. Keeps inputs with new code in
# build/fuzz/corpus, where the next run begins, and failing inputs in build/fuzz/broken: commit
# these beside the seeds, with the fix. Exit 1 if an input failed.
# usage: scripts/fuzz.sh DIRECTORY
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=${FUZZ_SECONDS:-60}
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
ticks=$(getconf CLK_TCK)
failed=0
mkdir -p build/fuzz/broken

# Seconds of CPU time used by a process; nothing once it has ended. Fields 14 and 15 of proc(5)'s
# stat, counted behind the name of the program.
cpu_seconds() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
    # shellcheck disable=SC2086 # fields on purpose
    set -- ${line##*) }
    echo $(((${12} + ${13}) / ticks))
}

for program in "$1"/fuzz_*; do
    case $program in *.*) continue ;; esac
    target=${program##*/fuzz_}
    if [ -n "${FUZZ_TARGETS:-}" ] && [[ " $FUZZ_TARGETS " != *" $target "* ]]; then continue; fi
    corpus=build/fuzz/corpus/$target
    log=build/fuzz/$target.log
    mkdir -p "$corpus"
    "$program" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/broken/$target-" "$corpus" "tests/fuzz/seeds/$target" >"$log" 2>&1 &
    pid=$!
    used=0
    while now=$(cpu_seconds $pid) && [ -n "$now" ]; do
        used=$now
        # libFuzzer finishes its present input, prints its figures and exits with 0.
        if [ "$used" -ge "$seconds" ]; then kill -USR1 $pid 2>/dev/null; fi
        sleep 1
    done
    if wait $pid; then
        printf '%-14s clean: %d s of CPU, %d inputs, %d of %d edges covered\n' "$target" "$used" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
            "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" \
            "$(sed -n 's/^INFO: Loaded 1 PC tables (\([0-9]*\) PCs).*/\1/p' "$log")"
    else
        failed=1
        printf '%-14s BROKEN\n---- %s ----\n' "$target" "$log"
        tail -n 60 "$log"
        echo "----"
    fi
done
exit $failed
