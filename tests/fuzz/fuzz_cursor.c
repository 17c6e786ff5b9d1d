/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a named cursor, writable by every member of the store's group: refused, or positions
 * unchanged by writing and reading them again. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/read/cursor_file.h"
#include "tests/fuzz/fuzz.h"

static char directory[] = "/dev/shm/fuzz-cursor-XXXXXX";

static int remove_file(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

static void remove_store(void)
{
	(void)nftw(directory, remove_file, 8, FTW_DEPTH | FTW_PHYS);
}

static struct home *open_store(void)
{
	static struct home *home;
	struct home_options options = {.create = true, .runtime_dir = directory};
	char path[sizeof(directory) + 8];

	if (home)
		return home;
	REQUIRE(mkdtemp(directory) != NULL && atexit(remove_store) == 0);
	(void)snprintf(path, sizeof(path), "%s/store", directory);
	REQUIRE(home_open(path, &options, &home) == 0);
	return home;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct home *home = open_store();
	CLEANUP(cursor_release)
	struct cursor_file cursor = {.positions = NULL}, again = {.positions = NULL};
	AUTO_FD int fd =
		openat(home_cursors_fd(home), "x", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	int r = cursor_load(home, "x", false, &cursor);
	if (r != FOUND) {
		REQUIRE(r < 0 && *err_text(r));
		return 0;
	}
	REQUIRE(cursor_save(home, "x", cursor.uuid, cursor.positions, cursor.n) == 0);
	REQUIRE(cursor_load(home, "x", false, &again) == FOUND);
	REQUIRE(memcmp(again.uuid, cursor.uuid, sizeof(again.uuid)) == 0 && again.n == cursor.n);
	for (size_t i = 0; i < cursor.n; i++)
		REQUIRE(again.positions[i].feed == cursor.positions[i].feed &&
			again.positions[i].seq == cursor.positions[i].seq);
	REQUIRE(cursor_least(&again) == cursor_least(&cursor));
	return 0;
}
