# SPDX-License-Identifier: Apache-2.0
"""Commands in namespaces of their own. A test is skipped where they are not allowed, as in most containers."""

import functools
import subprocess

import pytest


@functools.cache
def refusal(*options):
    """Why unshare with OPTIONS, and mounting in it, is not possible here; "" if it is."""
    mounts = {"-rm", "--mount"} & set(options)
    probe = ["sh", "-c", "mount -t tmpfs none /tmp"] if mounts else ["true"]
    done = subprocess.run(["unshare", *options, *probe], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    return done.stderr or f"exit {done.returncode}" if done.returncode else ""


def unshare(*options):
    """The beginning of a command in namespaces: unshare with OPTIONS."""
    why = refusal(*options)
    if why:
        pytest.skip(f"unshare {' '.join(options)} is not allowed here: {why}")
    return ["unshare", *options]
