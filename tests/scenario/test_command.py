# SPDX-License-Identifier: Apache-2.0
"""The kinf command: output, exit status and error texts of each subcommand."""

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
import yaml

from harness import eventually
from harness.objects import pod
from harness.namespaces import unshare
from harness.process import program, run_command
from harness.store import remove_in_use, whole
from harness.terminal import Terminal


@pytest.fixture(scope="module")
def cluster(shared):
    """(simulator, store): a filled store with running daemons. The tests of this file only read it."""
    simulator = shared.simulator()
    for namespace in ("shop", "web"):
        for number in range(12):
            simulator.put("pods", pod(f"p-{number:02}", namespace, app="ab"[number % 2], node=f"n{number % 3}"))
    simulator.create("deployments.apps", 3)
    simulator.create("nodes", 2)
    store = shared.store(simulator=simulator)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("deployments.apps"), whole("nodes")).daemons()
    for feed in ("pods", "deployments.apps", "nodes"):
        store.wait_equal(simulator, feed)
        store.wait_live(feed)
    return simulator, store


@pytest.fixture
def kinf(cluster):
    return cluster[1].kinf


# ---- get -------------------------------------------------------------------------------------------


def test_get_without_a_name_prints_a_list(cluster, kinf):
    simulator, store = cluster
    listed = kinf("get", "pods", "-o", "json", check=True).json
    assert (listed["kind"], listed["apiVersion"]) == ("List", "v1")
    assert listed["metadata"] == {"resourceVersion": ""}, "kubectl's is empty"
    assert kinf("get", "pods", "-o", "json", "--server-order", check=True).json["metadata"]["resourceVersion"]
    assert kinf("get", "pods", "-o", "jsonpath={.kind}{.metadata.resourceVersion}", check=True).stdout == "List"
    assert kinf("get", "pods", "-o", "jsonpath={.metadata.resourceVersion}", "--server-order", check=True).stdout.isdigit()
    assert [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in listed["items"]] == list(simulator.truth("pods"))


def test_get_with_a_name_prints_the_object(cluster, kinf):
    wanted = cluster[0].truth("pods")["web/p-03"]
    for args in (["p-03", "-n", "web"], ["web/p-03"]):
        assert kinf("get", "pods", *args, "-o", "json", check=True).json == wanted
        assert yaml.safe_load(kinf("get", "pods", *args, "-o", "yaml", check=True).stdout) == wanted
    several = kinf("get", "pods", "p-03", "-o", "json", check=True).json
    assert [o["metadata"]["namespace"] for o in several["items"]] == ["shop", "web"]
    node = next(iter(cluster[0].truth("nodes")))
    assert kinf("get", "nodes", node, "-o", "json", check=True).json["metadata"]["name"] == node


def test_an_empty_name_is_not_the_directory_that_one_is_in(kinf, tmp_path):
    for command in (["get", "pods"], ["remove-store", "--yes"], ["run", "--watch", "pods"]):
        done = run_command([program("kinf"), *command, "--store", ""], cwd=tmp_path)
        assert done.status != 0 and "--store: must not be empty" in done.stderr, done
        assert not list(tmp_path.iterdir())


def test_describe_takes_names_as_get_prints_them(cluster, kinf):
    def describe(*args):
        return re.sub(r"\(\S+ ago\)", "(AGE ago)", kinf("describe", *args, check=True).stdout)

    text = describe("pods", "p-03", "-n", "web")
    assert re.search(r"^Name: +p-03$", text, re.M) and "app=b" in text and "\nHistory:\n" in text and "ADDED" in text
    for args in (("pods", "web/p-03"), ("pods/web/p-03",)):
        assert describe(*args) == text
    both = describe("pod/p-03")
    assert re.findall(r"^Namespace: +(\w+)", both, re.M) == ["shop", "web"]


