# SPDX-License-Identifier: Apache-2.0
"""kinf.yaml: programs report each fault with its line, and running daemons apply changes on SIGHUP."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest

from harness import PATIENCE, eventually
from harness.objects import pod
from harness.process import program, run_command
from harness.store import whole, write_kubeconfig

# The file's text, the line of the fault, the key as the message names it. Every key is in tests/unit/test_config*.c.
WRONG = [
    ("a: 'b\nc", 3, ""),
    ("retention:\n  time: 1m\n  size: much", 3, "retention.size"),
    ("feeds:\n- resource: pods\n- resource: pods", 3, "feeds[1].name"),
    ("feeds:\n- resource: pods\n  indexes:\n    node: a[", 4, "feeds[0].indexes.node"),
]


@pytest.mark.parametrize("text, line, key", WRONG, ids=[repr(w[0])[:60] for w in WRONG])
def test_each_wrong_key_is_reported_with_its_line(tmp_path, text, line, key):
    """All programs print the same message, and start nothing."""
    file = tmp_path / "k.yaml"
    file.write_text(text + "\n")
    env = {"KINF_STORE": "", "KINF_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "KUBECONFIG": ""}
    said = set()
    for argv in (
        ["kinf", "config", "check", file],
        ["kinf", "run", "--config", file],
        ["kinf-reflector", "--config", file],
        ["kinf-processor", "--config", file],
    ):
        result = run_command([program(argv[0]), *argv[1:]], env, timeout=10)
        assert result.status == (1 if "check" in argv else 78) and result.stdout == "", result
        found = re.search(rf"{re.escape(str(file))}:{line}: {re.escape(key)}.*?(?=\"?\n)", result.stderr)
        assert found and result.stderr.count("\n") == 1, result
        said.add(found[0])
    assert len(said) == 1, said
    assert [path.name for path in tmp_path.iterdir()] == ["k.yaml"]


def test_config_check_accepts_a_good_file(store, kinf):
    store.configure("pods", {"resource": "nodes", "indexes": {"a": ["x", "y"]}})
    assert "2 feeds" in kinf("config", "check", check=True).stdout
    assert kinf("config", "check", "/nowhere.yaml").status == 1
    assert not store.path.exists()


def test_run_without_its_configuration_is_not_to_be_started_again(tmp_path):
    """As its daemons: a missing file is not there the next time either."""
    (tmp_path / "directory").mkdir()
    places = {"KINF_STORE": str(tmp_path / "store"), "KINF_RUNTIME_DIR": str(tmp_path), "KINF_CONFIG": ""}
    for name, says in (("none.yaml", "does not exist"), ("directory", "is a directory")):
        file = str(tmp_path / name)
        for argv, env, named in ((["--config", file], {}, "the command line"), ([], {"KINF_CONFIG": file}, "$KINF_CONFIG")):
            result = run_command([program("kinf"), "run", "--watch", "pods", *argv], {**places, **env})
            assert result.status == 78 and f"the configuration '{file}' (named " in result.stderr, result
            assert says in result.stderr and named in result.stderr, result
    (tmp_path / "empty.yaml").write_text("feeds:\n")
    result = run_command([program("kinf"), "run", "--config", str(tmp_path / "empty.yaml")], places)
    assert result.status == 78 and "no feeds" in result.stderr, result
    assert not (tmp_path / "store").exists()


def test_an_empty_address_is_not_the_default_one(tmp_path):
    """As of a script's unset variable."""
    for option in (["--serve", ""], ["--serve="]):
        result = run_command([program("kinf"), "run", "--watch", "pods", *option], {"KINF_STORE": str(tmp_path / "store")})
        assert result.status == 2 and "option --serve: its value is empty" in result.stderr, result


def test_an_unknown_resource_is_reported_and_other_feeds_work(simulator, store):
    simulator.create("pods", 3)
    _, reflector = store.start(simulator, whole("pods"), whole("gadgets.test.io"))
    reflector.wait_log("gadgets")
    # The feed is in kinf.yaml already: readers get the reason, not the advice to add the feed.
    for command in (["get"], ["describe"], ["index"], ["wait", "--timeout", "100ms"]):
        result = store.kinf(*command, "gadgets.test.io", *(["x"] if command == ["describe"] else []))
        assert result.status == 1 and "can't be read yet: the server has no resource" in result.stderr, result


