/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into a program (LD_PRELOAD): records its writes below a directory, and its syncs.
 *
 *	KINF_TORTURE_TREE=DIRECTORY  absolute
 *	KINF_TORTURE_LOG=FILE        records are appended: struct record, then SIZE bytes
 *
 * It does not see writes into a mapping. With durability `disk` the journal is not written by a
 * mapping.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC visibility push(default)

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))
#define FDS_MAX        1024

/* The letters are power_cuts.py's. */
struct record {
	/* o open, w write, d write durable at its return, t truncate, s sync, r rename, u unlink, m
	 * mkdir */
	char what;
	char unused[7];
	uint64_t inode, at, size;
};

static struct {
	bool ours, durable;
	uint64_t inode;
} files[FDS_MAX];

static void record_put(
	char what, uint64_t inode, uint64_t at, const struct iovec *parts, int n, size_t size)
{
	static int log = -1;
	struct record head = {.what = what, .inode = inode, .at = at, .size = size};
	struct iovec all[68] = {{&head, sizeof(head)}};
	const char *name = getenv("KINF_TORTURE_LOG");

	if (log < 0 && name)
		log = (int)syscall(SYS_openat, AT_FDCWD, name,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int used = 1;
	for (int i = 0; i < n && used < 68 && size; i++) {
		size_t part = parts[i].iov_len < size ? parts[i].iov_len : size;

		all[used++] = (struct iovec){parts[i].iov_base, part};
		size -= part;
	}
	if (log < 0 || syscall(SYS_writev, log, all, (long)used) < 0)
		abort();
}

static void record_text(char what, uint64_t inode, const char *text)
{
	struct iovec part = {(void *)(uintptr_t)text, strlen(text)};

	record_put(what, inode, 0, &part, 1, part.iov_len);
}

/* Resolves NAME below the directory FD. Returns whether it is in the recorded tree. */
static bool record_path(int fd, const char *name, char path[2 * PATH_MAX])
{
	const char *tree = getenv("KINF_TORTURE_TREE");
	char link[64], directory[PATH_MAX] = "";

	if (*name != '/' && fd != AT_FDCWD) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, directory, sizeof(directory) - 1);
		if (n > 0)
			directory[n] = '\0';
	}
	(void)snprintf(path, 2 * PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", name);
	return tree && strncmp(path, tree, strlen(tree)) == 0;
}

static int record_open(int fd, int directory, const char *name, int flags)
{
	int error = errno;
	char path[2 * PATH_MAX];
	struct stat st;

	if (fd < 0 || fd >= FDS_MAX)
		return fd;
	files[fd].ours = record_path(directory, name, path) && fstat(fd, &st) == 0;
	if (files[fd].ours) {
		files[fd].inode = st.st_ino;
		files[fd].durable = (flags & O_DSYNC) != 0;
		if (flags & O_CREAT)
			record_text('o', st.st_ino, path);
	}
	errno = error;
	return fd;
}

int open(const char *path, int flags, ...)
{
	va_list rest;

	va_start(rest, flags);
	unsigned mode = va_arg(rest, unsigned);
	va_end(rest);
	return record_open(REAL(open)(path, flags, mode), AT_FDCWD, path, flags);
}

int openat(int fd, const char *path, int flags, ...)
{
	va_list rest;

	va_start(rest, flags);
	unsigned mode = va_arg(rest, unsigned);
	va_end(rest);
	return record_open(REAL(openat)(fd, path, flags, mode), fd, path, flags);
}

static bool record_is_ours(int fd)
{
	return fd >= 0 && fd < FDS_MAX && files[fd].ours;
}

static ssize_t record_write(int fd, ssize_t n, const struct iovec *parts, int n_parts, off_t at)
{
	if (n > 0 && record_is_ours(fd))
		record_put(files[fd].durable ? 'd' : 'w', files[fd].inode, (uint64_t)at, parts,
			n_parts, (size_t)n);
	return n;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	struct iovec part = {(void *)(uintptr_t)data, n};

	return record_write(fd, REAL(pwrite)(fd, data, n, at), &part, 1, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at)
{
	return record_write(fd, REAL(pwritev)(fd, parts, n, at), parts, n, at);
}

ssize_t write(int fd, const void *data, size_t n)
{
	struct iovec part = {(void *)(uintptr_t)data, n};
	off_t at = record_is_ours(fd) ? lseek(fd, 0, SEEK_CUR) : 0;

	return record_write(fd, REAL(write)(fd, data, n), &part, 1, at);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
	off_t at = record_is_ours(fd) ? lseek(fd, 0, SEEK_CUR) : 0;

	return record_write(fd, REAL(writev)(fd, parts, n), parts, n, at);
}

static int record_sync(int fd, int r)
{
	if (r == 0 && record_is_ours(fd))
		record_put('s', files[fd].inode, 0, NULL, 0, 0);
	return r;
}

int fsync(int fd)
{
	return record_sync(fd, REAL(fsync)(fd));
}

int fdatasync(int fd)
{
	return record_sync(fd, REAL(fdatasync)(fd));
}

int ftruncate(int fd, off_t size)
{
	int r = REAL(ftruncate)(fd, size);

	if (r == 0 && record_is_ours(fd))
		record_put('t', files[fd].inode, (uint64_t)size, NULL, 0, 0);
	return r;
}

int renameat(int from, const char *old, int to, const char *new)
{
	char paths[4 * PATH_MAX], *second = paths;
	bool ours = record_path(from, old, paths);

	second += strlen(paths) + 1;
	ours = record_path(to, new, second) && ours;
	second[-1] = '\n';
	int r = REAL(renameat)(from, old, to, new);
	if (r == 0 && ours)
		record_text('r', 0, paths);
	return r;
}

int unlinkat(int fd, const char *name, int flags)
{
	char path[2 * PATH_MAX];
	bool ours = record_path(fd, name, path);
	int r = REAL(unlinkat)(fd, name, flags);

	if (r == 0 && ours)
		record_text('u', 0, path);
	return r;
}

int mkdirat(int fd, const char *name, mode_t mode)
{
	char path[2 * PATH_MAX];
	bool ours = record_path(fd, name, path);
	int r = REAL(mkdirat)(fd, name, mode);

	if (r == 0 && ours)
		record_text('m', 0, path);
	return r;
}
