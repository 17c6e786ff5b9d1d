# SPDX-License-Identifier: Apache-2.0
"""The store, and feeds by the store: their objects stay without a snapshot."""

import math
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_void_p
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakSet

from ._errors import Ended, Single, Timeout, check, check_fork, error, forks
from ._library import lib
from ._object import Object
from ._query import Labels, Term, Terms, text
from ._snapshot import Change, FeedStatus, Index, Snapshot, Who
from ._watch import Watch

SLICE_MS = 200  # of a wait: signals and close() get their turn


@dataclass(frozen=True, slots=True)
class Status:
    """A store's state."""

    event: int  # everything up to this event can be read
    copy: bool  # nobody can write it now
    feeds: Sequence[FeedStatus]


class Page(list[Object]):
    """Lasting objects, and the continuation of their list."""

    continue_token: str | None = None
    resource_version: str = ""
    plan: str = ""


class Feed:
    """A feed, by its name or its resource, as it is whenever it is asked. Each call looks at a snapshot of
    its own and gives objects with bytes of their own; for many of them, or for several questions to one
    state, take a snapshot: `with store.snapshot() as s: s.feed("pods")` has the same calls and copies
    nothing."""

    def __init__(self, store: "Store", name: str):
        self.store, self.name = store, name
        self._name = text(name, "a feed")

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """One object, NAME as "namespace/name" where no NAMESPACE is given; None when there is none."""
        with self.store.snapshot() as snapshot:
            found = snapshot.feed(self.name).get(name, namespace)
            return None if found is None else found.copy()

    def get_many(self, keys: Iterable[str]) -> Sequence[Object | None]:
        """The objects with these keys ("namespace/name") at one instant, in the order of KEYS; None
        for each missing one."""
        with self.store.snapshot() as snapshot:
            found = snapshot.feed(self.name).get_many(keys)
            return [None if one is None else one.copy() for one in found]

    def __getitem__(self, key: str) -> Object:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Object]:
        return iter(self.list())

    def list(
        self,
        *,
        namespace: str | None = None,
        prefix: str | None = None,
        labels: Labels | None = None,
        fields: str | None = None,
        terms: Terms | None = None,
        limit: int = 0,
        continue_token: str | None = None,
        sort_by: str | None = None,
        at_event: int = 0,
    ) -> Page:
        """As SnapshotFeed.list, all at once."""
        with self.store.snapshot() as snapshot:
            listed = snapshot.feed(self.name).list(
                namespace=namespace, prefix=prefix, labels=labels, fields=fields, terms=terms,
                limit=limit, continue_token=continue_token, sort_by=sort_by, at_event=at_event,
            )  # fmt: skip
            page = Page(one.copy() for one in listed)
            page.continue_token, page.plan = listed.continue_token, listed.plan
            page.resource_version = listed.resource_version
            return page

    def by_index(self, index: str, value: Term) -> Page:
        """The objects with this value of an index."""
        return self.list(terms=[(index, value)])

    def index_values(self, index: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        """(value, how many objects have it), in byte order."""
        with self.store.snapshot() as snapshot:
            return snapshot.feed(self.name).index_values(index, prefix)

    def indexes(self) -> Sequence[Index]:
        """The indexes, the built-in ones included."""
        with self.store.snapshot() as snapshot:
            return snapshot.feed(self.name).indexes()

    def history(self, name: str, namespace: str | None = None) -> Sequence[Change]:
        """The retained past of one object, oldest first."""
        with self.store.snapshot() as snapshot:
            return snapshot.feed(self.name).history(name, namespace)

    def status(self) -> Sequence[FeedStatus]:
        """Of each feed behind the name."""
        with self.store.snapshot() as snapshot:
            return snapshot.feed(self.name).status()

    def watch(
        self,
        *,
        namespace: str | None = None,
        prefix: str | None = None,
        labels: Labels | None = None,
        fields: str | None = None,
        terms: Terms | None = None,
        initial: bool = True,
        cursor: str | None = None,
        from_event: int = 0,
        commit: bool = True,
        old: bool = False,
        track_keys: bool = False,
        resync: float | None = None,
        states: bool = False,
    ) -> Watch:
        """An informer: all present objects as ADDED with `initial` set, SYNC, then the changes.
        Iterate over it, with `for` or `async for`.

        The first five choose objects as in list(). INITIAL False: changes from now on. CURSOR: a
        name for the position to outlive the process; uncommitted events come again. COMMIT: when
        the next event is asked for the one before counts as handled; False: call Watch.commit().
        FROM_EVENT: changes after this event. OLD: changes carry the state before. TRACK_KEYS: after
        a lapse the watch gives the differences, not LAPPED and all objects again, unless an earlier
        process got the objects (a cursor with a lapse). RESYNC: the watch gives every object again
        after this many seconds, 0: never; None: as kinf.yaml says of the feed. STATES: the watch
        also gives the feed's state, at the beginning and when it changes."""
        if not initial:
            if cursor or from_event:
                raise ValueError("initial=False begins with now: not with a cursor or from_event")
            with self.store.snapshot() as snapshot:
                from_event = snapshot.event
        return Watch(
            self.store, self.name,
            filters={"namespace": namespace, "prefix": prefix, "labels": labels, "fields": fields, "terms": terms},
            cursor=cursor, from_event=from_event, commit=commit, old=old, track_keys=track_keys,
            resync=resync, states=states,
        )  # fmt: skip

    def wait_synced(self, timeout: float | None = None) -> None:
        """Waits until it has been listed once; Timeout."""
        self.store.wait_synced(self.name, timeout=timeout)

    def wait_rv(self, resource_version: str, timeout: float | None = None) -> None:
        """Waits until it holds all up to RESOURCE_VERSION: read your writes. Timeout."""
        version = text(resource_version, "a resourceVersion")
        self.store.wait(lambda kinf, ms: lib.kinf_wait_rv(kinf, self._name, version, ms), timeout)


class Store(Single):
    """The machine's store; PATH None: $KINF_STORE, else the default. May be used by any thread, not
    by the child of a fork; the child opens its own. CHECK: every record's checksum is verified
    first."""

    _instead = "open another Store"

    def __init__(self, path: str | os.PathLike[str] | None = None, *, check: bool = False):
        self.children: WeakSet[Any] = WeakSet()  # to be closed before it
        self._forks = forks()
        self._changed = threading.Condition()
        self._users: dict[object, int] = {}  # calls under way, and their threads
        self._handle: int | None = None
        self._open(None if path is None else os.fsencode(path), check)

    def _open(self, path: bytes | None, verify: bool) -> None:
        handle = c_void_p()
        code = lib.kinf_open(path, byref(handle))
        if code == 0 and verify:
            code = lib.kinf_set_check(handle, 1)
        if code < 0:
            problem = error(code, handle.value)
            lib.kinf_close(byref(handle))
            raise problem
        self._handle = handle.value

    @contextmanager
    def in_use(self) -> Iterator[int]:
        """The struct kinf; close() leaves it alone meanwhile."""
        check_fork(self._forks)
        user = object()
        try:
            with self._changed:
                if self._handle is None:
                    raise Ended("the store was closed")
                self._users[user] = threading.get_ident()
                handle = self._handle
            yield handle
        finally:
            if self._forks == forks():
                with self._changed:
                    self._users.pop(user, None)
                    self._changed.notify_all()

    def snapshot(self, at: int = 0) -> Snapshot:
        """Takes a snapshot of the newest state: `with store.snapshot() as snapshot:`. It holds the
        event AT (Event.event), and the event handled by the surrounding `for` over a watch. Raises
        NotReady if there is no index yet, or the index does not have the event."""
        return Snapshot(self, at)

    def feed(self, name: str) -> Feed:
        """A configured feed, by its name or its resource. Nothing is looked up yet."""
        return Feed(self, name)

    def status(self) -> Status:
        """How the store and its feeds are."""
        with self.snapshot() as snapshot:
            return Status(snapshot.event, self.is_copy, tuple(snapshot.status()))

    def who(self, what: str, when: Literal["now", "last", "all"] = "last") -> Sequence[Who]:
        """As Snapshot.who."""
        with self.snapshot() as snapshot:
            return snapshot.who(what, when)

    @property
    def is_copy(self) -> bool:
        """It is read as a copy: no daemon writes it, and this process can't publish its pins there."""
        with self.in_use() as handle:
            return bool(lib.kinf_is_copy(handle))

    def wait(self, step: Any, timeout: float | None) -> None:
        """STEP(kinf, milliseconds) again and again until it is not a timeout."""
        end = None if timeout is None or timeout == math.inf else time.monotonic() + timeout
        while True:
            left = SLICE_MS if end is None else max(0, int((end - time.monotonic()) * 1000))
            with self.in_use() as handle:
                try:
                    check(step(handle, min(left, SLICE_MS)), handle)
                    return
                except Timeout as late:
                    if timeout is not None and end is not None and time.monotonic() >= end:
                        # The library knows of the last step only.
                        sentence = re.sub(r"within \d+ ms", f"within {max(0, timeout):g} s", str(late))
                        raise Timeout(sentence, late.code) from None

    def wait_synced(self, *feeds: str, timeout: float | None = None) -> None:
        """Waits until every one of them has been listed once; Timeout after TIMEOUT seconds. Waits
        for feeds missing in the configuration too."""
        names = (c_char_p * len(feeds))(*(text(feed, "a feed") for feed in feeds))
        self.wait(lambda kinf, ms: lib.kinf_wait_synced(kinf, names, len(feeds), ms), timeout)

    def close(self) -> None:
        """Its snapshots and watches too. Again does nothing."""
        if self._forks != forks():
            return  # the parent's
        for child in list(self.children):
            child.close()
        with self._changed:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            own = threading.get_ident()
            self._changed.wait_for(lambda: all(thread == own for thread in self._users.values()))
        for child in list(self.children):  # made meanwhile
            child.close()
        # Ctrl-C may have kept a call from leaving, or this is a signal's handler within one.
        if not self._users and not self.children:
            lib.kinf_close(byref(c_void_p(handle)))

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()
