#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test without a real cluster, with AddressSanitizer and UBSan; rings also with
# ThreadSanitizer. The last lines name each skipped test, with the reason, and count them; the very
# last one is "N passed, N failed". Exit 1 if a test failed.
# usage: scripts/test.sh
set -u
cd "$(dirname "$0")/.." || exit 1

passed=0
failed=0
failures=()
skipped=()
logs=build/test-logs
rm -rf "$logs" && mkdir -p "$logs" || exit 1
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# The simulated cluster has the sanitizers only where it is tested itself (test_simulator.py).
export DEVELOPER=1 KINF_BUILD=build/asan KINF_SIMULATOR_BUILD=build/release
jobs=$(nproc)

# counted NAME PASSED FAILED LOG: adds to the sums; prints the end of LOG if a test failed. The last
# column is when it was counted, in seconds since the start.
counted() {
    passed=$((passed + $2))
    failed=$((failed + $3))
    printf '%-28s %4d passed, %d failed  %4d s\n' "$1" "$2" "$3" "$SECONDS"
    if [ "$3" -gt 0 ]; then
        failures+=("$1")
        echo "---- $4 ----"
        tail -n 120 "$4"
        echo "----"
    fi
}

# skip NAME: notes skipped tests of NAME; their reasons come from standard input, one a line for
# each test.
skip() {
    local reason
    while IFS= read -r reason; do skipped+=("$1: $reason"); done
}

# ended NAME LOG STATUS: counts a command ended with STATUS as one test, skipped if LOG has a line
# "COMMAND: skipped: REASON".
ended() {
    local reason
    reason=$(sed -n 's/^[a-z_]*: skipped: //p' "$2")
    if [ "$3" != 0 ]; then
        counted "$1" 0 1 "$2"
    elif [ -n "$reason" ]; then
        skip "$1" <<<"$reason"
    else
        counted "$1" 1 0 "$2"
    fi
}

