# SPDX-License-Identifier: Apache-2.0
"""Servers between a client and the simulated cluster: a TCP path with silences, and nghttpx for
HTTP/2, since the simulator itself speaks HTTP/1.1."""

import contextlib
import random
import signal
import socket
import threading
from pathlib import Path

from harness import eventually
from harness.process import Process


def free_port():
    """A free port, outside the range the kernel may give to another process meanwhile."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", random.SystemRandom().randrange(10000, first) if first > 20000 else 0))
            return s.getsockname()[1]


def cut(ends):
    for end in ends:
        with contextlib.suppress(OSError):  # the other side has closed it
            end.shutdown(socket.SHUT_RDWR)


class Listener:
    """A server on a port of 127.0.0.1: _serve(socket) runs in a thread for each connection. stop()
    cuts the connections in `open`."""

    def __init__(self):
        self.open, self.lock = set(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):  # stop()
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            cut(self.open)


class TcpPath(Listener):
    """Forwards TCP connections to PORT, counts them, and can lose their data.

    freeze() acts as a firewall after losing its connections: open ones stay open, but no data comes
    through any more; new ones work. aim() forwards new connections to another port.
    """

    def __init__(self, port):
        self.target, self.opened, self.frozen = port, 0, set()
        super().__init__()

    def aim(self, port):
        self.target = port

    def freeze(self):
        with self.lock:
            self.frozen |= self.open

    def _serve(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.close()
            return
        with self.lock:
            self.opened += 1
            self.open |= {near, far}
        threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
        self._carry(far, near, False)

    def _carry(self, source, sink, from_client):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if source not in self.frozen:
                    sink.sendall(data)
        # A silent path also loses the server's close. The client's close ends both connections.
        if source in self.frozen and not from_client:
            return
        cut((source, sink))
        with self.lock:
            self.open -= {source, sink}


class Nghttpx:
    """nghttpx before the cluster: serves TLS with HTTP/2, or the protocols in ALPN."""

    def __init__(self, directory, simulator, certificate, name="nghttpx", streams=100, alpn="h2,http/1.1"):
        self.port = free_port()
        argv = [
            "/usr/sbin/nghttpx", "--conf=/dev/null", f"--frontend=127.0.0.1,{self.port}",
            f"--backend=127.0.0.1,{simulator.port};;proto=http/1.1",
            f"--frontend-http2-max-concurrent-streams={streams}", f"--npn-list={alpn}",
            "--backend-connections-per-frontend=0", "--backend-read-timeout=1h", "--no-ocsp",
            "--log-level=ERROR", certificate[1], certificate[0],
        ]
        self.process = Process(name, argv, directory)

    def start(self):
        self.process.start()

        def listening():
            assert self.process.running, self.process.tail()
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0

        eventually(listening, what="nghttpx listening")
        return self

    def go_away(self):
        """Refuses new connections and requests (GOAWAY); running requests continue to their end."""
        self.process.send(signal.SIGQUIT)

    def stop(self):
        if self.process.running:
            self.process.kill(signal.SIGTERM)
