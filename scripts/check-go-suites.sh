#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs suites of others on the Go modules:
#   client-go          its tests of tools/cache on informers, against daemons of their own
#   controller-runtime its packages (PACKAGES) with NewCache as the constructor of all caches,
#                      against the cluster of $KUBECONFIG. The cluster is changed, and has to be
#                      new, without controllers, and with --allow-privileged. PLAIN=1: with its
#                      own cache
# Sources come from the module proxy into a temporary directory, and are patched there. The READMEs
# of go/informers and go/controllerruntime list the excluded tests.
# usage: check-go-suites.sh [SUITE...]
# $KINF_BUILD: the tree's programs. $FOCUS, $SKIP: patterns of tests. $LOGS: a directory for logs.
# RACE=1: client-go's with -race
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
KINF_BUILD=$(realpath "${KINF_BUILD:-$ROOT/build/release}")
export KINF_BUILD GOFLAGS=-mod=mod
CLIENT_GO=v0.37.2 CONTROLLER_RUNTIME=v0.25.2
DIR=$(mktemp -d)
DAEMONS=
cleanup() {
	[ -z "$DAEMONS" ] || { kill "$DAEMONS"; wait "$DAEMONS" || true; }
	rm -rf "$DIR"
}
trap cleanup EXIT

# copy_of MODULE VERSION TO
copy_of() {
	local from
	from=$(cd "$ROOT/go/controllerruntime" && go mod download -json "$1@$2" |
		sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	[ -n "$from" ] || { echo "skipped: the module proxy can't be reached"; exit 0; }
	cp -r "$from" "$3"
	chmod -R u+w "$3"
}

# without FILE FUNCTION...: removes functions from it
without() {
	local file=$1
	shift
	awk -v names=" $* " '
		/^func / { name = $2; sub(/\(.*/, "", name); drop = index(names, " " name " ") }
		!drop { print }
		/^}/ { drop = 0 }' "$file" > "$file.new"
	mv "$file.new" "$file"
}

# patch_client_go: its tests become tests of the package informers
patch_client_go() {
	local name
	for name in shared_informer store index listers; do
		sed -e 's/^package cache$/package informers/' \
			-e 's|^import ($|&\n\t. "k8s.io/client-go/tools/cache"|' \
			-e 's/\bNewSharedInformer(/kinfSharedInformer(/' \
			-e 's/\bNewStore(testStoreKeyFunc)/smallIndexer(t, nil)/' \
			-e 's/\bNewIndexer(testStoreKeyFunc, /smallIndexer(t, /' \
			-e 's/\bNewIndexer(MetaNamespaceKeyFunc, /podIndexer(t, /' \
			-e 's/\bmustCreateStore(tc/mustCreateStore(t, tc/' \
			-e 's/\(\(num[A-Z][a-z]*\|expectedCount\): *[0-9]*\)00,/\1,/' \
			-e 's/informer\.resyncCheckPeriod/informer.check/' \
			-e 's/\(gl([a-z0-9]*)\).resyncPeriod/\1.period/' \
			"$DIR/client-go/tools/cache/${name}_test.go" > "${name}_test.go"
	done
	without shared_informer_test.go eventHandlerCount isStarted isRegistered \
		TestListenerResyncPeriods TestListenerResyncPeriodsDelayed testListenerResyncPeriods
	sed -i '/"testing\/synctest"/d' shared_informer_test.go
	without store_test.go testStoreKeyFunc TestCacheWithTransformer TestFIFOCache TestUndeltaStore \
		TestCacheTransactionShouldIndexErrors TestWithStoreMetricsDefaulting
	sed -i '/"sync\/atomic"/d; /testify\/assert"/d; /runtime\/schema"/d' store_test.go
	without listers_test.go mustCreateStore benchmarkLister benchmarkNothingLister \
		BenchmarkLister_Match_{1k,10k,100k,1M}_100 BenchmarkLister_Match_1M_0
	sed -i '/api\/meta"/d; /^\tmetav1 /d; /^\t"fmt"/d' listers_test.go
}

client_go() {
	copy_of k8s.io/client-go $CLIENT_GO "$DIR/client-go"
	cp -r "$ROOT/go" "$DIR/go"
	cd "$DIR/go/informers"
	rm -- *_test.go
	cp testdata/client_go_test.go .
	sed -i 's/^func New(/func newInformer(/' informer.go # tools/cache has a New
	patch_client_go
	go mod tidy > "$DIR/tidy.log" 2>&1 || true # the build says what is missing
	go test ${RACE:+-race} -vet=off -c -o "$DIR/client-go.test" .
	"$DIR/client-go.test" -test.v -test.run="${FOCUS:-}" -test.skip="${SKIP:-}" > "$DIR/log" 2>&1 ||
		{ cat "$DIR/log"; return 1; }
	grep -E '^ *--- |^PASS' "$DIR/log"
}

controller_runtime() {
	KUBECONFIG=$(realpath "${KUBECONFIG:?the kubeconfig of a cluster that may be changed}")
	export KUBECONFIG USE_EXISTING_CLUSTER=true SUITE_STORE="$DIR/store"
	local package failed=
	mkdir -m 700 "$DIR/run"
	cat > "$DIR/kinf.yaml" <<E
cluster: {kubeconfig: $KUBECONFIG}
store: $DIR/store
feeds: [{resource: "*", drop: []}]
E
	"$KINF_BUILD/kinf" run --config "$DIR/kinf.yaml" --runtime-dir "$DIR/run" 2> "$DIR/kinf.log" &
	DAEMONS=$!
	copy_of sigs.k8s.io/controller-runtime $CONTROLLER_RUNTIME "$DIR/suite"
	cd "$DIR/suite"
	for module in kinf kinf/informers kinf/controllerruntime; do
		go mod edit -replace "$module=$ROOT/go${module#kinf}" -require "$module@v0.0.0"
	done
	[ -n "${PLAIN:-}" ] || patch_controller_runtime
	go mod tidy > "$DIR/tidy.log" 2>&1 || true # the build says what is missing
	"$KINF_BUILD/kinf" wait pods --for live --store "$DIR/store" --runtime-dir "$DIR/run" --timeout 60s
	for package in ${PACKAGES:-client cache manager builder controller source handler cluster}; do
		go test -vet=off -c -o "$DIR/suite.test" "./pkg/$package"
		echo "== pkg/$package" # some count all objects, or leave theirs
		kubectl delete pods,deployments.apps,replicasets.apps,configmaps,nodes --all --all-namespaces \
			--force --grace-period=0 > "$DIR/deleted" 2>&1 || true # a warning; or there are none
		(cd "pkg/$package" &&
		    "$DIR/suite.test" --ginkgo.focus="${FOCUS:-}" --ginkgo.skip="${SKIP:-}" \
			--ginkgo.no-color > "$DIR/log" 2>&1) || failed="$failed $package"
		[ -z "${LOGS:-}" ] || cp "$DIR/log" "$LOGS/$package.log"
		grep -E '^Ran |^(PASS|FAIL|ok|--- |panic:)|^ *\[(FAIL|PANICKED|TIMEDOUT)\]' "$DIR/log"
	done
	[ -z "$failed" ] || { echo "failed:$failed"; return 1; }
}

# patch_controller_runtime: our cache is the default one, and the one of tests making one
patch_controller_runtime() {
	local package
	sed -i -e 's/options.NewCache = cache.New$/options.NewCache = kinf.NewCache(kinf.Options{Store: os.Getenv("SUITE_STORE")})/' \
		-e 's|^import ($|&\n\t"os"\n\tkinf "kinf/controllerruntime"|' pkg/cluster/cluster.go
	for package in cache builder source client; do
		sed -i 's/\bcache\.New\([(,]\)/kinfNew\1/' pkg/$package/*_test.go
		cat > pkg/$package/kinf_test.go <<E
package $(sed -n 's/^package //p' pkg/$package/*_suite_test.go)

import (
	"os"

	kinf "kinf/controllerruntime"
)

var kinfNew = kinf.NewCache(kinf.Options{Store: os.Getenv("SUITE_STORE")})
E
	done
}

[ $# -gt 0 ] || set -- client-go controller-runtime
for suite; do
	"${suite//-/_}"
done
