# SPDX-License-Identifier: Apache-2.0
"""The manual pages match the programs, are well formed, and their examples compile and print the output shown."""

import grp
import os
import re
import shutil

import pytest

from harness.installed import run
from harness.objects import pod
from harness.process import BUILD, ROOT, run_command
from harness.store import whole, write_kubeconfig

PAGES = sorted((ROOT / "reader/man").glob("*.[135]"))
LIBRARY = [page for page in PAGES if page.suffix == ".3"]


def example_of(page):
    """The text of the last literal display in a page's EXAMPLES."""
    section = page.read_text().split(".Sh EXAMPLES\n")[1].split("\n.Sh ")[0]
    text = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", section, re.S | re.M)[-1]
    return text.replace("\\e", "\\")


def test_pages_match_the_programs_and_headers():
    assert run(["scripts/manual.py", BUILD]) == ""


def test_the_check_finds_pages_that_do_not_match(tmp_path):
    """Tests scripts/manual.py with a wrong option, prototype, key and command."""
    for part in ("scripts", "reader", "common"):
        shutil.copytree(ROOT / part, tmp_path / part)
    for page, old, new in (
        ("kinf.1", ".It Fl l , Fl -selector Ar SELECTOR", ".It Fl l , Fl -select Ar SELECTOR"),
        ("kinf_open.3", '.Fa "const char *store"', '.Fa "char *store"'),
        ("kinf.yaml.5", ".It Cm pageSize", ".It Cm pageLength"),
        ("kinf.yaml.5", "made: keys feeds", "made: keys feds"),
        ("kinf_wait.3", ".Nm kinf_wait_rv ,\n", ""),
        ("kinf.1", ".Ss kinf verify", ".Ss kinf falsify"),
    ):
        path = tmp_path / "reader/man" / page
        assert old in path.read_text(), (page, old)
        path.write_text(path.read_text().replace(old, new))
    found = run_command([tmp_path / "scripts/manual.py", BUILD])
    assert found.status == 1
    for fault in (
        "kinf.1: 'options but common kinf get' is out of date",
        "kinf_open.3: 'prototypes kinf_open ",
        "kinf.yaml.5: 'keys feed' is out of date",
        "kinf.yaml.5: feds is not a key",
        "kinf.yaml.5: feeds is not explained",
        "kinf_wait_rv is in 0 NAME and 1 SYNOPSIS sections",
        "kinf.1: falsify is not a command",
        "kinf.1: verify is not explained",
    ):
        assert fault in found.stdout, found.stdout


def test_pages_are_well_formed():
    """Checks the pages' macros, and formats them with groff if it is installed."""
    for page in PAGES:
        text = page.read_text()
        macros = re.findall(r"^\.(\w\w)\b", text, re.M)
        for begin, end in (("Bl", "El"), ("Bd", "Ed"), ("Fo", "Fc")):
            assert macros.count(begin) == macros.count(end), (page.name, begin)
        assert text.isascii() and text.startswith('.\\" SPDX-License-Identifier: Apache-2.0\n'), page.name
        title, section = page.name.rsplit(".", 1)
        assert f".Dt {title.upper()} {section}\n" in text, page.name
        if shutil.which("groff"):
            warnings = run_command(["groff", "-mdoc", "-ww", "-z", page])
            assert (warnings.status, warnings.stderr) == (0, ""), page.name


def test_pages_refer_to_existing_pages():
    known = {name for page in PAGES for name in [page.stem, *re.findall(r"^\.Nm (kinf_\w+)", page.read_text(), re.M)]}
    for page in PAGES:
        for line in re.findall(r"^\.Xr (.*)$", page.read_text(), re.M):
            for name in re.findall(r"([\w.-]+) [135]\b", line):
                assert name in known | {"kubectl", "free"}, (page.name, name)


