/* SPDX-License-Identifier: Apache-2.0 */
/* A child with a small file system of its own (tmpfs), which it can fill. */
#ifndef UNIT_FULL_DISK_RIG_H
#define UNIT_FULL_DISK_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/scratch.h"

#define KIB      1024u
#define NO_MOUNT 255

/* In a child: ends it with the line, from 1 on. */
#define CHILD_REQUIRES(condition) \
	do { \
		if (!(condition)) \
			_exit(__LINE__ & 127); \
	} while (0)

static inline bool child_writes(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0;
}

/* Mounts a file system of 512 KiB at PATH, in namespaces of the calling child. */
static inline void child_mounts(const char *path)
{
	char uid[32], gid[32];

	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !child_writes("/proc/self/uid_map", uid) ||
		!child_writes("/proc/self/setgroups", "deny") ||
		!child_writes("/proc/self/gid_map", gid) ||
		mount("tmpfs", path, "tmpfs", 0, "size=2m") < 0)
		_exit(NO_MOUNT);
}

/* Takes all free blocks. Returns the file that has them. */
static inline int child_fills(const char *path)
{
	char name[512], page[4096] = "x";

	(void)snprintf(name, sizeof(name), "%s/filler", path);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) == (ssize_t)sizeof(page))
		;
	return fd;
}

/* Runs BODY in a child. Returns its wait status. */
static inline int in_child(void body(const char *path))
{
	char path[512];
	int status;

	(void)snprintf(path, sizeof(path), "%s", scratch_path("disk"));
	cr_assert_eq(mkdir(path, 0700), 0);
	pid_t child = fork();
	if (child == 0) {
		(void)sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL},
			NULL); /* a sanitizer's */
		body(path);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_MOUNT)
		cr_skip_test("no mount namespaces here");
	return status;
}

/* Does what a file system does that writes each change to another place: no page of the file has
 * a block any more. */
static inline void child_takes_blocks(int fd, off_t from)
{
	struct stat st;

	CHILD_REQUIRES(fstat(fd, &st) == 0);
	CHILD_REQUIRES(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
			       st.st_size - from) == 0);
}

#endif
