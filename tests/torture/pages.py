#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the store's unit tests as on a machine with pages of 16 and 64 KiB (pages.c).

usage: tests/torture/pages.py [--only NAME]    ($KINF_BUILD: without sanitizer, default build/debug)

A program taking longer than SECONDS_MAX is killed with its children, and has failed.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import Tally, arguments, program  # noqa: E402

TESTS = ["as_of", "bloat", "cursor_file", "datafile", "env", "env_damage", "env_killed", "env_room", "faults", "feed_row",
         "follow", "follow_resync", "generation", "hints", "home", "home_check", "home_roles", "index", "index_damage",
         "index_define", "journal", "journal_open", "names", "pins",
         "pins_model", "pins_room", "pins_users", "postings", "readers", "rebuild", "replaced", "retention", "ring", "ring_file",
         "salvage", "snapshot", "snapshot_feeds", "stats", "taken",
         "verify", "verify_damage"]  # fmt: skip
SECONDS_MAX = 300


def run(argv, env):
    """Runs a program in a process group of its own; the group ends with it. Returns its output, and
    the reason of its failure or None. It prints into a file: a leftover child would keep a pipe
    open."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            status = process.wait(timeout=SECONDS_MAX)
            fault = f"status {status}" if status else None
        except subprocess.TimeoutExpired:
            fault = f"it took longer than {SECONDS_MAX} seconds"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        out.seek(0)
        text = out.read().decode(errors="replace")
    return text, fault or ("it crashed" if "crashed" in text else None)


def main():
    options, tally = arguments(__doc__, 0), Tally()
    for page in (16384, 65536):
        for name in TESTS:
            if options.only not in name:
                continue
            env = {**os.environ, "LD_PRELOAD": program("torture/pages.so"), "KINF_TORTURE_PAGE": str(page)}
            text, fault = run([program(f"unit/test_{name}"), "--timeout", "100"], env)
            tally.tried(f"pages of {page >> 10} KiB", f"test_{name}: {fault}:\n{text[-2000:]}" if fault else None)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
