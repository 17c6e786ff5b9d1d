# SPDX-License-Identifier: Apache-2.0
"""Objects: mappings over the stored bytes, decoding requested values only."""

import ctypes
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from ctypes import byref, c_size_t, c_ubyte, c_void_p
from typing import Any, Protocol, TypeVar

from . import _library
from ._callback import call
from ._errors import Error, Single, check
from ._library import FOUND, PART_FN, lib, take
from ._query import number

Result = TypeVar("Result")


class Lender(Protocol):
    """The lender of an object's bytes: while `lock` is held and check() passes they are there."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    def check(self, generation: int) -> None:
        """Raises if the bytes lent as GENERATION have been taken back."""

    def check_read(self) -> None:
        """Raises if the data read until now may be wrong."""


class _Own:
    """Of objects with bytes of their own."""

    lock: AbstractContextManager[Any] = nullcontext()

    def check(self, generation: int) -> None:
        pass

    def check_read(self) -> None:
        pass


_own = _Own()


def text_at(address: int | None, size: int) -> str:
    return ctypes.string_at(address, size).decode(errors="replace") if address else ""


def _json(raw: _library.Object, indent: int) -> str:
    text, size = c_void_p(), c_size_t()
    check(lib.kinf_object_json(byref(raw), number(indent, "an indent", 31), byref(text), byref(size)))
    return take(text, size.value).decode(errors="surrogatepass")


_MAP, _SHORT_TEXT, _OTHER = range(3)


def _kind(raw: _library.Object) -> int:
    """The type of a part, by the first byte of its msgpack."""
    first: int = c_ubyte.from_address(raw.body).value
    if first & 0xE0 == 0xA0:
        return _SHORT_TEXT
    return _MAP if first & 0xF0 == 0x80 or first in (0xDE, 0xDF) else _OTHER


def _path(path: str) -> bytes:
    encoded = path.encode()
    if b"\0" in encoded:
        raise ValueError("a field path with a NUL in it")
    return encoded


def _member(key: str) -> str:
    """The path of a member of any name."""
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


_MISSING = object()


class Part(Single, Mapping[str, Any]):
    """A map somewhere in an object. Its members are looked up where they lie: maps among them are
    Parts again, all else has json.loads's types. Walking over the keys decodes all of it."""

    __slots__ = ("_raw", "_lender", "_generation", "_keep")
    _instead = "take its to_dict() or json()"

    def __copy__(self) -> "Part":
        return self  # read-only

    def __init__(self, raw: _library.Object, lender: Lender, generation: int, keep: Any = None):
        self._raw, self._lender, self._generation, self._keep = raw, lender, generation, keep

    def _read(self, reader: Callable[..., Result], *arguments: Any) -> Result:
        """READER(raw, ...) with the bytes held; its result borrows nothing."""
        lender = self._lender
        lender.check(self._generation)  # first: in a forked child no thread may be left to release the lock
        with lender.lock:
            lender.check(self._generation)
            try:
                return reader(self._raw, *arguments)
            finally:
                lender.check_read()

    def _decode(self, raw: _library.Object) -> Any:
        kind = _kind(raw)
        if kind == _SHORT_TEXT:  # as it lies there: the way through JSON takes three times as long
            return ctypes.string_at(raw.body + 1, raw.body_size - 1).decode(errors="surrogatepass")
        if kind == _MAP:
            return Part(raw, self._lender, self._generation, self._keep)
        return json.loads(_json(raw, 0))

    def _find(self, raw: _library.Object, path: bytes) -> Any:
        part = _library.Object()
        if not raw.body or check(lib.kinf_object_part(byref(raw), path, byref(part))) != FOUND:
            return _MISSING
        return self._decode(part)

    def _find_all(self, raw: _library.Object, path: bytes) -> list[Any]:
        found: list[Any] = []
        failed: list[BaseException] = []

        def one(_: Any, part: Any) -> int:
            try:
                raw = _library.Object.from_buffer_copy(part.contents)
                found.append(self._decode(raw))
                return 0
            except BaseException as exception:  # nothing may leave a callback
                failed.append(exception)
                return 1

        if not raw.body:
            return found
        result, lost = call(lib.kinf_object_each, byref(raw), path, PART_FN(one), None)
        if failed:
            raise failed[0]
        if lost:
            raise lost
        check(result)
        return found

    def path(self, path: str, default: Any = None) -> Any:
        """The first value at a field path: "spec.nodeName", "metadata.labels['a/b']",
        "spec.containers[0].image"; DEFAULT where there is none. BadQuery: it is no path."""
        found = self._read(self._find, _path(path))
        return default if found is _MISSING else found

    def values_at(self, path: str) -> list[Any]:
        """Every value at a path with [*] in it: "spec.containers[*].image"."""
        return self._read(self._find_all, _path(path))

    def json(self, indent: int = 0) -> str:
        """As JSON text, numbers and the order of keys as the server sent them; INDENT 0: one line."""
        return self._read(lambda raw: _json(raw, indent) if raw.body else "{}")

    def to_dict(self) -> dict[str, Any]:
        """All of it, decoded; it outlives the snapshot. dict(part) decodes one level only."""
        decoded: dict[str, Any] = json.loads(self.json())
        return decoded

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise KeyError(key)
        if "\0" in key:
            return self.to_dict()[key]
        found = self._read(self._find, _member(key).encode())
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Part):
            other = other.to_dict()
        if not isinstance(other, dict):
            return NotImplemented
        return self.to_dict() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        try:
            return f"<kinf.{type(self).__name__} {self._describe()}>"
        except Error as problem:
            return f"<kinf.{type(self).__name__}: {problem}>"

    def _describe(self) -> str:
        return self.json()


class Object(Part):
    """One version of a Kubernetes object, read-only. It borrows from its snapshot: use after its
    renewal or close raises Ended. copy() makes a lasting one.

    An object found missing may have nothing but its key (Event.final_state_unknown)."""

    __slots__ = ()

    def _text(self, name: str) -> str:
        return self._read(lambda raw: text_at(getattr(raw, name), getattr(raw, f"{name}_size")))

    @property
    def key(self) -> str:
        """ "namespace/name", or "name" """
        return self._text("key")

    @property
    def namespace(self) -> str:
        """"" without one"""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def uid(self) -> str:
        return self._text("uid")

    @property
    def resource_version(self) -> str:
        return self._text("resource_version")

    @property
    def event(self) -> int:
        """Number of this version's event."""
        return int(self._raw.event)

    @property
    def feed_id(self) -> int:
        """FeedStatus.id of its feed."""
        return int(self._raw.feed)

    def copy(self) -> "Object":
        """One with bytes of its own."""
        return self._read(copy_of)

    def _describe(self) -> str:
        return f"{self.key} resourceVersion {self.resource_version}"


def copy_of(raw: _library.Object) -> Object:
    """An Object with its own bytes, of a borrowed structure."""
    names = ("key", "uid", "resource_version", "body")
    pieces = [
        ctypes.string_at(getattr(raw, name), getattr(raw, f"{name}_size")) if getattr(raw, name) else b""
        for name in names
    ]
    keep = ctypes.create_string_buffer(b"".join(pieces))
    copy, address = _library.Object.from_buffer_copy(raw), ctypes.addressof(keep)
    for name, piece in zip(names, pieces):
        setattr(copy, name, address if piece else None)
        address += len(piece)
    return Object(copy, _own, 0, keep)
