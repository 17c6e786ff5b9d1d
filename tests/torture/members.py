#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile member of the store's group: another user with the right to read the store tries the
directories' permissions, while `kinf run` runs and another member follows with a cursor. Needs
root, and the user `nobody`.

  * Both daemons are the original processes, and the store equals the cluster after each attack.
  * Another member goes on reading, and its cursor is written.
  * No file outside of the store changes; a daemon killed meanwhile is started again, and the other
    one is left alone.

usage: tests/torture/members.py [--count N] [--only NAME]    N attacks, 0: all ($KINF_BUILD: default build/debug)
"""

import contextlib
import grp
import os
import pwd
import signal
import sys

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import FEED, INDEXES, Tally, arguments, chosen, eventually, whole, with_workspace  # noqa: E402

HOSTILE, GROUP = "nobody", "nogroup"
ROLES = ("kinf-reflector", "kinf-processor")
TREE = r'''
import errno, fcntl, os, random, signal, socket, stat, struct, sys, threading, time
store, runtime, victim = sys.argv[1:4]
signal.signal(signal.SIGIO, signal.SIG_IGN)
def inode(part):
    return os.stat('%s/%s/%s/data.mdb' % (store, part, open('%s/%s/CURRENT' % (store, part)).read().strip())).st_ino
inodes = [inode(part) for part in ('journal', 'index')]
def pin(inode, n):
    return '%s/pins/%016x-%016x' % (runtime, inode, n)
def locked(fd, kind=fcntl.F_WRLCK):
    fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', kind, 0, 0, 0, 0))  # F_OFD_SETLK
    return fd
def made(path, flags=os.O_RDWR | os.O_CREAT):
    return os.open(path, flags, 0o644)
def everything():
    for top in (store, runtime):
        for path, directories, names in os.walk(top):
            for name in [""] + names:
                yield os.path.join(path, name) if name else path
def opened(flags=os.O_RDONLY):
    for path in everything():
        try:
            yield path, os.open(path, flags | os.O_NONBLOCK)
        except OSError:
            pass
'''
ATTACKS = {
    "shared flock on everything": "held = [fd for _, fd in opened()]\nfor fd in held: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)\nwait()",
    "exclusive flock on directories": (
        "for path, fd in opened():\n"
        "    if os.path.isdir(path):\n"
        "        try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "        except OSError: pass\n"
        "wait()"
    ),
    "read locks on every file": (
        "F_OFD_SETLK = 37\n"
        "for path, fd in opened():\n"
        "    try: fcntl.fcntl(fd, F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0))\n"
        "    except OSError: pass\n"
        "wait()"
    ),
    "waiting for each role's lock": (
        "def take(fd):\n"
        "    try: fcntl.fcntl(fd, 38, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0))\n"
        "    except OSError: pass\n"
        "for path, fd in opened():\n"
        "    if path.endswith('.lock'): threading.Thread(target=take, args=(fd,), daemon=True).start()\n"
        "wait()"
    ),
    "links at names of cursors": (
        "for name in ['steady', '.steady', '.steady.new', 'x', '.x.1'] + ['.steady.%d' % n for n in range(1, 33000, 7)]:\n"
        "    try: os.symlink(victim, store + '/cursors/' + name)\n"
        "    except OSError: pass\n"
        "wait()"
    ),
    "large cursors and their links": (
        "text = b'kinf-cursor 1\\n' + b'feed 1 1\\n' * 120000\n"
        "open(store + '/cursors/large', 'wb').write(text)\n"
        "for n in range(2000): os.link(store + '/cursors/large', store + '/cursors/large-%d' % n)\n"
        "wait()"
    ),
    "many cursors of random bytes": (
        "for n in range(5000):\n"
        "    open(store + '/cursors/r%d' % n, 'wb').write(os.urandom(random.randrange(300)))\n"
        "wait()"
    ),
    "directories, pipes and sockets as cursors": (
        "for n in range(200):\n"
        "    os.mkdir(store + '/cursors/d%d' % n); os.mkfifo(store + '/cursors/f%d' % n)\n"
        "wait()"
    ),
    "removing another member's cursor": (
        "for n in range(200):\n"
        "    for name in os.listdir(store + '/cursors'):\n"
        "        for attack in (os.unlink, lambda p: os.rename(p, p + '.gone'), lambda p: open(p, 'wb')):\n"
        "            try: attack(store + '/cursors/' + name) if name.endswith('steady') else None\n"
        "            except OSError: pass\n"
        "wait()"
    ),
    "every file opened for writing": "held = [path for path, _ in opened(os.O_RDWR) if not path.endswith('lock.mdb')]\nprint('WRITABLE', held)\nwait()",
    "doorbell connections": (
        "held = []\n"
        "for path in everything():\n"
        "    if stat.S_ISSOCK(os.lstat(path).st_mode):\n"
        "        try:\n"
        "            for n in range(900):\n"
        "                for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):\n"
        "                    s = socket.socket(socket.AF_UNIX, kind); s.setblocking(False)\n"
        "                    try: s.connect(path); s.send(os.urandom(64)); held.append(s)\n"
        "                    except OSError: s.close()\n"
        "        except OSError: pass\n"
        "wait()"
    ),
    "leases on cursors and pin files": (  # an open waits for a lease for 45 s
        "held = []\n"
        "for n in range(40):\n"
        "    for path in [store + '/cursors/lease%d' % n] + [pin(inode, n) for inode in inodes]:\n"
        "        fd = made(path); os.write(fd, b'kinf-cursor 1\\n'); held.append(fd)\n"
        "        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "    fd = made(store + '/cursors/.old%d' % n); held.append(fd)\n"
        "    os.utime(fd, (0, 0)); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "wait()"
    ),
    "directories, pipes, links and holes as pin files": (
        "held = []\n"
        "for inode in inodes:\n"
        "    for n in range(0, 200, 4):\n"
        "        os.mkdir(pin(inode, n)); os.mkfifo(pin(inode, n + 1)); os.symlink(victim, pin(inode, n + 2))\n"
        "        fd = locked(made(pin(inode, n + 3))); os.ftruncate(fd, 1 << 40); held.append(fd)\n"
        "wait()"
    ),
    "pin files of random bytes that are cut and grow": (
        "held = [locked(made(pin(inode, n))) for inode in inodes for n in range(30)]\n"
        "def change():\n"
        "    while True:\n"
        "        for fd in held:\n"
        "            os.ftruncate(fd, random.randrange(300000)); os.pwrite(fd, os.urandom(5000), random.randrange(100000))\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=change, daemon=True).start()\n"
        "wait()"
    ),
    "1500 locked pin files": "held = [locked(made(pin(inode, n))) for inode in inodes for n in range(750)]\nwait()",
    "200 pin files with every slot in use": (
        "held = []\n"
        "for n in range(200):\n"
        "    fd = locked(made(pin(inodes[n % 2], n))); held.append(fd)\n"
        "    slots = b''.join(struct.pack('<Q56x', 1000 * n + i) for i in range(1 << 30, (1 << 30) + 4095))\n"
        "    os.pwrite(fd, b'pinfile1' + struct.pack('<IiQ40x', 4096, os.getppid(), 0) + slots, 0)\n"
        "wait()"
    ),
    "sleepers on the shared pages woken and moved": (  # they look by themselves after 0.2 s
        "import ctypes, platform\n"
        "libc, number = ctypes.CDLL(None), {'x86_64': 202, 'aarch64': 98}[platform.machine()]\n"
        "libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
        "def mapped(name): return libc.mmap(None, 4096, 1, 1, os.open(runtime + '/' + name, os.O_RDONLY), 0)\n"
        "ring, taken = mapped('delta.ring'), mapped('index.taken')\n"
        "target = libc.mmap(None, 4096, 3, 0x21, -1, 0)\n"
        "pointer, WAKE, REQUEUE, ALL = ctypes.c_void_p, 1, 3, 1 << 30\n"
        "def futex(word, call):\n"
        "    done = libc.syscall(number, pointer(word), call, 0 if call == REQUEUE else ALL, pointer(ALL), pointer(target), 0)\n"
        "    assert done >= 0\n"
        "def change():\n"
        "    for turn in range(10**9):\n"
        "        for word in (ring + 512, ring + 640, taken + 8): futex(word, WAKE if turn // 500 % 2 else REQUEUE)\n"
        "        time.sleep(0.0005)\n"
        "threading.Thread(target=change, daemon=True).start()\n"
        "wait()"
    ),
    "the names of cursors and their locks": (
        "for name in ['later', '.later.lock', '.later.new', 'again', '.again.lock']: made(store + '/cursors/' + name)\n"
        "wait()"
    ),
}
# Another member's error meanwhile: the arguments of kinf, and its message.
SAYS = {"the names of cursors and their locks": (["watch", FEED, "--cursor", "later", "--count", "1"], "it belongs to user")}
WAIT = "def wait():\n    print('READY', flush=True)\n    time.sleep(600)\n"


class Members:
    def __init__(self, workspace, options):
        self.options, self.tally = options, Tally()
        self.directory = workspace.directory
        self.simulator = workspace.simulator()
        self.simulator.settings(bookmarkMs=500)
        self.simulator.create(FEED, 60, size=600)
        self.store = workspace.store(simulator=self.simulator)
        group = pwd.getpwnam(HOSTILE).pw_gid
        for path in (self.directory, self.store.runtime):
            os.chmod(path, 0o755)
        self.store.configure(whole(FEED, indexes=INDEXES), group=grp.getgrgid(group).gr_name, retention={"time": "1s", "size": "64MiB"})
        self.victim = self.directory / "victim"
        self.victim.write_text("mine\n")
        os.chmod(self.victim, 0o666)  # so only the care of the link's follower protects it

    def attack(self, name, code):
        (runtime,) = self.store.runtime.iterdir()
        argv = ["setpriv", "--reuid", HOSTILE, "--regid", GROUP, "--clear-groups", sys.executable, "-c", TREE + WAIT + code,
                self.store.path, runtime, self.victim]  # fmt: skip
        hostile = self.store.process("hostile", argv)
        for path in (hostile.out_path, hostile.err_path):
            path.unlink(missing_ok=True)
        hostile.start()
        eventually(lambda: "READY" in hostile.out or not hostile.running, 20)
        return hostile

    def settle(self, follower):
        changed = self.simulator.touch(FEED, 10)
        self.store.wait_equal(self.simulator, FEED, timeout=15)
        eventually(lambda: any(str(changed) == line["object"]["metadata"]["resourceVersion"] for line in follower.lines[-40:] if "object" in line), 15)
        cursor = self.store.path / "cursors" / "steady"
        before = cursor.stat().st_mtime_ns if cursor.exists() else 0
        self.simulator.touch(FEED, 1)
        eventually(lambda: cursor.is_file() and not cursor.is_symlink() and cursor.stat().st_mtime_ns > before, 15, "the cursor is written")

    def pids(self):
        """{role: pid} of the responding daemons."""
        listed = self.store.kinf("status", "-o", "json").json["processes"]
        return {p["name"]: p["pid"] for p in listed if p["name"] in ROLES and p.get("pid") and p["state"] != "not running"}

    def kill(self, role):
        """`kinf run` starts it again, and leaves the other one alone."""
        before = self.pids()
        os.kill(before[role], signal.SIGKILL)
        after = eventually(lambda: (now := self.pids()).keys() == before.keys() and now[role] != before[role] and now, 30, f"{role} is started again")
        assert {name: pid for name, pid in after.items() if name != role} == {name: pid for name, pid in before.items() if name != role}

    def case(self, name, code, follower):
        self.supervisor = self.store.run()  # a new one: its pauses grow with each restart
        self.store.wait_live(FEED)
        hostile, fault = self.attack(name, code), None
        pids = self.pids()
        try:
            assert "READY" in hostile.out, hostile.tail()
            assert "WRITABLE" not in hostile.out or "WRITABLE []" in hostile.out, hostile.out
            self.settle(follower)
            assert self.pids() == pids, "a daemon has ended"
            if name in SAYS:
                words, text = SAYS[name]
                told = self.store.kinf(*words)
                assert told.status == 1 and text in told.stderr, told
            for role in ROLES:  # while the attack goes on
                self.kill(role)
            self.settle(follower)
            assert self.victim.read_text() == "mine\n", "a file outside of the store was changed"
        except AssertionError as problem:
            fault = "\n".join([str(problem)[:400], self.supervisor.tail(10), follower.tail(3)[-800:]])
        hostile.kill(9)
        (pins,) = self.store.runtime.glob("kinf-*/pins")
        for path in [*(self.store.path / "cursors").iterdir(), *pins.iterdir()]:
            with contextlib.suppress(FileNotFoundError):  # the daemons remove files of ended processes
                if path.lstat().st_uid == pwd.getpwnam(HOSTILE).pw_uid:
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        if self.supervisor.stop() != 0 and not fault:
            fault = f"kinf run does not end in order: {self.supervisor.tail(5)}"
        self.tally.tried(name, fault)

    def run(self):
        self.supervisor = self.store.run()
        self.store.wait_equal(self.simulator, FEED)
        assert self.supervisor.stop() == 0
        follower = self.store.follower("watch", FEED, "-o", "json", "--cursor", "steady")
        eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))
        attacks = list(ATTACKS.items())
        for number in chosen(len(attacks), self.options.count, self.options.seed):
            name, code = attacks[number - 1]
            if self.options.only in name:
                self.case(name, code, follower)
        return self.tally.end()


def main():
    options = arguments(__doc__, 0)
    if os.geteuid() != 0:
        print("members: skipped: it needs root to become another user")
        return 0
    return with_workspace(lambda workspace: Members(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
