# SPDX-License-Identifier: Apache-2.0
"""kinf-serve with `auth: review` and `auth: allow`: clients with certificates, and tokens reviewed
by its own account."""

import http.client
import json
import ssl
from pathlib import Path

import pytest

from harness import eventually
from harness.api_server import ApiServer
from harness.objects import pod
from harness.process import program
from harness.serve import Client, Serve, addresses
from harness.store import whole
from harness.tls import Authority

PODS = "/api/v1/namespaces/web/pods"
POD_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
USERS = {
    "T1": {"username": "u1", "uid": "7", "groups": ["g1", "system:authenticated"], "extra": {"scopes": ["a", "b"]}},
    "T2": {"username": "u2", "groups": ["system:authenticated"]},
    "T3": {"username": "u3", "groups": ["system:authenticated"]},
}
KINDS = [("apiregistration.k8s.io", "apiservices", "APIService"),
         ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"),
         ("served.example.com", "projects", "Project"), ("own.example.com", "things", "Thing"),
         ("defined.example.com", "wares", "Ware"), ("unknown.example.com", "gauges", "Gauge")]


class Reviewed:
    """A kinf-serve of one mode; `clients` maps names to clients over TLS."""

    def __init__(self, workspace, **settings):
        self.simulator = workspace.simulator()
        for i in range(3):
            self.simulator.put("pods", pod(f"p{i}", "web"))
        self.simulator.put("secrets", {"metadata": {"name": "s", "namespace": "web"}})
        self.simulator.put("namespaces", {"metadata": {"name": "web"}})
        for group, resource, kind in KINDS:
            self.simulator.add_kind(group=group, version="v1", resource=resource, kind=kind, namespaced=False)
        self.simulator.put("apiservices", {"metadata": {"name": "v1.served.example.com"}, "spec": {"service": {"name": "x", "namespace": "y"}}})
        self.simulator.put("apiservices", {"metadata": {"name": "v1.own.example.com"}, "spec": {"group": "own.example.com"}})
        self.simulator.put("customresourcedefinitions", {"metadata": {"name": "wares.defined.example.com"}})
        for resource in ("projects", "things", "wares", "gauges"):
            self.simulator.put(resource, {"metadata": {"name": "o"}})
        self.api = ApiServer(self.simulator)
        self.api.decide = self.decide
        self.api.packs = True
        workspace.started.append(self.api)
        # Of all objects; of one, in a namespace.
        self.rights = {*(("u1", resource) for _, resource, _ in KINDS), ("u1", "pods"), ("cn", "pods"), ("u1", "secrets"), ("u3", "pods", "web", "p1"), ("u3", "namespaces", "web", "web")}
        self.store = workspace.store(settings["auth"])
        self.authority = Authority(self.store.directory, "clients")
        self.own = workspace.directory / "own-token"
        self.own.write_text("OWN\n")
        self.store.connect(self.api.url)
        self.settings = {"listen": ["unix", "127.0.0.1:0"], "tls": {"clientCA": str(self.authority.ca)}, "mcp": "on", **settings}
        self.store.configure(whole("pods"), whole("secrets"), whole("namespaces"),
                             *(whole(f"{resource}.{group}") for group, resource, _ in KINDS), serve=self.settings)
        self.store.daemons()
        self.store.wait_synced("pods")
        self.store.wait_synced("secrets")
        self.store.wait_synced("namespaces")
        for group, resource, _ in KINDS:
            self.store.wait_synced(f"{resource}.{group}")
        self.serve = Serve(self.store, self.simulator)

    def decide(self, kind, authorization, spec):
        if authorization != "Bearer OWN":
            return None
        if kind == "tokenreviews":
            user = USERS.get(spec["token"])
            return {"authenticated": True, "user": user} if user else {"authenticated": False}
        assert kind == "subjectaccessreviews"
        attributes = spec.get("resourceAttributes", {})
        right = (spec["user"], attributes.get("resource", "path"))
        of_one = (*right, attributes.get("namespace"), attributes.get("name"))
        return {"allowed": right in self.rights or of_one in self.rights or "resourceAttributes" not in spec}

    def client(self, certificate=None):
        address = addresses(self.store)["api", "https"]
        context = ssl.create_default_context(cafile=self.store.path / "serve" / "ca.crt")
        if certificate:
            context.load_cert_chain(*certificate)
        return Client(lambda: http.client.HTTPSConnection(*address.split(":"), context=context, timeout=60))

    def ask(self, path, token=None, name=None, organizations=(), **headers):
        certificate = self.authority.issue(name, organizations=organizations) if name else None
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.client(certificate).ask(path, **headers)