def test_describe_hides_the_values_of_secrets(simulator, store):
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    meta = {"name": "s", "namespace": "web", "annotations": {applied: '{"data":{"key":"c2VjcmV0"}}', "note": "seen"}}
    simulator.put("secrets", {"metadata": meta, "data": {"key": "c2VjcmV0", "empty": ""}, "type": "Opaque"})
    store.start(simulator, whole("secrets"))
    text = store.kinf("describe", "secrets", "web/s", check=True).stdout
    assert "c2VjcmV0" not in text and re.search(r"^key: +6 bytes$", text, re.M) and re.search(r"^empty: +0 bytes$", text, re.M) and "note: seen" in text, text
    simulator.delete("secrets", "web/s")
    eventually(lambda: store.objects("secrets") == {})
    text = store.kinf("describe", "secrets", "web/s", check=True).stdout
    assert "Deleted" in text and "c2VjcmV0" not in text and "6 bytes" in text, text


def test_a_field_selector_over_a_list_matches_one_of_several_values(simulator, store):
    def statuses(*counts):
        return {"containerStatuses": [{"name": f"c{i}", "restartCount": n} for i, n in enumerate(counts)]}

    for name, status in (("a", statuses(0, 3)), ("b", statuses(0, 0)), ("c", statuses(1)), ("d", {})):
        simulator.put("pods", {"metadata": {"name": name, "namespace": "web"}, "status": status})
    store.start(simulator, whole("pods"))

    def names(selector):
        return [line.removeprefix("pod/") for line in store.kinf("get", "pods", "--field-selector", selector, "-o", "name", check=True).stdout.split()]

    path = "status.containerStatuses[*].restartCount"
    assert names(f"{path}!=0") == ["a", "c", "d"]
    assert names(f"{path}=0") == ["a", "b"]
    assert names(f"{path}!=0,{path}=0") == ["a"]


def test_a_missing_name_is_reported_in_kubectls_words(kinf):
    result = kinf("get", "pods", "x", "-n", "web")
    assert (result.status, result.stdout, result.stderr) == (1, "", 'Error: pods "web/x" not found\n')
    result = kinf("get", "pods", "p-01", "x", "-n", "web", "-o", "name")
    assert (result.status, result.stdout) == (1, "pod/p-01\n") and "web/x" in result.stderr


def test_common_options_may_precede_the_command(cluster):
    for option in (["--store", str(cluster[1].path)], [f"--store={cluster[1].path}", "-v"]):
        result = run_command([program("kinf"), *option, "get", "pods", "-o", "count"])
        assert (result.status, result.stdout) == (0, "24\n"), result
    _, store = cluster
    for option in (["-n", "web"], ["--namespace", "web"], ["-nweb"]):  # as kubectl takes it
        assert store.kinf(*option, "get", "pods", "-o", "name", check=True).stdout == store.kinf("get", "pods", "-n", "web", "-o", "name").stdout != ""


def test_get_prints_each_output_format(kinf):
    table = kinf("get", "pods", check=True).stdout.splitlines()
    assert table[0].split() == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"] and len(table) == 25
    assert table[1].split()[:2] == ["shop", "p-00"] and re.fullmatch(r"\d+[smhdy].*", table[1].split()[-1])
    assert kinf("get", "nodes", check=True).stdout.split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert kinf("get", "pods", "-o", "count", check=True).stdout == "24\n"
    names = kinf("get", "pods", "-n", "web", "-o", "name", check=True).stdout.split()
    assert names == [f"pod/p-{n:02}" for n in range(12)]
    assert kinf("get", "deployments.apps", "-o", "name", check=True).stdout.startswith("deployment.apps/")
    listed = kinf("get", "pods", "-n", "web", "-o", "yaml", check=True).stdout
    assert yaml.safe_load(listed) == kinf("get", "pods", "-n", "web", "-o", "json", check=True).json
    assert kinf("get", "pods", "-o", "xml").status == 2


