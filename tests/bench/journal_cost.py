#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a change in a journal, by kind, from a store: docs/past.md has a table of it.

usage: journal_cost.py [--zlib] KINF --store DIR [FEED=CHANGES_A_DAY...]

A change is a replaced version, or a deletion; first versions are the state, not its history. LMDB
puts a row of more than about 2 KiB into pages of its own, so bytes on disk are whole pages for
those. --zlib: how small each body gets alone, and with the version before it as dictionary, as a
delta would.
"""

import collections
import json
import subprocess
import sys
import zlib

PAGE, ROW_MAX = 4096, 2032
ROW, PAGE_HEADER = 60, 16  # bytes of a record but for body, key and uid, and in a page before the value


def on_disk(row):
    size = row["bodySize"] + len(row["key"]) + len(row.get("uid", "")) + ROW
    return -(-(size + PAGE_HEADER) // PAGE) * PAGE if size > ROW_MAX else size


def compressed(body, before=b""):
    packer = zlib.compressobj(6, zdict=before) if before else zlib.compressobj(6)
    return len(packer.compress(body) + packer.flush())


def main(arguments):
    deflates = "--zlib" in arguments
    kinf, option, store, *rates = [argument for argument in arguments if argument != "--zlib"]
    a_day = {name: int(changes) for name, changes in (rate.split("=") for rate in rates)}
    rows = subprocess.run([kinf, "dump", "feeds", "journal", "-o", "json", option, store, *(["--body"] if deflates else [])],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    names, seen = {}, collections.defaultdict(lambda: collections.Counter())
    bodies, total = {}, 0
    for line in rows:
        row = json.loads(line)
        if row["what"] == "feed":
            names[row["id"]] = row["name"]
        if row["what"] != "record" or row["type"] not in ("ADDED", "MODIFIED", "DELETED"):
            continue
        feed = seen[names.get(row["feed"], row["feed"])]
        total += on_disk(row)
        feed["n"] += 1
        feed["body"] += row["bodySize"]
        feed["disk"] += on_disk(row)
        if deflates and row.get("body"):
            body, key = json.dumps(row["body"]).encode(), (row["feed"], row["key"])
            feed["json"] += len(body)
            feed["alone"] += compressed(body)
            feed["delta"] += compressed(body, bodies.get(key, b""))
            bodies[key] = body
    print(f"{'feed':40} {'changes':>8} {'body':>7} {'on disk':>8} {'alone':>7} {'delta':>7} {'a day':>10} {'MiB a day':>10}")
    whole = 0
    for name, feed in sorted(seen.items(), key=lambda item: -item[1]["disk"]):
        n, day = feed["n"], a_day.get(name, 0)
        mib = day * feed["disk"] / n / 2**20
        whole += mib
        packed = [f"{feed[key] / feed['json']:7.0%}" if feed["json"] else f"{'':7}" for key in ("alone", "delta")]
        print(f"{name:40} {n:8} {feed['body'] / n:7.0f} {feed['disk'] / n:8.0f} {packed[0]} {packed[1]} {day or '':>10} {mib or 0:10.1f}")
    print(f"all: {total / 2**20:.1f} MiB in this journal, {whole:.0f} MiB a day")


if __name__ == "__main__":
    main(sys.argv[1:])
