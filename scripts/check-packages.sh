#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages twice and compares them, runs lintian, and tries them in a clean Debian root:
# installed, started, upgraded in use, removed, purged (tests/packages/clean_root.py); in a Debian
# booted by systemd (tests/packages/booted.py); then the steps of the Containerfile
# (tests/packages/image.py). Needs root, and a mirror of Debian. Exit 77, with the reason, if
# something is missing.
# usage: scripts/check-packages.sh [--why-not] [PART...]
# PART: build, lintian, root, booted, image; default: all
set -eu
cd "$(dirname "$0")/.."

why_not() {
    for tool in dh lintian mmdebstrap strace systemd-analyze systemd-nspawn; do
        command -v $tool >/dev/null ||
            { echo "there is no $tool (scripts/dependencies.sh packages)"; return; }
    done
    [ "$(id -u)" = 0 ] || echo "it needs root, for mounts and users"
}

reason=$(why_not)
if [ "${1:-}" = --why-not ]; then
    [ -z "$reason" ] || echo "$reason"
    exit 0
fi
[ -z "$reason" ] || { echo "check-packages: $reason" >&2; exit 77; }
[ $# -gt 0 ] || set -- build lintian root booted image
export KINF_BUILD=build/release
for part in "$@"; do
    echo "== $part"
    case $part in
        build)
            scripts/check-version.sh
            scripts/deb.sh build/deb
            # At another place, at another time, by another umask and locale.
            (umask 077 && LC_ALL=C TZ=Pacific/Auckland \
                scripts/deb.sh build/deb-again/at/a/longer/path >/dev/null)
            (cd build/deb && sha256sum ./*.deb) |
                (cd build/deb-again/at/a/longer/path && sha256sum -c --quiet -)
            rm -rf build/deb-again
            echo "two builds are equal"
            ;;
        # No bug in Debian asks for the package.
        lintian) lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs build/deb/*.changes ;;
        root)
            make -s VARIANT=release build/release/kinf-simulator
            /usr/bin/python3 tests/packages/clean_root.py build/deb
            ;;
        booted)
            make -s VARIANT=release build/release/kinf-simulator
            /usr/bin/python3 tests/packages/booted.py build/deb
            ;;
        image)
            make -s VARIANT=release build/release/kinf-simulator
            /usr/bin/python3 tests/packages/image.py
            ;;
        *) echo "check-packages: there is no part '$part'" >&2; exit 2 ;;
    esac
done
