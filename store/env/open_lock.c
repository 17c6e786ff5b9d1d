/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/open_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define PAUSE_NS 10000000L

/* The descriptors that this process has open, for its forked children to close. The mutex is never held while a
 * thread waits. */
static struct {
	pthread_mutex_t mutex;
	pthread_once_t once;
	struct open_lock *first;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void held_before_fork(void)
{
	(void)pthread_mutex_lock(&held.mutex);
}

static void held_after_fork(void)
{
	(void)pthread_mutex_unlock(&held.mutex);
}

static void held_in_child(void)
{
	for (struct open_lock *lock = held.first; lock; lock = lock->next)
		cleanup_fd(&lock->fd);
	held.first = NULL;
	(void)pthread_mutex_unlock(&held.mutex);
}

static void held_watch_forks(void)
{
	(void)pthread_atfork(held_before_fork, held_after_fork, held_in_child);
}

void open_lock_release(struct open_lock *lock)
{
	if (lock->fd < 0)
		return;
	(void)flock(lock->fd, LOCK_UN); /* fails for no descriptor of ours */
	(void)pthread_mutex_lock(&held.mutex);
	struct open_lock **link = &held.first;
	while (*link && *link != lock)
		link = &(*link)->next;
	if (*link)
		*link = lock->next;
	cleanup_fd(&lock->fd);
	(void)pthread_mutex_unlock(&held.mutex);
}

/* Returns the pid that /proc/locks names for the flock on the file; 0: none, for instance because the holder is in
 * another PID namespace. Device numbers differ from those of stat(2) on some file systems, so the inode's number
 * alone is enough where no line has both. */
static int32_t open_lock_holder(const struct stat *file)
{
	FILE *locks = fopen("/proc/locks", "re");
	int32_t pid, found = 0;
	unsigned major, minor;
	uint64_t inode;
	char line[256];

	while (locks && fgets(line, sizeof(line), locks)) {
		/* "1: FLOCK  ADVISORY  WRITE 4711 fe:01:123456 0 EOF" */
		if (sscanf(line, "%*s FLOCK ADVISORY WRITE %" SCNd32 " %x:%x:%" SCNu64, &pid, &major, &minor,
			    &inode) != 4 || inode != file->st_ino)
			continue;
		found = pid;
		if (makedev(major, minor) == file->st_dev)
			break;
	}
	if (locks)
		(void)fclose(locks); /* nothing was written through it */
	return found;
}

static int __attribute__((cold)) open_lock_busy(const struct open_lock *lock, uint64_t wait_ns)
{
	char path[64], name[32] = "?";
	struct stat st;
	int32_t pid = fstat(lock->fd, &st) < 0 ? 0 : open_lock_holder(&st);

	if (pid <= 0)
		return err_say(ERR_LOCKED,
			"a process that can't be named from here, perhaps in another PID namespace, has held "
			OPEN_LOCK_FILE " for %.1f s: if it is stopped, continue it or end it",
			(double)wait_ns / 1e9);
	(void)snprintf(path, sizeof(path), "/proc/%" PRId32 "/comm", pid);
	FILE *file = fopen(path, "re");
	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		(void)fclose(file); /* nothing was written through it */
	return err_say(ERR_LOCKED,
		"process %" PRId32 " (%s) has held " OPEN_LOCK_FILE " for %.1f s: if it is stopped, continue it with "
		"'kill -CONT %" PRId32 "', or end it",
		pid, name, (double)wait_ns / 1e9, pid);
}

int open_lock_take(int generation_fd, uint64_t wait_ns, struct open_lock *lock)
{
	uint64_t began = proc_monotonic_ns();
	struct stat st;

	(void)pthread_once(&held.once, held_watch_forks);
	/* Opens the file and enters it into the list in one step: a fork between the two would share it. */
	(void)pthread_mutex_lock(&held.mutex);
	lock->fd = openat(generation_fd, OPEN_LOCK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r = lock->fd < 0 ? err_set(-errno, "opening " OPEN_LOCK_FILE) : 0;
	if (r == 0) {
		lock->next = held.first;
		held.first = lock;
	}
	(void)pthread_mutex_unlock(&held.mutex);
	while (r == 0 && flock(lock->fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			r = err_set(-errno, "locking " OPEN_LOCK_FILE);
		else if (proc_monotonic_ns() - began >= wait_ns)
			r = open_lock_busy(lock, wait_ns);
		else
			(void)nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
	if (r == 0 && (fstat(lock->fd, &st) < 0 || st.st_nlink == 0))
		r = err_say(-ENOENT, "the generation was removed while it was opened");
	if (r < 0)
		open_lock_release(lock);
	return r;
}
