#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds each VERSION of kubectl from the Go module proxy as DIRECTORY/kubectl-VERSION, unless it is there.
# Prints the paths with colons between, as $KINF_KUBECTL wants them.
# usage: tests/real/clients/kubectl/build.sh DIRECTORY VERSION...
# e.g. v1.37.2 v1.36.6 v1.32.3 v1.20.15
set -eu
mkdir -p "$1"
directory=$(cd "$1" && pwd)
shift
paths=()
for version in "$@"; do
    paths+=("$directory/kubectl-$version")
    [ ! -x "$directory/kubectl-$version" ] || continue
    work=$(mktemp -d)
    module=k8s.io/kubectl@v0${version#v1}
    (
        cd "$work"
        cat >main.go <<'GO'
package main

import (
	"os"

	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if cmd.NewDefaultKubectlCommand().Execute() != nil {
		os.Exit(1)
	}
}
GO
        go mod init kubectl
        # Old versions need a golang.org/x/sys for today's Go.
        go get "$module" golang.org/x/sys@latest
        go mod tidy
        go get "$module"
        go build -buildvcs=false -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
            -o "$directory/kubectl-$version" .
    ) >&2
    rm -rf "$work"
done
(IFS=: && echo "${paths[*]}")
