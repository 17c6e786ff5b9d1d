#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the suites of tests/real on a lifelike cluster of some 2,000 pods, then the table and list
# suites with 20,000 pods. $KINF_WORLD is a directory with the programs to start, fill, change and
# stop the cluster (tests/README.md); $KINF_LOAD adds the 20,000 pods. $KINF_KUBECTL: the kubectls
# to compare. About 30 minutes on 2 cores. A failed suite does not keep the others from running.
# usage: KINF_WORLD=DIR [KINF_LOAD=PROGRAM] scripts/check-world.sh BUILD [PART...]
# PART: churn, still, suites, big
set -eu
cd "$(dirname "$0")/.."
for program in up.sh fill.py churn.py down.sh; do
    [ -x "${KINF_WORLD:-}/$program" ] && continue
    echo "check-world: KINF_WORLD does not name a directory with $program; tests/README.md describes it" >&2
    exit 1
done
export KINF_BUILD=$1
shift
[ $# -gt 0 ] || set -- churn still suites big
port=${KINF_WORLD_PORT:-16443}
directory=$(mktemp -d)
trap '"$KINF_WORLD/down.sh" "$directory"; rm -rf "$directory"' EXIT
export KUBECONFIG=$directory/kubeconfig

"$KINF_WORLD/up.sh" "$directory" "$port" --nodes "${KINF_WORLD_NODES:-200}"
"$KINF_WORLD/fill.py" "$directory" --pods "${KINF_WORLD_PODS:-2000}"
failed=
real() {
    echo "== $* ($((SECONDS / 60)) min)"
    /usr/bin/python3 "tests/real/$@" || failed="$failed $1"
}
for part in "$@"; do
    case $part in
        churn) real check_world.py --churn "$KINF_WORLD/churn.py" "$directory" --minutes "${KINF_WORLD_MINUTES:-4}" exact churn ;;
        still)
            "$KINF_WORLD/down.sh" "$directory" kwok sched kcm
            real check_world.py kubectl kinf
            ;;
        suites)
            "$KINF_WORLD/down.sh" "$directory" kwok sched kcm
            real check_tables.py --keep
            real check_describe.py --keep --most 20
            real check_formats.py
            real check_serve.py
            real check_product.py
            real check_clients.py
            ;;
        big)
            if [ -z "${KINF_LOAD:-}" ]; then
                echo "check-world: skipped: 20,000 pods: KINF_LOAD does not name the program that makes them" >&2
                continue
            fi
            # Namespaces get their service accounts from the controllers. Without kubelets the pods
            # stay as they are.
            "$KINF_WORLD/up.sh" "$directory" "$port" --nodes "${KINF_WORLD_NODES:-200}"
            "$KINF_WORLD/down.sh" "$directory" kwok sched
            # The first pods are refused until the namespaces have their service accounts.
            tries=0
            until "$KINF_LOAD" load --pods 20000; do
                tries=$((tries + 1))
                [ $tries -lt 5 ] || exit 1
                sleep 10
            done
            "$KINF_WORLD/down.sh" "$directory" kcm
            real check_world.py --resources pods -- exact kubectl kinf
            ;;
        *) echo "check-world: there is no part '$part'" >&2; exit 2 ;;
    esac
done
[ -z "$failed" ] || { echo "check-world: failed:$failed" >&2; exit 1; }
echo "check-world: no difference ($((SECONDS / 60)) min)"
