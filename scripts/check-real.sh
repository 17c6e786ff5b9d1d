#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both daemons with the throw-away cluster of $KUBECONFIG. Removes its objects there.
# usage: KUBECONFIG=FILE scripts/check-real.sh BUILD [SECONDS of changes and kills [--streaming]]
set -eu
cd "$(dirname "$0")/.."
if [ -z "${KUBECONFIG:-}" ]; then
    echo "check-real: KUBECONFIG is not set; set it to the kubeconfig of a throw-away cluster, in which the test creates" \
        "and removes objects" >&2
    exit 1
fi
export KINF_BUILD=$1
/usr/bin/python3 tests/real/check_real.py --seconds "${2:-60}" ${3:+"$3"}
/usr/bin/python3 tests/real/check_tables.py --keep # of the objects that are there
/usr/bin/python3 tests/real/check_formats.py # the other formats of -o
/usr/bin/python3 tests/real/check_serve.py # kinf-serve beside the API server, byte by byte
/usr/bin/python3 tests/real/check_product.py # the same as a product of forms, transports, sizes and so on
/usr/bin/python3 tests/real/check_manifests.py # packaging/kubernetes, kinf config rbac
/usr/bin/python3 tests/real/check_clients.py # kubectl line by line, informers while everything is killed
/usr/bin/python3 tests/real/check_specs.py # Kubernetes' own specs of watches, lists, tables, discovery
