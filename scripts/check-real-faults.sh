#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both daemons with a changing real API server, stopped, frozen, restored from a backup and so
# on; some ten minutes. $KINF_LAB is a directory with up.sh and down.sh. They start and stop an etcd
# and a kube-apiserver for the test (tests/README.md). They listen on $KINF_LAB_PORT and, 1000
# higher, two ports of etcd.
# usage: KINF_LAB=DIR scripts/check-real-faults.sh BUILD [NAME,NAME of faults]
set -eu
cd "$(dirname "$0")/.."
if [ -z "${KINF_LAB:-}" ] || [ ! -x "$KINF_LAB/up.sh" ] || [ ! -x "$KINF_LAB/down.sh" ]; then
    echo "check-real-faults: KINF_LAB does not name a directory with up.sh and down.sh, which start a throw-away" \
        "cluster; tests/README.md describes them" >&2
    exit 1
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
KINF_BUILD=$1 /usr/bin/python3 tests/real/check_faults.py "$KINF_LAB" "$directory" \
    --port "${KINF_LAB_PORT:-7443}" ${2:+--only "$2"}
