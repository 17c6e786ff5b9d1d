/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scratch.h"

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "tests/unit/unit.h"

#define MEMORY_MIN ((uint64_t)1 << 30)

static char folder[64];
static pid_t owner;
static bool in_memory;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_folder(void)
{
	if (getpid() == owner)
		(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns whether tests can keep their files in memory; their many syncs cost no time there. A
 * container's 64 MiB are too few for parallel tests. */
static bool scratch_fits_memory(void)
{
	struct statvfs fs;

	return access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &fs) == 0 &&
	       (uint64_t)fs.f_bavail * fs.f_frsize >= MEMORY_MIN;
}

void scratch_in_memory(void)
{
	in_memory = true;
}

const char *scratch(void)
{
	if (owner == getpid() || (owner && folder[0]))
		return folder;
	(void)snprintf(folder, sizeof(folder), "%s/kinf-unit-XXXXXX",
		in_memory || scratch_fits_memory() ? "/dev/shm" : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
	owner = getpid();
	cr_assert_eq(atexit(remove_folder), 0);
	return folder;
}

const char *scratch_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	(void)snprintf(path, PATH_MAX, "%s/%s", scratch(), name);
	return path;
}

static void run(const char *const arguments[])
{
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void scratch_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	cr_assert_not_null(file, "%s", path);
	cr_assert_geq(fputs(text, file), 0);
	cr_assert_eq(fclose(file), 0);
}

void scratch_copy(const char *from, const char *to)
{
	run((const char *const[]){"cp", "-a", from, to, NULL});
}

void scratch_chmod(const char *mode, const char *path)
{
	run((const char *const[]){"chmod", "-R", mode, path, NULL});
}

void scratch_remove(const char *path)
{
	run((const char *const[]){"rm", "-r", path, NULL});
}
