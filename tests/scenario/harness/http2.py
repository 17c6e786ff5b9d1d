# SPDX-License-Identifier: Apache-2.0
"""Connections of HTTP/2 with the interface of http.client, with windows chosen by a test.
libnghttp2 reads the heads of answers."""

import ctypes
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW = 65535  # of a connection, as the protocol has it


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">BHBBI", len(payload) >> 16, len(payload) & 0xffff, kind, flags, stream) + payload


def _text(data):
    """A string literal of HPACK."""
    if len(data) < 127:
        return bytes([len(data)]) + data
    size, head = len(data) - 127, b"\x7f"
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return head + bytes([size]) + data


def literal(name, value):
    """A field the receiver does not remember, without Huffman code."""
    return b"\0" + _text(name) + _text(value)


class _Field(ctypes.Structure):
    _fields_ = [("name", ctypes.POINTER(ctypes.c_uint8)), ("value", ctypes.POINTER(ctypes.c_uint8)),
                ("name_size", ctypes.c_size_t), ("value_size", ctypes.c_size_t), ("flags", ctypes.c_uint8)]


class _Inflater:
    """Header compression (HPACK) of one connection."""

    def __init__(self):
        self.library = ctypes.CDLL("libnghttp2.so.14")
        self.library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.inflater = ctypes.c_void_p()
        assert self.library.nghttp2_hd_inflate_new(ctypes.byref(self.inflater)) == 0

    def __del__(self):
        self.library.nghttp2_hd_inflate_del(self.inflater)

    def read(self, block):
        field, flags, found = _Field(), ctypes.c_int(), []
        while True:
            n = self.library.nghttp2_hd_inflate_hd2(self.inflater, ctypes.byref(field), ctypes.byref(flags), block,
                                                    ctypes.c_size_t(len(block)), 1)
            assert n >= 0, f"a head that can't be read: {n}"
            block = block[n:]
            if flags.value & 2:
                found.append(tuple(ctypes.string_at(p, size).decode() for p, size in
                                   ((field.name, field.name_size), (field.value, field.value_size))))
            if flags.value & 1:
                self.library.nghttp2_hd_inflate_end_headers(self.inflater)
                return found


class Response:
    def __init__(self, connection, stream):
        self.connection, self.stream = connection, stream
        self.status, self.head, self.body, self.ended = 0, [], bytearray(), False

    def getheaders(self):
        return [pair for pair in self.head if not pair[0].startswith(":")]

    def read(self):
        while not self.ended:
            self.connection.turn()
        body, self.body = bytes(self.body), bytearray()
        return body

    def read1(self, _size):
        while not self.body and not self.ended:
            self.connection.turn()
        body, self.body = bytes(self.body), bytearray()
        return body

    def readline(self):
        while b"\n" not in self.body and not self.ended:
            self.connection.turn()
        line, end, rest = self.body.partition(b"\n")
        self.body = rest
        return bytes(line + end)


class Http2Connection:
    """SOCKET is connected, and has agreed on HTTP/2 if it is one of TLS. WINDOW: of each stream,
    opened again after each arrival, as is the connection's. Several requests may be under way;
    getresponse() is about the last one."""

    def __init__(self, socket, window=INITIAL_WINDOW):
        self.socket, self.streams, self.inflater = socket, {}, _Inflater()
        self.head, self.data, self.last = b"", bytearray(), -1
        socket.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 2, 0, 4, window)))
        if window > INITIAL_WINDOW:
            self.open(0, window - INITIAL_WINDOW)

    def close(self):
        self.socket.close()

    def open(self, stream, size):
        self.socket.sendall(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size)))

    def request(self, method, path, body=None, headers=None):
        assert not body
        fields = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path,
                  **{name.lower(): value for name, value in (headers or {}).items()}}
        block = b"".join(literal(name.encode(), value.encode()) for name, value in fields.items())
        self.last += 2
        self.streams[self.last] = Response(self, self.last)
        self.socket.sendall(frame(HEADERS, END_STREAM | END_HEADERS, self.last, block))

    def getresponse(self):
        response = self.streams[self.last]
        while not response.status:
            self.turn()
        return response

    def _take(self, size):
        while len(self.data) < size:
            piece = self.socket.recv(1 << 18)
            assert piece, "the connection of HTTP/2 was closed"
            self.data += piece
        taken, self.data = bytes(self.data[:size]), self.data[size:]
        return taken

    def turn(self):
        """Takes one frame."""
        high, low, kind, flags, stream = struct.unpack(">BHBBI", self._take(9))
        payload = self._take(high << 16 | low)
        response = self.streams.get(stream)
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind in (HEADERS, CONTINUATION):
            self.head += payload
            if flags & END_HEADERS:
                response.head = self.inflater.read(self.head)
                response.status, self.head = int(dict(response.head)[":status"]), b""
        elif kind == DATA and payload:
            response.body += payload
            self.open(0, len(payload))
            self.open(stream, len(payload))
        assert kind not in (RST_STREAM, GOAWAY), (kind, payload)
        if response and kind in (DATA, HEADERS) and flags & END_STREAM:
            response.ended = True
            del self.streams[stream]
