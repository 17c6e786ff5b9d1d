# SPDX-License-Identifier: Apache-2.0
"""An API server forwarding some paths to another one, as kube-apiserver does for an APIService."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 65536
PASSED_ON = ("Accept", "Authorization", "User-Agent")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # heads and bodies are written one by one

    def log_message(self, *_):
        pass

    def do_GET(self):  # noqa: N802
        port = self.server.port_of(self.path)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=700)
        try:
            headers = {name: self.headers[name] for name in PASSED_ON if self.headers[name]}
            connection.request("GET", self.path, headers=headers)
            self.forward(connection.getresponse())
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # the server has cut the answer; the client sees it cut too
        finally:
            connection.close()

    def forward(self, answer):
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(PIECE):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


class Aggregator(ThreadingHTTPServer):
    """Forwards requests to the simulator CORE. ROUTES: {prefix: simulator} for paths of another simulator."""

    daemon_threads = True
    token = None

    def __init__(self, core, routes):
        super().__init__(("127.0.0.1", 0), Handler)
        self.core, self.routes = core, routes
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def port_of(self, path):
        for prefix, simulator in self.routes.items():
            if path.startswith(prefix):
                return simulator.port
        return self.core.port

    def handle_error(self, *_):
        pass  # the client has closed the connection

    def stop(self):
        self.shutdown()
        self.server_close()
