#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the programs in BUILD and says what each figure is to reach; build/bench.json has them
# all. What can be set is in tests/bench/bench.py.
# usage: scripts/bench.sh BUILD
set -eu
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/bench/bench.py "$1"
