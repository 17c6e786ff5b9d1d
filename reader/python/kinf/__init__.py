# SPDX-License-Identifier: Apache-2.0
"""The machine's Kubernetes informer cache, read from mapped files.

    import kinf

    store = kinf.Store()
    with store.snapshot() as snapshot:
        pods = snapshot.feed("pods")
        for pod in pods.by_index("node", "node-1"):
            print(pod.key, pod.path("status.phase"))

    for event in store.feed("pods").watch(labels="app=shop"):
        print(event.type, event.key)

Objects of a snapshot borrow from the mapped files: only requested values are copied or decoded, and
use after the snapshot's end raises Ended. Objects from a Feed or a Watch stay.

The library is the file $KINF_LIBRARY, the one in the wheel, or libkinf.so.0 where the loader finds
it.
"""

from ._errors import (
    BadQuery,
    Corrupt,
    Ended,
    Error,
    Forked,
    Gone,
    Locked,
    Moved,
    NoFeed,
    NoIndex,
    NoStore,
    NotReady,
    ReadersFull,
    SnapshotExpired,
    Timeout,
    TooLarge,
    UnknownFormat,
    Unsupported,
    Untrusted,
)
from ._library import lib as _lib
from ._object import Object, Part
from ._snapshot import Change, FeedStatus, Index, List, Snapshot, SnapshotFeed, Who
from ._store import Feed, Page, Status, Store
from ._watch import Event, Watch

__version__: str = _lib.kinf_version().decode()
"""Of the library."""

__all__ = [
    "BadQuery", "Change", "Corrupt", "Ended", "Error", "Event", "Feed", "FeedStatus", "Forked", "Gone", "Index",
    "List", "Locked", "Moved", "NoFeed", "NoIndex", "NoStore", "NotReady", "Object", "Page", "Part", "ReadersFull",
    "Snapshot", "SnapshotExpired", "SnapshotFeed", "Status", "Store", "Timeout", "TooLarge", "UnknownFormat",
    "Unsupported", "Untrusted", "Watch", "Who", "__version__",
]  # fmt: skip
