/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

int text_file_write(int fd, struct bytes text)
{
	const char *data = text.data;

	if (!proc_may_write(text.size))
		return err_set(-EFBIG, "writing a file");
	while (text.size > 0) {
		ssize_t n = write(fd, data, text.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(-errno, "writing a file");
		data += n;
		text.size -= (size_t)n;
	}
	return fsync(fd) < 0 ? err_set(-errno, "syncing a file") : 0;
}

int text_file_replace(int directory_fd, const char *name, const char *text, unsigned mode)
{
	char temporary[32];

	(void)snprintf(temporary, sizeof(temporary), ".%s.new", name);
	AUTO_FD int fd = openat(directory_fd, temporary,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_set(-errno, "writing %s", name);
	int r = text_file_write(fd, bytes_str(text));
	if (r < 0)
		return err_add(r, "%s", name);
	int renamed = renameat(directory_fd, temporary, directory_fd, name);
	if (renamed < 0 && errno == EISDIR) { /* something else took the name */
		if (unlinkat(directory_fd, name, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY)
			return err_say(-ENOTEMPTY,
				"%s is a directory with something in it: remove it with 'rm -r'",
				name);
		renamed = renameat(directory_fd, temporary, directory_fd, name);
	}
	if (renamed < 0 || fsync(directory_fd) < 0)
		return err_set(-errno, "replacing %s", name);
	return 0;
}

/* Returns a descriptor; -errno; ERR_CORRUPT: the name is not a file's. A pipe must not keep a
 * daemon waiting. */
static int text_file_open(int directory_fd, const char *name)
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 ? errno == ELOOP || errno == ENXIO : fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return err_say(ERR_CORRUPT, "%s is no file, but something else", name);
	return fd < 0 ? err_set(-errno, "reading %s", name) : TAKE_FD(fd);
}

int text_file_read(int directory_fd, const char *name, char *text, size_t size, int *ret_fd)
{
	AUTO_FD int fd = text_file_open(directory_fd, name);
	if (fd < 0)
		return fd;
	ssize_t n = read(fd, text, size - 1);
	if (n < 0)
		return err_set(-errno, "reading %s", name);
	text[n] = '\0';
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

int text_file_load(int directory_fd, const char *name, size_t limit, struct buf *out)
{
	AUTO_FD int fd = text_file_open(directory_fd, name);

	buf_reset(out);
	out->limit = limit;
	return fd < 0 ? fd : buf_read_file(out, fd, name);
}

int text_file_read_line(int directory_fd, const char *name, char *text, size_t size, int *ret_fd)
{
	int r = text_file_read(directory_fd, name, text, size, ret_fd);

	if (r == -ENOENT) {
		err_ignore(r, "the caller knows that the file may be missing");
		return NOT_FOUND;
	}
	if (r == 0)
		text[strcspn(text, "\n")] = '\0';
	return r < 0 ? r : FOUND;
}
