# SPDX-License-Identifier: Apache-2.0
"""Watches of kinf-serve (docs/protocol.md 18.3, cases S45 to S73) and its RV rules: streams are
compared with those of the simulated API server, and followed over relists, restarts, kills and new
journals."""

import json
import os
import random
import signal
import zlib

import pytest

from harness import eventually, protobuf
from harness.objects import pod
from harness.serve import INITIAL, METADATA, TABLE, Serve, brief
from harness.store import whole
from harness.websocket import WebSocket

PODS = "/api/v1/namespaces/web/pods"
ALL = "/api/v1/pods"


@pytest.fixture
def serve(simulator, store):
    for i in range(3):
        simulator.put("pods", pod(f"p{i}", "web", app=f"app{i}"))
    simulator.put("pods", pod("other", "shop"))
    store.configure(whole("pods"), whole("configmaps"), serve={"listen": ["unix"]})
    store.processor_process, store.reflector_process = store.daemons()
    store.wait_equal(simulator, "pods")
    store.wait_synced("configmaps")
    return Serve(store, simulator)


def change(simulator):
    """Changes of each type; the newest version."""
    simulator.put("pods", pod("new", "web", app="app0"))
    simulator.patch("pods", "web/p0", {"metadata": {"labels": {"app": "app1"}}})
    simulator.patch("pods", "web/p1", {"metadata": {"labels": {"app": "app0"}}})
    simulator.patch("pods", "web/p2", {"spec": {"nodeName": "n9"}})
    simulator.put("pods", pod("unseen", "shop"))
    simulator.delete("pods", "web/p2")
    return simulator.delete("pods", "web/new")


@pytest.mark.parametrize("query", [
    "",  # S47, S48
    "labelSelector=app%3Dapp0&",  # S53
    "labelSelector=app!%3Dapp0&",
    "fieldSelector=spec.nodeName%3Dn9&",
    "fieldSelector=metadata.name%3Dp2&",
])
def test_s45_s47_s48_s53_s54_replayed_and_live_events_are_the_api_servers(serve, query):
    """Those of a namespace, after a head that comes before any event."""
    rv = serve.ask(PODS).rv
    with serve.watch(f"{PODS}?watch=1&{query}resourceVersion={rv}&timeoutSeconds=4") as live:
        assert live.response.getheader("transfer-encoding") == "chunked"
        serve.wait_rv(change(serve.simulator))
        server, replayed = serve.both(f"{PODS}?watch=1&{query}resourceVersion={rv}&timeoutSeconds=1")
        assert [brief(e) for e in replayed.events] == [brief(e) for e in server.events]
        assert [e["object"] for e in replayed.events] == [e["object"] for e in server.events]
        assert live.rest() == replayed.events
    assert replayed.headers["content-type"] == "application/json"
    assert replayed.body.endswith(b"\n") or not replayed.events


@pytest.mark.parametrize("query", ["watch=1", "watch=true&resourceVersion=0", "watch=&resourceVersion="])
def test_s46_s52_objects_come_first_then_changes(serve, query):
    with serve.watch(f"{PODS}?{query}") as watch:
        assert [e[:2] for e in watch.next(3)] == [("ADDED", f"p{i}") for i in range(3)]
        rv = serve.simulator.patch("pods", "web/p1", {"spec": {"nodeName": "n7"}})
        assert watch.next() == ("MODIFIED", "p1", str(rv))


def test_s55_s73_one_object_by_its_name(serve):
    with serve.watch(f"{PODS}?watch=1&fieldSelector=metadata.name%3Dp1&resourceVersion=0") as watch:
        assert watch.next()[:2] == ("ADDED", "p1")
        serve.simulator.touch("pods")
        assert watch.next()[:2] == ("MODIFIED", "p1")
    with serve.watch(f"/api/v1/watch/namespaces/web/pods/p1?resourceVersion=0") as watch:  # S73
        assert watch.next()[:2] == ("ADDED", "p1")
    with serve.watch(f"/api/v1/watch/pods?resourceVersion={serve.ask(ALL).rv}") as watch:
        serve.simulator.delete("pods", "shop/other")
        assert watch.next()[:2] == ("DELETED", "other")


