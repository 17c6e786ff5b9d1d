# SPDX-License-Identifier: Apache-2.0
"""kinf-serve answers as the API server does (docs/protocol.md 18.3, cases S): the simulated API
server and kinf-serve are asked the same where the simulator knows the answer; where kube-apiserver
says more than the simulator, its words are here."""

import base64
import gzip
import json
import platform
import subprocess
import urllib.parse

import pytest

from harness import eventually, protobuf
from harness.objects import pod
from harness.serve import METADATA, METADATA_LIST, TABLE, Serve
from harness.store import whole

PODS = "/api/v1/namespaces/web/pods"


def fill(simulator):
    for namespace in ("web", "a-b", "a"):
        for i in range(6):
            simulator.put("pods", pod(f"p{i}", namespace, app=f"app{i % 3}", node=f"n{i % 2}",
                                      phase="Running" if i else "Pending"))
    simulator.put("nodes", {"metadata": {"name": "n1"}, "spec": {}})


@pytest.fixture(scope="module")
def serve(shared):
    simulator = shared.simulator()
    fill(simulator)
    simulator.put("widgets", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "web"}, "spec": {"ratio": 1.5}})
    store = shared.store(simulator=simulator)
    store.configure(whole("pods"), whole("nodes"), whole("widgets.example.com"), whole("configmaps", namespaces=["web"]),
                    serve={"listen": ["unix"]})
    store.daemons()
    for feed in ("pods", "nodes", "widgets.example.com", "configmaps"):
        store.wait_synced(feed)
    return Serve(store, simulator)


def quoted(text):
    return urllib.parse.quote(text)


# ---- lists and objects ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", [
    PODS,  # S01
    "/api/v1/pods",  # S02
    "/api/v1/namespaces/zzz/pods",  # S03
    "/api/v1/nodes",
    "/apis/example.com/v1/widgets",  # S93
    "/api/v1/pods?labelSelector=app%3Dapp1",  # S11
    "/api/v1/pods?labelSelector=app!%3Dapp1",  # S12
    "/api/v1/pods?labelSelector=" + quoted("app in (app1,app2),!x"),  # S13
    "/api/v1/pods?labelSelector=" + quoted("app in ()"),  # S14
    "/api/v1/pods?fieldSelector=status.phase%3DRunning",  # S19
    "/api/v1/pods?fieldSelector=status.phase!%3DRunning",
    "/api/v1/pods?fieldSelector=metadata.name%3Dp1",  # S20
    PODS + "?fieldSelector=metadata.name%3Dp1",
    "/api/v1/pods?fieldSelector=,metadata.name%3Dp1,",  # S25
    "/api/v1/pods?fieldSelector=metadata.namespace%3Da",
    "/api/v1/pods?resourceVersion=0",  # S31
    "/api/v1/pods?watch=0",  # S46
    "/api/v1/pods?unknown=1&labelSelector=app%3Dapp1&labelSelector=app%3Dapp2",  # S90
])
def test_s01_s02_s03_s11_s12_s13_s14_s19_s20_s25_s31_s46_s90_s93_lists_are_the_api_servers(serve, path):
    server, ours = serve.both(path)
    assert (server.status, ours.status) == (200, 200)
    theirs, answer = server.json, ours.json
    assert answer["items"] == theirs["items"]
    assert (answer["kind"], answer["apiVersion"]) == (theirs["kind"], theirs["apiVersion"])
    assert ours.headers["content-type"] == "application/json"
    assert int(ours.rv) >= max((int(i["metadata"]["resourceVersion"]) for i in answer["items"]), default=0)


def test_s02_keys_are_in_the_order_of_their_bytes(serve):
    names = [(i["metadata"]["namespace"]) for i in serve.ask("/api/v1/pods").json["items"]]
    assert names == ["a-b"] * 6 + ["a"] * 6 + ["web"] * 6


def test_s04_an_object_has_its_type_first(serve):
    server, ours = serve.both(PODS + "/p1")
    assert ours.json == {"kind": "Pod", "apiVersion": "v1", **server.json}
    assert list(ours.json)[:2] == ["kind", "apiVersion"]
    assert ours.body.endswith(b"}\n") and b"\n " not in ours.body
    assert serve.ask(PODS + "/p1", method="HEAD").status == 200


