#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the programs in BUILD; prints each figure beside its target and saves all in build/bench.json. The docstring
# of tests/bench/bench.py lists the environment variables.
# usage: scripts/bench.sh BUILD
set -eu
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/bench/bench.py "$1"