def ends_initial(event):
    return event["object"]["metadata"].get("annotations", {}).get("k8s.io/initial-events-end") == "true"


def test_s61_s62_s63_the_end_of_the_objects_is_marked(serve):
    with serve.watch(f"{PODS}?{INITIAL}&allowWatchBookmarks=true") as watch:
        assert [e[:2] for e in watch.next(3)] == [("ADDED", f"p{i}") for i in range(3)]
        mark = json.loads(watch.line())
        assert mark["type"] == "BOOKMARK" and ends_initial(mark) and mark["object"]["kind"] == "Pod"
        assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(serve.ask(PODS).json["items"][2]["metadata"]["resourceVersion"])
        serve.simulator.put("pods", pod("later", "web"))
        assert watch.next()[:2] == ("ADDED", "later")
    with serve.watch(f"{PODS}?{INITIAL}") as watch:
        watch.next(4)
        serve.simulator.delete("pods", "web/later")
        assert watch.next()[:2] == ("DELETED", "later")
    with serve.watch(f"/api/v1/configmaps?{INITIAL}&allowWatchBookmarks=true") as watch:
        assert ends_initial(json.loads(watch.line()))
    with serve.watch(f"{PODS}?watch=1&resourceVersion=0&allowWatchBookmarks=true") as watch:
        watch.next(3)
        assert ends_initial(json.loads(watch.line()))


def unpacked(response):
    """The events of a stream whose members of gzip end with the event that they give."""
    decoder, text = zlib.decompressobj(31), b""
    while piece := response.read1(1 << 20):
        while piece:
            text += decoder.decompress(piece)
            raw, piece = piece, decoder.unused_data
            if decoder.eof:
                decoder = zlib.decompressobj(31)
        *lines, text = text.split(b"\n")
        yield from ((json.loads(line), raw) for line in lines)


def test_s82_a_watch_list_is_compressed(serve):
    offer = {"accept_encoding": "gzip"}
    with serve.watch(f"{PODS}?{INITIAL}&allowWatchBookmarks=true", **offer) as watch:
        assert watch.response.getheader("content-encoding") == "gzip" and watch.response.getheader("vary") == "Accept-Encoding"
        events = unpacked(watch.response)
        assert [brief(next(events)[0])[:2] for _ in range(3)] == [("ADDED", f"p{i}") for i in range(3)]
        assert ends_initial(next(events)[0])
        large = pod("large", "web")
        large["metadata"]["annotations"] = {"a": random.Random(1).randbytes(100000).hex()}  # several blocks
        for change in (large, pod("later", "web")):
            serve.simulator.put("pods", change)
            event, raw = next(events)
            assert event["object"]["metadata"]["name"] == change["metadata"]["name"]
            # Go's decoder gives out what it has at an empty block, and at the last one only with the next member.
            assert raw[-18:-8] == b"\0\0\0\xff\xff\1\0\0\xff\xff"
        assert event["object"] == serve.ask(PODS + "/later").json
    for query in (INITIAL, f"watch=1&allowWatchBookmarks=true&resourceVersion={serve.ask(PODS).rv}"):
        with serve.watch(f"{PODS}?{query}", **offer) as watch:
            assert watch.response.getheader("content-encoding") is None


def test_s67_no_objects_if_none_are_wanted(serve):
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    with serve.watch(f"{PODS}?{query}&resourceVersion=0") as watch:
        serve.simulator.put("pods", pod("later", "web"))
        assert watch.next()[:2] == ("ADDED", "later")


