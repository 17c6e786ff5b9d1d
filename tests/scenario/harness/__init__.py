# SPDX-License-Identifier: Apache-2.0
"""What scenarios are made of: processes, the simulated cluster, a store of their own, waiting."""

import time

# A limit ends a test that hangs; it says nothing about how long a thing should take. Seconds are those
# of a machine that has time for it; a busy or throttled one gets so many times more.
PATIENCE = 6


def eventually(condition, timeout=20, what=None, patience=PATIENCE):
    """Calls CONDITION until its result is true and returns that; AssertionError after TIMEOUT * PATIENCE
    seconds.

    A condition that raises AssertionError counts as false, and its message is what is shown in the
    end; so a condition may consist of asserts (and then return True).
    """
    deadline = time.monotonic() + timeout * patience
    pause = 0.01
    while True:
        problem = None
        try:
            result = condition()
        except AssertionError as error:
            result, problem = None, error
        if result:
            return result
        if time.monotonic() >= deadline:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"not within {timeout * patience} s: {name}; last: {problem or result!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
