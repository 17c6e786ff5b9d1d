# SPDX-License-Identifier: Apache-2.0
"""The control socket, and its commands: reload, relist, rebuild-index; clusters, metrics, remove-store."""

import os
import random
import re
import signal
import socket
import stat
import subprocess

import pytest

from harness import PATIENCE, eventually
from harness.process import program
from harness.store import whole

SOCKETS = ("control.reflector", "control.processor")


@pytest.fixture
def running(simulator, store):
    """A store with both daemons and 20 pods."""
    simulator.create("pods", 20)
    store.start(simulator, whole("pods"))
    store.wait_live("pods")
    return store


def runtime(store):
    (directory,) = store.runtime.glob("kinf-*")
    return directory


def dial(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(path))  # waits for a place in the accept queue
    connection.settimeout(20 * PATIENCE)
    return connection


def answer(connection):
    """The last message of the daemon; None if it has closed the connection without one."""
    while True:
        try:
            message = connection.recv(4096).decode()
        except ConnectionError:
            return None
        if not message:
            return None
        if message[0] in "df":
            return message


def test_a_command_says_which_stopped_daemon_it_waits_for(running):
    """And goes on when the daemon does."""
    reflector = next(process for process in running.processes if process.name == "kinf-reflector")
    reflector.send(signal.SIGSTOP)
    try:
        reload = running.follower("reload", name="reload")
        reload.wait_log("note: kinf-reflector does not answer; waiting for up to 60 s")
        assert reload.running
    finally:
        reflector.send(signal.SIGCONT)
    assert reload.wait() == 0 and "kinf-reflector: uses" in reload.out, reload.tail()


def test_the_sockets_are_the_owners_alone(running):
    for name in SOCKETS:
        mode = os.lstat(runtime(running) / name).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, oct(mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_even_where_the_mode_lets_him_in(running):
    """The mode of socket and directories keeps others out; SO_PEERCRED does so again when somebody has changed it."""
    path = runtime(running) / SOCKETS[0]
    for directory in [running.directory, running.runtime, path.parent]:
        directory.chmod(0o755)
    path.chmod(0o777)
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "s.connect(sys.argv[1]); print(s.recv(999).decode())"
    )
    said = subprocess.run(["/usr/bin/python3", "-c", script, path], capture_output=True, text=True, timeout=20 * PATIENCE)
    assert said.stdout == "f only the owner of the store and root may do that\n", said
    assert running.kinf("relist", "pods").status == 0


def test_what_is_no_command_is_refused(running):
    for name in SOCKETS:
        for text in (b"dance", b"reload\n", b"\0", b"x" * 1023, b"x" * 5000, b" ", b"\xff\xfe", b"relist\x7f pods"):
            connection = dial(runtime(running) / name)
            connection.send(text)
            said = answer(connection)
            assert said is None or said.startswith("f "), (text, said)
    assert running.kinf("reload", check=True).stdout.count("uses") == 2


def test_random_bytes_and_silent_peers_do_not_disturb(simulator, running):
    """More connections than places, some silent, some with random bytes, some without reads."""
    chance = random.Random(7)
    kept = []
    for _ in range(200):
        connection = dial(runtime(running) / chance.choice(SOCKETS))
        try:
            for _ in range(chance.randrange(3)):
                connection.send(chance.randbytes(chance.randrange(1, 900)))
        except OSError:
            pass  # refused already
        kept = [*kept, connection][-6:]
    simulator.touch("pods")
    running.wait_equal(simulator, "pods")
    for connection in kept:
        connection.close()
    eventually(lambda: running.kinf("reload").status == 0)


def test_a_command_that_finds_no_place_says_so(running):
    """It does not say "the daemon has ended": it refuses before it reads the command."""
    reflector = next(process for process in running.processes if process.name == "kinf-reflector")
    reflector.send(signal.SIGSTOP)
    eventually(lambda: reflector.stopped)
    kept = [dial(runtime(running) / SOCKETS[0]) for _ in range(8)]
    reload = running.follower("reload", name="reload")
    eventually(lambda: "note: kinf-reflector does not answer" in reload.log)  # the command is sent
    reflector.send(signal.SIGCONT)
    assert reload.wait() == 1 and "too many commands at once" in reload.log and "ended" not in reload.log, reload.tail()
    for connection in kept:
        connection.close()
    eventually(lambda: running.kinf("reload").status == 0)


