/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/decimal.h"

/* ---- ending -------------------------------------------------------------------------------------- */

/* Damaged data is made again by a restart; a configuration is not. */
enum proc_exit proc_exit_of(int error)
{
	switch (error) {
	case ERR_CONFIG:
	case ERR_SYNTAX:
	case ERR_UNSUPPORTED:
		return PROC_CONFIG;
	case ERR_CORRUPT:
	case ERR_FORMAT:
	case ERR_UNTRUSTED:
		return PROC_INTERNAL;
	case ERR_LOCKED:
		return PROC_IN_USE;
	default:
		return PROC_TEMPORARY;
	}
}

/* ---- signals ------------------------------------------------------------------------------------- */

int proc_signals_open(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_set(-errno, "ignoring SIGPIPE");
	int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r)
		return err_set(-r, "blocking signals");
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? err_set(-errno, "signalfd") : fd;
}

int proc_signals_next(int fd)
{
	struct signalfd_siginfo info;
	ssize_t n = read(fd, &info, sizeof(info));

	return n == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void proc_signals_reset(void)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t kept;

	(void)sigemptyset(&kept);
	(void)sigaddset(&kept, SIGHUP);
	(void)sigaction(SIGPIPE, &usual, NULL);
	(void)sigprocmask(SIG_SETMASK, &kept, NULL);
}

/* ---- one instance per role ------------------------------------------------------------------------ */

static const struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static int write_pid(int fd)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return errno ? -errno : -EIO;
	return 0;
}

/* The holder's pid as it wrote it: only for the sentence. */
static int locked_by(int fd, const char *name)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	int digits = 0;

	while (digits < n && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	if (!digits)
		return err_say(ERR_LOCKED, "'%s' is held by another process", name);
	return err_say(ERR_LOCKED, "'%s' is held by process %.*s", name, digits, text);
}

int proc_lock(int directory_fd, const char *name)
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(-errno, "opening lock '%s'", name);
	struct flock lock = whole_file;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno == EAGAIN || errno == EACCES)
			return locked_by(fd, name);
		return err_set(-errno, "locking '%s'", name);
	}
	int r = write_pid(fd);
	if (r < 0)
		return err_set(r, "writing our pid into '%s'", name);
	return TAKE_FD(fd);
}

bool proc_is_locked(int directory_fd, const char *name)
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct flock lock = whole_file;

	if (fd < 0)
		return errno != ENOENT;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return true;
	return lock.l_type != F_UNLCK;
}

/* ---- the service manager and the supervisor ------------------------------------------------------- */

/* A path, or with a leading @ a name in the abstract namespace; 0 when it is neither or too long. */
static socklen_t notify_address(const char *path, struct sockaddr_un *ret_address)
{
	size_t size = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || size < 2 || size >= sizeof(ret_address->sun_path))
		return 0;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, path, size);
	if (path[0] == '@')
		ret_address->sun_path[0] = '\0';
	else
		size++; /* a path travels with its NUL */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

void proc_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t size = path ? notify_address(path, &address) : 0;

	if (!size)
		return;
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* A manager that does not listen is not our error. */
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			(struct sockaddr *)&address, size);
}

int proc_death_fd(void)
{
	const char *text = getenv("KINF_DEATH_FD");
	uint64_t fd;

	if (!text || decimal_parse(bytes_str(text), INT32_MAX, &fd) < 0)
		return -1;
	/* Also fails when there is no such fd. Our own children must not hold it open. */
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}

/* ---- faults in mapped files ----------------------------------------------------------------------- */

/* Made before anything can fault: the handler only writes it. */
static struct {
	char text[512];
	size_t size;
} fault_lines[2];

static uint8_t fault_stack[64 * 1024];

static void on_fault(int number)
{
	int i = number == SIGBUS;
	ssize_t n = write(STDERR_FILENO, fault_lines[i].text, fault_lines[i].size);

	(void)n; /* nobody left to tell */
	_exit(PROC_INTERNAL);
}

static void make_line(int i, const char *program, const char *store, const char *what)
{
	int n = snprintf(fault_lines[i].text, sizeof(fault_lines[i].text),
		"%s: memory fault (%s); the store '%.300s' may be damaged, run 'kinf verify'\n",
		program, what, store);

	fault_lines[i].size = (size_t)n < sizeof(fault_lines[i].text) ? (size_t)n :
		sizeof(fault_lines[i].text) - 1;
}

void proc_catch_faults(const char *program, const char *store)
{
	make_line(0, program, store, "SIGSEGV");
	make_line(1, program, store, "SIGBUS: a file was cut short, or its disk is full or failing");
	/* An own stack, so that a stack overflow can be told too. Without one the handler still
	 * runs on the usual stack. */
	stack_t stack = {.ss_sp = fault_stack, .ss_size = sizeof(fault_stack)};
	(void)sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGSEGV, &action, NULL); /* fails only for unknown signals */
	(void)sigaction(SIGBUS, &action, NULL);
}

/* ---- clocks, boot, processes, randomness ---------------------------------------------------------- */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now); /* fails only for unknown clocks */
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t proc_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t proc_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

unsigned proc_cpus(void)
{
	static _Atomic unsigned cpus;
	cpu_set_t set;

	if (!cpus)
		cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	return cpus;
}

/* Reads a short file of /proc as text; its size or -errno. */
static ssize_t read_short(const char *path, char *text, size_t size)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

/* 32 hex digits out of TEXT, dashes and a line end left out. */
static int parse_id(const char *text, char ret_id[33])
{
	size_t n = 0;

	for (const char *p = text; *p && *p != '\n'; p++) {
		if (*p == '-')
			continue;
		if (!strchr("0123456789abcdef", *p) || n == 32)
			return err_say(ERR_SYNTAX, "not a boot id: '%s'", text);
		ret_id[n++] = *p;
	}
	if (n != 32)
		return err_say(ERR_SYNTAX, "not a boot id: '%s'", text);
	ret_id[n] = '\0';
	return 0;
}

int proc_boot_id(char ret_id[33])
{
	const char *path = "/proc/sys/kernel/random/boot_id";
	const char *given = getenv("KINF_BOOT_ID");
	char text[64], id[33];

	if (!given) {
		ssize_t n = read_short(path, text, sizeof(text));
		if (n < 0)
			return err_set((int)n, "reading '%s'", path);
	}
	int r = parse_id(given ? given : text, id);
	if (r == 0)
		memcpy(ret_id, id, sizeof(id));
	return r;
}

/* proc(5): "pid (comm) state ppid ..."; comm may hold anything, so fields count from the last ')'.
 * State is field 3, the start time field 22. */
int proc_start_ticks(int32_t pid, uint64_t *ret_ticks)
{
	char path[64], text[1024];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_short(path, text, sizeof(text)) < 0)
		return err_set(-ESRCH, "process %d", (int)pid);
	const char *p = strrchr(text, ')');
	if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
		return err_set(-ESRCH, "process %d", (int)pid);
	p += 2;
	for (int field = 3; field < 22 && p; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p || decimal_parse(BYTES(p, strcspn(p, " \n")), UINT64_MAX, ret_ticks) < 0)
		return err_set(-ESRCH, "process %d: '%s' is not understood", (int)pid, path);
	return 0;
}

int proc_random(void *data, uint32_t size)
{
	uint8_t *p = data;

	while (size) {
		ssize_t n = getrandom(p, size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(-errno, "getrandom");
		p += n;
		size -= (uint32_t)n;
	}
	return 0;
}
