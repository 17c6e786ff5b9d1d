# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/examples, built against an installed tree as users build them."""

import random
import re

import pytest

from harness import eventually
from harness.installed import Installed
from harness.objects import pod
from harness.process import ROOT, run_command
from harness.store import whole

NAMES = ("controller", "exporter", "follower")


@pytest.fixture(scope="module")
def examples(installed, tmp_path_factory):
    """{name: program}."""
    directory = tmp_path_factory.mktemp("examples")
    return {name: installed.compile(ROOT / f"tests/examples/{name}.c", directory / name) for name in NAMES}


@pytest.fixture
def example(installed, examples, store):
    """example(name, arguments...): a process on `store`, not started."""
    return lambda name, *arguments: store.process(name, [examples[name], *arguments], installed.env)


# ---- what is installed -----------------------------------------------------------------------------


def test_examples_link_against_the_versioned_library(installed, examples):
    for path in examples.values():
        needed = run_command(["objdump", "-p", path]).stdout
        assert "libkinf.so.0" in needed, needed
    assert installed.pkg_config("--modversion") == [run_command([installed.root / "bin/kinf", "--version"]).stdout.split()[1]]
    assert (installed.root / "lib/libkinf.so").readlink().name == "libkinf.so.0"


def test_the_library_exports_what_its_headers_declare(installed):
    declared = re.findall(r"^KINF_API .*?\b(kinf_\w+)\(", "".join(h.read_text() for h in ROOT.glob("reader/kinf*.h")), re.M)
    symbols = run_command(["nm", "-D", "--defined-only", installed.root / "lib/libkinf.so.0"]).stdout
    exported = {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] != "A"}
    assert exported == {f"{name}@@KINF_0" for name in declared}


def test_uninstall_removes_every_installed_file(tmp_path):
    installed = Installed(tmp_path)
    assert "bin/kinf" in installed.files() and "include/kinf.h" in installed.files()
    installed.make("uninstall")
    assert installed.files() == set()


# ---- controller ------------------------------------------------------------------------------------


