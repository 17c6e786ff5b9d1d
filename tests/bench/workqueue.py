# SPDX-License-Identifier: Apache-2.0
"""Compares the work queue with client-go's (measured by tests/bench/peer if Go and its modules are installed)."""

import os
import shutil
import subprocess
from pathlib import Path

from machine import median, measured, note

KEYS, THREADS, ROUNDS = 1_000_000, (1, 8), 3
PEER = Path(__file__).parent / "peer"


def build_peer(build):
    """Builds client-go's program, without network. Returns its path, or None after a note with the reason."""
    target = Path(build).resolve() / "bench" / "peer"
    if not shutil.which("go"):
        note("client-go's work queue is not measured: there is no Go")
        return None
    made = subprocess.run(["go", "build", "-o", target, "."], cwd=PEER, capture_output=True, text=True,
                          env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false", "GOPROXY": "off",
                               "GOTOOLCHAIN": "local"})
    if made.returncode != 0:
        note(f"client-go's work queue is not measured: {made.stderr.strip().splitlines()[-1]} "
             f"(cd {PEER} && go mod download fetches what is missing)")
        return None
    return target


def measure(build, keys=KEYS):
    """Measures keys a second by number of threads, in paired rounds."""
    note(f"{keys} keys through a work queue")
    programs = {"kinf": Path(build) / "bench" / "workqueue", "client_go": build_peer(build)}
    figures = {}
    for threads in THREADS:
        rounds = [{name: measured([program, keys, threads])["keys_per_s"]
                   for name, program in programs.items() if program} for _ in range(ROUNDS)]
        figures[f"threads_{threads}"] = {name: median([r[name] for r in rounds]) for name in rounds[0]}
    return figures
