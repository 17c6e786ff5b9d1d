# SPDX-License-Identifier: Apache-2.0
"""Lists and first objects of watches answered by an index of the cache: the same as by a walk, and
the metrics to tell them apart."""

import urllib.parse

import pytest

from harness import eventually
from harness.objects import pod
from harness.serve import INITIAL, TABLE, Serve, metrics
from harness.store import whole

ALL, WEB = "/api/v1/pods", "/api/v1/namespaces/web/pods"
MANY = 2100  # more have a label than an index is used for


def put(serve, name, app):
    """Waits until the cache has it, and returns its version."""
    rv = serve.simulator.put("pods", pod(name, "web", app=app))
    serve.wait_rv(rv)
    return rv


@pytest.fixture(scope="module")
def serve(shared):
    simulator = shared.simulator()
    simulator.create("pods", MANY, size=1000, namespaces=3)
    for i in range(60):
        simulator.put("pods", pod(f"p{i:02}", ("web", "shop")[i % 2], app=f"app{i % 9}", node=f"n{i % 7}", phase=("Running", "Failed")[i % 3 == 0]))
    store = shared.store(simulator=simulator)
    store.start_synced(whole("pods", indexes={"node": "spec.nodeName"}), serve={"listen": ["unix"], "metrics": "127.0.0.1:0"})
    return Serve(store, simulator)


def lists(serve, index):
    return metrics(serve.store).get(f'apiserver_cache_list_total{{group="",resource="pods",index="{index}"}}', 0)


def query(**parameters):
    return "?" + urllib.parse.urlencode(parameters)


@pytest.mark.parametrize("path,parameters,index", [
    (ALL, {"labelSelector": "app=app7"}, "term"),
    (WEB, {"labelSelector": "app=app7"}, "term"),
    (ALL, {"fieldSelector": "spec.nodeName=n3"}, "term"),
    (WEB, {"fieldSelector": "spec.nodeName=n3,status.phase!=Failed"}, "term"),
    (ALL, {"labelSelector": "app in (app7,app8),app,app!=app8", "fieldSelector": "spec.nodeName=n2"}, "term"),
    (ALL, {"labelSelector": "app=none"}, "term"),
    (ALL, {"labelSelector": "app.kubernetes.io/managed-by=Helm"}, ""),  # too many
    (ALL, {"labelSelector": "app!=app7"}, ""),
    (ALL, {"fieldSelector": "spec.nodeName!=n3"}, ""),
    (ALL, {"fieldSelector": "status.phase=Failed"}, ""),  # no index
    (WEB, {"labelSelector": "app=app7", "fieldSelector": "metadata.name=p16"}, ""),  # one key
])
def test_lists_by_an_index_are_those_of_the_api_server(serve, path, parameters, index):
    before = lists(serve, index)
    server, ours = serve.both(path + query(**parameters))
    assert ours.json["items"] == server.json["items"]
    assert lists(serve, index) == before + 1


def test_a_list_over_http2_that_is_begun_again_says_and_counts_all_once(serve):
    """Its first 128 KiB are made twice: the second table had no columns."""
    wanted = serve.ask(ALL, accept=TABLE).json
    listed = lists(serve, "")
    table = serve.http2.ask(ALL, accept=TABLE).json
    assert [column["name"] for column in table["columnDefinitions"]][:2] == ["Name", "Ready"]
    for row in table["rows"] + wanted["rows"]:
        row["cells"][4] = "age"
    assert table == wanted
    assert lists(serve, "") == listed + 1


def test_pages_by_an_index_show_one_state(serve):
    selector = {"labelSelector": "app=app1", "limit": 3}
    wanted = serve.server.ask(ALL + query(labelSelector="app=app1")).names
    page = serve.ask(ALL + query(**selector))
    names, pages = page.names, 1
    for name in (wanted[-1], wanted[-2]):  # changes between the pages are not seen
        serve.simulator.put("pods", pod(name, "shop" if int(name[1:]) % 2 else "web", app="other"))
    put(serve, "p00a", "app1")
    while token := page.json["metadata"].get("continue"):
        assert "remainingItemCount" not in page.json["metadata"], "it is not known how many match"
        page = serve.ask(ALL + query(**selector, **{"continue": token}))
        names, pages = names + page.names, pages + 1
    assert names == wanted
    assert pages == -(-len(wanted) // 3), "the last page is not full, or nothing follows it"
    now = serve.ask(ALL + query(labelSelector="app=app1"))
    assert set(now.names) == set(wanted[:-2]) | {"p00a"}


def test_an_old_state_by_an_index(serve):
    selector = {"labelSelector": "app=app2"}
    before = serve.ask(ALL + query(**selector))
    serve.simulator.delete("pods", "web/p02")
    put(serve, "p20", "other")
    put(serve, "p21a", "app2")
    old = serve.ask(ALL + query(**selector, resourceVersion=before.rv, resourceVersionMatch="Exact"))
    assert old.json["items"] == before.json["items"] and old.rv == before.rv
    assert set(serve.ask(ALL + query(**selector)).names) == set(before.names) - {"p02", "p20"} | {"p21a"}


def test_a_watch_begins_with_the_objects_of_an_index_and_goes_on(serve):
    selector = query(labelSelector="app=app3")[1:]
    wanted = serve.ask(f"{ALL}?{selector}").names
    with serve.watch(f"{ALL}?{INITIAL}&{selector}&allowWatchBookmarks=true") as watch:
        events = watch.next(len(wanted) + 1)
        assert [event[:2] for event in events[:-1]] == [("ADDED", name) for name in wanted]
        assert events[-1][0] == "BOOKMARK"
        rv = put(serve, "p00b", "app3")
        assert watch.next() == ("ADDED", "p00b", rv)


def test_events_are_kept_only_until_their_watches_have_taken_them(serve):
    """Events of ended watches used to take 64 MiB for good."""
    kept = lambda: metrics(serve.store)["kinf_serve_frame_bytes"]
    n, rv = len(serve.ask(ALL).names), serve.ask(ALL + "?limit=1").rv
    eventually(lambda: kept() == 0)
    with serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as reader, serve.watch(f"{ALL}?watch=1&resourceVersion={rv}") as idle:
        serve.wait_rv(serve.simulator.touch("pods"))
        reader.next(n)
        assert kept() > 0, "one watch has not caught up"
        idle.next(n)
        eventually(lambda: kept() == 0)
        serve.wait_rv(serve.simulator.touch("pods"))
        reader.next(n)
        assert kept() > 0
    eventually(lambda: kept() == 0, what="the end of the group")


def test_metrics_of_watches_and_answers(serve):
    before = metrics(serve.store)
    feed = '{group="",resource="pods"}'
    with serve.watch(f"{ALL}?{INITIAL}&labelSelector=app%3Dapp4&allowWatchBookmarks=true") as watch, \
            serve.watch(f"{ALL}?watch=1&resourceVersion=0&labelSelector=app%3Dapp4") as other:
        n = 0
        while watch.next()[0] == "ADDED":
            n += 1
        other.next(n)
        during, events = metrics(serve.store), 'apiserver_watch_events_total{group="",version="v1",resource="pods"}'
        assert during["kinf_serve_watchers"] == 2 and during[events] - before.get(events, 0) == 2 * n
    assert serve.ask(ALL + "?resourceVersion=1&resourceVersionMatch=Exact").status == 410
    assert metrics(serve.store)[f"kinf_serve_gone_total{feed}"] == before.get(f"kinf_serve_gone_total{feed}", 0) + 1
