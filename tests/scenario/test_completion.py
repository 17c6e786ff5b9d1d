# SPDX-License-Identifier: Apache-2.0
"""Completion of command lines: the candidates of "kinf __complete", and bash, zsh and fish on a terminal."""

import os
import re
from pathlib import Path

import pytest

from harness import eventually
from harness.objects import pod
from harness.process import program
from harness.store import whole
from harness.terminal import Terminal

SCRIPTS = Path(__file__).resolve().parents[2] / "command" / "completion"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {SCRIPTS}/kinf.bash"),
    "zsh": (["zsh", "-f", "-i"], f"fpath=({SCRIPTS} $fpath); autoload -Uz compinit; compinit -u -D"),
    "fish": (["fish", "--no-config", "-i"], f"source {SCRIPTS}/kinf.fish"),
}


@pytest.fixture(scope="module")
def store(shared):
    simulator = shared.simulator()
    for namespace in ("shop", "web"):
        for number in range(3):
            simulator.put("pods", pod(f"{namespace}-{number}", namespace, app="ab"[number % 2], node=f"n{number}"))
    simulator.create("nodes", 2)
    simulator.put("nodes", {"metadata": {"name": "R&D $(id)"}})
    store = shared.store(simulator=simulator)
    store.configure(whole("pods", indexes={"node": "spec.nodeName", "both": ["spec.nodeName", "status.phase"]}), whole("nodes")).daemons()
    for feed in ("pods", "nodes"):
        store.wait_equal(simulator, feed)
        store.wait_live(feed)
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "mine")
    eventually(lambda: "mine" in store.kinf("cursor", "ls").stdout)
    follower.stop()
    return store


@pytest.fixture(scope="module")
def complete(store):
    """complete(WORD...): the candidates for the last word; nothing may be printed beside them."""

    def run(*words):
        answer = store.kinf("__complete", *words, check=True)
        assert not answer.stderr
        return [line.split("\t")[0] for line in answer.stdout.splitlines()]

    return run


@pytest.mark.parametrize(
    "words,candidates",
    [
        (["ge"], ["get"]),
        (["get", ""], ["nodes", "pods", "all"]),
        (["get", "nodes,po"], ["nodes,pods"]),
        (["get", "pods", "web-"], ["web-0", "web-1", "web-2"]),
        (["get", "pods", "shop/"], ["shop/shop-0", "shop/shop-1", "shop/shop-2"]),
        (["get", "pods", "-n", "web", ""], ["web-0", "web-1", "web-2"]),
        (["get", "pods", "--namespace=web", "web-1"], ["web-1"]),
        (["get", "pods/web-1"], ["pods/web-1"]),
        (["get", "-n", "w"], ["web"]),
        (["get", "pods", "-n", ""], ["shop", "web"]),
        (["get", "pods", "-nw"], ["-nweb"]),
        (["get", "pods", "-l", "app="], ["app=a", "app=b"]),
        (["get", "pods", "-l", "x!=y,app=a"], ["x!=y,app=a"]),
        (["get", "pods", "--index", ""], ["namespace=", "label=", "node=", "both="]),
        (["get", "pods", "--index", "node="], ["node=n0", "node=n1", "node=n2"]),
        (["get", "pods", "--index=node=n1"], ["--index=node=n1"]),
        (["get", "pods", "-o", "j"], ["json", "jsonpath=", "jsonpath-as-json=", "jsonpath-file="]),
        (["get", "pods", "-w", "--output-w"], ["--output-watch-events"]),
        (["get", "--", "po"], ["pods"]),
        (["get", "--no-such-option", "po"], ["pods"]),
        (["index", "pods", "n"], ["namespace", "node"]),
        (["describe", "nodes", "node-0", ""], ["R&D $(id)", "node-0", "node-1"]),
        (["cursor", ""], ["ls", "rm"]),
        (["cursor", "rm", "m"], ["mine"]),
        (["cursor", "ls", "m"], []),
        (["wait", "pods", "--for", "s"], ["synced"]),
        (["dump", "ob"], ["objects"]),
        (["dump", "--feed", "n"], ["nodes"]),
        (["run", "--durability", ""], ["process", "disk"]),
        (["run", "--kubeconfig", ""], [":files"]),
        (["open", ""], [":files"]),
        (["import", "a", ""], [":files"]),
        (["diff", ""], [":directories", "nodes", "pods"]),
        (["nonsense", ""], []),
    ],
)
def test_candidates(complete, words, candidates):
    assert complete(*words) == candidates


def test_each_option_is_a_candidate(store, complete):
    for command in complete(""):
        shown = store.kinf(command, "--help", check=True).stdout
        wanted = set(re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", shown, re.M)) if command != "serve" else set()  # another program's
        assert set(complete(command, "--")) == wanted, command


def test_without_a_store_nothing_is_printed(store, tmp_path):
    for words in (["get", ""], ["get", "pods", ""], ["cursor", "rm", ""]):
        answer = store.kinf("__complete", "--store", str(tmp_path / "none"), *words)
        assert [line for line in answer.stdout.splitlines() if line != "all\t"] == [] and not answer.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(store, shell, tmp_path):
    argv, setup = SHELLS[shell]
    env = {**store.env, "PATH": f"{Path(program('kinf')).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    terminal = Terminal(argv, env, columns=200, term="xterm")
    try:
        terminal.press(setup + "; echo rea''dy\n")
        terminal.wait_text("\nready")
        # The output of the line shows the completed words.
        terminal.press("kinf ge\tpo\t-n w\t--index node=n1\t-o na\t\n")
        terminal.wait_text("\npod/web-1")
        terminal.press("kinf describe nodes node-1\t--store=/nowh\t\n")
        eventually(lambda: re.search("\nError: .*/nowh", terminal.text()), what="an error")
        terminal.press("kinf get -o name nodes R\t\n")  # typed as one word: nothing of it runs
        terminal.wait_text("\nnode/R&D $(id)")
        # A program of the address sanitizer spins in its leak check for ever if its terminal vanishes.
        terminal.press("exit\n")
        terminal.wait()
    finally:
        terminal.close()
