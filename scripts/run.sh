#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs kinf in the foreground until Ctrl-C: a warm cache of your cluster ($KUBECONFIG or
# ~/.kube/config) or, if there is no kubeconfig, of a changing simulated cluster. Prints commands to
# try in a second terminal.
# usage: scripts/run.sh BUILD_DIR
set -eu
cd "$(dirname "$0")/.."

build=$PWD/${1:?usage: scripts/run.sh BUILD_DIR}
demo=$PWD/build/demo
simulator=
kinf=

stop() {
    [ -z "$kinf" ] || kill -TERM "$kinf" 2>/dev/null || true
}

finish() {
    [ -z "$simulator" ] || kill -TERM "$simulator" 2>/dev/null || true
    wait
}

# Prints the first existing file of $KUBECONFIG (a list) or ~/.kube/config.
own_kubeconfig() {
    local files file
    IFS=: read -r -a files <<<"${KUBECONFIG:-${HOME:-/}/.kube/config}"
    for file in "${files[@]}"; do
        if [ -n "$file" ] && [ -f "$file" ]; then
            echo "$file"
            return
        fi
    done
}

# Starts the simulator and makes a kubeconfig for it.
simulate() {
    local out=$demo/simulator.out port
    "$build/kinf-simulator" --pods 1000 --churn 20 --die-with-parent >"$out" &
    simulator=$!
    until port=$(sed -n 's/^listening on .*://p' "$out") && [ -n "$port" ]; do
        kill -0 "$simulator" 2>/dev/null || {
            echo "run: starting the simulator failed; its message is above" >&2
            exit 1
        }
        sleep 0.05
    done
    cat >"$demo/kubeconfig" <<EOF
apiVersion: v1
kind: Config
current-context: simulated
clusters: [{name: simulated, cluster: {server: 'http://127.0.0.1:$port'}}]
contexts: [{name: simulated, context: {cluster: simulated, user: nobody}}]
users: [{name: nobody, user: {}}]
EOF
    export KUBECONFIG=$demo/kubeconfig
}

write_config() {
    cat >"$demo/kinf.yaml" <<EOF
store: $1
feeds:
  - resource: pods
    indexes:
      node: spec.nodeName
      image: spec.containers[*].image
      owner: metadata.ownerReferences[*].uid
  - resource: nodes
  - resource: namespaces
EOF
}

# explain OPTIONS OPTIONS: prints commands to try, two of them with options for the cluster.
explain() {
    local some=$1 count=$2
    cat >&2 <<EOF
The store is $KINF_STORE. In a second terminal:

  export KINF_STORE=$KINF_STORE KINF_RUNTIME_DIR=$KINF_RUNTIME_DIR
  $build/kinf get pods
  $build/kinf get pods $some -o name
  $build/kinf get pods $count -o count
  $build/kinf index pods
  $build/kinf watch pods -o name
  $build/kinf status

Ctrl-C stops everything.

EOF
}

mkdir -p "$demo"
trap stop INT TERM
trap finish EXIT

own=$(own_kubeconfig)
if [ -n "$own" ]; then
    echo "Reading the cluster of $own." >&2
    export KINF_STORE=$demo/cluster
    some='-n kube-system' count='--field-selector status.phase!=Running'
else
    # Each run simulates another cluster: the store of the last one is useless.
    rm -rf "$demo/simulated"
    simulate
    echo "There is no kubeconfig: simulating a cluster of 1,000 pods with 20 changes a second." >&2
    export KINF_STORE=$demo/simulated
    some='-l app=app-7' count='--index node=node-7'
fi
export KINF_RUNTIME_DIR=${KINF_RUNTIME_DIR:-$demo/run}
mkdir -p -m 700 "$KINF_RUNTIME_DIR"
write_config "$KINF_STORE"
explain "$some" "$count"

# kinf runs in the background: the traps above can forward a signal at any time.
"$build/kinf" run --config "$demo/kinf.yaml" &
kinf=$!
status=0
wait "$kinf" || status=$?
while kill -0 "$kinf" 2>/dev/null; do
    status=0
    wait "$kinf" || status=$?
done
exit "$status"
