# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/: each shell block runs, on a machine with a cluster, a running cache and kinf
installed; each configuration is accepted. Links are checked by scripts/check-references.py.

A shell block is fenced and called `sh`. After it a block names its needs if it can't run here:
```sh needs root. In each block `kinf run` and `kinf watch` are ended as soon as they have said
something; `kinf run` has a store of its own.
"""

import grp
import os
import re
import shutil

import pytest
import yaml

from harness.installed import Installed
from harness.objects import pod
from harness.process import BUILD, ROOT, run_command
from harness.store import whole, write_kubeconfig

ELSEWHERE = ("docs/kubectl.md",)  # test_kubectl.py runs its blocks
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
NEEDS = ("root", "a cluster", "kubectl", "node_exporter", "two terminals", "a container runtime")
# Programs on a page: page, language, the file's name in the page's commands.
SOURCES = {("docs/programs.md", "c"): "node.c", ("docs/cplusplus.md", "cpp"): "front.cpp"}
KINF = """\
#!/bin/bash
# Ends what does not end by itself.
case $1 in
run) extra=(--store "$PWD/own" --runtime-dir "$PWD/own-run"); mkdir -p own-run; said=err ;;
watch) extra=(); said=out ;;
*) exec "$KINF_PROGRAM" "$@" ;;
esac
"$KINF_PROGRAM" "$@" "${extra[@]}" >out 2>err &
pid=$!
until [ -s $said ] || ! kill -0 $pid; do sleep 0.02; done
kill $pid
wait $pid || { cat err >&2; exit 1; }
"""


def blocks(page):
    """(line, info, text) of each fenced block."""
    found, begin = [], None
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if not line.startswith("```"):
            if begin:
                found[-1][2].append(line)
        elif begin:
            begin = None
        else:
            begin = number
            found.append((number, line[3:], []))
    return [(number, info, "\n".join(lines) + "\n") for number, info, lines in found]


def all_blocks(language):
    return [(page, number, info, text) for page in PAGES for number, info, text in blocks(page)
            if info.split(" ")[0] == language]


def runnable(language):
    return [pytest.param(page, text, id=f"{page}:{number}") for page, number, info, text in all_blocks(language)
            if info == language and page not in ELSEWHERE]


@pytest.fixture(scope="module")
def machine(shared, tmp_path_factory):
    """The environment of a shell on a machine where kinf is installed and runs."""
    installed = Installed(tmp_path_factory.mktemp("installed"))
    simulator = shared.simulator()
    simulator.put("pods", [pod(f"front-{i}", "web", "shop", f"node-{i % 2}") for i in range(4)])
    store = shared.store(simulator=simulator)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), retention={"time": "1h"})
    simulator.patch("pods", "web/front-0", {"status": {"phase": "Failed"}})
    store.wait_equal(simulator, "pods")
    programs = shared.directory / "programs"
    programs.mkdir()
    (programs / "kinf").write_text(KINF)
    (programs / "kinf").chmod(0o755)
    for compiler in ("cc", "c++"):
        (programs / compiler).write_text(f'#!/bin/sh\nexec /usr/bin/{compiler} {" ".join(installed.sanitizers)} "$@"\n')
        (programs / compiler).chmod(0o755)
    yield {
        **store.env, **installed.env,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KINF_PROGRAM": str(BUILD / "kinf"),
        "PKG_CONFIG_PATH": str(installed.root / "lib/pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(installed.destdir),
    }
    shutil.rmtree(installed.destdir)  # some 40 MB


def test_shell_blocks_are_fenced_and_say_what_they_need():
    for page in PAGES:
        text = (ROOT / page).read_text()
        inside = {n for number, _, body in blocks(page) for n in range(number, number + body.count("\n") + 2)}
        before = ""
        for number, line in enumerate(text.splitlines(), 1):
            if number not in inside:
                indented = line.startswith("    ") and not before.strip()
                assert not indented, f"{page}:{number}: write ```sh, or ```sh needs ..., for a block of commands"
            before = line
    found = all_blocks("sh")
    for page, number, info, _ in found:
        assert re.fullmatch(r"sh( needs .+)?", info), f"{page}:{number}"
        assert info == "sh" or info[9:].startswith(NEEDS), f"{page}:{number}: one of {NEEDS}"
    assert len(found) > 6 and sum(info == "sh" for _, _, info, _ in found) > 4


@pytest.mark.parametrize("page, text", runnable("sh"))
def test_the_commands_of_the_documents_work(machine, tmp_path, page, text):
    for (source_page, language), name in SOURCES.items():
        if page == source_page:
            (tmp_path / name).write_text(program(page, language))
    result = run_command(["bash", "-euo", "pipefail", "-c", text], machine, timeout=60, cwd=tmp_path)
    assert result.status == 0, (text, result)
    assert "unknown" not in result.stderr, (text, result)
    assert (result.stdout == "") == text.startswith("kinf run"), (text, result)


def program(page, language):
    """The first block of the language; a fragment gets a main around it."""
    text = next(text for _, info, text in blocks(page) if info == language)
    if "main(" in text:
        return text
    return f"#include <err.h>\n#include <kinf.h>\n#include <stdio.h>\nint main(void)\n{{\n{text}return 0;\n}}\n"


@pytest.mark.parametrize("page, text", runnable("yaml"))
def test_the_configurations_of_the_documents_are_accepted(tmp_path, authority, page, text):
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443")
    kubeconfig.write_text(kubeconfig.read_text().replace("simulated", "prod"))
    keys = set(yaml.safe_load(text))
    if "scrape_configs" in keys:
        return  # Prometheus' own
    text = re.sub(r"/etc/kinf/kubeconfig\b", str(kubeconfig), text)
    text = re.sub(r"/etc/kinf/[\w-]+\.crt\b", str(authority("documents").ca), text)
    text = re.sub(r"^group: \S+", f"group: {grp.getgrgid(os.getgid()).gr_name}", text, flags=re.M)
    (tmp_path / "kinf.yaml").write_text(text if "feeds" in keys else text + "feeds: [{resource: pods}]\n")
    result = run_command([BUILD / "kinf", "config", "check", tmp_path / "kinf.yaml"], {"HOME": str(tmp_path), "KUBECONFIG": ""})
    assert result.status == 0, (page, result)
