# SPDX-License-Identifier: Apache-2.0
"""Watches: an informer of the library as an iterator, for `for` and for `async for`."""

import asyncio
import ctypes
import math
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _library
from ._callback import call
from ._errors import Ended, Error, Single, check, check_fork, error, forks
from ._library import ADD_FN, AGAIN, COMMIT_BY_HAND, OWN_DEFAULT_RESYNC, SIGNAL_FN, SNAPSHOT_EXPIRED, STATE_FN
from ._library import TRACK_KEYS, UPDATE_FN, lib
from ._object import Object, copy_of
from ._query import number, query, text
from ._snapshot import FeedStatus, feed_status, handled

if TYPE_CHECKING:
    from ._store import Store

BATCH = 64  # events taken at a time where no position is kept
RESYNC_LIMIT = 1e9  # seconds
COMMIT_SECONDS = 1.0  # between two writes of a cursor while there is no pause
SIGNAL_SECONDS = 0.5  # of a wait: a signal's handler gets its turn


@dataclass(frozen=True, slots=True)
class Event:
    """What a watch tells. Its objects stay."""

    type: str
    """ADDED, MODIFIED, DELETED; SYNC: the initial state is complete; LAPPED: it follows once more, what is
    not in it is gone; STATE: of a feed, in `status`."""
    object: Object | None = None
    """DELETED: the last state that is known."""
    old: Object | None = None
    """MODIFIED: the state before, when the watch was asked for it. Another uid: deleted and made anew."""
    initial: bool = False
    """Of the state that the watch begins with."""
    resync: bool = False
    """Nothing has changed: a resync."""
    final_state_unknown: bool = False
    """DELETED: found missing; changes before that may not have been seen, `object` may be its key alone."""
    status: FeedStatus | None = None
    event: int = 0
    """The event number that the watch has reached. A snapshot that the handling of the event takes holds this
    number; other code asks for it with store.snapshot(at=event.event)."""

    @property
    def key(self) -> str:
        """Of the object; "" where there is none."""
        return self.object.key if self.object else ""


class _Closed(Exception):
    """There are no more events."""


class _Inbox:
    """The callbacks' events. Knows no watch, so an unused one is freed at once."""

    def __init__(self, old: bool):
        self.events: deque[Event] = deque()
        self.failure: BaseException | None = None
        self.old = old
        self.calls = 0  # taken whole, of those counted by dispatch: all but on_state

    def _put(self, make: Callable[[], Event], counts: int = 1) -> None:
        """Nothing is raised through the library."""
        try:
            self.events.append(make())
            self.calls += counts
        except BaseException as exception:
            self.failure = self.failure or exception

    def on_add(self, _: Any, raw: Any, initial: int) -> None:
        self._put(lambda: Event("ADDED", copy_of(raw.contents), initial=bool(initial), event=lib.kinf_handled_event()))

    def on_update(self, _: Any, before: Any, raw: Any) -> None:
        def make() -> Event:
            old = copy_of(before.contents) if self.old and before else None
            resync = bool(before) and before.contents.event == raw.contents.event
            event = lib.kinf_handled_event()
            return Event("MODIFIED", copy_of(raw.contents), old=old, resync=resync, event=event)

        self._put(make)

    def on_delete(self, _: Any, raw: Any, unknown: int) -> None:
        def make() -> Event:
            event = lib.kinf_handled_event()
            return Event("DELETED", copy_of(raw.contents), final_state_unknown=bool(unknown), event=event)

        self._put(make)

    def on_sync(self, _: Any) -> None:
        self._put(lambda: Event("SYNC", event=lib.kinf_handled_event()))

    def on_lapped(self, _: Any) -> None:
        self._put(lambda: Event("LAPPED"))

    def on_state(self, _: Any, raw: Any) -> None:
        self._put(lambda: Event("STATE", status=feed_status(raw.contents)), counts=0)


