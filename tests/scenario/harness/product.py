# SPDX-License-Identifier: Apache-2.0
"""kinf-serve as a product of axes: the requests, their objects, and the comparison of the answers.
The same for the simulated cluster (test_serve_product.py: with the test's own results) and for a
real one (real/check_product.py: with the API server's answers).

The whole product has some 3 million requests. cover() chooses from it, always the same: each
combination of values of any three axes is asked at least once, and of any two if one of them is a
size beyond 128 KiB. `make test` asks those of any two.

The sizes are those of the product's own buffers, read from its source: for each form an answer ends
within a few bytes below and above each of them, and one has more than 10 MiB.
"""

import base64
import gzip
import http.client
import itertools
import json
import re
import socket
import ssl
import urllib.parse
import zlib
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from harness import PATIENCE, eventually
from harness.http2 import INITIAL_WINDOW, Http2Connection
from harness.process import ROOT, program
from harness.serve import UnixConnection, unix
from harness.store import whole

# ---- the axes ------------------------------------------------------------------------------------


def buffer(file, name):
    """The value of a macro of kinf-serve such as ((size_t)64 << 10)."""
    number, shift = re.search(rf"#define {name}\s+\(\(?(?:\(size_t\))?(\d+)\)? << (\d+)\)", (ROOT / "serve" / file).read_text()).groups()
    return int(number) << int(shift)


GZIP = buffer("answer/request.h", "ANSWER_GZIP_BYTES")
# Pieces of gzip, frames of HTTP/2 and records of TLS have the same size; the first window of HTTP/2
# is a byte below EXCHANGE_ROOM.
BUFFERS = sorted({buffer("http/gzip.c", "GZIP_OUT"), buffer("answer/watch.c", "WATCH_PIECE"), buffer("answer/read.c", "LIST_PIECE"),
                  buffer("exchange.h", "EXCHANGE_ROOM"), GZIP, buffer("http/connection.c", "TURN_BYTES"),
                  buffer("http/http2.c", "HTTP2_LARGE_WINDOW")})
TUNED = [f"{size}{side}" for size in BUFFERS for side in "-+"]
SIZES = ["one", "several", *TUNED, "huge"]
LARGE = {"huge", *(size for size in TUNED if int(size[:-1]) > 64 << 10)}  # in pairs, not in triples

FORMS = ["object", *(f"table {version} {include}" for version in ("v1", "v1beta1") for include in ("Metadata", "Object", "None")),
         "metadata v1", "metadata v1beta1"]
SELECTORS = {"none": {}, "label": {"labelSelector": "set=a"}, "not": {"labelSelector": "set!=b"}, "half": {"labelSelector": "half=1"},
             "name": {"fieldSelector": "metadata.name=o001"}}
SERVERS = ["open", "peers", "self", "review", "allow", "forward"]  # forward: `auth: self` and `forward: on`
AXES = {
    "form": FORMS,
    "kind": ["pods", "gadgets", "configmaps"],  # configmaps have no feed: they are forwarded
    "transport": ["unix", "unix-http2", "tls", "tls-http2", "tls-http2-wide"],  # wide: the windows of client-go
    "size": SIZES,
    "space": ["compact", "pretty"],
    "encoding": ["identity", "gzip"],
    "pages": ["none", "walk", "last", "full"],  # full: the limit is the number of objects
    "verb": ["list", "watch-list", "watch"],
    "selector": list(SELECTORS),
    "server": SERVERS,
}
GROUP = "kinf-product.example.com"
Kind = namedtuple("Kind", "root version kind")
KINDS = {"pods": Kind("/api/v1", "v1", "Pod"), "configmaps": Kind("/api/v1", "v1", "ConfigMap"),
         "gadgets": Kind(f"/apis/{GROUP}/v1", f"{GROUP}/v1", "Gadget")}
