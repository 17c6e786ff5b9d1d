# SPDX-License-Identifier: Apache-2.0
"""The view of kinf-serve's clients while feeds come and go, and while one of the processes behind
it ends in the middle of their work."""

import json
import shutil
import signal

import pytest

from harness import eventually
from harness.objects import pod
from harness.serve import TABLE, Serve
from harness.store import whole

PODS = "/api/v1/pods"
MAPS = "/api/v1/configmaps"


@pytest.fixture
def serve(simulator, store):
    for i in range(10):
        simulator.put("pods", pod(f"p{i}", "web"))
    simulator.put("configmaps", {"metadata": {"name": "m", "namespace": "web"}})
    configure(store, "pods", "configmaps")
    store.processor_process, store.reflector_process = store.daemons()
    store.wait_equal(simulator, "pods")
    store.wait_synced("configmaps")
    return Serve(store, simulator)


def configure(store, *feeds):
    store.configure(*(whole(feed) for feed in feeds), serve={"listen": ["unix"]})


def test_watches_of_a_feed_that_is_removed_end_and_its_reads_name_it(serve):
    watch, other = serve.watch(f"{MAPS}?watch=1&resourceVersion=0&timeoutSeconds=600"), serve.watch(f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}")
    with watch, other:
        assert watch.next()[:2] == ("ADDED", "m")
        configure(serve.store, "pods")
        serve.store.reflector_process.send(signal.SIGHUP)
        assert watch.rest() == [], "a Status of 410 would make clients list it again"
        missing = eventually(lambda: (a := serve.ask(MAPS)).status == 404 and a, what="the feed is gone")
        assert "no feed that holds configmaps" in missing.message
        assert "configmaps" not in {r["name"] for r in serve.ask("/api/v1").json["resources"]}
        serve.simulator.put("pods", pod("later", "web"))
        assert other.next()[:2] == ("ADDED", "later"), "watches of other feeds go on"
    configure(serve.store, "pods", "configmaps")
    serve.store.reflector_process.send(signal.SIGHUP)
    eventually(lambda: serve.ask(MAPS).status == 200, what="the feed is back")
    with serve.watch(f"{MAPS}?watch=1&resourceVersion=0") as watch:
        assert watch.next()[:2] == ("ADDED", "m")


