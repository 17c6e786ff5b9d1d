#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The types of the Python module, and of the examples using it, by mypy.
# usage: scripts/check-python.sh [--why-not]
# --why-not prints why it can't run here; nothing if it can
set -eu
cd "$(dirname "$0")/.."

if ! command -v mypy >/dev/null; then
    echo "there is no mypy (scripts/dependencies.sh python)"
    [ "${1:-}" = --why-not ]
    exit
fi
[ "${1:-}" != --why-not ] || exit 0
mypy --strict --cache-dir=/dev/null reader/python/kinf
MYPYPATH=reader/python mypy --cache-dir=/dev/null --ignore-missing-imports tests/examples/pods_table.py
