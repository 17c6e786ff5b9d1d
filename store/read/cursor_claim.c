/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/cursor_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/forks.h"
#include "store/read/cursor_file.h"

#define LOCK_TRIES 100

/* The claims of this process, for its forked children to give up. */
static struct {
	pthread_mutex_t mutex;
	pthread_once_t once;
	struct cursor_claim *first;
} claims = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void claims_before_fork(void)
{
	(void)pthread_mutex_lock(&claims.mutex);
}

static void claims_after_fork(void)
{
	(void)pthread_mutex_unlock(&claims.mutex);
}

static void claims_in_child(void)
{
	for (struct cursor_claim *claim = claims.first; claim; claim = claim->next) {
		cleanup_fd(&claim->fd);
		cleanup_fd(&claim->directory);
	}
	claims.first = NULL;
	(void)pthread_mutex_init(&claims.mutex, NULL);
}

static void claims_watch_forks(void)
{
	forks_watch(claims_before_fork, claims_after_fork, claims_in_child);
}

/* Opens and locks the file. Refuses a file not this user's alone before anything is written into
 * it: others may write to the directory. Other users can't open the file: their read lock would
 * keep the next follower out. Returns: 0; AGAIN: its former follower removed it meanwhile;
 * errors. */
static int claim_lock_once(int directory, const char *file, int *ret_fd)
{
	AUTO_FD int fd = proc_apart(openat(
		directory, file, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0600));
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int error = errno;
	struct stat st;
	char text[32];

	bool known = fd >= 0 ? fstat(fd, &st) == 0
			     : error == EACCES &&
				       fstatat(directory, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (known && st.st_uid != geteuid())
		return err_say(-EPERM,
			"it belongs to user %u: run as that user, or name another cursor",
			(unsigned)st.st_uid);
	if (fd < 0)
		return err_set(-error, "opening '%s'", file);
	if (!known || !S_ISREG(st.st_mode) || st.st_nlink > 1)
		return err_say(-EPERM,
			"'%s' is no file, or has other names: remove it, or name another cursor",
			file);
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno != EAGAIN && errno != EACCES)
			return err_set(-errno, "locking '%s'", file);
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		return err_say(
			ERR_LOCKED, "process %.*s has it", (int)strspn(text, "0123456789"), text);
	}
	if (fstat(fd, &st) < 0)
		return err_set(-errno, "'%s'", file);
	if (st.st_nlink == 0)
		return AGAIN;
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (!proc_may_write((uint64_t)n))
		return err_set(-EFBIG, "writing '%s'", file);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0)
		return err_set(-errno, "writing '%s'", file);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int claim_lock(int directory, const char *file, int *ret_fd)
{
	int r = AGAIN;

	for (int i = 0; r == AGAIN && i < LOCK_TRIES; i++)
		r = claim_lock_once(directory, file, ret_fd);
	return r == AGAIN ? err_say(ERR_LOCKED, "other followers take it and end all the time") : r;
}

int cursor_claim(struct home *home, const char *name, struct cursor_claim *claim)
{
	char file[CURSOR_NAME_MAX + 8];
	int fd = -1, r = cursor_check_name(name);

	if (r == 0 && home_cursors_fd(home) < 0)
		r = home_make_cursors(home);
	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), ".%s.lock", name);
	(void)pthread_once(&claims.once, claims_watch_forks);
	(void)pthread_mutex_lock(&claims.mutex);
	r = claim_lock(home_cursors_fd(home), file, &fd);
	if (r == -ENOENT) { /* the directory was removed and made again */
		err_ignore(r, "it is opened again");
		r = home_make_cursors(home);
		if (r == 0)
			r = claim_lock(home_cursors_fd(home), file, &fd);
	}
	if (r == 0) {
		*claim = (struct cursor_claim){.fd = fd, .held = true, .next = claims.first};
		claim->directory = proc_apart(fcntl(home_cursors_fd(home), F_DUPFD_CLOEXEC,
			0)); /* -1: the reflector removes the file */
		(void)snprintf(claim->name, sizeof(claim->name), "%s", name);
		claims.first = claim;
	}
	(void)pthread_mutex_unlock(&claims.mutex);
	if (r == ERR_LOCKED)
		return err_say(ERR_LOCKED,
			"cursor '%s' is in use: %s. End that follower, or name another cursor",
			name, err_text(r));
	if (r == -EROFS || r == -EACCES)
		return err_say(r,
			"cursor '%s': this process may not write to '%s/cursors', where a position "
			"is kept (%s): %s, or follow without a cursor",
			name, home_path(home), err_name(r),
			r == -EROFS ? "mount that directory writable"
				    : "become a member of the store's group");
	return r < 0 ? err_add(r, "cursor '%s'", name) : 0;
}

void cursor_unclaim(struct cursor_claim *claim)
{
	char file[CURSOR_NAME_MAX + 8];
	struct stat mine, there;

	if (!claim->held)
		return;
	(void)pthread_mutex_lock(&claims.mutex);
	struct cursor_claim **link = &claims.first;
	while (*link && *link != claim)
		link = &(*link)->next;
	if (*link) { /* else the claim is the parent's */
		*link = claim->next;
		/* It is locked: it can't be another follower's. */
		(void)snprintf(file, sizeof(file), ".%s.lock", claim->name);
		if (fstat(claim->fd, &mine) == 0 &&
			fstatat(claim->directory, file, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
			mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
			(void)unlinkat(claim->directory, file, 0); /* else the reflector does it */
		cleanup_fd(&claim->fd);
		cleanup_fd(&claim->directory);
	}
	claim->held = false;
	(void)pthread_mutex_unlock(&claims.mutex);
}
