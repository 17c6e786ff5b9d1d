# SPDX-License-Identifier: Apache-2.0
"""docs/operations.md has a remedy for every state, error and warning in the code."""

import re

from harness.process import ROOT

PAGE = (ROOT / "docs/operations.md").read_text()


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def remedied(text):
    """First cells of the rows with a remedy, or with none needed, in a section's tables."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) > 1]


def function(path, name):
    """The text of a C function."""
    text = (ROOT / path).read_text()
    return re.search(rf"^[a-z][^\n]*\b{name}\([^;{{]*\n{{\n.*?^}}\n", text, re.M | re.S)[0]


def strings(text):
    """The string literals of TEXT; adjacent ones are one."""
    text = re.sub(r'"\s*\n\s*"', "", text)
    return set(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def test_every_state_of_a_feed_is_explained():
    states = set()
    for name in ("feed_state_listed", "feed_state"):
        for result in re.findall(r"\breturn ([^;]*);", function("reader/feeds.c", name)):
            states |= strings(result)
    assert len(states) == 7 and {"live", "offline", "error"} <= states
    rows = dict(row[0:3:2] for row in remedied(section("States").split("\nProcesses:")[0]) if len(row) > 2)
    assert {f"`{state}`" for state in states} <= set(rows)
    assert [state for state in states - {"live"} if not rows[f"`{state}`"]] == []


def process_states():
    states = strings(re.sub(r"/\*.*?\*/", "", function("common/daemon/failure.c", "failure_state"), flags=re.S))
    states |= strings(function("processor/pair.c", "pair_state"))
    states |= strings(function("print/status/gather.c", "status_process_state"))
    for path in [*ROOT.glob("common/daemon/*.c"), *ROOT.glob("processor/*.c"), *ROOT.glob("reflector/*.c")]:
        for call in re.findall(r"stats_set_state\(([^;]*)\);", path.read_text()):
            states |= strings(call)
    return states | {re.search(r'"(running, not ready): %s"', (ROOT / "serve/main.c").read_text())[1]}


def test_every_state_of_a_process_is_explained():
    states = process_states()
    assert len(states) > 14
    rows = [state for row in remedied(section("States").split("\nProcesses:")[1]) for state in re.findall(r"`([^`]+)`", row[0])]
    missing = [state for state in states if not any(state.startswith(row) for row in rows)]
    assert missing == []
    assert [row for row in rows if not any(state.startswith(row) for state in states)] == []


def test_every_error_of_the_library_has_a_remedy():
    header = (ROOT / "reader/kinf.h").read_text()
    codes = set(re.findall(r"^\t(KINF_\w+) = ", header, re.M))
    codes -= {"KINF_FOUND", "KINF_NOT_FOUND", "KINF_END"}
    rows = remedied(section("Errors"))
    assert len(codes) > 15 and codes == {row[0].strip("`") for row in rows} & codes
    assert [row for row in rows if not row[2]] == []


def test_every_text_of_an_error_has_a_remedy():
    texts = re.findall(r'^ERR\((\w+), -\d+, "([^"]+)"\)', (ROOT / "common/err.def").read_text(), re.M)
    listed = " ".join(row[1] for row in remedied(section("Errors")))
    assert len(texts) > 20
    assert [text for name, text in texts if name != "FAILPOINT" and text not in listed] == []


def test_every_warning_and_error_of_the_log_has_a_remedy():
    events = re.findall(r"^EVENT\((\w+), (ERROR|WARNING),", (ROOT / "common/log.def").read_text(), re.M)
    rows = {name: row for row in remedied(section("Log")) for name in re.findall(r"`(\w+)`", row[0])}
    assert len(events) > 30
    for name, level in events:
        assert name in rows and rows[name][2], f"{name} has no row in docs/operations.md, Log"
        assert level.lower() in rows[name][1], name
