# SPDX-License-Identifier: Apache-2.0
"""Measurements with synthetic pods and without an API server; all other parts are those of production."""

import os
import subprocess
import time

import idle
import rebuild
import workqueue
from machine import Place, median, measured, note, unshared_bytes

GETS = 20
LATENCY_RUNS = 5
LATENCY = (2000, 200)  # changes, a second
FOLLOWERS, READERS = 16, 64
CROWD_SIZE, CROWD_SECONDS = 100000, 10
AUDIENCE = (1000, 400, 20, 100)  # pods, changes, a second, followers


def rate(objects, seconds):
    return objects / seconds if seconds else None


def filled(place, n, *words):
    """Measures one list of N pods with a running processor."""
    processor = place.daemons[-1]
    before = processor.cpu
    figures = place.fill(n, *words, "wait")
    return {
        "record_objects_per_s": rate(n, figures["record_s"]),
        "record_cpu_us_per_object": figures["record_cpu_s"] / n * 1e6,
        "recorder_peak_private_bytes": figures["peak_private_bytes"],
        "apply_objects_per_s": rate(n, figures["apply_s"]),
        "apply_cpu_us_per_object": (processor.cpu - before) / n * 1e6,
        "processor_peak_private_bytes": processor.peak,
        "json_bytes": figures["json_bytes"],
        "store_used_bytes": figures["journal_used_bytes"] + figures["index_used_bytes"],
        "used_to_json": (figures["journal_used_bytes"] + figures["index_used_bytes"]) / figures["json_bytes"],
    }


def holding(place, *words):
    """(memory, line): the unshared memory of a process holding its objects, less a sleeping process's; and its line."""
    empty = subprocess.Popen(["sleep", "600"])
    reader = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = reader.stdout.readline().split()
    if not line or line[0] != "ready":
        raise RuntimeError(f"{words[0]} failed")
    time.sleep(0.1)  # sleep(1) has been loaded by now
    over = unshared_bytes(reader.pid, place.directory) - unshared_bytes(empty.pid, place.directory)
    reader.communicate("")
    empty.kill()
    empty.wait()
    return over, [int(n) for n in line[1:]]


def holding_reader(place, n):
    """The memory of a process after reading all objects."""
    return holding(place, place.program("bench/read"), place.store, n, "hold")[0]


def followers(place, n):
    """The memory of a process with one informer, and the memory of each further informer."""
    program = place.program("bench/follower")
    one, (_, anonymous) = holding(place, program, place.store, n, 1)
    _, (_, many) = holding(place, program, place.store, n, FOLLOWERS)
    return {"unshared_bytes": one, "further_bytes": (many - anonymous) / (FOLLOWERS - 1)}


def crowd(place, n):
    """The reads a second of one reader, of one for each core, and of many more."""
    cores = len(os.sched_getaffinity(0))
    counts = {"one": 1, "cores": cores, "many": READERS}
    rates = {name: measured([place.program("bench/crowd"), place.store, n, count, CROWD_SECONDS])["objects_per_s"]
             for name, count in counts.items()}
    return {"cores_n": cores, **rates}


def audience(build):
    """The time until the last of many followers has a change, and the CPU of each."""
    note(f"{AUDIENCE[3]} followers of one feed")
    with Place(build) as place:
        processor = place.daemon("kinf-processor")
        place.fill(AUDIENCE[0], "wait")
        processor.stop_sampling()
        return measured([place.program("bench/audience"), place.store, place.runtime, *AUDIENCE])


def first_get(place):
    """The milliseconds from the start of `kinf get` to its end, with no other process on the store."""
    listed = place.kinf("get", "pods", "-n", "team-00000", "--limit", "1", "-o", "name").split()[0]
    times = []
    argv = [str(place.program("kinf")), "get", "pods", listed.rpartition("/")[2], "-n", "team-00000",
            "--store", str(place.store)]
    for _ in range(GETS):
        begin = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - begin) * 1000)
    return median(times)


def latencies(place, n):
    """Medians of several runs, since single medians vary by a factor of two."""
    os.sync()  # writes the dirty pages of the earlier lists: they would disturb the measurement
    command = [place.program("bench/latency"), place.store, place.runtime, n, *LATENCY]
    runs = [{**measured(command), **measured([*command, "handler"])} for _ in range(LATENCY_RUNS)]
    return {name: median([run[name] for run in runs]) for name in runs[0]}


def one_size(build, n, latency=False):
    note(f"{n} synthetic pods")
    with Place(build) as place:
        place.daemon("kinf-processor")
        figures = {"objects": n, "first_list": filled(place, n)}
        figures["read"] = measured([place.program("bench/read"), place.store, n])
        figures["find"] = measured([place.program("bench/find"), place.store, n])
        figures["follower"] = followers(place, n)
        if n == CROWD_SIZE:
            figures["crowd"] = crowd(place, n)
        figures["reader_unshared_bytes"] = holding_reader(place, n)
        figures["changed_list"] = filled(place, n)
        figures["moved_list"] = filled(place, n, "moving")
        figures["rebuild"] = rebuild.measure(place, n)
        place.daemons[-1].stop_sampling()
        if latency:
            figures["latency"] = latencies(place, n)
        place.stop()
        figures["first_get_ms"] = first_get(place)
    return figures


def small_objects(build, n=20000):
    note(f"{n} pods of 1.2 kB")
    with Place(build) as place:
        place.daemon("kinf-processor")
        return filled(place, n, "small")


def churn(build, n, updates):
    note(f"{updates} updates on {n} pods")
    with Place(build) as place:
        place.daemon("kinf-processor")
        filled(place, n)
        return measured([place.program("bench/churn"), place.store, place.runtime, n, updates])


def measure(build, large):
    sizes = [1000, 10000, 100000] + ([1000000] if large else [])
    only = os.environ.get("BENCH_SIZES")
    if only:
        sizes = [int(n) for n in only.split(",")]
    return {
        "sizes": {str(n): one_size(build, n, latency=n == 10000) for n in sizes},
        "small": small_objects(build),
        "audience": audience(build),
        "queue": workqueue.measure(build),
        "idle": idle.measure(build),
        "churn": churn(build, 20000, 10_000_000 if large else 1_000_000),
    }
