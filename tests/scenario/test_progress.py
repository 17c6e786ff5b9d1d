# SPDX-License-Identifier: Apache-2.0
"""The progress of long work: one line on a terminal, removed at the end; nothing when standard error is a pipe."""

import pytest

from harness import eventually
from harness.process import program, run_command
from harness.store import whole
from harness.terminal import Terminal

# The command line for a shell, and the beginning of its progress.
WORK = {
    "verify": ("kinf verify --deep", "verifying: "),
    "backup": ("kinf backup backup.tar", "copying: "),
    "backup to a pipe": ("kinf backup - | cat >piped.tar", "copying: "),
    "restore": ("kinf backup again.tar && kinf restore again.tar restored", "copying: "),
    "compact": ("kinf compact", "compacting"),
    "rebuild-index": ("kinf rebuild-index", "building the index: "),
    "export": ("kinf export >export.json", "writing: "),
    "import": ("kinf export --full >full.json && kinf import full.json --store imported", "reading: "),
}


@pytest.fixture(scope="module")
def full(shared):
    """A store with objects, without daemons."""
    simulator = shared.simulator()
    simulator.create("pods", 300)
    store = shared.store("", simulator)
    store.start(simulator, whole("pods"))
    for process in store.processes:
        process.stop()
    return store


def shell(store, line, suffix):
    """A command line in a directory of its own."""
    directory = store.directory / suffix
    directory.mkdir()
    return ["sh", "-c", f'cd {directory} && kinf() {{ {program("kinf")} "$@"; }} && {line}']


@pytest.mark.parametrize("name", WORK)
def test_a_terminal_shows_one_line_and_a_pipe_nothing(full, name):
    line, begins = WORK[name]
    page = Terminal(shell(full, line, f"terminal {name}".replace(" ", "-")), full.env, columns=120)
    try:
        assert page.wait(60) == 0, page.text()
        assert begins in page.written.decode(), page.written
        assert begins not in page.text(), "the line is gone"
    finally:
        page.close()
    result = run_command(shell(full, line, f"pipe {name}".replace(" ", "-")), full.env)
    assert result.status == 0 and "\r" not in result.stdout + result.stderr and "\x1b" not in result.stdout + result.stderr, result


def test_an_export_to_the_terminal_is_not_disturbed(full):
    page = Terminal([program("kinf"), "export"], full.env, columns=200)
    try:
        assert page.wait() == 0
        assert b"writing: " not in page.written and b"\x1b" not in page.written
    finally:
        page.close()


def test_the_first_lists_on_a_terminal(simulator, store):
    simulator.create("pods", 400)
    simulator.fault(resource="pods", delayMs=300, count=4)
    store.configure(whole("pods", pageSize=100))
    page = Terminal([program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime], store.env, columns=150)
    try:
        eventually(lambda: page.lines() and "listing: " in page.written.decode())
        store.wait_live("pods")
        eventually(lambda: "listing: " not in page.text())
        page.press("\x03")
        assert page.wait() == 0
    finally:
        page.close()
    quiet = store.run()
    store.wait_live("pods")
    assert quiet.stop() == 0 and "listing: " not in quiet.log and "\x1b" not in quiet.log
