# SPDX-License-Identifier: Apache-2.0
"""Names allowed by RBAC and escaped in JSON, in every way out; and names impossible in any store."""

import json
import signal
import urllib.parse

import pytest

from harness import eventually
from harness.serve import METADATA, TABLE, Serve
from harness.store import whole

NAMES = [
    "R&D", 'say "hi"', "back\\slash", "a<b>c", "ünï", "漢字", "\U0001f680 rocket", "line\nfeed", "tab\there", "esc\x1b[31mred",
    "ctl\x01", "ls\u2028ps\u2029", "space end ", "a'b`$(c)", "*", "-dash", "...", "comma,equals=", "{a}", "[1]", "#?=",
    "x" * 300, '\\"' * 200, "é" * 253,
]  # fmt: skip
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FEED = "clusterroles.rbac.authorization.k8s.io"


def as_go_writes(obj):
    """JSON as Go's encoder writes it; every other escapable character is escaped, by turns."""
    text = json.dumps(obj, ensure_ascii=len(obj["metadata"]["name"]) % 2 == 0)
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def put(simulator, *names):
    for name in names:
        rules = [{"verbs": ["get"], "resourceNames": [name]}]
        simulator.put("clusterroles", as_go_writes({"metadata": {"name": name}, "rules": rules}))


@pytest.fixture(scope="module")
def named(shared):
    """Some names come with the list, some by the watch; then everything is killed and comes back."""
    simulator = shared.simulator()
    put(simulator, *NAMES[::2])
    store = shared.store(simulator=simulator)
    store.configure(whole(FEED, indexes={"named": "rules[*].resourceNames[*]"}), serve={"listen": ["unix"]})
    processor, reflector = store.daemons()
    store.wait_live(FEED)
    put(simulator, *NAMES[1::2])
    store.wait_equal(simulator, FEED, resource="clusterroles")
    for process in (processor, reflector):
        process.kill()
        process.start()
    store.wait_live(FEED)
    return simulator, store, Serve(store, simulator)


def test_each_name_is_stored_and_survives_a_kill(named):
    simulator, store, _ = named
    store.wait_equal(simulator, FEED, resource="clusterroles")
    assert set(store.objects(FEED)) == set(NAMES)
    assert simulator.counters(FEED)["lists"] == 1
    store.verify()


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_each_name_is_found_by_each_command(named, name):
    _, store, serve = named

    def kinf(command, *args):
        return store.kinf(command, *args, check=True).stdout

    escaped = name.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    assert json.loads(kinf("get", "-o", "json", "clusterrole", "--", name))["metadata"]["name"] == name
    assert kinf("get", "-o", "jsonpath={.rules[*].resourceNames[*]}", f"clusterrole/{name}") == name
    assert kinf("get", "-o", "jsonpath={.items[*].metadata.name}", FEED, "--field-selector", f"metadata.name={escaped}") == name
    assert kinf("get", "-o", "jsonpath={.items[*].metadata.name}", FEED, "--index", f"named={name}") == name
    assert kinf("describe", "clusterrole", "--", name).startswith("Name:")
    assert len(kinf("history", "-o", "json", FEED, "--", name).splitlines()) == 1
    for quoted in (urllib.parse.quote(name, safe=""), "".join(f"%{byte:02x}" for byte in name.encode())):
        for accept in ("application/json", TABLE, METADATA):
            server, ours = serve.both(f"{ROLES}/{quoted}", accept=accept)
            assert (server.status, ours.status) == (200, 200)
            assert accept == TABLE or ours.json["metadata"] == server.json["metadata"]
    selected = serve.ask(f"{ROLES}?fieldSelector=" + urllib.parse.quote(f"metadata.name={escaped}", safe=""))
    assert selected.names == [name]


def test_lists_exports_and_watches_have_each_name(named, tmp_path):
    _, store, serve = named
    in_order = sorted(NAMES, key=str.encode)
    watched = store.kinf("watch", FEED, "-o", "json", "--count", str(len(NAMES)), check=True).lines
    assert [event["object"]["metadata"]["name"] for event in watched] == in_order
    assert store.kinf("log", "--since", "1h", check=True).stdout.count(f" ADDED {FEED} ") == len(NAMES)
    exported = tmp_path / "roles.json"
    exported.write_text(store.kinf("export", FEED, check=True).stdout)
    store.kinf("import", "--store", str(tmp_path / "again"), str(exported), check=True)
    again = store.kinf("get", FEED, "--store", str(tmp_path / "again"), "-o", "json", check=True).json["items"]
    assert [o["metadata"]["name"] for o in again] == in_order
    for limit in (1, 2, 7):
        paged, token = [], ""
        while token is not None:
            page = serve.ask(f"{ROLES}?limit={limit}&continue={urllib.parse.quote(token, safe='')}")
            assert page.status == 200, page.body
            paged += page.names
            token = page.json["metadata"].get("continue")
        assert paged == in_order, limit


def test_what_no_store_can_hold_is_skipped_alone_and_the_feed_is_live_when_it_has_gone(simulator, store):
    long, nul = ["n" * 600 + last for last in "ab"], "nul\0name"
    put(simulator, "R&D", long[0], "other")
    _, reflector = store.configure(whole(FEED)).daemons()

    def lacks(count, name, why):
        error = store.feed_status(FEED)["lastError"]
        return store.feed_status(FEED)["state"] == "stale" and error.startswith(count) and name in error and why in error

    eventually(lambda: lacks("an object can't be stored: 'nnn", "...~", "its name has 601 bytes"))
    assert set(store.objects(FEED)) == {"R&D", "other"}
    assert simulator.counters(FEED)["lists"] == 1, "at once, not when it was tried three times"
    put(simulator, nul, long[1], "later")
    eventually(lambda: lacks("3 objects can't be stored: 'nnn", "...~", "its name has 601 bytes"))
    assert set(store.objects(FEED)) == {"R&D", "other", "later"}
    reflector.kill()
    reflector.start()
    eventually(lambda: lacks("3 objects can't be stored: 'nnn", "...~", "its name has 601 bytes"))
    assert store.kinf("dump", "feeds", check=True).stdout.count("passedOver feed=1 name=nnn") == 2

    simulator.delete("clusterroles", long[0])
    simulator.delete("clusterroles", long[1])
    eventually(lambda: lacks("an object can't be stored: 'nul", "", "NUL"))
    assert "feed_recovered" not in reflector.log and "feed_object_readable" not in reflector.log
    simulator.delete("clusterroles", nul)
    store.wait_live(FEED)
    reflector.wait_log("feed_object_readable")
    assert store.feed_status(FEED)["lastError"] == ""
    store.wait_equal(simulator, FEED, resource="clusterroles")
    assert simulator.counters(FEED)["lists"] == 1
    reflector.send(signal.SIGTERM)
    store.verify()
