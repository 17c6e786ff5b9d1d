# SPDX-License-Identifier: Apache-2.0
"""Calls of the library with callbacks."""

import sys
import threading
from collections.abc import Callable
from typing import Any


def call(function: Callable[..., int], *arguments: Any) -> tuple[int, BaseException | None]:
    """FUNCTION(*ARGUMENTS), and the exception raised in a callback before its first statement, if
    any. A signal's handler can raise there (Ctrl-C does), in the main thread: ctypes reports it to
    sys.unraisablehook and forgets it, and the library gets any number for the callback's result."""
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments), None
    reported: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, reported.append  # no Python code: no signal is handled in it
    try:
        result = function(*arguments)
    finally:
        sys.unraisablehook = before
    lost: BaseException | None = None
    for one in reported:
        if "ctypes callback" in (one.err_msg or ""):
            lost = lost or one.exc_value or one.exc_type()
        else:
            before(one)  # of another thread, or of an object freed meanwhile
    return result, lost