def test_a_peer_that_never_sends_a_command_is_dropped(running):
    connection = dial(runtime(running) / SOCKETS[0])
    assert answer(connection) is None


def test_without_daemons_the_commands_say_so(simulator, running):
    running.stop()
    for command in (["reload"], ["relist", "pods"]):
        result = running.kinf(*command)
        assert result.status == 1 and str(running.path) in result.stderr, result
        assert re.search("no daemon runs|does not run", result.stderr), result


def test_a_socket_of_a_killed_daemon_is_no_daemon(running):
    for process in running.processes:
        process.kill()
    result = running.kinf("reload")
    assert result.status == 1 and "no daemon runs" in result.stderr, result


def test_wrong_usage_is_exit_2(running):
    for command in (["relist"], ["relist", "pods", "nodes"], ["relist", ""], ["reload", "x"], ["rebuild-index", "x"],
                    ["clusters", "x"], ["metrics", "x"], ["remove-store", "x"], ["remove-store"], ["relist", "--frist"]):
        result = running.kinf(*command)
        assert result.status == 2 and len(result.stderr.splitlines()) == 1, result


# ---- reload --------------------------------------------------------------------------------------


def test_reload_adds_a_feed(simulator, running):
    simulator.create("configmaps", 3)
    running.configure(whole("pods"), whole("configmaps"))
    result = running.kinf("reload", check=True)
    assert result.stdout == f"kinf-reflector: uses {running.config}\nkinf-processor: uses {running.config}\n", result
    running.wait_equal(simulator, "configmaps")


def test_reload_says_what_is_wrong_and_changes_nothing(running):
    running.config.write_text("feeds:\n  - resource: pods\n    pageSize: many\n")
    result = running.kinf("reload", env={"KINF_CONFIG": ""})
    assert result.status == 1 and result.stdout == "", result
    for name in ("kinf-reflector", "kinf-processor"):
        assert re.search(rf"Error: {name} \(process \d+\): .*kinf.yaml:3: .*pageSize", result.stderr), result
    assert running.feed_status("pods")["state"] == "live"


def test_reload_without_any_feed_changes_nothing(running):
    """All feeds and their objects were removed."""
    running.config.write_text("feeds: []\n")
    result = running.kinf("reload", env={"KINF_CONFIG": ""})
    assert (result.status, result.stdout) == (1, "") and result.stderr.count("no feeds; name at least one") == 2, result
    assert running.feed_status("pods")["state"] == "live"


def test_reload_without_the_file_of_the_working_directory_changes_nothing(simulator, store):
    simulator.create("pods", 1)
    store.configure("pods")
    store.process("kinf-run", [program("kinf"), "run", "--runtime-dir", store.runtime], {"KINF_CONFIG": ""}).start()
    store.wait_live("pods")
    store.config.unlink()
    result = store.kinf("reload", env={"KINF_CONFIG": ""})
    assert result.status == 1 and "no ./kinf.yaml and no /etc/kinf/kinf.yaml: no feeds" in result.stderr, result
    assert store.feed_status("pods")["state"] == "live"


def test_reload_says_that_watch_names_the_feeds(simulator, store):
    store.configure("pods")
    store.run("--watch", "nodes")
    store.wait_live("nodes")
    result = store.kinf("reload", check=True)
    assert result.stdout.count(f"uses {store.config}, with the feeds of --watch\n") == 2, result


def test_reload_names_keys_that_need_a_restart(running):
    running.configure(whole("pods"), mapSize="1GiB")
    result = running.kinf("reload", check=True)
    assert "only after a restart: mapSize" in result.stderr, result