def test_run_works_from_options_without_a_file(simulator, store):
    simulator.put("pods", pod("a", "web"))
    simulator.put("pods", pod("b", "shop", app="back"))
    simulator.put("pods", pod("c", "shop"))
    options = ["--kubeconfig", store.kubeconfig, "--watch", "pods", "--watch", "pods:shop(-n shop -l app=back)",
               "--index", "shop/node=spec.nodeName", "--store", store.path]
    supervisor = store.process("kinf-run", [program("kinf"), "run", *options], env={"KINF_CONFIG": ""}).start()
    here = ["--store", str(store.path)]
    for feed in ("pods", "shop"):
        store.kinf("wait", feed, "--timeout", "2m", *here, env={"KINF_CONFIG": ""}, check=True)
    names = lambda *args: store.kinf("get", *args, "-o", "name", *here, env={"KINF_CONFIG": ""}, check=True).stdout.split()
    assert len(names("pods")) == 3 and names("shop", "--index", "node=n1") == ["pod/b"]
    assert supervisor.stop() == 0


# ---- changes ---------------------------------------------------------------------------------------


@pytest.fixture(params=["daemons", "run"])
def running(request, simulator, store):
    """Daemons with two live feeds; gives a function to make them read kinf.yaml again."""
    simulator.create("pods", 10)
    simulator.create("nodes", 2)
    simulator.create("deployments.apps", 3)
    store.configure(whole("pods"), whole("nodes"))
    processes = [store.run()] if request.param == "run" else list(store.daemons())
    for feed in ("pods", "nodes"):
        store.wait_equal(simulator, feed)
        simulator.wait_watching(feed)
    simulator.forget_requests()

    def reload():
        for process in processes:
            process.send(signal.SIGHUP)

    reload.processes = processes
    return reload


def feed_names(store):
    return {feed["name"] for feed in store.kinf("status", "-o", "json", check=True).json["feeds"]}


def test_feeds_are_added_and_removed_on_sighup(simulator, store, running):
    store.configure(whole("pods"), whole("deployments.apps"))
    running()
    store.wait_equal(simulator, "deployments.apps")
    eventually(lambda: feed_names(store) == {"pods", "deployments.apps"})
    assert store.kinf("get", "nodes").status == 1
    simulator.wait_watching("nodes", 0)
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert simulator.counters("pods")["lists"] == simulator.counters("nodes")["lists"] == 0
    store.configure(whole("pods"), whole("nodes"), whole("deployments.apps"))
    running()
    store.wait_equal(simulator, "nodes")
    assert simulator.counters("pods")["lists"] == 0
    store.verify()


def test_a_changed_feed_takes_over_the_name_after_its_first_list(simulator, store, running):
    follower = store.follower("watch", "pods", "-o", "json")
    eventually(lambda: "SYNC" in follower.out)
    old = store.objects("pods")
    stuck = simulator.fault(verb="list", resource="pods", delayMs=700)
    store.configure(whole("pods", labelSelector="app=app-1"), whole("nodes"))
    running()
    eventually(lambda: simulator.counters("pods")["lists"])
    assert store.objects("pods") == old, "the old feed serves until the new one is listed"
    simulator.clear_faults(stuck)
    store.wait_equal(simulator, "pods", where=lambda o: o["metadata"]["labels"]["app"] == "app-1")
    eventually(lambda: any(line["type"] == "LAPPED" for line in follower.lines), what="LAPPED")
    store.verify()


def test_daemons_keep_the_old_configuration_when_the_file_is_broken(simulator, store, running):
    store.config.write_text("feeds: [\n")
    running()
    for process in running.processes:
        process.wait_log(re.escape(store.config.name) + r":\d+")
    store.configure(whole("pods"), whole("nodes"))  # the commands below also read the file
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert all(process.running for process in running.processes)
    assert simulator.counters("pods")["lists"] == 0