# one NAME COMMAND...: counts COMMAND as one test.
one() {
    local name=$1 log
    shift
    log=$logs/${name//[ \/]/-}.log
    "$@" >"$log" 2>&1
    ended "$name" "$log" $?
}

# begin NAME COMMAND...: starts COMMAND beside the later tests; "finish" waits for all of them, and
# counts each as one test.
begun=()
begin() {
    local log=$logs/${1//[ \/]/-}.log
    begun+=("$1")
    shift
    { "$@" >"$log" 2>&1; echo $? >"$log.status"; } &
}

finish() {
    local name log
    wait
    for name in "${begun[@]}"; do
        log=$logs/${name//[ \/]/-}.log
        ended "$name" "$log" "$(cat "$log.status")"
    done
    begun=()
}

# build VARIANT TARGET...: ends the script if the build fails.
build() {
    local log=$logs/build-$1.log
    if ! make -j"$jobs" --no-print-directory VARIANT="$1" "${@:2}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "build of VARIANT=$1 failed"
        echo "0 passed, 1 failed"
        exit 1
    fi
}

# Runs several unit test programs at a time, since they often wait for disk and clock.
unit() {
    local test log p f status tests=()
    for test in build/asan/unit/test_*; do
        case $test in *.*) continue ;; esac
        [ -x "$test" ] && tests+=("$test")
    done
    # Criterion leaks the text of --output.
    printf '%s\n' "${tests[@]}" | LSAN_OPTIONS=suppressions=tests/unit/leaks.supp:print_suppressions=0 logs=$logs xargs -P $((2 * jobs)) -I{} sh -c '
        log=$logs/$(basename "$1").log
        "$1" -j1 --timeout 300 --output="tap:$log.tap" >"$log" 2>&1
        echo $? >"$log.status"' unit {}
    for test in "${tests[@]}"; do
        log=$logs/$(basename "$test").log
        status=$(cat "$log.status")
        p=$(sed -n 's/.*Passing: .*\b\([0-9][0-9]*\).*| Failing.*/\1/p' <(sed 's/\x1b\[[0-9;]*m//g' "$log") | tail -1)
        f=$(sed 's/\x1b\[[0-9;]*m//g' "$log" |
            sed -n 's/.*Failing: *\([0-9]*\) | Crashing: *\([0-9]*\).*/\1 \2/p' | tail -1 |
            awk '{print $1 + $2}')
        [ -n "$p" ] || p=0
        [ -n "$f" ] || f=1
        # Criterion prints a leak and still reports success.
        if [ "$f" = 0 ] && { [ "$status" != 0 ] || grep -q 'Sanitizer' "$log"; }; then f=1; fi
        counted "unit $(basename "$test")" "$p" "$f" "$log"
        # Criterion tells of a skipped test only in such a report.
        skip "unit $(basename "$test")" < <(sed -n 's/^ok - \(.*[^ ]\)  *# SKIP */\1: /p' "$log.tap")
    done
}

scenarios() {
    local log=$logs/scenarios.log p f e last
    # Rewriting the assertions of all tests takes 4 s of each worker, unless it is done before.
    export PYTHONPYCACHEPREFIX=$PWD/build/pycache
    env -u PYTHONDONTWRITEBYTECODE /usr/bin/python3 -m pytest -q --collect-only -p no:cacheprovider tests/scenario >"$log" 2>&1
    # A hung test leaves the stack of its process in the log. Most wait for nine tenths of their
    # time.
    COLUMNS=1000 /usr/bin/python3 -m pytest -q -rsfE --durations 20 -p no:cacheprovider -o faulthandler_timeout=600 -n $((5 * jobs)) --dist loadfile \
        tests/scenario >"$log" 2>&1
    local status=$?
    last=$(grep -E '^[0-9]+ (passed|failed|error).* in [0-9.]+s' "$log" | tail -n 1)
    p=$(grep -oE '[0-9]+ passed' <<<"$last" | grep -oE '[0-9]+' || echo 0)
    f=$(grep -oE '[0-9]+ failed' <<<"$last" | grep -oE '[0-9]+' || echo 0)
    e=$(grep -oE '[0-9]+ error' <<<"$last" | grep -oE '[0-9]+' || echo 0)
    f=$((f + e))
    if [ "$f" = 0 ] && [ $status -ne 0 ]; then f=1; fi
    counted scenarios "$p" "$f" "$log"
    # "SKIPPED [2] FILE:LINE: REASON" stands for two tests.
    skip scenarios < <(awk '/^SKIPPED \[/ { n = substr($2, 2) + 0; sub(/^SKIPPED \[[0-9]+\] /, ""); while (n-- > 0) print }' "$log")
}

begin style scripts/check-style.sh
build asan quick-tests
build release DEVELOPER= build/release/kinf-simulator # with the flags of `make`: other flags would make both compile everything again
# Each of these keeps one processor busy while the unit tests wait for disk and clock.
for program in build/asan/model/*; do
    if [ -x "$program" ] && [ -f "$program" ]; then
        begin "model $(basename "$program")" "$program" --worlds 50
    fi
done
begin "libkinf for Go" make --no-print-directory VARIANT=release DEVELOPER= build/release/libkinf.so.0 # test_go.py
begin "rebuild of 20,000 objects" env KINF_BUILD=build/asan /usr/bin/python3 tests/stress/rebuild.py --objects 20000
unit
for program in build/asan/fuzz/fuzz_*; do
    case $program in *.*) continue ;; esac
    one "fuzz seeds ${program##*fuzz_}" "$program" "tests/fuzz/seeds/${program##*fuzz_}"
done
build tsan build/tsan/stress/ring_threads
begin "threads ring (tsan)" build/tsan/stress/ring_threads
finish
# The torture waits for most of its time.
begin "torture memory" scripts/check-torture.sh build/asan memory --count 10
begin "torture freezing" scripts/check-torture.sh build/asan freezing --count 4 --only daemon
begin "torture kills" scripts/check-torture.sh build/asan kills --count 200 --seed $((RANDOM))
begin "torture members" scripts/check-torture.sh build/asan members --count 4
scenarios
finish

if [ ${#skipped[@]} -gt 0 ]; then printf 'skipped: %s\n' "${skipped[@]}"; fi
echo "${#skipped[@]} skipped"
if [ "$failed" -gt 0 ]; then printf 'failed: %s\n' "${failures[@]}"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
