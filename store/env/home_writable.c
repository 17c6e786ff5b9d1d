/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"

/* Cuts PATH to the longest part of it that exists. Returns: 0, ERR_CONFIG. */
static int writable_find_existing(char *path, struct stat *ret_stat)
{
	struct stat link;

	while (stat(path, ret_stat) < 0) {
		int error = errno;

		if (error == ENOENT && lstat(path, &link) == 0)
			return err_say(ERR_CONFIG, "the link '%s' leads nowhere", path);
		if (error != ENOENT && error != ENOTDIR)
			return err_say(ERR_CONFIG, "'%s': %s", path, strerror(error));
		char *slash = strrchr(path, '/');
		slash[slash == path] = '\0'; /* the root keeps its slash */
	}
	return 0;
}

int home_check_writable(const char *path)
{
	char there[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(there, sizeof(there), "%s", path) >= sizeof(there))
		return err_say(ERR_CONFIG,
			"the path '%.60s...' has %zu bytes; a path has at most %d", path,
			strlen(path), PATH_MAX - 1);
	int r = writable_find_existing(there, &st);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return err_say(ERR_CONFIG, "'%s' is no directory", there);
	if (faccessat(AT_FDCWD, there, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EROFS)
		return err_say(
			ERR_CONFIG, "'%s' is on a file system that is mounted read-only", there);
	return err_say(ERR_CONFIG,
		"user %u may not write to '%s': check as the user who is to run kinf, or as root",
		(unsigned)geteuid(), there);
}
