# SPDX-License-Identifier: Apache-2.0
"""Objects for scenarios' clusters."""


def pod(name, namespace="web", app="front", node="n1", phase="Running", images=("a:1",), **metadata):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}, **metadata},
        "spec": {"nodeName": node, "containers": [{"image": image} for image in images]},
        "status": {"phase": phase},
    }


def key_of(obj):
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


# Values easily changed by a careless JSON parser or writer: (key in spec, spelling by the server).
ODD_VALUES = [
    ("float", "1.0"),
    ("exponent", "1E5"),
    ("small", "1e-7"),
    ("minus-zero", "-0.0"),
    ("int-minus-zero", "-0"),
    ("int64-max", "9223372036854775807"),
    ("int64-min", "-9223372036854775808"),
    ("uint64-max", "18446744073709551615"),
    ("beyond", "12345678901234567890123"),
    ("digits", "0.12345678901234567890"),
    ("double", "0.1"),
    ("huge", "1e400"),
    ("null", "null"),
    ("true", "true"),
    ("empty-map", "{}"),
    ("empty-list", "[]"),
    ("empty", '""'),
    ("nested", '[[],{"a":[{}]},[null,[1.0]]]'),
    ("unicode", '"grün 日本 \\ud83d\\ude00"'),
    ("escapes", '"\\u0000\\b\\f\\n\\r\\t\\"\\\\\\/\\u2028\\u003c"'),
    ("dots.and/slashes", '{"a.b/c":1,"a":{"b/c":2},"":3,"[0]":4,"*":5}'),
    ("order", '{"z":1,"a":2,"m":3,"B":4}'),
]


def odd_widget(name="odd", namespace="web", values=None):
    """JSON text of a custom resource with VALUES (default ODD_VALUES) in its spec, in their order."""
    spec = ",".join(f'"{key}":{text}' for key, text in (ODD_VALUES if values is None else values))
    return (
        '{"apiVersion":"example.com/v1","kind":"Widget","metadata":'
        f'{{"name":"{name}","namespace":"{namespace}"}},"spec":{{{spec}}}}}'
    )
