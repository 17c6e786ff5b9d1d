# SPDX-License-Identifier: Apache-2.0
"""Groups of watches of kinf-serve: an event is shown only to the groups of its name, namespace,
field or label, present or former. Each watch must have seen live the events replayed by the API
server for its query."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.objects import pod
from harness.serve import METADATA, TABLE, Serve, brief
from harness.store import whole

NAMESPACES, NODES, APPS = ("web", "shop", "a-b"), ("n1", "n2", "n3"), ("front", "back", "x")
QUERIES = [
    ("/api/v1/pods", ""),
    ("/api/v1/namespaces/web/pods", ""),
    ("/api/v1/namespaces/shop/pods", "labelSelector=app%3Dfront&"),
    ("/api/v1/namespaces/web/pods", "fieldSelector=metadata.name%3Dp1&"),
    ("/api/v1/pods", "fieldSelector=metadata.name%3Dp1&"),
    ("/api/v1/pods", "fieldSelector=metadata.namespace%3Dshop&"),
    *(("/api/v1/pods", f"fieldSelector=spec.nodeName%3D{node}&") for node in (*NODES, "")),
    ("/api/v1/pods", "fieldSelector=spec.nodeName!%3Dn1&"),
    ("/api/v1/pods", "fieldSelector=spec.nodeName%3Dn1,status.phase%3DRunning&"),
    *(("/api/v1/pods", f"labelSelector=app%3D{app}&") for app in APPS),
    ("/api/v1/pods", "labelSelector=app%3Dfront&fieldSelector=spec.nodeName%3Dn2&"),
    ("/api/v1/pods", "labelSelector=app%20in%20(front,back)&"),
    ("/api/v1/pods", "labelSelector=!app&"),
]


@pytest.fixture
def serve(simulator, store):
    for namespace in NAMESPACES:
        for i in range(3):
            item = pod(f"p{i}", namespace)
            item["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"  # days old in all Tables
            simulator.put("pods", item)
    store.start(simulator, whole("pods"), serve={"listen": ["unix"]})
    return Serve(store, simulator)


def change(simulator, rng):
    namespace, name = rng.choice(NAMESPACES), f"p{rng.randrange(4)}"
    key = f"{namespace}/{name}"
    step = rng.randrange(6)
    if key not in simulator.truth("pods"):
        return simulator.put("pods", pod(name, namespace, app=rng.choice(APPS), node=rng.choice(NODES)))
    if step == 0:
        return simulator.delete("pods", key)
    if step < 3:
        return simulator.patch("pods", key, {"spec": {"nodeName": rng.choice((*NODES, None))}})
    if step < 5:
        return simulator.patch("pods", key, {"metadata": {"labels": {"app": rng.choice((*APPS, None))}}})
    return simulator.patch("pods", key, {"status": {"phase": rng.choice(("Running", "Pending"))}})


def test_each_group_sees_what_is_for_it(serve):
    rng = random.Random(5)
    rv = serve.ask("/api/v1/pods").rv
    watches = []

    def begin():
        watches.extend((path, query, serve.watch(f"{path}?watch=1&{query}resourceVersion={rv}&timeoutSeconds=8"))
                       for path, query in QUERIES)

    begin()
    for i in range(120):
        last = change(serve.simulator, rng)
        if i == 40:
            begin()  # of the same groups, with something to catch up with
    serve.wait_rv(last)
    with ThreadPoolExecutor(len(QUERIES)) as pool:  # each answer of the API server takes its second
        answers = pool.map(lambda asked: serve.server.ask(
            f"{asked[0]}?watch=1&{asked[1]}resourceVersion={rv}&timeoutSeconds=1").events, QUERIES)
        expected_of = dict(zip(QUERIES, answers))
    for path, query, watch in watches:
        with watch:
            expected = expected_of[path, query]
            assert watch.rest() == expected, f"{path}?{query}"
            assert expected, query


@pytest.mark.parametrize("accept", [TABLE, METADATA])
def test_forms_have_groups_of_their_own(serve, accept):
    rv = serve.ask("/api/v1/pods").rv
    path = f"/api/v1/pods?watch=1&labelSelector=app%3Dfront&resourceVersion={rv}&timeoutSeconds=3"
    plain = [serve.watch(path) for _ in range(3)]
    formed = [serve.watch(path, accept=accept) for _ in range(3)]
    for i in range(4):
        rv = serve.simulator.patch("pods", "web/p1", {"spec": {"nodeName": f"n{i}"}})
    seen, other = [watch.rest() for watch in plain], [watch.rest() for watch in formed]
    assert seen[0] == seen[1] == seen[2] and len(seen[0]) == 4
    assert other[0] == other[1] == other[2] and len(other[0]) == 4
    assert brief(seen[0][-1]) == ("MODIFIED", "p1", str(rv))
    assert other[0][0]["object"]["kind"] == ("Table" if accept == TABLE else "PartialObjectMetadata")
    if accept == TABLE:
        assert other[0][0]["object"]["columnDefinitions"] and not other[0][1]["object"]["columnDefinitions"]


def test_a_watch_that_no_event_is_for_goes_on_from_the_newest_version(serve):
    with serve.watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dnone&allowWatchBookmarks=true&timeoutSeconds=4"
                     f"&resourceVersion={serve.ask('/api/v1/pods').rv}") as watch:
        for i in range(30):
            rv = serve.simulator.patch("pods", "web/p1", {"spec": {"nodeName": f"n{i}"}})
        bookmark = watch.rest()[-1]
    assert brief(bookmark) == ("BOOKMARK", None, str(rv))


def test_a_relist_reaches_every_group(serve):
    rv = serve.ask("/api/v1/pods").rv
    watches = [serve.watch(f"/api/v1/pods?watch=1&{query}resourceVersion={rv}") for query in
               ("", "labelSelector=app%3Dfront&", "fieldSelector=spec.nodeName%3Dn1&", "fieldSelector=metadata.name%3Dp2&")]
    serve.simulator.down()
    serve.simulator.delete("pods", "web/p2")
    serve.simulator.compact()
    serve.simulator.up()
    for watch in watches:
        with watch:
            assert watch.next()[:2] == ("DELETED", "p2")
    serve.simulator.patch("pods", "web/p1", {"spec": {"nodeName": "n1"}})
