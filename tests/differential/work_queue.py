#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Compares libkinf's work queue with client-go's: both do the same random operations, in one thread, and must give the same
answers. Each script runs many times, with a shutdown, a drain, or both, between any two of its operations.

usage: tests/differential/work_queue.py --client-go PROGRAM [--scripts N] [--seed N]   ($KINF_BUILD: default build/asan)
"""

import argparse
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from harness.process import SANITIZER_OPTIONS, program  # noqa: E402

LENGTH = 24
ENDS = [[], ["shutdown"], ["drain"], ["drain", "shutdown"], ["shutdown", "drain"]]


def script(chance):
    """Operations of a controller: keys are added at any time; keys in work are done in any order,
    sometimes twice, sometimes with the key added again meanwhile."""
    keys = [f"k{n}" for n in range(chance.randint(1, 4))]
    steps = []
    for _ in range(LENGTH):
        kind = chance.choices(["add", "get", "done", "state"], [4, 4, 4, 1])[0]
        steps.append(kind if kind in ("get", "state") else f"{kind} {chance.choice(keys)}")
    return steps


def variants(steps, chance):
    yield steps
    for end in ENDS[1:]:
        for place in range(len(steps) + 1):
            later = chance.randint(place, len(steps)) if len(end) > 1 else None
            if later is None:
                yield steps[:place] + end + steps[place:]
            else:
                yield steps[:place] + end[:1] + steps[place:later] + end[1:] + steps[later:]


def answers(argv, text):
    done = subprocess.run(argv, input=text, capture_output=True, text=True, env={**os.environ, **SANITIZER_OPTIONS})
    assert done.returncode == 0 and not done.stderr, f"{argv}: {done.returncode}: {done.stderr[-4000:]}"
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--client-go", required=True)
    parser.add_argument("--scripts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    runs = list(itertools.chain.from_iterable(variants(script(chance), chance) for _ in range(arguments.scripts)))
    text = "".join(f"new\n{''.join(step + chr(10) for step in run)}" for run in runs)
    ours, theirs = answers([program("differential/work_queue")], text), answers([arguments.client_go], text)
    began = 0
    for number, (mine, other) in enumerate(itertools.zip_longest(ours, theirs)):
        began = number if mine == "new" else began
        assert mine == other and "hangs" not in mine, (
            f"after {ours[began:number]}\nlibkinf   {mine}\nclient-go {other}")  # fmt: skip
    print(f"queue: {len(runs)} scripts, {len(ours) - len(runs)} operations, the same answers")


if __name__ == "__main__":
    main()
