/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over the files of a dump: a file, a directory, or an archive, told apart by content. Each
 * file is read as a stream, once. Files of a directory come in the order of their names, those of
 * an archive in its own.
 *
 * A file without an ending of JSON or YAML is left alone unless it is the source itself: logs and
 * the like. Symbolic links are not followed.
 */
#ifndef REFLECTOR_IMPORT_SOURCE_H
#define REFLECTOR_IMPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

struct source_file {
	const char *name; /* for people: "dump.tar.gz: web/pods.json" */
	const char *path; /* in the source; "": it is the source */
	/* Reads up to SIZE bytes. Returns: 0, *RET_SIZE is 0 at the end; errors. */
	int (*read)(void *arg, void *room, size_t size, size_t *ret_size);
	void *arg;
	const int *fd; /* for reading at any place; NULL: only as a stream */
};

struct source_options {
	/* Takes a file. A negative result ends the walk and is returned by it. */
	int (*file)(void *arg, const struct source_file *file);
	/* Something is left out because of R, which has a sentence. */
	void (*skipped)(void *arg, const char *name, int r);
	void *arg;
};

/* Returns true if PATH ends as a file of objects. */
bool source_wants(const char *path);
/* Calls options->file for each file of SOURCE ("-": standard input). Returns: 0; errors of SOURCE
 * itself; a negative result of the callback. */
int source_walk(const char *source, const struct source_options *options);

#endif
