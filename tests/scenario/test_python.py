# SPDX-License-Identifier: Apache-2.0
"""The kinf module for Python, installed by pip, with real daemons. Functions decorated with @guest
run in another interpreter with the library under test loaded."""

import json
import os
import signal
import sys
import threading
import time

import pytest

from harness import PATIENCE, eventually
from harness.objects import ODD_VALUES, odd_widget, pod
from harness.process import run_command
from harness.python import Interpreter, environment, install
from harness.store import whole

PODS = 60
LIMIT = 20 * PATIENCE


@pytest.fixture(scope="module")
def site(shared):
    """The directory where pip has installed the module."""
    return install(shared.directory)


@pytest.fixture(scope="module")
def world(shared):
    """(simulator, store): running daemons, pods, and a widget of odd values. Tests creating objects
    use their own namespaces."""
    simulator = shared.simulator()
    store = shared.store(simulator=simulator)
    simulator.create("pods", PODS, namespaces=3)
    simulator.put("widgets.example.com", odd_widget())
    indexes = {"node": "spec.nodeName", "node-phase": ["spec.nodeName", "status.phase"]}
    store.start_synced(whole("pods", indexes=indexes), whole("widgets.example.com"))
    store.wait_synced("widgets.example.com")
    return simulator, store


@pytest.fixture(scope="module")
def interpreters(world, site):
    """interpreters(): a running interpreter; a new one if the last one has ended."""
    started = []

    def running():
        if not started or not started[-1].running:
            started.append(Interpreter(site, world[1], f"python-{len(started)}").start())
        return started[-1]

    return running


def guest(body):
    """Makes a test of BODY(store, simulator) in another interpreter with the module."""

    def test(world, interpreters):
        interpreters().run(body, world[0])

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    body.__name__ = f"guest_{body.__name__}"  # its name in the other interpreter
    setattr(sys.modules[__name__], body.__name__, body)
    return test


def raises(kind, function, *arguments, **named):
    """Asserts that the call raises KIND; returns the exception's text."""
    try:
        result = function(*arguments, **named)
    except kind as problem:
        return str(problem)
    raise AssertionError(f"{kind.__name__} was not raised: {result!r}")


# ---- installed -------------------------------------------------------------------------------------


def test_pip_installs_a_typed_module_of_the_librarys_version(site, world):
    names = {path.name for path in (site / "kinf").iterdir()}
    assert "py.typed" in names and "__init__.py" in names
    # pip has the library's version.
    script = "import kinf, importlib.metadata as m; print(kinf.__version__ == m.version('kinf'))"
    result = run_command([sys.executable, "-c", script], {**world[1].env, **environment(site)})
    assert result.stdout == "True\n", result


def test_without_the_library_the_import_says_what_to_do(site, world):
    env = {**world[1].env, **environment(site), "KINF_LIBRARY": "/nowhere/libkinf.so.0"}
    result = run_command([sys.executable, "-c", "import kinf"], env)
    assert result.status == 1 and "make install" in result.stderr and "$KINF_LIBRARY" in result.stderr, result


# ---- reading ---------------------------------------------------------------------------------------


@guest
def test_objects_equal_those_of_the_server(store, simulator):
    truth = simulator.truth("pods")
    with store.snapshot() as snapshot:
        pods = snapshot.feed("pods")
        listed = list(pods)
        assert [one.key for one in listed] == list(truth)
        assert all(one == truth[one.key] for one in listed)
        for one in listed[:3]:
            expected = truth[one.key]
            assert one.namespace == expected["metadata"]["namespace"] and one.name == expected["metadata"]["name"]
            assert one.uid == expected["metadata"]["uid"]
            assert one.resource_version == expected["metadata"]["resourceVersion"]
            assert json.loads(one.json(indent=2)) == expected and dict(one) == expected
            assert pods[one.key] == pods.get(one.name, one.namespace) == one
        assert pods.get("nowhere/nothing") is None and "nowhere/nothing" not in pods and listed[0].key in pods
        raises(KeyError, lambda: pods["nowhere/nothing"])


