# SPDX-License-Identifier: Apache-2.0
"""Comparing field selectors, indexes by condition and the advice to make one, earlier states, formats of -o."""

import json
import re
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from harness import eventually
from harness.objects import pod
from harness.store import whole

READY = "status.conditions[type=Ready].status"


def ago(**delta):
    return (datetime.now(timezone.utc) - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def made(number):
    """p0 is the oldest pod: each is an hour younger, has restarted once more and asks for 512Mi more memory."""
    name = f"p{number}"
    one = pod(name, "web" if number % 2 else "shop", creationTimestamp=ago(hours=20 - number))
    one["spec"]["containers"][0]["resources"] = {"requests": {"memory": f"{512 * (number + 1)}Mi", "cpu": "100m"}}
    one["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False"},
        {"type": "Ready", "status": "True" if number % 5 else "False"},
    ]
    one["status"]["containerStatuses"] = [{"name": "a", "restartCount": number}, {"name": "b", "restartCount": 0}]
    one["status"]["startTime"] = ago(hours=20 - number)
    return one


@pytest.fixture(scope="module")
def store(shared):
    simulator = shared.simulator()
    simulator.put("pods", [made(number) for number in range(12)])
    store = shared.store(simulator=simulator)
    store.start(simulator, whole("pods", indexes={"ready": READY}))
    store.wait_live("pods")
    return store


def numbers(store, *args):
    """The numbers of the pods found by `kinf get pods ARGS`."""
    found = store.kinf("get", "pods", "-o", "name", *args, check=True).stdout.split()
    return sorted(int(line.removeprefix("pod/p")) for line in found)


# ---- fields that are not kept ----------------------------------------------------------------------


def test_fields_that_a_feed_does_not_keep_are_refused_instead_of_found_nowhere(workspace):
    simulator = workspace.simulator()
    simulator.put("pods", [made(number) for number in range(3)])
    bare = {"resource": "pods", "name": "bare", "objects": "metadata"}
    part = {"resource": "pods", "name": "part", "drop": ["spec.nodeName", "metadata.labels"]}
    store = workspace.store(simulator=simulator)
    store.configure(bare, part).daemons()
    store.wait_live("bare")
    store.wait_live("part")
    for feed, options, field in [
        ("bare", ["--field-selector", "status.phase!=Running"], "status.phase"),
        ("bare", ["--sort-by", "{.spec.nodeName}"], "spec.nodeName"),
        ("part", ["--field-selector", "spec.nodeName=n1"], "spec.nodeName"),
        ("part", ["-l", "app=front"], "metadata.labels.app"),
        ("part", ["--index", "label=app=front"], "metadata.labels.app"),
        ("part", ["--index", "label=app"], "metadata.labels.app"),
    ]:
        for command in ["get"] + ["watch"] * ("--sort-by" not in options):
            refused = store.kinf(command, feed, *options, timeout=20)
            assert refused.status == 2 and f"feed '{feed}' are kept without '{field}'" in refused.stderr, refused
            assert not refused.stdout, refused
    for feed, options in [
        ("bare", ["--field-selector", "metadata.namespace=web", "-l", "app!=x"]),
        ("bare", ["--sort-by", ".metadata.creationTimestamp"]),
        ("part", ["--field-selector", "status.phase!=x,spec.containers[*].name!=none"]),
    ]:
        assert store.kinf("get", feed, *options, "-o", "name", check=True).stdout, (feed, options)


