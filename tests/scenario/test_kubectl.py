# SPDX-License-Identifier: Apache-2.0
"""A kubectl user's commands: docs/kubectl.md as it stands, the plugin `kubectl kinf`, near misses."""

import os
import re
import shutil

import pytest
import yaml

from harness import eventually
from harness.objects import pod
from harness.process import BUILD, ROOT, run_command
from harness.store import whole

BLOCKS = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/kubectl.md").read_text(), re.M | re.S)
KUBECTL = shutil.which("kubectl")

# As kubectl starts a plugin.
STAND_IN = """#!/bin/sh
plugin=$1
shift
exec "$(command -v "kubectl-$plugin")" "$@"
"""


@pytest.fixture(scope="module")
def store(shared):
    simulator = shared.simulator()
    simulator.put("pods", [pod("front-0", node="node-1"), pod("front-1", app="a"), pod("back-0", "shop", app="back")])
    simulator.put("nodes", {"metadata": {"name": "node-1"}})
    simulator.put("deployments.apps", {"metadata": {"name": "front", "namespace": "web"}, "spec": {"replicas": 1}})
    store = shared.store(simulator=simulator)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), "nodes", "deployments.apps").daemons()
    for feed in ("pods", "nodes", "deployments.apps"):
        store.wait_live(feed)
    front = pod("front-0", node="node-1", phase="Failed")
    front["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
    front["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    front["status"]["containerStatuses"] = [{"name": "a", "restartCount": 2}]
    simulator.put("pods", front)
    store.wait_equal(simulator, "pods")
    eventually(lambda: store.kinf("log", "pods").stdout.count("\n") == 4)
    return store


@pytest.fixture(scope="module")
def programs(store):
    """A directory for $PATH with kinf and its names for kubectl."""
    directory = store.directory / "bin"
    directory.mkdir()
    for name in ("kinf", "kubectl-kinf", "kubectl_complete-kinf"):
        (directory / name).symlink_to(BUILD / "kinf")
    (directory / "kubectl").write_text(STAND_IN)
    (directory / "kubectl").chmod(0o755)
    return directory


# ---- the page --------------------------------------------------------------------------------------


def test_the_page_has_blocks():
    assert len(BLOCKS) >= 6 and sum(block.count("\n") for block in BLOCKS) >= 25


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n")[0][:40] for block in BLOCKS])
def test_each_line_of_the_page_works(store, programs, block):
    event = store.kinf("log", "pods", "-o", "json", check=True).lines[-1]["event"] - 1  # before front-0 failed
    version = store.feed_status("pods")["resourceVersion"]
    env = {**store.env, "PATH": f"{programs}:{os.environ['PATH']}", "EVENT": str(event), "RV": version}
    for line in block.splitlines():
        answer = run_command(["sh", "-c", line], env)
        assert answer.status == line.startswith("kinf diff") and "Error" not in answer.stderr, answer
        assert answer.stdout or "--ignore-not-found" in line, answer


# ---- near misses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["-w", "-Aw", "-wA", "--watch", "--watch=true", "-wo name", "-w --watch-only=false"])
def test_get_watches_however_the_flag_is_written(store, words):
    answer = store.kinf("get", "pods", *words.split(), "-o", "name", "--count", "3", check=True)
    assert sorted(answer.stdout.split()) == ["pod/back-0", "pod/front-0", "pod/front-1"]


@pytest.mark.parametrize("words", ["--watch=false", "-w --watch=false", "--watch-only=false"])
def test_get_lists_if_the_flag_says_no(store, words):
    assert store.kinf("get", "pods", *words.split(), "-o", "count", check=True).stdout == "3\n"


@pytest.mark.parametrize(
    "words",
    ["get pods", "get pods front-0", "get pods -A", "get pods -o json", "watch pods --count 3", "log pods", "describe pods front-0",
     "history pods front-0", "diff pods front-0 --from 1"],
)
def test_an_empty_namespace_is_none(store, words):
    """Of an unset variable: kinf get pods -n "$NS"."""
    given, plain = store.kinf(*words.split(), "-n", ""), store.kinf(*words.split())
    for answer in given, plain:  # time-dependent parts
        answer.stdout = re.sub(r"\(.* ago\)| +\d+s\b", "", answer.stdout)
    assert (given.status, given.stdout, given.stderr) == (plain.status, plain.stdout, plain.stderr)


# ---- the plugin ------------------------------------------------------------------------------------


def test_the_plugin_names_the_command_that_was_typed(programs, store):
    env = {**store.env, "PATH": f"{programs}:{os.environ['PATH']}"}

    def kubectl(*args):
        return run_command([programs / "kubectl", "kinf", *args], env)

    assert kubectl("get", "pods", "-o", "name").stdout.split() == ["pod/back-0", "pod/front-0", "pod/front-1"]
    assert kubectl("get", "--help").stdout.startswith("Usage: kubectl kinf get FEED")
    assert kubectl("--help").stdout.startswith("usage: kubectl kinf COMMAND")
    assert kubectl("get", "--frist").stderr == "kubectl kinf get: unknown option '--frist'; see 'kubectl kinf get --help'\n"
    assert kubectl("gte").stderr == "kubectl kinf: unknown command 'gte': did you mean 'get'?; see 'kubectl kinf --help'\n"
    assert store.kinf("get", "--help").stdout.startswith("Usage: kinf get FEED")


@pytest.mark.parametrize(
    "words,candidates,directive",
    [
        (["get", "po"], ["pods"], 4),
        (["get", "pods", "-n", ""], ["shop", "web"], 4),
        (["get", "pods", "-o", "jsonpath-f"], ["jsonpath-file="], 6),
        (["run", "--kubeconfig", ""], [], 0),
        (["get", "pods", "--store", ""], [], 16),
        (["wat"], ["watch"], 4),
    ],
)
def test_kubectl_completes_the_plugin(programs, store, words, candidates, directive):
    answer = run_command([programs / "kubectl_complete-kinf", *words], store.env)
    *lines, last = answer.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == candidates and last == f":{directive}", answer


@pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")
def test_kubectl_itself_finds_the_plugin(programs, store):
    env = {**store.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    assert run_command([KUBECTL, "kinf", "get", "pods", "-o", "count"], env).stdout == "3\n"


# ---- near misses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pods", "Pods", "PODS", "pod", "Pod", "po", "PO", "pods.v1"])
def test_kinds_in_any_case(store, name):
    assert store.kinf("get", name, "-o", "count", check=True).stdout == "3\n"


@pytest.mark.parametrize(
    "args,sentence",
    [
        (["get", "pdos"], "no feed 'pdos': did you mean 'pods'?"),
        (["get", "all", "--limit", "1"], "--limit, --continue and --at-least-rv are for one feed"),
        (["get", "all", "--continue", "x"], "--limit, --continue and --at-least-rv are for one feed"),
        (["get", "all", "front-0"], "'all' stands for several kinds: a name needs one kind"),
        (["describe", "pods", "gone-0"], 'pods "gone-0" not found; for a deleted one write -n NAMESPACE, or NAMESPACE/NAME'),
        (["describe", "all", "x"], "no feed is called 'all': name one of"),
        (["get", "pods", "--lable-columns", "x"], "unknown option '--lable-columns': did you mean --label-columns?"),
        (["get", "pods", "--show"], "option '--show' may be --show-managed-fields, --show-labels, --show-kind"),
        (["get", "pods", "--field-selector", "a=b=c"], "a '=' within a value is written '\\='"),
        (["get", "pods", "-o", "ymal"], "output 'ymal': allowed are table, wide, json, yaml"),
        (["get", "pods", "-o", "go-template={{.x}}"], "Go templates are not supported; write the template as -o jsonpath"),
        (["get", "pods/front-0", "front-1"], "write each as FEED/NAME, or 'FEED NAME...'"),
        (["wait", "pod/front-0"], "wait for a feed; for one object write pod --for object=NAMESPACE/front-0"),
        (["index", "pod/front-0"], "no feed 'pod/front-0': write the name of one feed and nothing else; there are: "),
        (["get", "pods", "--at-least-rv", "0"], "an object's begins with another digit, and 0 stands for any"),
        (["gets", "pods"], "unknown command 'gets': did you mean 'get'?"),
    ],
)
def test_near_misses_say_what_to_type(store, args, sentence):
    answer = store.kinf(*args)
    assert answer.status in (1, 2) and sentence in answer.stderr and answer.stdout == "", answer


def test_watch_prints_yaml_documents(store):
    printed = store.kinf("get", "pods", "-n", "web", "-w", "-o", "yaml", "--count", "2", check=True).stdout
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(printed)] == ["front-0", "front-1"]
    assert printed.count("---\n") == 1


def test_kinds_and_names_mixed(store):
    def printed(*args):
        return store.kinf("get", *args, check=True).stdout

    assert printed("po/front-0", "NODE/node-1", "deploy/front", "-o", "name").split() == ["pod/front-0", "node/node-1", "deployment.apps/front"]
    assert printed("pods,nodes", "-o", "name").split()[-1] == "node/node-1"
    for form in ("wide", "yaml", "json"):
        assert all(name in printed("po,no,deploy", "-o", form) for name in ("front-0", "node-1", "front"))
    assert printed("pods", "-n=web", "-o=name") == "pod/front-0\npod/front-1\n"
    assert "NAME" not in printed("pods", "--no-headers=true")
    assert store.kinf("get", "nodes", "node-1", "-n", "web", "-o", "name", check=True).stdout == "node/node-1\n"
    none = store.kinf("get", "nodes", "-n", "web", "--prefix", "x")
    assert (none.stdout, none.stderr) == ("", "No resources found\n")
    assert printed("all", "-o", "name").split()[-1] == "deployment.apps/front"
    assert printed("pods", "web/front-0", "shop/back-0", "-o", "name") == "pod/front-0\npod/back-0\n"


def test_several_objects_are_described(store):
    """kubectl describes all objects of a kind, those of a selector, and several names."""

    def names(*args):
        found = store.kinf("describe", *args, check=True).stdout
        return [line.split()[1] for line in found.splitlines() if line.startswith("Name:")]

    assert names("nodes") == store.kinf("get", "nodes", "-o", "custom-columns=:.metadata.name", "--no-headers").stdout.split()
    assert names("pods", "-n", "web") == ["front-0", "front-1"]
    assert names("po", "-l", "app in (a,front)", "-A") == ["front-0", "front-1"]
    assert names("pods", "front-1", "web/front-0", "-n", "web") == ["front-1", "front-0"]
    assert names("pod/front-0", "node/node-1") == ["front-0", "node-1"]
    assert names("nodes,pods", "-n", "web")[-2:] == ["front-0", "front-1"] and names("no,po", "-n", "web")[0].startswith("node-")
    assert names("pods", "front", "-n", "web") == names("pods", "front-") == ["front-0", "front-1"]
    none = store.kinf("describe", "pods", "-n", "nowhere")
    assert (none.status, none.stdout) == (0, "") and "No resources found in nowhere namespace." in none.stderr, none
    one = store.kinf("describe", "pods", "front-9", "front-0", "-n", "web")
    assert one.status == 1 and "front-0" in one.stdout and 'pods "web/front-9" not found' in one.stderr, one


def test_names_are_sorted_as_lists_are(store):
    """`kinf get pods p1 --sort-by=...` was refused; kubectl takes it."""
    get = lambda *args: store.kinf("get", "pods", *args, "-o", "name")
    assert get("front-0", "-n", "web", "--sort-by=.metadata.name").stdout == "pod/front-0\n"
    assert get("front-1", "front-0", "-n", "web", "--sort-by=.metadata.name").stdout == "pod/front-0\npod/front-1\n"
    assert get("web/front-1", "back-0", "web/front-0", "--sort-by=.metadata.name").stdout == "pod/back-0\npod/front-0\npod/front-1\n"
    missing = get("front-9", "front-0", "-n", "web", "--sort-by=.metadata.name")
    assert missing.status == 1 and missing.stdout == "pod/front-0\n" and 'pods "web/front-9" not found' in missing.stderr, missing
    assert get("front-9", "-n", "web", "--sort-by=.x", "--ignore-not-found").status == 0
    assert get("front-0", "-n", "web", "--sort-by=.x[").status != 0