@guest
def test_many_objects_are_got_in_one_call(store, simulator):
    import kinf

    truth = simulator.truth("pods")
    keys = [*reversed(truth), "nowhere/nothing", next(iter(truth)), "", "a/b/c"]  # more than the library takes at once
    assert len(truth) > 32
    with store.snapshot() as snapshot:
        pods = snapshot.feed("pods")
        found = pods.get_many(key for key in keys)
        assert [one and one.key for one in found] == [key if key in truth else None for key in keys]
        assert all(one == truth[one.key] for one in found if one) and found[0]["spec"] == truth[keys[0]]["spec"]
        assert pods.get_many([]) == []
        raises(kinf.NoFeed, snapshot.feed("nothing").get_many, ["a/b"])
    raises(kinf.Ended, lambda: found[0]["spec"])
    raises(kinf.Ended, pods.get_many, keys)
    copies = store.feed("pods").get_many(keys[:3])
    assert [one.to_dict() for one in copies] == [truth[key] for key in keys[:3]]


@guest
def test_members_are_read_by_key_and_by_path(store, simulator):
    with store.snapshot() as snapshot:
        one = snapshot.feed("pods")["ns-1/pod-1"]
        truth = simulator.truth("pods")[one.key]
        assert one["spec"]["nodeName"] == one.path("spec.nodeName") == truth["spec"]["nodeName"]
        label = next(iter(truth["metadata"]["labels"]))
        assert one["metadata"]["labels"][label] == one.path(f"metadata.labels['{label}']")
        assert one["spec"]["containers"] == truth["spec"]["containers"]
        assert one.path("spec.containers[0].image") == truth["spec"]["containers"][0]["image"]
        images = [container["image"] for container in truth["spec"]["containers"]]
        assert one.values_at("spec.containers[*].image") == images
        assert one.values_at("spec.containers[*].nothing") == []
        assert one.path("spec.nothing") is None and one.path("spec.nothing", 7) == 7
        assert "nothing" not in one["spec"] and len(one["metadata"]["labels"]) == len(truth["metadata"]["labels"])
        assert "expected a key" in raises(ValueError, one.path, "spec.x.")
        for key in ("nothing", "a\0b", 7):
            raises(KeyError, lambda: one[key])


@guest
def test_odd_names_and_numbers_are_exact(store, simulator):
    with store.snapshot() as snapshot:
        odd = snapshot.feed("widgets.example.com")["web/odd"]
        for key, text in ODD_VALUES:
            assert odd["spec"][key] == json.loads(text), key
        odd_keys = odd["spec"]["dots.and/slashes"]
        assert [odd_keys[key] for key in odd_keys] == [1, {"b/c": 2}, 3, 4, 5]
        # json() keeps the server's spelling of numbers.
        assert '"exponent":1E5' in odd.json() and '"beyond":12345678901234567890123' in odd.json()


