/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/import/source_internal.h"

#define DEPTH_MAX 64 /* of directories */

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

static int source_fill(struct source_input *input)
{
	size_t n = 1;
	int r = 0;

	while (r == 0 && n && input->size < sizeof(input->head)) {
		r = source_read_fd(input->fd, input->head + input->size,
			sizeof(input->head) - input->size, &n);
		input->size += r == 0 ? n : 0;
	}
	return r;
}

/* ---- directories -------------------------------------------------------- */

struct source_walk {
	const struct source_options *options;
	const char *source;
	char path[PATH_MAX]; /* below SOURCE */
};

static int source_visit(struct source_walk *walk, int fd, size_t depth);

/* Takes the entry NAME, whose path is in WALK. Returns 0 unless the callback fails. */
static int source_entry(struct source_walk *walk, int directory, const char *name, size_t depth)
{
	bool wants = source_wants(walk->path);
	char whole[2 * PATH_MAX];
	struct stat st;
	int r = 0;

	(void)snprintf(whole, sizeof(whole), "%s/%s", walk->source, walk->path);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_set(-errno, "looking at it");
	else if (!S_ISDIR(st.st_mode) && !wants)
		return 0;
	else if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		r = err_say(ERR_UNSUPPORTED, "it is no regular file");
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	AUTO_FD int fd = r < 0 ? -1 : openat(directory, name, flags);
	if (r == 0 && fd < 0)
		r = err_set(-errno, "opening");
	if (r == 0 && S_ISDIR(st.st_mode) && depth >= DEPTH_MAX)
		r = err_say(ERR_TOO_LARGE, "directories are nested deeper than %d", DEPTH_MAX);
	if (r < 0) {
		walk->options->skipped(walk->options->arg, whole, r);
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return source_visit(walk, TAKE_FD(fd), depth + 1);
	struct source_input input = {.fd = fd};
	const struct source_file file = {whole, walk->path, source_read, &input, &input.fd};
	return walk->options->file(walk->options->arg, &file);
}

/* Takes all entries of the directory FD, which is closed. */
static int source_visit(struct source_walk *walk, int fd, size_t depth)
{
	struct dirent **entries = NULL;
	size_t size = strlen(walk->path);
	int n = scandirat(fd, ".", &entries, NULL, alphasort), r = 0;

	if (n < 0) {
		char whole[2 * PATH_MAX];

		r = err_set(-errno, "reading the directory");
		(void)snprintf(whole, sizeof(whole), "%s/%s", walk->source, walk->path);
		walk->options->skipped(walk->options->arg, whole, r);
		r = 0;
	}
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		size_t room = sizeof(walk->path) - size;

		if (r == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
			(size_t)snprintf(walk->path + size, room, "%s%s", size ? "/" : "", name) <
				room)
			r = source_entry(walk, fd, name, depth);
		walk->path[size] = '\0';
		free(entries[i]);
	}
	free(entries);
	(void)close(fd);
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
	if (S_ISDIR(st.st_mode)) {
		struct source_walk walk = {.options = options, .source = source};

		return source_visit(&walk, TAKE_FD(opened), 0);
	}
	int r = source_fill(&input);
	struct source_file file = {source, "", source_read, &input, &input.fd};
	if (r < 0)
		return r;
	return archive_is_known(input.head, input.size) ? archive_walk(&file, options)
							: options->file(options->arg, &file);
}
