# SPDX-License-Identifier: Apache-2.0
"""Runs tests/programs/informer.c, and checks its handler calls."""

from harness import eventually
from harness.process import program


def informer(store, *args, name="informer"):
    """Starts an informer on pods."""
    return store.process(name, [program("programs/informer"), "pods", *args]).start()


def calls(process, *kinds):
    return [line for line in process.lines if line["call"] in kinds]


def synced(process):
    eventually(lambda: calls(process, "sync"), what="sync")
    return process


def replay(lines):
    """Returns {key: resourceVersion} after LINES. Asserts that each call fits the earlier ones."""
    state = {}
    for line in lines:
        key, call = line.get("key"), line["call"]
        if call == "lapped":
            state = {}
        elif call == "add":
            assert key not in state, f"{key} added twice"
            state[key] = line["rv"]
        elif call == "update":
            assert line["old"] in (state[key], None), f"{key}: another old state: {line}, not {state[key]}"
            state[key] = line["rv"]
        elif call == "delete":
            assert key in state, f"{key} deleted twice"
            del state[key]
    return state


def truth(simulator):
    """The {key: resourceVersion} expected of replay()."""
    return {key: o["metadata"]["resourceVersion"] for key, o in simulator.truth("pods").items()}
