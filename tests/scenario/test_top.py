# SPDX-License-Identifier: Apache-2.0
"""kinf top: on a terminal, as pyte shows it, and without one."""

import re
import signal
import time

import pytest

from harness import eventually
from harness.process import program
from harness.store import remove_in_use, whole
from harness.terminal import Terminal

QUICK = ("--interval", "100ms")
FEEDS = ["configmaps", "pods", "services"]


@pytest.fixture
def terminal():
    """Makes terminals for `kinf top` of a store."""
    made = []

    def make(store, *options, environment=None, **named):
        argv = [program("kinf"), "top", *QUICK, *options]
        made.append(Terminal(argv, {**store.env, **(environment or {})}, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def running(shared):
    """A store with running daemons, for read-only tests: (store, simulator)."""
    simulator = shared.simulator()
    simulator.create("pods", 30)
    store = shared.store("", simulator)
    store.configure(*[whole(feed) for feed in FEEDS]).daemons()
    for feed in FEEDS:
        store.wait_live(feed)
    return store, simulator


def test_a_person_sees_the_status_and_rates(running, terminal):
    store, simulator = running
    page = terminal(store, columns=120)
    text = page.wait_text("kinf top", "kinf-reflector", "kinf-processor", "Journal:", "3 live", "configmaps", "services", "Rates:")
    assert re.search(r"kinf-reflector +\d+ +running", text), text

    def changes():
        simulator.touch("pods", 20)
        rate = re.search(r"^Rates: +(\S+) changes/s, \S+ \S+/s read$", page.text(), re.M)
        return rate and float(rate[1]) > 5

    eventually(changes)
    page.press("\x03")
    assert page.wait() == -signal.SIGINT and page.is_restored()


def test_readers_are_shown(running, terminal):
    store, _ = running
    follower = store.follower("watch", "pods", "-o", "name", name="follower")
    page = terminal(store, rows=40, columns=110)
    page.wait_text("SNAPSHOTS", "kinf-reflector", f" {follower.pid} ")
    follower.kill()
    page.wait_text("Rates:", absent=[f" {follower.pid} "])


@pytest.mark.parametrize("size", [(5, 20), (1, 1), (60, 300)])
def test_any_size(running, terminal, size):
    """It survives a terminal of any size, also a changing one, and names stay visible where a line has room."""
    rows, columns = size
    page = terminal(running[0], rows=40)
    page.wait_text("services")
    page.resize(rows, columns)
    if columns >= 20:
        page.wait_text("kinf top"[: columns - 1], "pods" if rows > 20 else "k")
    page.resize(40, 80)
    page.wait_text("services", "kinf-processor")
    page.popen.terminate()
    assert page.wait() == -signal.SIGTERM and page.is_restored()


def test_a_terminal_without_a_size(running, terminal):
    terminal(running[0], rows=0, columns=0).wait_text("kinf top", "services")


def test_it_lives_through_a_dead_system_restarts_and_another_store(simulator, store, terminal):
    store.configure(whole("pods"))
    page = terminal(store, columns=110)
    page.wait_text("no store at", "not running")
    simulator.create("pods", 3)
    processor, reflector = store.daemons()
    page.wait_text("1 live", absent=["no store at"])
    processor.kill()
    reflector.kill()
    page.wait_text("offline", "not running")
    processor, reflector = store.daemons()
    page.wait_text("1 live", absent=["not running"])
    processor.stop()
    reflector.stop()
    remove_in_use(store.path)
    page.wait_text("no store at")
    simulator.create("pods", 5)
    store.daemons()
    page.wait_text("1 live", absent=["no store at"])


def test_a_terminal_that_vanishes_ends_it(running, terminal):
    page = terminal(running[0])
    page.wait_text("services")
    page.hang_up()
    assert page.wait() in (1, -signal.SIGHUP)


@pytest.mark.parametrize("term", [None, "", "dumb"])
def test_a_terminal_that_shows_no_page(running, terminal, term):
    page = terminal(running[0], term=term, columns=200)
    assert page.wait() == 0
    assert "services" in page.text() and b"\x1b[" not in page.written


def test_without_a_terminal_it_prints_once(running):
    store, simulator = running
    for options in ((), ("--once",)):
        result = store.kinf("top", *QUICK, *options, check=True)
        assert "\x1b" not in result.stdout and result.stderr == ""
        assert re.search(r"^pods +live +\d+ +\d", result.stdout, re.M), result.stdout
    begun = time.monotonic()
    simulator.churn("pods", 200)
    result = store.kinf("top", "--once", "--interval", "1s", check=True)
    simulator.churn("pods", 0)
    assert time.monotonic() - begun >= 1
    assert float(re.search(r"^Rates: +(\S+) changes/s", result.stdout, re.M)[1]) > 5, result.stdout


def test_once_without_a_store_or_with_wrong_options(store):
    store.configure(whole("pods"))
    result = store.kinf("top")
    assert result.status == 1 and "no store at" in result.stderr and "not running" in result.stdout, result
    for wrong in (("--interval", "1ms"), ("--interval", "2h"), ("--interval", "x"), ("pods",)):
        result = store.kinf("top", *wrong)
        assert result.status == 2 and len(result.stderr.splitlines()) == 1, result