class Watch(Single):
    """Events of a feed, one after the other, for ever: `for event in watch`, `async for event in
    watch`, or next_event(timeout). One reader at a time; close() from anywhere ends it. `with` and
    `async with` close it; with a cursor the last event handled is then left uncommitted, unless
    commit() was called."""

    _instead = "watch again"

    def __init__(
        self,
        store: "Store",
        feed: str,
        *,
        filters: dict[str, Any],
        cursor: str | None,
        from_event: int,
        commit: bool,
        old: bool,
        track_keys: bool,
        resync: float | None,
        states: bool,
    ):
        self._forks = forks()
        self._lock = threading.RLock()
        self._informer: int | None = None
        self._closed = False
        # Waiters for the descriptor, and dispatchers: it is freed when they have ended. A set,
        # because an interrupt may come between any two steps, and leaving twice, or without having
        # come, is nothing.
        self._users: set[object] = set()
        self._store, self._feed = store, feed
        self._inbox = _Inbox(old)
        self._cursor, self._commit = cursor, commit and cursor is not None
        self._uncommitted = False
        self._committed_at = time.monotonic()
        self._open(_informer_options(self._inbox, cursor, from_event, track_keys, resync, states), filters)

    def _open(self, options: _library.InformerOptions, filters: dict[str, Any]) -> None:
        self._options, self._handler = options, _handler_options(self._inbox)
        if any(value is not None for value in filters.values()):
            self._handler.filter = ctypes.pointer(query(self._feed, **filters))
        informer, handler = c_void_p(), c_void_p()
        with self._store.in_use() as self._kinf:
            feed = text(self._feed, "a feed")
            check(lib.kinf_informer_new(self._kinf, feed, byref(options), byref(informer)), self._kinf)
            code = lib.kinf_informer_add_handler(informer, byref(self._handler), byref(handler))
            if code != 0:
                problem = error(code, self._kinf)
                lib.kinf_informer_free(byref(informer))
                raise problem
            self._informer = informer.value
            self._store.children.add(self)

    # ---- what there is ----

    def _dispatch(self) -> None:
        """More events, where there are any. With a cursor one at a time: the event given out is the one handled."""
        inbox = self._inbox
        inbox.calls = 0
        called, lost = call(lib.kinf_informer_dispatch, self._informer, 1 if self._cursor else BATCH)
        inbox.failure = inbox.failure or lost
        if inbox.failure or (called >= 0 and called != inbox.calls):
            # An exception got into a callback (Ctrl-C does): an event is lost, this can't go on.
            self.close()
            raise inbox.failure or Error("the watch was interrupted while it took an event: open it again")
        self._uncommitted |= inbox.calls > 0
        if called == SNAPSHOT_EXPIRED and not self._store.is_copy:
            # The process was stopped for minutes, and its last event may be wrong. The informer
            # gives LAPPED and all objects next.
            if inbox.events and inbox.events[-1].object:
                inbox.events.pop()
            return
        check(called, self._kinf)

    def _look(self) -> Event | None:
        """The next event, when there is one now; _Closed."""
        check_fork(self._forks)
        handled.set((None, 0))
        with self._lock:
            if not self._inbox.events and not self._closed:
                user = object()
                try:
                    self._users.add(user)
                    self._commit_handled(COMMIT_SECONDS)
                    self._dispatch()
                    if not self._inbox.events:
                        self._commit_handled(0)
                finally:
                    self._leave(user)
            if self._closed:
                raise _Closed
            event = self._inbox.events.popleft() if self._inbox.events else None
        if event and event.event:
            handled.set((self._store, event.event))
        return event

    def _enter(self, user: object) -> int:
        """The descriptor to wait for, until _leave(USER)."""
        check_fork(self._forks)
        with self._lock:
            if self._closed:
                raise _Closed
            self._users.add(user)
            return int(lib.kinf_informer_fd(self._informer))

    def _leave(self, user: object) -> None:
        if self._forks != forks():
            return  # a forked child: a thread of the parent may have held the lock
        with self._lock:
            self._users.discard(user)
            self._free_when_unused()

    # ---- cursor ----

    def _commit_handled(self, after: float) -> None:
        """The event given before the next request has been handled."""
        if self._commit and self._uncommitted and time.monotonic() - self._committed_at >= after:
            self._write_cursor()

    def _write_cursor(self) -> bool:
        code = check(lib.kinf_informer_commit(self._informer), self._kinf)
        self._committed_at = time.monotonic()
        self._uncommitted = code == AGAIN
        return code != AGAIN

    def commit(self) -> bool:
        """Every event given so far has been handled: writes the cursor. False: not before SYNC."""
        check_fork(self._forks)
        with self._lock:
            if self._closed:
                raise Ended("the watch was closed")
            if any(event.type != "STATE" for event in self._inbox.events):
                return False  # the library reports a missing cursor
            return self._write_cursor()

    # ---- for ----

    def next_event(self, timeout: float | None = None) -> Event | None:
        """The next event; None when TIMEOUT seconds have passed, or the watch was closed."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                event = self._look()
                left = None if end is None else end - time.monotonic()
                if event or (left is not None and left <= 0):
                    return event
                self._wait(left)
        except _Closed:
            return None

    def _wait(self, seconds: float | None) -> None:
        """Waits for an event for at most SECONDS, and at most SIGNAL_SECONDS: a signal just before
        poll() does not interrupt it, and its Python handler runs only after poll() has returned."""
        poll, user = select.poll(), object()
        try:
            poll.register(self._enter(user), select.POLLIN)
            poll.poll(min(SIGNAL_SECONDS, SIGNAL_SECONDS if seconds is None else seconds) * 1000)
        finally:
            self._leave(user)

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> Event:
        event = self.next_event()
        if event is None:
            raise StopIteration
        return event

    # ---- async for ----

    async def _wait_async(self) -> None:
        loop, user = asyncio.get_running_loop(), object()
        try:
            descriptor = self._enter(user)
            readable = asyncio.Event()
            loop.add_reader(descriptor, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(descriptor)
        finally:
            self._leave(user)

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Event:
        try:
            while True:
                if not self._inbox.events:
                    await asyncio.sleep(0)  # this thread has other work than a long initial state
                event = self._look()
                if event:
                    return event
                await self._wait_async()
        except _Closed:
            raise StopAsyncIteration from None

    # ---- the end ----

    def close(self) -> None:
        """Ends the events for each waiter. Again does nothing."""
        if self._forks != forks():
            return  # the parent's
        with self._lock:
            self._closed = True
            if self._informer is not None:
                lib.kinf_informer_stop(self._informer)
            self._free_when_unused()

    def _free_when_unused(self) -> None:
        if self._closed and not self._users and self._informer is not None:
            handle, self._informer = c_void_p(self._informer), None
            lib.kinf_informer_free(byref(handle))
            self._store.children.discard(self)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_informer", None) is not None:
            self.close()


def _informer_options(
    inbox: _Inbox, cursor: str | None, from_event: int, track_keys: bool, resync: float | None, states: bool
) -> _library.InformerOptions:
    if resync is not None and not 0 <= resync < RESYNC_LIMIT:
        raise ValueError(f"resync={resync}: not a number of seconds from 0 to {RESYNC_LIMIT:.0e}")
    flags = (TRACK_KEYS if track_keys else 0) | (OWN_DEFAULT_RESYNC if resync is not None else 0)
    return _library.InformerOptions(
        size=ctypes.sizeof(_library.InformerOptions),
        flags=COMMIT_BY_HAND | flags,
        cursor=None if cursor is None else text(cursor, "a cursor's name"),
        from_=number(from_event, "an event"),
        resync_ms=math.ceil((resync or 0) * 1000),
        on_state=STATE_FN(inbox.on_state) if states else STATE_FN(0),
    )


def _handler_options(inbox: _Inbox) -> _library.HandlerOptions:
    return _library.HandlerOptions(
        size=ctypes.sizeof(_library.HandlerOptions),
        on_add=ADD_FN(inbox.on_add),
        on_update=UPDATE_FN(inbox.on_update),
        on_delete=ADD_FN(inbox.on_delete),
        on_sync=SIGNAL_FN(inbox.on_sync),
        on_lapped=SIGNAL_FN(inbox.on_lapped),
    )
