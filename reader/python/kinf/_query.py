# SPDX-License-Identifier: Apache-2.0
"""Queries, in the library's form."""

import ctypes
from collections.abc import Iterable, Mapping, Sequence

from . import _library

Labels = str | Mapping[str, str]
Term = str | Sequence[str]
Terms = Mapping[str, Term] | Iterable[tuple[str, Term]]


def text(value: str, what: str) -> bytes:
    """VALUE for the library; its texts end with a NUL."""
    encoded = value.encode()
    if b"\0" in encoded:
        raise ValueError(f"{what} with a NUL in it: {value!r}")
    return encoded


def number(value: int, what: str, bits: int = 64) -> int:
    """VALUE for the library, checked: ctypes would pass it modulo 2**BITS."""
    if not 0 <= value < 2**bits:
        raise ValueError(f"{what} that is not from 0 to 2**{bits} - 1: {value}")
    return value


def _optional(value: str | None, what: str) -> bytes | None:
    return None if value is None else text(value, what)


def _selector(labels: Labels | None) -> bytes | None:
    if isinstance(labels, Mapping):
        labels = ",".join(f"{key}={value}" for key, value in labels.items())
    return _optional(labels, "a label selector")


def _value(term: Term) -> bytes:
    """Parts of a compound value are joined by commas, those in them escaped."""
    if not isinstance(term, str):
        term = ",".join(part.replace("\\", "\\\\").replace(",", "\\,") for part in term)
    return text(term, "an index value")


def _terms(terms: Terms | None) -> list[_library.Term]:
    if terms is None:
        return []
    pairs = terms.items() if isinstance(terms, Mapping) else terms
    return [_library.Term(text(index, "an index name"), _value(value)) for index, value in pairs]


def query(
    feed: str,
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
) -> _library.Query:
    """A struct kinf_query; it keeps its pointers' targets alive."""
    number(limit, "a limit")
    number(at_event, "an event")
    listed = _terms(terms)
    array = (_library.Term * len(listed))(*listed) if listed else None
    return _library.Query(
        size=ctypes.sizeof(_library.Query),
        feed=text(feed, "a feed"),
        namespace_=_optional(namespace, "a namespace"),
        prefix=_optional(prefix, "a prefix"),
        label_selector=_selector(labels),
        field_selector=_optional(fields, "a field selector"),
        terms=array,
        n_terms=len(listed),
        limit=limit,
        continue_token=_optional(continue_token, "a continue token"),
        sort_by=_optional(sort_by, "a field path"),
        at_event=at_event,
    )
