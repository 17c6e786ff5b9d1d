#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the kill loop with a build that has failpoints. usage: scripts/check-crash.sh BUILD SECONDS [SEED]
set -eu
cd "$(dirname "$0")/.."
KINF_BUILD=$1 exec /usr/bin/python3 tests/crash/kill_loop.py --seconds "$2" ${3:+--seed "$3"}
