# SPDX-License-Identifier: Apache-2.0
"""libkinf as ctypes sees it: structures and prototypes of kinf.h, and nothing else."""

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_size_t
from ctypes import c_uint8, c_uint32, c_uint64, c_void_p

SONAME = "libkinf.so.0"

FOUND, NOT_FOUND, END, LAPPED, GONE, AGAIN = range(6)
SNAPSHOT_EXPIRED = -1005
TRACK_KEYS, COMMIT_BY_HAND, OWN_DEFAULT_RESYNC = 1, 2, 4


class Object(Structure):
    """struct kinf_object. Texts are addresses: they do not end with a NUL."""

    _fields_ = [
        ("key", c_void_p),
        ("uid", c_void_p),
        ("resource_version", c_void_p),
        ("body", c_void_p),
        ("key_size", c_uint32),
        ("uid_size", c_uint32),
        ("resource_version_size", c_uint32),
        ("body_size", c_uint32),
        ("event", c_uint64),
        ("feed", c_uint32),
        ("reserved", c_uint32),
    ]


class Term(Structure):
    _fields_ = [("index", c_char_p), ("value", c_char_p)]


class Query(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("feed", c_char_p),
        ("namespace_", c_char_p),
        ("prefix", c_char_p),
        ("label_selector", c_char_p),
        ("field_selector", c_char_p),
        ("terms", POINTER(Term)),
        ("n_terms", c_uint64),
        ("limit", c_uint64),
        ("continue_token", c_char_p),
        ("sort_by", c_char_p),
        ("at_event", c_uint64),
    ]


class FeedStatus(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("feed", c_uint32),
        ("name", c_char * 128),
        ("resource", c_char * 256),
        ("kind", c_char * 128),
        ("namespace_", c_char * 64),
        ("state", c_char * 16),
        ("resource_version", c_char * 64),
        ("last_error", c_char * 240),
        ("objects", c_uint64),
        ("event", c_uint64),
        ("lag", c_uint64),
        ("lists", c_uint64),
        ("watches", c_uint64),
        ("events", c_uint64),
        ("list_done", c_uint64),
        ("list_total", c_uint64),
        ("last_contact_seconds", c_double),
        ("synced", c_uint8),
        ("namespaced", c_uint8),
        ("reserved", c_uint8 * 6),
        ("retries", c_uint64),
        ("bytes", c_uint64),
        ("resync_ms", c_uint64),
        ("full_name", c_char * 320),
    ]


class Change(Structure):
    _fields_ = [
        ("type", c_char_p),
        ("event", c_uint64),
        ("time_ns", c_uint64),
        ("object", Object),
        ("final_state_unknown", c_int),
        ("reserved", c_int),
    ]


GET_FN = CFUNCTYPE(c_int, c_void_p, c_size_t, c_int, POINTER(Object))
PART_FN = CFUNCTYPE(c_int, c_void_p, POINTER(Object))
VALUE_FN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_uint64)
INDEX_FN = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p, c_uint64, c_uint64, c_int)
FEED_FN = CFUNCTYPE(c_int, c_void_p, POINTER(FeedStatus))
CHANGE_FN = CFUNCTYPE(c_int, c_void_p, POINTER(Change))
WHO_FN = CFUNCTYPE(c_int, c_void_p, POINTER(Object), c_uint64)
STATE_FN = CFUNCTYPE(None, c_void_p, POINTER(FeedStatus))
ADD_FN = CFUNCTYPE(None, c_void_p, POINTER(Object), c_int)
UPDATE_FN = CFUNCTYPE(None, c_void_p, POINTER(Object), POINTER(Object))
SIGNAL_FN = CFUNCTYPE(None, c_void_p)
ERROR_FN = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class InformerOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("cursor", c_char_p),
        ("from_", c_uint64),
        ("resync_ms", c_uint64),
        ("resync_jitter_percent", c_uint32),
        ("reserved", c_uint32),
        ("on_state", STATE_FN),
        ("arg", c_void_p),
    ]


class HandlerOptions(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("arg", c_void_p),
        ("on_add", ADD_FN),
        ("on_update", UPDATE_FN),
        ("on_delete", ADD_FN),
        ("on_sync", SIGNAL_FN),
        ("on_lapped", SIGNAL_FN),
        ("on_error", ERROR_FN),
        ("filter", POINTER(Query)),
        ("resync_ms", c_uint64),
    ]


