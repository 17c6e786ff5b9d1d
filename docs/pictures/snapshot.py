#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/snapshot.svg: the state in snapshots while the cluster changes, measured in a
real run.

A simulated cluster changes 50 to 400 times a second. One reader renews its snapshot every second,
one holds a snapshot for most of the time, and one takes a new snapshot for each look.

usage: docs/pictures/snapshot.py [BUILD (build/release)]
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/scenario"), str(ROOT / "reader/python"), str(Path(__file__).parent)]
sys.dont_write_bytecode = True
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
os.environ["KINF_BUILD"] = str(BUILD)
os.environ["KINF_LIBRARY"] = str(BUILD / "libkinf.so.0")

import kinf  # noqa: E402
import svg  # noqa: E402
from harness.simulator import Simulator  # noqa: E402
from harness.store import Store, whole  # noqa: E402

SECONDS, HELD = 12, (2, 10)
NAMES = ("a new snapshot for each look", "renewed every second", "held from 2 s to 10 s")


def run(directory, cleanup):
    """[[(seconds, event)] of each reader]"""
    simulator = Simulator(directory, "--pods", "500").start()
    cleanup.callback(simulator.stop)
    environment = Store(directory, simulator)
    environment.configure(whole("pods"))
    cleanup.callback(environment.run().stop)
    environment.wait_synced("pods")
    os.environ.update(environment.env)
    store = cleanup.enter_context(kinf.Store())
    renewed, held = (cleanup.enter_context(store.snapshot()) for _ in range(2))
    points, next_renewal, begin, base = ([], [], []), 0, time.monotonic(), renewed.event
    simulator.churn("pods", 50)
    rates = [(4, 400), (7, 100)]
    while (now := time.monotonic() - begin) < SECONDS:
        if rates and now >= rates[0][0]:
            simulator.churn("pods", rates.pop(0)[1])
        if now >= next_renewal:
            renewed.renew()
            next_renewal += 1
        if not HELD[0] <= now < HELD[1]:
            held.renew()
        with store.snapshot() as fresh:
            for series, snapshot in zip(points, (fresh, renewed, held)):
                series.append((now, snapshot.event - base))
        time.sleep(0.02)
    return points


def draw(points, target):
    width, height = 720, 330
    picture = svg.Picture(width, height, "What snapshots show", "The newest event in three snapshots over time: one rises "
                          "steadily, one rises in steps of a second, one stays level while it is held.")
    picture.rect(0, 0, width, height)
    picture.text(16, 26, "Newest event that a snapshot shows", 14, weight="bold")
    highest = svg.top_of(max(event for _, event in points[0]))
    place = svg.axes(picture, (60, 45, width - 90, height - 115), highest, "", 0, SECONDS)
    for i, series in enumerate(points):
        picture.line([place(*point) for point in series], svg.COLOURS[i], 2)
    svg.legend(picture, 60, height - 28, width - 90, NAMES)
    picture.text(60, height - 10, "Everything that is read from one snapshot is of one instant; nothing that it shows changes or goes away.", 11, svg.GREY)
    picture.save(target)


def main():
    with tempfile.TemporaryDirectory(prefix="kinf-picture-") as name, contextlib.ExitStack() as cleanup:
        draw(run(Path(name), cleanup), ROOT / "docs/pictures/snapshot.svg")


if __name__ == "__main__":
    main()
