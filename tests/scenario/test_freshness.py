# SPDX-License-Identifier: Apache-2.0
"""The age of the data in status, notes, `kinf wait`, --max-staleness and the Python module: a feed
is `live` only if the running reflector has heard of it, and the time of the last contact is in the
store."""

import re
import signal
import time

import pytest
from harness import eventually

FEEDS = ["configmaps", "pods"]
QUICK = {"backoff": {"min": "10ms", "max": "20ms"}}


def states(store):
    return {f["name"]: f["state"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}


def contact(store, feed="pods"):
    return store.feed_status(feed)["lastContactSeconds"]


def stale(store, feed="pods"):
    return eventually(lambda: (s := store.feed_status(feed))["state"] == "stale" and s, what=f"{feed} is stale")


@pytest.fixture
def following(simulator, store):
    """Both daemons follow 20 pods and some configmaps; bookmarks come only when a test asks for them."""
    simulator.settings(bookmarkMs=3600000)
    simulator.create("pods", 20)
    simulator.create("configmaps", 3)
    daemons = store.configure(*FEEDS, **QUICK).daemons()
    for feed in FEEDS:
        store.wait_live(feed)
    return daemons


# ---- notes -----------------------------------------------------------------------------------------


def test_logs_and_indexes_say_that_they_are_stale(simulator, store):
    simulator.create("pods", 3)
    names = [f"pods-{i}" for i in range(8)]
    store.configure(*({"resource": "pods", "name": name} for name in names)).daemons()
    for name in names:
        store.wait_live(name)
    for command in (["log"], ["log", "pods-1"], ["index", "pods-1"], ["index", "pods-1", "namespace"]):
        assert store.kinf(*command, check=True).stderr == ""
    store.stop()
    for command in (["log", "pods-1"], ["index", "pods-1"], ["index", "pods-1", "namespace"]):
        result = store.kinf(*command, check=True)
        assert result.stdout and re.fullmatch("note: pods-1: offline since .*, kinf-reflector does not run\n", result.stderr), result
    notes = store.kinf("log", check=True).stderr.splitlines()
    assert len(notes) == 6 and notes[5] == "note: 3 more feeds are not live; 'kinf status' shows them", notes


def test_a_note_names_the_day_of_an_older_contact(simulator, store, following):
    """By the local time, midnight has been since the last contact."""
    store.stop()
    eventually(lambda: contact(store) > 3)
    past = int(time.time() - 1) % 86400
    zone = f"LOC{past // 3600}:{past // 60 % 60}:{past % 60}"
    note = store.kinf("get", "pods", "-o", "count", env={"TZ": zone}, check=True).stderr
    assert re.match(r"note: pods: offline since \d{4}-\d\d-\d\d 23:59:\d\d, ", note), note


# ---- live ------------------------------------------------------------------------------------------


def test_no_feed_is_live_after_a_start_without_the_server(simulator, store, following):
    for process in reversed(following):
        process.stop()
    simulator.down()
    for process in following:
        process.start()
    eventually(lambda: set(states(store).values()) == {"stale"}, what="the reflector has reported the feeds")
    # The first request may not have failed yet: until then the reason is "nothing heard since the
    # start".
    state = eventually(lambda: "refused" in (s := stale(store))["lastError"] and s, what="a request has failed")
    assert state["lastContactSeconds"] > 0, state
    got = store.kinf("get", "pods", "-o", "count", check=True)
    assert got.stdout == "20\n" and got.stderr.startswith("note: pods: stale since ") and "refused" in got.stderr, got
    waited = store.kinf("wait", "pods", "--for", "live", "--timeout", "1s")
    assert waited.status == 1 and "its state is stale" in waited.stderr, waited
    simulator.up()
    for feed in FEEDS:
        store.wait_live(feed)
    assert store.kinf("get", "pods", "-o", "count", check=True).stderr == ""


def test_a_feed_without_data_says_why_after_a_start_without_the_server(simulator, store):
    """It does not say "being listed", since no process lists it, and does not omit the reason."""
    simulator.create("configmaps", 3)
    simulator.fault(resource="pods", verb="list", status=500, body="{}")
    simulator.fault(resource="secrets", status=403, body="{}")
    daemons = store.configure("pods", "secrets", "configmaps", **QUICK).daemons()
    store.wait_live("configmaps")
    eventually(lambda: states(store) == {"configmaps": "live", "pods": "error", "secrets": "forbidden"}, what="all were tried")
    for process in reversed(daemons):
        process.stop()
    simulator.down()
    for process in daemons:
        process.start()
    eventually(lambda: "refused" in stale(store, "configmaps")["lastError"], what="a request has failed")
    assert states(store) == {"configmaps": "stale", "pods": "error", "secrets": "forbidden"}
    for feed in ("pods", "secrets"):
        assert "refused" in store.feed_status(feed)["lastError"], store.feed_status(feed)
    got = store.kinf("get", "pods")
    assert got.status == 1 and "pods: never listed so far, it is error: " in got.stderr and "refused" in got.stderr, got
    assert "so it was before kinf-reflector started: " in store.kinf("get", "secrets").stderr


def test_a_restart_alone_makes_no_data_fresh(simulator, store, following):
    """The server accepts the watch again, and says nothing of changes: only an event, a bookmark or a list does."""
    eventually(lambda: contact(store) > 1, what="a second of silence")
    for process in reversed(following):
        process.stop()
    for process in following:
        process.start()
    store.wait_live("pods")
    assert contact(store) > 1
    assert store.kinf("get", "pods", "--max-staleness", "1s").status == 1
    simulator.bookmark()
    eventually(lambda: contact(store) < 1, what="a bookmark")
    store.kinf("get", "pods", "--max-staleness", "1m", check=True)


def test_status_fails_while_there_is_no_feed(simulator, store):
    """The server was away from the beginning, so no feed could be resolved: the status must not
    look good to a probe or a person."""
    simulator.down()
    store.configure("pods", **QUICK).daemons()
    unreachable = "pods: error: asking the API server for the identity of the cluster: "
    text = eventually(lambda: (s := store.kinf("status")) and unreachable in s.stderr and s, what="the index and an error")
    assert text.status == 1 and text.stderr.startswith("Error: no feed is live: "), text
    checked = store.kinf("status", "--check")
    assert checked.status == 1 and checked.stdout == "", checked
    assert checked.stderr.startswith("Error: " + unreachable) and "refused" in checked.stderr, checked
    said = eventually(lambda: "no index yet" not in (text := store.kinf("get", "pods").stderr) and text, what="an empty index")
    assert said.startswith("Error: feed 'pods' can't be read yet: asking the API server ") and "refused" in said, said
    assert 'kinf_feed_synced{feed="pods"} 0' in store.kinf("metrics").stdout.splitlines(), "what an alert fires by"
    log = store.kinf("log")
    assert log.status == 1 and log.stderr.startswith("Error: nothing is watched yet: kinf-reflector: "), log
    simulator.up()
    store.wait_live("pods")
    assert store.kinf("status", "--check", check=True).stdout == "1 feed live\n"


def test_status_fails_when_nothing_is_live(simulator, store, following):
    store.kinf("status", check=True)
    checked = store.kinf("status", "--check", check=True)
    assert checked.stdout == "2 feeds live\n" and checked.stderr == "", checked
    fault = simulator.fault(resource="pods", status=503, body="no")
    simulator.drop()
    stale(store)
    store.wait_live("configmaps")
    store.kinf("status", check=True)
    checked = store.kinf("status", "--check")
    assert checked.status == 1 and checked.stdout == "" and checked.stderr.startswith("Error: pods: stale: "), checked
    simulator.down()
    stale(store, "configmaps")
    text = store.kinf("status")
    assert text.status == 1 and "configmaps" in text.stdout and text.stderr.startswith("Error: no feed is live: "), text
    store.kinf("status", "-o", "json", check=True)
    simulator.clear_faults(fault)
    simulator.up()
    for feed in FEEDS:
        store.wait_live(feed)
    simulator.bookmark()
    eventually(lambda: store.kinf("status", "--check", "--max-staleness", "1h").status == 0)
    eventually(lambda: contact(store) > 1.1, what="a second of silence")
    old = store.kinf("status", "--check", "--max-staleness", "1s")
    assert old.status == 1 and "the last contact was longer than 1s ago" in old.stderr, old


def test_status_check_names_a_daemon_that_does_not_run(store, following):
    processor, _ = following
    processor.stop()
    checked = store.kinf("status", "--check")
    assert checked.status == 1 and checked.stderr == "Error: kinf-processor: not running\n", checked


# ---- the time of the last contact ------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_store_remembers_the_last_contact(simulator, store, following, end):
    simulator.bookmark()
    eventually(lambda: contact(store) < 5, what="a bookmark")
    for process in reversed(following):
        getattr(process, end)()
    first = store.feed_status("pods")
    assert first["state"] == "offline" and first["lastError"] == "kinf-reflector does not run", first
    assert 0 <= first["lastContactSeconds"] < 60, first
    assert eventually(lambda: contact(store) > first["lastContactSeconds"] + 1, what="it ages")
    store.kinf("get", "pods", "--max-staleness", "1h", check=True)
    refused = store.kinf("get", "pods", "--max-staleness", "1s")
    assert refused.status == 1 and refused.stdout == "" and "the last contact with the API server was" in refused.stderr


def test_a_frozen_server_makes_no_contact(simulator, store, following):
    simulator.touch("pods", 1)
    eventually(lambda: contact(store) < 1, what="an event")
    simulator.process.send(signal.SIGSTOP)
    try:
        eventually(lambda: contact(store) > 1.2, what="silence")
        refused = store.kinf("get", "pods", "--max-staleness", "1s")
        assert refused.status == 1 and refused.stdout == "", refused
    finally:
        simulator.process.send(signal.SIGCONT)


# ---- daemons that do not work ----------------------------------------------------------------------


def test_a_stopped_reflector_is_said_to_run(store, following):
    _, reflector = following
    reflector.send(signal.SIGSTOP)
    try:
        state = stale(store)
        assert state["lastError"] == (
            f"kinf-reflector (process {reflector.pid}) runs, but does not respond: it is stopped, or it hangs"
        )
        got = store.kinf("get", "pods", "-o", "count", check=True)
        assert "does not respond" in got.stderr and "does not run" not in got.stderr, got
    finally:
        reflector.send(signal.SIGCONT)
    store.wait_live("pods")


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_without_a_processor_no_feed_is_live(simulator, store, following, how):
    processor, _ = following
    processor.send(how)
    try:
        state = stale(store)
        assert state["lastError"].startswith("kinf-processor "), state
        simulator.touch("pods", 1)
        eventually(lambda: store.feed_status("pods")["lag"] == 1, what="an event that no reader sees")
        eventually(lambda: contact(store) > 1.2, what="its age")
        simulator.bookmark()
        simulator.touch("configmaps", 1)
        eventually(lambda: store.feed_status("configmaps")["lag"] > 0, what="a later contact")
        assert contact(store) > 1.2, "what came since is not in what a reader sees"
        assert store.kinf("get", "pods", "--max-staleness", "1s").status == 1
    finally:
        if how == signal.SIGSTOP:
            processor.send(signal.SIGCONT)
        else:
            processor.wait()
            processor.start()
    store.wait_live("pods")


# ---- answers that are worth nothing ----------------------------------------------------------------


def test_a_watch_that_sends_garbage_is_logged_once_and_not_live(simulator, store, following):
    _, reflector = following
    fault = simulator.fault(verb="watch", resource="pods", body="garbage\n")
    before = len(reflector.log.splitlines())
    simulator.drop()
    eventually(lambda: store.feed_status("pods")["retries"] > 12, what="many attempts")
    said = [line for line in reflector.log.splitlines()[before:] if 'feed="pods"' in line]
    assert len([line for line in said if " feed_failed " in line]) <= 2, said
    garbage = next(i for i, line in enumerate(said) if 'kind="protocol"' in line)
    assert len([line for line in said[:garbage] if " feed_recovered " in line]) <= 1, "of the lost connection, if its answer comes before the garbage"
    assert not [line for line in said[garbage:] if " feed_recovered " in line], said
    assert stale(store)["lastError"], "it is not well between two attempts"
    simulator.clear_faults(fault)
    simulator.touch("pods", 1)
    store.wait_live("pods")
    said = [line for line in reflector.log.splitlines()[before:] if 'feed="pods"' in line]
    assert len([line for line in said[garbage:] if " feed_recovered " in line]) == 1, said


def test_a_list_that_drips_is_ended(simulator, store):
    simulator.create("pods", 200)
    fault = simulator.fault(verb="list", resource="pods", chunk=1, gapMs=50)
    store.configure("pods", timeouts={"answer": "2s"}, **QUICK)
    store.daemons()
    state = eventually(lambda: (s := store.feed_status("pods"))["retries"] > 1 and s, what="the second attempt")
    assert "too little heard within 2 s" in state["lastError"], state
    simulator.clear_faults(fault)
    store.wait_live("pods")
