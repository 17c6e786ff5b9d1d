# SPDX-License-Identifier: Apache-2.0
"""Tests compare.py: a difference in one call fails, the allowed differences do not."""

import copy
from types import SimpleNamespace

import pytest
from compare import Difference, compare


def handler(**settings):
    settings = {"selector": "-", "began_at_rest": True, "ended_at_rest": True, "over_a_relist": False,
                "by_serve": False, **settings}
    return SimpleNamespace(name="h", **settings)


def add(key, rv, uid="u", initial=False):
    return {"handler": "h", "call": "add", "key": key, "rv": rv, "uid": uid, "value": rv, "initial": initial}


def update(key, old, rv, uid="u", old_uid="u"):
    return {
        "handler": "h", "call": "update", "key": key, "rv": rv, "uid": uid, "value": rv, "old": old, "oldUid": old_uid,
        "oldValue": old,
    }  # fmt: skip


def delete(key, rv, uid="u", unknown=False):
    return {"handler": "h", "call": "delete", "key": key, "rv": rv, "uid": uid, "value": rv, "unknown": unknown}


SYNC = {"handler": "h", "call": "sync"}
CALLS = [add("a", "1", initial=True), add("b", "2", initial=True), SYNC, update("a", "1", "3"), delete("b", "2"),
         add("b", "5", "v")]  # fmt: skip


def test_the_same_is_the_same():
    compare(handler(), CALLS, CALLS)
    # Of different objects in another order, and with a resync.
    compare(handler(), CALLS, [CALLS[1], CALLS[0], *CALLS[2:], update("a", "3", "3")])


def test_of_a_delete_by_kinf_serve_the_version_does_not_count_but_the_object_does():
    other = copy.deepcopy(CALLS)
    other[4].update(rv="9", unknown=True)
    with pytest.raises(Difference):
        compare(handler(), CALLS, other)
    compare(handler(by_serve=True), CALLS, other)
    for values in ({"uid": "w"}, {"value": "x"}):
        with pytest.raises(Difference):
            compare(handler(by_serve=True), CALLS, changed(4, **values))


def changed(index, **values):
    calls = copy.deepcopy(CALLS)
    calls[index].update(values)
    return calls


@pytest.mark.parametrize("calls", [
    *(CALLS[:i] + CALLS[i + 1 :] for i in range(len(CALLS))),  # one is missing
    *(CALLS[:i] + [CALLS[i]] + CALLS[i:] for i in range(len(CALLS))),  # one comes twice
    changed(0, initial=False), changed(0, rv="0"), changed(0, uid="w"), changed(0, value="x"), changed(3, old="0"),
    changed(3, oldValue="0"), changed(3, rv="4"), changed(4, unknown=True), changed(4, uid="w"), changed(4, rv="4"), changed(5, initial=True),
    [*CALLS[:3], CALLS[5], CALLS[4]], [CALLS[0], SYNC, CALLS[1], *CALLS[3:]],
    [*CALLS, {"handler": "h", "call": "lapped"}],
])  # fmt: skip
def test_each_difference_is_seen(calls):
    for pair in ((CALLS, calls), (calls, CALLS)):
        with pytest.raises(Difference):
            compare(handler(), *pair)


def test_another_identity_after_a_relist_is_two_calls_or_one():
    two = [add("a", "1", initial=True), SYNC, delete("a", "1", unknown=True), add("a", "7", "v")]
    one = [add("a", "1", initial=True), SYNC, update("a", "1", "7", "v", "u")]
    compare(handler(over_a_relist=True), two, one)


def test_a_beginning_among_changes_may_be_a_later_one():
    early = [add("a", "1", initial=True), SYNC, update("a", "1", "3"), update("a", "3", "4")]
    late = [add("a", "3", initial=True), SYNC, update("a", "3", "4")]
    gone = [add("a", "1", initial=True), SYNC, delete("a", "1")]
    compare(handler(began_at_rest=False), early, late)
    compare(handler(began_at_rest=False), [SYNC], gone)
    for pair in ((early, late), ([SYNC], gone)):
        with pytest.raises(Difference):
            compare(handler(), *pair)
    with pytest.raises(Difference):
        compare(handler(began_at_rest=False), early, [add("a", "4", initial=True), SYNC, update("a", "4", "5")])


def test_a_removal_among_changes_may_be_an_earlier_one():
    compare(handler(ended_at_rest=False), CALLS, CALLS[:4])
    with pytest.raises(Difference):
        compare(handler(ended_at_rest=False), CALLS, changed(3, rv="4")[:4])
