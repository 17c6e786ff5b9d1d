# SPDX-License-Identifier: Apache-2.0
"""An etcd and a kube-apiserver for the test to damage. The scripts up.sh and down.sh of a directory
of tools start and stop them: `up.sh DIR PORT`, `down.sh DIR [kas] [etcd]`. In DIR they keep
kubeconfig, kas.pid, etcd.pid and etcd's data in etcd/; etcd listens on PORT + 1000.
"""

import base64
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import yaml


class Lab:
    def __init__(self, tools, directory, port):
        self.tools, self.directory, self.port = Path(tools), Path(directory), port
        self.kubeconfig = self.directory / "kubeconfig"

    def _run(self, script, *args):
        subprocess.run([self.tools / script, self.directory, *args], check=True, stdout=subprocess.DEVNULL, timeout=600)

    def up(self):
        """Starts the stopped servers, and waits until the API server is ready."""
        self._run("up.sh", str(self.port))
        return self

    def down(self, *names):
        self._run("down.sh", *names)

    def signal(self, name, number):
        os.kill(int((self.directory / f"{name}.pid").read_text()), number)

    def pause(self, name, seconds):
        self.signal(name, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self.signal(name, signal.SIGCONT)

    def etcd(self, path, **body):
        """Calls etcd's JSON gateway."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port + 1000}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def compact(self):
        """Compacts etcd up to the present revision."""
        key = base64.b64encode(b"/").decode()
        revision = self.etcd("kv/range", key=key)["header"]["revision"]
        self.etcd("kv/compaction", revision=revision)

    def save(self):
        """Copies etcd's data; stops etcd meanwhile."""
        self.down("etcd")
        shutil.rmtree(self.directory / "etcd.saved", ignore_errors=True)
        shutil.copytree(self.directory / "etcd", self.directory / "etcd.saved")
        self.up()

    def restore(self):
        self.down("kas", "etcd")
        shutil.rmtree(self.directory / "etcd")
        shutil.copytree(self.directory / "etcd.saved", self.directory / "etcd")
        self.up()


class Api:
    """Sends requests as the administrator, on one connection, opened again after a failure."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(Path(kubeconfig).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.address = cluster["server"].removeprefix("https://")
        self.context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.headers = {"Authorization": "Bearer " + config["users"][0]["user"]["token"]}
        self.connection = None

    def get(self, path):
        """Returns the text of a GET; raises AssertionError if the server does not answer."""
        try:
            status, text = self.call("GET", path)
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError(f"GET {path}: {error!r}") from None
        assert status == 200, text[:300]
        return text

    def call(self, method, path, body=None, kind="application/json"):
        """Returns (status, text); raises OSError or HTTPException if there is no answer."""
        if not self.connection:
            self.connection = http.client.HTTPSConnection(self.address, timeout=5, context=self.context)
        try:
            self.connection.request(method, path, body, {**self.headers, "Content-Type": kind})
            answer = self.connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise


class Churn:
    """Changes objects in the background during a `with` block; ignores failed requests."""

    def __init__(self, kubeconfig, change, pause=0.1):
        self.api, self.change, self.pause = Api(kubeconfig), change, pause
        self.done = self.failed = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.ended.wait(self.pause):
            try:
                self.change(self.api)
                self.done += 1
            except (OSError, http.client.HTTPException):
                self.failed += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join(60)