# ---- comparisons -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "selector,wanted",
    [
        (f"{READY}=False", [0, 5, 10]),
        (f"{READY}!=True,status.containerStatuses[*].restartCount>4", [5, 10]),
        ("status.containerStatuses[*].restartCount>=10", [10, 11]),
        ("status.containerStatuses[name=a].restartCount<2", [0, 1]),
        ("status.containerStatuses[name=a].restartCount < 2", [0, 1]),
        ("status.containerStatuses[*].restartCount<1", list(range(12))),
        ("spec.containers[*].resources.requests.memory>5.5Gi", [11]),
        ("spec.containers[0].resources.requests.memory<=1024Mi", [0, 1]),
        ("spec.containers[0].resources.requests.cpu<0.2,age<10h30m", [10, 11]),
        ("age>19h30m", [0]),
        ("status.startTime>now-9h30m", [11]),
        ("status.startTime<THEN", [0, 1]),
        ("metadata.creationTimestamp>2020-01-01, age<9h30m", [11]),
        ("metadata.name>5", []),
        ("spec.nowhere<5", []),
        ("spec.nowhere>=0", []),
    ],
)
def test_field_selectors_compare(store, selector, wanted):
    assert numbers(store, "--field-selector", selector.replace("THEN", ago(hours=18, minutes=30))) == wanted


@pytest.mark.parametrize(
    "selector,sentence",
    [
        ("a=b=c", "a '=' within a value is written '\\='"),
        ("restarts", "'restarts' has none of = != < <= > >="),
        ("a>", "'a' is compared with ''"),
        ("a>x", "write a number (3, 500m, 1.5Gi), a time (2026-11-22, 2026-11-22T08:30:00Z) or a time ago (now-10m)"),
        ("age<10", "not a duration: '10'"),
        ("age=10m", "compare 'age', the time since an object was created, with < or >"),
        ("a[=b", "field path 'a[', character 3"),
    ],
)
def test_what_a_selector_lacks_is_said(store, selector, sentence):
    answer = store.kinf("get", "pods", "--field-selector", selector)
    assert answer.status == 2 and sentence in answer.stderr and answer.stderr.count("\n") == 1, answer


def test_changes_follow_comparisons_but_not_the_clock(store):
    refused = store.kinf("watch", "pods", "--field-selector", "age<10m")
    assert refused.status == 2 and "changes can't be followed" in refused.stderr, refused
    seen = store.kinf("watch", "pods", "--field-selector", "status.containerStatuses[name=a].restartCount>9", "-o", "name", "--count", "2")
    assert seen.stdout.split() == ["pod/p10", "pod/p11"]


# ---- indexes ---------------------------------------------------------------------------------------


def test_an_index_by_condition_answers_in_any_spelling(store):
    for path in (READY, 'status.conditions[?(@.type=="Ready")].status', "{.status.conditions[?(@.type=='Ready')].status}"):
        answer = store.kinf("get", "pods", "--field-selector", f"{path}=False", "-o", "name", "--explain", check=True)
        assert "term 'False', 3 postings" in answer.stderr and "3 objects read for 3" in answer.stderr, answer
        assert len(answer.stdout.split()) == 3
    assert numbers(store, "--index", "ready=False") == [0, 5, 10]
    assert store.kinf("index", "pods", "ready", check=True).stdout == "False\t3\nTrue\t9\n"


def test_the_advised_index_is_what_was_missing(simulator, workspace):
    simulator.create("pods", 150)
    simulator.put("pods", pod("lonely", phase="Failed"))
    store = workspace.store(simulator=simulator)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    searches = (
        ["--field-selector", "status.phase=Failed"],
        ["--field-selector", "metadata.labels['app']=front,metadata.namespace!=x"],
        ["--sort-by", "{.metadata.uid}", "--limit", "2"],
    )
    indexes = {"node": "spec.nodeName"}
    for search in searches:
        silent = store.kinf("get", "pods", *search, "-o", "name", check=True)
        assert "hint" not in silent.stderr and "plan" not in silent.stderr
        answer = store.kinf("get", "pods", *search, "-o", "name", "-v", check=True)
        found = re.search(r"^hint: 151 objects were read for \d; an index of (.*) would avoid that: .* 'indexes' of the feed 'pods'", answer.stderr, re.M)
        assert found, answer
        indexes[f"index-{len(indexes)}"] = found[1]
    assert [*indexes.values()] == ["spec.nodeName", "status.phase", "metadata.labels['app']", "metadata.uid"]
    store.configure(whole("pods", indexes=indexes))
    store.kinf("reload", check=True)
    for search in searches:

        def quick(search=search):
            answer = store.kinf("get", "pods", *search, "-o", "name", "-v")
            return answer.status == 0 and "all names" not in answer.stderr and "hint" not in answer.stderr and answer.stdout

        eventually(quick, what=f"an index for {search}")


