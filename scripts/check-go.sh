#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Go modules: staticcheck, a build of the first one for other machines, and the tests of those
# on client-go, with dependencies from the module proxy. tests/scenario/test_go.py has the first
# one's own tests.
# usage: scripts/check-go.sh [--why-not]
# --why-not prints why it can't run here; nothing if it can
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root/go"

PATH=$PATH:/usr/local/go/bin:$HOME/go/bin
for program in go staticcheck; do
    command -v $program >/dev/null && continue
    echo "there is no $program (scripts/dependencies.sh go)"
    [ "${1:-}" = --why-not ]
    exit
done
[ "${1:-}" != --why-not ] || exit 0
export CGO_ENABLED=0
staticcheck ./...
! command -v gcc >/dev/null || CGO_ENABLED=1 staticcheck -tags libkinf . ./internal/libkinf
for machine in linux/amd64 linux/arm64 darwin/amd64 windows/amd64; do
    echo "$machine"
    GOOS=${machine%/*} GOARCH=${machine#*/} go build ./...
done
for module in informers controllerruntime; do
    (cd "$module" && go vet ./... && staticcheck ./... &&
        KINF_BUILD="$root/${KINF_BUILD:-build/asan}" go test -short -count=1 ./...)
done
