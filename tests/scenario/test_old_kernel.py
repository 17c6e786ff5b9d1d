# SPDX-License-Identifier: Apache-2.0
"""A kernel 5.10: every later system call is refused with ENOSYS (seccomp), in all programs and
their libraries. And a filter without poll(2), possible in a container."""

import platform
import re
import sys

import pytest

from harness import eventually
from harness.process import program, run_command

# Runs a program under such a filter. From 441 (epoll_pwait2, Linux 5.11) on the numbers are the
# same on all machines; those of x32 begin at 2^30 and are refused as well.
FILTER = r"""
import ctypes, os, struct, sys
LOAD_NUMBER, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
code = [(LOAD_NUMBER, 0, 0, 0), (AT_LEAST, 0, 1, 441), (RETURN, 0, 0, 0x00050000 | 38), (RETURN, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
filter = Filter(len(code), ctypes.addressof(program))
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(filter), 0, 0):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
if code[1][0] == AT_LEAST and (libc.syscall(441, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 38):
    sys.exit("the filter lets a newer call pass")
os.execv(sys.argv[1], sys.argv[1:])
"""


def old(*argv):
    return [sys.executable, "-c", FILTER, *argv]


def test_everything_works_without_the_system_calls_of_later_kernels(simulator, store):
    simulator.create("pods", 40, size=600)
    store.configure({"resource": "pods", "drop": [], "indexes": {"node": "spec.nodeName"}}, serve={"listen": ["unix"], "auth": "open"})
    run = store.process("kinf-run", old(program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime)).start()
    store.wait_equal(simulator, "pods")
    informer = store.process("informer", old(program("programs/informer"), "pods", "--cache", "--cursor", "c")).start()
    watch = store.process("watch", old(program("kinf"), "watch", "pods", "-o", "json", "--cursor", "w")).start()
    eventually(lambda: '"sync"' in informer.out and '"SYNC"' in watch.out)
    rv = simulator.touch("pods", 10)
    for follower in (informer, watch):
        eventually(lambda: re.search(rf'"(rv|resourceVersion)":"{rv}"', follower.out))
    for words in (["get", "pods", "-o", "name"], ["get", "pods", "--index", "node=node-1"], ["status"], ["verify", "--deep"]):
        result = run_command(old(program("kinf"), *words), store.env)
        assert result.status == 0, result
    for process in (informer, watch, run):
        assert process.stop() == 0, process.tail()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="poll(2) has another number there, or none")
def test_a_watch_that_may_not_wait_for_its_output_ends_and_says_so(simulator, store):
    simulator.create("pods", 3)
    store.configure("pods")
    store.run()
    store.wait_live("pods")
    without_poll = FILTER.replace("(AT_LEAST, 0, 1, 441)", "(EQUAL, 0, 1, 7)")
    result = run_command([sys.executable, "-c", without_poll, program("kinf"), "watch", "pods", "-o", "name"], store.env, timeout=30)
    assert result.status == 1 and "poll(2): Function not implemented" in result.stderr, result