def test_keys_that_need_a_restart_are_reported_and_keep_their_values(simulator, store, running):
    elsewhere = store.directory / "elsewhere"
    store.configure(whole("pods"), whole("nodes"), whole("deployments.apps"), durability="disk", mapSize="128MiB",
                    store=str(elsewhere))
    fixed = {"kinf-reflector": ["durability", "mapSize"], "kinf-processor": ["mapSize"]}
    if len(running.processes) > 1:
        fixed = {name: [*keys, "store"] for name, keys in fixed.items()}
    else:
        fixed["kinf run"] = ["store"]  # it gives its daemons the store
    running()
    log = lambda: "".join(process.log for process in running.processes)
    for name, keys in fixed.items():
        for key in keys:
            pattern = f'config_needs_restart daemon="{name}" keys=.*{key}'
            eventually(lambda: re.search(pattern, log()), what=f"{name}: {key}")
    store.wait_equal(simulator, "deployments.apps")
    assert not elsewhere.exists() and all(process.running for process in running.processes)


def test_a_file_that_the_command_line_names_goes_before_the_environment(simulator, store):
    """`kinf get --config FILE` read the store of $KINF_STORE, without a word."""
    simulator.create("pods", 3)
    store.start_synced("pods")
    file = store.directory / "other.yaml"
    file.write_text(f"store: {store.path}\nruntimeDir: {store.runtime}\nfeeds: [{{resource: pods}}]\n")
    nowhere = str(store.directory / "nowhere")
    env = {"KINF_STORE": nowhere, "KINF_CONFIG": ""}
    named = store.kinf("get", "pods", "-o", "name", "--config", str(file), env=env)
    assert named.status == 0 and len(named.stdout.split()) == 3, named
    assert named.stderr == f"note: $KINF_STORE ('{nowhere}') is not used: {file}, which the command line names, has '{store.path}'\n"
    for args in (["get", "pods"], ["get", "pods", "--config", "/dev/null"]):
        found = store.kinf(*args, env={**env, "KINF_CONFIG": str(file)})
        assert found.status == 1 and nowhere in found.stderr, found
    both = store.kinf("get", "pods", "-o", "count", "--config", str(file), "--store", str(store.path), env=env)
    assert (both.status, both.stdout, both.stderr) == (0, "3\n", "")
    check = store.kinf("config", "check", str(file), env=env)
    assert f"store '{store.path}'" in check.stdout and "$KINF_STORE" in check.stderr, check
    elsewhere = store.directory / "elsewhere"
    file.write_text(f"store: {elsewhere}\nfeeds: [{{resource: pods}}]\n")
    daemon = store.process("kinf-processor", [program("kinf-processor"), "--config", str(file)]).start()
    daemon.wait_log("config_overruled .*KINF_STORE")
    daemon.stop()
    assert elsewhere.exists()