def test_get_selects_by_each_option(cluster, kinf):
    def names(*args):
        return kinf("get", "pods", *args, "-o", "name", check=True).stdout.split()

    assert len(names()) == len(names("-A")) == 24
    assert len(names("-n", "shop")) == 12 and names("-n", "nowhere") == []
    assert len(names("-l", "app=a")) == 12 and len(names("-l", "app in (a,b)")) == 24
    assert len(names("--field-selector", "spec.nodeName=n1")) == 8
    assert len(names("--field-selector", "metadata.namespace=web,spec.nodeName!=n1")) == 8
    assert len(names("--index", "node=n2", "-n", "web", "-l", "app=b")) == 2
    assert len(names("--prefix", "p-0")) == 20
    assert kinf("get", "pods", "-n", "nowhere").stderr.startswith("No resources found")
    nothing = ["get", "pods", "-n", "nowhere", "-o", "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName"]
    alone = kinf(*nothing, check=True)
    assert (alone.stdout, alone.stderr) == ("NAME   NODE\n", ""), "as kubectl prints them"
    for option in ("--no-headers", "--ignore-not-found"):
        empty = kinf(*nothing, option, check=True)
        assert (empty.stdout, empty.stderr) == ("", ""), empty


@pytest.mark.parametrize(
    "args, words",
    [
        (["run", "pods"], "'pods' is not an option; --watch names the resources to keep"),
        (["get", "pods", "-l", "a in b"], "label selector 'a in b': unable to parse requirement: found 'b' expected: '('"),
        (["get", "pods", "--field-selector", "x"], "x"),
        (["get", "pods", "--index", "node"], "node"),
        (["get", "pods", "--index", "pods/node=node-1"], "the feed is named already: write --index node=node-1"),
        (["get", "nothing"], "add '- resource: nothing' to the feeds in kinf.yaml"),
        (["get", "pods", "--at-least-rv", "99999999", "--timeout", "50ms"], "did not reach resourceVersion '99999999'"),
        (["get", "pods", "--continue", "rubbish"], "continue"),
        (["index", "nothing"], "pods"),
        (["wait", "nothing", "--timeout", "100ms"], "no feed 'nothing'"),
        (["describe", "pods", "web/none"], 'pods "web/none" not found'),
        (["describe", "pods", "none"], 'pods "none" not found'),
        (["describe"], "write a feed, and names"),
        (["describe", "pods", ""], "a name is empty"),
        (["describe", "pods", "x", "-l", "app=b"], "names are given: -l"),
        (["describe", "pods/x", "y"], "write each as FEED/NAME"),
    ],
)
def test_bad_queries_fail_with_one_line(kinf, args, words):
    result = kinf(*args)
    assert result.status in (1, 2) and result.stdout == "" and words in result.stderr, result
    assert result.stderr.count("\n") == 1 or result.status == 2, result


@pytest.mark.parametrize(
    "args",
    ["get", "bogus", "get pods --bogus", "get pods --limit x", "get pods p-00 -l app=a", "get pods web/p-00 -n shop", "get pods/p-00 nodes",
     "get pods ''", "get pods -l 'a in'", "get pods --field-selector a", "get pods --index x", "get pods --sort-by a[", "get pods --continue zzz",
     "get pods -o bogus", "get pods -o jsonpath", "get pods -o jsonpath=", "get pods -o jsonpath={", "get pods -o custom-columns=",
     "get pods -o custom-columns=A", "get pods --timeout x", "get pods --timeout 5s",
     "get pods --at-least-rv abc", "get pods -n a -A", "watch pods -l 'a in'", "watch pods --cursor a/b", "watch pods --count x",
     "watch pods -o bogus", "wait", "wait pods --for x", "wait pods --for rv=abc", "wait pods,nodes", "describe", "describe pods a -l x=y",
     "dump --from x", "dump -o bogus", "dump bogus", "status -o bogus", "cursor bogus", "cursor rm a/b", "diff x", "config", "config bogus",
     "index", "verify a b", "run --config /dev/null --watch pods(", "run --config /dev/null --index x", "--store x"],
)
def test_wrong_usage_exits_with_status_2(kinf, args):
    result = kinf(*shlex.split(args))
    assert result.status == 2 and result.stdout == "" and result.stderr, result