def test_reload_names_keys_that_kinf_run_takes_when_it_starts(simulator, store):
    """`kinf run` reads the file again at SIGHUP only."""
    store.configure("pods")
    supervisor = store.run()
    store.wait_live("pods")
    store.configure("pods", hangLimit="2m", serve={})
    for _ in range(2):
        result = store.kinf("reload", check=True)
        assert "note: kinf run uses a changed value of these keys only after a restart: serve, hangLimit\n" in result.stderr, result
    supervisor.wait_log('config_needs_restart daemon="kinf run" keys="serve, hangLimit"')


def test_reload_says_that_a_changed_kubeconfig_needs_a_restart(simulator, running):
    """A token was replaced in the file after the server had refused the old one: the daemons did
    not explain its lack of effect."""
    running.connect(simulator.url, namespace="web")
    assert running.kinf("reload", check=True).stderr == "", "where kubectl looks makes no difference"
    for change, says in ((lambda: running.connect("http://127.0.0.1:1"), f"the changed kubeconfig '{running.kubeconfig}'"),
                         (running.kubeconfig.unlink, "the kubeconfig, which is no good now: ")):
        change()
        result = running.kinf("reload", check=True)
        assert result.stderr.startswith(f"note: kinf-reflector uses this only after a restart: {says}"), result
    running.wait_live("pods")


@pytest.mark.parametrize("given", [False, True])
def test_reload_names_places_that_kinf_run_has_from_the_file(simulator, store, given):
    """`kinf run` gives both daemons its store and runtime directory; the file's present values are
    of no use to them."""
    env = {"KINF_STORE": "", "KINF_RUNTIME_DIR": ""}
    other = store.directory / "other"
    options = ["--store", store.path, "--runtime-dir", store.runtime] if given else []
    store.configure("pods", runtimeDir=str(store.runtime))
    store.process("kinf-run", [program("kinf"), "run", *options], env).start()
    store.wait_live("pods")
    store.configure("pods", runtimeDir=str(other), store=str(other))
    for _ in range(2):
        result = store.kinf("reload", "--store", store.path, env=env, check=True)
        named = "note: kinf run uses a changed value of these keys only after a restart: store, runtimeDir\n"
        assert (result.stderr == "") if given else (result.stderr == named), result
    result = store.kinf("reload", env=env)
    assert result.status == 1 and f"no daemon runs on store '{other}'" in result.stderr, result
    assert "if they were started with another 'store', restart 'kinf run'" in result.stderr, result
    assert store.feed_status("pods")["state"] == "live"


# ---- relist --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pods", "po", "Pod", "pod", "PODS", "pods.v1"])
def test_relist_lists_again_and_causes_no_event(simulator, running, name):
    simulator.forget_requests()
    event = running.last_event("pods")
    assert running.kinf("relist", name, check=True).stdout == f"{name}: listing again\n"
    eventually(lambda: simulator.requests(resource="pods", verb="list"))
    running.wait_live("pods")
    assert running.last_event("pods") == event


@pytest.mark.parametrize("restarted", [False, True])
def test_relist_without_an_api_server_says_so_and_lists_when_it_is_back(simulator, running, restarted):
    simulator.down()
    if restarted:
        running.stop()
        running.daemons()
        why = "this run of the reflector has not heard from the API server yet"
        eventually(lambda: running.kinf("status", "-o", "json").json["feeds"][0]["state"] == "stale")
    else:
        why = "[Cc]onnect"
        eventually(lambda: "onnect" in (running.feed_status("pods")["lastError"] or ""))
    result = running.kinf("relist", "pods", check=True)
    assert re.fullmatch(rf"pods: will be listed again, but not yet \(it is tried until it succeeds\): .*{why}.*\n", result.stdout), result
    simulator.forget_requests()
    simulator.up()
    eventually(lambda: simulator.requests(resource="pods", verb="list"))
    running.wait_live("pods")
    assert running.kinf("relist", "pods", check=True).stdout == "pods: listing again\n"


