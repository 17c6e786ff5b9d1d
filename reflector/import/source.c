/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/source.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/import/source_internal.h"

bool source_wants(const char *path)
{
	static const char *const ends[] = {".json", ".yaml", ".yml", ".jsonl"};
	const char *slash = strrchr(path, '/');
	size_t size = strlen(path);

	/* macOS puts the attributes of each file beside it, in archives also below __MACOSX/. */
	if (strncmp(slash ? slash + 1 : path, "._", 2) == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i]);

		if (size > n && strcmp(path + size - n, ends[i]) == 0)
			return true;
	}
	return false;
}

/* ---- files -------------------------------------------------------------- */

/* An open file; its first bytes are read already. */
struct source_input {
	int fd;
	char head[ARCHIVE_HEAD];
	size_t size, given;
};

static int source_read_fd(int fd, void *room, size_t size, size_t *ret_size)
{
	ssize_t n;

	do
		n = read(fd, room, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(-errno, "reading");
	*ret_size = (size_t)n;
	return 0;
}

static int source_read(void *arg, void *room, size_t size, size_t *ret_size)
{
	struct source_input *input = arg;
	size_t left = input->size - input->given;

	if (!left)
		return source_read_fd(input->fd, room, size, ret_size);
	*ret_size = left < size ? left : size;
	memcpy(room, input->head + input->given, *ret_size);
	input->given += *ret_size;
	return 0;
}

/* ---- directories -------------------------------------------------------- */

static int source_by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Takes ENTRY, PATH below the source. Returns 0 unless the callback fails. */
static int source_entry(const FTSENT *entry, const char *path, const struct source_options *options)
{
	AUTO_FD int fd = -1;
	int r = 0;

	if (entry->fts_info == FTS_D || entry->fts_info == FTS_DP)
		return 0;
	if (entry->fts_errno)
		r = err_set(-entry->fts_errno, "looking at it");
	else if (!source_wants(path))
		return 0;
	else if (entry->fts_info != FTS_F)
		r = err_say(ERR_UNSUPPORTED, "it is no regular file");
	else
		fd = open(entry->fts_accpath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (r == 0 && fd < 0)
		r = err_set(-errno, "opening");
	if (r < 0) {
		options->skipped(options->arg, entry->fts_path, r);
		return 0;
	}
	struct source_input input = {.fd = fd};
	const struct source_file file = {entry->fts_path, path, source_read, &input, &input.fd};
	return options->file(options->arg, &file);
}

static int source_directory(const char *source, const struct source_options *options)
{
	char *const sources[] = {(char *)(uintptr_t)source, NULL};
	FTS *tree = fts_open(sources, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, source_by_name);
	FTSENT *entry;
	int r = 0;

	if (!tree)
		return err_set(-errno, "reading the directory");
	while (r == 0 && (entry = fts_read(tree))) {
		const char *path = entry->fts_path + strlen(source);

		r = source_entry(entry, path + strspn(path, "/"), options);
	}
	(void)fts_close(tree);
	return r;
}

int source_walk(const char *source, const struct source_options *options)
{
	AUTO_FD int opened = strcmp(source, "-") == 0 ? -1 : open(source, O_RDONLY | O_CLOEXEC);
	struct source_input input = {.fd = opened >= 0 ? opened : STDIN_FILENO};
	struct stat st;

	if (opened < 0 && strcmp(source, "-") != 0)
		return err_set(-errno, "opening");
	if (fstat(input.fd, &st) < 0)
		return err_set(-errno, "looking at it");
	if (S_ISDIR(st.st_mode))
		return source_directory(source, options);
	struct source_file file = {source, "", source_read, &input, &input.fd};
	for (size_t n = 1; n && input.size < sizeof(input.head); input.size += n) {
		int r = source_read_fd(
			input.fd, input.head + input.size, sizeof(input.head) - input.size, &n);

		if (r < 0)
			return r;
	}
	return archive_is_known(input.head, input.size) ? archive_walk(&file, options)
							: options->file(options->arg, &file);
}
