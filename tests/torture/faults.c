/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into a program (LD_PRELOAD): lets one of its system calls fail, and moves its wall
 * clock. Unlike allocations.c it sees the calls of the libraries also, of LMDB above all.
 *
 *	KINF_TORTURE_CALL=pwrite  the calls of this function count
 *	KINF_TORTURE_FAIL=N       the N-th of them fails, counted from 1; 0: none
 *	KINF_TORTURE_HOW=EIO      so, or EINTR, ENOSPC, EMFILE, short: half of the bytes are written
 *	KINF_TORTURE_NOTE=FILE    gets "failed N FUNCTION" at the failure, "made N" at the end
 *	KINF_TORTURE_CLOCK=FILE   its first 8 bytes (nanoseconds, changeable) are added to
 *	                          CLOCK_REALTIME
 *	KINF_TORTURE_EXE=NAME     only in programs of this file name
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The build hides all symbols; these take the place of libc's. */
#pragma GCC visibility push(default)

#define REAL(function) ((__typeof__(&function))faults_real(#function))

static struct {
	const char *call;
	unsigned long fail;
	int error; /* 0: a short write */
	bool on;
	atomic_ulong made;
	const _Atomic int64_t *clock_ns;
} faults;

static void *faults_real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void faults_note(const char *what, unsigned long number, const char *name)
{
	const char *file = getenv("KINF_TORTURE_NOTE");
	char line[128];
	/* By the numbers of the system calls: the wrapped functions may fail here. */
	int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file,
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
		      : -1;

	if (fd < 0)
		return;
	int n = snprintf(line, sizeof(line), "%s %lu %s\n", what, number, name);
	(void)syscall(SYS_write, fd, line, (size_t)n);
	(void)syscall(SYS_close, fd);
}

