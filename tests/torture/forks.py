#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Forks a program with threads inside of every call of libkinf (forks.c), while the daemons write.

usage: tests/torture/forks.py [--count N]    N children ($KINF_BUILD: default build/release)
"""

import os
import subprocess
import sys

os.environ.setdefault("KINF_BUILD", "build/release")
from torture import FEED, INDEXES, Tally, arguments, program, whole, with_workspace  # noqa: E402


def run(workspace, options):
    tally = Tally()
    simulator = workspace.simulator()
    simulator.create(FEED, 40, size=600)
    store = workspace.store(simulator=simulator)
    store.configure(whole(FEED, indexes=INDEXES)).daemons()
    store.wait_equal(simulator, FEED)
    simulator.churn(FEED, 50)
    count = options.count or 20000
    done = subprocess.run([program("torture/forks"), FEED, str(count)], env={**os.environ, **store.env},
                          capture_output=True, text=True)  # fmt: skip
    simulator.churn(FEED, 0)
    faults = [line for line in done.stdout.splitlines() if line.startswith("FAULT")]
    if done.returncode not in (0, 1) or " children, " not in done.stdout:
        faults.append(f"the program ends with {done.returncode}: {done.stderr[-500:]}")
    for number in range(count):
        tally.tried("child", faults[number] + done.stderr[-3000:] if number < len(faults) else None)
    store.wait_equal(simulator, FEED)
    store.verify()
    return tally.end()


def main():
    options = arguments(__doc__, 500)
    return with_workspace(lambda workspace: run(workspace, options))


if __name__ == "__main__":
    sys.exit(main())