def pod_of(number, ready, node="n1", namespace="web"):
    """A pod with a Ready condition, after another condition."""
    status = {"type": "Ready", "status": "True" if ready else "False"}
    made = pod(f"p{number}", namespace, node=node, phase="Running" if ready else "Pending")
    made["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}, status]
    return made


@pytest.fixture
def reports(store):
    directory = store.directory / "reports"
    directory.mkdir()
    return directory


def wait_reports(reports, *numbers):
    """Waits until there are reports of these pods and no others."""
    wanted = {f"web_p{number}" for number in numbers}
    eventually(lambda: {path.name for path in reports.iterdir()} == wanted, what=f"reports {wanted}")


def test_controller_keeps_one_report_for_each_pod_that_is_not_ready(simulator, store, reports, example):
    simulator.put("pods", [pod_of(i, ready=i % 2 == 0) for i in range(6)] + [pod_of(9, False, "n2")])
    store.start_synced(whole("pods"))
    controller = example("controller", "n1", reports).start()
    wait_reports(reports, 1, 3, 5)
    eventually(lambda: (reports / "web_p1").read_text() == "web/p1 is not ready: Pending\n")
    simulator.put("pods", pod_of(1, ready=True))
    simulator.put("pods", pod_of(2, ready=False))
    simulator.delete("pods", "web/p3")
    wait_reports(reports, 2, 5)
    # A restarted controller finds the missed changes, deletions included.
    controller.kill()
    simulator.delete("pods", "web/p5")
    simulator.put("pods", pod_of(4, ready=False))
    store.wait_equal(simulator, "pods")
    controller.start()
    wait_reports(reports, 2, 4)
    assert controller.stop() == 0


def test_controller_retries_a_report_that_failed(simulator, store, reports, example):
    simulator.put("pods", pod_of(1, ready=True))
    store.start_synced(whole("pods"))
    controller = example("controller", "n1", reports).start()
    eventually(lambda: "synced" in controller.out)
    away = reports.rename(store.directory / "away")
    simulator.put("pods", pod_of(1, ready=False))
    controller.wait_log(r"(?s)web/p1: .*No such file or directory; trying again.*web/p1: .*; trying again")
    away.rename(reports)
    wait_reports(reports, 1)  # the controller retries without another event
    reports.rename(away)
    tries = controller.log.count("trying again")
    simulator.put("pods", pod_of(1, ready=True))
    eventually(lambda: controller.log.count("trying again") > tries)
    away.rename(reports)
    wait_reports(reports)
    assert controller.stop() == 0


# ---- exporter --------------------------------------------------------------------------------------


def test_exporter_prints_the_metrics_of_one_snapshot(simulator, store, tmp_path, installed, examples):
    simulator.put("pods", [pod("a", "web"), pod("b", "shop", node='odd"\\node', phase="Pending")])
    store.start(simulator, whole("pods"))

    def export(*arguments):
        result = run_command([examples["exporter"], *arguments], {**store.env, **installed.env})
        assert result.status == 0, result
        return result.stdout.splitlines()

    def is_complete():
        lines = export()
        for line in (
            'kinf_feed_synced{feed="pods",namespace=""} 1',
            'kinf_feed_live{feed="pods",namespace=""} 1',
            'kinf_feed_objects{feed="pods",namespace=""} 2',
            'kinf_pods{namespace="shop"} 1',
            'kinf_pods{namespace="web"} 1',
            'kube_pod_info{namespace="shop",pod="b",node="odd\\"\\\\node",phase="Pending"} 1',
            'kube_pod_info{namespace="web",pod="a",node="n1",phase="Running"} 1',
        ):
            assert lines.count(line) == 1, (line, lines)
        assert sum(line.startswith("# TYPE ") for line in lines) == 5
        return True

    eventually(is_complete)  # the feed becomes live a moment after its list
    assert export(tmp_path / "kinf.prom") == []
    text = (tmp_path / "kinf.prom").read_text()
    assert text.endswith("\n") and text.count("kube_pod_info{") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kinf.prom"]


def test_exporter_without_the_feed_leaves_the_old_file(simulator, store, tmp_path, example):
    store.start_synced(whole("services"))
    (tmp_path / "kinf.prom").write_text("old\n")
    exporter = example("exporter", tmp_path / "kinf.prom").start()
    assert exporter.wait() == 1
    assert "pods" in exporter.log
    assert (tmp_path / "kinf.prom").read_text() == "old\n"


# ---- follower --------------------------------------------------------------------------------------


def lines_of(follower):
    """The lines it printed, in order and without repetitions, as (event, type, key, resourceVersion)."""
    assert follower.out == "" or follower.out.endswith("\n"), "a torn line"
    return [tuple(line.split()) for line in dict.fromkeys(follower.out.splitlines())]


def test_follower_killed_at_any_time_prints_each_change(simulator, store, example):
    choice = random.Random(5)
    simulator.put("pods", [pod(f"p{i}") for i in range(5)])
    store.start_synced(whole("pods"))
    follower = example("follower", "pods", "archive").start()
    eventually(lambda: (store.path / "cursors/archive").exists())
    changes = []
    for number in range(120):
        name = f"p{choice.randrange(8)}"
        known = f"web/{name}" in simulator.truth("pods")
        if known and choice.random() < 0.3:
            simulator.delete("pods", f"web/{name}")
            changes.append(("DELETED", f"web/{name}"))
        else:
            simulator.put("pods", pod(name, phase=str(number)))
            changes.append(("MODIFIED" if known else "ADDED", f"web/{name}"))
        if number % 15 == 7:
            follower.kill()
            follower.start()
    simulator.put("pods", pod("last"))
    changes.append(("ADDED", "web/last"))
    eventually(lambda: "web/last" in follower.out)
    follower.kill()
    told = [(kind, key) for _, kind, key, _ in lines_of(follower)]
    assert told[:6] == [*(("INITIAL", f"web/p{i}") for i in range(5)), ("SYNC", "-")]
    assert told[6:] == changes
    newest = {key: version for _, kind, key, version in lines_of(follower) if kind != "DELETED"}
    for key, obj in simulator.truth("pods").items():
        assert newest[key] == obj["metadata"]["resourceVersion"]
