#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a crowd of readers and followers on one store. usage: scripts/check-stress.sh BUILD SECONDS [SEED]
set -eu
cd "$(dirname "$0")/.."
KINF_BUILD=$1 exec /usr/bin/python3 tests/stress/crowd.py --seconds "$2" ${3:+--seed "$3"}
