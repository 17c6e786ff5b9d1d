# SPDX-License-Identifier: Apache-2.0
"""Snapshots: a consistent view, and its borrowed objects."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from ctypes import byref, c_char_p, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import _library
from ._callback import call
from ._errors import Ended, Single, check, check_fork, error, forks
from ._library import AGAIN, CHANGE_FN, END, FEED_FN, FOUND, GET_FN, GONE, INDEX_FN, VALUE_FN, WHO_FN, lib
from ._object import Object, copy_of, text_at
from ._query import Labels, Term, Terms, number, query, text

if TYPE_CHECKING:
    from ._store import Store

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class FeedStatus:
    """How a feed is. Several feeds can stand behind one name: a namespace each."""

    id: int
    name: str
    resource: str  # plural[.group]
    kind: str
    namespace: str  # "": all
    state: str  # listing, live, stale, offline, forbidden, gone, error
    resource_version: str
    last_error: str
    objects: int
    event: int  # visible up to this event
    lag: int  # events in the journal not visible yet
    lists: int
    watches: int
    events: int
    retries: int
    bytes: int
    list_done: int  # of the list in progress
    list_total: int  # 0: unknown
    last_contact: float | None  # seconds ago, for the data in the snapshot; None: unknown
    synced: bool  # there is an initial state
    namespaced: bool
    resync: float  # seconds, of watches without their own; 0: none


def feed_status(raw: _library.FeedStatus) -> FeedStatus:
    contact = float(raw.last_contact_seconds)
    texts = ("resource", "kind", "state", "resource_version", "last_error")
    numbers = (
        "objects", "event", "lag", "lists", "watches", "events", "retries", "bytes", "list_done", "list_total",
    )  # fmt: skip
    fields: dict[str, Any] = {name: getattr(raw, name).decode(errors="replace") for name in texts}
    fields |= {name: int(getattr(raw, name)) for name in numbers}
    return FeedStatus(
        id=raw.feed,
        name=raw.full_name.decode(errors="replace"),
        namespace=raw.namespace_.decode(errors="replace"),
        last_contact=None if contact < 0 else contact,
        synced=bool(raw.synced),
        namespaced=bool(raw.namespaced),
        resync=raw.resync_ms / 1000,
        **fields,
    )


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a feed, defined in kinf.yaml."""

    name: str
    paths: tuple[str, ...]  # field paths, several for a compound one; none for `namespace` and `label`
    values: int
    entries: int
    ready: bool  # False: still being filled


@dataclass(frozen=True, slots=True)
class Change:
    """One step in an object's past; `object` stays."""

    type: str  # ADDED, MODIFIED, DELETED (the last state)
    event: int
    time: float  # when it was recorded, seconds since 1970
    object: Object
    final_state_unknown: bool


@dataclass(frozen=True, slots=True)
class Who:
    """A pod behind an address, a container, a uid or a process; `pod` stays."""

    pod: Object
    until: float | None  # when it lost it, seconds since 1970; None: it has it