@pytest.mark.parametrize(
    "daemon, option, status, words",
    [
        ("kinf-reflector", "--config=/nonexistent", 78, "configuration '/nonexistent'"),
        ("kinf-processor", "--config=/nonexistent", 78, "configuration '/nonexistent'"),
        ("kinf-processor", "--store=/dev/null/x", None, "store '/dev/null/x'"),
    ],
)
def test_daemons_report_start_errors_in_the_format_of_their_log(daemon, option, status, words):
    result = run_command([program(daemon), "--log-format=json", "--watch=pods", option])
    said, *rest = [json.loads(line) for line in result.stderr.splitlines()]
    assert [line["event"] for line in rest] in ([], ["daemon_stopped"]), result
    assert (said["level"], said["program"]) == ("error", daemon) and words in said["error"], result
    assert result.status == status if status else result.status != 0, result


def test_each_command_prints_its_help_and_the_version(kinf):
    text = kinf("--help", check=True).stdout
    for command in ("run", "get", "watch", "describe", "index", "status", "wait", "dump", "verify", "diff", "config"):
        assert re.search(rf"^\s+{command}\b", text, re.M), text
        said = kinf(command, "--help", check=True).stdout
        assert "sage" in said and kinf("help", command, check=True).stdout == said
    assert kinf("help", check=True).stdout == text and kinf("help", "nothing").status == 2
    assert kinf("version", check=True).stdout == kinf("--version", check=True).stdout
    assert re.search(r"\d+\.\d+", kinf("--version", check=True).stdout)
    for daemon in ("kinf-reflector", "kinf-processor"):
        assert run_command([program(daemon), "--version"]).status == 0
        assert run_command([program(daemon), "--bogus"]).status == 2


# ---- pages -----------------------------------------------------------------------------------------


def page(store, feed, limit, token=None, *args):
    result = store.kinf("get", feed, "-o", "json", "--limit", str(limit), *(["--continue", token] if token else []), *args, check=True)
    names = [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in result.json["items"]]
    return names, result.json["metadata"].get("continue")


def test_pages_hold_each_object_once(cluster):
    simulator, store = cluster
    for args in ([], ["--index", "node=n1"], ["-l", "app=a", "-n", "web"]):
        wanted = list(store.objects("pods", *args))
        found, token = page(store, "pods", 5, None, *args)
        while token:
            more, token = page(store, "pods", 5, token, *args)
            assert len(more) <= 5
            found += more
        assert found == wanted, args
        assert page(store, "pods", len(wanted), None, *args)[1] is None
    table = store.kinf("get", "pods", "--limit", "5", check=True)
    assert len(table.stdout.splitlines()) == 6 and "--continue" in table.stderr
    token = re.search(r"--continue[ =']*([^\s']+)", table.stderr)[1]
    assert store.kinf("get", "pods", "--limit", "5", "--continue", token, check=True).stdout.splitlines()[1].split()[:2] == ["shop", "p-05"]


def test_pages_under_change_skip_and_repeat_nothing(simulator, store):
    """An object present during the whole walk comes exactly once."""
    simulator.create("pods", 200)
    store.start(simulator, whole("pods"))
    before = simulator.truth("pods")
    simulator.churn("pods", 200, 0)
    found, token = page(store, "pods", 40)
    while token:
        # A fixed number a page: with a churn rate the number of deletions would depend on the time
        # of a page.
        simulator.delete_many("pods", 10)
        simulator.create("pods", 10, prefix=f"new-{len(found)}-")
        more, token = page(store, "pods", 40, token)
        found += more
    simulator.churn("pods", 0)
    assert len(found) == len(set(found)) and found == sorted(found, key=lambda key: key.split("/"))
    uid = lambda objects: {(key, obj["metadata"]["uid"]) for key, obj in objects.items()}
    survivors = {key for key, _ in uid(before) & uid(simulator.truth("pods"))}
    assert survivors and survivors <= set(found)