# ---- formats ---------------------------------------------------------------------------------------


def test_json_of_a_template(store):
    text = store.kinf("get", "pods", "-n", "web", "-o", "jsonpath-as-json={.items[*].metadata.name}", check=True).stdout
    assert json.loads(text) == ["p1", "p11", "p3", "p5", "p7", "p9"] and text.startswith('[\n    "p1",\n')
    one = store.kinf("get", "pods", "web/p1", "-o", "jsonpath-as-json={.metadata.labels}{.nothing}", check=True).stdout
    assert one == '[\n    {\n        "app": "front"\n    }\n]\n[]\n'


def test_templates_and_columns_from_files(store, tmp_path):
    template, columns = tmp_path / "t", tmp_path / "c"
    template.write_text("{range .items[*]}{.metadata.name},{end}\n")
    columns.write_text("NAME  NODE\n.metadata.name {.spec.nodeName}\n")
    assert store.kinf("get", "pods", "--prefix", "p1", "-o", f"jsonpath-file={template}", check=True).stdout == "p10,p1,p11,\n"
    shown = store.kinf("get", "pods", "web/p1", "-o", f"custom-columns-file={columns}", check=True).stdout
    assert shown == "NAME   NODE\np1     n1\n"
    columns.write_text("NAME\n")
    wrong = {f"custom-columns-file={columns}": 2, "custom-columns-file=": 2, "jsonpath-file": 2,
             f"jsonpath-file={tmp_path}/none": 1, f"jsonpath-file={tmp_path}": 1}  # unreadable: no usage error
    for form, status in wrong.items():
        answer = store.kinf("get", "pods", "-o", form)
        assert answer.status == status and answer.stdout == "" and answer.stderr.count("\n") == 1, answer


@pytest.mark.parametrize("output", ["go-template={{.x}}", "go-template-file=f", "template={{.x}}", "templatefile=f"])
def test_go_templates_are_refused_with_what_to_use(store, output):
    answer = store.kinf("get", "pods", "-o", output)
    assert answer.status == 2 and "-o jsonpath=" in answer.stderr and "custom-columns" in answer.stderr


def test_managed_fields_are_shown_only_when_asked_for(simulator, workspace):
    simulator.put("pods", pod("a", managedFields=[{"manager": "m"}], annotations={"x": "1"}))
    store = workspace.store(simulator=simulator)
    store.start(simulator, whole("pods"))
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        shown = read(store.kinf("get", "pods", "web/a", "-o", form, "--show-managed-fields", check=True).stdout)
        assert shown == simulator.truth("pods")["web/a"] and shown["metadata"].pop("managedFields")
        assert read(store.kinf("get", "pods", "web/a", "-o", form, check=True).stdout) == shown
        assert read(store.kinf("get", "pods", "-o", form, check=True).stdout)["items"] == [shown]


def test_a_missing_name_may_be_ignored(store):
    for form in ([], ["-o", "json"], ["-o", "yaml"], ["-o", "jsonpath={.x}"]):
        answer = store.kinf("get", "pods", "web/none", "--ignore-not-found", *form)
        assert (answer.status, answer.stdout, answer.stderr) == (0, "", ""), answer
    both = store.kinf("get", "pods", "none", "p1", "-n", "web", "--ignore-not-found", "-o", "name", check=True)
    assert both.stdout == "pod/p1\n"
