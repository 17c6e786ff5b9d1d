# SPDX-License-Identifier: Apache-2.0
"""Clients of kinf-serve on its Unix socket, and of the simulated API server, with the same requests."""

import http.client
import json
import socket

from harness import PATIENCE, eventually
from harness.http2 import Http2Connection
from harness.process import program

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
INITIAL = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def addresses(store):
    """The addresses of STORE's kinf-serve: {("api", "https"): "127.0.0.1:PORT"}, with unix, and of metrics with http."""
    lines = (store.path / "serve" / "addresses").read_text().splitlines()
    return {tuple(line.split(" ")[:2]): line.split(" ")[2] for line in lines}


def metrics(store):
    """The metrics of STORE's kinf-serve, {name with labels: value}."""
    connection = http.client.HTTPConnection(addresses(store)["metrics", "http"], timeout=20 * PATIENCE)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if not name.startswith("#")}


def unix(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20 * PATIENCE)
    connection.connect(path)
    return connection


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = unix(self.path)


class Answer:
    def __init__(self, response, body):
        self.status, self.body = response.status, body
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["message"]

    @property
    def names(self):
        return [item["metadata"]["name"] for item in self.json["items"]]

    @property
    def rv(self):
        return self.json["metadata"]["resourceVersion"]

    @property
    def events(self):
        return [json.loads(line) for line in self.body.splitlines()]


class Client:
    """Sends requests over connections made by CONNECT."""

    def __init__(self, connect):
        self.connect = connect

    def ask(self, path, method="GET", body=None, **headers):
        """Headers are given with underscores: accept_encoding."""
        connection = self.connect()
        try:
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def watch(self, path, **headers):
        return Watch(self.connect(), path, headers)


class Watch:
    """A watch that runs; events are read when they are asked for."""

    def __init__(self, connection, path, headers):
        self.connection = connection
        connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.response = connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def line(self):
        """The next line; empty at the end of the stream."""
        return self.response.readline()

    def next(self, n=1):
        """The next N events as (type, name, resourceVersion)."""
        events = [brief(json.loads(self.line())) for _ in range(n)]
        return events[0] if n == 1 else events

    def rest(self):
        return [json.loads(line) for line in iter(self.line, b"")]


def brief(event):
    metadata = event["object"]["metadata"]
    return event["type"], metadata.get("name"), metadata.get("resourceVersion")


class Serve:
    """A kinf-serve of STORE; `client` asks it, `http2` over HTTP/2, `server` the API server."""

    def __init__(self, store, simulator):
        self.store, self.simulator = store, simulator
        self.server = Client(lambda: http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=60))
        self.client = Client(lambda: UnixConnection(self.socket))
        self.http2 = Client(lambda: Http2Connection(unix(self.socket)))
        self.process = None
        self.starts = 0
        self.start()

    @property
    def socket(self):
        return addresses(self.store)["api", "unix"]

    def start(self, env=None):
        self.starts += 1
        self.process = self.store.process(f"kinf-serve-{self.starts}", [program("kinf-serve")], env).start()
        self.process.wait_log("daemon_started")

    def ask(self, path, **options):
        return self.client.ask(path, **options)

    def watch(self, path, **headers):
        return self.client.watch(path, **headers)

    def both(self, path, **options):
        """The answers of the API server and of kinf-serve."""
        return self.server.ask(path, **options), self.client.ask(path, **options)

    def wait_rv(self, rv, path="/api/v1/pods"):
        """Waits until lists show RV."""
        eventually(lambda: int(self.ask(path + "?limit=1").rv) >= int(rv), what=f"resourceVersion {rv}")