@pytest.fixture(scope="module")
def review(shared):
    return Reviewed(shared, auth="review", review={"tokenFile": str(shared.directory / "own-token")})


def test_tokens_are_reviewed_and_their_users_rights_count(review):
    assert review.ask(PODS, token="T1").names == ["p0", "p1", "p2"]
    spec = next(spec for kind, _, spec in review.api.reviews if kind == "subjectaccessreviews" and spec["user"] == "u1")
    assert spec == {"user": "u1", "uid": "7", "groups": USERS["T1"]["groups"], "extra": USERS["T1"]["extra"],
                    "resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods", "namespace": "web"}}
    assert review.ask("/kinf/mcp", token="T1", method="POST", body="{}").status == 403, "it may not list everything"
    assert review.api.reviews[-1][2]["resourceAttributes"] == {"verb": "list", "group": "*", "version": "*", "resource": "*"}
    denied = review.ask(PODS, token="T2")
    assert denied.status == 403
    assert denied.message == 'pods is forbidden: User "u2" cannot list resource "pods" in API group "" in the namespace "web"'
    assert review.ask(PODS, token="unknown").status == 401
    assert review.ask(PODS).status == 401
    huge = review.ask(PODS, token="T" * (40 << 10))
    assert (huge.status, huge.message) == (401, "Unauthorized")
    assert {authorization for _, authorization, _ in review.api.reviews} == {"Bearer OWN"}


def test_certificates_name_user_and_groups(review):
    assert review.ask(PODS, name="cn", organizations=("o1", "o2")).names == ["p0", "p1", "p2"]
    spec = next(spec for kind, _, spec in review.api.reviews if spec.get("user") == "cn")
    assert spec["groups"] == ["o1", "o2", "system:authenticated"]
    assert review.ask(PODS, name="other").status == 403
    assert review.ask("/api/v1/secrets", name="cn").status == 403
    for path, where in ((PODS, "pods is forbidden: User \"other\" cannot list"), (PODS + "/p1", "pods \"p1\" is forbidden: User \"other\" cannot get")):
        assert review.ask(path, name="other").message.startswith(where)


def test_a_right_to_one_name_lets_lists_and_watches_of_it(review):
    """As an RBAC role with resourceNames does."""
    one = PODS + "?fieldSelector=metadata.name%3D"
    assert review.ask(PODS + "/p1", token="T3").status == 200
    assert review.ask(one + "p1", token="T3").names == ["p1"]
    for path in (one + "p1&watch=1&resourceVersion=0", "/api/v1/watch/namespaces/web/pods/p1?resourceVersion=0"):
        with review.client().watch(path, Authorization="Bearer T3") as watch:
            assert watch.next()[:2] == ("ADDED", "p1")
    denied = review.ask(one + "p2", token="T3")
    assert denied.message == 'pods "p2" is forbidden: User "u3" cannot list resource "pods" in API group "" in the namespace "web"'
    assert (denied.status, denied.json["details"]) == (403, {"name": "p2", "kind": "pods"})
    for selector in ("metadata.name!%3Dp1", "spec.nodeName%3Dp1", "metadata.name%3Dp1/x", "metadata.namespace%3Dweb"):
        assert review.ask(f"{PODS}?fieldSelector={selector}", token="T3").status == 403, selector
    by_path = review.ask("/api/v1/watch/namespaces/web/pods?fieldSelector=metadata.name%3Dp1&timeoutSeconds=1", token="T3")
    assert by_path.status == 403, "to the API server such a watch has no selectors"
    log = review.ask(PODS + "/p2/log", token="T3")
    assert log.message == 'pods "p2" is forbidden: User "u3" cannot get resource "pods/log" in API group "" in the namespace "web"'