def test_s18_labels_are_compared_as_numbers(serve):
    for name, labels in (("n4", {"n": "4"}), ("n3", {"n": "3"}), ("nx", {"n": "x"}), ("none", {})):
        serve.simulator.put("configmaps", {"metadata": {"name": name, "namespace": "web", "labels": labels}})
    path = "/api/v1/namespaces/web/configmaps"
    eventually(lambda: len(serve.ask(path).names) == 4)
    for selector, names in (("n>3", ["n4"]), ("n<4", ["n3"]), ("n>2,n<5", ["n3", "n4"]), ("n>9", [])):
        server, ours = serve.both(f"{path}?labelSelector={quoted(selector)}")
        assert ours.names == names and ours.json["items"] == server.json["items"]
    for selector in ("n>x", "n>", "n>1.5"):
        assert serve.ask(f"{path}?labelSelector={quoted(selector)}").status == 400
    serve.simulator.delete_many("configmaps")


def test_s24_s26_s27_escapes_and_other_names_of_fields(serve):
    assert serve.ask(PODS + "?fieldSelector=" + quoted("metadata.name=a\\,b")).names == []
    bad = serve.ask(PODS + "?fieldSelector=" + quoted("metadata.name=a\\x"))
    assert (bad.status, bad.message) == (400, "invalid field selector: invalid escape sequence: \\x")
    host, node = (serve.ask(f"{PODS}?fieldSelector={name}%3Dn1").names for name in ("spec.host", "spec.nodeName"))
    assert host == node and host
    assert serve.ask(f"{PODS}?fieldSelector=status.podIPs%3D10.0.0.1").names == []


# ---- refusals ------------------------------------------------------------------------------------

INVALID = 'ListOptions.meta.k8s.io "" is invalid: '


