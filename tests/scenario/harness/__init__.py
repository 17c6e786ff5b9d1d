# SPDX-License-Identifier: Apache-2.0
"""Tools of the scenarios: processes, the simulated cluster, stores, waiting."""

import time

# A time limit ends a hung test; it is no requirement of speed. Limits are in seconds of an idle
# machine, and multiplied by PATIENCE for busy machines.
PATIENCE = 6


def eventually(condition, timeout=20, what=None, patience=PATIENCE):
    """Calls CONDITION until its result is true, and returns the result. Raises AssertionError after
    TIMEOUT * PATIENCE seconds.

    An AssertionError of CONDITION counts as false, and the final error shows its last message; so a
    condition may consist of asserts (and then return True).
    """
    deadline = time.monotonic() + timeout * patience
    pause = 0.01
    while True:
        problem, asked = None, time.monotonic()
        try:
            result = condition()
        except AssertionError as error:
            result, problem = None, error
        if result:
            return result
        now = time.monotonic()
        if now >= deadline:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError(f"not within {timeout * patience} s: {name}; last: {problem or result!r}")
        # Asking is work, often a process with the sanitizers: ten waiting tests that ask for a third
        # of their time keep two processors busy, and so delay the expected events.
        time.sleep(max(pause, min(5 * (now - asked), 0.5)))
        pause = min(pause * 1.5, 0.25)
