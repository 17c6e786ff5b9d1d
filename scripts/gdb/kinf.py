# SPDX-License-Identifier: Apache-2.0
"""Commands for gdb to print the structures of a store, in a live process or a core.

    gdb -x scripts/gdb/kinf.py -p PID
    gdb -x scripts/gdb/kinf.py build/release/kinf-reflector CORE

    kinf record EXPR        a struct record, with the beginning of its body as JSON
    kinf page EXPR [SIZE]   the LMDB page at an address (SIZE 4096 by default): header and rows
    kinf ring [EXPR]        a struct ring or ring_reader, or an address; without EXPR the delta.ring
                            mapped by the process
    kinf msgpack EXPR       a struct bytes of msgpack as JSON: kinf msgpack record->body

A core lacks mapped files unless bit 3 of /proc/PID/coredump_filter was set; gdb then reads the
files themselves, as they are now.
"""

import json
import struct

import gdb

RECORD_TYPES = ("PAD", "ADDED", "MODIFIED", "DELETED", "LIST_BEGIN", "LIST_END", "FEED_ADDED",
                "FEED_REMOVED")
RING_STATES = ("init", "live", "closed", "superseded")
PAGE_KINDS = {0x01: "branch", 0x02: "leaf", 0x04: "large", 0x08: "meta"}
PAGE_HEADER = 16
NODE_HEADER = 8
TEXT_MAX = 72
BODY_MAX = 400


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size)) if size else b""


def read_bytes(value):
    """The content of a struct bytes."""
    return read(int(value["data"]), int(value["size"]))


def name_of(names, number):
    return names[number] if number < len(names) else f"{number}?"


def shown(data):
    """DATA as text if it is printable, else as hex, cut at TEXT_MAX characters."""
    printable = data.isascii() and data.decode("ascii").isprintable()
    text = data.decode("ascii") if printable else "0x" + data.hex()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}... ({len(data)} bytes)"


class Msgpack:
    """Decodes one msgpack value of DATA."""

    SCALARS = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q",
               0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}
    LENGTHS = {0xc4: ("B", "bin"), 0xc5: ("H", "bin"), 0xc6: ("I", "bin"),
               0xd9: ("B", "str"), 0xda: ("H", "str"), 0xdb: ("I", "str"),
               0xdc: ("H", "array"), 0xdd: ("I", "array"),
               0xde: ("H", "map"), 0xdf: ("I", "map"),
               0xc7: ("B", "ext"), 0xc8: ("H", "ext"), 0xc9: ("I", "ext")}

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise gdb.GdbError(f"msgpack ends at byte {len(self.data)}")
        self.at += size
        return self.data[self.at - size:self.at]

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self):
        tag = self.unpack("B")
        if tag < 0x80 or tag >= 0xe0:
            return tag if tag < 0x80 else tag - 0x100
        if tag < 0xc0:
            kind, count = ((0x80, "map"), (0x90, "array"), (0xa0, "str"), (0xa0, "str"))[
                (tag - 0x80) >> 4][1], tag & (0x1f if tag >= 0xa0 else 0x0f)
            return self.many(kind, count)
        if tag in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[tag]
        if tag in self.SCALARS:
            return self.unpack(self.SCALARS[tag])
        if 0xd4 <= tag <= 0xd8:
            return self.many("ext", 1 << (tag - 0xd4))
        if tag not in self.LENGTHS:
            raise gdb.GdbError(f"byte {self.at - 1}: 0x{tag:02x} is no msgpack")
        form, kind = self.LENGTHS[tag]
        return self.many(kind, self.unpack(">" + form))

    def many(self, kind, count):
        if kind == "map":
            return {str(self.value()): self.value() for _ in range(count)}
        if kind == "array":
            return [self.value() for _ in range(count)]
        if kind == "str":
            return self.take(count).decode("utf-8", "replace")
        if kind == "ext":
            return f"ext {self.unpack('b')}: 0x{self.take(count).hex()}"
        return "0x" + self.take(count).hex()


def msgpack_text(data):
    return json.dumps(Msgpack(data).value(), indent=1, ensure_ascii=False)


def pointed_to(value):
    return value.dereference() if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR else value


class KinfCommand(gdb.Command):
    """Prints structures of kinformer: kinf record, page, ring, msgpack."""

    def __init__(self):
        super().__init__("kinf", gdb.COMMAND_DATA, prefix=True)


