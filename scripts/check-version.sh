#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The version and the soname are written in several files, because tools look there: checks that all
# of them are equal.
set -eu
cd "$(dirname "$0")/.."
status=0

say() { # FILE, WHAT IT SAYS, WHAT THE MAKEFILE SAYS
    if [ "$2" != "$3" ]; then
        echo "$1: '$2', but the Makefile has '$3'"
        status=1
    fi
}

version=$(sed -n 's/^VERSION := //p' Makefile)
soname=$(sed -n 's/^SONAME := //p' Makefile)
number=${soname##*.so.}
say debian/changelog "$(sed -n '1s/^kinformer (\(.*\)-[0-9]*) .*/\1/p' debian/changelog)" "$version"
say CHANGELOG.md "$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)" "$version"
say reader/python/pyproject.toml "$(sed -n 's/^version = "\(.*\)"/\1/p' reader/python/pyproject.toml)" "$version"
say reader/python/kinf/_library.py "$(sed -n 's/^SONAME = "\(.*\)"/\1/p' reader/python/kinf/_library.py)" "$soname"
say debian/control "$(sed -n 's/^Package: \(libkinf[0-9]*\)$/\1/p' debian/control)" "libkinf$number"
say debian/libkinf"$number".symbols "$(sed -n '1s/ .*//p' debian/libkinf"$number".symbols)" "$soname"
say reader/kinf.map "$(sed -n 's/^\(KINF_[0-9]*\) {$/\1/p' reader/kinf.map)" "KINF_$number"

# Each version is in both lists of changes.
list=$(sed -n 's/^## //p' CHANGELOG.md)
say "debian/changelog, all versions" "$(sed -n 's/^kinformer (\(.*\)-[0-9]*) .*/\1/p' debian/changelog | uniq)" "$list"
exit $status