def test_a_namespace_is_in_itself(review):
    """So a role bound there allows to read it."""
    assert review.ask("/api/v1/namespaces/web", token="T3").status == 200
    denied = review.ask("/api/v1/namespaces/shop", token="T3")
    assert denied.message == 'namespaces "shop" is forbidden: User "u3" cannot get resource "namespaces" in API group "" in the namespace "shop"'
    denied = review.ask("/api/v1/namespaces", token="T3")
    assert denied.message == 'namespaces is forbidden: User "u3" cannot list resource "namespaces" in API group "" at the cluster scope'
    denied = review.ask("/apis/example.com/v1/namespaces/shop/namespaces/web", token="T3")
    assert denied.message == \
        'namespaces.example.com "web" is forbidden: User "u3" cannot get resource "namespaces" in API group "example.com" in the namespace "shop"'


def test_an_aggregated_api_server_decides_for_itself(review, allow):
    """It may show each user other objects. Its APIService names it, or no definition has its resource."""
    paths = [f"/apis/{group}/v1/{resource}" for group, resource, _ in KINDS[2:]]
    assert [review.ask(path, token="T1").status for path in paths] == [404, 200, 200, 404]
    assert [review.ask(path, token="T2").status for path in paths] == [403] * 4
    for path in (paths[0] + "/o", paths[0] + "?watch=1&resourceVersion=0&timeoutSeconds=1"):
        denied = review.ask(path, token="T1")
        assert (denied.status, "an aggregated API server may decide otherwise" in denied.message) == (404, True), path
    # Rules are not the API server's rights.
    assert [allow.ask(path, name="x", organizations=("readers",)).status for path in paths] == [200] * 4


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def field(number, value):
    """A field of protobuf, shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def test_a_client_may_ask_what_it_may_read(review):
    """As k9s does before each view, in protobuf, and kubectl auth can-i."""
    numbers = {"namespace": 1, "verb": 2, "group": 3, "resource": 5, "subresource": 6, "name": 7}

    def ask(attributes, token="T1"):
        text = b"".join(field(numbers[name], value.encode()) for name, value in attributes.items())
        unknown = field(1, field(1, b"authorization.k8s.io/v1") + field(2, b"SelfSubjectAccessReview")) + field(2, field(1, b"") + field(2, field(1, text)))
        answers = [review.ask(REVIEWS, token=token, method="POST", body=body, Content_Type=content_type) for body, content_type in (
            (json.dumps({"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}), "application/json"),
            (b"k8s\0" + unknown, "application/vnd.kubernetes.protobuf"))]
        assert [answer.body for answer in answers] == [answers[0].body] * 2
        return answers[0]

    pods = {"namespace": "web", "verb": "list", "resource": "pods"}
    answer = ask(pods)
    assert (answer.status, answer.json) == (201, {
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
        "spec": {"resourceAttributes": pods}, "status": {"allowed": True}})
    for allowed, token, attributes in (
            (True, "T1", pods | {"verb": "watch"}), (True, "T1", {"verb": "get", "resource": "secrets"}), (False, "T2", pods), (False, "T3", pods),
            (True, "T3", pods | {"verb": "get", "name": "p1"}), (False, "T3", pods | {"verb": "get", "name": "p2"}), (False, "T1", {"verb": "list"}), (False, "T1", pods | {"verb": "get", "subresource": "log"})):
        assert ask(attributes, token).json["status"]["allowed"] == allowed, (token, attributes)
    for verb in ("delete", "create", "*"):
        assert ask(pods | {"verb": verb}).json["status"] == {"allowed": False, "reason": "kinf-serve lets clients get, list and watch resources"}
    assert ask(pods, "unknown").status == 401
    of_no_resource = [review.ask(REVIEWS, token="T1", method="POST", body=body, Content_Type=content_type) for body, content_type in (
        (b'{"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}', "application/json"),
        (b"k8s\0" + field(1, b"") + field(2, field(2, field(2, field(1, b"/healthz") + field(2, b"get")))), "application/vnd.kubernetes.protobuf"))]
    assert [(answer.status, answer.json["status"]["allowed"]) for answer in of_no_resource] == [(201, False)] * 2
    assert [answer.json["spec"] for answer in of_no_resource] == [{"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}] * 2
    for body, content_type, status in (
            (b"", "application/json", 400), (b"[]", "application/json", 400), (b"{}", "application/json", 400), (b"{", "application/json", 400),
            (b"k8s\0", "application/vnd.kubernetes.protobuf", 400), (b"k8s\0\x0a\xff", "application/vnd.kubernetes.protobuf", 400),
            (b"x", "text/plain", 415), (b"{" + b" " * 70000, "application/json", 413)):
        assert review.ask(REVIEWS, token="T1", method="POST", body=body, Content_Type=content_type).status == status, body[:9]


def test_a_client_may_ask_for_its_rules(review):
    """Headlamp's test of a login, and kubectl auth can-i --list."""
    rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

    def ask(token, body=b'{"spec": {"namespace": "web"}}', content_type="application/json"):
        return review.ask(rules, token=token, method="POST", body=body, Content_Type=content_type)

    review.rights.add(("u1", "*"))
    answer, of_everything = ask("T1"), [{"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}]
    status = {"resourceRules": of_everything, "nonResourceRules": [], "incomplete": True, "evaluationError": "kinf-serve decides on each request"}
    assert (answer.status, answer.json) == (201, {
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {"namespace": "web"}, "status": status})
    protobuf = b"k8s\0" + field(1, b"") + field(2, field(1, b"") + field(2, field(1, b"web")))
    assert ask("T1", protobuf, "application/vnd.kubernetes.protobuf").body == answer.body
    partly = ask("T3")
    assert (partly.status, partly.json["status"]) == (201, status | {"resourceRules": []})
    assert ask("unknown").status == 401
    missing = ask("T1", b'{"spec": {}}')
    assert (missing.status, missing.message) == (400, "no namespace on request")


def test_nobody_else_can_be_impersonated(review):
    answer = review.ask(PODS, token="T1", Impersonate_User="u2")
    assert answer.status == 403 and "impersonation" in answer.message


def test_decisions_are_kept_for_a_moment(review):
    review.ask(PODS, token="T1")
    before = len(review.api.reviews)
    for _ in range(5):
        assert review.ask(PODS, token="T1").status == 200
    assert len(review.api.reviews) <= before + 2, "at most one of them found the decision expired"


def test_an_account_without_rights_decides_nothing(workspace):
    review = Reviewed(workspace, auth="review", review={"tokenFile": str(workspace.directory / "own-token")})
    review.own.write_text("WRONG")
    answer = review.ask(PODS, token="T1")
    assert answer.status == 503, "not 401: the client may be who it says"
    assert "kinf-serve's own account may not create reviews" in answer.message and "system:auth-delegator" in answer.message
    review.own.write_text("OWN")
    eventually(lambda: review.ask(PODS, token="T1").status == 200, what="the token is read again")


@pytest.mark.skipif(POD_TOKEN.exists(), reason="this container has a service account")
def test_without_an_account_it_does_not_start(workspace):
    """Anonymous reviews would all be refused."""
    store = workspace.store(simulator=workspace.simulator())
    store.configure("pods", serve={"auth": "review", "listen": ["127.0.0.1:0"]}).daemons()
    process = store.process("kinf-serve", [program("kinf-serve"), "--config", store.config]).start()
    assert process.wait() == 78
    assert "name its token in serve.review.tokenFile" in process.err_path.read_text()


def test_without_the_api_server_the_last_decision_holds_but_not_for_secrets(workspace):
    review = Reviewed(workspace, auth="review", review={"tokenFile": str(workspace.directory / "own-token")}, offlineGrace="1h")
    assert review.ask("/api/v1/pods", token="T1").status == 200
    assert review.ask("/api/v1/secrets", token="T1").status == 200
    review.api.away = True
    eventually(lambda: review.ask("/api/v1/secrets", token="T1").status == 503)
    for path in ("/api/v1/pods", PODS, f"{PODS}/p1", f"{PODS}?labelSelector=a%3Db", f"{PODS}?watch=1&resourceVersion=0&timeoutSeconds=1"):
        assert review.ask(path, token="T1").status == 200, "who may list all may have a part"
        refused = review.ask(path, token="T2")
        assert refused.status == 503, "nothing is known of this one"
        assert "retry-after" not in refused.headers, "client-go would ask ten times more"
        assert "watch" not in path or refused.body.count(b"\n") == 1, "kube-rs reads a watch by lines"
    assert review.ask("/api/v1/secrets/s", token="T1").status == 503
    review.api.away = False
    eventually(lambda: review.ask("/api/v1/secrets", token="T1").status == 200)


@pytest.mark.parametrize("auth", ["review", "self"])
def test_clients_of_an_overloaded_api_server_come_again(workspace, auth):
    """As they would if they asked it themselves; what was allowed before stays so."""
    account = {"review": {"tokenFile": str(workspace.directory / "own-token")}} if auth == "review" else {}
    review = Reviewed(workspace, auth=auth, offlineGrace="1h", **account)
    review.rights.add(("u2", "pods"))
    if auth == "self":
        review.api.decide = lambda kind, authorization, spec: {"allowed": True}
    assert review.ask("/api/v1/pods", token="T1").status == 200
    review.api.overloaded = True
    refused = review.ask(PODS, token="T2")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.message == "the API server answered a review with 429"
    assert review.ask(f"{PODS}/p1", token="T1").status == 200, "who may list all may have a part"
    review.api.overloaded = False
    eventually(lambda: review.ask(PODS, token="T2").status == 200)


@pytest.mark.parametrize("auth", ["review", "self"])
def test_without_the_api_server_discovery_is_for_clients_that_it_knows(workspace, auth):
    """Whether they have asked for it before or not: each path is a question of its own."""
    review = Reviewed(workspace, auth=auth, review={"tokenFile": str(workspace.directory / "own-token")}, offlineGrace="1h")
    if auth == "self":
        review.api.decide = lambda kind, authorization, spec: (
            {"allowed": spec.get("nonResourceAttributes", {}).get("path") != "/api/"} if authorization == "Bearer T1" else None)
        assert review.ask("/api/", token="T1").status == 403
    assert review.ask(PODS, token="T1").status == 200
    documents = ("/api", "/api/v1", "/apis", "/version")
    review.api.away = True
    if auth == "self":
        eventually(lambda: review.ask("/api/", token="T1").status == 503, what="what the API server has refused stays so")
    for path in documents:
        assert review.ask(path, token="T1").status == 200, path
        assert review.ask(path, token="T2").status == 503, "nothing is known of this one"
        assert review.ask(path, token="T1").status == 200, "also right after a question without an answer"
    assert review.ask("/nosuch", token="T1").status == 503
    review.api.away = False
    eventually(lambda: review.ask("/api", token="T1").status == 200)


@pytest.fixture
def impatient(workspace):
    """Watches are decided on again each second, not each minute."""
    review = Reviewed(workspace, auth="review", review={"tokenFile": str(workspace.directory / "own-token")}, offlineGrace="1s")
    review.serve.process.kill()
    review.serve.start(env={"KINF_FAIL": "serve.decide:0:error"})
    return review


def test_a_running_watch_ends_when_its_right_does(impatient):
    review = impatient
    path = f"{PODS}?watch=1&resourceVersion={review.ask(PODS, token='T1').rv}&allowWatchBookmarks=true"
    with review.client().watch(path, Authorization="Bearer T1") as watch:
        asked = len(review.api.reviews)
        eventually(lambda: len(review.api.reviews) >= asked + 2, 40, "the watch is decided on again")
        review.simulator.put("pods", pod("later", "web"))
        events = iter(watch.next, None)  # each minute has a bookmark
        assert next(event for event in events if event[0] != "BOOKMARK")[:2] == ("ADDED", "later"), "it was allowed each time"
        review.rights.discard(("u1", "pods"))
        assert {event["type"] for event in watch.rest()} == {"BOOKMARK"}, "a clean end, from where the client can go on"
    assert review.ask(PODS, token="T1").status == 403


def test_a_running_watch_of_one_name_is_decided_on_by_its_name(impatient):
    review = impatient
    with review.client().watch("/api/v1/watch/namespaces/web/pods/p1?resourceVersion=0", Authorization="Bearer T3") as watch:
        assert watch.next()[:2] == ("ADDED", "p1")
        eventually(lambda: sum(spec.get("resourceAttributes", {}).get("name") == "p1" for _, _, spec in review.api.reviews) >= 3, 40,
                   "the watch is decided on again")
        review.simulator.touch("pods")
        assert watch.next()[:2] == ("MODIFIED", "p1")


def test_a_running_watch_ends_when_its_token_does(impatient):
    review = impatient
    with review.client().watch(f"{PODS}?watch=1&resourceVersion=0", Authorization="Bearer T1") as watch:
        watch.next(3)
        known = USERS.pop("T1")
        try:
            assert watch.rest() == []
            eventually(lambda: review.ask(PODS, token="T1").status == 401, 40, "the token is known no longer")
        finally:
            USERS["T1"] = known


# ---- allow -----------------------------------------------------------------------------------------------

RULES = [
    {"users": ["node-*"], "resources": ["pods"], "verbs": ["list"], "namespaces": ["web"]},
    {"groups": ["readers"], "resources": ["*"]},
    {"groups": ["keepers"], "resources": ["secrets", "*.apps"], "verbs": ["*"]},
]


@pytest.fixture(scope="module")
def allow(shared):
    return Reviewed(shared, auth="allow", allow=RULES)


@pytest.mark.parametrize("path, name, organizations, status", [
    (PODS, "node-1", (), 200),
    (PODS + "/p0", "node-1", (), 403),
    ("/api/v1/pods", "node-1", (), 403),
    (PODS, "x-node-1", (), 403),
    (PODS, "node-1", ("readers",), 200),
    (PODS, "x", ("other", "readers"), 200),
    ("/api/v1/pods", "x", ("readers",), 200),
    (PODS + "?watch=1&timeoutSeconds=1", "x", ("readers",), 200),
    ("/api/v1/secrets", "x", ("readers",), 403),
    ("/api/v1/secrets", "x", ("keepers",), 200),
    (PODS, "x", ("keepers",), 403),
    ("/kinf/mcp", "x", ("keepers",), 403),
    ("/kinf/mcp", "node-1", (), 403),
    ("/kinf/mcp", "x", ("readers",), 405),
    ("/api", "node-1", (), 200),
    ("/api", "stranger", (), 403),
    (PODS, None, (), 401),
])
def test_rules_decide(allow, path, name, organizations, status):
    assert allow.ask(path, name=name, organizations=organizations).status == status
    assert allow.api.reviews == [], "the API server is not asked"


def test_a_certificate_that_expires_ends_what_its_connection_may_do(allow, review):
    """As at the API server: it checks the certificate with each request."""
    for server, name in ((allow, "node-short"), (review, "cn")):
        connection = server.client(server.authority.issue_for(8, name)).connect()

        def status():
            connection.request("GET", PODS)
            response = connection.getresponse()
            response.read()
            return response.status

        assert status() == 200
        opened = connection.sock
        eventually(lambda: status() == 401, 40)
        assert connection.sock is opened, "it was all on one connection"
        connection.close()


def test_a_certificate_of_a_ca_that_was_replaced_counts_no_more(workspace):
    """Also on an old connection. While the CA stays, reading it again changes nothing."""
    allow = Reviewed(workspace, auth="allow", allow=RULES)
    mine = allow.authority.issue("node-1")
    (other := allow.store.directory / "other").mkdir()
    other = Authority(other, "clients")

    def status(connection):
        connection.request("GET", PODS)
        response = connection.getresponse()
        response.read()
        return response.status

    def reload(*authorities):
        allow.authority.ca.write_text("".join(texts[a] for a in authorities))
        allow.store.kinf("reload", check=True)

    texts = {a: a.ca.read_text() for a in (allow.authority, other)}
    old, new = allow.client(mine).connect(), allow.client(mine).connect()
    assert status(old) == status(new) == 200
    opened = old.sock
    for authorities in ((allow.authority,), (allow.authority, other)):
        reload(*authorities)
        assert status(old) == 200
        assert old.sock is opened, "it was all on one connection"
    reload(other)
    assert status(old) == status(new) == 401
    assert old.sock is new.sock is None, "the answer ended the connection"
    with pytest.raises(ssl.SSLError):
        status(old)
    assert allow.client(other.issue("node-1")).ask(PODS).status == 200


def test_the_last_common_name_of_a_certificate_counts(allow):
    assert allow.ask(PODS, name="node-1/CN=stranger").status == 403
    assert allow.ask(PODS, name="stranger/CN=node-1").status == 200


def test_a_token_is_no_certificate(allow):
    assert allow.ask(PODS, token="T1").status == 401


def test_rules_are_read_again_at_sighup(workspace):
    allow = Reviewed(workspace, auth="allow", allow=RULES)
    assert allow.ask(PODS, name="late").status == 403
    allow.settings["allow"] = [{"users": ["late"], "resources": ["pods"]}]
    allow.store.configure(whole("pods"), whole("secrets"), serve=allow.settings)
    allow.serve.process.send(1)
    eventually(lambda: allow.ask(PODS, name="late").status == 200)
    assert allow.ask(PODS, name="node-1").status == 403