def test_config_check_finds_what_can_not_run(simulator, store, authority):
    by_file = {"KINF_STORE": "", "KINF_RUNTIME_DIR": ""}
    (dangling := store.directory / "dangling").symlink_to("nowhere")

    def check(**settings):
        store.configure("pods", **settings)
        return store.kinf("config", "check", str(store.config), env=by_file)

    good = check()
    assert good.status == 0 and ": good: 1 feed" in good.stdout, good
    assert check(cluster={"kubeconfig": str(store.kubeconfig), "context": "simulated"}).status == 0
    missing, there = str(store.directory / "missing"), str(store.kubeconfig)
    ca = authority("config")
    ours, other = ca.issue("a"), ca.issue("b")
    (certificate, key), file = map(str, ours), store.directory / "file"
    file.write_text("x")
    taken = socket.create_server(("127.0.0.1", 0))
    listen = [f"127.0.0.1:{taken.getsockname()[1]}", "unix", "127.0.0.1:0"]
    good = check(serve={"tls": {"cert": certificate, "key": key, "clientCA": str(ca.ca)}, "listen": listen, "metrics": "127.0.0.1:0"})
    assert good.status == 0 and "a process that runs now uses the address" in good.stderr, good
    tokens = store.directory / "tokens"
    write_kubeconfig(tokens, "https://127.0.0.1:1", insecure=True, user={"tokenFile": missing})
    for settings, key, words in (
        ({"cluster": {"kubeconfig": str(tokens)}}, "cluster.kubeconfig", f"tokenFile: opening '{missing}': No such"),
        ({"cluster": {"kubeconfig": missing}}, "cluster.kubeconfig", f"kubeconfig '{missing}' does not exist"),
        ({"cluster": {"kubeconfig": missing, "context": "x"}}, "cluster.kubeconfig", f"kubeconfig '{missing}' does not exist"),
        ({"cluster": {"kubeconfig": there, "context": "nowhere"}}, "cluster.context", "context 'nowhere' does not exist"),
        ({"group": "no-such-group"}, "group", "no group 'no-such-group' on this machine"),
        ({"serve": {"tls": {"cert": missing, "key": there}}}, "serve.tls.cert", f"'{missing}' does not exist"),
        ({"serve": {"tls": {"clientCA": missing}}}, "serve.tls.clientCA", f"'{missing}' does not exist"),
        ({"serve": {"tls": {"cert": there, "key": key}}}, "serve.tls.cert", f"reading the certificate '{there}'"),
        ({"serve": {"tls": {"cert": certificate, "key": there}}}, "serve.tls.key", f"reading the key '{there}'"),
        ({"serve": {"tls": {"cert": certificate, "key": str(other[1])}}}, "serve.tls.key", "key values mismatch"),
        ({"serve": {"tls": {"cert": certificate, "key": str(store.directory)}}}, "serve.tls.key", "Is a directory"),
        ({"serve": {"tls": {"clientCA": there}}}, "serve.tls.clientCA", f"reading the CA '{there}'"),
        ({"serve": {"auth": "review", "review": {"cert": certificate, "key": str(other[1])}}}, "serve.review.key", "key values mismatch"),
        ({"serve": {"auth": "review", "review": {"tokenFile": missing}}}, "serve.review.tokenFile", f"'{missing}' does not exist"),
        ({"serve": {"listen": ["unix", "192.0.2.1:6445"]}}, "serve.listen", "listening on '192.0.2.1:6445': Cannot assign requested address: no interface of this machine has this address"),
        ({"serve": {"listen": "a..b:6445"}}, "serve.listen", "listening on 'a..b:6445': "),  # no name, so no server is asked
        ({"serve": {"metrics": "192.0.2.1:6445"}}, "serve.metrics", "Cannot assign requested address"),
        ({"serve": {"at": "5x"}}, "serve.at", "'5x' is no time: write one such as"),
        ({"serve": {"at": "10m", "forward": True}}, "serve.at", "forward: on would mix it"),
        ({"serve": {"at": "10m", "replay": "fast"}}, "serve.replay", "'fast' is no speed"),
        ({"serve": {"replay": "5x"}}, "serve.replay", "a replay needs a moment to begin at"),
        ({"store": str(file / "a/b")}, "store", f"the store '{file}/a/b' can't be made: '{file}' is no directory"),
        ({"store": str(file)}, "store", f"the store '{file}' can't be used: '{file}' is no directory"),
        ({"store": "/x" * 2050}, "store", "has 4100 bytes; a path has at most 4095"),
        ({"store": "/tmp/" + "x" * 256}, "store", "File name too long"),
        ({"store": str(store.directory)}, "store", f"the directory '{store.directory}' is no store, and has something else in it"),
        ({"store": str(dangling)}, "store", f"the link '{dangling}' leads nowhere"),
        ({"runtimeDir": str(file / "run")}, "runtimeDir", f"the runtime directory '{file}/run' can't be made: '{file}' is no directory"),
    ):
        bad = check(**settings)
        line = next(n for n, text in enumerate(store.config.read_text().splitlines(), 1) if key.split(".")[-1] + ":" in text.replace('"', ""))
        assert bad.status == 1 and bad.stdout == "" and words in bad.stderr, bad
        assert len(bad.stderr.splitlines()) == 1 and bad.stderr.startswith(f"Error: {store.config}:{line}: {key}: "), bad
    # An option's value is in no line of the file.
    store.configure("pods", cluster={"kubeconfig": there, "context": "simulated"})
    bad = store.kinf("config", "check", "--context", "nowhere", "--config", store.config)
    assert bad.status == 1 and bad.stderr == f"Error: '{there}': context 'nowhere' does not exist\n", bad