class RecordCommand(gdb.Command):
    """kinf record EXPR: prints a struct record."""

    def __init__(self):
        super().__init__("kinf record", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        record = pointed_to(gdb.parse_and_eval(argument))
        print(f"seq {int(record['seq'])} {name_of(RECORD_TYPES, int(record['type']))} "
              f"feed {int(record['feed'])} prev {int(record['prev'])} "
              f"flags {int(record['flags']):#x} time_ns {int(record['time_ns'])}")
        for field in ("key", "uid", "rv"):
            print(f"{field:<5}{shown(read_bytes(record[field]))}")
        body = read_bytes(record["body"])
        line = json.dumps(Msgpack(body).value(), ensure_ascii=False) if body else ""
        print(f"body {len(body)} bytes {line[:BODY_MAX]}{'...' if len(line) > BODY_MAX else ''}")


class MsgpackCommand(gdb.Command):
    """kinf msgpack EXPR: prints a struct bytes of msgpack as JSON."""

    def __init__(self):
        super().__init__("kinf msgpack", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        print(msgpack_text(read_bytes(pointed_to(gdb.parse_and_eval(argument)))))


class PageCommand(gdb.Command):
    """kinf page EXPR [SIZE]: prints the LMDB page at the address EXPR."""

    def __init__(self):
        super().__init__("kinf page", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not 1 <= len(words) <= 2:
            raise gdb.GdbError("usage: kinf page EXPR [SIZE]")
        size = int(words[1], 0) if len(words) > 1 else 4096
        page = read(int(gdb.parse_and_eval(words[0])), size)
        number, flags, lower, upper = struct.unpack_from("<Q2xHHH", page)
        kinds = [kind for bit, kind in PAGE_KINDS.items() if flags & bit]
        print(f"page {number} {' '.join(kinds) or 'no kind'} flags {flags:#x}")
        if flags & 0x04:
            print(f"{struct.unpack_from('<I', page, 12)[0]} pages: {shown(page[PAGE_HEADER:])}")
        elif flags & 0x03:
            rows = max(0, min(lower, size) - PAGE_HEADER) // 2
            print(f"{rows} rows, {upper - lower} bytes free")
            for row in range(rows):
                print(f"{row:>4} {self.row_text(page, row, bool(flags & 0x02))}")
        elif flags & 0x08:
            last_page, transaction = struct.unpack_from("<QQ", page, PAGE_HEADER + 120)
            free, main = (struct.unpack_from("<q", page, PAGE_HEADER + at)[0] for at in (64, 112))
            print(f"transaction {transaction}, last page {last_page}, "
                  f"roots: free pages {free}, databases {main}")

    @staticmethod
    def row_text(page, row, is_leaf):
        """One row: offset, key, and value or child page."""
        at = struct.unpack_from("<H", page, PAGE_HEADER + 2 * row)[0]
        if not PAGE_HEADER <= at <= len(page) - NODE_HEADER:
            return f"at {at}: outside of the page"
        low, high, flags, key_size = struct.unpack_from("<HHHH", page, at)
        key = page[at + NODE_HEADER:at + NODE_HEADER + key_size]
        if not is_leaf:
            return f"at {at}: {shown(key)} -> page {low | high << 16 | flags << 32}"
        value_at = at + NODE_HEADER + key_size
        if flags & 0x01:
            child = struct.unpack_from("<Q", page, value_at)[0]
            return f"at {at}: {shown(key)} -> {low | high << 16} bytes in page {child}"
        value = page[value_at:value_at + (low | high << 16)]
        if flags & 0x02 and len(value) == 48:
            depth, root = struct.unpack_from("<6xH32xq", value)
            return f"at {at}: {shown(key)} database of depth {depth}, root {root}"
        return f"at {at}: {shown(key)} = {shown(value)}"


class RingCommand(gdb.Command):
    """kinf ring [EXPR]: prints a ring's words and its last entries."""

    HEADER = 4096
    ENTRY = struct.Struct("<IHHQQII")
    ENTRIES_SHOWN = 16

    def __init__(self):
        super().__init__("kinf ring", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        address = self.address_of(argument) if argument else self.mapped()
        header = read(address, self.HEADER)
        capacity = struct.unpack_from("<Q", header, 24)[0]
        if header[:8] != b"KNFRING1" or capacity & (capacity - 1) or not capacity:
            raise gdb.GdbError(f"{address:#x} is no ring")
        epoch, state, pid = struct.unpack_from("<IIi", header, 128)
        claim = struct.unpack_from("<Q", header, 256)[0]
        tail, last_seq = struct.unpack_from("<QQ", header, 384)
        print(f"journal {header[72:88].hex()} capacity {capacity} epoch {epoch} "
              f"{name_of(RING_STATES, state)} writer {pid}")
        print(f"claim {claim} tail {tail} last seq {last_seq}")
        data = read(address + self.HEADER, capacity)
        for entry in self.entries(data, claim, tail)[-self.ENTRIES_SHOWN:]:
            print(entry)

    def entries(self, data, claim, tail):
        """The whole entries before TAIL, found by their own positions, oldest first."""
        found = []
        for at in range(0, len(data), 32):
            size, kind, flags, position, seq, feed, _ = self.ENTRY.unpack_from(data, at)
            if position % len(data) == at and claim - len(data) <= position < tail and kind:
                key = data[at + 32:at + 32 + size]
                found.append((position, f"{position:>10} seq {seq} {name_of(RECORD_TYPES, kind)} "
                                        f"feed {feed} flags {flags:#x} {shown(key)}"))
        return [text for _, text in sorted(found)]

    @staticmethod
    def address_of(argument):
        value = gdb.parse_and_eval(argument)
        target = pointed_to(value)
        try:
            return int(target["header"])
        except gdb.error:
            return int(value)

    @staticmethod
    def mapped():
        for line in gdb.execute("info proc mappings", to_string=True).splitlines():
            if line.rstrip().endswith("/delta.ring"):
                return int(line.split()[0], 16)
        raise gdb.GdbError("no delta.ring is mapped")


for command in (KinfCommand, RecordCommand, MsgpackCommand, PageCommand, RingCommand):
    command()
