/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/generation.h"

#define BLOCK     512
#define PIECE     ((size_t)1 << 20)
#define SMALL_MAX 4096 /* bytes of a file other than a database */
#define MANIFEST  "kinf-backup"
#define DATABASE  "data.mdb"
#define WAIT_MS   200 /* for the other end of a pipe, between two reports */

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
		magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "a tar header is one block");

struct tar {
	int fd, directory;
	bool is_file;
	uint64_t done;
	tar_progress_fn *progress;
	void *arg;
	uint8_t piece[PIECE];
};

static unsigned tar_checksum(const struct tar_header *header)
{
	struct tar_header blank = *header;
	const uint8_t *bytes = (const uint8_t *)&blank;
	unsigned sum = 0;

	memset(blank.checksum, ' ', sizeof(blank.checksum));
	for (size_t i = 0; i < BLOCK; i++)
		sum += bytes[i];
	return sum;
}

static int tar_report(struct tar *tar, size_t size)
{
	tar->done += size;
	return tar->progress ? tar->progress(tar->arg, tar->done) : 0;
}

/* Waits for the tar to be ready for EVENTS. Reports meanwhile: the caller may be told to end. */
static int tar_wait(struct tar *tar, short events)
{
	struct pollfd wait = {.fd = tar->fd, .events = events};
	int r = 0;

	while (r == 0 && poll(&wait, 1, WAIT_MS) == 0)
		r = tar_report(tar, 0);
	return r;
}

/* ---- writing ------------------------------------------------------------ */

static int tar_put(struct tar *tar, const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t left = size; left;) {
		int r = tar_wait(tar, POLLOUT);

		if (r < 0)
			return r;
		/* A writable pipe takes this much without blocking. */
		ssize_t n = write(tar->fd, p, tar->is_file || left < PIPE_BUF ? left : PIPE_BUF);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(-errno, "writing the backup");
		p += n;
		left -= (size_t)n;
	}
	return tar_report(tar, size);
}

static int tar_put_header(struct tar *tar, const char *name, char type, uint64_t size)
{
	struct tar_header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};

	memcpy(header.name, name, strlen(name)); /* they are short */
	(void)snprintf(header.mode, sizeof(header.mode), "%07o", type == '5' ? 0700u : 0600u);
	(void)snprintf(header.uid, sizeof(header.uid), "%07o", 0u);
	(void)snprintf(header.gid, sizeof(header.gid), "%07o", 0u);
	(void)snprintf(
		header.mtime, sizeof(header.mtime), "%011llo", (unsigned long long)time(NULL));
	if (size < UINT64_C(1) << 33) {
		(void)snprintf(header.size, sizeof(header.size), "%011" PRIo64, size);
	} else { /* too large for 11 octal digits: a binary number */
		header.size[0] = (char)0x80;
		be64_put((uint8_t *)header.size + 4, size);
	}
	(void)snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_checksum(&header));
	header.checksum[7] = ' ';
	return tar_put(tar, &header, sizeof(header));
}

static int tar_put_padding(struct tar *tar, uint64_t size)
{
	static const uint8_t zeros[BLOCK];

	return size % BLOCK ? tar_put(tar, zeros, BLOCK - size % BLOCK) : 0;
}

