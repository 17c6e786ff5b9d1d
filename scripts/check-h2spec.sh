#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs h2spec, the conformance tests of HTTP/2, against kinf-serve in BUILD. h2spec is $H2SPEC, the
# one in PATH, or build/tools/h2spec, made with Go by `scripts/dependencies.sh h2spec`. --why-not
# prints the reason if it is not there. Exit 1 if a case fails that is not a known failure.
# usage: scripts/check-h2spec.sh [--why-not] BUILD
set -eu
cd "$(dirname "$0")/.."

why_not=
if [ "$1" = --why-not ]; then why_not=yes; shift; fi
h2spec=${H2SPEC:-$(command -v h2spec || echo build/tools/h2spec)}
if [ ! -x "$h2spec" ]; then
    echo "there is no h2spec (scripts/dependencies.sh h2spec)"
    [ -n "$why_not" ] && exit 0 || exit 1
fi
[ -z "$why_not" ] || exit 0

build=$(cd "$1" && pwd)
directory=$(mktemp -d)
pids=
stop() {
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$directory"
}
trap stop EXIT

# wait_for COMMAND...: until it succeeds.
wait_for() {
    for _ in $(seq 600); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "not within a minute: $*"
    tail -n 20 "$directory"/*.log
    exit 1
}

"$build/kinf-simulator" --pods 50 >"$directory/simulator.log" 2>&1 &
pids="$pids $!"
wait_for grep -q '^listening on ' "$directory/simulator.log"
cat >"$directory/kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://$(sed -n 's/^listening on //p' "$directory/simulator.log")"}}]
users: [{name: u, user: {}}]
END
cat >"$directory/kinf.yaml" <<END
store: $directory/store
cluster: {kubeconfig: $directory/kubeconfig}
feeds: [{resource: pods}]
serve: {listen: ['127.0.0.1:0'], auth: open}
END
"$build/kinf" run --config "$directory/kinf.yaml" --runtime-dir "$directory/run" >"$directory/kinf.log" 2>&1 &
pids="$pids $!"
wait_for grep -q '^api https ' "$directory/store/serve/addresses"
read -r _ _ address _ <"$directory/store/serve/addresses"
"$h2spec" -h "${address%:*}" -p "${address##*:}" -t -k -o 5 -P /api/v1/pods |
    tee "$directory/h2spec.log" || true
grep -q '^[0-9]* tests, [0-9]* passed' "$directory/h2spec.log" || exit 1
# Not these: DATA for an ended stream is dropped (serve/README.md).
known='closed: Sends a DATA frame( after sending RST_STREAM frame)?$|Sends a DATA frame on the stream that is not in "open"'
if sed -n 's/.*× //p' "$directory/h2spec.log" | grep -vE "$known"; then exit 1; fi
