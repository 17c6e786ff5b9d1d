/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that appears whole or not at all: made in a directory beside it, `.NAME.kinf-partial`, and
 * renamed at the end. A killed process leaves that directory; the next one for the same target
 * removes it. A lock in it keeps two of them apart.
 */
#ifndef COMMAND_MANAGE_PARTIAL_H
#define COMMAND_MANAGE_PARTIAL_H

#include <limits.h>

struct partial {
	char target[PATH_MAX / 4]; /* without a trailing slash */
	char directory[PATH_MAX];  /* the partial one; "": none */
	int fd;                    /* of it; -1: none */
	int lock;
};

#define PARTIAL_INIT \
	{ \
		.fd = -1, .lock = -1 \
	}

/* A FILE may replace a regular file; a DIRECTORY an empty one, which is removed first. */
enum partial_kind { PARTIAL_FILE, PARTIAL_DIRECTORY };

/* Makes the empty directory for TARGET, or for its target if it is a link. Returns: 0; ERR_LOCKED:
 * another process makes the same; errors: the existing TARGET must stay. */
int partial_begin(struct partial *partial, const char *target, enum partial_kind kind);
/* Writes the path of NAME in the directory into PATH. */
int partial_path(const struct partial *partial, const char *name, char path[PATH_MAX]);
/* Moves NAME from the directory to TARGET. */
int partial_end(struct partial *partial, const char *name);
/* Removes the directory with its content. */
void partial_release(struct partial *partial);

#endif
