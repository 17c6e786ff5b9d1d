#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests that were built into BUILD (build/asan, say); stops at the first that fails.
# usage: scripts/check-unit.sh BUILD
set -eu
export ASAN_OPTIONS=abort_on_error=1
for test in "$1"/unit/test_*; do
    case $test in *.*) continue ;; esac
    "$test"
done
