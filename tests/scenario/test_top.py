# SPDX-License-Identifier: Apache-2.0
"""kinf top: on a terminal, as pyte shows it, and without one."""

import json
import os
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
    """Makes terminals on which `kinf top` of a store runs."""
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
    """A store whose daemons run, for tests that only look: (store, simulator)."""
    simulator = shared.simulator()
    simulator.create("pods", 30)
    store = shared.store("", simulator)
    store.configure(*[whole(feed) for feed in FEEDS]).daemons()
    for feed in FEEDS:
        store.wait_live(feed)
    return store, simulator


def feeds(terminal):
    """The names in the first column of the table of feeds."""
    lines = terminal.lines()
    heading = next((i for i, line in enumerate(lines) if line.startswith("FEED")), len(lines))
    return [line.split()[0] for line in lines[heading + 1:-1] if line]


def test_a_person_sees_feeds_processes_and_rates(running, terminal):
    store, simulator = running
    page = terminal(store, columns=120)
    text = page.wait_text("kinf top", "kinf-reflector", "kinf-processor", "Journal:", "3 live", "30 objects", "CHANGES/S")
    eventually(lambda: feeds(page) == FEEDS, what=f"the feeds, not half drawn: {text}")
    assert re.search(r"kinf-reflector +\d+ +\S+ +\d+\.\d MiB +\d+\.\d MiB .* running", text), text

    def changes():
        simulator.touch("pods", 20)
        row = next((line.split() for line in page.lines() if line.startswith("pods")), [])
        return len(row) > 3 and row[3] != "-" and float(row[3]) > 0

    eventually(changes)
    eventually(lambda: feeds(page)[:1] == ["pods"], what="the feed with the most changes stands first")
    page.press("q")
    assert page.wait() == 0 and page.is_restored()


def test_keys(running, terminal):
    page = terminal(running[0], columns=110)
    page.wait_text("services")
    page.press("<<<<")  # from CHANGES/S to FEED
    eventually(lambda: feeds(page) == FEEDS)
    page.press("r")
    eventually(lambda: feeds(page) == FEEDS[::-1])
    page.press(">>>")
    eventually(lambda: feeds(page)[-1] == "pods")  # reversed order of OBJECTS: the most come last
    page.press("/Po\x7f\x7fServ")
    page.wait_text("/Serv")
    eventually(lambda: feeds(page) == ["services"])
    page.press("\r")
    page.wait_text("Feeds: 1 with Serv")
    page.press("\x1b")
    eventually(lambda: len(feeds(page)) == 3)
    page.press("h")
    page.wait_text("any key: back", "pause and go on", absent=["kinf-reflector"])
    page.press("x")
    page.wait_text("kinf-reflector")
    page.press("p")
    page.wait_text("PAUSED")
    page.press("p")
    page.wait_text("services", absent=["PAUSED"])
    page.press("-")
    page.wait_text("every 0.2s")
    page.press("\t")
    page.wait_text("Readers: ", "SNAPSHOTS")
    page.press("3")
    page.wait_text("Followers: 0", "CURSOR")
    page.press("1\x1b[B\x1b[6~\x1b[4~\x1b[1~zZ\x01")  # arrows and keys without a meaning
    page.wait_text("services")
    page.press("\x03")
    assert page.wait() == 0 and page.is_restored()


def test_followers_and_readers_are_shown(running, terminal):
    store, _ = running
    follower = store.follower("watch", "pods", "-o", "name", "--cursor", "mine", name="follower")
    eventually(lambda: "mine" in store.kinf("cursor", "ls").stdout)
    page = terminal(store, columns=110)
    page.press("3")
    text = page.wait_text("mine", "Followers: 1")
    assert re.search(r"^mine +1 +\d+ +0 ", text, re.M), text
    page.press("2")
    page.wait_text("Readers: 3", "kinf-reflector", f" {follower.pid} ")
    follower.kill()
    page.wait_text("Readers: 2")
    store.kinf("cursor", "rm", "mine", check=True)


@pytest.mark.parametrize("size", [(10, 40), (5, 20), (2, 5), (1, 1), (60, 300), (24, 80)])
def test_any_size(running, terminal, size):
    """It survives a terminal of any size, also one that changes, and names stay visible where a line has room."""
    rows, columns = size
    page = terminal(running[0])
    page.wait_text("services")
    page.resize(rows, columns)
    if columns >= 20:
        page.wait_text("kinf top"[: columns - 1], "pods" if rows > 5 else "k")
    page.press("h")
    page.press("x/p\x1b2 1")
    page.resize(24, 80)
    page.press(" ")
    page.wait_text("services", "kinf-processor")
    page.press("q")
    assert page.wait() == 0 and page.is_restored()