@guest
def test_lists_are_filtered_sorted_and_paged(store, simulator):
    truth = simulator.truth("pods")
    with store.snapshot() as snapshot:
        pods = snapshot.feed("pods")

        def keys(**chosen):
            return [one.key for one in pods.list(**chosen)]

        def where(holds):
            return [key for key, one in truth.items() if holds(one)]

        node = truth["ns-1/pod-1"]["spec"]["nodeName"]
        phase = truth["ns-1/pod-1"]["status"]["phase"]
        on_node = where(lambda one: one["spec"].get("nodeName") == node)
        assert keys(namespace="ns-1") == where(lambda one: one["metadata"]["namespace"] == "ns-1")
        assert keys(prefix="pod-1") == where(lambda one: one["metadata"]["name"].startswith("pod-1"))
        assert keys(fields=f"spec.nodeName={node}") == on_node
        assert [one.key for one in pods.by_index("node", node)] == keys(terms={"node": node}) == on_node
        assert [one.key for one in pods.by_index("node-phase", (node, phase))] == keys(
            terms=[("node", node)], fields=f"status.phase={phase}"
        )
        for labels in ("tier in (front)", {"tier": "front"}):
            assert keys(labels=labels) == where(lambda one: one["metadata"]["labels"].get("tier") == "front")
        values = dict(pods.index_values("node"))
        assert values[node] == len(on_node) and sum(values.values()) == len(where(lambda one: "nodeName" in one["spec"]))
        assert [index.name for index in pods.indexes()] == ["namespace", "label", "node", "node-phase"]
        assert pods.indexes()[3].paths == ("spec.nodeName", "status.phase")
        by_name = sorted((int(key.split("-")[2]), key) for key in truth)  # pod-9, pod-10
        assert keys(sort_by="metadata.name") == [key for _, key in by_name]
        pages, token = [], None
        while token is not None or not pages:
            page = pods.list(limit=25, continue_token=token)
            pages += [one.key for one in page]
            token = page.continue_token
        assert pages == list(truth) and "term" in pods.by_index("node", node).plan


@guest
def test_objects_of_a_feed_stay_valid_after_the_store_is_closed(store, simulator):
    pods = store.feed("pods")
    one, page = pods["ns-0/pod-0"], pods.list(namespace="ns-0", limit=5)
    truth = simulator.truth("pods")
    assert one == truth["ns-0/pod-0"] and one["metadata"]["name"] == "pod-0"
    assert len(page) == 5 and page.continue_token and all(each == truth[each.key] for each in page)
    assert len(pods.list(namespace="ns-0", continue_token=page.continue_token)) == PODS // 3 - 5
    store.close()
    assert one.path("metadata.namespace") == "ns-0" and page[0].uid
    assert "closed" in raises(Exception, pods.get, "ns-0/pod-0")


@guest
def test_status_waiting_and_history(store, simulator):
    import kinf

    store.wait_synced("pods", "widgets.example.com", timeout=LIMIT)
    status = store.status()
    assert [feed.name for feed in status.feeds] == ["pods", "widgets.example.com"] and not status.copy
    feed = status.feeds[0]
    assert feed.synced and feed.kind == "Pod" and feed.objects >= PODS and feed.lists >= 1 and feed.namespaced
    assert feed.resync == 0
    version = simulator.put("pods", pod("waited-for", namespace="waited"))
    store.feed("pods").wait_rv(version, timeout=LIMIT)
    assert "waited/waited-for" in store.feed("pods")
    simulator.patch("pods", "waited/waited-for", {"spec": {"nodeName": "n2"}})
    version = simulator.delete("pods", "waited/waited-for")
    store.feed("pods").wait_rv(version, timeout=LIMIT)
    past = store.feed("pods").history("waited/waited-for")
    assert [change.type for change in past] == ["ADDED", "MODIFIED", "DELETED"], past
    assert past[1].object["spec"]["nodeName"] == "n2" and abs(past[2].time - time.time()) < 600
    assert store.feed("pods").history("waited/never") == []
    (one,) = store.who(past[-1].object.uid)
    assert (one.pod.key, one.until) == ("waited/waited-for", past[2].time)
    assert store.who(past[-1].object.uid, "now") == store.who("203.0.113.1") == []
    (one,) = store.who(store.feed("pods").get("ns-0/pod-0").uid)
    assert (one.pod.key, one.until) == ("ns-0/pod-0", None)
    assert "is neither an IP address" in raises(kinf.BadQuery, store.who, "waited")
    begun = time.monotonic()
    late = raises(kinf.Timeout, store.wait_synced, "nothing", timeout=0.3)
    assert "within 0.3 s" in late, late
    raises(TimeoutError, store.wait_synced, "nothing", timeout=0)
    assert time.monotonic() - begun >= 0.3


