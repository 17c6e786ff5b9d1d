# SPDX-License-Identifier: Apache-2.0
"""A rebuild of the index, and its effect on a follower of a changing feed."""

import json
import shutil
import subprocess
import time

RATE, QUIET = 500, 1000  # changes a second; changes before the rebuild
POLL_SECONDS = 0.002


def start(place):
    """Removes the index and starts a processor to build it again. Returns (processor, seconds until
    readers have it)."""
    current = place.store / "index" / "CURRENT"
    place.stop()
    shutil.rmtree(place.store / "index")
    begin = time.time()
    processor = place.daemon("kinf-processor")

    def end():
        while not current.exists():
            processor.check()
            time.sleep(POLL_SECONDS)
        return current.stat().st_mtime - begin  # the call may come long after it

    return processor, end


class Follower:
    """A writer changing the feed, and an informer's handler of its changes."""

    def __init__(self, place, n, count):
        argv = [place.program("bench/latency"), place.store, place.runtime, n, count, RATE, "handler", "hold"]
        self.process = subprocess.Popen(
            [str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.count = count
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"latency: {self.process.communicate()[1]}")

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """Waits until the handler has got all changes. Returns the last line."""
        out, err = self.process.communicate(timeout=600)
        if self.process.returncode:
            raise RuntimeError(f"latency: {err}")
        return out.splitlines()[-1]


def follow(place, n, count, act=lambda: None):
    """Calls ACT when the handler has its initial state, and then makes the changes."""
    follower = Follower(place, n, count)
    act()
    follower.begin()
    return json.loads(follower.end())


def measure(place, n):
    """The rate of a rebuild of N pods, and the latencies of a handler before and during another one."""
    processor, end = start(place)
    seconds = end()
    cpu, peak = processor.cpu, processor.peak
    quiet = follow(place, n, QUIET)
    count = max(int(seconds * 0.6 * RATE), 100)
    ends = []
    busy = follow(place, n, count, lambda: ends.append(start(place)[1]))
    return {"objects": n, "seconds": seconds, "objects_per_s": n / seconds, "cpu_us_per_object": cpu / n * 1e6,
            "peak_private_bytes": peak, "again_seconds": ends[0](), "changes": count, "quiet": quiet, "busy": busy}
