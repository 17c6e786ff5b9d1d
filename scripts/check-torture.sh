#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one runner of tests/torture (tests/torture/README.md).
# usage: scripts/check-torture.sh BUILD RUNNER [--count N] [--seed N] [--only NAME]
#   memory needs a build with sanitizers, all others one without
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?BUILD}
runner=${2:?RUNNER}
shift 2
KINF_BUILD=$build exec /usr/bin/python3 "tests/torture/$runner.py" "$@"
