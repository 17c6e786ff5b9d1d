#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs the store's unit tests as on a machine with pages of 16 and 64 KiB (pages.c).

usage: tests/torture/pages.py [--only NAME]    ($KINF_BUILD: without sanitizer, default build/debug)
"""

import os
import subprocess
import sys

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import Tally, arguments, program  # noqa: E402

TESTS = ["datafile", "env", "env_damage", "env_killed", "env_room", "follow", "generation", "hints", "index", "index_define",
         "journal", "journal_model", "journal_open", "pins", "rebuild", "ring", "ring_file", "snapshot", "stats", "taken", "verify"]  # fmt: skip


def main():
    options, tally = arguments(__doc__, 0), Tally()
    for page in (16384, 65536):
        for name in TESTS:
            if options.only not in name:
                continue
            env = {**os.environ, "LD_PRELOAD": program("torture/pages.so"), "KINF_TORTURE_PAGE": str(page)}
            done = subprocess.run([program(f"unit/test_{name}"), "--timeout", "100"], env=env, capture_output=True, text=True, errors="replace")
            bad = done.returncode or "crashed" in done.stderr
            tally.tried(f"pages of {page >> 10} KiB", f"test_{name}:\n{done.stderr[-2000:]}" if bad else None)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
