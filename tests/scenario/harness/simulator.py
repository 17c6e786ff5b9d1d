# SPDX-License-Identifier: Apache-2.0
"""The simulated cluster: starts kinf-simulator and drives its control port (tests/README.md)."""

import http.client
import json
import os
import re
import urllib.parse

from harness import PATIENCE, eventually
from harness.process import BUILD, ROOT, Process, program


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        return [json.loads(line) for line in self.body.splitlines()]


def simulator_program():
    """Path of kinf-simulator, in the build directory $KINF_SIMULATOR_BUILD, by default the one under test."""
    return program("kinf-simulator", ROOT / os.environ.get("KINF_SIMULATOR_BUILD", BUILD))


class Simulator:
    """A simulated cluster. `url` is the address of its API; the methods use its control port."""

    def __init__(self, directory, *options, tls=None, token=None, name="kinf-simulator"):
        """TLS: (certificate file, key file). NAME: names its output files, unique in DIRECTORY."""
        argv = [simulator_program(), "--die-with-parent", *options]
        if tls:
            argv += ["--tls-cert", tls[0], "--tls-key", tls[1]]
        if token:
            argv += ["--token", token]
        self.tls, self.token = tls, token
        self.process = Process(name, argv, directory)
        self.port = self.control_port = None

    @classmethod
    def at(cls, port, control_port):
        """A simulator started and stopped by another process."""
        simulator = cls.__new__(cls)
        simulator.tls = simulator.token = None
        simulator.port, simulator.control_port = port, control_port
        return simulator

    def start(self, timeout=60):
        self.process.start()

        def listening():
            assert self.process.running, self.process.tail()
            return re.search(r"listening on \S+:(\d+)\ncontrol on \S+:(\d+)\n", self.process.out)

        found = eventually(listening, timeout)
        self.port, self.control_port = int(found[1]), int(found[2])
        return self

    def stop(self):
        status = self.process.stop()
        self.process.check()
        assert status == 0, self.process.tail()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    # ---- control -------------------------------------------------------------------------------

    def control(self, method, path, body=None, **query):
        """Calls the control port; returns the answer as text."""
        query = {key: str(value) for key, value in query.items() if value is not None}
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.control_port, timeout=120)
        try:
            connection.request(method, target, body.encode() if isinstance(body, str) else body)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == 200, f"{method} {target}: {answer.status} {text}"
        return text

    def call(self, method, path, body=None, **query):
        return json.loads(self.control(method, path, body, **query))

    def _change(self, method, path, body=None, **query):
        return self.call(method, path, body, **query)["resourceVersion"]

    def _object(self, key):
        return "/objects/" + urllib.parse.quote(key)

    def put(self, resource, body):
        """Creates or replaces one object or a list of them, given as JSON text (kept byte for byte) or as Python."""
        return self._change("PUT", "/objects", body, resource=resource)

    def patch(self, resource, key, patch):
        """Applies a JSON merge patch to one object; KEY is namespace/name."""
        return self._change("PATCH", self._object(key), patch, resource=resource)

    def delete(self, resource, key):
        return self._change("DELETE", self._object(key), resource=resource)

    def delete_many(self, resource, count=0):
        """Deletes COUNT random objects, 0: all."""
        return self._change("DELETE", "/objects", resource=resource, count=count)

    def create(self, resource, count, **options):
        """Creates COUNT generated objects; options: from_, size, namespaces, prefix."""
        options["from"] = options.pop("from_", None)
        return self._change("POST", "/create", resource=resource, count=count, **options)

    def touch(self, resource, count=0):
        """Modifies COUNT random objects, 0: each one."""
        return self._change("POST", "/touch", resource=resource, count=count)

    def churn(self, resource, rate, create_delete=20):
        """Makes RATE changes a second from now on; CREATE_DELETE percent of them create and delete, the rest modify."""
        self.call("POST", "/churn", resource=resource, rate=rate, createDelete=create_delete)

    def truth_text(self, resource, key=None):
        """The present objects of a resource, or the one of KEY, as the text of a JSON array."""
        return self.control("GET", self._object(key) if key else "/objects", resource=resource)

    def truth(self, resource):
        """The present objects of a resource as {namespace/name: object}."""
        objects = json.loads(self.truth_text(resource))
        return {object_key(o): o for o in objects}

    def compact(self, rv=None):
        """Makes the server forget its history up to RV (default: all)."""
        return self._change("POST", "/compact", rv=rv)

    def save(self):
        return self._change("POST", "/save")

    def restore(self):
        """Restores the saved objects and the resourceVersion of then; cuts all connections."""
        rv = self._change("POST", "/restore")
        self.drop()
        return rv

    def new_identity(self):
        return self._change("POST", "/identity")

    def add_kind(self, **kind):
        """Adds a resource: group, version, resource, kind; optionally singular, namespaced, shortName, category."""
        self.call("POST", "/kinds", kind)

    def remove_kind(self, resource):
        """Removes the resource as if its CustomResourceDefinition were deleted."""
        self.call("DELETE", "/kinds", resource=resource)

    def bookmark(self):
        """Sends a bookmark on every watch with bookmarks."""
        return self._change("POST", "/bookmark")

    def swallow(self, resource, count=1):
        """Loses the next COUNT events of a watch of RESOURCE."""
        return self._change("POST", "/swallow", resource=resource, count=count)

    def settings(self, **settings):
        """bookmarkMs, futureWaitMs, history, progressMs, watchList (0, 1), aggregated (0, 1)."""
        return self.call("POST", "/settings", **settings)

    def drop(self):
        """Cuts all connections."""
        self.call("POST", "/drop")

    def down(self):
        """Cuts all connections and refuses new ones."""
        self.call("POST", "/down")

    def up(self):
        self.call("POST", "/up")

    def fault(self, **rule):
        """Adds a fault (keys: tests/simulator/fault.h) and returns its id."""
        return self.call("POST", "/faults", rule)["id"]

    def fault_hits(self, fault):
        return {rule["id"]: rule["hits"] for rule in self.call("GET", "/faults")}[fault]

    def clear_faults(self, fault=None):
        self.call("DELETE", f"/faults/{fault}" if fault else "/faults")

    def requests(self, **wanted):
        """Requests since the last forget_requests(), oldest first; WANTED filters by equality."""
        lines = (json.loads(line) for line in self.control("GET", "/log").splitlines())
        return [r for r in lines if all(r[key] == value for key, value in wanted.items())]

    def forget_requests(self):
        """Empties the log of requests and the counters."""
        self.call("DELETE", "/log")

    @property
    def status(self):
        return self.call("GET", "/status")

    @property
    def rv(self):
        return self.status["resourceVersion"]

    def counters(self, resource):
        """objects, lists, watches, gets, watching (watches open now), history."""
        return self.status["resources"][resource]

    def wait_watching(self, resource, count=1, timeout=20):
        """Waits until COUNT watches are open."""
        eventually(
            lambda: self.counters(resource)["watching"] == count, timeout, f"{count} watches of {resource}"
        )

    # ---- the API itself ------------------------------------------------------------------------

    def get(self, target, timeout=30, **headers):
        """Sends a GET to the API (plain HTTP); returns an Answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * PATIENCE)
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def watch(self, target, timeout=30, **headers):
        """Opens a watch; iterating over it gives events; close() it."""
        return Watch(self.port, target, timeout, headers)


class Watch:
    """An open watch of the API."""

    def __init__(self, port, target, timeout, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout * PATIENCE)
        self.connection.request("GET", target, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def __iter__(self):
        return self

    def __next__(self):
        line = self.answer.readline()
        if not line:
            raise StopIteration
        return json.loads(line)

    def take(self, count):
        """The next COUNT events as (type, namespace/name, resourceVersion)."""
        return [event_summary(next(self)) for _ in range(count)]

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def object_key(obj):
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))


def event_summary(event):
    return event["type"], object_key(event["object"]), event["object"]["metadata"].get("resourceVersion")