@guest
def test_exceptions_carry_the_sentences_of_the_library(store, simulator):
    import kinf

    pods = store.feed("pods")
    assert "there are: 'pods'" in raises(kinf.NoFeed, store.feed("nope").get, "a/b")
    assert "has no index 'nope'; it has: namespace, label" in raises(kinf.NoIndex, pods.by_index, "nope", "x")
    assert raises(kinf.BadQuery, pods.list, labels="a=(")
    assert raises(ValueError, pods.list, continue_token="?")
    assert "NUL" in raises(ValueError, pods.list, prefix="a\0b")
    for beyond in (-1, 2**64):
        assert "an event that is not from 0" in raises(ValueError, pods.list, at_event=beyond)
        assert "an event that is not from 0" in raises(ValueError, pods.watch, from_event=beyond)
        assert "an event that is not from 0" in raises(ValueError, store.snapshot, at=beyond)
        assert "a limit that is not from 0" in raises(ValueError, pods.list, limit=beyond)
    store.wait_synced("pods", timeout=float("inf"))
    one = pods.list()[0]
    for beyond in (-1, 2**31, 2**64):
        assert "an indent that is not from 0" in raises(ValueError, one.json, beyond)
    assert "first list ended with event" in raises(kinf.Gone, pods.list, at_event=1)
    assert "is not there yet" in raises(kinf.NotReady, pods.list, at_event=10**12)
    assert "another journal" in raises(kinf.Gone, store.snapshot, at=10**12)
    with pods.watch(cursor="sentences") as watch:
        assert "End that follower" in raises(kinf.Locked, pods.watch, cursor="sentences")
        assert not watch.commit(), "there is no position yet"
    assert "/nowhere" in raises(kinf.Error, kinf.Store, "/nowhere")
    try:
        kinf.Store("/nowhere")
    except kinf.Error as problem:
        assert problem.code < 0


# ---- borrowed objects ------------------------------------------------------------------------------


@guest
def test_borrowed_objects_raise_after_their_snapshot_has_ended(store, simulator):
    import kinf

    def uses(one, part, listed):
        return [
            lambda: one.key, lambda: one.uid, lambda: one["spec"], lambda: one.path("spec.nodeName"), one.json,
            one.to_dict, one.copy, lambda: one.values_at("spec.containers[*].image"), lambda: list(one),
            lambda: part["name"], lambda: dict(part), part.json, lambda: next(listed), lambda: listed.plan,
            lambda: listed.continue_token,
        ]  # fmt: skip

    snapshot = store.snapshot()

    def borrow():
        listed = snapshot.feed("pods").list()
        one = next(listed)
        return one, one["metadata"], listed

    old = borrow()
    kept = old[0].copy()
    snapshot.renew()
    for use in uses(*old):
        assert "renewed" in raises(kinf.Ended, use)
    new = borrow()
    assert new[0].key == kept.key and new[0] == kept
    feed = snapshot.feed("pods")
    snapshot.close()
    snapshot.close()
    for use in [*uses(*old), *uses(*new), lambda: feed.get("a/b"), snapshot.renew, lambda: snapshot.event, feed.status]:
        assert "closed" in raises(kinf.Ended, use)
    assert "closed" in repr(new[0]) and "closed" in repr(new[1])
    assert kept.key in repr(kept) and kept["metadata"]["name"] == kept.name
    # Closing the store ends them too, and Python may free them in any order.
    snapshot = store.snapshot()
    one, part, listed = borrow()
    watch = store.feed("pods").watch()
    watch.next_event(LIMIT)
    store.close()
    for use in [*uses(one, part, listed), store.snapshot, store.status, lambda: store.feed("pods").watch()]:
        assert "closed" in raises(kinf.Ended, use)
    assert watch.next_event() is None
    del snapshot, store, one, part
    del listed


