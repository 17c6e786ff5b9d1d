# SPDX-License-Identifier: Apache-2.0
"""Keys changed while the reflector runs (SIGHUP): they apply to the next request, and the change
causes none.

maxObjectSize: test_hostile.py, c67; streamingLists: test_streaming_list.py; listConcurrency:
test_connections.py."""

import json
import os
import signal
import threading
from urllib.parse import parse_qs

import pytest

from harness import eventually
from harness.store import whole

QUICK = {"min": "10ms", "max": "20ms"}


@pytest.fixture
def reflector(simulator, store):
    """A reflector watching a feed of 30 pods."""
    simulator.create("pods", 30)
    _, reflector = store.start(simulator, whole("pods"), backoff=QUICK)
    simulator.wait_watching("pods")
    simulator.touch("pods")  # a broken watch with an event is opened again at once
    store.wait_equal(simulator, "pods")
    simulator.forget_requests()
    return reflector


def asked(simulator, verb, key):
    """For each request of VERB the value of KEY, or None."""
    found = [parse_qs(request["query"]).get(key, [None])[0] for request in simulator.requests(resource="pods", verb=verb)]
    return [value and int(value) for value in found]


def tune(simulator, store, reflector, page_size=500, **settings):
    """Loads a new configuration; this must not cause a request."""
    store.configure(whole("pods", pageSize=page_size), **{"backoff": QUICK, **settings})
    reflector.send(signal.SIGHUP)
    reflector.wait_log("config_loaded")
    assert not simulator.requests(resource="pods"), "a change causes no request"


def expire(simulator):
    """Answers the next watch with 410 Expired: the feed lists again."""
    gone = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    simulator.fault(resource="pods", verb="watch", count=1, body=json.dumps({"type": "ERROR", "object": gone}))
    simulator.drop()


def test_a_new_page_size_applies_to_the_next_list(simulator, store, reflector):
    tune(simulator, store, reflector, page_size=7)
    expire(simulator)
    eventually(lambda: len(asked(simulator, "list", "limit")) == 5)
    assert asked(simulator, "list", "limit") == [7] * 5
    store.wait_equal(simulator, "pods")


def test_a_new_watch_timeout_applies_to_the_next_watch(simulator, store, reflector):
    tune(simulator, store, reflector, watchTimeout="20s")
    simulator.drop()
    eventually(lambda: asked(simulator, "watch", "timeoutSeconds"))
    assert all(20 <= seconds < 40 for seconds in asked(simulator, "watch", "timeoutSeconds"))
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")


def test_a_new_backoff_applies_to_the_next_failure(simulator, store, reflector):
    """A backoff of an hour: after a failure there is no second attempt during the test."""
    tune(simulator, store, reflector, backoff={"min": "1h", "max": "1h"})
    simulator.fault(resource="pods", status=503, body="no")
    simulator.drop()
    eventually(lambda: "503" in store.feed_status("pods")["lastError"])
    tried = store.feed_status("pods")["retries"]
    for _ in range(3):
        assert store.feed_status("pods")["retries"] == tried
    assert len(asked(simulator, "watch", "timeoutSeconds")) == 1
    # A begun pause keeps its length; a new reflector uses the new bounds.
    simulator.clear_faults()
    reflector.kill()
    store.configure(whole("pods"), backoff=QUICK)
    reflector.start()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")


@pytest.fixture
def slow_writer(store):
    """Starts to write a file piece by piece: the answer leads to the next piece. Changes the file
    every 0.1 s until then."""
    pieces, more = [], threading.Event()

    def write():
        while pieces:
            with store.config.open("r+") as file:  # never empty: a reload would call it without feeds
                file.write(pieces[0])
                file.truncate()
            if more.wait(0.1):
                more.clear()
                pieces.pop(0)

    thread = threading.Thread(target=write)

    def start(*texts):
        pieces.extend(texts)
        thread.start()

    def proceed():
        more.set()
        eventually(lambda: not more.is_set())

    start.proceed = proceed
    yield start
    while thread.is_alive():
        more.set()


@pytest.mark.parametrize("how", ["restart", "reload"])
def test_feeds_that_a_file_does_not_name_yet_are_kept(simulator, store, slow_writer, how):
    """A daemon reading a half-written kinf.yaml used to remove the feeds missing in it."""
    simulator.create("pods", 3)
    simulator.create("nodes", 2)
    supervisor = store.configure(whole("pods"), whole("nodes"), whole("services")).run()
    for feed in ("pods", "nodes", "services"):
        store.wait_live(feed)
    text = store.config.read_text()
    slow_writer(text[: text.index("- resource: nodes")], text[: text.index("- resource: services")])
    simulator.forget_requests()
    if how == "restart":
        before = store.kinf("status", "-o", "json").json["processes"][0]
        assert before["name"] == "kinf-reflector", before
        os.kill(before["pid"], signal.SIGKILL)
    else:
        assert store.kinf("reload").status == 0
    supervisor.wait_log('config_loaded daemon="kinf-reflector" feeds=1')
    store.wait_live("pods")
    assert store.feed_status("nodes") and store.feed_status("services")
    slow_writer.proceed()
    supervisor.wait_log('config_loaded daemon="kinf-reflector" feeds=2')
    slow_writer.proceed()
    supervisor.wait_log('feed_removed feed="services"')
    assert 'feed_removed feed="nodes"' not in supervisor.log
    store.wait_equal(simulator, "nodes")
    assert not simulator.requests(resource="nodes", verb="list")


@pytest.mark.parametrize("renamed", [whole("pods", name="other"), whole("*")], ids=["name", "wildcard"])
def test_a_feed_renamed_while_nothing_runs_keeps_its_objects(simulator, store, renamed):
    """Discovery had not answered yet: the feed was removed and listed again by its new name."""
    simulator.create("pods", 30)
    _, reflector = store.start_live(whole("pods", name="first"))
    reflector.kill()
    simulator.forget_requests()
    store.configure(renamed)
    os.utime(store.config, (0, 0))  # a new file holds removals back
    reflector = store.reflector()
    store.wait_live(renamed.get("name", "pods"))
    assert "feed_removed" not in reflector.log
    assert not simulator.requests(resource="pods", verb="list")
