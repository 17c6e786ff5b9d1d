#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/top.svg: the screen of `kinf top` in a real run, character by character.

A simulated cluster has pods, nodes and config maps and changes 120 times a second; one follower has a cursor.

usage: docs/pictures/top.py [BUILD (build/release)]
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/scenario"), str(Path(__file__).parent)]
sys.dont_write_bytecode = True
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
os.environ["KINF_BUILD"] = str(BUILD)

import svg  # noqa: E402
from harness.process import program  # noqa: E402
from harness.simulator import Simulator  # noqa: E402
from harness.store import Store, whole  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

ROWS, COLUMNS, SECONDS = 28, 100, 8
CELL, LINE, MARGIN = 7.25, 17, 12  # of a character of 12 pixels
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
GROUND, TEXT, COLOURS = "#111827", "#e5e7eb", {
    "red": "#f87171", "green": "#4ade80", "brown": "#facc15", "blue": "#60a5fa", "magenta": "#c084fc", "cyan": "#22d3ee"}


def run(directory, cleanup):
    """The rows of the screen, each a list of (text, colour, bold, reversed)."""
    simulator = Simulator(directory, "--pods", "500").start()
    cleanup.callback(simulator.stop)
    for resource, number in (("nodes", 20), ("configmaps", 60)):
        simulator.create(resource, number)
    store = Store(directory, simulator)
    store.configure(*map(whole, ("pods", "nodes", "configmaps")))
    cleanup.callback(store.run().stop)
    for feed in ("pods", "nodes", "configmaps"):
        store.wait_synced(feed)
    cleanup.callback(store.follower("watch", "pods", "-o", "json", "--cursor", "exporter").stop)
    simulator.churn("pods", 120)
    terminal = Terminal([program("kinf"), "top"], store.env, ROWS, COLUMNS, term="xterm")
    cleanup.callback(terminal.close)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        terminal.lines()
        time.sleep(0.1)
    terminal.wait_text("pods", "live")
    return [runs(terminal.screen.buffer[row]) for row in range(ROWS)]


def runs(line):
    """The cells of a line, joined while they look the same."""
    found = []
    for column in range(COLUMNS):
        cell = line[column]
        look = (COLOURS.get(cell.fg, TEXT), cell.bold, cell.reverse)
        if found and found[-1][1:] == look:
            found[-1] = (found[-1][0] + cell.data, *look)
        else:
            found.append((cell.data, *look))
    return found


def draw(screen, path):
    while screen and not "".join(text for text, *_ in screen[-1]).strip():
        screen.pop()
    picture = svg.Picture(COLUMNS * CELL + 2 * MARGIN, len(screen) * LINE + 2 * MARGIN, "kinf top",
                          "The screen of kinf top: " + " / ".join("".join(t for t, *_ in line).strip() for line in screen))
    picture.rect(0, 0, COLUMNS * CELL + 2 * MARGIN, len(screen) * LINE + 2 * MARGIN, GROUND, GROUND, 6)
    for row, line in enumerate(screen):
        column = 0
        for text, colour, bold, reverse in line:
            x, y = MARGIN + column * CELL, MARGIN + row * LINE
            if reverse:
                picture.rect(x, y + 1, len(text) * CELL, LINE, colour, colour, 0)
            if text.strip():
                picture.text(x, y + 13, text, 12, GROUND if reverse else colour, weight="bold" if bold else "normal", family=MONO)
            column += len(text)
    picture.save(path)


def main():
    with contextlib.ExitStack() as cleanup:
        name = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kinf-picture-"))
        draw(run(Path(name), cleanup), ROOT / "docs/pictures/top.svg")


if __name__ == "__main__":
    main()