# ---- waiting and freshness -------------------------------------------------------------------------


def test_wait_ends_when_its_condition_holds_or_times_out(cluster, kinf):
    simulator, store = cluster
    for condition in ("synced", "live", "object=web/p-01"):
        kinf("wait", "pods", "--for", condition, "--timeout", "2m", check=True)
    for condition in ("object=web/none", f"rv={int(simulator.rv) + 100000}"):
        result = kinf("wait", "pods", "--for", condition, "--timeout", "200ms")
        assert result.status == 1 and "timed out" in result.stderr, result
    for condition, status in ("synced", 0), ("live", 0), ("object=web/p-01", 0), ("object=web/none", 1), ("rv=99999999", 1):
        result = kinf("wait", "pods", "--for", condition, "--timeout", "0s")  # looks once, as kubectl's
        assert result.status == status and ("timed out" in result.stderr) == status, result
    result = kinf("wait", "nothing", "--timeout", "200ms")
    assert result.status == 1, result
    endless = store.follower("wait", "nothing", name="kinf-wait")
    endless.wait_log("note: waiting; no feed 'nothing'")
    endless.kill()


def test_at_least_rv_shows_a_client_its_own_write(simulator, store):
    simulator.create("pods", 5)
    store.start(simulator, whole("pods"))
    for number in range(5):
        rv = simulator.patch("pods", next(iter(simulator.truth("pods"))), {"spec": {"n": number}})
        found = store.kinf("get", "pods", "-o", "json", "--at-least-rv", rv, "--timeout", "2m", check=True).json
        assert any(o["spec"].get("n") == number for o in found["items"])
    result = store.kinf("get", "pods", "--at-least-rv", str(int(rv) + 1000), "--timeout", "200ms")
    assert result.status == 1 and result.stdout == "", result


def test_at_least_rv_of_a_namespace_does_not_wait_for_a_quiet_one(simulator, store):
    """A quiet feed comes to a resourceVersion with the next bookmark."""
    simulator.put("pods", {"metadata": {"name": "a", "namespace": "web"}})
    store.start(simulator, whole("pods", namespaces=["web", "shop"]))
    rv = simulator.put("pods", {"metadata": {"name": "b", "namespace": "web"}})
    found = store.kinf("get", "pods", "-n", "web", "-o", "name", "--at-least-rv", rv, "--timeout", "20s", check=True)
    assert found.stdout == "pod/a\npod/b\n", found
    late = store.kinf("get", "pods", "--at-least-rv", rv, "--timeout", "0s")
    assert late.status == 1 and f"feed 'pods' in shop did not reach resourceVersion '{rv}'" in late.stderr, late


# ---- status ----------------------------------------------------------------------------------------


def test_status_prints_json(cluster, kinf):
    simulator, store = cluster
    follower = store.follower("watch", "pods", "-o", "json")
    eventually(lambda: "SYNC" in follower.out)
    status = kinf("status", "-o", "json", check=True).json
    assert set(status) >= {"store", "processes", "feeds", "readers"}
    assert status["store"]["path"] == str(store.path) and not status["store"].get("lastError")
    processes = {p["name"]: p for p in status["processes"]}
    assert set(processes) == {"kinf-reflector", "kinf-processor"}
    started = {process.name: process.pid for process in store.processes if process.running}
    for name, process in processes.items():
        assert process["pid"] == started[name] and set(process) >= {"state", "uptimeSeconds", "restarts"}
    assert processes["kinf-reflector"]["counters"]["feed.lists"] == 3
    assert processes["kinf-processor"]["counters"].keys() == processes["kinf-reflector"]["counters"].keys()
    feeds = {f["name"]: f for f in status["feeds"]}
    assert list(feeds) == ["deployments.apps", "nodes", "pods"]
    feed = feeds["pods"]
    assert feed["resource"] == "pods" and feed["state"] == "live" and feed["objects"] == 24 and feed["lag"] == 0
    assert feed["lists"] == 1 and feed["watches"] >= 1 and 0 <= feed["lastContactSeconds"] < 60
    assert int(feed["resourceVersion"]) <= int(simulator.rv)
    assert any(reader["pid"] == follower.pid for reader in status["readers"]), status["readers"]
    assert follower.stop() == 0