COLUMNS = [{"name": "Filler", "type": "string", "jsonPath": ".metadata.annotations.filler", "description": "what fills it"},
           {"name": "Half", "type": "string", "jsonPath": ".metadata.labels.half", "priority": 1},
           {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def possible(row):
    """Whether the values of ROW (perhaps without some axes) go together."""
    get = row.get
    unix = get("transport", "").startswith("unix")
    if get("server") == "peers" and "transport" in row and not unix:
        return False  # they have a uid
    if get("server") == "allow" and unix:
        return False  # they have a certificate
    if get("kind") == "configmaps" and get("server", "forward") != "forward":
        return False
    if get("size") in TUNED and (get("selector") in ("half", "name") or get("pages") in ("walk", "last")):
        return False  # the answer has another size
    return get("verb", "list") == "list" or get("pages", "none") == "none"


def cover(axes, possible, together=3):
    """The rows of a covering array: TOGETHER is how many axes have each combination of their values."""
    names = list(axes)
    needed = {}
    for n in range(together, 1, -1):
        for some in itertools.combinations(names, n):
            for values in itertools.product(*(axes[name] for name in some)):
                if n == 2 or not LARGE.intersection(values):
                    needed[frozenset(zip(some, values))] = None
    used = {(name, value): 0 for name in names for value in axes[name]}

    def gain(row, name, value):
        others = [item for item in row.items() if item[0] != name]
        new = (name, value)
        return sum(frozenset((new, *some)) in needed for n in (1, 2) for some in itertools.combinations(others, n))

    def fill(row, left):
        """Adds values for the axes LEFT, first those covering most; None: none go together."""
        if not left:
            return row
        name, *rest = left
        values = [value for value in axes[name] if possible({**row, name: value})]
        for value in sorted(values, key=lambda value: (-gain(row, name, value), used[name, value])):
            found = fill({**row, name: value}, rest)
            if found:
                return found
        return None

    rows = []
    while needed:
        first = next(iter(needed))
        row = possible(dict(first)) and fill(dict(first), [name for name in names if name not in dict(first)])
        if not row:
            del needed[first]  # impossible
            continue
        for item in row.items():
            used[item] += 1
        for n in (2, 3):
            for some in itertools.combinations(row.items(), n):
                needed.pop(frozenset(some), None)
        rows.append({name: row[name] for name in names})
    return rows


# ---- the objects ---------------------------------------------------------------------------------

# One for each answer of a given size: the objects of a namespace. It is tuned for FORM and SPACE.
Shape = namedtuple("Shape", "kind form space size")
ODD = '\\"{[:,]}\u00e9\u65e5 '  # pitfalls for an indenter or a compressor cut anywhere


def shape_of(row):
    kind, form, size = row["kind"], row["form"].replace("v1beta1", "v1"), row["size"]
    if size not in TUNED or size in LARGE or "None" in form and kind != "gadgets":
        return Shape(kind, "object", "compact", size)
    return Shape(kind, form, row["space"] if int(size[:-1]) == GZIP else "compact", size)


def count(size):
    return {"one": 1, "several": 7, "huge": 60}.get(size) or (3 if int(size[:-1]) <= 1 << 18 else 6)


def length(text):
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def filler(size):
    """A text of SIZE bytes in JSON."""
    return ODD * (size // length(ODD)) + "x" * (size % length(ODD))


def objects(kind, namespace, n, size):
    """N objects with SIZE bytes of filler together."""
    for i in range(n):
        own = size // n + (size % n if i == n - 1 else 0)
        metadata = {"name": f"o{i:03}", "namespace": namespace, "labels": {"set": "a", "half": str(i % 2)},
                    "annotations": {"filler": filler(own), "touched": "00"}}
        rest = {"spec": {"containers": [{"name": "c", "image": "none:1"}], "schedulerName": "none"}} if kind == "pods" else {}
        yield {"apiVersion": KINDS[kind].version, "kind": KINDS[kind].kind, "metadata": metadata, **rest}


class Objects:
    """The namespaces of all shapes. MAKE(kind, objects) makes objects of one namespace;
    MEASURE(row, namespace) returns the size of an answer."""

    def __init__(self, prefix, make, measure):
        self.prefix, self.make, self.measure = prefix, make, measure
        self.namespaces, self.sizes, self.made = {}, {}, 0

    def fill(self, kind, n, size):
        self.made += 1
        namespace = f"{self.prefix}-{self.made:04}"
        self.make(kind, namespace, list(objects(kind, namespace, n, size)))
        return namespace

    def probe(self, kind, n):
        """Namespaces with 1,000 and 2,000 bytes of filler, to derive the sizes of all forms."""
        if (kind, n) not in self.sizes:
            self.sizes[kind, n] = [self.fill(kind, n, size) for size in (1000, 2000)]
        return self.sizes[kind, n]

    def filler_of(self, shape):
        if shape.size not in TUNED:
            return 60 * 180000 if shape.size == "huge" else 700
        size, below = int(shape.size[:-1]), shape.size.endswith("-")
        # Below is below for the longer version also, above is above for the shorter one.
        row = {"form": shape.form.replace("v1", "v1beta1") if below else shape.form, "kind": shape.kind, "space": shape.space}
        one, two = (self.measure(row, namespace) for namespace in self.probe(shape.kind, count(shape.size)))
        slope = round((two - one) / 1000)  # a cell has it a second time
        wanted = size - 2 if below else size + 1 + slope  # a window of HTTP/2 is one below
        return 1000 + (wanted - one) // slope

    def make_all(self, shapes):
        for shape in shapes:
            if shape.size in TUNED:
                self.probe(shape.kind, count(shape.size))
        yield  # until the measuring server has them
        for shape in shapes:
            self.namespaces[shape] = self.fill(shape.kind, count(shape.size), self.filler_of(shape))

    def of(self, row):
        return self.namespaces[shape_of(row)]


# ---- the requests --------------------------------------------------------------------------------


def path(row, namespace, **query):
    kind = row["kind"]
    include = row["form"].rpartition(" ")[2]
    query = {**SELECTORS[row.get("selector", "none")], **({"pretty": "true"} if row["space"] == "pretty" else {}),
             **({"includeObject": include} if include in ("Object", "None") else {}), **query}
    return f"{KINDS[kind].root}/namespaces/{namespace}/{kind}?{urllib.parse.urlencode(query)}"


def headers(row):
    form, _, version = row["form"].partition(" ")
    version = version.partition(" ")[0]
    accept = "application/json"
    if form == "table":
        accept += f";as=Table;v={version};g=meta.k8s.io"
    if form == "metadata":
        accept += f";as=PartialObjectMetadata{'List' if row.get('verb', 'list') == 'list' else ''};v={version};g=meta.k8s.io"
    return {"accept": accept, "accept-encoding": row.get("encoding", "identity")}


def limit_of(row):
    n = count(row["size"])
    return {"none": 0, "walk": max(1, n // 3), "last": max(1, n - 1), "full": n}[row["pages"]]


class Answer:
    """A list as it came; `json` has N for parts that may differ between two servers: see normal()."""

    def __init__(self, response, row):
        body = response.read()
        self.status, fields = response.status, {name.lower(): value for name, value in response.getheaders()}
        assert self.status == 200, (self.status, body[:500])
        self.type, self.encoding = fields["content-type"], fields.get("content-encoding", "identity")
        self.body = gzip.decompress(body) if self.encoding == "gzip" else body
        indented = self.body.startswith(b"{\n  ") and b"\n    " in self.body
        assert indented == (row["space"] == "pretty") and (indented or self.body.count(b"\n") == 1), self.body[:80]
        # With this, a wrong answer's error names its fault.
        assert self.encoding == ("gzip" if row["encoding"] == "gzip" and len(self.body) > GZIP else "identity"), (self.encoding, len(self.body))
        self.json = json.loads(self.body)
        self.token = self.json["metadata"].get("continue")
        normal(self.json)


def ask(connection, row, namespace, **query):
    """The pages compared by ROW: all of a walk, else the only one, or the last."""
    limit, pages = limit_of(row), []
    query = {**query, **({"limit": limit} if limit else {})}
    while True:
        connection.request("GET", path(row, namespace, **query), headers={**connection.identity, **headers(row)})
        pages.append(Answer(connection.getresponse(), row))
        if not pages[-1].token:
            return pages[-1:] if row["pages"] == "last" else pages
        query["continue"] = pages[-1].token


class Watch:
    """A watch of ROW from RV on."""

    def __init__(self, connection, row, namespace, rv):
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        query = initial if row["verb"] == "watch-list" else {"resourceVersion": rv}
        connection.request("GET", path(row, namespace, watch=1, **query), headers={**connection.identity, **headers(row)})
        self.connection, self.response, self.columns = connection, connection.getresponse(), None
        assert self.response.status == 200, self.response.read()[:500]
        self.packed = dict((name.lower(), value) for name, value in self.response.getheaders()).get("content-encoding") == "gzip"
        self.inflater, self.text = None, bytearray()

    def line(self):
        """The API server compresses watches with initial events since 1.37: these as one gzip
        member, each later event as another."""
        if not self.packed:
            return self.response.readline()
        while b"\n" not in self.text and (piece := self.response.read1(1 << 16)):
            while piece:
                self.inflater = zlib.decompressobj(16 + zlib.MAX_WBITS) if not self.inflater or self.inflater.eof else self.inflater
                self.text += self.inflater.decompress(piece)
                piece = self.inflater.unused_data
        line, end, self.text = self.text.partition(b"\n")
        return bytes(line + end)

    def next(self):
        line = self.line()
        assert line, "the watch has ended"
        event = json.loads(line)
        self.columns = normal_event(event, self.columns)
        return event

    def initial(self):
        """The events up to the bookmark after the initial ones."""
        events = [self.next()]
        while events[-1]["type"] != "BOOKMARK":
            events.append(self.next())
        return events

    def changes(self, n):
        events = []
        while len(events) < n:
            event = self.next()
            if event["type"] != "BOOKMARK":
                events.append(event)
        return events


# ---- what is compared ----------------------------------------------------------------------------


def normal_ages(table, columns):
    columns = table["columnDefinitions"] or columns
    at = next((i for i, column in enumerate(columns or ()) if column["name"] == "Age"), None)
    for row in table["rows"] or ():
        if at is not None and row["cells"][at] not in (None, "<unknown>"):
            row["cells"][at] = "AGE"
    return columns


def normal(document):
    """Takes the versions of a list and the ages out of DOCUMENT."""
    metadata = document["metadata"]
    metadata["resourceVersion"] = "N"
    if metadata.get("continue") == "":  # of custom resources, at a kube-apiserver
        del metadata["continue"]
    if metadata.get("continue"):
        token = metadata["continue"]
        metadata["continue"] = {**json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))), "rv": "N"}
    if document["kind"] == "Table":
        normal_ages(document, None)


def normal_event(event, columns):
    """The same for an event. COLUMNS: of an earlier one; returns them."""
    thing = event["object"]
    if thing.get("kind") == "Table":
        columns = normal_ages(thing, columns)
    if event["type"] == "BOOKMARK":
        for bearer in filter(None, (thing, *(row["object"] for row in thing.get("rows", ())))):
            bearer["metadata"]["resourceVersion"] = "N"
    return columns


def difference(ours, wanted, at=""):
    """Where the two differ first; None: nowhere."""
    if type(ours) is not type(wanted):
        return f"{at or '.'}: {ours!r:.200} in place of {wanted!r:.200}"
    if isinstance(ours, dict):
        for key in {**wanted, **ours}:
            if key not in ours or key not in wanted:
                return f"{at}.{key}: {'is too many' if key in ours else 'is missing'}"
            if found := difference(ours[key], wanted[key], f"{at}.{key}"):
                return found
    elif isinstance(ours, list):
        for i, (a, b) in enumerate(zip(ours, wanted)):
            if found := difference(a, b, f"{at}[{i}]"):
                return found
        if len(ours) != len(wanted):
            return f"{at}: {len(ours)} in place of {len(wanted)}"
    elif ours != wanted:
        i = next((i for i, (a, b) in enumerate(zip(ours, wanted)) if a != b), 0) if isinstance(ours, str) else 0
        ours, wanted = (value[max(0, i - 20):i + 80] if isinstance(value, str) else value for value in (ours, wanted))
        return f"{at}: {ours!r} in place of {wanted!r}"
    return None


def selected(row, items):
    """The objects of a namespace selected by ROW."""
    selector = row["selector"]
    return [item for item in items if selector not in ("half", "name") or selector == "half" and item["metadata"]["labels"]["half"] == "1" or
            selector == "name" and item["metadata"]["name"] == "o001"]


class Check:
    """Makes the requests of one server after the other. REFERENCE knows the answers:
        pages(row, namespace), initial(row, namespace), changes(row, namespace, n, begun): as ask() and Watch return them;
            BEGUN: the watch has had a table
        expect(row, namespace, rv, n): a watch of ROW begins, which will have N changes
        items(kind, namespace): the objects
        touch([(kind, namespace)]): changes all objects of each namespace in their order
        rv(kind): the newest version"""

    def __init__(self, reference, objects):
        self.reference, self.objects = reference, objects
        self.wrong, self.lists, self.pages, self.watches, self.events, self.bytes, self.off = [], 0, 0, 0, 0, 0, []

    def note(self, row, ours, wanted):
        if ours != wanted:
            self.wrong.append(f"{' | '.join(row.values())}: {difference(ours, wanted)}")

    def list(self, connection, row):
        namespace = self.objects.of(row)
        ours = ask(connection, row, namespace)
        self.note(row, [answer.json for answer in ours], self.reference.pages(row, namespace))
        self.lists, self.pages = self.lists + 1, self.pages + len(ours)
        self.bytes += sum(len(answer.body) for answer in ours)
        shape = shape_of(row)
        if shape.size in TUNED and (shape.form, shape.space) == (row["form"], row["space"]):
            over = len(ours[0].body) - int(shape.size[:-1])
            if not (-40 < over < 0 if shape.size.endswith("-") else 0 < over < 40):
                self.off.append(f"{' | '.join(row.values())}: {over} bytes beside it")

    def watch(self, connect, rows):
        """ROWS at once, with changes after their beginning."""
        places = [(row["kind"], self.objects.of(row)) for row in rows]
        rvs = {kind: self.reference.rv(kind) for kind, _ in dict.fromkeys(places)}
        counts = [len(selected(row, self.reference.items(*place))) for row, place in zip(rows, places)]
        watches = []
        for row, (kind, namespace), n in zip(rows, places, counts):
            self.reference.expect(row, namespace, rvs[kind], n)
            watches.append(Watch(connect(row["transport"]), row, namespace, rvs[kind]))
        found = [watch.initial() if row["verb"] == "watch-list" else [] for row, watch in zip(rows, watches)]
        wanted = [self.reference.initial(row, place[1]) if row["verb"] == "watch-list" else [] for row, place in zip(rows, places)]
        begun = [watch.columns is not None for watch in watches]
        of_connection = {}
        for i, watch in enumerate(watches):
            of_connection.setdefault(watch.connection, []).append(i)
        with ThreadPoolExecutor(len(of_connection)) as threads:  # a client without reads for long gets no more data
            reading = [threads.submit(lambda own: [(i, watches[i].changes(counts[i])) for i in own], own) for own in of_connection.values()]
            self.reference.touch(list(dict.fromkeys(places)))
            for i, events in (pair for thing in reading for pair in thing.result()):
                found[i] += events
        for row, (_, namespace), n, ours, theirs, has_table in zip(rows, places, counts, found, wanted, begun):
            self.note(row, ours, theirs + self.reference.changes(row, namespace, n, has_table))
            self.watches, self.events = self.watches + 1, self.events + len(ours)

    def report(self):
        return (f"{self.lists} lists in {self.pages} pages ({self.bytes / 1e6:.0f} MB), {self.watches} watches with {self.events} events; "
                f"{len(self.off)} answers not beside the buffer that they were made for; {len(self.wrong)} wrong")


# ---- kinf-serve ----------------------------------------------------------------------------------


class Service:
    """A kinf-serve of STORE, started again for each of SERVERS. TOKEN: the clients' token;
    TOKEN_FILE has one with the right to review it."""

    def __init__(self, store, authority, token, token_file):
        self.store, self.token, self.process, self.starts = store, token, None, 0
        self.authority, self.certificate = authority, authority.issue("client")
        self.settings = {
            "open": {"auth": "open"}, "peers": {"auth": "peers"}, "self": {"auth": "self"}, "forward": {"auth": "self", "forward": "on"},
            "review": {"auth": "review", "review": {"tokenFile": str(token_file)}},
            "allow": {"auth": "allow", "allow": [{"users": ["client"], "resources": ["*"]}]},
        }

    def configure(self, server):
        self.server = server
        self.store.configure(whole("pods"), whole(f"gadgets.{GROUP}"), whole("customresourcedefinitions.apiextensions.k8s.io"),
                             serve={"listen": ["unix", "127.0.0.1:0"], "tls": {"clientCA": str(self.authority.ca)}, **self.settings[server]})

    def start(self, server):
        if self.process:
            self.process.stop()
        self.configure(server)
        self.starts += 1
        self.process = self.store.process(f"kinf-serve-{self.starts}", [program("kinf-serve")]).start()
        self.process.wait_log("daemon_started")
        lines = (self.store.path / "serve" / "addresses").read_text().splitlines()
        self.addresses = {line.split(" ")[1]: line.split(" ")[2] for line in lines if line.startswith("api ")}

    def connect(self, transport):
        place, _, version = transport.partition("-")
        if place == "unix":
            address = self.addresses["unix"]
            connection = Http2Connection(unix(address)) if version else UnixConnection(address)
        else:
            connection = self.connect_tls(version)
        connection.identity = {"authorization": f"Bearer {self.token}"} if self.server in ("self", "review", "forward") else {}
        return connection

    def connect_tls(self, version):
        port = int(self.addresses["https"].rpartition(":")[2])
        context = ssl.create_default_context(cafile=self.store.path / "serve" / "ca.crt")
        if self.server == "allow":
            context.load_cert_chain(*self.certificate)
        if not version:
            return http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20 * PATIENCE)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", port), timeout=20 * PATIENCE)
        return Http2Connection(context.wrap_socket(plain, server_hostname="localhost"), INITIAL_WINDOW if version == "http2" else 4 << 20)

    def wait(self, kind, rv):
        """Until kinf-serve has version RV."""
        connection = self.connect("unix")
        row = {"kind": kind, "form": "object", "space": "compact"}

        def has():
            connection.request("GET", path(row, "none", resourceVersion=rv, resourceVersionMatch="NotOlderThan"), headers=connection.identity)
            response = connection.getresponse()
            return (response.read(), response.status)[1] == 200

        eventually(has, 60, f"{kind} at {rv}")
        connection.close()


BATCH = 50  # watches at once


def run(check, rows, connect):
    """CONNECT(transport) returns a new connection, with the client's headers in `identity`."""
    kept = {}
    for row in rows:
        if row["verb"] == "list":
            transport = row["transport"]
            kept[transport] = kept.get(transport) or connect(transport)
            try:
                check.list(kept[transport], row)
            except (AssertionError, OSError, ValueError) as error:
                check.wrong.append(f"{' | '.join(row.values())}: {error!r:.600}")
                kept.pop(transport).close()
    for connection in kept.values():
        connection.close()
    watches = [row for row in rows if row["verb"] != "list"]
    for i in range(0, len(watches), BATCH):
        opened = []

        def remembered(transport):
            """One connection of HTTP/2 has all watches of its kind."""
            for connection in opened:
                if "http2" in transport and connection.transport == transport:
                    return connection
            opened.append(connect(transport))
            opened[-1].transport = transport
            return opened[-1]

        check.watch(remembered, watches[i:i + BATCH])
        for connection in opened:
            connection.close()