def test_a_watch_by_its_path_alone_does_not_mark_the_end_of_the_objects(serve):
    """As the API server without defaults for such a watch; another zero gets none either."""
    for path in (f"/api/v1/watch/namespaces/web/pods?allowWatchBookmarks=true", f"{PODS}?watch=1&resourceVersion=00&allowWatchBookmarks=true"):
        with serve.watch(path) as watch:
            assert [e[:2] for e in watch.next(3)] == [("ADDED", f"p{i}") for i in range(3)]
            serve.simulator.patch("pods", "web/p1", {"spec": {"nodeName": path[-5:]}})
            assert watch.next()[:2] == ("MODIFIED", "p1"), "no bookmark before it"


def test_s68_objects_of_a_version_that_does_not_come(serve):
    event, = serve.ask(f"{PODS}?{INITIAL}&resourceVersion=99999999").events
    assert event["type"] == "ERROR" and event["object"]["code"] == 504
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_s49_s50_history_ends_at_the_first_list(serve):
    event, = serve.ask(f"{ALL}?watch=1&resourceVersion=1").events
    status = event["object"]
    assert event["type"] == "ERROR" and (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")
    oldest = status["message"].rpartition("(")[2].rstrip(")")
    assert serve.ask(f"{ALL}?watch=1&resourceVersion={oldest}&timeoutSeconds=1").events == []


def test_s51_a_future_version_is_silent_until_it_has_passed(serve):
    rv = int(serve.ask(ALL).rv)
    with serve.watch(f"{ALL}?watch=1&resourceVersion={rv + 2}") as watch:
        for i in range(4):
            last = serve.simulator.put("pods", pod(f"f{i}", "web"))
        assert int(last) >= rv + 3
        assert int(watch.next()[2]) > rv + 2


def test_s56_s57_bookmarks_on_request_only(serve):
    rv = serve.ask(PODS).rv
    assert serve.ask(f"{PODS}?watch=1&resourceVersion={rv}&timeoutSeconds=3").events == []
    bookmark, = serve.ask(f"{PODS}?watch=1&resourceVersion={rv}&timeoutSeconds=3&allowWatchBookmarks=true").events
    assert bookmark["type"] == "BOOKMARK" and not ends_initial(bookmark)
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(rv)


def test_s58_a_bookmark_has_the_newest_version_and_loses_nothing(serve):
    """Bookmarks of the API server move a version on without a change of the feed."""
    rv = serve.ask(ALL).rv
    for i in range(3):
        last = serve.simulator.put("configmaps", {"metadata": {"name": f"c{i}", "namespace": "web"}})
    serve.simulator.bookmark()
    serve.wait_rv(last)
    marked, = serve.ask(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=3&allowWatchBookmarks=true").events
    assert marked["type"] == "BOOKMARK" and int(marked["object"]["metadata"]["resourceVersion"]) >= int(last)
    added = serve.simulator.put("pods", pod("after", "web"))
    rv = marked["object"]["metadata"]["resourceVersion"]
    with serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as watch:
        assert watch.next() == ("ADDED", "after", str(added))


def test_s60_a_watch_without_a_timeout_goes_on(serve):
    for query in ("", "&timeoutSeconds=0"):
        with serve.watch(f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}{query}") as watch:
            serve.simulator.touch("pods")
            assert watch.next()[0] == "MODIFIED"


def test_s59_a_timeout_is_a_clean_end(serve):
    connection = serve.client.connect()
    for _ in range(2):  # the connection is used again
        connection.request("GET", f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}&timeoutSeconds=1")
        response = connection.getresponse()
        assert response.read() == b""
    connection.close()


def test_s77_tables_have_their_columns_once(serve):
    with serve.watch(f"{PODS}?watch=1&resourceVersion=0", accept=TABLE) as watch:
        tables = [json.loads(watch.line())["object"] for _ in range(3)]
    assert [len(t["rows"]) for t in tables] == [1, 1, 1]
    assert tables[0]["columnDefinitions"] and tables[1]["columnDefinitions"] is None
    with serve.watch(f"{PODS}?{INITIAL}&allowWatchBookmarks=true&includeObject=None", accept=TABLE) as watch:
        mark = [json.loads(watch.line()) for _ in range(4)][3]
    row, = mark["object"]["rows"]
    assert mark["type"] == "BOOKMARK" and ends_initial({"object": row["object"]})
    assert len(row["cells"]) == len(tables[0]["rows"][0]["cells"])
    with serve.watch(f"{PODS}?watch=1&resourceVersion=0", accept=METADATA) as watch:
        assert json.loads(watch.line())["object"]["kind"] == "PartialObjectMetadata"


# ---- one state ------------------------------------------------------------------------------------


class Model:
    """A client's copy, kept by events alone."""

    def __init__(self):
        self.objects, self.rv = {}, 0

    def take(self, event):
        obj = event["object"]
        metadata = obj["metadata"]
        key = f"{metadata.get('namespace')}/{metadata.get('name')}"
        if event["type"] == "DELETED":
            assert key in self.objects, f"DELETED {key}, which is not known"
            del self.objects[key]
        elif event["type"] != "BOOKMARK":
            assert (key in self.objects) == (event["type"] == "MODIFIED"), f"{event['type']} {key}"
            self.objects[key] = obj
        assert int(metadata["resourceVersion"]) >= self.rv, "a version that goes back"
        self.rv = int(metadata["resourceVersion"])

    def equals(self, truth):
        return self.objects.keys() == truth.keys() and all(without_type(self.objects[k]) == truth[k] for k in truth)


def without_type(obj):
    return {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}


def initial(serve, watch):
    """Reads the objects up to their end mark into a model."""
    model = Model()
    while True:
        event = json.loads(watch.line())
        if event["type"] == "BOOKMARK":
            model.rv = int(event["object"]["metadata"]["resourceVersion"])
            return model
        obj = event["object"]
        model.objects[f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"] = obj


def follow_until_equal(serve, watch, model):
    """Applies events until the model is the cluster's state; nothing else changes it."""
    truth = {key: without_type(obj) for key, obj in serve.simulator.truth("pods").items()}
    newest = max(int(obj["metadata"]["resourceVersion"]) for obj in truth.values())
    while model.rv < newest or not model.equals(truth):
        model.take(json.loads(watch.line()))


def test_s69_nothing_is_lost_between_objects_and_changes(serve):
    serve.simulator.create("pods", 1000, size=500)
    serve.simulator.churn("pods", 100)
    with serve.watch(f"{ALL}?{INITIAL}&allowWatchBookmarks=true") as watch:
        model = initial(serve, watch)
        for _ in range(100):
            model.take(json.loads(watch.line()))
        serve.simulator.churn("pods", 0)
        follow_until_equal(serve, watch, model)


def test_s71_a_relist_is_changes_and_ends_no_watch(serve):
    with serve.watch(f"{ALL}?{INITIAL}&allowWatchBookmarks=true") as watch, \
            serve.watch(f"{ALL}?watch=1&labelSelector=app%3Dapp0&resourceVersion=0") as selected:
        model = initial(serve, watch)
        assert selected.next()[1] == "p0"
        rv = serve.ask(ALL).rv
        serve.store.reflector_process.kill()
        change(serve.simulator)
        serve.simulator.put("pods", {**pod("other", "shop"), "spec": {"nodeName": "n3"}})
        serve.simulator.compact()
        serve.store.reflector()
        follow_until_equal(serve, watch, model)
        lines = [selected.next(), selected.next()]
        assert sorted(e[:2] for e in lines) == [("ADDED", "p1"), ("DELETED", "p0")]
        # At C the whole list is given; before the newest version is reached, in the gap, nothing is known.
        replay = serve.watch(f"{ALL}?watch=1&resourceVersion={rv}")
        with replay:
            events = replay.next(4)
            deletions = [e for e in events if e[0] == "DELETED"]
            assert events[:len(deletions)] == deletions and {e[1] for e in deletions} == {"p2"}
            assert {e[2] for e in deletions} == {rv}, "stamped with the watch's own version"
            versions = [int(e[2]) for e in events[len(deletions):]]
            assert versions == sorted(versions) and versions[0] > int(rv)
        error, = serve.ask(f"{ALL}?watch=1&resourceVersion={int(rv) + 1}&timeoutSeconds=1").events
        assert error["object"]["code"] == 410


def test_a_new_uid_of_a_name_is_two_events_and_a_cut_between_them_loses_nothing(serve):
    rv = serve.ask(ALL).rv
    serve.store.reflector_process.kill()
    serve.simulator.delete("pods", "web/p1")
    serve.simulator.put("pods", pod("p1", "web", app="reborn"))
    serve.store.reflector()
    serve.store.wait_equal(serve.simulator, "pods")
    events = serve.ask(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=1").events
    kinds = [(e["type"], e["object"]["metadata"]["name"]) for e in events]
    assert kinds == [("DELETED", "p1"), ("ADDED", "p1")]
    uids = [e["object"]["metadata"]["uid"] for e in events]
    assert uids[0] != uids[1]
    cut = events[0]["object"]["metadata"]["resourceVersion"]
    again = serve.ask(f"{ALL}?watch=1&resourceVersion={cut}&timeoutSeconds=1").events
    assert [brief(e) for e in again][-1] == brief(events[-1])


def test_a_restart_of_kinf_serve_loses_no_version(serve):
    rv = serve.ask(ALL).rv
    change(serve.simulator)
    before = eventually(lambda: len(e := serve.ask(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=1").events) == 7 and e)
    listed = serve.ask(f"{ALL}?resourceVersion={rv}&resourceVersionMatch=Exact").body
    serve.process.kill()
    serve.start()
    assert serve.ask(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=1").events == before
    assert serve.ask(f"{ALL}?resourceVersion={rv}&resourceVersionMatch=Exact").body == listed
    oldest = serve.ask(f"{ALL}?watch=1&resourceVersion=1").events[0]["object"]["message"]
    serve.process.kill()
    serve.start()
    assert serve.ask(f"{ALL}?watch=1&resourceVersion=1").events[0]["object"]["message"] == oldest


def test_where_history_begins_survives_a_restart(serve):
    first = serve.ask(ALL).rv
    serve.store.configure(whole("pods"), whole("configmaps"), retention={"time": "1s"}, serve={"listen": ["unix"]})
    serve.store.reflector_process.send(signal.SIGHUP)
    change(serve.simulator)

    def begins():
        event, = serve.ask(f"{ALL}?watch=1&resourceVersion=1").events
        return event["object"]["message"].rpartition("(")[2].rstrip(")")

    def trimmed():
        serve.simulator.touch("configmaps")
        return int(begins()) > int(first)

    eventually(trimmed, what="history to be trimmed")
    last = serve.simulator.put("pods", pod("last", "web"))
    serve.wait_rv(last)
    eventually(lambda: begins() == str(last), what="all history to be trimmed")
    serve.process.kill()
    serve.start()
    assert begins() == str(last)
    assert serve.ask(f"{ALL}?watch=1&resourceVersion={last}&timeoutSeconds=1").events == []
    assert serve.ask(f"{ALL}?resourceVersion={first}&resourceVersionMatch=Exact").status == 410


def test_a_client_that_is_cut_and_comes_back_is_equal_in_the_end(serve):
    serve.simulator.create("pods", 200, size=200)
    serve.simulator.churn("pods", 100)
    with serve.watch(f"{ALL}?{INITIAL}&allowWatchBookmarks=true") as watch:
        model = initial(serve, watch)
    for cut in range(6):
        if cut == 3:
            serve.process.kill()
            serve.start()
        with serve.watch(f"{ALL}?watch=1&resourceVersion={model.rv}&allowWatchBookmarks=true") as watch:
            for _ in range(20):
                model.take(json.loads(watch.line()))
    serve.simulator.churn("pods", 0)
    with serve.watch(f"{ALL}?watch=1&resourceVersion={model.rv}") as watch:
        follow_until_equal(serve, watch, model)


def test_after_a_new_journal_every_version_of_the_old_one_is_gone(serve):
    rv = serve.simulator.put("pods", pod("newest", "web"))
    serve.wait_rv(rv)
    with serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as watch:
        serve.simulator.new_identity()
        serve.simulator.drop()
        event = json.loads(watch.line())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert watch.line() == b""


def test_a_version_that_a_restored_etcd_lost_is_not_answered_with_an_older_state(serve):
    simulator = serve.simulator
    simulator.settings(futureWaitMs=100)
    simulator.save()
    lost = simulator.touch("pods", 10)
    serve.wait_rv(lost)
    token = serve.ask(f"{ALL}?limit=1").json["metadata"]["continue"]
    simulator.restore()
    eventually(lambda: (a := serve.ask(ALL)).status == 200 and int(a.rv) < int(lost), what="the state of the backup")
    for query in (f"resourceVersion={lost}", f"resourceVersion={lost}&resourceVersionMatch=Exact", f"resourceVersion={lost}&limit=1", f"continue={token}"):
        answer = eventually(lambda: (a := serve.ask(f"{ALL}?{query}")).status != 429 and a, what="the feeds of the new journal")
        assert answer.status == 504 and f"Too large resource version: {lost}, current: " in answer.message, answer.body
    assert serve.ask(f"{PODS}/p1?resourceVersion={lost}").status == 504


def test_lists_are_never_older_than_what_a_watch_has_shown(serve):
    with serve.watch(f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}") as watch:
        for i in range(60):
            serve.simulator.patch("pods", "web/p1", {"spec": {"n": i}})
            _, _, rv = watch.next()
            shown = serve.ask(PODS + "/p1").json if i % 2 else serve.ask(PODS).json["items"][1]
            assert int(shown["metadata"]["resourceVersion"]) >= int(rv)


def test_a_watch_of_metadata_is_given_in_protobuf_to_those_who_prefer_it(serve):
    path = f"{PODS}?{INITIAL}&allowWatchBookmarks=true&timeoutSeconds=4"
    with serve.watch(path, accept=protobuf.META) as first, serve.watch(path, accept=METADATA) as second:
        assert first.response.headers["content-type"] == "application/vnd.kubernetes.protobuf;stream=watch"
        wanted = [json.loads(second.line()) for _ in range(4)]  # both are live
        change(serve.simulator)
        wanted += second.rest()
        found = list(protobuf.events(first.response.read()))
    facts = lambda event: (event["type"], event["object"]["kind"], event["object"]["metadata"].get("name", ""),
                           event["object"]["metadata"]["resourceVersion"], event["object"]["metadata"].get("annotations", {}))
    ours = [(type_, kind, (m := protobuf.metadata(fields))["name"], m["resourceVersion"], m["annotations"]) for type_, kind, fields in found]
    assert ours == [facts(event) for event in wanted]
    assert {event[0] for event in ours} == {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
    old = serve.ask(f"{PODS}?watch=1&resourceVersion=1", accept=protobuf.META)
    (type_, kind, status), = protobuf.events(old.body)
    assert (type_, kind, status[4], status[6]) == ("ERROR", "Status", [b"Expired"], [410])
    with WebSocket(serve.socket, f"{PODS}?watch=1", accept=protobuf.META) as client:
        assert client.status == 400, "frames of protobuf are no messages of text"


def test_watches_go_on_without_the_processor(serve):
    with serve.watch(f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}") as watch:
        serve.store.processor_process.kill()
        serve.simulator.put("pods", pod("live", "web"))
        assert watch.next()[:2] == ("ADDED", "live")
        answer = serve.ask(PODS)
        assert answer.status == 504, "a list must not be older than the watch"
        serve.store.processor()
        assert eventually(lambda: (a := serve.ask(PODS)).status == 200 and "live" in a.names)


def test_stale_answers_say_so(serve):
    assert "warning" not in serve.ask(PODS).headers
    serve.store.reflector_process.kill()
    answer = eventually(lambda: (a := serve.ask(PODS)).headers.get("warning") and a, what="a warning")
    assert answer.status == 200 and answer.headers["warning"].startswith('299 - "pods: stale since 20')
    assert answer.headers["age"].isdigit()
    assert len(answer.names) == 3


def test_refusals_and_empty_answers_of_a_stale_feed_say_so_too(serve):
    """A 404 of a stale feed says less than one of a live feed: the object may have come since."""
    gone = f"{PODS}?resourceVersion=1&resourceVersionMatch=Exact"
    asked = {f"{PODS}/nope": 404, gone: 410, f"{PODS}?labelSelector=a%3Dnone": 200, f"{PODS}?watch=1&resourceVersion=1&timeoutSeconds=1": 200,
             f"{PODS}?resourceVersion=999999999": 504}
    for path, status in asked.items():
        answer = serve.ask(path)
        assert answer.status == status and "warning" not in answer.headers, path
    serve.store.reflector_process.kill()
    eventually(lambda: "warning" in serve.ask(PODS).headers)
    for path, status in asked.items():
        answer = serve.ask(path)
        assert answer.status == status and answer.headers["age"].isdigit(), path
        assert answer.headers["warning"].startswith('299 - "pods: stale since 20'), path
    with WebSocket(serve.socket, f"{PODS}?watch=1&resourceVersion=0") as client:
        assert client.status == 101 and client.headers["warning"].startswith('299 - "pods: stale since 20')


def test_s70_a_slow_client_gets_everything(serve):
    rv = serve.ask(ALL).rv
    with serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as slow, serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as fast:
        serve.simulator.create("pods", 300, size=20000)  # 6 MB, far more than a socket holds
        assert [e[0] for e in fast.next(300)] == ["ADDED"] * 300
        assert [e[0] for e in slow.next(300)] == ["ADDED"] * 300


def test_s94_a_thousand_watches(serve):
    """Each gets each event, and costs less than a buffer of its own would."""
    rv, pid = serve.ask(ALL).rv, serve.process.pid
    serve.simulator.create("pods", 30, size=20000)  # 600 kB for each watch

    def memory():
        fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        return int(fields["RssAnon"].split()[0])

    watches = [serve.watch(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=300") for _ in range(500)]
    before = memory()
    watches += [serve.watch(f"{ALL}?watch=1&resourceVersion={rv}&timeoutSeconds=300") for _ in range(500)]
    serve.simulator.put("pods", pod("last", "web"))
    grown = memory() - before
    assert grown < 500 * 400, f"{grown} KiB for 500 watches that read nothing yet, of 600 kB each"
    for watch in watches:
        events = watch.next(31)
        assert [e[0] for e in events] == ["ADDED"] * 31 and events[-1][1] == "last"
        watch.connection.close()


def test_s92_clients_that_go_away_leave_nothing(serve):
    serve.simulator.create("pods", 300, size=20000)
    serve.store.wait_equal(serve.simulator, "pods")

    def descriptors():
        return len(os.listdir(f"/proc/{serve.process.pid}/fd"))

    serve.ask(ALL)
    before = descriptors()
    for _ in range(20):
        watch = serve.watch(f"{ALL}?watch=1&resourceVersion=0")
        watch.connection.close()
        connection = serve.client.connect()
        connection.request("GET", ALL)
        connection.close()
    eventually(lambda: descriptors() <= before, what="the connections are closed here also")
    assert len(serve.ask(ALL).names) == 304
