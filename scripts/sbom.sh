#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the bill of materials of a build in SPDX's text form: this project, and the libraries that its programs load
# or contain, with the Debian packages and versions that they come from.
# usage: scripts/sbom.sh BUILD VERSION
set -eu
PATH=$PATH:/usr/sbin:/sbin
build=$1
version=$2
list=$(mktemp)
trap 'rm -f "$list"' EXIT
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" +%Y-%m-%dT%H:%M:%SZ)

package() { # ID NAME VERSION LICENSE
    printf '\nPackageName: %s\nSPDXID: SPDXRef-%s\nPackageVersion: %s\nPackageDownloadLocation: NOASSERTION\n' "$2" "$1" "$3"
    printf 'FilesAnalyzed: false\nPackageLicenseConcluded: %s\nPackageLicenseDeclared: %s\nPackageCopyrightText: NOASSERTION\n' "$4" "$4"
}

# The Debian packages of the directly needed libraries: /lib and /usr/lib are one directory, and
# dpkg knows either.
libraries() {
    for program in kinf kinf-reflector kinf-processor kinf-serve libkinf.so.0; do
        objdump -p "$build/$program" | sed -n 's/^ *NEEDED *//p'
    done | sort -u >"$list"
    # shellcheck disable=SC2046 # words on purpose
    dpkg-query -S $(ldconfig -p | awk 'NR == FNR { wanted[$1]; next } $1 in wanted && !seen[$1]++ { print $NF; print "/usr" $NF; sub("^/usr", "", $NF); print $NF }' \
        "$list" - | sort -u) 2>/dev/null | sed 's/:.*//' | sort -u
}

cat <<EOF
SPDXVersion: SPDX-2.3
DataLicense: CC0-1.0
SPDXID: SPDXRef-DOCUMENT
DocumentName: kinformer-$version
DocumentNamespace: https://spdx.org/spdxdocs/kinformer-$version
Creator: Tool: scripts/sbom.sh
Created: $created
EOF
package kinformer kinformer "$version" Apache-2.0
echo "Relationship: SPDXRef-DOCUMENT DESCRIBES SPDXRef-kinformer"
command -v dpkg-query >/dev/null || exit 0
# shellcheck disable=SC2016,SC2046 # dpkg-query's own variables; words on purpose
dpkg-query -W -f '${Package} ${Version}\n' $(libraries) | sort -u | while read -r name of; do
    id=$(printf %s "$name" | tr -c 'A-Za-z0-9.-' -)
    package "$id" "$name" "$of" NOASSERTION
    echo "Relationship: SPDXRef-kinformer DYNAMIC_LINK SPDXRef-$id"
done
