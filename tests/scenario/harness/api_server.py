# SPDX-License-Identifier: Apache-2.0
"""An API server before a simulated cluster with writes, access control and upgrades of connections:
the target of kinf-serve's forwarding. Reads of the cluster's resources are the simulator's."""

import json
import re
import threading

from harness.reverse_proxy import ReverseProxy, _Handler

OBJECT = re.compile(r"/api/v1/namespaces/([^/?]+)/([a-z]+)(?:/([^/?]+))?(?:/([a-z]+))?(?:\?.*)?$")
REVIEW = re.compile(r"/apis/(authorization|authentication)\.k8s\.io/v1/([a-z]+)$")


class _WritingHandler(_Handler):
    def do_GET(self):  # noqa: N802
        self.server.see(self)
        if self.headers["Upgrade"]:
            return self.tunnel()
        if self.path.startswith("/big"):
            return self.big(int(self.path.partition("?")[2]))
        if self.path.startswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return None
        if self.path.startswith("/warnings"):
            return self.warnings(int(self.path.partition("?")[2]))
        if self.path.startswith("/later"):
            self.server.gate.wait(60)
            return self.answer(200, b"{}")
        if self.path.startswith("/headers"):
            return self.answer(200, json.dumps({name.lower(): value for name, value in self.headers.items()}).encode())
        return super().do_GET()

    def do_POST(self):  # noqa: N802
        self.server.see(self)
        if self.path.startswith("/never"):
            self.server.gate.wait(60)  # the body is not read
        if self.path.startswith("/count"):
            size = sum(len(piece) for piece in self.pieces())
            return self.answer(200, b"%d" % size)
        body = b"".join(self.pieces())
        if self.path.startswith("/lost"):
            self.close_connection = True
            return None
        if review := REVIEW.match(self.path):
            return self.review(review[2], json.loads(body))
        return self.write(json.loads(body) if body else None)

    do_PUT = do_PATCH = do_DELETE = do_POST

    def pieces(self):
        """The request's body as it comes."""
        if self.headers["Transfer-Encoding"] == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        left = int(self.headers["Content-Length"] or 0)
        while left and (piece := self.rfile.read(min(left, 65536))):
            left -= len(piece)
            yield piece

    def tunnel(self):
        """Sends everything back until the client ends; the word `bye` makes this side end."""
        self.send_response_only(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.end_headers()
        self.wfile.write(b"hello\n")
        while data := self.connection.recv(65536):
            self.connection.sendall(data)
            if data.endswith(b"bye"):
                break
        self.close_connection = True

    def big(self, size):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        piece = b"x" * 65536
        for _ in range(size // len(piece)):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.server.sent += len(piece)
        self.wfile.write(b"0\r\n\r\n")

    def warnings(self, number):
        self.send_response(200)
        for i in range(number):
            self.send_header("Warning", f'299 - "unknown field \\"f{i}\\""')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def write(self, body):
        found = OBJECT.match(self.path)
        if not self.headers["Authorization"]:
            return self.status(401, "Unauthorized", "Unauthorized")
        namespace, resource, name, sub = found.groups()
        simulator, key = self.server.simulator, f"{namespace}/{name}"
        if self.command == "DELETE" and not name:
            return self.delete_collection(namespace, resource)
        if self.command == "DELETE" or sub == "eviction":
            item = simulator.truth(resource).get(key)
            if not item:
                return self.status(404, "NotFound", f'{resource} "{name}" not found')
            if item.get("metadata", {}).get("finalizers"):
                return self.terminate(resource, key, item)
            if "dryRun" not in (body or {}):
                simulator.delete(resource, key)
            answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {"name": name}}
            return self.answer(200, json.dumps(answer).encode())
        if self.command == "PATCH" and body.get("metadata", {}).get("finalizers", "") is None:
            return self.finalize(resource, key)
        if self.command == "PATCH":
            simulator.patch(resource, key, body)
        else:
            body["metadata"]["namespace"] = namespace
            key = f"{namespace}/{body['metadata']['name']}"
            old = simulator.truth(resource).get(key)
            if old and self.command == "POST":
                return self.status(409, "AlreadyExists", f'{resource} "{key}" already exists')
            if old and body["metadata"].get("resourceVersion", "") not in ("", old["metadata"]["resourceVersion"]):
                return self.status(409, "Conflict", "the object has been modified")
            simulator.put(resource, body)
        form = "application/yaml" if self.headers["Accept"] == "application/yaml" else "application/json"
        return self.answer(201 if self.command == "POST" else 200,
                           json.dumps(json.loads(simulator.truth_text(resource, key))[0]).encode(), form)

    def terminate(self, resource, key, item):
        """An object with finalizers begins to end by its first deletion. Further ones change nothing."""
        if "deletionTimestamp" not in item["metadata"]:
            self.server.simulator.patch(resource, key, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        return self.answer(200, json.dumps(json.loads(self.server.simulator.truth_text(resource, key))[0]).encode())

    def finalize(self, resource, key):
        """Deletes an object left with only its finalizers, and answers as a kube-apiserver does:
        with its last version."""
        last = json.loads(self.server.simulator.truth_text(resource, key))[0]
        del last["metadata"]["finalizers"]
        self.server.simulator.delete(resource, key)
        return self.answer(200, json.dumps(last).encode())

    def delete_collection(self, namespace, resource):
        """Answers as a kube-apiserver does: with the list of the deleted objects, under the newest version before."""
        simulator = self.server.simulator
        found = simulator.get(f"/api/v1/namespaces/{namespace}/{resource}").json
        for item in found["items"]:
            simulator.delete(resource, f"{namespace}/{item['metadata']['name']}")
        return self.answer(200, json.dumps(found).encode())

    def review(self, kind, body):
        if self.server.away:
            self.close_connection = True
            return None
        if self.server.overloaded:
            return self.status(429, "TooManyRequests", "too many requests")
        spec = body.get("spec", {})
        with self.server.lock:
            self.server.reviews.append((kind, self.headers["Authorization"], spec))
        status = self.server.decide(kind, self.headers["Authorization"], spec)
        if status is None:
            return self.status(401, "Unauthorized", "Unauthorized")
        return self.answer(201, json.dumps({**body, "status": status}).encode())

    def status(self, code, reason, message):
        self.answer(code, json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                      "message": message, "reason": reason, "code": code}).encode())


class ApiServer(ReverseProxy):
    """`seen` lists (method, path, headers) of each request; `decide(kind, authorization, spec)`
    returns the status of a review, or None for 401; `reviews` lists them. `away`: reviews are not
    answered; `overloaded`: with 429. Without `greets` new connections get no handshake; `waiting` counts them."""

    def __init__(self, simulator, pair=None, **named):
        self.seen, self.reviews, self.away, self.overloaded, self.sent, self.waiting = [], [], False, False, 0, 0
        self.gate, self.greets = threading.Event(), threading.Event()
        self.greets.set()
        self.decide = lambda kind, authorization, spec: {"allowed": True} if authorization else None
        super().__init__(simulator, pair, **named)
        self.RequestHandlerClass = _WritingHandler

    def finish_request(self, request, address):
        if not self.greets.is_set():
            with self.lock:
                self.waiting += 1
            self.greets.wait(60)
        super().finish_request(request, address)

    def see(self, handler):
        with self.lock:
            self.seen.append((handler.command, handler.path, handler.headers))

    def times(self, method, path):
        """The number of requests of METHOD for a path beginning with PATH."""
        with self.lock:
            return sum(m == method and p.startswith(path) for m, p, _ in self.seen)