@guest
def test_one_thread_renews_and_closes_while_others_read(store, simulator):
    import kinf

    ended = threading.Event()
    snapshot, failures, reads = store.snapshot(), [], [0]

    def read():
        while not ended.is_set():
            try:
                for one in snapshot.feed("pods"):
                    assert one.path("metadata.name") == one.name and one["spec"].json()
                    reads[0] += 1
            except kinf.Ended:
                continue
            except BaseException as problem:
                failures.append(problem)
                raise

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        before = reads[0]
        eventually(lambda: reads[0] > before or failures)
        snapshot.renew()
    store.close()
    ended.set()
    for thread in threads:
        thread.join()
    assert not failures, failures


@guest
def test_what_belongs_to_a_handle_is_neither_copied_nor_pickled(store, simulator):
    """A snapshot's copy used to close it a second time, and the interpreter aborted."""
    import copy
    import pickle

    snapshot = store.snapshot()
    listed = snapshot.feed("pods").list()
    one = next(listed)
    watch = store.feed("pods").watch()
    event = next(watch)
    for handle in (store, snapshot, listed, watch):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            assert "can't be copied or pickled" in raises(TypeError, lambda: how(handle))
    for read_only in (one, one["spec"], one.copy(), event):
        assert copy.copy(read_only) == read_only
        for how in (copy.deepcopy, pickle.dumps):
            assert "to_dict()" in raises(TypeError, lambda: how(read_only))
    watch.close()
    snapshot.close()
    assert pickle.loads(pickle.dumps(store.status())).event


@guest
def test_a_forked_child_cannot_use_the_parents_store(store, simulator):
    import kinf

    snapshot = store.snapshot()
    listed = snapshot.feed("pods").list()
    one, watch = next(listed), store.feed("pods").watch()
    watch.next_event(LIMIT)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            uses = [store.status, lambda: one.key, lambda: next(listed), snapshot.renew, lambda: watch.next_event(0)]
            assert all("parent" in raises(kinf.Forked, use) for use in uses)
            del one, listed, snapshot, watch
            store.close()
            with kinf.Store() as own:
                assert own.feed("pods").get("ns-0/pod-0").name == "pod-0"
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The parent's objects still work after the child has ended.
    assert one.key in simulator.truth("pods") and next(listed).key and snapshot.event
    simulator.put("pods", pod("after-fork", namespace="forked"))
    assert any(event.key == "forked/after-fork" for event in iter(lambda: watch.next_event(LIMIT), None))


@guest
def test_a_child_that_is_forked_while_a_thread_reads_waits_for_nothing(store, simulator):
    """A thread of the parent held the snapshot's lock at the fork: List.close() in the child waited for it for ever."""
    import kinf

    snapshot = store.snapshot()
    listed = snapshot.feed("pods").list()
    one = next(listed)
    held, release = threading.Event(), threading.Event()

    def hold():
        with snapshot.held(snapshot.generation), store._changed:
            held.set()
            release.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(LIMIT)
    child = os.fork()
    if child == 0:
        signal.alarm(int(LIMIT))  # ends a waiting child
        status = 1
        try:
            uses = [lambda: one.key and one["kind"], lambda: next(listed), lambda: listed.plan, snapshot.renew, store.status]
            assert all("parent" in raises(kinf.Forked, use) for use in uses)
            listed.close()
            del listed, one
            snapshot.close()
            store.close()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    release.set()
    thread.join()
    assert status == 0, status
    assert next(listed).key


# ---- watching --------------------------------------------------------------------------------------


def until(watch, *types):
    """Events up to and including the first of these types."""
    events = []
    while not events or events[-1].type not in types:
        event = watch.next_event(LIMIT)
        assert event, f"no more after {events[-3:]}"
        events.append(event)
    return events


