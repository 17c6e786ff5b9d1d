/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"

/* ---- ending ------------------------------------------------------------- */

enum proc_exit proc_exit_of(int error)
{
	switch (error) {
	case ERR_CONFIG:
	case ERR_SYNTAX:
	case ERR_UNSUPPORTED:
	case -EACCES:
	case -EPERM:
	case -EROFS: /* a missing right: a restart alone does not help */
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

/* ---- one instance per role ---------------------------------------------- */

/* few programs have so many files open; the kernel's table takes 4 KiB then */
#define APART 256

static const struct flock lock_whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static int proc_write_pid(int fd, const char *name)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	errno = ENOSPC; /* of a short write */
	/* Not truncated first: on a full disk another file might get its block. */
	if (pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0)
		return 0;
	/* The lock counts; no pid is better than a wrong one. */
	if ((errno == ENOSPC || errno == EDQUOT) && ftruncate(fd, 0) == 0)
		return 0;
	return err_set(-errno, "writing the pid into lock '%s'", name);
}

int proc_lock(int directory_fd, const char *name)
{
	AUTO_FD int fd =
		openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(-errno, "opening lock '%s'", name);
	struct flock lock = lock_whole_file;
	char text[32];
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno != EAGAIN && errno != EACCES)
			return err_set(-errno, "locking '%s'", name);
		ssize_t size = pread(fd, text, sizeof(text), 0); /* the holder's pid */
		int digits = 0;
		while (digits < size && text[digits] >= '0' && text[digits] <= '9')
			digits++;
		if (!digits)
			return err_say(ERR_LOCKED, "'%s' is held by another process", name);
		return err_say(ERR_LOCKED, "'%s' is held by process %.*s", name, digits, text);
	}
	int r = proc_write_pid(fd, name);
	return r < 0 ? r : TAKE_FD(fd);
}

int proc_lock_within(int directory_fd, const char *name, uint64_t ns)
{
	const struct timespec pause = {0, 10000000};
	uint64_t began = proc_monotonic_ns();
	int fd;

	while ((fd = proc_lock(directory_fd, name)) == ERR_LOCKED &&
		proc_monotonic_ns() - began < ns)
		(void)nanosleep(&pause, NULL);
	return fd;
}

static int proc_show_new_lock(int directory_fd, const char *name, unsigned mode)
{
	struct flock lock = lock_whole_file;
	char made[64];

	if ((size_t)snprintf(made, sizeof(made), ".%s.new", name) >= sizeof(made))
		return err_set(-ENAMETOOLONG, "lock '%s'", name);
	(void)unlinkat(directory_fd, made, 0); /* of a killed process, or absent */
	int r = failpoint_pass(FAILPOINT_LOCK_SHOW);
	if (r < 0)
		return r;
	AUTO_FD int fd = openat(
		directory_fd, made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return err_set(-errno, "making lock '%s'", name);
	r = proc_write_pid(fd, name);
	if (r < 0)
		return r;
	if (fchmod(fd, mode) < 0 || renameat(directory_fd, made, directory_fd, name) < 0)
		return err_set(-errno, "making lock '%s'", name);
	return TAKE_FD(fd);
}

int proc_show_lock(int directory_fd, const char *name, unsigned mode)
{
	struct flock lock = lock_whole_file;
	int r = proc_show_new_lock(directory_fd, name, mode);

	if (r != -ENOSPC && r != -EDQUOT)
		return r;
	/* Another process may hold a read lock on the previous process's file. */
	AUTO_FD int fd = openat(directory_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0 || fchmod(fd, mode) < 0)
		return r;
	int written = proc_write_pid(fd, name);
	if (written < 0)
		return written;
	err_ignore(r, "the old file is locked now");
	return TAKE_FD(fd);
}

bool proc_is_locked(int directory_fd, const char *name)
{
	/* Another user's file may be a pipe or have a lease: opening it would wait. */
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	/* As a reader: only a role's write lock conflicts. */
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	if (fd < 0)
		return errno != ENOENT;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return true;
	return lock.l_type != F_UNLCK;
}

/* ---- clocks, boot, processes, randomness -------------------------------- */

static uint64_t proc_clock_ns(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now); /* fails only for unknown clocks */
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t proc_monotonic_ns(void)
{
	return proc_clock_ns(CLOCK_MONOTONIC);
}

uint64_t proc_realtime_ns(void)
{
	return proc_clock_ns(CLOCK_REALTIME);
}

bool proc_is_aged(uint64_t then, uint64_t limit_ns, uint64_t steady_ns)
{
	const uint64_t clocks[] = {proc_realtime_ns(), steady_ns};
	bool aged = true;

	for (int i = 0; i < 2; i++)
		aged &= (clocks[i] > then ? clocks[i] - then : then - clocks[i]) > limit_ns;
	return aged;
}

uint64_t proc_boottime_ns(void)
{
	return proc_clock_ns(CLOCK_BOOTTIME);
}

int proc_ms_until(uint64_t end_ns)
{
	uint64_t now = proc_monotonic_ns();

	if (end_ns == UINT64_MAX)
		return -1;
	if (end_ns <= now)
		return 0;
	uint64_t ms = (end_ns - now - 1) / 1000000 + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

unsigned proc_cpus(void)
{
	static _Atomic unsigned cpus;
	cpu_set_t set;

	if (!cpus)
		cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	return cpus;
}

int proc_failed(int error, const char *path)
{
	if (access("/proc/self/stat", F_OK) < 0)
		return err_say(ERR_UNSUPPORTED,
			"'%s' can't be read, because /proc is not mounted here: 'mount -t proc "
			"proc /proc', as root, in this root directory or container",
			path);
	if (error == -ENOENT && strncmp(path, "/proc/sys/", 10) == 0)
		return err_say(ERR_UNSUPPORTED,
			"'%s' can't be read, because /proc is mounted without it: mount it without "
			"'subset=pid' (a service: ProcSubset=all)",
			path);
	return err_set(error, "reading '%s'", path);
}

/* Reads a short file of /proc as text. */
static int proc_read_file(const char *path, char *text, size_t size)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n < 0)
		return proc_failed(-errno, path);
	text[n] = '\0';
	return 0;
}

