# SPDX-License-Identifier: Apache-2.0
"""What stands before a simulated cluster and looks who comes: TLS with client certificates, and a
record of each request with its headers. Without TLS it is a proxy for plain http too."""

import http.client
import json
import socket
import ssl
import threading
from http.server import ThreadingHTTPServer

from harness.aggregator import PASSED_ON, Handler

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
            self.hand_on(far.getresponse())
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            far.close()

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def client_name(self):
        shown = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        return dict(item for rdn in shown["subject"] for item in rdn)["commonName"] if shown else None


class Door(ThreadingHTTPServer):
    """Before SIMULATOR. `requests`: what came, as {path, headers, sni, client (common name)}."""

    daemon_threads = True
    processes = []

    def __init__(self, simulator, pair=None, client_ca=None, refuse=lambda request: None):
        """PAIR: (certificate, key) to show; CLIENT_CA: whose certificates are asked for (not demanded);
        REFUSE: of a request, (status, body) or nothing."""
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
        """The certificate that new connections see."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        context.sni_callback = lambda connection, name, _: setattr(connection, "sni", name)
        self.context = context

    def finish_request(self, request, address):
        """In the connection's thread, where a handshake holds up nobody else."""
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        try:
            super().finish_request(request, address)
        finally:
            request.close()

    def cut(self):
        """Ends all connections that are open."""
        with self.lock:
            for end in self.open:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it was faster
            self.open.clear()

    def forget(self):
        with self.lock:
            self.requests.clear()

    def handle_error(self, *_):
        pass  # a client that went away, or did not like our certificate

    def stop(self):
        self.shutdown()
        self.cut()
        self.server_close()
