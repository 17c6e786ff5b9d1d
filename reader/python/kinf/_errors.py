# SPDX-License-Identifier: Apache-2.0
"""The errors, each with the library's own sentence."""

import os
from typing import NoReturn, SupportsIndex

from ._library import AGAIN, GONE, lib


class Error(Exception):
    """Of the store or the library. The text has the cause and the remedy; `code` is kinf.h's."""

    code = 0

    def __init__(self, sentence: str, code: int = 0):
        super().__init__(sentence)
        if code:
            self.code = code


class Corrupt(Error):
    """The store holds invalid bytes; `kinf verify` says more."""


class UnknownFormat(Error):
    """The store was written by a version of another format."""


class NoFeed(Error):
    """No feed of the name is configured; the sentence has the line to add."""


class SnapshotExpired(Error):
    """The data read may be wrong: a process wrote a store opened as a copy, or a snapshot was held
    for minutes while the daemons replaced the files again and again. Take another snapshot."""


class Locked(Error):
    """Another process, or another watch of this one, has it: a cursor has one follower at a time."""


class NoStore(Error):
    """There is no store."""


class Untrusted(Error):
    """The store may be damaged (a power cut, a copy of a running one)."""


class BadQuery(Error, ValueError):
    """An unintelligible selector, path or token."""


class TooLarge(Error):
    """Larger than the store's limit."""


class ReadersFull(Error):
    """This process holds too many snapshots."""


class NoIndex(Error):
    """The feed has no index of the name; the sentence names the existing ones."""


class Forked(Error):
    """A handle of the parent process: open a Store in the child."""


class Moved(Error):
    """The store has been replaced by another."""


class Timeout(Error, TimeoutError):
    """It did not come in time."""


class Unsupported(Error):
    """Beyond this library's abilities."""


class NotReady(Error):
    """Nothing has been listed, or indexed, so far: wait_synced() waits for it."""

    code = AGAIN


class Gone(Error):
    """The store no longer has the state of the continue token or event number."""

    code = GONE


class Ended(Error):
    """Used after its end: of a closed store, of a renewed or closed snapshot."""


_CLASSES = {
    -1001: Corrupt,
    -1002: UnknownFormat,
    -1004: NoFeed,
    -1005: SnapshotExpired,
    -1006: Locked,
    -1007: NoStore,
    -1008: Untrusted,
    -1009: BadQuery,
    -1010: TooLarge,
    -1012: ReadersFull,
    -1019: NoIndex,
    -1020: Forked,
    -1021: Moved,
    -1023: Timeout,
    -1024: Unsupported,
    AGAIN: NotReady,
    GONE: Gone,
}

# Outcomes without a handle have no sentence in the library.
_OUTCOMES = {
    AGAIN: "nothing has been listed or indexed so far: wait_synced() waits for it",
    GONE: "the state that was asked for is no longer kept: begin again",
}


def error(code: int, handle: int | None = None) -> Error:
    """The exception for a result; HANDLE: its struct kinf, if any."""
    if code in _OUTCOMES:
        told = lib.kinf_error(handle) if handle else b""
        return _CLASSES[code](told.decode(errors="replace") or _OUTCOMES[code], code)
    sentence = lib.kinf_error(handle) or lib.kinf_strerror(code) or b""
    return _CLASSES.get(code, Error)(sentence.decode(errors="replace"), code)


def check(code: int, handle: int | None = None) -> int:
    """CODE itself; negative ones are raised."""
    if code < 0:
        raise error(code, handle)
    return code


# A child's handles are its parent's: neither used nor closed there.
_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def forks() -> int:
    """Another number after each fork, in the child."""
    return _forks


def check_fork(at: int) -> None:
    if at != _forks:
        raise Forked("a store that the parent process opened: open another Store in the child", -1020)


class Single:
    """The owner of one handle of the library. A copy would close it a second time."""

    __slots__ = ()
    _instead = "make another one"

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        raise TypeError(f"a kinf.{type(self).__name__} can't be copied or pickled: {self._instead}")