static int tar_put_file(struct tar *tar, const char *name)
{
	AUTO_FD int fd = openat(tar->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "'%s'", name);
	uint64_t left = (uint64_t)st.st_size;
	int r = tar_put_header(tar, name, '0', left);
	while (r == 0 && left) {
		ssize_t n = read(fd, tar->piece, left < PIECE ? (size_t)left : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(n < 0 ? -errno : -EIO, "reading '%s'", name);
		r = tar_put(tar, tar->piece, (size_t)n);
		left -= (uint64_t)n;
	}
	return r < 0 ? r : tar_put_padding(tar, (uint64_t)st.st_size);
}

static int tar_put_database(struct tar *tar, const char *name)
{
	AUTO_FD int fd = openat(tar->directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[64];
	uint32_t number;
	int r = fd < 0 ? err_set(-errno, "'%s'", name) : generation_current(fd, &number);

	if (r != FOUND)
		return r < 0 ? r : err_set(-ENOENT, "'%s/CURRENT'", name);
	(void)snprintf(path, sizeof(path), "%s/", name);
	r = tar_put_header(tar, path, '5', 0);
	(void)snprintf(path, sizeof(path), "%s/gen-%" PRIu32 "/", name, number);
	if (r == 0)
		r = tar_put_header(tar, path, '5', 0);
	(void)snprintf(path, sizeof(path), "%s/gen-%" PRIu32 "/STATE", name, number);
	if (r == 0)
		r = tar_put_file(tar, path);
	(void)snprintf(path, sizeof(path), "%s/gen-%" PRIu32 "/" DATABASE, name, number);
	if (r == 0)
		r = tar_put_file(tar, path);
	(void)snprintf(path, sizeof(path), "%s/CURRENT", name);
	return r < 0 ? r : tar_put_file(tar, path);
}

int tar_write(int directory_fd, int fd, tar_progress_fn *progress, void *arg)
{
	static const char manifest[] = "kinf-backup 1\nread it with: kinf restore FILE DIR\n";
	static const uint8_t end[2 * BLOCK];
	AUTO_FREE struct tar *tar = malloc(sizeof(*tar));
	struct stat st;

	if (!tar)
		return err_set(-ENOMEM, "writing the backup");
	tar->fd = fd;
	tar->is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	tar->directory = directory_fd;
	tar->done = 0;
	tar->progress = progress;
	tar->arg = arg;
	int r = tar_put_header(tar, MANIFEST, '0', sizeof(manifest) - 1);
	if (r == 0)
		r = tar_put(tar, manifest, sizeof(manifest) - 1);
	if (r == 0)
		r = tar_put_padding(tar, sizeof(manifest) - 1);
	if (r == 0)
		r = tar_put_database(tar, "journal");
	if (r == 0)
		r = tar_put_database(tar, "index");
	if (r == 0)
		r = tar_put_file(tar, "id");
	return r < 0 ? r : tar_put(tar, end, sizeof(end));
}

/* ---- reading ------------------------------------------------------------ */

static int tar_bad(const char *why)
{
	return err_say(ERR_CORRUPT, "this is not a whole backup of kinf: %s", why);
}

static int tar_get(struct tar *tar, void *data, size_t size)
{
	uint8_t *p = data;

	for (size_t left = size; left;) {
		int r = tar_wait(tar, POLLIN);

		if (r < 0)
			return r;
		ssize_t n = read(tar->fd, p, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(-errno, "reading the backup");
		if (n == 0)
			return tar_bad("it ends too early");
		p += n;
		left -= (size_t)n;
	}
	return tar_report(tar, size);
}

/* Reads the size of a header. Returns false if malformed. */
static bool tar_size(const struct tar_header *header, uint64_t *ret_size)
{
	uint64_t size = 0;

	if ((uint8_t)header->size[0] == 0x80) {
		for (size_t i = 1; i < 4; i++)
			if (header->size[i])
				return false;
		*ret_size = be64_get((const uint8_t *)header->size + 4);
		return *ret_size < UINT64_C(1) << 62;
	}
	for (size_t i = 0; i < sizeof(header->size) && header->size[i] && header->size[i] != ' ';
		i++) {
		if (header->size[i] < '0' || header->size[i] > '7')
			return false;
		size = size * 8 + (uint64_t)(header->size[i] - '0');
	}
	*ret_size = size;
	return true;
}

/* Reads the next header into NAME, without "./" and a trailing slash. Returns: 0; END. */
static int tar_get_header(struct tar *tar, char name[101], bool *ret_directory, uint64_t *ret_size)
{
	static const struct tar_header zero;
	struct tar_header header;
	int r = tar_get(tar, &header, sizeof(header));

	if (r < 0)
		return r;
	if (memcmp(&header, &zero, sizeof(header)) == 0)
		return END;
	if (memcmp(header.magic, "ustar", 5) != 0 || header.prefix[0])
		return tar_bad("it is no tar file as 'kinf backup' writes them");
	char digits[9] = "";
	unsigned sum;
	memcpy(digits, header.checksum, 8);
	if (sscanf(digits, "%o", &sum) != 1 || sum != tar_checksum(&header) ||
		!tar_size(&header, ret_size))
		return tar_bad("a header is damaged");
	(void)snprintf(name, 101, "%.100s", header.name);
	if (strncmp(name, "./", 2) == 0)
		memmove(name, name + 2, strlen(name + 2) + 1);
	size_t size = strlen(name);
	*ret_directory = header.type == '5';
	if (*ret_directory && size && name[size - 1] == '/')
		name[size - 1] = '\0';
	if ((header.type != '0' && header.type != '\0' && header.type != '5') ||
		(*ret_directory && *ret_size))
		return tar_bad("it holds something else than files and directories");
	return 0;
}

/* Returns true if a backup may hold NAME. */
static bool tar_knows(const char *name, bool directory, uint64_t size)
{
	uint32_t number;
	char made[64];

	for (int i = 0; i < 2; i++) {
		const char *top = i ? "index" : "journal";
		size_t n = strlen(top);

		if (strncmp(name, top, n) != 0)
			continue;
		if (directory && !name[n])
			return true;
		(void)snprintf(made, sizeof(made), "%s/CURRENT", top);
		if (!directory && strcmp(name, made) == 0)
			return size <= SMALL_MAX;
		if (strncmp(name + n, "/gen-", 5) != 0 ||
			sscanf(name + n + 5, "%" SCNu32, &number) != 1)
			return false;
		(void)snprintf(made, sizeof(made), "%s/gen-%" PRIu32, top, number);
		if (directory)
			return strcmp(name, made) == 0;
		size_t head = strlen(made);
		return strncmp(name, made, head) == 0 &&
		       (strcmp(name + head, "/" DATABASE) == 0 ||
			       (strcmp(name + head, "/STATE") == 0 && size <= SMALL_MAX));
	}
	return !directory && size <= SMALL_MAX &&
	       (strcmp(name, "id") == 0 || strcmp(name, MANIFEST) == 0);
}

static int tar_get_file(struct tar *tar, const char *name, uint64_t size)
{
	AUTO_FD int fd = openat(
		tar->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? err_set(-errno, "making '%s'", name) : 0;

	for (uint64_t left = size; r == 0 && left;) {
		size_t piece = left < PIECE ? (size_t)left : PIECE;

		r = tar_get(tar, tar->piece, piece);
		for (size_t at = 0; r == 0 && at < piece;) {
			ssize_t n = write(fd, tar->piece + at, piece - at);
			if (n < 0 && errno != EINTR)
				r = err_set(-errno, "writing '%s'", name);
			at += n > 0 ? (size_t)n : 0;
		}
		left -= piece;
	}
	if (r == 0 && size % BLOCK)
		r = tar_get(tar, tar->piece, BLOCK - size % BLOCK);
	return r;
}

int tar_read(int fd, int directory_fd, tar_progress_fn *progress, void *arg)
{
	AUTO_FREE struct tar *tar = malloc(sizeof(*tar));
	char name[101];
	bool directory, first = true;
	uint64_t size;
	int r = tar ? 0 : err_set(-ENOMEM, "reading the backup");

	if (r < 0)
		return r;
	tar->fd = fd;
	tar->directory = directory_fd;
	tar->done = 0;
	tar->progress = progress;
	tar->arg = arg;
	while (r == 0 && (r = tar_get_header(tar, name, &directory, &size)) == 0) {
		if (first && strcmp(name, MANIFEST) != 0 && strcmp(name, ".") != 0)
			return tar_bad("it does not begin with '" MANIFEST "'");
		first &= strcmp(name, ".") == 0;
		if (directory && strcmp(name, ".") == 0)
			continue;
		if (!tar_knows(name, directory, size))
			return err_say(
				ERR_CORRUPT, "this is not a backup of kinf: it holds '%s'", name);
		if (!directory)
			r = tar_get_file(tar, name, size);
		else if (mkdirat(directory_fd, name, 0700) < 0)
			r = err_set(-errno, "making '%s'", name);
	}
	if (r == END && first)
		return tar_bad("it is empty");
	return r == END ? 0 : r;
}
