#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pipeline against a real API server that is stopped, frozen, set back and so on, under changes; some
# ten minutes. $KINF_LAB is a directory with up.sh and down.sh, which start and stop an etcd and a
# kube-apiserver of one's own (tests/real/lab.py); they listen on $KINF_LAB_PORT and the two 1000 above.
# usage: KINF_LAB=DIR scripts/check-real-faults.sh BUILD [NAME,NAME of faults]
set -eu
cd "$(dirname "$0")/.."
if [ -z "${KINF_LAB:-}" ] || [ ! -x "$KINF_LAB/up.sh" ] || [ ! -x "$KINF_LAB/down.sh" ]; then
    echo "check-real-faults: set KINF_LAB to a directory with up.sh and down.sh, which start a throw-away cluster" >&2
    exit 1
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
KINF_BUILD=$1 /usr/bin/python3 tests/real/check_faults.py "$KINF_LAB" "$directory" \
    --port "${KINF_LAB_PORT:-7443}" ${2:+--only "$2"}