def test_the_error_of_a_bad_reload_ends_with_a_good_one(simulator, store):
    store.configure("pods")
    supervisor = store.run()
    store.wait_live("pods")
    good = store.config.read_text()

    def errors():
        status = store.kinf("status", "-o", "json", check=True).json
        return [status["store"]["lastError"], *(process["lastError"] for process in status["processes"])]

    def reload(text):
        store.config.write_text(text)
        supervisor.send(signal.SIGHUP)

    for bad, words in (("bogus: 1\n", "bogus"), ("retention: {time: soon}\n", "retention")):
        reload(good + bad)
        eventually(lambda: all(words in error for error in errors()), what="the error of both daemons")
        reload(good)
        eventually(lambda: errors() == ["", "", ""], what="no error")
    reload(good.replace("- resource: pods", "- resource: pods\n- resource: nothings"))
    eventually(lambda: "nothings" in store.kinf("status").stdout, what="an entry without a resource")
    reload(good)
    eventually(lambda: "nothings" not in store.kinf("status").stdout, what="only the entries of the file")
    assert store.feed_status("pods")["state"] == "live"


def test_a_mistake_in_the_file_keeps_no_reader_from_the_store(simulator, store):
    """Readers find the store by this file, edited by people meanwhile; only daemons need all of it."""
    simulator.create("pods", 3)
    store.configure("pods")
    store.run()
    store.wait_live("pods")
    by_file = {"KINF_STORE": "", "KINF_CONFIG": str(store.config)}
    good = store.config.read_text()
    for text, word in ((good + "bogus: 1\n", "bogus"), (good.replace("pods", "pods:x(${NOBODY}"), "NOBODY"),
                       (good + "  x: [\n", "expected"), (good + "feeds: []\nfeeds: []\n", "twice"), ("x: *y\n" + good, "alias")):
        store.config.write_text(text)
        result = store.kinf("get", "pods", "-o", "name", env=by_file)
        assert result.status == 0 and result.stdout.count("pod/") == 3, result
        assert word in result.stderr and "only 'store' is used of this file" in result.stderr, result
    store.config.write_text(good.replace("store:", "stor:") + "store: [x]\n")
    assert store.kinf("get", "pods", env=by_file).status == 1
    # The store is ambiguous.
    for text in (good.replace("store:", "stor:") + "  x: [\n", good + f"store: {store.directory}\n", good + "store: [x\n"):
        store.config.write_text(text)
        assert store.kinf("get", "pods", env=by_file).status == 1, text
    store.config.write_text(good)


def test_one_file_serves_all_nodes_by_a_variable(simulator, store):
    for node in ("n1", "n2"):
        simulator.put("pods", pod(f"on-{node}", "web", node=node))
    store.configure(whole("pods", fieldSelector="spec.nodeName=${NODE_NAME}"))
    result = store.kinf("config", "check", env={"NODE_NAME": ""})
    assert result.status == 1 and "no variable 'NODE_NAME'" in result.stderr, result
    supervisor = store.process("kinf-run", [program("kinf"), "run"], {"NODE_NAME": "n2"}).start()
    # Readers need the variable as well: they find the store by the same file.
    eventually(lambda: store.kinf("get", "pods", "-o", "name", env={"NODE_NAME": "n2"}).stdout == "pod/on-n2\n")
    assert supervisor.stop() == 0


def test_a_cluster_without_a_store_key_has_a_store_of_its_own(tmp_path):
    for name in ("kinf", "prod"):
        (tmp_path / f"{name}.yaml").write_text("feeds: [{resource: pods}]\n")
    env = {"KINF_CONFIG": "", "KINF_STORE": "", "XDG_STATE_HOME": "", "HOME": str(tmp_path), "KUBECONFIG": "/dev/null"}
    rows = run_command([program("kinf"), "clusters"], {**env, "KINF_CONFIG_DIR": str(tmp_path), "KINF_STORE": "/s"}).stdout
    assert [line.split()[-1] for line in rows.splitlines()[1:]] == ["/s/kinf", "/s/prod"]


@pytest.mark.parametrize("option, says", [("--config", "each daemon reads the configuration"), ("--kubeconfig", "is a pipe")])
def test_run_does_not_begin_with_what_it_could_not_read_again(tmp_path, option, says):
    """`kinf run --config <(...)`: the reflector read nothing, and ran without feeds, with another kubeconfig; with a
    kubeconfig it ended at its next start."""
    text = json.dumps({"cluster": {"kubeconfig": "/nowhere"}, "feeds": [{"resource": "pods"}]})
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    argv = [program("kinf"), "run", "--watch", "pods", "--store", tmp_path / "store", option, f"/dev/fd/{reading}"]
    result = subprocess.run(argv, pass_fds=[reading], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=30 * PATIENCE)
    os.close(reading)
    assert result.returncode == 78 and says in result.stderr.decode(), result
