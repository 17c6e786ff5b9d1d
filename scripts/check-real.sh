#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pipeline against the throw-away cluster of $KUBECONFIG; what it creates there it removes.
# usage: KUBECONFIG=FILE scripts/check-real.sh BUILD [SECONDS of changes and kills [--streaming]]
set -eu
cd "$(dirname "$0")/.."
if [ -z "${KUBECONFIG:-}" ]; then
    echo "check-real: KUBECONFIG is not set; name a throw-away cluster: objects are created and removed in it" >&2
    exit 1
fi
KINF_BUILD=$1 exec /usr/bin/python3 tests/real/check_real.py --seconds "${2:-60}" ${3:+"$3"}
