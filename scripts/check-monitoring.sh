#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The alert rules of packaging/prometheus are well formed, and fire when they should, by Prometheus' own promtool.
# usage: scripts/check-monitoring.sh [--why-not]
# --why-not prints why it can't run here; nothing if it can
set -eu
cd "$(dirname "$0")/.."

promtool=$(command -v promtool || echo build/tools/prometheus/usr/bin/promtool)
if [ ! -x "$promtool" ]; then
    echo "there is no promtool (scripts/dependencies.sh monitoring)"
    [ "${1:-}" = --why-not ]
    exit
fi
[ "${1:-}" != --why-not ] || exit 0
"$promtool" check rules packaging/prometheus/kinformer.rules.yaml
"$promtool" test rules packaging/prometheus/kinformer.tests.yaml
