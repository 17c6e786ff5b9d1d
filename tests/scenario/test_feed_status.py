# SPDX-License-Identifier: Apache-2.0
"""The status of feeds: states, counters and errors; and the log, with few lines for an outage."""

import os
import re

from harness import eventually

FEEDS = ["configmaps", "pods", "services"]
QUICK = {"backoff": {"min": "10ms", "max": "20ms"}}


def status(store):
    return {f["name"]: f for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}


def live(store, simulator):
    for feed in FEEDS:
        store.wait_live(feed)
        simulator.wait_watching(feed)


def test_an_outage_is_logged_once_for_each_kind_of_failure(simulator, store):
    store.configure(*FEEDS, **QUICK)
    _, reflector = store.daemons()
    live(store, simulator)
    before = len(reflector.log.splitlines())

    def said():
        return reflector.log.splitlines()[before:]

    def failed(feed, kind):
        return [line for line in said() if f'failed feed="{feed}" kind="{kind}"' in line]

    simulator.down()
    eventually(lambda: all(f["retries"] > 20 for f in status(store).values()), what="many attempts")
    stale = status(store)
    assert all(f["state"] == "stale" and "refused" in f["lastError"] for f in stale.values()), stale
    assert all(len(failed(feed, "network")) == 1 for feed in FEEDS), said()
    assert len(said()) <= 2 * len(FEEDS) + 1, said()

    fault = simulator.fault(status=503, body="starting")
    simulator.up()
    eventually(lambda: all("503" in f["lastError"] for f in status(store).values()), what="another kind of failure")
    eventually(lambda: all(f["retries"] > 60 for f in status(store).values()), what="many attempts")
    assert all(len(failed(feed, "busy")) == 1 for feed in FEEDS), said()
    simulator.clear_faults(fault)
    eventually(lambda: all(f["state"] == "live" for f in status(store).values()))
    assert len([line for line in said() if "recovered" in line]) == len(FEEDS), said()
    assert len(said()) <= 4 * len(FEEDS) + 4, said()
    assert all(f["lastError"] == "" for f in status(store).values())


def test_c61_a_warning_of_the_server_is_logged_once(simulator, store):
    simulator.fault(path="/api/v1/pods", headers={"Warning": '299 - "an old api"'})
    _, reflector = store.start_live("pods")
    for n in (2, 3):
        simulator.drop()
        eventually(lambda n=n: len(simulator.requests(resource="pods", verb="watch")) >= n)
    simulator.wait_watching("pods")
    assert reflector.log.count('text="an old api"') == 1, reflector.log


def test_status_counts_the_work_of_each_feed(simulator, store):
    simulator.create("pods", 30)
    store.configure(*FEEDS)
    store.daemons()
    live(store, simulator)
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods", where=lambda obj: obj["metadata"].pop("managedFields", True) or True)
    pods = status(store)["pods"]
    assert (pods["lists"], pods["watches"], pods["retries"], pods["objects"]) == (1, 1, 0, 30), pods
    assert pods["events"] >= 5 and pods["bytes"] > 30 * 100 and pods["lag"] == 0, pods
    assert pods["lastContactSeconds"] < 60 and pods["lastError"] == "", pods
    text = store.kinf("status", check=True).stdout
    heads = "FEED NAMESPACE STATE OBJECTS RESOURCEVERSION CONTACT LAG LISTS WATCHES EVENTS READ RETRIES ERROR"
    assert heads.split() in [line.split() for line in text.splitlines()], text


def test_a_run_without_faults_counts_no_error(simulator, store):
    """Watches ended in time are none, nor are the 404s of the questions about the server's age and
    for the definition of an aggregated resource."""
    simulator.create("pods", 3)
    store.configure(*FEEDS, "widgets", watchTimeout="1s")
    store.daemons()
    live(store, simulator)
    eventually(lambda: any("customresourcedefinitions" in r["path"] for r in simulator.requests()))

    def reflector():
        return next(p for p in store.kinf("status", "-o", "json", check=True).json["processes"] if p["name"] == "kinf-reflector")["counters"]

    eventually(lambda: reflector()["feed.watches"] >= 12)
    assert reflector()["http.errors"] == 0, reflector()
    simulator.fault(status=503, count=1)
    eventually(lambda: reflector()["http.errors"] == 1)