def test_names_categories_and_columns_follow_the_definition(simulator, store):
    """As after `kubectl apply` of a definition with other ones; the definitions themselves are not in the cache."""
    group, definitions = "late.example.com", "customresourcedefinitions.apiextensions.k8s.io"
    feeds = [f"{plural}.{group}" for plural in ("gadgets", "gizmos")]

    def define(short, column):
        for feed in feeds:
            plural = feed.split(".")[0]
            kind = plural[:-1].capitalize()
            simulator.add_kind(group=group, version="v1", resource=plural, kind=kind, shortName=short + plural[:2], category=f"all-{short}")
            simulator.put(feed, {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a", "namespace": "web"}})
            columns = [{"name": column, "type": "string", "jsonPath": ".metadata.name"}]
            simulator.put(definitions, {"metadata": {"name": feed}, "spec": {
                "group": group, "versions": [{"name": "v1", "additionalPrinterColumns": columns}]}})

    def shown(serve):
        names = {r["name"]: r["shortNames"] + r["categories"] for r in serve.ask(f"/apis/{group}/v1").json["resources"]}
        columns = serve.ask(f"/apis/{group}/v1/gadgets", accept=TABLE).json["columnDefinitions"]
        return names, [c["name"] for c in columns]

    def called(name):
        return store.kinf("get", name, "-o", "name").stdout

    simulator.add_kind(group="apiextensions.k8s.io", version="v1", resource="customresourcedefinitions",
                       kind="CustomResourceDefinition", namespaced=False)
    define("x", "Old")
    # One resource is named, the other one is a wildcard's.
    store.configure(whole(feeds[0]), whole(f"*.{group}"), recheck="200ms", backoff={"min": "20ms", "max": "100ms"}, serve={"listen": ["unix"]})
    _, reflector = store.daemons()
    for feed in feeds:
        store.wait_equal(simulator, feed)
    serve = Serve(store, simulator)
    eventually(lambda: shown(serve) == ({"gadgets": ["xga", "all-x"], "gizmos": ["xgi", "all-x"]}, ["Name", "Old"]))
    assert called("all-x") == f"gadget.{group}/a\ngizmo.{group}/a\n"

    simulator.down()
    for feed in feeds:
        simulator.remove_kind(feed)
    define("y", "New")
    simulator.compact()
    simulator.up()
    eventually(lambda: shown(serve)[0] == {"gadgets": ["yga", "all-y"], "gizmos": ["ygi", "all-y"]}, what="the names of now")
    assert called("ygi") == f"gizmo.{group}/a\n" and called("yga") == f"gadget.{group}/a\n" and called("xga") == called("all-x") == ""
    assert called("all-y") == f"gadget.{group}/a\ngizmo.{group}/a\n"
    reflector.kill()  # the next one reads the definitions at once, this one after ten minutes
    store.reflector()
    eventually(lambda: shown(serve)[1] == ["Name", "New"], what="the columns of now")


def test_answers_of_a_deprecated_version_have_a_warning(simulator, store):
    """As kubectl prints it of a kube-apiserver."""
    group, definitions = "old.example.com", "customresourcedefinitions.apiextensions.k8s.io"
    path = f"/apis/{group}/v1/gadgets"

    def define(**version):
        simulator.put(definitions, {"metadata": {"name": f"gadgets.{group}"}, "spec": {
            "group": group, "names": {"kind": "Gadget"}, "versions": [{"name": "v1", "served": True, **version}, {"name": "v2", "served": True}]}})

    def warning(*path_, **headers):
        return serve.ask("".join((path, *path_)), **headers).headers.get("warning")

    simulator.add_kind(group=group, version="v1", resource="gadgets", kind="Gadget", namespaced=False)
    simulator.put(f"gadgets.{group}", {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": "a"}})
    simulator.add_kind(group="apiextensions.k8s.io", version="v1", resource="customresourcedefinitions",
                       kind="CustomResourceDefinition", namespaced=False)
    define()
    store.configure(whole(f"gadgets.{group}"), whole(definitions), serve={"listen": ["unix"]})
    store.daemons()
    store.wait_equal(simulator, f"gadgets.{group}")
    store.wait_equal(simulator, definitions)
    serve = Serve(store, simulator)
    assert serve.ask(path).names == ["a"] and warning() is None
    define(deprecated=True)
    text = f'299 - "{group}/v1 Gadget is deprecated; use {group}/v2 Gadget"'
    eventually(lambda: warning() == text, what="the warning of a list")
    assert warning("/a") == warning("/missing") == warning(accept=TABLE) == warning("?fieldSelector=spec.x=1") == text
    with serve.watch(f"{path}?watch=1") as watch:
        assert watch.response.getheader("warning") == text
    define(deprecated=True, deprecationWarning='"no" \\ never')
    eventually(lambda: warning() == '299 - "\\"no\\" \\\\ never"', what="the warning of the definition")


def test_reload_of_a_copy_does_not_reach_the_kinf_serve_of_the_original(serve):
    """The copy names the same runtime directory."""
    store = serve.store
    copy = store.directory / "copy"
    shutil.copytree(store.path, copy)
    result = store.kinf("reload", "--store", str(copy))
    assert result.status == 1 and result.stdout == "" and "no daemon runs on store" in result.stderr, result
    assert "kinf-serve: uses" in store.kinf("reload", check=True).stdout


def test_pages_go_on_while_the_processor_is_dead_and_after_it_has_come_back(serve):
    whole_list = serve.ask(PODS).json["items"]
    found, token = [], ""
    for page in range(5):
        answer = serve.ask(f"{PODS}?limit=2" + (f"&continue={token}" if token else ""))
        assert answer.status == 200, answer.body
        found += answer.json["items"]
        token = answer.json["metadata"].get("continue", "")
        if page == 1:
            serve.store.processor_process.kill()
        if page == 2:
            serve.simulator.put("pods", pod("p0", "web", app="changed"))
            serve.simulator.delete("pods", "web/p9")
        if page == 3:
            serve.store.processor()
            serve.store.wait_equal(serve.simulator, "pods")
    assert found == whole_list and not token


def test_daemons_that_end_in_order_leave_kinf_serve_its_files(serve):
    """Its clients notice nothing of a restart of `kinf run`."""
    store, stopped = serve.store, [serve.store.reflector_process, serve.store.processor_process]
    with serve.watch(f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}") as watch:
        assert [process.stop() for process in stopped] == [0, 0]
        assert len(serve.ask(PODS).names) == 10
        for process in stopped:
            process.start()
        serve.simulator.put("pods", pod("later", "web"))
        assert watch.next()[:2] == ("ADDED", "later")
    assert [process.stop() for process in [*stopped, serve.process]] == [0, 0, 0]
    assert list(store.runtime.iterdir()) == [], "the last one removes the runtime directory"


def test_a_list_that_is_being_sent_survives_the_processor(serve):
    serve.simulator.create("pods", 2000, size=4000)
    serve.store.wait_equal(serve.simulator, "pods")
    connection = serve.client.connect()
    connection.request("GET", PODS)
    response = connection.getresponse()
    text = response.read(100000)
    serve.store.processor_process.kill()
    text += response.read()
    assert len(json.loads(text)["items"]) == 2010
    connection.close()


def test_a_thousand_watches_end_cleanly_at_sigterm(serve):
    rv = serve.ask(PODS).rv
    watches = [serve.watch(f"{PODS}?watch=1&resourceVersion={rv}&allowWatchBookmarks=true") for _ in range(1000)]
    assert serve.process.kill(signal.SIGTERM) == 0
    for watch in watches:
        mark, = watch.rest()  # read to the end of the chunked body
        assert mark["type"] == "BOOKMARK" and int(mark["object"]["metadata"]["resourceVersion"]) >= int(rv)
        watch.connection.close()