# ---- run -------------------------------------------------------------------------------------------


def test_run_shows_the_progress_of_first_lists_on_a_terminal(simulator, store):
    """`kinf run` shows it again after the store was removed and the daemons made a new one."""
    simulator.create("pods", 20)
    simulator.fault(verb="list", resource="pods", path="continue=", status=503)
    store.configure(whole("pods", pageSize=10), backoff={"min": "50ms", "max": "100ms"})
    argv = [program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime]
    page = Terminal(argv, store.env, columns=150)

    def shown():
        page.lines()
        return page.written.decode()

    try:
        eventually(lambda: "\r\x1b[Klisting: 10 of 20 objects" in shown())
        remove_in_use(store.path)
        eventually(lambda: " removed " in shown() and "listing: 10 of 20" in shown().rpartition(" removed ")[2])
        simulator.clear_faults()
        store.wait_equal(simulator, "pods")
        eventually(lambda: "\r\x1b[K" in shown().rpartition("listing: ")[2])
        page.press("\x03")
        assert page.wait() == 0
    finally:
        page.close()


# ---- offline ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copy(cluster, shared):
    """A copy of a store, in another directory, made while its daemons were stopped."""
    simulator, _ = cluster
    other = shared.store("copied", simulator)
    daemons = other.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    for process in reversed(daemons):
        process.stop()
    return other.copy(shared.directory / "elsewhere")