def test_status_reports_what_the_daemons_use_and_where_followers_are(simulator, store):
    simulator.create("pods", 5)
    processor, reflector = store.start_live("pods")
    follower = store.follower("watch", "pods", "-o", "name", "--cursor", "mine", name="follower")

    def cursors():
        return store.kinf("status", "-o", "json", check=True).json["cursors"]

    eventually(cursors)
    last = store.kinf("status", "-o", "json", check=True).json["store"]["lastEvent"]
    eventually(lambda: cursors()[0]["event"] >= last)
    one = cursors()[0]
    assert (one["name"], one["feeds"], one["lapsed"]) == ("mine", 1, False) and 0 <= one["ageSeconds"] < 600, one
    used = {p["name"]: p for p in store.kinf("status", "-o", "json", check=True).json["processes"]}["kinf-reflector"]
    ticks = sum(map(int, open(f"/proc/{reflector.pid}/stat").read().rpartition(")")[2].split()[11:13]))
    assert used["pid"] == reflector.pid and 0 <= ticks / os.sysconf("SC_CLK_TCK") - used["cpuSeconds"] < 0.1, used
    assert 0 < used["anonymousBytes"] < used["residentBytes"], used
    follower.kill()
    processor.kill()
    reflector.kill()
    dead = store.kinf("status", "-o", "json").json["processes"][0]
    assert "residentBytes" not in dead and "cpuSeconds" not in dead, dead


def test_the_error_of_a_question_for_the_cluster_goes_when_a_feed_gets_answers_again(simulator, store):
    """Its pause after failures used to last to the end: the status said "no connection" about a
    server watched by all feeds."""
    simulator.create("pods", 1)
    store.configure("pods", backoff={"min": "1h", "max": "1h"})
    store.daemons()
    simulator.wait_watching("pods")
    simulator.touch("pods")
    store.wait_equal(simulator, "pods", where=lambda obj: obj["metadata"].pop("managedFields", True) or True)

    def error():
        return store.kinf("status", "-o", "json", check=True).json["store"].get("lastError", "")

    question = simulator.fault(path="/api/v1/namespaces/kube-system", status=503)
    simulator.fault(path="/api/v1/pods", status=503)
    simulator.drop()
    eventually(lambda: simulator.fault_hits(question) == 3, what="a pause of four to eight seconds")
    assert "identity of the cluster" in error()
    simulator.clear_faults()
    store.kinf("relist", "pods", check=True)
    store.wait_live("pods")
    eventually(lambda: not error(), timeout=3, patience=1)


def test_feeds_with_long_names_are_told_apart(simulator, store):
    """Names used to be cut after 127 bytes, so two series of the metrics had the same labels, invalid for a scraper."""
    simulator.create("pods", 3)
    names = ["n" * 150 + end for end in "xy"]
    store.configure({"resource": "pods", "name": names[0]}, {"resource": "nodes", "name": names[1]}).daemons()
    for name in names:
        store.wait_live(name)
    assert [feed["name"] for feed in store.kinf("status", "-o", "json", check=True).json["feeds"]] == names
    for command in (["status"], ["top", "--once"], ["metrics"], ["__complete", "get", ""]):
        text = store.kinf(*command, check=True).stdout
        assert all(re.search(rf"(?m)(^|\"){name}\b", text) for name in names), (command, text)
    copy = store.directory / "copy"
    store.kinf("backup", f"{copy}/", check=True)
    assert store.kinf("diff", store.path, copy).status == 0
    store.stop()
    for name in names:
        assert f"note: {name}: offline since" in store.kinf("get", name, check=True).stderr
