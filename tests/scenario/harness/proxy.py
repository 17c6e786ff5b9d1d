# SPDX-License-Identifier: Apache-2.0
"""Forward proxies, HTTP CONNECT and SOCKS5, with or without user and password. They resolve names
unknown to the system: a working connection has left the name to the proxy."""

import base64
import select
import socket
import struct

from harness.network import Listener


class _Proxy(Listener):
    """NAMES: {host: port on 127.0.0.1}, all other hosts are unknown; None: every host is 127.0.0.1.
    CREDENTIALS: the demanded (user, password). `asked`: the requested (host, port) pairs; `heads`:
    the text of each request."""

    def __init__(self, names, credentials=None, context=None):
        self.names, self.credentials, self.context = names, credentials, context
        self.refusal = None
        self.asked, self.heads = [], []
        self.processes = []
        super().__init__()

    def url(self, scheme=None, user=True):
        pair = "{}:{}@".format(*self.credentials) if self.credentials and user else ""
        return f"{scheme or self.scheme}://{pair}127.0.0.1:{self.port}"

    def _serve(self, near):
        try:
            if self.context:
                near = self.context.wrap_socket(near, server_side=True)
            with near:
                far = self._handshake(near)
                if far:
                    with far:
                        self._tunnel(near, far)
        except OSError:
            pass  # the client has closed the connection, or the target does not answer

    def _tunnel(self, near, far):
        """Copies data in both directions, in one thread: Python's TLS sockets do not allow two."""
        with self.lock:
            self.open |= {near, far}
        while True:
            pending = self.context and near.pending()
            for source in [near] if pending else select.select([near, far], [], [])[0]:
                data = source.recv(1 << 16)
                if not data:
                    return
                (far if source is near else near).sendall(data)

    def _connect(self, host, port):
        self.asked.append((host, port))
        target = port if self.names is None else self.names.get(host)
        return socket.create_connection(("127.0.0.1", target)) if target else None


class ConnectProxy(_Proxy):
    """`refusal`: an HTTP status to answer, or "close"."""

    scheme = "http"

    def _handshake(self, near):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = near.recv(1)
            if not piece:
                return None
            head += piece
        head = head.decode()
        self.heads.append(head)
        if self.refusal == "close":
            return None
        status = self.refusal or (200 if self._knows(head) else 407)
        host, _, port = head.split()[1].rpartition(":")
        far = self._connect(host.strip("[]"), int(port)) if status == 200 else None
        if status == 200 and not far:
            status = 502
        near.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status if status != 200
                     else b"HTTP/1.1 200 OK\r\n\r\n")
        return far

    def _knows(self, head):
        pair = base64.b64encode(":".join(self.credentials or ()).encode()).decode()
        return not self.credentials or f"\r\nProxy-Authorization: Basic {pair}\r\n" in head


class SocksProxy(_Proxy):
    """SOCKS5 (RFC 1928, 1929). `refusal`: a SOCKS reply code, or "close"."""

    scheme = "socks5"

    @staticmethod
    def _take(near, count):
        data = b""
        while len(data) < count:
            piece = near.recv(count - len(data))
            if not piece:
                raise OSError("gone")
            data += piece
        return data

    def _text(self, near):
        return self._take(near, self._take(near, 1)[0]).decode()

    def _handshake(self, near):
        methods = self._take(near, self._take(near, 2)[1])
        if self.refusal == "close":
            return None
        wanted = 2 if self.credentials else 0
        near.sendall(bytes([5, wanted if wanted in methods else 255]))
        if wanted not in methods or (wanted and not self._authenticate(near)):
            return None
        kind = self._take(near, 4)[3]
        host = self._text(near) if kind == 3 else socket.inet_ntoa(self._take(near, 4))
        port = struct.unpack("!H", self._take(near, 2))[0]
        self.heads.append(f"{kind} {host}:{port}")
        far = None if self.refusal else self._connect(host, port)
        near.sendall(bytes([5, 0 if far else self.refusal or 4, 0, 1, 0, 0, 0, 0, 0, 0]))
        return far

    def _authenticate(self, near):
        self._take(near, 1)
        good = (self._text(near), self._text(near)) == self.credentials
        near.sendall(bytes([1, 0 if good else 1]))
        return good
