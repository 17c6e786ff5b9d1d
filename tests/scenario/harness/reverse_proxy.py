# SPDX-License-Identifier: Apache-2.0
"""A reverse proxy before a simulated cluster: serves TLS, asks for client certificates, records
each request with its headers, and refuses requests chosen by the test. Without TLS it also works as
a forward proxy for plain HTTP."""

import gzip
import http.client
import json
import ssl
import threading
from http.server import ThreadingHTTPServer

from harness.aggregator import PASSED_ON, Handler
from harness.network import cut

UNAUTHORIZED = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                           "message": "Unauthorized", "reason": "Unauthorized", "code": 401}).encode()


class _Handler(Handler):
    def do_GET(self):  # noqa: N802
        server = self.server
        request = {"path": self.path, "headers": self.headers, "sni": getattr(self.connection, "sni", None),
                   "client": self.client_name()}
        with server.lock:
            server.requests.append(request)
        refused = server.refuse(request)
        if refused:
            return self.answer(*refused)
        path = "/" + self.path.split("/", 3)[3] if self.path.startswith("http://") else self.path
        far = http.client.HTTPConnection("127.0.0.1", server.simulator.port, timeout=700)
        try:
            headers = {name: self.headers[name] for name in PASSED_ON if self.headers[name]}
            far.request("GET", path, headers=headers)
            with server.lock:
                server.open |= {self.connection, far.sock}
            answer = far.getresponse()
            if server.packs and "watch=" not in path:
                return self.answer(answer.status, answer.read(), answer.headers["Content-Type"])
            self.forward(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            far.close()

    def answer(self, status, body, content_type="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if self.server.packs:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def client_name(self):
        shown = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        return dict(item for rdn in shown["subject"] for item in rdn)["commonName"] if shown else None


class ReverseProxy(ThreadingHTTPServer):
    """Forwards requests to SIMULATOR. `requests` records each as {path, headers, sni, client}; sni is the TLS server
    name, client the common name of the client's certificate."""

    daemon_threads = True
    processes = []
    packs = False  # all answers but watches, for any Accept-Encoding: RFC 9110 allows it without the header

    def __init__(self, simulator, pair=None, client_ca=None, refuse=lambda request: None):
        """PAIR: (certificate, key) of the server; None: no TLS. CLIENT_CA: asks clients for a
        certificate of this CA, but accepts clients without one. REFUSE: called with each request;
        returns (status, body) to refuse it, else None."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.simulator, self.client_ca, self.refuse = simulator, client_ca, refuse
        self.requests, self.open, self.lock = [], set(), threading.Lock()
        self.context = None
        if pair:
            self.show(pair)
        self.port = self.server_port
        self.url = f"{'https' if pair else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def show(self, pair):
        """Uses the certificate and key of PAIR for new connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        context.sni_callback = lambda connection, name, _: setattr(connection, "sni", name)
        self.context = context

    def finish_request(self, request, address):
        """Makes the TLS handshake in the connection's thread: other connections need not wait for it."""
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        try:
            super().finish_request(request, address)
        finally:
            request.close()

    def cut(self):
        """Closes all open connections."""
        with self.lock:
            cut(self.open)
            self.open.clear()

    def forget(self):
        with self.lock:
            self.requests.clear()

    def handle_error(self, *_):
        pass  # the client has closed the connection or refused the certificate

    def stop(self):
        self.shutdown()
        self.cut()
        self.server_close()