def test_it_lives_through_a_dead_system_restarts_and_another_store(simulator, store, terminal):
    store.configure(whole("pods"))
    page = terminal(store, columns=110)
    page.wait_text("no store at", "not running")
    simulator.create("pods", 3)
    processor, reflector = store.daemons()
    page.wait_text("1 live", "3 objects", absent=["no store at"])
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
    page.wait_text("1 live", "5 objects")
    page.press("q")
    assert page.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(running, terminal, number):
    page = terminal(running[0])
    page.wait_text("services")
    page.popen.send_signal(number)
    assert page.wait() == 0 and page.is_restored()


def test_a_terminal_that_vanishes_ends_it(running, terminal):
    page = terminal(running[0])
    page.wait_text("services")
    page.hang_up()
    assert page.wait() == 1


def test_a_file_that_is_cut_short_gives_the_terminal_back(simulator, store, terminal):
    store.configure(whole("pods"))
    simulator.create("pods", 100)
    store.daemons()
    store.wait_equal(simulator, "pods")
    page = terminal(store)
    page.wait_text("1 live")
    store.stop()
    page.wait_text("offline")
    for path in store.path.glob("*/gen-*/data.mdb"):
        os.truncate(path, 0)
    status = page.wait() if page.popen.poll() is not None else None
    if status is None:  # it saw an error instead of a fault
        page.press("q")
        status = page.wait()
    assert status in (0, 70) and page.is_restored()


def test_a_key_that_ends_programs_is_not_passed_on(running, terminal):
    page = terminal(running[0])
    page.wait_text("services")
    page.press("\x1c")  # Ctrl-\ would end it without giving the terminal back
    page.press("/web")
    page.wait_text("/web")
    page.press("\x1b")
    page.wait_text("services")


@pytest.mark.parametrize("term", [None, "", "dumb", "no-such-terminal"])
def test_a_terminal_that_shows_no_page(running, terminal, term):
    page = terminal(running[0], term=term, columns=200)
    assert page.wait() == 0
    text = page.text()
    assert "note: the terminal" in text and "printed once" in text and "services" in text, text
    assert b"\x1b[" not in page.written


def test_no_colour(terminal, simulator, store):
    """NO_COLOR is honoured; without it a feed that is not live has a colour."""
    store.configure(whole("pods"))
    processor, reflector = store.daemons()
    store.wait_live("pods")
    processor.kill()
    reflector.kill()
    colour = re.compile(rb"\x1b\[([0-9;]*;)?3[0-7]m")
    for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        page = terminal(store, environment=environment)
        page.wait_text("offline", "Feeds: 1  Tab")  # the whole page
        assert bool(colour.search(page.written)) == coloured


def test_without_a_terminal_it_prints_once(running):
    store, simulator = running
    for options in ((), ("--once",)):
        result = store.kinf("top", *QUICK, *options, check=True)
        assert "\x1b" not in result.stdout and result.stderr == ""
        assert re.search(r"^pods +live +\d+ +\d", result.stdout, re.M), result.stdout
        assert re.search(r"^kinf-reflector +\d+ +\d", result.stdout, re.M), result.stdout
    begun = time.monotonic()
    simulator.churn("pods", 200)
    result = store.kinf("top", "--once", "--interval", "1s", check=True)
    simulator.churn("pods", 0)
    assert time.monotonic() - begun >= 1
    row = next(line for line in result.stdout.splitlines() if line.startswith("pods "))
    assert float(row.split()[3]) > 5, row


def test_once_without_a_store_or_with_wrong_options(store):
    store.configure(whole("pods"))
    result = store.kinf("top")
    assert result.status == 1 and "no store at" in result.stderr and "not running" in result.stdout, result
    for wrong in (("--interval", "1ms"), ("--interval", "2h"), ("--interval", "x"), ("pods",)):
        result = store.kinf("top", *wrong)
        assert result.status == 2 and len(result.stderr.splitlines()) == 1, result


def test_four_thousand_feeds(store, terminal):
    items = [{"apiVersion": f"g{i:04}.example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "web"}}
             for i in range(4096)]
    path = store.directory / "file.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    store.configure(whole("pods"))
    store.kinf("import", path, "--store", store.path, check=True)
    page = terminal(store, columns=100)
    page.wait_text("4096 offline", "4096 objects", "Feeds: 4096")
    first = feeds(page)[0]
    page.press("\x1b[4~")  # End
    eventually(lambda: feeds(page) and feeds(page)[-1].endswith("g4095.example.com"))
    page.press("\x1b[1~")
    eventually(lambda: feeds(page)[0] == first)
    page.press("\x1b[6~")
    eventually(lambda: feeds(page)[0] != first)
    page.press("/g0777\r")
    page.wait_text("Feeds: 1 with g0777", "things.g0777")
    page.press("q")
    assert page.wait() == 0
