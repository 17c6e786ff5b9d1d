# SPDX-License-Identifier: Apache-2.0
"""The table of figures and their targets. A missed target is reported, and is not a failure."""

MIB = 2**20


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, value, bar, reached):
        """VALUE and BAR are texts; REACHED None: there is no target."""
        self.rows.append((what, value, bar, "" if reached is None else "yes" if reached else "NO"))

    def text(self):
        rows = [("", "measured", "bar", "reached"), *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([lines[0], "-" * (sum(widths) + 6), *lines[1:]])

    def as_dicts(self):
        return [dict(zip(("what", "measured", "bar", "reached"), row)) for row in self.rows]


def add_synthetic(table, synthetic):
    for n, figures in synthetic["sizes"].items():
        add_size(table, int(n), figures)
    small = synthetic["small"]
    table.add("store size / JSON, 20,000 objects of 1.2 kB", f"{small['used_to_json']:.2f}", "2.5",
              small["used_to_json"] <= 2.5)
    add_audience(table, synthetic["audience"])
    add_queue(table, synthetic["queue"])
    for name, percent in synthetic["idle"].items():
        table.add(f"idle {name} with 1,024 feeds", f"{percent:.2f} % of a core", "0.5 %", percent < 0.5)
    add_churn(table, synthetic["churn"])
    add_growth(table, synthetic["sizes"])


def add_size(table, n, figures):
    read, first = figures["read"], figures["first_list"]
    barred = n == 100000  # the size with targets for reading

    def per_second(what, value, bar, applies=True):
        table.add(f"{n}: {what}", f"{value / 1e6:.2f} M/s", f"{bar} M/s" if applies else "",
                  value >= bar * 1e6 if applies else None)

    per_second("random get by key", read["get_per_s"], 1, barred)
    per_second("same, a new snapshot for each", read["get_renewed_per_s"], 0, False)
    per_second("same, 1,000 keys in one call of kinf_get_many",
               read["get_many_per_s"], 5, n >= 1000000)
    per_second("by index, objects", read["index_objects_per_s"], 1.5, barred)
    per_second("list in key order, objects", read["list_objects_per_s"], 3, barred)
    add_find(table, n, figures["find"], barred)
    for name, what in (("first_list", "first list, applied"), ("changed_list", "burst without new terms"),
                       ("moved_list", "burst, 4 of 15 terms new")):
        per_second(what, figures[name]["apply_objects_per_s"], 0.1)
    add_rebuild(table, n, figures["rebuild"])
    table.add(f"{n}: recorded, JSON to journal", f"{first['record_objects_per_s'] / 1000:.0f} k/s, "
              f"{first['record_cpu_us_per_object']:.1f} us CPU an object", "", None)
    for who, key in (("reflector's recorder", "recorder_peak_private_bytes"),
                     ("processor", "processor_peak_private_bytes")):
        peak = max(figures[name][key] for name in ("first_list", "changed_list", "moved_list"))
        table.add(f"{n}: peak private memory, {who}", f"{peak / MIB:.1f} MiB", "64 MiB", peak <= 64 * MIB)
    over = figures["reader_unshared_bytes"]
    table.add(f"{n}: private memory of a reader", f"{over / 1024:.0f} KiB", "1024 KiB", over <= MIB)
    add_followers(table, n, figures)
    table.add(f"{n}: restart to first kinf get", f"{figures['first_get_ms']:.1f} ms", "20 ms",
              figures["first_get_ms"] <= 20)
    table.add(f"{n}: store size / JSON, objects of 6 kB", f"{first['used_to_json']:.2f}", "1.6",
              first["used_to_json"] <= 1.6)
    if "latency" in figures:
        for rank, bar in (("p50", 60), ("p99", 300)):
            value = figures["latency"][f"commit_to_reader_{rank}_us"]
            table.add(f"{n}: commit to reader, {rank}, 200/s", f"{value:.0f} us", f"{bar} us", value < bar)
        for rank in ("p50", "p99"):
            table.add(f"{n}: commit to a handler of libkinf, {rank}, 200/s",
                      f"{figures['latency'][f'commit_to_handler_{rank}_us']:.0f} us", "", None)


def add_rebuild(table, n, rebuild):
    value = rebuild["objects_per_s"]
    table.add(f"{n}: rebuild of the index", f"{value / 1000:.0f} k/s, {rebuild['cpu_us_per_object']:.1f} us CPU an object",
              "200 k/s" if n >= 100000 else "", value >= 200000 if n >= 100000 else None)
    for rank in ("p50", "p99"):
        before, meanwhile = (rebuild[when][f"commit_to_handler_{rank}_us"] for when in ("quiet", "busy"))
        table.add(f"{n}: commit to a handler, {rank}, 500/s, during a rebuild", f"{meanwhile:.0f} us", f"{before:.0f} us before",
                  None)


def add_find(table, n, find, barred):
    """The times of whole calls; there is a target for pages in the order of an index."""
    for name, what in (("by_index", "by index"), ("selector", "list with a label selector"),
                       ("sorted_page", "page of 100 in order, by an index"),
                       ("sorted_scan", "page of 100 in order, without an index")):
        barred_here = barred and name == "sorted_page"
        p50, p99 = (find[f"{name}_{rank}_us"] for rank in ("p50", "p99"))
        table.add(f"{n}: {what}, {find[f'{name}_objects']:.0f} objects, p50 / p99",
                  f"{p50 / 1000:.3f} / {p99 / 1000:.3f} ms", "p99 5 ms" if barred_here else "",
                  p99 < 5000 if barred_here else None)


def add_followers(table, n, figures):
    follower = figures["follower"]
    table.add(f"{n}: private memory of a program that follows", f"{follower['unshared_bytes'] / 1024:.0f} KiB",
              "2048 KiB", follower["unshared_bytes"] < 2 * MIB)
    table.add(f"{n}: of each further follower in it", f"{follower['further_bytes'] / 1024:.0f} KiB", "2048 KiB",
              follower["further_bytes"] < 2 * MIB)
    if "crowd" in figures:
        crowd = figures["crowd"]
        for name, what in (("cores", f"{crowd['cores_n']} reader processes"), ("many", "64 reader processes")):
            scale = crowd[name] / crowd["one"]
            bar = 0.95 * crowd["cores_n"]
            table.add(f"{n}: {what} together, against one", f"{crowd[name] / 1e6:.2f} M/s = {scale:.2f}x",
                      f"{bar:.2f}x ({crowd['cores_n']} cores)", scale >= bar)


def add_audience(table, audience):
    last, cpu = audience["commit_to_last_p99_us"], audience["follower_cpu_us_per_event"]
    table.add("100 followers of one feed: commit to the last handler, p50 / p99",
              f"{audience['commit_to_last_p50_us']:.0f} / {last:.0f} us", "p99 2000 us", last < 2000)
    table.add("same: CPU an event and follower", f"{cpu:.1f} us", "10 us", cpu < 10)


def add_queue(table, queue):
    for threads, figures in queue.items():
        theirs = figures.get("client_go")
        table.add(f"work queue, {threads.rpartition('_')[2]} threads: add, get, done",
                  f"{figures['kinf'] / 1e6:.2f} M keys/s",
                  f"client-go's {theirs / 1e6:.2f}" if theirs else "client-go's not measured",
                  figures["kinf"] >= theirs if theirs else None)


def add_churn(table, churn):
    for name in ("journal", "index"):
        early, late = churn[f"{name}_file_2"], churn[f"{name}_file_10"]
        table.add(f"{churn['updates']:.0f} updates on 20,000: {name}'s file, end / after a fifth",
                  f"{late / early:.4f} ({late / MIB:.0f} MiB)", "1.01", late < early * 1.01)
    table.add("same: rate through recorder, processor and trimming",
              f"{churn['updates'] / churn['seconds'] / 1000:.0f} k/s", "", None)


def add_growth(table, sizes):
    small, large = sizes.get("10000"), sizes.get("1000000")
    if not small or not large:
        table.add("growth, 1M against 10k", "not measured: BENCH_LARGE=1", "2x", None)
        return
    pairs = [("get", "read", "get_per_s"), ("by index", "read", "index_objects_per_s"),
             ("list", "read", "list_objects_per_s"), ("apply, first list", "first_list", "apply_objects_per_s"),
             ("apply, burst", "changed_list", "apply_objects_per_s")]
    for what, group, key in pairs:
        factor = small[group][key] / large[group][key]
        table.add(f"growth, 1M against 10k: {what}", f"{factor:.2f}x", "2x", factor <= 2)


def add_client_go(table, client_go):
    sync, medians = client_go["sync"], client_go["sync"]["median"]
    ours, n = medians["kinf"], int(medians["kinf"]["objects"])
    for name, bar, what in (("typed", 1 / 3, "typed, its default"), ("typed_list", 1, "typed by LIST"),
                            ("dynamic", 1 / 10, "dynamic")):
        ratio = sync["cpu_ratio"][name]
        table.add(f"first sync of {n} real pods, CPU: ours / client-go {what}",
                  f"{ours['cpu_s']:.2f} s / {medians[name]['cpu_s']:.2f} s = {ratio:.3f}", f"{bar:.3f}", ratio <= bar)
    for who in ("reflector", "processor"):
        peak = ours[f"{who}_peak_private_mib"]
        table.add(f"same: peak private memory, {who} (client-go: {medians['typed']['peak_mib']:.0f} MiB)",
                  f"{peak:.1f} MiB", "64 MiB", peak <= 64)
    table.add("restart of both daemons: LISTs at the server", f"{client_go['restart']['lists_after_restart']:.0f}", "0",
              client_go["restart"]["lists_after_restart"] == 0)
    ours, theirs = client_go["latency"]["median"]["kinf"], client_go["latency"]["median"]["typed"]
    for rank in ("p50", "p99"):
        bar = theirs[f"read_to_handler_{rank}_us"]
        for name, what in (("follower", "event"), ("handler", "a handler of libkinf")):
            value, whole = ours[f"decrypted_to_{name}_{rank}_us"], ours[f"read_to_{name}_{rank}_us"]
            table.add(f"watch bytes decrypted to {what}, {rank} (from the socket's read on)",
                      f"{value:.0f} us ({whole:.0f} us)", f"{bar:.0f} us", value < bar)
        value, bar = ours[f"send_to_follower_{rank}_us"], theirs[f"send_to_handler_{rank}_us"]
        table.add(f"patch sent to event, {rank} (client-go's beside it)", f"{value:.0f} us", f"({bar:.0f} us)", None)


def add_operators(table, figures):
    """Each figure beside that of the same program on caches of its own, and their ratio."""
    def add(what, ours, theirs, unit, bar=None):
        ratio = ours / theirs
        table.add(f"{what} ({figures['pods']} pods)", f"{ours:.4g} {unit}, own caches {theirs:.4g}: {ratio:.2f}x",
                  f"{bar}x" if bar else "", ratio <= bar if bar else None)

    ours, theirs = figures["operators"]["kinf"], figures["operators"]["own"][0]
    add("Go operator: private memory after sync", ours[0]["private_mib"], theirs["private_mib"], "MiB", 0.1)
    add("start to synced", ours[0]["synced_ms"], theirs["synced_ms"], "ms", 0.3)
    add("start until handlers know all", ours[0]["handled_ms"], theirs["handled_ms"], "ms")
    add("CPU until handlers know all", ours[0]["handled_cpu_ms"], theirs["handled_cpu_ms"], "ms")
    for n in (2, 3, 10):
        private = ours[n - 1]["private_mib"]
        table.add(f"operator {n} at the same time: private memory", f"{private:.1f} MiB", "30 MiB", private < 30)
    add("start of a program that needs keys", *(figures["keys"][way]["ms"] for way in ("kinf", "own")), "ms", 0.05)
    for what, key, bar in (("cached Get, typed, CPU", "get", 2), ("unstructured", "unstructured", 1),
                           (f"List of a namespace of {figures['reads']['own']['namespace_objects']:.0f}", "namespace", 2),
                           *((f"by {index} and labels, {figures['reads']['own'][index + '_objects']:.0f} of "
                              f"{figures['reads']['own'][index + '_pods']:.0f}", index, 0.3) for index in ("node", "phase"))):
        add(what, *(figures["reads"][way][key] for way in ("kinf", "own")), "us", bar)
    for what, key in (("lister's Get, all pods, CPU", "get"), ("lister's Get, 500 pods", "get_again")):
        add(what, *(figures["lister"][way][key] for way in ("kinf", "own")), "us")
    for rank in ("p50", "p99"):
        add(f"change to handler, {rank}", figures["events"][f"kinf_{rank}_ms"], figures["events"][f"own_{rank}_ms"], "ms", 1.3)
