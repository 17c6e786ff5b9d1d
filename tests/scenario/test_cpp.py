# SPDX-License-Identifier: Apache-2.0
"""C++: the headers, kinf.hpp and its example, as users build them against an installed tree."""

import re

import pytest

from harness import eventually
from harness.objects import pod
from harness.process import ROOT, run_command
from harness.store import whole

HEADERS = sorted(path.name for pattern in ("*.h", "*.hpp") for path in ROOT.glob(f"reader/kinf{pattern}"))
PARTS = ("reads", "queries", "errors", "lifetimes", "handlers", "queue")  # of tests/programs/wrapper.cpp; also "throwing"


@pytest.fixture(scope="module")
def programs(installed, tmp_path_factory):
    """{name: program}."""
    directory = tmp_path_factory.mktemp("programs")
    sources = {"nodes": "tests/examples/nodes.cpp", "wrapper": "tests/programs/wrapper.cpp"}
    return {name: installed.compile_cxx(ROOT / source, directory / name) for name, source in sources.items()}


def front(number, phase="Running", node="n1"):
    return pod(f"front-{number}", "web", "front", node, phase)


@pytest.fixture(scope="module")
def world(shared):
    simulator = shared.simulator()
    simulator.put("pods", [front(number) for number in range(3)] + [pod("back-0", "shop", "back", "n2")])
    store = shared.store(simulator=simulator)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    return simulator, store


def test_each_header_compiles_alone_as_cxx17(installed, tmp_path):
    assert len(HEADERS) == 6 and set(HEADERS) == {name[8:] for name in installed.files() if name.startswith("include/")}
    for header in HEADERS:
        (tmp_path / f"{header}.cpp").write_text(f"#include <{header}>\n#include <{header}>\n")
    installed.check_cxx(*(tmp_path / f"{header}.cpp" for header in HEADERS))


def test_no_function_has_the_name_of_a_type():
    """C++ reads such a name as the function, and needs `struct` or `enum` to name the type."""
    text = "".join(path.read_text() for path in ROOT.glob("reader/kinf*.h"))
    types = set(re.findall(r"^(?:struct|enum) (\w+)", text, re.M))
    functions = set(re.findall(r"\b(kinf_\w+)\(", text))
    assert len(types) > 20 and len(functions) > 50
    assert types & functions == set()


@pytest.mark.parametrize("part", PARTS)
def test_the_wrapper_keeps_its_promises(world, installed, programs, part):
    result = run_command([programs["wrapper"], part], {**world[1].env, **installed.env})
    assert (result.status, result.stdout) == (0, "ok\n"), result


def test_an_event_whose_callback_threw_comes_again(world, installed, programs):
    simulator, store = world
    process = store.process("wrapper", [programs["wrapper"], "throwing"], installed.env).start()
    eventually(lambda: "ready" in process.out)
    simulator.put("pods", front(0, "Pending"))
    assert process.wait() == 0, process.tail()
    assert process.out.splitlines()[-1] == "ok", process.tail()


def test_the_example_counts_the_pods_of_nodes(simulator, store, installed, programs):
    simulator.put("pods", [front(number) for number in range(3)])
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    nodes = store.process("nodes", [programs["nodes"]], installed.env).start()
    eventually(lambda: nodes.out == "n1: 3 pods, 3 running\n")
    simulator.put("pods", front(1, "Pending"))
    eventually(lambda: nodes.out.endswith("\nn1: 3 pods, 2 running\n"))
    simulator.put("pods", front(9, node="n2"))
    eventually(lambda: nodes.out.endswith("\nn2: 1 pods, 1 running\n"))
    simulator.delete("pods", "web/front-1")
    eventually(lambda: nodes.out.endswith("\nn1: 2 pods, 2 running\n"))
    assert nodes.stop() == 0, nodes.tail()


def test_the_example_names_the_index_that_is_missing(simulator, store, installed, programs):
    store.start_synced(whole("pods"))
    result = run_command([programs["nodes"]], {**store.env, **installed.env})
    assert result.status == 1 and "node" in result.stderr and "index" in result.stderr, result
