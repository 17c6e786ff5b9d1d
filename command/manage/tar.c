/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/manage/children.h"
#include "common/bytes.h"
#include "common/err.h"
#include "store/env/text_file.h"

#define MANIFEST  "kinf-backup"
#define WAIT_MS   20 /* for tar, between two questions whether to end */
#define WALK_OPEN 8

/* Runs tar in DIRECTORY with FD as its file NUMBER, and ends it when WAIT fails. */
static int tar_run(const char *directory, int fd, int number, const char *const *arguments,
	tar_wait_fn *wait, void *arg)
{
	const struct child_start start = {.directory = directory, .fd = fd, .number = number};
	int status;
	pid_t pid;
	int r = child_start("tar", (char *const *)(uintptr_t)arguments, &start, &pid);

	if (r < 0)
		return r;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (r == 0 && (r = wait(arg)) < 0)
			(void)kill(pid, SIGTERM);
		(void)poll(NULL, 0, WAIT_MS);
	}
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NOT_EXECUTED)
		return err_say(-ENOENT, "the program 'tar' can't be started: install it");
	return err_say(ERR_CORRUPT, "'tar' failed (its message is above)");
}

int tar_write(const char *directory, int fd, tar_wait_fn *wait, void *arg)
{
	/* A copy's databases are of generation 1. */
	static const char *const arguments[] = {"tar", "--create", "--file=-", "--owner=0",
		"--group=0", "--numeric-owner", MANIFEST, "journal/gen-1/STATE",
		"journal/gen-1/data.mdb", "journal/CURRENT", "index/gen-1/STATE",
		"index/gen-1/data.mdb", "index/CURRENT", "id", NULL};
	int directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory_fd < 0)
		return err_set(-errno, "'%s'", directory);
	int r = text_file_replace(directory_fd, MANIFEST,
		"kinf-backup 1\nread it with: kinf restore FILE DIR\n", 0600);
	(void)close(directory_fd);
	if (r == 0)
		r = tar_run(directory, fd, STDOUT_FILENO, arguments, wait, arg);
	return r < 0 ? err_add(r, "writing the backup") : 0;
}

static size_t tar_root; /* the length of the directory's path: nftw() has no argument for it */

/* Returns 1 for a file that no backup has. */
static int tar_check(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	static const char *const files[] = {MANIFEST, "id", "journal/CURRENT", "index/CURRENT",
		"journal/gen-[1-9]*/STATE", "journal/gen-[1-9]*/data.mdb", "index/gen-[1-9]*/STATE",
		"index/gen-[1-9]*/data.mdb"};
	const char *name = path + tar_root;

	(void)walk;
	if (type == FTW_D)
		return 0;
	for (size_t i = 0; type == FTW_F && S_ISREG(st->st_mode) && i < ARRAY_SIZE(files); i++)
		if (fnmatch(files[i], name, FNM_PATHNAME) == 0)
			return 0;
	return err_say(
		ERR_CORRUPT, "this is not a backup of kinf: it holds something else: '%s'", name);
}

int tar_read(int fd, const char *directory, tar_wait_fn *wait, void *arg)
{
	static const char *const arguments[] = {
		"tar", "--extract", "--file=-", "--no-same-owner", "--no-same-permissions", NULL};
	char manifest[PATH_MAX];
	int r = tar_run(directory, fd, STDIN_FILENO, arguments, wait, arg);

	if (r < 0)
		return err_add(r, "this is not a whole backup of kinf");
	(void)snprintf(manifest, sizeof(manifest), "%s/" MANIFEST, directory);
	if (access(manifest, F_OK) < 0)
		return err_say(
			ERR_CORRUPT, "this is not a backup of kinf: '" MANIFEST "' is missing");
	tar_root = strlen(directory) + 1;
	return nftw(directory, tar_check, WALK_OPEN, FTW_PHYS);
}
