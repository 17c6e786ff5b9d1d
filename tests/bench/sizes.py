#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the store's and the daemons' needs for N synthetic pods of 6 kB: the table in
docs/operations.md, Sizes and costs.

usage: tests/bench/sizes.py [BUILD (build/release)] [N ... (1000 10000 100000)]
"""

import sys

from machine import Place
from synthetic import holding_reader

COLUMNS = ("objects", "JSON", "journal", "index", "on disk", "processor", "reader")


def mib(size):
    return f"{size / 2**20:.3g} MiB"


def measure(build, n):
    with Place(build) as place:
        processor = place.daemon("kinf-processor")
        figures = place.fill(n, "wait")
        on_disk = sum(path.stat().st_blocks * 512 for path in place.store.rglob("*") if path.is_file())
        return (f"{n:,}", mib(figures["json_bytes"]), mib(figures["journal_used_bytes"]), mib(figures["index_used_bytes"]),
                mib(on_disk), mib(processor.peak), mib(holding_reader(place, n)))


def main():
    build, *sizes = sys.argv[1:] or ["build/release"]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for n in map(int, sizes or ("1000", "10000", "100000")):
        print("| " + " | ".join(measure(build, n)) + " |", flush=True)


if __name__ == "__main__":
    main()
