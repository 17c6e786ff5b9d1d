# SPDX-License-Identifier: Apache-2.0
"""A model of progress on demand (reflector/feed/progress.h), every state of which is visited: whatever the order in which the
server, the feed's watch, the second watch, commits and failures take their steps, the journal has every change up to the
feed's resourceVersion. Left out one at a time, each condition of the rule is needed."""

from collections import namedtuple
from itertools import product

import pytest

LAST = 4  # resourceVersions
QUEUE = 2  # messages on their way on a stream

# at: what the server has sent; queue: what has not arrived: (kind, resourceVersion).
Stream = namedtuple("Stream", "at queue start clean")
# cache: the server's; have: the feed's resourceVersion, stored: its changes; committed: both, as after a failed batch or a kill.
State = namedtuple("State", "cache have stored committed watch second")


def send(stream, cache, changes):
    """What the server may do next: bring the stream a change, or say how far it is."""
    if stream is None or len(stream.queue) == QUEUE:
        return
    following = next((rv for rv in range(stream.at + 1, cache + 1) if rv in changes), None)
    if following:
        yield stream._replace(at=following, queue=stream.queue + (("change", following),))
    for rv in range(stream.at + 1, cache + 1):
        if following is None or rv < following:
            yield stream._replace(at=rv, queue=stream.queue + (("bookmark", rv),))


def begin(rv):
    return Stream(rv, (), rv, True)


def take(state, kind, rv):
    stored = state.stored | {rv} if kind == "change" else state.stored
    return state._replace(have=rv, stored=stored)


def after_bookmark(state, rv, rule):
    """The second watch has brought a bookmark."""
    second = state.second
    proved = (second.clean or "first" not in rule) and (state.have == second.start or "same" not in rule)
    state = state._replace(second=None)
    return state._replace(have=rv) if proved and rv > state.have else state


def steps(state, changes, rule):
    if state.cache < LAST:
        yield state._replace(cache=state.cache + 1)
    for watch in send(state.watch, state.cache, changes):
        yield state._replace(watch=watch)
    seen = changes if "whole" in rule else frozenset()  # a second watch of something else shows no change
    for second in send(state.second, state.cache, seen):
        yield state._replace(second=second)
    if state.watch.queue:
        (kind, rv), *rest = state.watch.queue
        yield take(state, kind, rv)._replace(watch=state.watch._replace(queue=tuple(rest)))
    if state.second is None:
        yield state._replace(second=begin(state.have))
    elif state.second.queue:
        (kind, rv), *rest = state.second.queue
        if kind == "bookmark":
            yield after_bookmark(state, rv, rule)
        else:
            yield state._replace(second=state.second._replace(queue=tuple(rest), clean=False))
    yield state._replace(committed=(state.have, state.stored))
    have, stored = state.committed
    yield state._replace(have=have, stored=stored, watch=begin(have), second=None)  # killed
    yield state._replace(have=have, stored=stored, watch=begin(have))  # the batch failed
    yield state._replace(watch=begin(state.have))  # the watch broke


def lost(changes, rule):
    """Returns a state in which a change is missing, or None, and the number of states."""
    first = State(0, 0, frozenset(), (0, frozenset()), begin(0), None)
    seen, todo = {first}, [first]
    while todo:
        state = todo.pop()
        if any(rv <= state.have and rv not in state.stored for rv in changes):
            return state, len(seen)
        for following in steps(state, changes, rule):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return None, len(seen)


def all_changes():
    for flags in product((False, True), repeat=LAST):
        yield frozenset(rv for rv, is_change in enumerate(flags, 1) if is_change)


def test_no_change_is_passed_over():
    total = 0
    for changes in all_changes():
        state, visited = lost(changes, {"first", "same", "whole"})
        assert state is None, state
        total += visited
    assert total > 10000


@pytest.mark.parametrize("rule", [{"same", "whole"}, {"first", "whole"}, {"first", "same"}],
                         ids=["a bookmark after a change", "another position", "a watch of something else"])
def test_each_condition_is_needed(rule):
    assert any(lost(changes, rule)[0] for changes in all_changes())