def everything(directory):
    """{path: (size, mtime)} of all files below DIRECTORY."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def check_copy(simulator, kinf):
    listed = kinf("get", "pods", "-o", "json").json
    assert listed["items"] == list(simulator.truth("pods").values())
    assert len(kinf("get", "pods", "--index", "node=n1", "-o", "name").stdout.split()) == 8
    assert kinf("verify", "--deep").stdout == ""
    assert kinf("dump", "feeds").stdout
    assert kinf("status", "-o", "json").json["feeds"][0]["objects"] == 24
    assert kinf("index", "pods", "node").stdout == "n0\t8\nn1\t8\nn2\t8\n"
    assert len(kinf("watch", "pods", "-o", "json", "--count", "24").lines) == 24


def test_a_copied_store_is_read_and_not_written(cluster, copy):
    simulator, store = cluster
    before = everything(copy)
    check_copy(simulator, lambda *args: store.kinf(*args, "--store", str(copy), check=True))
    assert everything(copy) == before


def test_a_copied_store_is_offline_while_the_original_is_live(simulator, store):
    simulator.create("pods", 5)
    daemons = store.start(simulator, whole("pods"))
    for process in reversed(daemons):
        process.stop()
    copy = store.copy(store.directory / "elsewhere")
    for process in daemons:
        process.start()
    store.wait_live("pods")
    status = store.kinf("status", "-o", "json", "--store", copy, check=True).json
    assert {p["state"] for p in status["processes"]} == {"not running"}, status
    assert [f["state"] for f in status["feeds"]] == ["offline"], status
    simulator.touch("pods")
    eventually(lambda: store.feed_status("pods")["events"] >= 5)
    before = store.kinf("status", "-o", "json", "--store", copy, check=True).json["feeds"][0]["lastContactSeconds"]
    now = store.feed_status("pods")["lastContactSeconds"]
    assert before > now >= 0, "the copy knows the contact of when it was made, not the original's"
    store.kinf("get", "pods", "--store", copy, "--max-staleness", "1h", check=True)


def test_a_copied_store_is_read_on_a_read_only_mount(cluster, copy):
    simulator, store = cluster
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'

    def kinf(*args):
        argv = [*unshare("-rm"), "sh", "-c", mount, copy, program("kinf"), *args, "--store", copy]
        result = run_command(argv, store.env)
        assert result.status == 0, result
        return result

    check_copy(simulator, kinf)


def test_diff_prints_each_object_that_differs(simulator, store):
    for name in "abc":
        simulator.put("pods", pod(name))
    daemons = store.start(simulator, whole("pods"))
    for process in reversed(daemons):
        process.stop()
    before = str(store.copy(store.directory / "before"))
    simulator.delete("pods", "web/a")
    simulator.put("pods", pod("b", app="another"))
    simulator.put("pods", pod("d"))
    for process in daemons:
        process.start()
    store.wait_equal(simulator, "pods")
    result = store.kinf("diff", before, str(store.path))
    versions = [json.loads(store.kinf("get", "pods", "web/b", "-o", "json", "--store", path).stdout)["metadata"]["resourceVersion"] for path in (before, str(store.path))]
    assert result.stdout.splitlines() == ["< pods web/a", "! pods web/b " + " ".join(versions), "> pods web/d"], result
    assert result.status == 1 and result.stderr == "", result
    store.kinf("diff", before, before, check=True)
    assert store.kinf("diff", before, str(store.directory / "none")).stderr.startswith("Error: no store at ")


def test_diff_does_not_take_an_unlisted_feed_for_an_empty_one(simulator, store):
    simulator.create("pods", 3)
    simulator.fault(verb="list", resource="nodes", status=403, body="no")
    store.start(simulator, whole("pods"), whole("nodes"))
    eventually(lambda: store.feed_status("nodes")["state"] == "forbidden")
    result = store.kinf("diff", str(store.path), str(store.path))
    assert result.status == 1 and result.stdout == "", result
    assert result.stderr.startswith("Error: nodes: never listed so far, it is forbidden: ") and "grant the account of the daemons 'list' and 'watch' of nodes" in result.stderr, result


def test_a_feed_that_nobody_lists_any_more_is_offline(simulator, store):
    """Without a reflector 'wait with kinf wait' would be a lie."""
    simulator.create("pods", 20)
    simulator.fault(verb="list", resource="pods", delayMs=60000)
    processor, reflector = store.configure(whole("pods")).daemons()
    eventually(lambda: store.feed_status("pods")["state"] == "listing")
    reflector.stop()
    assert store.feed_status("pods")["state"] == "offline"
    result = store.kinf("get", "pods")
    assert result.status == 1 and result.stdout == "", result
    assert "pods: never listed so far, it is offline: kinf-reflector does not run; start it with 'kinf run'" in result.stderr


@pytest.mark.parametrize("command", [["get", "pods"], ["watch", "pods"], ["status"], ["verify"], ["dump"], ["index", "pods"]])
def test_a_missing_store_is_reported(store, command):
    store.configure("pods")
    result = store.kinf(*command)
    assert result.status == 1 and "no store" in result.stderr and "kinf run" in result.stderr, result
    shown = f"Store:   {store.path}\nJournal: none\n" if command == ["status"] else ""
    assert result.stdout.partition("Index:")[0] == shown, result
    assert not store.path.exists()


# ---- dump and verify -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["feeds", "objects", "terms", "postings", "events", "journal", "cursors", "meta", "ring"])
def test_dump_prints_each_part_of_a_store(cluster, kinf, what):
    kinf("dump", what, check=True)
    for line in kinf("dump", what, "-o", "json", check=True).stdout.splitlines():
        json.loads(line)


def test_dump_prints_the_records_of_one_object(cluster, kinf):
    simulator, _ = cluster
    wanted = simulator.truth("pods")["web/p-07"]
    records = kinf("dump", "journal", "--feed", "pods", "--key", "web/p-07", "--body", "-o", "json", check=True).lines
    assert len(records) == 1 and records[0]["type"] == "ADDED" and records[0]["key"] == "web/p-07"
    assert wanted in records[0].values()
    assert "web/p-07" in kinf("dump", "journal", check=True).stdout


@pytest.mark.parametrize("name", ["pod", "po", "PODS", "pods.v1", "1"])
def test_dump_takes_each_name_of_a_feed(kinf, name):
    wanted = kinf("dump", "objects", "--feed", "pods", check=True).stdout
    assert kinf("dump", "objects", "--feed", name, check=True).stdout == wanted != ""


def test_verify_of_one_feed_reads_its_bodies_only(simulator, store):
    simulator.create("pods", 30)
    simulator.create("configmaps", 3)
    store.configure("pods", "configmaps").daemons()
    store.wait_equal(simulator, "configmaps", where=lambda o: o["metadata"].pop("managedFields", True) or True)
    store.wait_synced("pods")
    said = store.kinf("verify", "configmaps", "--deep", check=True).stderr
    assert " 3 bodies read" in said, said
    assert " 33 bodies read" in store.kinf("verify", "--deep", check=True).stderr
    missing = store.kinf("verify", "nothing", "--deep")
    assert missing.status == 1 and "no feed 'nothing'" in missing.stderr, missing


def test_commands_end_quietly_when_their_pipe_is_closed(cluster):
    _, store = cluster
    for command in ("get pods -o json", "dump journal", "get pods", "status", "top", "watch pods -o json", "watch pods -o name", "get nodes -w"):  # nothing changes
        result = run_command(["sh", "-c", f"{program('kinf')} {command} | head -c 1"], store.env)
        assert len(result.stdout) == 1 and not re.search("(?i)error|signal", result.stderr), result


@pytest.mark.parametrize(
    "words",
    ["kinf get pods -o json", "kinf get pods", "kinf status", "kinf index pods", "kinf dump feeds", "kinf --help", "kinf help", "kinf --version",
     "kinf version", "kinf get --help", "kinf help get", "kinf run --version", "kinf config check", "kinf config rbac",
     "kinf metrics", "kinf export", "kinf-reflector --help", "kinf-processor --version", "kinf-serve --help"],
)
def test_output_that_cannot_be_written_is_an_error(cluster, words):
    _, store = cluster
    name, *rest = words.split()
    result = run_command(["sh", "-c", f"exec {program(name)} {' '.join(rest)} > /dev/full"], store.env)
    assert result.status == 1 and "writing the output: No space left on device" in result.stderr.splitlines()[-1], result


@pytest.mark.parametrize("words", ["kinf get pods", "kinf status", "kinf run", "kinf wait pods", "kinf-reflector", "kinf-processor", "kinf-serve"])
def test_a_format_of_the_log_that_there_is_not_is_refused(cluster, words):
    _, store = cluster
    name, *rest = words.split()
    result = run_command([program(name), *rest, "--log-format", "xml"], store.env)
    assert result.status == 2 and "option --log-format: must be text or json, not 'xml'; see '" in result.stderr, result


def test_a_configuration_file_given_by_option_is_always_read(simulator, store):
    """Even when the command does not need it, because $KINF_STORE or --store names the store. A
    mistake in it is told."""
    simulator.create("pods", 2)
    store.start(simulator, whole("pods"))
    missing = store.directory / "missing.yaml"
    broken = store.directory / "broken.yaml"
    broken.write_text("colour: red\n")
    for file in (missing, broken):
        for command in (["get", "pods"], ["status"], ["get", "pods", "--store", store.path]):
            result = store.kinf(*command, "--config", file)
            assert file.name in result.stderr, result
            assert (result.status, bool(result.stdout)) == ((1, False) if file == missing else (0, True)), result
    assert store.kinf("get", "pods", "--config", store.config, "-o", "count").stdout == "2\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_process_1_ends_by_a_signal(simulator, store, number):
    """An init container waiting for a feed; the kernel gives process 1 only signals with a handler."""
    store.start_synced("pods")
    outer = store.process("wait", [*unshare("-rpf", "--kill-child"), program("kinf"), "wait", "pods", "--for", "object=web/none"]).start()

    def ended():
        if inner := Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split() if outer.running else []:
            os.kill(int(inner[0]), number)
        return not outer.running

    eventually(ended)
    assert outer.wait() == 128 + number, outer.tail()