# Name, result, arguments. Handles are addresses.
_HANDLE, _RET = c_void_p, POINTER(c_void_p)
_PROTOTYPES = [
    ("open", c_int, [c_char_p, _RET]),
    ("close", None, [_RET]),
    ("error", c_char_p, [_HANDLE]),
    ("strerror", c_char_p, [c_int]),
    ("version", c_char_p, []),
    ("set_check", c_int, [_HANDLE, c_int]),
    ("is_copy", c_int, [_HANDLE]),
    ("snapshot_open", c_int, [_HANDLE, _RET]),
    ("snapshot_renew", c_int, [_HANDLE]),
    ("snapshot_renew_at", c_int, [_HANDLE, c_uint64]),
    ("handled_event", c_uint64, []),
    ("snapshot_reset", c_int, [_HANDLE]),
    ("snapshot_close", None, [_RET]),
    ("snapshot_check", c_int, [_HANDLE]),
    ("snapshot_event", c_uint64, [_HANDLE]),
    ("get", c_int, [_HANDLE, c_char_p, c_char_p, c_char_p, POINTER(Object)]),
    ("get_many", c_int, [_HANDLE, c_char_p, POINTER(c_char_p), c_size_t, GET_FN, c_void_p]),
    ("object_part", c_int, [POINTER(Object), c_char_p, POINTER(Object)]),
    ("object_each", c_int, [POINTER(Object), c_char_p, PART_FN, c_void_p]),
    ("object_json", c_int, [POINTER(Object), c_int, _RET, POINTER(c_size_t)]),
    ("list", c_int, [_HANDLE, POINTER(Query), _RET]),
    ("list_next", c_int, [_HANDLE, POINTER(Object)]),
    ("list_continue", c_char_p, [_HANDLE]),
    ("list_plan", c_char_p, [_HANDLE]),
    ("list_resource_version", c_char_p, [_HANDLE]),
    ("list_close", None, [_RET]),
    ("index_values", c_int, [_HANDLE, c_char_p, c_char_p, c_char_p, VALUE_FN, c_void_p]),
    ("index_list", c_int, [_HANDLE, c_char_p, INDEX_FN, c_void_p]),
    ("feed_status", c_int, [_HANDLE, c_char_p, FEED_FN, c_void_p]),
    ("wait_synced", c_int, [_HANDLE, POINTER(c_char_p), c_size_t, c_int]),
    ("wait_rv", c_int, [_HANDLE, c_char_p, c_char_p, c_int]),
    ("history", c_int, [_HANDLE, c_char_p, c_char_p, c_char_p, CHANGE_FN, c_void_p]),
    ("who", c_int, [_HANDLE, c_char_p, c_int, WHO_FN, c_void_p]),
    ("informer_new", c_int, [_HANDLE, c_char_p, POINTER(InformerOptions), _RET]),
    ("informer_free", None, [_RET]),
    ("informer_add_handler", c_int, [_HANDLE, POINTER(HandlerOptions), _RET]),
    ("informer_fd", c_int, [_HANDLE]),
    ("informer_dispatch", c_int, [_HANDLE, c_int]),
    ("informer_stop", None, [_HANDLE]),
    ("informer_commit", c_int, [_HANDLE]),
]


def _find() -> str:
    """The library $KINF_LIBRARY, the one in the wheel, or the loader's."""
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    return os.environ.get("KINF_LIBRARY") or (bundled if os.path.exists(bundled) else SONAME)


def _load() -> ctypes.CDLL:
    name = _find()
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"libkinf can't be loaded ({error}): install it (make install, ldconfig) or name the file in $KINF_LIBRARY"
        ) from None
    for function, result, arguments in _PROTOTYPES:
        try:
            prototype = getattr(library, f"kinf_{function}")
        except AttributeError:
            raise ImportError(f"{name} has no kinf_{function}: it is older than this module") from None
        prototype.restype, prototype.argtypes = result, arguments
    return library


lib = _load()

_libc_free = ctypes.CDLL(None).free
_libc_free.restype, _libc_free.argtypes = None, [c_void_p]


def take(address: c_void_p, size: int) -> bytes:
    """The SIZE bytes at ADDRESS. The library allocated them; they are freed."""
    try:
        return ctypes.string_at(address, size)
    finally:
        _libc_free(address)
