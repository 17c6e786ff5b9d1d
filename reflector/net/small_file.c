/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/small_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"

int small_file_read(const char *path, size_t limit, struct buf *text)
{
	/* Non-blocking: a FIFO given by mistake must not hang a daemon. */
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_set(-errno, "opening '%s'", path);
	text->limit = limit;
	return buf_read_file(text, fd, path);
}

const char *small_file_trim(struct buf *text)
{
	size_t size = text->size;

	while (size && isspace(text->data[size - 1]))
		size--;
	buf_truncate(text, size);
	const char *begin = buf_cstr(text);
	while (isspace((unsigned char)*begin))
		begin++;
	return begin;
}

void small_file_wipe(char **text, size_t size)
{
	if (*text)
		explicit_bzero(*text, size);
	free(*text);
	*text = NULL;
}

void small_file_wipe_text(char **text)
{
	small_file_wipe(text, *text ? strlen(*text) : 0);
}
