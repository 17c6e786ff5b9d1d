#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a unit in place of kinf, and tries the attacks of a daemon taken over. Prints a line for
each successful attempt, and exits with 1; else one line with the number of attempts. It also checks
kinf's own needs.
"""

import ctypes
import mmap
import os
import socket
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    """A function of libc; raises OSError if it fails."""
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def write(path):
    with open(path, "w") as file:
        file.write("x")


def absent(path):
    """Succeeds if the path can be seen."""
    os.stat(path)


def make_executable():
    call("mprotect", libc.valloc(4096) or 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


libc.valloc.restype = ctypes.c_void_p
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000

REFUSED = {
    "write below /usr": lambda: write("/usr/lib/x"),
    "write below /etc": lambda: write("/etc/kinf/kinf.yaml"),
    "write below /var": lambda: write("/var/lib/x"),
    "write to the root": lambda: write("/x"),
    "read a home": lambda: open("/home/reader/secret").read(),
    "look into /root": lambda: os.listdir("/root"),
    "see the machine's /tmp": lambda: absent("/tmp/of-the-machine"),
    "read shadow": lambda: open("/etc/shadow").read(),
    "become root": lambda: os.setuid(0),
    "become another user": lambda: os.setuid(1),
    "make a user namespace": lambda: call("unshare", CLONE_NEWUSER),
    "make a mount namespace": lambda: call("unshare", CLONE_NEWNS),
    "mount": lambda: call("mount", b"tmpfs", b"/run/kinf", b"tmpfs", 0, None),
    "change a kernel setting": lambda: write("/proc/sys/kernel/hostname"),
    "change the host name": lambda: call("sethostname", b"x", 1),
    "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "change a cgroup": lambda: os.mkdir("/sys/fs/cgroup/systemd/x"),
    "open a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "open a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "map memory to write and execute": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "make memory executable": make_executable,
    "real-time scheduling": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "a personality": lambda: call("personality", 0x0008),
    "trace a process": lambda: call("ptrace", 16, os.getppid(), None, None),
    "load a module": lambda: call("syscall", 313, -1, b"", 0),
    "read the kernel's log": lambda: call("klogctl", 2, ctypes.create_string_buffer(100), 100),
    "open a disk": lambda: os.open("/dev/vda", os.O_RDONLY),
    "make a device": lambda: os.mknod("/run/kinf/device", stat.S_IFBLK | 0o600, os.makedev(254, 0)),
    "reboot": lambda: call("reboot", 0x1234567),
    "add a swap file": lambda: call("swapon", b"/run/kinf/x", 0),
    "read a key ring": lambda: call("syscall", 250, 0, -3, 1),
}


def needed():
    """Writes kinf's files, with the setgid bit of a store's group, and opens kinf's sockets."""
    for path in ("/var/lib/kinf/.attempt", "/run/kinf/.attempt"):
        os.mkdir(path)
        os.chmod(path, 0o2750)
        assert os.stat(path).st_mode & stat.S_ISGID
        os.rmdir(path)
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
        socket.socket(family).close()
    assert os.geteuid() != 0 and os.listdir("/proc/1")
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert int(lines["CapEff"], 16) == int(lines["CapBnd"], 16) == 0 and lines["NoNewPrivs"] == "1", lines


def main():
    out = []
    for what, attempt in REFUSED.items():
        try:
            attempt()
        except (OSError, PermissionError):
            continue
        out.append(what)
    needed()
    for what in out:
        print(f"possible: {what}")
    if not out:
        print(f"all {len(REFUSED)} attempts were refused")
    return 1 if out else 0


sys.exit(main())