def test_the_example_configuration_is_accepted(tmp_path):
    """On a machine with its group, kubeconfig and context."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443")
    kubeconfig.write_text(kubeconfig.read_text().replace("simulated", "prod"))
    text = example_of(ROOT / "reader/man/kinf.yaml.5").replace("/etc/kinf/kubeconfig", str(kubeconfig))
    file = tmp_path / "kinf.yaml"
    file.write_text(text.replace("kinf-readers", grp.getgrgid(os.getgid()).gr_name))
    checked = run_command([BUILD / "kinf", "config", "check", file])
    assert checked.status == 0, checked


# ---- the library's pages ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(shared):
    """A store with two applications; web/front-0 has changed once."""
    simulator = shared.simulator()
    simulator.put("pods", [pod(f"front-{i}", phase="Pending") for i in range(3)] + [pod("back-0", "shop", "back", "n2")])
    store = shared.store(simulator=simulator)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    simulator.patch("pods", "web/front-0", {"status": {"phase": "Running"}})
    store.wait_equal(simulator, "pods")
    return store


def test_the_program_of_the_documents_compiles(installed, tmp_path):
    fragment = (ROOT / "docs/programs.md").read_text().split("```c\n")[1].split("```")[0]
    source = tmp_path / "node.c"
    source.write_text("#include <err.h>\n#include <kinf.h>\n#include <stdio.h>\nint main(void)\n{\n" + fragment + "return 0;\n}\n")
    installed.compile(source, tmp_path / "node")


def test_each_function_has_a_page(installed):
    names = re.findall(r"^KINF_API .*?\b(kinf_\w+)\(", "".join(h.read_text() for h in ROOT.glob("reader/kinf*.h")), re.M)
    assert len(names) > 50
    files = installed.files()
    for name in names:
        assert f"share/man/man3/{name}.3" in files
        assert f".Nm {name}" in (installed.root / f"share/man/man3/{name}.3").read_text()


def test_the_example_commands_work(filled):
    """Runs the lines of the page's example that read and end by themselves."""
    lines = [line for line in example_of(ROOT / "reader/man/kinf.1").splitlines() if re.match("kinf (get|verify)", line)]
    assert len(lines) >= 5
    for line in lines:
        result = run_command(["sh", "-c", line.replace("kinf", str(BUILD / "kinf"), 1)], filled.env)
        assert result.status == (1 if "/backup/kinf" in line else 0), result


# Page, arguments of its example, output (a regular expression).
RUNS = [
    ("libkinf", [], r"n1\n"),
    ("kinf_open", [], r"(all up to event \d+\n){3}"),
    ("kinf_list", [], r"web/front-1\nweb/front-2\n-- .*\n"),
    ("kinf_object", [], r'ADDED Pending\nMODIFIED Running\nruns a:1\n\{\n  "kind": "Pod",\n(.*\n)+\}\n'),
    ("kinf_informer", ["once"], r"is web/front-0\nis web/front-1\nis web/front-2\nsynced\n"),
    ("kinf_queue", [], r"web/front-0: attempt 1\nweb/front-1: attempt 1\n(web/front-\d: attempt [23]\n){4}"),
    ("kinf_limiter", [], r"5 ms\n10 ms\n20 ms\n40 ms\n50 ms\n50 ms\n5 ms again\n"),
    ("kinf_wait", ["1"], r"pods: 4 objects, synced\n"),
]


def test_each_page_of_the_library_has_an_example_run():
    assert {page.stem for page in LIBRARY} == {name for name, _, _ in RUNS}


@pytest.mark.parametrize("name, arguments, output", RUNS, ids=[name for name, _, _ in RUNS])
def test_each_example_compiles_and_prints_what_its_page_says(installed, filled, tmp_path, name, arguments, output):
    source = tmp_path / f"{name}.c"
    source.write_text(example_of(ROOT / f"reader/man/{name}.3"))
    if "{\n\t\t." not in source.read_text():  # C++17 has no initializers by name
        installed.check_cxx(source)
    path = installed.compile(source, tmp_path / name)
    result = run_command([path, *arguments], {**filled.env, **installed.env}, timeout=30)
    assert result.status == 0, result
    assert re.fullmatch(output, result.stdout), result
