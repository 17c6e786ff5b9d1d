#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets each system call of each program fail, one at a time, in each possible way: no such device,
no space, no descriptor left, an interruption, half of the bytes. LMDB's and libcurl's calls also.

  * A command prints the right result, or nothing but a sentence, and exits 1.
  * A daemon goes on, or ends with a sentence and a status for `kinf run` to start it again; then
    the store equals the cluster. `kinf verify` finds no fault after each run.

usage: tests/torture/system_calls.py [--count N] [--seed N] [--only NAME] [--call NAME]
       ($KINF_BUILD: a build without sanitizer, default build/release)
"""

import os
import sys

os.environ.setdefault("KINF_BUILD", "build/release")
from runs import Runs  # noqa: E402
from torture import arguments, program, with_workspace  # noqa: E402

WRITES = ["EIO", "ENOSPC", "EINTR", "short"]
CALLS = {
    "open": ["EMFILE", "EIO"],
    "openat": ["EMFILE", "EIO", "ENOSPC"],
    "read": ["EIO", "EINTR"],
    "pread": ["EIO", "EINTR"],
    "write": WRITES,
    "pwrite": WRITES,
    "writev": WRITES,
    "fsync": ["EIO", "ENOSPC"],
    "fdatasync": ["EIO", "ENOSPC"],
    "msync": ["EIO"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR"],
    "fallocate": ["EIO", "ENOSPC", "EINTR"],
    "posix_fallocate": ["EIO", "ENOSPC", "EINTR"],
    "mmap": ["ENOMEM"],
    "fstat": ["EIO"],
    "fstatat": ["EIO"],
    "fchmod": ["EIO"],
    "mkdirat": ["ENOSPC", "EIO"],
    "unlinkat": ["EIO"],
    "renameat": ["EIO", "ENOSPC"],
    "flock": ["EINTR", "EIO"],
    "fcntl": ["EINTR", "EIO"],
    "socket": ["EMFILE"],
    "send": ["EPIPE", "EAGAIN", "short"],
    "sendto": ["EPIPE", "EAGAIN"],
    "recv": ["EIO", "EINTR"],
    "epoll_create1": ["EMFILE"],
    "epoll_ctl": ["ENOMEM"],
    "epoll_wait": ["EINTR"],
}


def main():
    options = arguments(__doc__, 3, ("--call", "only calls whose names contain this"))
    kinds = {
        f"{call} {how}": {"LD_PRELOAD": program("torture/faults.so"), "KINF_TORTURE_CALL": call, "KINF_TORTURE_HOW": how}
        for call, hows in CALLS.items()
        for how in hows
        if options.call in call
    }
    return with_workspace(lambda workspace: Runs(workspace, options, kinds).run())


if __name__ == "__main__":
    sys.exit(main())
