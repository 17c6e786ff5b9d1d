#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs suites of others on the Go modules, against the cluster of $KUBECONFIG, which is changed:
# controller-runtime's pkg/cache with NewCache as its constructor. Sources come from the module proxy
# into a temporary directory. go/controllerruntime/README.md lists the specs that can't pass.
# $KINF_BUILD: the tree's programs. $FOCUS, $SKIP: patterns of specs.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(realpath "${KINF_BUILD:-$ROOT/build/release}")
KUBECONFIG=$(realpath "${KUBECONFIG:?the kubeconfig of a cluster that may be changed}")
export KUBECONFIG USE_EXISTING_CLUSTER=true GOFLAGS=-mod=mod
VERSION=v0.25.2

cd "$ROOT/go/controllerruntime"
SOURCE=$(go mod download -json sigs.k8s.io/controller-runtime@$VERSION |
	sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
[ -n "$SOURCE" ] || { echo "skipped: the module proxy can't be reached"; exit 0; }
DIR=$(mktemp -d)
DAEMONS=
cleanup() {
	[ -z "$DAEMONS" ] || { kill "$DAEMONS"; wait "$DAEMONS" || true; }
	rm -rf "$DIR"
}
trap cleanup EXIT

mkdir -m 700 "$DIR/run"
cat > "$DIR/kinf.yaml" <<E
cluster: {kubeconfig: $KUBECONFIG}
store: $DIR/store
feeds: [{resource: "*", drop: []}]
E
"$BUILD/kinf" run --config "$DIR/kinf.yaml" --runtime-dir "$DIR/run" 2> "$DIR/kinf.log" &
DAEMONS=$!

cp -r "$SOURCE" "$DIR/suite"
chmod -R u+w "$DIR/suite"
cd "$DIR/suite"
sed -i 's/\bcache\.New\([(,]\)/kinfNew\1/' pkg/cache/*_test.go
cat > pkg/cache/kinf_test.go <<E
package cache_test

import kinf "kinf/controllerruntime"

var kinfNew = kinf.NewCache(kinf.Options{Store: "$DIR/store"})
E
for module in kinf kinf/informers kinf/controllerruntime; do
	go mod edit -replace "$module=$ROOT/go${module#kinf}" -require "$module@v0.0.0"
done
go mod tidy > "$DIR/tidy.log" 2>&1 || true # the build says what is missing
go test -vet=off -c -o "$DIR/suite.test" ./pkg/cache
"$BUILD/kinf" wait pods --for live --store "$DIR/store" --runtime-dir "$DIR/run" --timeout 60s
cd pkg/cache
"$DIR/suite.test" --ginkgo.focus="${FOCUS:-}" --ginkgo.skip="${SKIP:-}" --ginkgo.no-color