def test_relist_of_a_feed_leaves_another_one_of_its_resource_alone(simulator, store):
    store.configure("pods", {"resource": "pods", "name": "web", "namespaces": ["web"]}).daemons()
    for feed in ("pods", "web"):
        store.wait_live(feed)
    lists = store.feed_status("web")["lists"]
    assert store.kinf("relist", "pods", check=True).stdout == "pods: listing again\n"
    eventually(lambda: store.feed_status("pods")["lists"] == 2)
    assert store.feed_status("web")["lists"] == lists
    assert store.kinf("relist", "po", check=True).stdout == "po: listing again (2 feeds)\n"


def test_relist_of_no_feed_is_an_error(simulator, running):
    simulator.forget_requests()
    result = running.kinf("relist", "pdos")
    assert result.status == 1 and "no feed 'pdos'" in result.stderr, result
    assert not simulator.requests(resource="pods", verb="list")


# ---- rebuild-index -------------------------------------------------------------------------------


def test_rebuild_index_makes_another_index_of_the_same_state(simulator, running):
    before = running.kinf("status", "-o", "json", check=True).json["store"]
    simulator.forget_requests()
    assert running.kinf("rebuild-index", check=True).stdout == "the index is built\n"
    after = running.kinf("status", "-o", "json", check=True).json["store"]
    assert after["index"]["generation"] > before["index"]["generation"]
    assert after["journal"]["generation"] == before["journal"]["generation"]
    assert not simulator.requests(resource="pods", verb="list")
    running.wait_equal(simulator, "pods")
    assert len(list((running.path / "index").glob("gen-*"))) == 1
    running.verify()


# ---- clusters ------------------------------------------------------------------------------------


def test_clusters_lists_the_configurations_and_cluster_uses_one(simulator, running):
    directory = running.directory / "etc"
    directory.mkdir()
    env = {"KINF_CONFIG_DIR": str(directory), "KINF_CONFIG": ""}
    assert running.kinf("clusters", env=env).stdout == ""
    (directory / "prod.yaml").write_text(running.config.read_text())
    (directory / "test.yaml").write_text(f"store: {directory}/none\nfeeds: [{{resource: pods}}]\n")
    (directory / "notes.txt").write_text("no configuration")
    rows = [line.split() for line in running.kinf("clusters", env=env, check=True).stdout.splitlines()]
    assert rows == [["NAME", "STATE", "STORE"], ["prod", "running", str(running.path)],
                    ["test", "no", "store", "yet", f"{directory}/none"]]
    other = {**env, "KINF_STORE": str(directory / "nowhere")}
    assert running.kinf("--cluster", "prod", "get", "pods", "-o", "count", env=other, check=True).stdout == "20\n"
    assert f"{directory}/none" in running.kinf("get", "pods", "--cluster", "test", env=other).stderr
    for name in ("nothing", "../etc/prod", ".", ""):
        result = running.kinf("get", "pods", "--cluster", name, env=env)
        assert result.status == 1 and "kinf clusters" in result.stderr, result
    (directory / "bad.yaml").write_text("feeds: 7\n")
    result = running.kinf("clusters", env=env)
    assert result.status == 1 and "bad file" in result.stdout and "prod" in result.stdout and "bad.yaml:1" in result.stderr


# ---- metrics -------------------------------------------------------------------------------------


def samples(text):
    """{name and labels: value}. Asserts the form: each family has its HELP and TYPE once, before its samples."""
    found, family, seen = {}, None, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen and len(line.split()) > 3, line
            seen.add(family)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family and line.split()[3] in ("counter", "gauge"), line
            assert (line.split()[3] == "counter") == family.endswith("_total"), line
        else:
            name, value = re.fullmatch(r"([a-z_]+(?:\{.*\})?) (\S+)", line).groups()
            assert name.split("{")[0] == family and name not in found, line
            found[name] = float(value)
    return found


