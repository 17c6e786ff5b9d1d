#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods as a table: one dictionary a pod, for pandas or another consumer of rows.

    python3 pods_table.py                 pods and restarts of each node; with pandas if it is installed
    python3 pods_table.py --csv           all rows

Only the requested fields are decoded; everything is read from one snapshot.
"""

import csv
import sys

import kinf

COLUMNS = ("namespace", "name", "node", "phase", "containers", "restarts", "started")


def rows(snapshot, **query):
    """Yields a dictionary of COLUMNS for each pod; QUERY as for list(), for instance labels="app=shop"."""
    for pod in snapshot.feed("pods").list(**query):
        yield {
            "namespace": pod.namespace,
            "name": pod.name,
            "node": pod.path("spec.nodeName"),
            "phase": pod.path("status.phase"),
            "containers": len(list(pod.values_at("spec.containers[*].image"))),
            "restarts": sum(pod.values_at("status.containerStatuses[*].restartCount")),
            "started": pod.path("status.startTime"),
        }


def summary_by_pandas(table):
    import pandas

    frame = pandas.DataFrame(table, columns=COLUMNS)
    grouped = frame.fillna({"node": ""}).groupby("node").agg(pods=("name", "count"), restarts=("restarts", "sum"))
    return [(node, int(row.pods), int(row.restarts)) for node, row in grouped.iterrows()]


def summary(table):
    counts = {}
    for row in table:
        pods, restarts = counts.get(row["node"] or "", (0, 0))
        counts[row["node"] or ""] = pods + 1, restarts + row["restarts"]
    return [(node, *counts[node]) for node in sorted(counts)]


def main():
    with kinf.Store() as store, store.snapshot() as snapshot:
        table = rows(snapshot)
        if sys.argv[1:] == ["--csv"]:
            writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
            return
        try:
            lines = summary_by_pandas(list(table)) if sys.argv[1:] != ["--plain"] else summary(table)
        except ImportError:
            lines = summary(rows(snapshot))
    print(f"{'NODE':<24} {'PODS':>6} {'RESTARTS':>9}")
    for node, pods, restarts in lines:
        print(f"{node or '-':<24} {pods:>6} {restarts:>9}")


if __name__ == "__main__":
    main()
