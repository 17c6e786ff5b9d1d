/* SPDX-License-Identifier: Apache-2.0 */
/* A backup that `kinf restore` reads: refused with a sentence, or files and directories of a
 * store, and nothing else. The first byte says whether the headers get their checksums, which an
 * input would hardly ever have. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/manage/tar.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "tests/fuzz/fuzz.h"

#define BLOCK    512u
#define CHECKSUM 148u
#define MAGIC    257u

static char directory[] = "/dev/shm/fuzz-tar-XXXXXX";

static void put_checksums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
		unsigned sum = 0;
		char digits[8];

		if (memcmp(data + at + MAGIC, "ustar", 5) != 0)
			continue;
		memset(data + at + CHECKSUM, ' ', 8);
		for (size_t i = 0; i < BLOCK; i++)
			sum += data[at + i];
		(void)snprintf(digits, sizeof(digits), "%06o", sum & 0777777);
		memcpy(data + at + CHECKSUM, digits, 7);
	}
}

static void remove_directory(void)
{
	(void)rmdir(directory); /* it is empty after each input that was no failure */
}

static int look_at(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)type;
	REQUIRE(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
	REQUIRE(place->level <= 3);
	return place->level == 0 ? 0 : remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;

	if (!made)
		REQUIRE(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
	made = true;
	if (size < 1)
		return 0;
	AUTO_FD int fd = memfd_create("tar", MFD_CLOEXEC),
		    directory_fd = open(directory, O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE uint8_t *copy = malloc(size);

	REQUIRE(fd >= 0 && directory_fd >= 0 && copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		put_checksums(copy, size - 1);
	REQUIRE(write(fd, copy, size - 1) == (ssize_t)(size - 1) && lseek(fd, 0, SEEK_SET) == 0);
	int r = tar_read(fd, directory_fd, NULL, NULL);
	REQUIRE(r == 0 || *err_text(r));
	REQUIRE(nftw(directory, look_at, 8, FTW_DEPTH | FTW_PHYS) == 0);
	return 0;
}
