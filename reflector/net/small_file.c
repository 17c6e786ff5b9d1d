/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/small_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"

int small_file_read(const char *path, size_t limit, char **ret_text, size_t *ret_size)
{
	/* Non-blocking: a FIFO given by mistake must not hang a daemon. */
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_FREE char *text = NULL;
	size_t size = 0;

	if (fd < 0)
		return err_set(-errno, "opening '%s'", path);
	text = malloc(limit + 2);
	if (!text)
		return err_set(-ENOMEM, "reading '%s'", path);
	while (size <= limit) {
		ssize_t n = read(fd, text + size, limit + 1 - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(-errno, "reading '%s'", path);
		if (n == 0)
			break;
		size += (size_t)n;
	}
	if (size > limit) {
		explicit_bzero(text, size);
		return err_set(ERR_TOO_LARGE, "'%s': more than %zu bytes", path, limit);
	}
	text[size] = '\0';
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

char *small_file_trim(char *text)
{
	size_t size;

	while (isspace((unsigned char)*text))
		text++;
	size = strlen(text);
	while (size && isspace((unsigned char)text[size - 1]))
		text[--size] = '\0';
	return text;
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
