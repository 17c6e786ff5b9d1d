#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job, in the foreground until Ctrl-C: a warm cache of your cluster ($KUBECONFIG or
# ~/.kube/config), or, when there is neither, of a simulated one with changes going on. Says what to
# type in a second terminal.
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

# The first file of $KUBECONFIG (a list) or ~/.kube/config that is there.
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

# Starts the simulator and points $KUBECONFIG at it.
simulate() {
    local out=$demo/simulator.out port
    "$build/kinf-simulator" --pods 1000 --churn 20 --die-with-parent >"$out" &
    simulator=$!
    until port=$(sed -n 's/^listening on .*://p' "$out") && [ -n "$port" ]; do
        kill -0 "$simulator" 2>/dev/null || { echo "run: the simulator did not start" >&2; exit 1; }
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

# Two questions that suit the cluster.
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

Ctrl-C ends all of it.

EOF
}

mkdir -p "$demo"
trap stop INT TERM
trap finish EXIT

own=$(own_kubeconfig)
if [ -n "$own" ]; then
    echo "Your cluster, as $own says." >&2
    export KINF_STORE=$demo/cluster
    some='-n kube-system' count='--field-selector status.phase!=Running'
else
    # Another simulated cluster each time: what the last one left is of no use.
    rm -rf "$demo/simulated"
    simulate
    echo "No kubeconfig: a simulated cluster of 1,000 pods, 20 changes a second." >&2
    export KINF_STORE=$demo/simulated
    some='-l app=app-7' count='--index node=node-7'
fi
export KINF_RUNTIME_DIR=${KINF_RUNTIME_DIR:-$demo/run}
mkdir -p -m 700 "$KINF_RUNTIME_DIR"
write_config "$KINF_STORE"
explain "$some" "$count"

# In the background, so that a signal to this script reaches it whatever it is doing.
"$build/kinf" run --config "$demo/kinf.yaml" &
kinf=$!
status=0
wait "$kinf" || status=$?
while kill -0 "$kinf" 2>/dev/null; do
    status=0
    wait "$kinf" || status=$?
done
exit "$status"
