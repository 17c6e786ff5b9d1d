#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets each allocation of each program fail, one at a time: both daemons, an informer, the kinf
command.

  * A command prints the right result, or nothing but a sentence, and exits 1. It never crashes and
    never leaks.
  * A daemon goes on, or ends with a sentence and a status for `kinf run` to start it again. In the
    end the store equals the cluster, and `kinf verify --deep` finds no fault.

usage: tests/torture/memory.py [--count N] [--seed N] [--only NAME]    ($KINF_BUILD: default build/asan, for leaks)
"""

import sys

from runs import Runs
from torture import arguments, with_workspace


def main():
    options = arguments(__doc__, 150)
    return with_workspace(lambda workspace: Runs(workspace, options, {"": {}}, "torture/").run())


if __name__ == "__main__":
    sys.exit(main())