def test_metrics_have_the_numbers_of_the_status(simulator, running):
    values = samples(running.kinf("metrics", check=True).stdout)
    assert values['kinf_process_up{process="kinf-reflector"}'] == 1
    assert values['kinf_process_up{process="kinf-processor"}'] == 1
    assert values['kinf_feed_objects{feed="pods"}'] == 20
    assert values['kinf_feed_live{feed="pods"}'] == 1
    assert values['kinf_feed_state{feed="pods",state="live"}'] == 1
    assert values['kinf_feed_lists_total{feed="pods"}'] == 1
    assert values['kinf_journal_records_total{process="kinf-reflector"}'] >= 22
    assert values["kinf_store_last_event"] == values["kinf_store_taken_event"] > 20
    assert values["kinf_store_error"] == 0


def test_metrics_of_a_cluster_that_is_away_find_no_fault_in_the_store(simulator, store):
    simulator.create("pods", 3)
    store.start(simulator, whole("pods"), backoff={"min": "10ms", "max": "100ms"})
    store.stop()
    simulator.down()
    store.daemons()
    eventually(lambda: "identity of the cluster" in store.kinf("status", "-o", "json").json["store"]["lastError"])
    values = samples(store.kinf("metrics", check=True).stdout)
    assert (values["kinf_store_error"], values['kinf_feed_live{feed="pods"}']) == (0, 0)
    store.config.write_text("feeds: 1\n")
    assert store.kinf("reload", env={"KINF_CONFIG": ""}).status == 1
    eventually(lambda: samples(store.kinf("metrics", env={"KINF_CONFIG": ""}).stdout)["kinf_store_error"] == 1)


def test_metrics_without_daemons(simulator, running):
    running.stop()
    values = samples(running.kinf("metrics", check=True).stdout)
    assert values['kinf_process_up{process="kinf-reflector"}'] == 0
    assert values['kinf_feed_live{feed="pods"}'] == 0
    assert values['kinf_feed_objects{feed="pods"}'] == 20
    assert running.kinf("metrics", "--store", "/nowhere").status == 1


# ---- remove-store --------------------------------------------------------------------------------


def test_remove_store_leaves_nothing(simulator, running):
    result = running.kinf("remove-store", "--yes")
    assert result.status == 1 and re.search(r"kinf-reflector \(process \d+\) uses the store", result.stderr), result
    running.wait_equal(simulator, "pods")
    follower = running.follower("watch", "pods", "-o", "json", "--cursor", "mine", "--count", "20")
    assert follower.wait() == 0
    for process in running.processes:
        process.kill()
    assert running.kinf("remove-store").status == 2
    assert running.kinf("remove-store", "--yes", check=True).stdout == f"removed the store '{running.path}'\n"
    assert not running.path.exists()
    assert not list(running.runtime.glob("kinf-*"))
    result = running.kinf("remove-store", "--yes")
    assert result.status == 1 and "no store at" in result.stderr, result


def test_remove_store_keeps_what_is_not_the_stores(simulator, running):
    running.stop()
    (running.path / "mine.txt").write_text("mine")
    result = running.kinf("remove-store", "--yes", check=True)
    assert "stays" in result.stderr
    assert [path.name for path in running.path.iterdir()] == ["mine.txt"]
    result = running.kinf("run", "--runtime-dir", running.runtime)
    assert result.status == 78 and "such as mine.txt: a store has its directory for itself" in result.stderr, result
    (running.path / "mine.txt").unlink()
    running.daemons()
    running.wait_equal(simulator, "pods")


def test_remove_store_removes_no_other_directory(running):
    (running.directory / "other").mkdir()
    (running.directory / "other" / "journal").mkdir()
    result = running.kinf("remove-store", "--yes", "--store", running.directory / "other")
    assert result.status == 1 and (running.directory / "other" / "journal").exists(), result


def test_a_store_that_is_made_again_is_another_one(simulator, running):
    running.stop()
    identity = (running.path / "id").read_text()
    running.kinf("remove-store", "--yes", check=True)
    running.daemons()
    running.wait_equal(simulator, "pods")
    assert (running.path / "id").read_text() != identity
