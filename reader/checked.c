/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/checked.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "store/env/generation.h"
#include "store/env/text_file.h"

#define CHECKED_FILE  "checked"
#define CHECKED_LINES 64 /* the newest ones */
#define LINE_BYTES    33 /* 32 hex digits and a newline */

/* ---- the store ---------------------------------------------------------- */

static bool checked_add_file(struct buf *text, int directory_fd, const char *name)
{
	struct stat st;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	char line[256];
	int n = snprintf(line, sizeof(line),
		"%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ".%09ld %" PRId64 ".%09ld\n",
		(uint64_t)st.st_dev, (uint64_t)st.st_ino, (int64_t)st.st_size,
		(int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (int64_t)st.st_ctim.tv_sec,
		st.st_ctim.tv_nsec);
	buf_put(text, line, (size_t)n);
	return true;
}

/* Adds the files of the generation named by CURRENT. */
static bool checked_add_part(struct buf *text, int directory_fd)
{
	static const char *const files[] = {"data.mdb", "STATE"};
	uint32_t number = 0;
	char name[64];

	int r = directory_fd < 0 ? NOT_FOUND : generation_current(directory_fd, &number);
	err_ignore(r < 0 ? r : 0, "the check reports it");
	bool added = r == FOUND && checked_add_file(text, directory_fd, "CURRENT");
	for (size_t i = 0; added && i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(name, sizeof(name), "gen-%" PRIu32 "/%s", number, files[i]);
		added = checked_add_file(text, directory_fd, name);
	}
	return added;
}

void checked_identify(const struct home *home, struct checked *ret_checked)
{
	struct buf text;

	ret_checked->line[0] = '\0';
	buf_init(&text, 4096);
	buf_put(&text, KINF_VERSION "\n", strlen(KINF_VERSION "\n"));
	if (checked_add_part(&text, home_journal_fd(home)) &&
		checked_add_part(&text, home_index_fd(home)) && !buf_error(&text))
		(void)snprintf(ret_checked->line, sizeof(ret_checked->line),
			"%016" PRIx64 "%016" PRIx64, hash_bytes(buf_bytes(&text), 0),
			hash_bytes(buf_bytes(&text), 1));
	buf_release(&text);
}

/* ---- the file ----------------------------------------------------------- */

/* Opens the directory, writable for nobody else; MAKE: makes it. -1: there is none. */
static int checked_open_directory(bool make)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
	char path[4096];
	struct stat st;

	bool given = cache && cache[0] == '/';
	int n = given                    ? snprintf(path, sizeof(path), "%s", cache)
		: user && user[0] == '/' ? snprintf(path, sizeof(path), "%s/.cache", user)
					 : -1;
	if (n < 0 || (size_t)n + sizeof("/kinf") > sizeof(path))
		return -1;
	if (make)
		(void)mkdir(path, 0700); /* may be there */
	size_t used = strlen(path);
	(void)snprintf(path + used, sizeof(path) - used, "/kinf");
	if (make)
		(void)mkdir(path, 0700);
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0022))
		return -1;
	return TAKE_FD(fd);
}

/* Reads the file; "" if there is none. */
static void checked_read(int directory_fd, char text[CHECKED_LINES * LINE_BYTES + 1])
{
	AUTO_FD int fd = -1;
	struct stat st;

	int r = text_file_read(
		directory_fd, CHECKED_FILE, text, CHECKED_LINES * LINE_BYTES + 1, &fd);
	err_ignore(r < 0 ? r : 0, "the store is checked again");
	if (r < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0022))
		text[0] = '\0';
}

bool checked_is_known(const struct checked *checked)
{
	char text[CHECKED_LINES * LINE_BYTES + 1];
	AUTO_FD int fd = checked->line[0] ? checked_open_directory(false) : -1;

	if (fd < 0)
		return false;
	checked_read(fd, text);
	return strstr(text, checked->line) != NULL;
}

void checked_remember(const struct home *home, const struct checked *checked)
{
	char text[CHECKED_LINES * LINE_BYTES + 1], all[LINE_BYTES + sizeof(text)];
	struct checked now;

	checked_identify(home, &now);
	if (!checked->line[0] || strcmp(now.line, checked->line) != 0)
		return;
	AUTO_FD int fd = checked_open_directory(true);
	if (fd < 0)
		return;
	checked_read(fd, text);
	text[(CHECKED_LINES - 1) * LINE_BYTES] = '\0';
	(void)snprintf(all, sizeof(all), "%s\n%s", checked->line, text);
	int r = text_file_replace(fd, CHECKED_FILE, all, 0600);
	err_ignore(r, "the store is checked again");
}
