# SPDX-License-Identifier: Apache-2.0
"""Followers go on while the processor is stopped, killed or builds the index again; reading handlers wait for it."""

import shutil
import signal

import pytest

from harness import eventually
from harness.follow import changes, replay
from harness.informer import calls, informer, synced, truth
from harness.informer import replay as replay_calls
from harness.objects import pod
from harness.store import whole


@pytest.fixture
def filled(simulator, store):
    simulator.create("pods", 40)
    daemons = store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    return daemons


def watch(store, *args):
    follower = store.follower("watch", "pods", "-o", "json", "--old", *args)
    eventually(lambda: '"type":"SYNC"' in follower.out, what="SYNC")
    return follower


def goes_on(simulator, *followers):
    """The followers get changes, and a whole list with a deletion without an event."""
    simulator.touch("pods", 10)
    simulator.delete_many("pods", 2)
    simulator.put("pods", pod("late"))
    for follower in followers:
        eventually(lambda: replay(follower.lines) == simulator.truth("pods"), what="changes without an index")
    simulator.down()
    simulator.touch("pods", 5)
    simulator.delete_many("pods", 1)
    simulator.compact()
    simulator.up()
    for follower in followers:
        eventually(lambda: replay(follower.lines) == simulator.truth("pods"), what="a list without an index")


def same_as(simulator, process):
    return replay_calls(process.lines) == truth(simulator)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_followers_and_handlers_go_on_without_a_processor(simulator, store, filled, number):
    processor, _ = filled
    follower, handler = watch(store, "--cursor", "c"), synced(informer(store))
    before = store.kinf("get", "pods", "-o", "name", check=True).stdout
    processor.send(number)
    if number == signal.SIGKILL:
        processor.wait()
    goes_on(simulator, follower)
    eventually(lambda: same_as(simulator, handler), what="the handler's calls")
    assert not calls(handler, "lapped") and len(calls(handler, "sync")) == 1
    # A follower killed meanwhile continues with its cursor, from the log.
    follower.stop()
    lines = len(follower.lines)
    simulator.put("pods", pod("later"))
    follower.start()
    eventually(lambda: ("ADDED", "web/later") in changes(follower.lines[lines:]), what="from the cursor")
    # Readers see the index's state.
    assert store.kinf("get", "pods", "-o", "name", check=True).stdout == before
    if number == signal.SIGKILL:
        processor.start()
    else:
        processor.send(signal.SIGCONT)
    store.wait_equal(simulator, "pods")
    eventually(lambda: replay(follower.lines) == simulator.truth("pods"))
    assert follower.stop() == 0 and handler.stop() == 0


@pytest.mark.parametrize("point", ["rebuild.begun", "rebuild.filled", "rebuild.switched"])
def test_followers_go_on_while_the_index_is_built_again(simulator, store, filled, point):
    processor, _ = filled
    follower, handler = watch(store), synced(informer(store))
    processor.kill()
    (store.path / "index" / "CURRENT").unlink()
    shutil.rmtree(store.path / "index" / "gen-1")
    processor.env["KINF_FAIL"] = f"{point}:1:stop"
    processor.start()
    eventually(lambda: processor.stopped, what=f"the processor at {point}")
    simulator.churn("pods", 200, 40)
    seen = len(follower.lines)
    eventually(lambda: len(follower.lines) > seen + 60, what="events during the rebuild")
    simulator.churn("pods", 0)
    goes_on(simulator, follower)
    eventually(lambda: same_as(simulator, handler), what="the handler's calls")
    assert not calls(handler, "lapped") and len(calls(handler, "sync")) == 1
    processor.send(signal.SIGCONT)
    store.wait_equal(simulator, "pods")
    assert store.kinf("verify", "--deep").status == 0
    simulator.touch("pods", 3)
    eventually(lambda: replay(follower.lines) == simulator.truth("pods"))
    eventually(lambda: same_as(simulator, handler))
    assert not calls(handler, "lapped")


def test_followers_go_on_after_the_journal_was_compacted_without_an_index(simulator, store, filled):
    processor, _ = filled
    follower, handler = watch(store), synced(informer(store))
    processor.kill()
    (store.path / "index" / "CURRENT").unlink()
    shutil.rmtree(store.path / "index" / "gen-1")
    journal = store.path / "journal" / "CURRENT"
    before = journal.read_text()
    compact = store.follower("compact", name="compact")
    eventually(lambda: journal.read_text() != before, what="a compacted journal")
    compact.kill()
    simulator.touch("pods", 3)
    processor.start()
    eventually(lambda: replay(follower.lines) == simulator.truth("pods"))
    eventually(lambda: same_as(simulator, handler))
    assert not calls(handler, "lapped") and len(calls(handler, "sync")) == 1
    assert follower.stop() == 0 and handler.stop() == 0


def test_a_handler_that_reads_gets_its_change_or_is_told_to_try_again(simulator, store, filled):
    processor, _ = filled
    handler = synced(informer(store, "--cache"))

    def caches():
        """(resourceVersion of the change, the cache's content) of each add and update."""
        return [(int(line["rv"]), line["cache"]) for line in calls(handler, "add", "update")]

    simulator.churn("pods", 200, 40)
    eventually(lambda: len(caches()) > 100)
    simulator.churn("pods", 0)
    eventually(lambda: same_as(simulator, handler))
    assert all(cache is None or cache != "again" and int(cache) >= rv for rv, cache in caches()), caches()
    processor.kill()
    seen = len(caches())
    simulator.touch("pods", 1)
    eventually(lambda: len(caches()) > seen, what="the call without an index")
    assert caches()[-1][1] == "again"
    processor.start()
    store.wait_equal(simulator, "pods")
    simulator.touch("pods", 1)
    eventually(lambda: len(caches()) > seen + 1)
    assert int(caches()[-1][1]) >= caches()[-1][0]
