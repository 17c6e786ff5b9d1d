# SPDX-License-Identifier: Apache-2.0
"""What scenarios are made of: processes, the simulated cluster, a store of their own, waiting."""

import time

DEFAULT_TIMEOUT = 20.0


def eventually(condition, timeout=DEFAULT_TIMEOUT, what=None):
    """Calls CONDITION until its result is true and returns that; AssertionError after TIMEOUT.

    A condition that raises AssertionError counts as false, and its message is what is shown in the
    end; so a condition may consist of asserts (and then return True).
    """
    deadline = time.monotonic() + timeout
    pause = 0.005
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
            raise AssertionError(f"not within {timeout} s: {name}; last: {problem or result!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