class Collector:
    """Collects a callback's objects in a list. Nothing is raised through the library: the first
    exception ends the walk and comes out of walk()."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.failed: BaseException | None = None

    def take(self, make: Any, *arguments: Any) -> int:
        try:
            self.items.append(make(*arguments))
            return 0
        except BaseException as exception:
            self.failed = exception
            return 1

    def walk(self, handle: int | None, function: Any, *arguments: Any) -> list[Any]:
        """FUNCTION(*ARGUMENTS) with a callback to take()."""
        code, lost = call(function, *arguments)
        self.failed = self.failed or lost
        if self.failed:
            raise self.failed
        if code == AGAIN:
            raise error(code, handle)
        check(code, handle)
        return self.items


class List(Single, Iterator[Object]):
    """Objects as they are asked for, in the order of their keys, or as sort_by says. They borrow
    from the snapshot; a partly read list may be left to the garbage collector."""

    _instead = "list again"

    def __init__(self, snapshot: "Snapshot", raw: _library.Query):
        self._snapshot, self._generation = snapshot, snapshot.generation
        self._handle: int | None = None
        handle = c_void_p()
        with snapshot.held(self._generation) as address:
            snapshot.outcome(lib.kinf_list(address, byref(raw), byref(handle)))
            self._handle = handle.value or 0
            snapshot.open_lists.add(self._handle)

    def _held(self) -> "_Held":
        return self._snapshot.held(self._generation)

    def __next__(self) -> Object:
        raw = _library.Object()
        with self._held():
            if self._handle is None:
                raise Ended("the list was closed")
            if self._snapshot.outcome(lib.kinf_list_next(self._handle, byref(raw))) == END:
                raise StopIteration
        return Object(raw, self._snapshot, self._generation)

    def _ask(self, function: Any) -> str:
        with self._held():
            if self._handle is None:
                raise Ended("the list was closed")
            answer: bytes | None = function(self._handle)
            return (answer or b"").decode(errors="replace")

    @property
    def continue_token(self) -> str | None:
        """After the end of a list with a limit: the token of the next one; None: that was all."""
        return self._ask(lib.kinf_list_continue) or None

    @property
    def plan(self) -> str:
        """How it is computed, in words."""
        return self._ask(lib.kinf_list_plan)

    @property
    def resource_version(self) -> str:
        """The feed's ("" when several stand behind the name)."""
        return self._ask(lib.kinf_list_resource_version)

    def close(self) -> None:
        """Frees the list. A second call does nothing, nor does a call in a forked child."""
        snapshot = getattr(self, "_snapshot", None)
        if snapshot is None or snapshot.forks != forks():
            return  # a forked child: a thread of the parent may have held the lock, never released here
        if self._handle is not None:
            with snapshot.lock:
                handle, self._handle = self._handle, None
                snapshot.close_list(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


class _Held:
    """`with`: the snapshot is there and nobody else uses it."""

    __slots__ = ("_snapshot", "_generation")

    def __init__(self, snapshot: "Snapshot", generation: int):
        self._snapshot, self._generation = snapshot, generation

    def __enter__(self) -> int:
        check_fork(self._snapshot.forks)
        self._snapshot.lock.acquire()
        try:
            self._snapshot.check(self._generation)
            return self._snapshot.address
        except BaseException:
            self._snapshot.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._snapshot.lock.release()


class SnapshotFeed:
    """A feed as it is in one snapshot. Objects borrow from it."""

    def __init__(self, snapshot: "Snapshot", name: str):
        self.snapshot, self.name = snapshot, name
        self._name = text(name, "a feed")

    def _held(self) -> _Held:
        return self.snapshot.held(self.snapshot.generation)

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """One object, NAME as "namespace/name" where no NAMESPACE is given; None when there is none.
        NotReady: not listed yet, so nobody knows."""
        if namespace is None:
            namespace, _, name = name.rpartition("/")
        raw = _library.Object()
        where, which = text(namespace, "a namespace"), text(name, "a name")
        with self._held() as address:
            found = self.snapshot.outcome(lib.kinf_get(address, self._name, where, which, byref(raw)))
            return Object(raw, self.snapshot, self.snapshot.generation) if found == FOUND else None

    def get_many(self, keys: Iterable[str]) -> Sequence[Object | None]:
        """The objects with these keys ("namespace/name"), in the order of KEYS; None for each
        missing one. In a large store this takes less time than a get() for each. NotReady: as
        get(), for any of the keys."""
        wanted = [text(key, "a key") for key in keys]
        collector = Collector()

        def found(raw: Any) -> Object:
            return Object(_library.Object.from_buffer_copy(raw.contents), self.snapshot, self.snapshot.generation)

        def one(_: Any, number: int, result: int, raw: Any) -> int:
            if result == AGAIN:
                return AGAIN
            return collector.take(lambda: found(raw) if result == FOUND else None)

        with self._held() as address:
            array = (c_char_p * len(wanted))(*wanted)
            return collector.walk(
                self.snapshot.kinf, lib.kinf_get_many, address, self._name, array, len(wanted), GET_FN(one), None
            )

    def __getitem__(self, key: str) -> Object:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> List:
        return self.list()

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
    ) -> List:
        """The objects matching all arguments.

        NAMESPACE, PREFIX (of the name), LABELS and FIELDS (selectors as kubectl's; LABELS may be a
        dictionary), TERMS ({index: value}, the value of a compound index a tuple). LIMIT and
        CONTINUE_TOKEN page; SORT_BY is a field path. AT_EVENT shows the state as of an earlier
        event."""
        return List(
            self.snapshot,
            query(
                self.name, namespace=namespace, prefix=prefix, labels=labels, fields=fields, terms=terms,
                limit=limit, continue_token=continue_token, sort_by=sort_by, at_event=at_event,
            ),
        )  # fmt: skip

    def by_index(self, index: str, value: Term) -> List:
        """The objects with this value of an index."""
        return self.list(terms=[(index, value)])

    def index_values(self, index: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        """(value, how many objects have it), in byte order."""
        collector = Collector()

        def one(_: Any, value: int, size: int, count: int) -> int:
            return collector.take(lambda: (text_at(value, size), count))

        name, begin = text(index, "an index name"), text(prefix, "a prefix")
        with self._held() as address:
            return collector.walk(
                self.snapshot.kinf, lib.kinf_index_values, address, self._name, name, begin, VALUE_FN(one), None
            )

    def indexes(self) -> Sequence[Index]:
        """The indexes, the built-in ones included."""
        collector = Collector()

        def one(_: Any, name: bytes, paths: bytes, values: int, entries: int, ready: int) -> int:
            split = tuple(path for path in paths.decode().split("\n") if path)
            return collector.take(Index, name.decode(), split, values, entries, bool(ready))

        with self._held() as address:
            return collector.walk(self.snapshot.kinf, lib.kinf_index_list, address, self._name, INDEX_FN(one), None)

    def history(self, name: str, namespace: str | None = None) -> Sequence[Change]:
        """The retained past of one object, oldest first; empty if there is none."""
        if namespace is None:
            namespace, _, name = name.rpartition("/")
        collector = Collector()

        def change(raw: _library.Change) -> Change:
            unknown = bool(raw.final_state_unknown)
            return Change(raw.type.decode(), raw.event, raw.time_ns / 1e9, copy_of(raw.object), unknown)

        def one(_: Any, raw: Any) -> int:
            return collector.take(lambda: change(raw.contents))

        where, which = text(namespace, "a namespace"), text(name, "a name")
        with self._held() as address:
            return collector.walk(
                self.snapshot.kinf, lib.kinf_history, address, self._name, where, which, CHANGE_FN(one), None
            )

    def status(self) -> Sequence[FeedStatus]:
        """Of each feed behind the name."""
        return self.snapshot.feed_status(self._name)


# The body of a `for` over a watch handles an event: this is its store and its number. A snapshot
# taken by the body holds the event.
handled: ContextVar[tuple["Store | None", int]] = ContextVar("handled", default=(None, 0))


class Snapshot(Single):
    """The store at one instant. Cheap to take; hold it briefly, since pages freed meanwhile pile up
    behind it. Any thread may use it, one at a time gets through."""

    _instead = "take another one from the Store"

    def __init__(self, store: "Store", at: int = 0):
        self.forks = forks()
        self.lock = threading.RLock()
        self.generation = 0
        self.address = 0  # of the struct kinf_snapshot; 0: closed
        self.open_lists: set[int] = set()
        self._store = store
        handle = c_void_p()
        with store.in_use() as in_use:
            self.kinf: int = in_use
            code = lib.kinf_snapshot_open(self.kinf, byref(handle))
            try:
                self.outcome(code)
            except BaseException:
                lib.kinf_snapshot_close(byref(handle))
                raise
            self.address = handle.value or 0
            store.children.add(self)
        try:
            if self._missing(at) > self.event:
                self.renew(at)
        except BaseException:
            self.close()
            raise

    def _missing(self, at: int) -> int:
        """Returns the number of the event the snapshot must hold; 0: none."""
        number(at, "an event")
        store, event = handled.get()
        return max(at, event) if store is self._store else at

    # ---- for what borrows ----

    def check(self, generation: int) -> None:
        check_fork(self.forks)
        if not self.address:
            raise Ended("the snapshot was closed: what was borrowed from it is gone (copy() keeps an object)")
        if generation != self.generation:
            raise Ended("the snapshot was renewed: what was borrowed from it is gone (copy() keeps an object)")

    def check_read(self) -> None:
        check(lib.kinf_snapshot_check(self.address), self.kinf)

    def held(self, generation: int) -> _Held:
        return _Held(self, generation)

    def outcome(self, code: int) -> int:
        """FOUND, NOT_FOUND or END; all else is raised."""
        if code in (AGAIN, GONE):
            raise error(code, self.kinf)
        return check(code, self.kinf)

    def close_list(self, handle: int) -> None:
        if handle in self.open_lists:
            self.open_lists.discard(handle)
            lib.kinf_list_close(byref(c_void_p(handle)))

    def feed_status(self, feed: bytes | None) -> Sequence[FeedStatus]:
        collector = Collector()

        def one(_: Any, raw: Any) -> int:
            return collector.take(lambda: feed_status(raw.contents))

        with self.held(self.generation) as address:
            return collector.walk(self.kinf, lib.kinf_feed_status, address, feed, FEED_FN(one), None)

    # ---- for users ----

    def feed(self, name: str) -> SnapshotFeed:
        """A configured feed, by its name or its resource."""
        return SnapshotFeed(self, name)

    @property
    def event(self) -> int:
        """The event number it is complete up to."""
        with self.held(self.generation) as address:
            return int(lib.kinf_snapshot_event(address))

    def status(self) -> Sequence[FeedStatus]:
        """Of every feed."""
        return self.feed_status(None)

    def who(self, what: str, when: Literal["now", "last", "all"] = "last") -> Sequence[Who]:
        """The pods behind an IP address, a container's id, a pod's uid, or [NODE/]PID of this
        machine. WHEN: now, the present ones; last, if there are none, the latest within the
        retained history; all, both."""
        collector = Collector()

        def one(_: Any, pod: Any, until_ns: int) -> int:
            return collector.take(lambda: Who(copy_of(pod.contents), until_ns / 1e9 if until_ns else None))

        number = ("now", "last", "all").index(when)
        with self.held(self.generation) as address:
            return collector.walk(self.kinf, lib.kinf_who, address, text(what, "what is asked for"), number,
                                  WHO_FN(one), None)  # fmt: skip

    def _end_lists(self) -> None:
        for handle in list(self.open_lists):
            self.close_list(handle)

    def renew(self, at: int = 0) -> None:
        """Moves the snapshot to the newest state. The new state holds the event AT, and the event
        handled by the surrounding `for` over a watch; the call waits for the index if it does not
        have them yet. The renewal ends open lists, and objects borrowed before raise Ended. Raises
        NotReady if the index still lacks the event after the wait."""
        event = self._missing(at)
        with self.held(self.generation) as address:
            self._end_lists()
            self.generation += 1
            code = lib.kinf_snapshot_renew_at(address, event) if event else GONE
            if code == GONE and not at:  # no event; or of a journal replaced since
                code = lib.kinf_snapshot_renew(address)
            self.outcome(code)

    def close(self) -> None:
        """Gives the pages back, and ends the borrowed objects. A second call does nothing."""
        if self.forks != forks():
            return  # the parent's, and its reader's slot too
        with self.lock:
            if self.address:
                self._end_lists()
                handle, self.address = c_void_p(self.address), 0
                lib.kinf_snapshot_close(byref(handle))
                self._store.children.discard(self)

    def _reset(self) -> None:
        """Gives the pages back; SnapshotExpired if the data read may be wrong."""
        with self.lock:
            if self.address:
                self._end_lists()
                self.generation += 1
                check(lib.kinf_snapshot_reset(self.address), self.kinf)

    def __enter__(self) -> "Snapshot":
        self.check(self.generation)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.forks == forks():
                self._reset()
        finally:
            self.close()

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.close()


