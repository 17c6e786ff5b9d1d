#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `make test`, then the longer tests: torture, worlds of 10,000 steps of the model, every stress
# program with ThreadSanitizer, the comparison with client-go if Go and client-go are installed, packages in a
# clean root if their tools are installed, a real API server if KUBECONFIG names one, its faults if
# KINF_LAB names the tools to start one (check-real-faults.sh), and a lifelike cluster if KINF_WORLD
# names its tools (check-world.sh). Names the skipped tests, and the reasons, at the end. All of it
# takes some hours. CHECK_PARTS='torture|real' builds and runs the parts matching this regular
# expression; "make test" is the name of the first part. The last line is "N passed, N failed"; exit
# 1 if a test failed.
# usage: scripts/check-all.sh
set -u
cd "$(dirname "$0")/.." || exit 1

passed=0
failed=0
skipped=()
logs=build/check-all-logs
rm -rf "$logs" && mkdir -p "$logs" || exit 1
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export DEVELOPER=1
jobs=$(nproc)

# is_wanted NAME: whether CHECK_PARTS has this part; else notes it as left out.
is_wanted() {
    [[ $1 =~ ${CHECK_PARTS:-.} ]] && return
    skip "$1" "it is not in CHECK_PARTS"
    return 1
}

# one NAME COMMAND...: counts COMMAND as one test.
one() {
    local name=$1 log reason
    shift
    [[ $name = build\ * ]] || is_wanted "$name" || return
    log=$logs/${name//[ \/]/-}.log
    if "$@" >"$log" 2>&1; then
        reason=$(sed -n 's/^[a-z_]*: skipped: //p' "$log")
        if [ -n "$reason" ]; then skip "$name" "$reason" && return; fi
        passed=$((passed + 1))
        printf '%-28s passed\n' "$name"
    else
        failed=$((failed + 1))
        printf '%-28s FAILED\n---- %s ----\n' "$name" "$log"
        tail -n 120 "$log"
        echo "----"
    fi
}

# skip NAME REASON: notes a skipped test.
skip() {
    printf '%-28s skipped: %s\n' "$1" "$2"
    skipped+=("$1: $2")
}

# if_possible NAME COMMAND...: `one`, unless "COMMAND --why-not ..." prints why it can't be run
# here.
if_possible() {
    local name=$1 reason
    shift
    reason=$("$1" --why-not "${@:2}")
    if [ -z "$reason" ]; then one "$name" "$@"; else skip "$name" "$reason"; fi
}

# The last lines of `make test` name its skipped tests and have its sums.
if is_wanted "make test"; then
    scripts/test.sh | tee "$logs/test.log"
    if [[ $(tail -n 1 "$logs/test.log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=${BASH_REMATCH[1]}
        failed=${BASH_REMATCH[2]}
        mapfile -t -O ${#skipped[@]} skipped < <(sed -n 's/^skipped: /make test: /p' "$logs/test.log")
    else
        failed=1
    fi
fi

one "build build/asan" make -j"$jobs" --no-print-directory VARIANT=asan tests
one "torture memory, all" scripts/check-torture.sh build/asan memory --count 0
one "build build/release/torture" make -j"$jobs" --no-print-directory VARIANT=release all \
    build/release/torture/faults.so build/release/programs/informer build/release/torture/bytes
one "torture system calls" scripts/check-torture.sh build/release system_calls --count 5 --seed 2
one "torture bytes" scripts/check-torture.sh build/release bytes --count 60 --seed 2
one "torture clocks" scripts/check-torture.sh build/release clocks --count 40 --seed 2
page_tests=$(sed -n '/^TESTS = /,/\]/p' tests/torture/pages.py | grep -o '"[a-z_]*"' | tr -d '"')
# shellcheck disable=SC2086 # words on purpose
one "build build/debug" make -j"$jobs" --no-print-directory VARIANT=debug all build/debug/torture/recorder.so \
    build/debug/torture/pages.so build/debug/programs/informer build/debug/programs/reader $(printf 'build/debug/unit/test_%s ' $page_tests)
one "torture kills" scripts/check-torture.sh build/debug kills --count 10000
one "torture pages" scripts/check-torture.sh build/debug pages
one "torture power cuts" scripts/check-torture.sh build/debug power_cuts --count 1000
one "torture members" scripts/check-torture.sh build/debug members
one "torture freezing, all" scripts/check-torture.sh build/asan freezing --count 0
one "build build/release" make -j"$jobs" --no-print-directory VARIANT=release all
one "build build/release/bench/swarm" make -j"$jobs" --no-print-directory VARIANT=release build/release/bench/swarm \
    build/release/kinf-simulator
one "memory of idle watches" env KINF_BUILD=build/release /usr/bin/python3 -m pytest -q -p no:cacheprovider \
    tests/scenario/test_serve_swarm.py
one "kinf-serve as a product of axes" env KINF_BUILD=build/release KINF_PRODUCT=3 /usr/bin/python3 -m pytest -q -p no:cacheprovider \
    tests/scenario/test_serve_product.py
one "build build/release/unit/test_proc" make -j"$jobs" --no-print-directory VARIANT=release \
    build/release/unit/test_proc
one "unit test_proc (release)" build/release/unit/test_proc
one "build build/release/bench" make -j"$jobs" --no-print-directory VARIANT=release \
    build/release/bench/fill build/release/bench/latency
one "rebuild of 1,000,000 objects" env KINF_BUILD=build/release /usr/bin/python3 tests/stress/rebuild.py
one "model of pins, a commit more" env KINF_PINS_COMMITS=5 build/asan/unit/test_pins_model
one "model, new worlds" build/asan/model/model --seconds 120
for seed in 1 2 3; do
    one "model, long world $seed" build/asan/model/model --steps 10000 --seed "$seed"
done
for source in tests/stress/*.c; do
    program=build/tsan/stress/$(basename "$source" .c)
    one "build $program" make -j"$jobs" --no-print-directory VARIANT=tsan "$program"
    one "threads $(basename "$program") (tsan)" "$program"
done
if_possible "interface of libkinf" scripts/check-abi.sh build/release
reason=$(scripts/check-packages.sh --why-not)
if [ -z "$reason" ]; then
    one "packages: build" scripts/check-packages.sh build
    one "packages: lintian" scripts/check-packages.sh lintian
    one "packages: a clean root" scripts/check-packages.sh root
    one "packages: the image's steps" scripts/check-packages.sh image
else
    skip "packages" "$reason"
fi
if command -v clang >/dev/null; then
    one "compiles: clang" scripts/check-portable.sh clang
else
    skip "compiles: clang" "there is no clang (scripts/dependencies.sh clang)"
fi
if_possible "unit tests on arm64" scripts/check-arm64.sh
if_possible "h2spec" scripts/check-h2spec.sh build/asan
if_possible "types of the Python module" scripts/check-python.sh
if_possible "the Go modules" scripts/check-go.sh
if_possible "alert rules" scripts/check-monitoring.sh
if_possible "against client-go" scripts/check-differential.sh build/asan
if [ -n "${KUBECONFIG:-}" ]; then
    one "real API server" scripts/check-real.sh build/asan
else
    skip "real API server" "KUBECONFIG is not set (make check-all KUBECONFIG=FILE)"
fi
if [ -n "${KINF_LAB:-}" ]; then
    one "real API server, faults" scripts/check-real-faults.sh build/asan
else
    skip "real API server, faults" "KINF_LAB is not set (make check-all KINF_LAB=DIR)"
fi

if [ -n "${KINF_WORLD:-}" ]; then
    one "a lifelike cluster" scripts/check-world.sh build/release
else
    skip "a lifelike cluster" "KINF_WORLD is not set (make check-all KINF_WORLD=DIR)"
fi

for part in "${skipped[@]}"; do echo "skipped: $part"; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