void proc_begin(void)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
	int fd = STDIN_FILENO;
	sigset_t set;

	(void)umask(umask(0777) & 0077);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		(void)sigaddset(&set, faults[i]);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);

	/* open(2) gives the lowest free number. A directory can be neither read nor written. */
	while (fd <= STDERR_FILENO &&
		(fcntl(fd, F_GETFD) >= 0 || open("/", O_RDONLY | O_DIRECTORY) == fd))
		fd++;
}

int proc_above_standard(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int error = errno;
	(void)close(fd); /* nothing was written */
	errno = error;
	return above;
}

bool proc_may_write(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= size;
}

int proc_apart(int fd)
{
	int apart = fd < 0 || fd >= APART ? fd : fcntl(fd, F_DUPFD_CLOEXEC, APART);

	if (fd >= 0 && apart < 0)
		return proc_above_standard(fd);
	if (apart != fd)
		(void)close(fd); /* nothing was written */
	return apart;
}

int proc_path_of(int fd, char *path, size_t size)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, size);
	if (n < 0)
		return proc_failed(-errno, link);
	if ((size_t)n == size)
		return err_set(-ENAMETOOLONG, "the path of '%s'", link);
	path[n] = '\0';
	return 0;
}

int proc_boot_id(char ret_id[33])
{
	const char *given = NULL;
	char text[64], id[33];
	size_t n = 0;

#ifdef KINF_FAILPOINTS
	given = getenv("KINF_BOOT_ID");
#endif
	if (!given) {
		int r = proc_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));

		if (r < 0)
			return r;
		given = text;
	}
	/* 32 hex digits, with dashes */
	for (const char *p = given; *p && *p != '\n'; p++) {
		if (*p == '-')
			continue;
		if (!strchr("0123456789abcdef", *p) || n == 32)
			return err_say(ERR_SYNTAX, "not a boot id: '%s'", given);
		id[n++] = *p;
	}
	if (n != 32)
		return err_say(ERR_SYNTAX, "not a boot id: '%s'", given);
	id[n] = '\0';
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

/* Returns the error for an unreadable file of process PID; R is the cause. */
static int proc_gone(int r, int32_t pid)
{
	return r == ERR_UNSUPPORTED || err_is_shortage(r) ? r
							  : err_set(-ESRCH, "process %d", (int)pid);
}

/* The line is "pid (comm) state ppid ...". Comm may hold any character: fields count from the last
 * ')'. State is field 3, user and kernel time 14 and 15, start 22. */
int proc_read_stat(int32_t pid, struct proc_stat *ret_stat)
{
	char path[64], text[1024], state;
	uint64_t user, kernel, start;

	/* /proc may be of another PID namespace, with another pid for this process. */
	(void)snprintf(path, sizeof(path), pid == getpid() ? "/proc/self/stat" : "/proc/%d/stat",
		(int)pid);
	int r = proc_read_file(path, text, sizeof(text));
	if (r < 0)
		return proc_gone(r, pid);
	const char *end = strrchr(text, ')');
	if (!end || sscanf(end,
			    ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
			    " %*s %*s %*s %*s %*s %*s %" SCNu64,
			    &state, &user, &kernel, &start) != 4)
		return err_set(-ESRCH, "process %d: '%s' is not understood", (int)pid, path);
	*ret_stat = (struct proc_stat){state, user + kernel, start};
	return 0;
}

int proc_read_memory(int32_t pid, struct proc_memory *ret_memory)
{
	char path[64], text[256];
	uint64_t resident, of_files, page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	int r = proc_read_file(path, text, sizeof(text));
	if (r < 0)
		return proc_gone(r, pid);
	if (sscanf(text, "%*s %" SCNu64 " %" SCNu64, &resident, &of_files) != 2 ||
		of_files > resident)
		return err_set(-ESRCH, "process %d: '%s' is not understood", (int)pid, path);
	*ret_memory = (struct proc_memory){resident * page, (resident - of_files) * page};
	return 0;
}

int proc_start_ticks(int32_t pid, uint64_t *ret_ticks)
{
	struct proc_stat stat;
	int r = proc_read_stat(pid, &stat);

	if (r < 0)
		return r;
	if (stat.state == 'Z' || stat.state == 'X')
		return err_set(-ESRCH, "process %d", (int)pid);
	*ret_ticks = stat.start_ticks;
	return 0;
}

int proc_raise_files(unsigned most)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_set(-errno, "reading the limit of open files");
	if (limit.rlim_max < PROC_FILES_LEAST)
		return err_say(-EMFILE,
			"this process may have %llu open files, and needs %u at least: raise the "
			"limit (ulimit -n, LimitNOFILE= of a service)",
			(unsigned long long)limit.rlim_max, PROC_FILES_LEAST);
	if (limit.rlim_cur < most) {
		limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* the lower limit suits fewer readers */
	}
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

DIR *proc_list(int directory_fd, const char *path)
{
	int fd = openat(directory_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !list)
		(void)close(fd); /* read-only: nothing can be lost */
	return list;
}

void proc_end_list(DIR **list)
{
	if (*list)
		(void)closedir(*list);
	*list = NULL;
}