static void __attribute__((constructor)) faults_begin(void)
{
	static const struct {
		const char *name;
		int error;
	} how[] = {{"EIO", EIO}, {"EINTR", EINTR}, {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE},
		{"ENOMEM", ENOMEM}, {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EPIPE", EPIPE}};
	const char *number = getenv("KINF_TORTURE_FAIL"), *named = getenv("KINF_TORTURE_HOW");
	const char *clock = getenv("KINF_TORTURE_CLOCK"), *program = getenv("KINF_TORTURE_EXE");

	faults.call = getenv("KINF_TORTURE_CALL");
	faults.fail = number ? strtoul(number, NULL, 10) : 0;
	faults.on =
		faults.call && (!program || strcmp(program, program_invocation_short_name) == 0);
	for (size_t i = 0; named && i < sizeof(how) / sizeof(how[0]); i++)
		if (strcmp(named, how[i].name) == 0)
			faults.error = how[i].error;
	int fd = clock ? (int)syscall(SYS_openat, AT_FDCWD, clock, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		void *page = REAL(mmap)(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

		faults.clock_ns = page == MAP_FAILED ? NULL : page;
		(void)syscall(SYS_close, fd);
	}
}

static void __attribute__((destructor)) faults_end(void)
{
	if (faults.on)
		faults_note("made", faults.made, faults.call);
}

/* Returns whether this call fails; errno says how. */
static bool faults_is_over(const char *name)
{
	if (!faults.on || strcmp(name, faults.call) != 0)
		return false;
	unsigned long number = atomic_fetch_add(&faults.made, 1) + 1;
	if (number != faults.fail)
		return false;
	faults_note("failed", number, name);
	errno = faults.error;
	return true;
}

/* A function returning a number, -1 on failure. */
#define FAULT(type, name, parameters, ...) \
	type name parameters; \
	type name parameters \
	{ \
		return faults_is_over(#name) ? (type)-1 : REAL(name)(__VA_ARGS__); \
	}

/* A function with short writes: SHORTER is the call for half of it. */
#define WRITES(type, name, parameters, shorter, ...) \
	type name parameters; \
	type name parameters \
	{ \
		if (faults_is_over(#name)) \
			return faults.error ? (type)-1 : REAL(name) shorter; \
		return REAL(name)(__VA_ARGS__); \
	}

/* A function with one optional number. */
#define OPENS(name, parameters, last, ...) \
	int name parameters; \
	int name parameters \
	{ \
		va_list rest; \
		va_start(rest, last); \
		unsigned mode = va_arg(rest, unsigned); \
		va_end(rest); \
		return faults_is_over(#name) ? -1 : REAL(name)(__VA_ARGS__, mode); \
	}

OPENS(open, (const char *path, int flags, ...), flags, path, flags)
OPENS(openat, (int fd, const char *path, int flags, ...), flags, fd, path, flags)
WRITES(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n / 2), fd, data, n)
WRITES(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n / 2, at), fd,
	data, n, at)
WRITES(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, (n + 1) / 2), fd,
	parts, n)
WRITES(ssize_t, pwritev, (int fd, const struct iovec *parts, int n, off_t at),
	(fd, parts, (n + 1) / 2, at), fd, parts, n, at)
WRITES(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n / 2, flags), fd,
	data, n, flags)
FAULT(ssize_t, sendto,
	(int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t size),
	fd, data, n, flags, to, size)
FAULT(ssize_t, read, (int fd, void *data, size_t n), fd, data, n)
FAULT(ssize_t, pread, (int fd, void *data, size_t n, off_t at), fd, data, n, at)
FAULT(ssize_t, recv, (int fd, void *data, size_t n, int flags), fd, data, n, flags)
FAULT(int, fsync, (int fd), fd)
FAULT(int, fdatasync, (int fd), fd)
FAULT(int, msync, (void *data, size_t n, int flags), data, n, flags)
FAULT(int, ftruncate, (int fd, off_t n), fd, n)
FAULT(int, fallocate, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
FAULT(int, fstat, (int fd, struct stat *st), fd, st)
FAULT(int, fstatat, (int fd, const char *path, struct stat *st, int flags), fd, path, st, flags)
FAULT(int, fchmod, (int fd, mode_t mode), fd, mode)
FAULT(int, mkdirat, (int fd, const char *path, mode_t mode), fd, path, mode)
FAULT(int, unlinkat, (int fd, const char *path, int flags), fd, path, flags)
FAULT(int, renameat, (int from, const char *old, int to, const char *new), from, old, to, new)
FAULT(int, flock, (int fd, int what), fd, what)
FAULT(int, socket, (int domain, int type, int protocol), domain, type, protocol)
FAULT(int, epoll_create1, (int flags), flags)
FAULT(int, epoll_ctl, (int fd, int what, int of, struct epoll_event *event), fd, what, of, event)
FAULT(int, epoll_wait, (int fd, struct epoll_event *events, int n, int ms), fd, events, n, ms)
FAULT(void *, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t from), at, n,
	protection, flags, fd, from)

int posix_fallocate(int fd, off_t at, off_t n)
{
	return faults_is_over("posix_fallocate") ? errno : REAL(posix_fallocate)(fd, at, n);
}

int fcntl(int fd, int command, ...)
{
	va_list rest;

	va_start(rest, command);
	void *argument = va_arg(rest, void *);
	va_end(rest);
	return faults_is_over("fcntl") ? -1 : REAL(fcntl)(fd, command, argument);
}

/* ---- the clock ---------------------------------------------------------- */

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int r = REAL(clock_gettime)(id, ret_time);

	if (r == 0 && faults.clock_ns && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = (int64_t)ret_time->tv_sec * 1000000000 + ret_time->tv_nsec +
			     *faults.clock_ns;

		ret_time->tv_sec = ns / 1000000000;
		ret_time->tv_nsec = ns % 1000000000;
	}
	return r;
}

time_t time(time_t *ret_time)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	*ret_time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