@pytest.mark.parametrize("path, status, reason, message", [
    (PODS + "/nope", 404, "NotFound", 'pods "nope" not found'),  # S05
    ("/apis/example.com/v1/namespaces/web/widgets/x", 404, "NotFound", 'widgets.example.com "x" not found'),  # S06
    ("/api/v1/pods/p1", 404, "NotFound", "the server could not find the requested resource"),  # S07
    ("/api/v1/watch/pods/p1", 404, "NotFound", "the server could not find the requested resource"),
    ("/api/v1/namespaces/web/nodes", 404, "NotFound", "the server could not find the requested resource"),  # S08
    ("/api/v1/nosuch", 404, "NotFound", None),  # S09
    ("/apis/none/v1/x", 404, "NotFound", None),
    ("/api/v9/pods", 404, "NotFound", "the server could not find the requested resource: kinf-serve has no feed that holds "
     "pods.v9; add it to the feeds in kinf.yaml"),
    ("/nothing", 404, "NotFound", "the server could not find the requested resource"),
    ("/api/v1/namespaces/web/pods/%2e%2e", 404, "NotFound", None),  # S91
    ("/api/v1/namespaces/web/pods/p1%2Flog", 404, "NotFound", None),
    ("/api/v1/pods?labelSelector=app%20in%20(web", 400, "BadRequest",  # S15
     "unable to parse requirement: found '', expected: ',' or ')'"),
    ("/api/v1/pods?labelSelector=a,", 400, "BadRequest", "found '', expected: identifier after ','"),  # S16
    ("/api/v1/pods?labelSelector=_a", 400, "BadRequest",  # S17
     "unable to parse requirement: <nil>: Invalid value: \"_a\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
    ("/api/v1/pods?fieldSelector=foo%3Dbar", 400, "BadRequest", "field label not supported: foo"),  # S21
    ("/apis/example.com/v1/widgets?fieldSelector=foo%3Dbar", 400, "BadRequest", "field label not supported: foo"),
    ("/api/v1/pods?fieldSelector=foo", 400, "BadRequest", "invalid selector: 'foo'; can't understand 'foo'"),  # S23
    ("/api/v1/pods?limit=abc", 400, "BadRequest", 'strconv.ParseInt: parsing "abc": invalid syntax'),  # S29
    ("/api/v1/pods?limit=", 400, "BadRequest", 'strconv.ParseInt: parsing "": invalid syntax'),
    ("/api/v1/pods?resourceVersionMatch=Exact", 422, "Invalid", INVALID +  # S37
     "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
    ("/api/v1/pods?resourceVersion=0&resourceVersionMatch=Exact", 422, "Invalid", INVALID +  # S38
     'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
    ("/api/v1/pods?resourceVersion=1&resourceVersionMatch=foo", 422, "Invalid", INVALID +  # S39
     'resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""'),
    ("/api/v1/pods?resourceVersionMatch=foo&continue=x", 422, "Invalid", INVALID +  # S40
     "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, "
     "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided, "
     'resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""]'),
    ("/api/v1/pods?sendInitialEvents=false", 422, "Invalid", INVALID +  # S41
     "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ("/api/v1/pods?resourceVersion=abc", 400, "BadRequest",  # S42
     'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'),
    (PODS + "/p1?resourceVersion=abc", 400, "BadRequest", None),
    ("/api/v1/pods?watch=1&resourceVersion=abc", 400, "BadRequest", None),
    ("/api/v1/pods?watch=1&resourceVersion=99999999999999999999", 400, "BadRequest",
     'invalid resource version: resourceVersion: Invalid value: "99999999999999999999": strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ("/api/v1/pods?watch=1&resourceVersion=99999999999999999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 400, "BadRequest", None),
    ("/api/v1/pods?resourceVersion=a%22b", 400, "BadRequest",
     'invalid resource version: resourceVersion: Invalid value: "a\\"b": strconv.ParseUint: parsing "a\\"b": invalid syntax'),
    ("/api/v1/pods?continue=%25%25", 400, "BadRequest", None),  # S43
    ("/api/v1/pods?watch=1&sendInitialEvents=true", 422, "Invalid", None),  # S64
    ("/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", 422, "Invalid", INVALID +  # S65
     "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, "
     'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]'),
    ("/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan", 422, "Invalid", INVALID +  # S66
     "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
    ("/api/v1/pods?watch=1&timeoutSeconds=x", 400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),  # S60
    ("/api/v1/watch/namespaces/web/pods/a?fieldSelector=metadata.name%3Db", 400, "BadRequest",  # S74
     "fieldSelector metadata.name doesn't match requested name"),
    ("/api/v1/configmaps", 404, "NotFound", None),  # only the feed of one namespace
    ("/api/v1/namespaces/a/configmaps", 404, "NotFound", None),
])
def test_s05_s06_s07_s08_s09_s15_s16_s17_s21_s23_s29_s37_s38_s39_s40_s41_s42_s43_s60_s64_s65_s66_s74_s91_refusals_are_status_objects_in_the_api_servers_words(serve, path, status, reason, message):
    answer = serve.ask(path)
    refused = answer.json
    assert (answer.status, refused["code"], refused["reason"], refused["kind"]) == (status, status, reason, "Status")
    assert refused["status"] == "Failure" and refused["metadata"] == {}
    if message:
        assert refused["message"] == message


def test_s44_a_token_and_a_version_exclude_each_other(serve):
    token = serve.ask("/api/v1/pods?limit=1").json["metadata"]["continue"]
    answer = serve.ask(f"/api/v1/pods?continue={token}&resourceVersion=5")
    assert (answer.status, answer.message) == (400, "specifying resource version is not allowed when using continue")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_s10_writes_are_not_allowed(serve, method):
    answer = serve.ask(PODS + "/p1", method=method, body="{}" if method != "DELETE" else None)
    assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed")
    assert serve.ask(PODS + "/p1/log").status == 405


# ---- versions ------------------------------------------------------------------------------------


def test_s33_a_version_that_does_not_come_is_a_timeout_with_its_cause(serve):
    answer = serve.ask("/api/v1/pods?resourceVersion=99999999")
    assert (answer.status, answer.json["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    details = answer.json["details"]
    assert details["causes"][0]["reason"] == "ResourceVersionTooLarge" and details["retryAfterSeconds"] == 1
    assert answer.message.startswith("Timeout: Too large resource version: 99999999, current: ")
    assert serve.ask(PODS + "/p1?resourceVersion=99999999").status == 504


def test_s32_s34_a_version_that_comes_is_waited_for(serve):
    for i in range(10):
        rv = serve.simulator.put("pods", pod("waited", "web", app=f"w{i}"))
        answer = serve.ask(f"{PODS}?resourceVersion={rv}")
        assert answer.status == 200 and int(answer.rv) >= int(rv)
        assert serve.ask(f"{PODS}/waited?resourceVersion={rv}").json["metadata"]["labels"]["app"] == f"w{i}"
    serve.wait_rv(serve.simulator.delete("pods", "web/waited"))


def test_s35_s36_exact_lists_show_the_state_of_their_version(serve):
    before = serve.ask("/api/v1/pods")
    rv = before.rv
    serve.simulator.put("pods", pod("p3", "web", app="changed"))
    serve.simulator.put("pods", pod("new", "a"))
    serve.simulator.delete("pods", "a-b/p2")
    last = serve.simulator.put("pods", pod("p2", "a-b"))
    serve.wait_rv(last)
    again = serve.ask(f"/api/v1/pods?resourceVersion={rv}&resourceVersionMatch=Exact")
    assert again.body == before.body
    legacy = serve.ask(f"/api/v1/pods?resourceVersion={rv}&limit=100")
    assert legacy.body == before.body
    newer = serve.ask(f"/api/v1/pods?resourceVersion={rv}&resourceVersionMatch=NotOlderThan")
    assert int(newer.rv) >= int(last) and newer.body != before.body
    old = serve.ask("/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact")  # S35
    assert (old.status, old.json["reason"]) == (410, "Expired")
    assert old.message == "The resourceVersion for the provided list is too old."
    serve.wait_rv(serve.simulator.delete("pods", "a/new"))


def key_of(item):
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def pages(serve, path, limit):
    """Yields the first page, then the items of all pages, all of one resourceVersion."""
    token, found, answers, rv = "", [], 0, None
    while token is not None:
        answer = serve.ask(f"{path}limit={limit}" + (f"&continue={token}" if token else ""))
        assert answer.status == 200, answer.body
        rv = rv or answer.rv
        assert answer.rv == rv
        found += answer.json["items"]
        token = answer.json["metadata"].get("continue") or None
        answers += 1
        if answers == 1:
            yield answer
    yield found


def test_s28_all_pages_show_one_state(serve):
    before = serve.ask("/api/v1/pods").json["items"]
    walk = pages(serve, "/api/v1/pods?", 4)
    first = next(walk)
    assert first.json["metadata"]["remainingItemCount"] == len(before) - 4
    serve.simulator.put("pods", pod("p5", "web", app="later"))
    serve.simulator.delete("pods", "web/p4")
    serve.wait_rv(serve.simulator.put("pods", pod("zz", "web")))
    assert next(walk) == before
    serve.simulator.delete("pods", "web/zz")
    serve.wait_rv(serve.simulator.put("pods", pod("p4", "web")))


@pytest.mark.parametrize("selector", ["", "labelSelector=app!%3Dapp1&"])
def test_s28_pages_under_changes_show_the_state_of_the_first_pages_version(serve, selector):
    """The states come from the API server: a list and the events after it, in the order of their resourceVersions."""
    path = f"/api/v1/pods?{selector}"
    listed = serve.server.ask(path).json
    with serve.server.watch(f"{path}watch=1&resourceVersion={listed['metadata']['resourceVersion']}") as watch:
        walks = []
        for round_ in range(8):
            walk = pages(serve, path, 1 + round_)
            first = next(walk)
            for app in ("app1", "app2"):  # one leaves the list of the selector, or comes into it
                serve.simulator.put("pods", pod("p0", "a", app=app))
                serve.simulator.delete("pods", f"a-b/p{round_ % 2}")
                serve.simulator.put("pods", pod(f"p{round_ % 2}", "a-b", app=app))
            last = serve.simulator.put("pods", pod("p2", "web", app=f"round{round_}"))
            if round_ % 2:
                serve.wait_rv(last)
            walks.append((int(first.rv), next(walk)))
        events, rv = [], 0
        while rv < int(last):
            events.append(json.loads(watch.line()))
            rv = int(events[-1]["object"]["metadata"]["resourceVersion"])
    serve.wait_rv(last)
    for rv, found in walks:
        state = {key_of(item): item for item in listed["items"]}
        for event in events:
            if int(event["object"]["metadata"]["resourceVersion"]) <= rv:
                item = {k: v for k, v in event["object"].items() if k not in ("kind", "apiVersion")}
                state.pop(key_of(item), None)
                if event["type"] != "DELETED":
                    state[key_of(item)] = item
        assert found == [state[key] for key in sorted(state)]


def test_s30_limits_that_do_not_count(serve):
    everything = serve.ask("/api/v1/pods").json["items"]
    for query in ("limit=-1", "limit=0", "limit=3&resourceVersion=0"):  # S30
        answer = serve.ask("/api/v1/pods?" + query).json
        assert answer["items"] == everything and "continue" not in answer["metadata"]


def token(rv, start):
    text = f'{{"v":"meta.k8s.io/v1","rv":{rv},"start":"{start}"}}'
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_token_of_minus_one_goes_on_at_the_newest_state(serve):
    everything = serve.ask(PODS).names
    assert serve.ask("/api/v1/pods?continue=" + token(-1, "web/p1\\u0000")).names == everything[2:]
    # One of a slash begins with the first object.
    assert serve.ask("/api/v1/pods?continue=" + token(-1, "/")).names == serve.ask("/api/v1/pods").names
    assert serve.ask(f"{PODS}?limit=2&continue=" + token(-1, "/")).names == everything[:2]


def test_an_expired_token_comes_back_with_the_same_start(serve):
    for start in ("web/p1", "web/p1\\u0000"):
        for slash in ("", "/"):
            answer = serve.ask("/api/v1/pods?continue=" + token(1, slash + start))
            assert answer.status == 410 and answer.json["metadata"]["continue"] == token(-1, start)


# ---- forms ---------------------------------------------------------------------------------------


def test_s75_tables(serve):
    table = serve.ask(PODS, accept=TABLE).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]
    row = table["rows"][1]
    assert len(row["cells"]) == len(names) and row["cells"][0] == "p1"
    assert row["object"]["kind"] == "PartialObjectMetadata" and "spec" not in row["object"]
    assert table["metadata"]["resourceVersion"] == serve.ask(PODS).rv
    one = serve.ask(PODS + "/p1", accept=TABLE).json
    assert [row["cells"][0] for row in one["rows"]] == ["p1"]
    beta = serve.ask(PODS, accept="application/json;as=Table;v=v1beta1;g=meta.k8s.io").json
    assert beta["apiVersion"] == "meta.k8s.io/v1beta1"


def test_s76_what_rows_include(serve):
    whole_row = serve.ask(PODS + "?includeObject=Object", accept=TABLE).json["rows"][1]["object"]
    assert whole_row["kind"] == "Pod" and "spec" in whole_row
    assert serve.ask(PODS + "?includeObject=None", accept=TABLE).json["rows"][1]["object"] is None
    bad = serve.ask(PODS + "?includeObject=x", accept=TABLE)
    assert bad.status == 400 and "includeObject: Invalid value" in bad.message


def test_s78_s79_s80_what_is_accepted(serve):
    table9 = "application/json;as=Table;v=v9;g=meta.k8s.io"
    for accept in (table9, "text/html", "application/yaml", "application/vnd.kubernetes.protobuf"):
        answer = serve.ask(PODS, accept=accept)
        assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")
        assert "application/json" in answer.message
    for accept in ("*/*", "application/*", "application/json, */*;q=0.8", table9 + ",application/json",
                   "application/vnd.kubernetes.protobuf,application/json"):
        assert serve.ask(PODS, accept=accept).json["kind"] == "PodList"


def test_a_path_that_is_not_served_is_not_found_in_any_form(serve):
    for path in ("/openapi/v2", "/openapi/v3", "/nosuch"):
        answer = serve.ask(path, accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
        assert (answer.status, answer.json["reason"], answer.message) == (404, "NotFound", "the server could not find the requested resource")


def test_metadata_is_given_in_protobuf_to_those_who_prefer_it(workspace):
    """client-go's metadata client does. A list in protobuf has the size of all items before them,
    however long it is."""
    simulator = workspace.simulator()
    note = {"note": "x" * 3000}
    simulator.put("pods", [pod(f"p{i:03}", "web", annotations=note) for i in range(200)])
    simulator.put("pods", pod("one", "shop"))
    store = workspace.store(simulator=simulator)
    store.start(simulator, whole("pods"), serve={"listen": ["unix"]})
    serve = Serve(store, simulator)

    def facts(path):
        items = serve.ask(path, accept=METADATA_LIST).json["items"]
        return [{"labels": {}, "annotations": {}, **{name: item["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")
                                                     if name in item["metadata"]}} for item in items]

    for path in ("/api/v1/pods", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/none/pods", PODS + "?limit=3", PODS + "?limit=100",
                 PODS + "?labelSelector=app%3Dfront", PODS + "?labelSelector=a%3Db", PODS + "?pretty=true"):
        answer = serve.ask(path, accept=protobuf.METAS)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/vnd.kubernetes.protobuf"), path
        page, items = protobuf.listed(answer.body)
        assert items == facts(path), path
        theirs = serve.ask(path, accept=METADATA_LIST).json["metadata"]
        assert page == {"continue": "", "remainingItemCount": 0, **theirs}, path
        packed = serve.ask(path, accept=protobuf.METAS, accept_encoding="gzip")
        body = gzip.decompress(packed.body) if "content-encoding" in packed.headers else packed.body
        assert body == answer.body, path
    curl = ["curl", "-sS", "--http2-prior-knowledge", "--unix-socket", serve.socket, "-H", f"Accept: {protobuf.METAS}", f"http://x{PODS}"]
    assert subprocess.run(curl, capture_output=True).stdout == serve.ask(PODS, accept=protobuf.METAS).body
    one = serve.ask(PODS + "/p001", accept=protobuf.META)
    kind, found = protobuf.unwrapped(one.body)
    assert kind == "PartialObjectMetadata" and protobuf.metadata(found) == facts(PODS)[1]
    missing = serve.ask(PODS + "/nope", accept=protobuf.META)
    assert (missing.status, missing.message) == (404, 'pods "nope" not found'), "a Status is JSON"
    beta = serve.ask(PODS, accept=protobuf.METAS.replace("v=v1", "v=v1beta1"))
    assert beta.json["apiVersion"] == "meta.k8s.io/v1beta1", "its messages are others"
    assert serve.ask(PODS, accept="application/vnd.kubernetes.protobuf").status == 406


def test_s81_metadata_only(serve):
    listed = serve.ask(PODS, accept=METADATA_LIST).json
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    whole_list = serve.ask(PODS).json["items"]
    assert [i["metadata"] for i in listed["items"]] == [i["metadata"] for i in whole_list]
    assert {tuple(sorted(i)) for i in listed["items"]} == {("apiVersion", "kind", "metadata")}
    assert serve.ask(PODS, accept=METADATA).status == 406
    assert serve.ask(PODS + "/p1", accept=METADATA_LIST).status == 406
    assert serve.ask(PODS + "/p1", accept=METADATA).json["kind"] == "PartialObjectMetadata"


def test_a_form_that_the_answer_can_not_have_is_refused(serve):
    custom = serve.ask("/apis/example.com/v1/widgets", accept=METADATA)
    assert custom.status == 406 and custom.message.endswith("(*unstructured.UnstructuredList)")
    custom = serve.ask("/apis/example.com/v1/namespaces/web/widgets/w", accept=METADATA_LIST)
    assert custom.status == 406 and custom.message.endswith("(*unstructured.Unstructured)")
    assert serve.ask(PODS + "/p1?includeObject=x", accept=TABLE).status == 400


def test_s82_large_answers_are_compressed(serve):
    serve.simulator.create("pods", 200, size=2000, prefix="large")
    eventually(lambda: len(serve.ask("/api/v1/pods").names) == 218)
    plain = serve.ask("/api/v1/pods")
    packed = serve.ask("/api/v1/pods", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body)
    assert "content-encoding" not in plain.headers
    small = serve.ask(PODS + "/p1", accept_encoding="gzip")
    assert "content-encoding" not in small.headers
    indented = serve.ask("/api/v1/pods?pretty=true", accept_encoding="gzip")
    assert gzip.decompress(indented.body).decode() == json.dumps(plain.json, indent=2, ensure_ascii=False)
    serve.simulator.delete_many("pods")
    fill(serve.simulator)
    eventually(lambda: len(serve.ask("/api/v1/pods").names) == 18)


def test_s83_people_get_indented_answers(serve):
    compact = serve.ask(PODS + "/p1")
    for headers in ({"user_agent": "curl/8"}, {"user_agent": "Wget/1"}):
        answer = serve.ask(PODS + "/p1", **headers)
        assert answer.body.decode() == json.dumps(compact.json, indent=2, ensure_ascii=False)
    assert serve.ask(PODS + "/p1?pretty=true").body.startswith(b"{\n  ")
    assert b"\n " not in serve.ask(PODS + "/p1?pretty=false", user_agent="curl/8").body
    assert serve.ask(PODS + "/nope", user_agent="curl/8").body.startswith(b"{\n  ")
    for value, agent, indented in (("", "curl/8", True), ("", "x", False), ("T", "x", True), ("tRUE", "x", False), ("x", "curl/8", False)):
        body = serve.ask(f"{PODS}/p1?pretty={value}", user_agent=agent).body
        assert body.startswith(b"{\n  ") is indented, (value, agent)


# ---- discovery -----------------------------------------------------------------------------------


def test_s84_documents_name_what_is_served(serve):
    assert serve.ask("/api").json["versions"] == ["v1"]
    groups = serve.ask("/apis").json["groups"]
    assert [g["name"] for g in groups] == ["example.com"]
    assert groups[0]["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    assert serve.ask("/apis/example.com").json["kind"] == "APIGroup"
    resources = {r["name"]: r for r in serve.ask("/api/v1").json["resources"]}
    assert set(resources) == {"pods", "nodes", "configmaps"}
    assert resources["pods"]["verbs"] == ["get", "list", "watch"] and resources["pods"]["shortNames"] == ["po"]
    assert resources["pods"]["singularName"] == "pod" and resources["nodes"]["namespaced"] is False
    assert serve.ask("/apis/example.com/v1").json["groupVersion"] == "example.com/v1"
    assert serve.ask("/apis/none").status == 404 and serve.ask("/apis/example.com/v2").status == 404
    version = serve.ask("/version").json
    assert set(version) >= {"major", "minor", "gitVersion"} and version["gitVersion"].startswith("v1.37.0+kinf-")
    assert version["platform"] == {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}[platform.machine()]
    for path in ("/api", "/api/v1", "/apis", "/apis/example.com", "/apis/example.com/v1", "/version"):  # as generated clients spell them
        assert serve.ask(path + "/").body == serve.ask(path).body
    assert "/api" in serve.ask("/").json["paths"]


def test_s85_aggregated_documents(serve):
    accept = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList,application/json"
    for version in ("v2", "v2beta1"):
        for path, group, names in (("/api", None, {"pods", "nodes", "configmaps"}), ("/apis", "example.com", {"widgets"})):
            answer = serve.ask(path, accept=accept.format(version))
            wanted = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            assert answer.headers["content-type"] == wanted
            item, = answer.json["items"]
            assert item["metadata"].get("name") == group
            assert {r["resource"] for r in item["versions"][0]["resources"]} == names
            again = serve.ask(path, accept=accept.format(version), if_none_match=answer.headers["etag"])
            assert again.status == 304
