#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests in BUILD, e.g. build/asan; stops at the first failed program.
# usage: scripts/check-unit.sh BUILD
set -eu
export ASAN_OPTIONS=abort_on_error=1
for test in "$1"/unit/test_*; do
    case $test in *.*) continue ;; esac
    "$test"
done
