# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client with a watch, on the Unix socket of a kinf-serve. It sends a test's bytes."""

import socket

from harness import PATIENCE

KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # of RFC 6455
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
HANDSHAKE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13"}


class WebSocket:
    def __init__(self, path, target, **headers):
        """HEADERS replace those of the handshake, with underscores for hyphens; None: without it."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20 * PATIENCE)
        self.socket.connect(path)
        lines = {**HANDSHAKE, **{name.replace("_", "-"): value for name, value in headers.items()}}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n{text}\r\n".encode())
        self.stream = self.socket.makefile("rb")
        self.status = int(self.stream.readline().split()[1])
        self.headers = {}
        while (line := self.stream.readline().decode().strip()):
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def frame(self):
        """The next frame as (operation, payload); None at the end of the connection."""
        head = self.stream.read(2)
        if not head:
            return None
        assert head[0] & 0x80 and not head[1] & 0x80, "whole, and without a mask"
        size = head[1]
        if size > 125:
            size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
        return head[0] & 0x0F, self.stream.read(size)

    def rest(self):
        """The payloads of all messages until the close frame; after it the connection must end."""
        found = []
        while (frame := self.frame())[0] == TEXT:
            found.append(frame[1])
        assert frame == (CLOSE, b"\x03\xe8") and self.frame() is None, frame
        return found

    def say(self, operation, payload=b"", mask=b"\1\2\3\4"):
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([0x80 | operation, 0x80 | len(payload)]) + mask + masked)