@guest
def test_a_watch_gives_the_initial_state_and_then_changes(store, simulator):
    truth = simulator.truth("pods")
    with store.feed("pods").watch(namespace="ns-1", states=True) as watch:
        events = [event for event in until(watch, "SYNC") if event.type != "STATE"]
        there = {key: one for key, one in truth.items() if key.startswith("ns-1/")}
        assert {event.key: event.object for event in events[:-1]} == there
        assert all(event.type == "ADDED" and event.initial for event in events[:-1])
    with store.feed("pods").watch(namespace="told", labels={"app": "a"}, old=True, initial=False) as watch:
        assert watch.next_event(LIMIT).type == "SYNC"
        simulator.put("pods", pod("x", namespace="told", app="a"))
        simulator.patch("pods", "told/x", {"spec": {"nodeName": "n2"}})
        simulator.patch("pods", "told/x", {"metadata": {"labels": {"app": "b"}}})
        simulator.patch("pods", "told/x", {"metadata": {"labels": {"app": "a"}}})
        simulator.delete("pods", "told/x")
        events = [watch.next_event(LIMIT) for _ in range(5)]
        # An object is ADDED if it enters the filter; it is DELETED with its last state if it leaves it.
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
        assert not any(event.initial or event.resync or event.final_state_unknown for event in events)
        assert events[1].old.path("spec.nodeName") == "n1" and events[1].object.path("spec.nodeName") == "n2"
        assert events[2].object["metadata"]["labels"]["app"] == "a"
        assert watch.next_event(0) is None
    assert watch.next_event() is None and list(watch) == []


@guest
def test_a_resync_gives_each_object_again(store, simulator):
    raises(ValueError, store.feed("pods").watch, resync=-1)
    with store.feed("pods").watch(namespace="ns-2", resync=1) as watch:
        count = len(until(watch, "SYNC")) - 1
        again = [watch.next_event(LIMIT) for _ in range(count)]
        assert all(event.type == "MODIFIED" and event.resync for event in again)
        assert len({event.key for event in again}) == count == PODS // 3


@guest
def test_several_watches_share_one_event_loop(store, simulator):
    import asyncio

    async def follow(namespace, told):
        async with store.feed("pods").watch(namespace=namespace) as watch:
            async for event in watch:
                told.append((event.type, event.key))
                if event.type == "DELETED":
                    return

    async def main():
        told = {"loop-a": [], "loop-b": []}
        followers = [asyncio.create_task(follow(*pair)) for pair in told.items()]
        idle = store.feed("pods").watch(namespace="loop-nothing")
        assert (await anext(idle)).type == "SYNC"
        waiting = asyncio.create_task(anext(idle, None))
        cancelled = asyncio.create_task(follow("loop-nothing", []))
        while not all(("SYNC", "") in each for each in told.values()):
            await asyncio.sleep(0.01)
        for namespace in told:
            await asyncio.to_thread(simulator.put, "pods", pod("x", namespace=namespace))
            await asyncio.to_thread(simulator.delete, "pods", f"{namespace}/x")
        await asyncio.wait_for(asyncio.gather(*followers), LIMIT)
        for namespace, events in told.items():
            assert events == [("SYNC", ""), ("ADDED", f"{namespace}/x"), ("DELETED", f"{namespace}/x")]
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert cancelled.cancelled() and not waiting.done()
        idle.close()
        assert await asyncio.wait_for(waiting, LIMIT) is None

    asyncio.run(main())


@guest
def test_a_watch_ends_when_another_thread_closes_it(store, simulator):
    watch = store.feed("pods").watch(namespace="closed-elsewhere")
    assert watch.next_event(LIMIT).type == "SYNC"
    events = []
    reader = threading.Thread(target=lambda: events.extend(watch))
    reader.start()
    eventually(lambda: len(watch._users) == 1, what="a waiting reader")
    watch.close()
    reader.join(LIMIT)
    assert not reader.is_alive() and events == []


