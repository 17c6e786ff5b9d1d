# SPDX-License-Identifier: Apache-2.0
"""kinf-serve's protobuf, as far as tests need it: metadata of objects, lists of them, and events of watches."""

ACCEPT = ("application/vnd.kubernetes.protobuf;as={0};g=meta.k8s.io;v=v1,application/json;as={0};g=meta.k8s.io;v=v1,application/json")
META, METAS = ACCEPT.format("PartialObjectMetadata"), ACCEPT.format("PartialObjectMetadataList")
NAMES = {1: "name", 3: "namespace", 5: "uid", 6: "resourceVersion"}


def fields(data):
    """{number: [values]} of a message; a value is a number or bytes."""
    found, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            size, value = value, data[at:at + value]
            at += size
            assert len(value) == size, "a field is longer than its message"
        else:
            assert tag & 7 == 0, tag
        found.setdefault(tag >> 3, []).append(value)
    return found


def unwrapped(data):
    """The kind of an object, and its fields."""
    assert data[:4] == b"k8s\0"
    unknown = fields(data[4:])
    kind = fields(unknown[1][0])
    return kind[2][0].decode(), fields(unknown[2][0])


def metadata(partial):
    """The texts, labels and annotations of an object's metadata."""
    meta = fields(partial[1][0])
    pairs = lambda number: {pair[1][0].decode(): pair[2][0].decode() for pair in map(fields, meta.get(number, []))}
    return {**{name: meta[number][0].decode() for number, name in NAMES.items()}, "labels": pairs(11), "annotations": pairs(12)}


def listed(data):
    """The metadata of a list, and of its items."""
    kind, found = unwrapped(data)
    assert kind == "PartialObjectMetadataList", kind
    meta = fields(found[1][0])
    return ({"resourceVersion": meta[2][0].decode(), "continue": meta[3][0].decode(), "remainingItemCount": meta.get(4, [0])[0]},
            [metadata(fields(item)) for item in found.get(2, [])])


def events(data):
    """(type, kind, fields) of each event of a watch."""
    while data:
        size = int.from_bytes(data[:4], "big")
        event = fields(data[4:4 + size])
        assert len(data) >= 4 + size, "a frame is cut"
        yield event[1][0].decode(), *unwrapped(fields(event[2][0])[1][0])
        data = data[4 + size:]
