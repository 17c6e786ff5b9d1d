# SPDX-License-Identifier: Apache-2.0
"""The runners of tests/torture share this: a counter of cases, and a store to torture."""

import argparse
import random
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402, F401
from harness.process import SANITIZER, SANITIZER_OPTIONS, program, run_command  # noqa: E402, F401
from harness.store import whole  # noqa: E402, F401

# A daemon unable to go on gives the reason in one line and ends with one of these; `kinf run` starts it again.
ORDERLY = {0, 1, 69, 70, 75, 78}
FEED = "pods"
INDEXES = {"node": "spec.nodeName"}


def arguments(about, count, *more):
    """The options of all runners. COUNT: the default number of cases of one kind. MORE: (name, help)
    of others."""
    parser = argparse.ArgumentParser(description=about.strip().splitlines()[0])
    parser.add_argument("--count", type=int, default=count, help="cases of each kind at most, 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="the kinds whose names contain this")
    for name, text in more:
        parser.add_argument(name, default="", help=text)
    return parser.parse_args()


class Tally:
    """Counts cases by their kind, prints the sums, and ends with status 1 if one has failed."""

    def __init__(self, only=""):
        self.only = only
        self.kinds = {}
        self.faults = []

    def tried(self, kind, fault=None):
        row = self.kinds.setdefault(kind, [0, 0])
        row[0] += 1
        if fault:
            row[1] += 1
            self.faults.append(f"{kind}: {fault}")
            print(f"FAULT {kind}: {fault}", flush=True)

    def case(self, kind, body, *arguments):
        """Tries BODY(*ARGUMENTS) if KIND is chosen; an assertion that fails is the fault."""
        if self.only not in kind:
            return
        fault = None
        try:
            body(*arguments)
        except AssertionError as problem:
            fault = str(problem)[:1500]
        self.tried(kind, fault)

    def end(self):
        print(f"{'':40} {'tried':>8} {'failed':>8}")
        for kind, (tried, failed) in self.kinds.items():
            print(f"{kind:40} {tried:8} {failed:8}")
        tried, failed = (sum(row[i] for row in self.kinds.values()) for i in (0, 1))
        print(f"{'all':40} {tried:8} {failed:8}")
        return 1 if failed or not tried else 0


def chosen(total, count, seed):
    """COUNT of the numbers 1 to TOTAL, spread over all of them; all of them if COUNT is 0."""
    if not count or count >= total:
        return range(1, total + 1)
    chance = random.Random(seed)
    return sorted({1 + int((i + chance.random()) * total / count) for i in range(count)} & set(range(1, total + 1)))


def place_of(binary, address):
    """Function and line of an address noted by a program."""
    done = subprocess.run(["addr2line", "-fse", binary, address], capture_output=True, text=True)
    return " ".join(done.stdout.split())


def with_workspace(body):
    """Runs BODY(workspace) and keeps the directory if it fails."""
    workspace = Workspace()
    try:
        result = body(workspace)
    except BaseException:
        print(workspace.report(), file=sys.stderr)
        raise
    finally:
        workspace.close()
    shutil.rmtree(workspace.directory)
    return result