@guest
def test_ctrl_c_interrupts_calls_that_wait(store, simulator):
    def interrupted(wait, ready=lambda: True):
        def press():
            eventually(ready)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        raises(KeyboardInterrupt, wait)
        thread.join()

    watch = store.feed("pods").watch(namespace="ctrl-c")
    assert watch.next_event(LIMIT).type == "SYNC"
    interrupted(lambda: list(watch), lambda: len(watch._users) == 1)
    assert watch.next_event(0) is None
    simulator.put("pods", pod("x", namespace="ctrl-c"))
    assert watch.next_event(LIMIT).key == "ctrl-c/x"  # the watch still works
    interrupted(lambda: store.wait_synced("nothing"), lambda: len(store._users) == 1)

    # A second one, before the first has been dealt with, leaves a call and a watch in use.
    call = store.in_use()
    call.__enter__()
    watch._enter(object())
    store.close()
    watch.close()


@guest
def test_what_a_signal_raises_in_a_callback_is_not_lost(store, simulator):
    """A handler of a signal may raise before a callback's first statement, where Python itself
    forgets the exception."""

    class Pressed(Exception):
        pass

    def press(*_):
        raise Pressed

    def pressed(call, wanted, delay):
        """Returns whether CALL was interrupted; it gives all WANTED results otherwise."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                found = call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Pressed:
            return True
        assert found == wanted, (len(found), len(wanted))
        return False

    before, forgotten = sys.unraisablehook, []
    old = signal.signal(signal.SIGALRM, press)
    sys.unraisablehook = forgotten.append
    try:
        with store.snapshot() as snapshot:
            pods = snapshot.feed("pods")
            keys = [pod.key for pod in pods] * 10
            for call in (lambda: [pod.key for pod in pods.get_many(keys)], lambda: pods.index_values("label")):
                wanted = call()
                assert sum(pressed(call, wanted, 0.0001 + n % 40 * 0.00004) for n in range(400)) > 10
    finally:
        signal.signal(signal.SIGALRM, old)
        sys.unraisablehook = before
    assert not forgotten, forgotten[0]


@guest
def test_a_cursor_is_committed_by_hand(store, simulator):
    pods = store.feed("pods")

    def watch():
        return pods.watch(namespace="by-hand", cursor="by-hand", commit=False)

    with watch() as first:
        assert until(first, "SYNC")
        simulator.put("pods", pod("a", namespace="by-hand"))
        simulator.put("pods", pod("b", namespace="by-hand"))
        assert first.next_event(LIMIT).key == "by-hand/a" and first.commit()
        assert first.next_event(LIMIT).key == "by-hand/b"
    for _ in range(2):
        with watch() as again:
            assert [again.next_event(LIMIT).type, again.next_event(LIMIT).key] == ["SYNC", "by-hand/b"]
    with watch() as last:
        assert last.next_event(LIMIT) and last.next_event(LIMIT) and last.commit()
    with watch() as nothing:
        assert nothing.next_event(LIMIT).type == "SYNC" and nothing.next_event(0.1) is None
    with pods.watch(namespace="by-hand") as without:
        assert "no cursor" in raises(Exception, without.commit)
    raises(ValueError, pods.watch, cursor="by-hand", initial=False)


@guest
def test_a_cursor_of_another_journal_has_lapsed(store, simulator):
    with store.feed("pods").watch(namespace="ns-0", cursor="lapse") as watch:
        count = len(until(watch, "SYNC"))
        assert watch.commit()
    path = os.path.join(os.environ["KINF_STORE"], "cursors", "lapse")
    with open(path) as file:
        lines = file.read().splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith("journal "))
    lines[number] = lines[number][:-4] + "0000"
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    with store.feed("pods").watch(namespace="ns-0", cursor="lapse") as watch:
        events = until(watch, "SYNC")
        assert events[0].type == "LAPPED" and len(events) == count + 1 and all(e.initial for e in events[1:-1])
