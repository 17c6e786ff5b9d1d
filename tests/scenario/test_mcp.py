# SPDX-License-Identifier: Apache-2.0
"""kinf mcp: the protocol of both kinds of revisions, the tools, and hostile input; on stdin and stdout, and over HTTP."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import eventually
from harness.objects import pod
from harness.process import program
from harness.serve import Serve
from harness.store import whole

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS = ["get", "describe", "history", "changes", "diff", "events", "who", "count", "status"]


class Client:
    """A client with one answer for each request, line by line."""

    def __init__(self, store):
        argv = [program("kinf"), "mcp"]
        self.process = subprocess.Popen(argv, env=store.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.last += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        answer = self.read()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.last)
        return answer

    def call(self, tool, /, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        ((kind, text),) = [(one["type"], one["text"]) for one in result["content"]]
        assert kind == "text"
        return result["isError"], text

    def text(self, tool, /, **arguments):
        """The text of an answer without error, below its first line with the date."""
        failed, text = self.call(tool, **arguments)
        assert not failed, text
        head, _, rest = text.partition("\n")
        assert head.startswith("[") and head.endswith("]") and "event " in head
        return rest

    def error(self, tool, /, **arguments):
        failed, text = self.call(tool, **arguments)
        assert failed, text
        return text


class HttpClient(Client):
    """The same over /kinf/mcp of kinf-serve: each message is a request."""

    def __init__(self, serve):
        self.serve, self.last, self.answers = serve, 0, []

    def write(self, line):
        message = json.loads(line)
        params = message.get("params", {})
        headers = {"Content-Type": "application/json"}
        if "_meta" in params:
            headers |= {"MCP-Protocol-Version": params["_meta"]["io.modelcontextprotocol/protocolVersion"], "Mcp-Method": message["method"]}
        answer = self.post(line, **headers)
        if "id" in message:
            self.answers.append(answer)
        else:
            assert (answer.status, answer.body) == (202, b"")

    def read(self):
        answer = self.answers.pop(0)
        assert answer.headers["content-type"] == "application/json"
        error = answer.json.get("error", {}).get("code")
        assert answer.status == {None: 200, -32601: 200}.get(error, 400)
        return answer.json

    def post(self, body, **headers):
        return self.serve.ask("/kinf/mcp", method="POST", body=body, **headers)


@pytest.fixture(scope="module")
def store(shared):
    simulator = shared.simulator()
    store = shared.store(simulator=simulator)
    feeds = (whole("pods", indexes={"node": "spec.nodeName"}), whole("secrets", indexes={"password": "data.password"}), whole("configmaps"), whole("events"))
    store.configure(*feeds, retention={"time": "1h", "size": "64MiB"}, serve={"listen": ["unix"], "mcp": "on"}).daemons()
    store.wait_live("pods")
    front = pod("front", node="n1", managedFields=[{"manager": "helm", "time": "2026-01-01T00:00:00Z", "operation": "Update"}])
    front["status"] |= {"podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": [{"name": "app", "restartCount": 0}]}
    simulator.put("pods", [front, pod("back", node="n2")])
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData":{"password":"hunter2"}}'}
    secret = {"metadata": {"name": "s", "namespace": "web", "annotations": applied}, "data": {"password": "aHVudGVyMg=="}}
    simulator.put("secrets", secret)
    simulator.put("configmaps", {"metadata": {"name": "big", "namespace": "web"}, "data": {f"key-{i:04d}": "ä" * 40 for i in range(1000)}})
    kubelet = {"involvedObject": {"kind": "Pod", "name": "waiting"}, "type": "Normal", "reason": "Pulled", "message": "m" * 100,
               "lastTimestamp": "2026-01-01T00:00:00Z"}
    scheduler = {**kubelet, "reason": "FailedScheduling", "lastTimestamp": None, "eventTime": "2026-01-01T01:00:00.000000Z"}
    events = [kubelet] * 300 + [scheduler]
    simulator.put("events", [{"metadata": {"name": f"e-{i:03}", "namespace": "web"}, **event} for i, event in enumerate(events)])
    for feed in ("pods", "secrets", "configmaps", "events"):
        store.wait_equal(simulator, feed)
    front["status"]["containerStatuses"][0]["restartCount"] = 1
    simulator.put("pods", front)
    eventually(lambda: "MODIFIED" in store.kinf("log", "pods", check=True).stdout)
    store.serve = Serve(store, simulator)
    return store


@pytest.fixture(params=["stdio", "http"])
def either(request, client, store):
    return client if request.param == "stdio" else HttpClient(store.serve)


@pytest.fixture(scope="module")
def client(store):
    client = Client(store)
    yield client
    client.process.stdin.close()
    assert client.process.wait(20) == 0 and client.process.stdout.read() == ""


def test_the_handshake_agrees_on_a_revision(either):
    for wanted, agreed in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
        result = either.ask("initialize", protocolVersion=wanted, capabilities={}, clientInfo={"name": "t", "version": "1"})["result"]
        assert (result["protocolVersion"], result["capabilities"], result["serverInfo"]["name"]) == (agreed, {"tools": {}}, "kinf")
        assert "resultType" not in result
    either.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')  # no answer
    assert either.ask("ping")["result"] == {}
    assert [tool["name"] for tool in either.ask("tools/list")["result"]["tools"]] == TOOLS


def test_a_request_may_carry_its_revision(either):
    found = either.ask("server/discover", _meta=META)["result"]
    assert found["supportedVersions"][0] == "2026-07-28" and found["capabilities"] == {"tools": {}}
    listed = either.ask("tools/list", _meta=META)["result"]
    assert (listed["resultType"], listed["cacheScope"], [tool["name"] for tool in listed["tools"]]) == ("complete", "public", TOOLS)
    assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "kinf"
    get = listed["tools"][0]["inputSchema"]
    assert (get["required"], get["additionalProperties"]) == (["resource"], False)
    assert get["properties"]["output"]["enum"] == ["table", "wide", "yaml", "json", "name", "count"]
    other = either.ask("tools/list", _meta=META | {"io.modelcontextprotocol/protocolVersion": "1900-01-01"})["error"]
    assert (other["code"], other["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "1900-01-01"})
    assert either.ask("tools/list", _meta={list(META)[0]: "2026-07-28"})["error"]["code"] == -32602


def test_the_tools_print_what_the_commands_print(either, store):
    front, rows = {"resource": "pod", "name": "front", "namespace": "web"}, {"resource": "pods", "output": "name"}

    def kinf(*words):
        return store.kinf(*words, check=True).stdout

    assert either.text("get", **rows) == kinf("get", "pods", "-o", "name") == "pod/back\npod/front\n"
    assert either.text("get", **rows, fields="spec.nodeName=n2") == "pod/back\n"
    assert either.text("get", **rows, limit=1, sort_by="spec.nodeName").startswith("pod/front\n")
    assert "restartCount: 1" in either.text("get", **front, output="yaml")
    assert "Node:" in either.text("describe", **front)
    assert " by helm\n" in either.text("history", **front)
    assert either.text("count", resource="pods", index="node") == "n1\t1\nn2\t1\n"
    assert either.text("who", what="10.0.0.1").startswith("Pod:       web/front\n")
    restarts = either.text("changes", resource="pods", since="1h", fields="status.containerStatuses[*].restartCount")
    first, second = restarts.splitlines()
    assert " MODIFIED pods web/front" in first and second.strip() == "status.containerStatuses[name=app].restartCount: 0 -> 1"
    event = int(first.split()[1])
    assert "restartCount: 0 -> 1" in either.text("diff", **front, **{"from": event - 1})
    assert "restartCount: 0" in either.text("get", **front, output="yaml", at=str(event - 1))
    assert either.call("get", resource="pods", at=str(event - 1))[1].startswith("[as of ")
    assert "pods" in either.text("status")
    assert either.text("get", resource="pods", namespace="none") == "No resources found in none namespace.\n"


def test_values_of_secrets_are_not_shown(client):
    for arguments in ({"output": "yaml"}, {"output": "json", "name": "s", "namespace": "web"}, {"sort_by": "data.password"}, {"fields": "data.password=x"}):
        for name in ("secrets", "secret", "Secret"):
            assert "is refused for Secrets" in client.error("get", resource=name, **arguments)
    assert "is refused for Secrets" in client.error("count", resource="secrets", index="password")
    for name in ("pods,secrets", "secrets/s", "all", ""):
        assert "is not one resource" in client.error("get", resource=name, output="yaml")
    shown = client.text("get", resource="secrets") + client.text("describe", resource="secret", name="s", namespace="web")
    shown += client.text("history", resource="secret", name="s", namespace="web") + client.text("changes")
    assert "password:  7 bytes" in shown and "aHVudGVyMg" not in shown and "hunter2" not in shown


def test_over_the_network_secrets_are_not_shown_at_all(store):
    http = HttpClient(store.serve)
    for tool, arguments in (("get", {}), ("describe", {"name": "s", "namespace": "web"}), ("history", {"name": "s", "namespace": "web"}), ("changes", {}), ("count", {})):
        for name in ("secrets", "Secret"):
            assert http.error(tool, resource=name, **arguments) == "Secrets are not shown over the network"
    assert http.error("changes").startswith("name a resource: over the network Secrets are not shown")
    assert " pods web/front" in http.text("changes", resource="pods")
    page = http.post('{"id":1,"method":"ping"}', Origin="https://example.com")
    assert (page.status, page.message) == (403, "requests of web pages are refused")


def test_a_long_answer_is_cut_and_says_so(client):
    text = client.text("get", resource="configmaps", name="big", namespace="web", output="yaml")
    body, _, note = text.rstrip("\n").rpartition("\n")
    assert 23000 < len(body.encode()) <= 24 << 10 and note.endswith(" after this are left out; ask for less: with name, namespace, labels, fields, limit]")
    assert body.splitlines()[-1].endswith("ä")
    assert int(note[1:].split()[0]) > 60000


def test_the_newest_event_is_the_last_also_without_last_timestamp(client):
    """Those of the scheduler have an eventTime alone: they were the first, and cut off."""
    note, *_, last = client.text("events", name="waiting").splitlines()
    assert "FailedScheduling" in last and note.endswith(" before this are left out; ask for less: with name, namespace]")


def test_wrong_arguments_are_explained_to_the_assistant(client):
    assert client.error("get") == "get needs 'resource': plural, kind, short name or feed: pods, deploy, widgets.example.com"
    assert client.error("get", resource="pods", x=1).startswith("'x' is no argument of get: resource name namespace ")
    for wrong in (-1, "5", True, [], {}, 1.5):
        assert client.error("get", resource="pods", limit=wrong) == "'limit' must be a number from 0 on"
    assert client.error("get", resource="pods", output="jsonpath={.x}") == "'output' must be one of table|wide|yaml|json|name|count"
    assert client.error("get", resource="--store=x").startswith("no feed '--store=x'")
    assert client.error("get", resource="pods", name="-o yaml").endswith('\nError: pods "-o yaml" not found\n')
    assert client.error("who", what="--help").endswith("nor [NODE/]PID\n")
    assert "is no time" in client.error("get", resource="pods", at="tomorrow")


HOSTILE = {  # the code of the error
    "hello": -32700,
    "{]": -32700,
    "[" * 100000: -32700,
    '{"a":' * 1000: -32700,
    '{"a":"' + "x" * (2 << 20) + '"}': -32700,
    '{"id":1,"method":"ping\0"}': -32700,
    '{"id":1,\0"method":"ping"}': -32700,
    '{"id":1,"method":"p\ting"}': -32700,
    '{"id":"\\ud83d","method":"ping"}': -32700,
    '{"id":1,"id":2,"method":"ping"}': -32700,
    '{"id":1,"method":"ping","a":&x 1}': -32700,
    '{"id":1': -32700,
    '"': -32700,
    '"ping"': -32600,
    "[]": -32600,
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
    '{"id":1,"method":7}': -32600,
    '{"id":{},"method":"ping"}': -32600,
    '{"id":1.5,"method":"ping"}': -32600,
    '{"id":1}': -32600,
    '{"id":1,"method":"tools/call","params":[]}': -32602,
    '{"id":1,"method":"tools/call","params":{"name":1}}': -32602,
    '{"id":1,"method":"tools/call","params":{"name":"get","arguments":[]}}': -32602,
    '{"id":1,"method":"tools/call","params":{"name":"delete"}}': -32602,
    '{"id":1,"method":"resources/list"}': -32601,
}


def test_hostile_lines_are_refused_one_by_one(client):
    codes = {}
    for line in HOSTILE:
        client.write(line)
        codes[line] = client.read()["error"]["code"]
        assert client.ask("ping")["result"] == {}
    assert codes == HOSTILE
    for silent in ("", "  \r", '{"method":"notifications/cancelled","params":{"requestId":1}}', '{"id":1,"result":{}}', '{"method":"ping"}'):
        client.write(silent)
    client.write('{"id":"\\ud83d\\ude00\\u00e4\\/\\\\ud83d","method":"ping"}\r')
    assert client.read() == {"jsonrpc": "2.0", "id": "😀ä/\\ud83d", "result": {}}


def test_a_request_of_http_is_checked(store):
    http = HttpClient(store.serve)
    modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "status"}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"_meta": META, "name": "status", "arguments": {}}}
    good = http.post(json.dumps(call, indent=1), **modern)
    assert (good.status, good.json["id"], good.json["result"]["isError"]) == (200, 7, False)
    for name in modern:
        for wrong in ({name: "other"}, {name: ""}):
            answer = http.post(json.dumps(call), **modern | wrong)
            assert (answer.status, answer.json["error"]) == (400, {"code": -32020, "message": f"the header {name} does not match the message"})
    call["method"] = "nosuch"
    assert http.post(json.dumps(call), **modern | {"Mcp-Method": "nosuch"}).status == 404
    old = http.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', **{"MCP-Protocol-Version": "1999-01-01"})
    assert (old.status, old.json["error"]["message"]) == (400, "the header MCP-Protocol-Version names an unknown revision")
    assert http.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', **{"MCP-Protocol-Version": "2025-06-18"}).json["result"] == {}
    refused = http.post("{" * 100)
    assert (refused.status, refused.json["error"]["code"]) == (400, -32700)
    large = http.post("x" * (2 << 20))
    assert (large.status, large.message) == (413, "Request entity too large: limit is 1048576")
    answer = store.serve.ask("/kinf/mcp")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    # Over HTTP/2, and several at once: four are answered, the others wait.
    curl = ["curl", "-s", "--http2-prior-knowledge", "--unix-socket", store.serve.socket, "http://x/kinf/mcp", "-d", '{"id":1,"method":"ping"}']
    assert json.loads(subprocess.run(curl, capture_output=True, check=True).stdout)["result"] == {}
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: http.post('{"jsonrpc":"2.0","id":1,"method":"ping"}'), range(24)))
    assert [(answer.status, answer.json["result"]) for answer in answers] == [(200, {})] * 24


def test_answers_of_a_dump_have_its_date(workspace):
    store = workspace.store().configure(whole("pods"))
    dump = store.directory / "pods.json"
    dump.write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod("a")]}))
    os.utime(dump, (1_700_000_000, 1_700_000_000))
    store.kinf("import", dump, "--store", store.path, check=True)
    client = Client(store)
    for tool in ("get", "changes"):
        head = client.call(tool, resource="pods")[1].partition("\n")[0]
        assert head.endswith("; pods: offline, imported from a dump of 2023-11-14T22:13:20Z]"), head
    client.process.stdin.close()
    assert client.process.wait(20) == 0


def test_without_daemons_the_answers_say_so(client, store):
    """Last: it ends them."""
    for process in store.processes:
        if "kinf-" in process.name and "serve" not in process.name:
            process.kill()
    eventually(lambda: ": offline" in client.call("get", resource="pods", output="name")[1].partition("\n")[0])
    assert client.text("get", resource="pods", output="name").endswith("pod/back\npod/front\n")
    assert "not running" in client.text("status")
