/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source group: source.c walks over files and directories, source_archive.c over the members of
 * an archive or a compressed file. libarchive is loaded with the first archive, so that nothing
 * else needs it.
 *
 * Members are never written to disk. One with an unsafe name (absolute, ..) and a link are left out
 * and named. The walk ends with an error after 10 million members, and where the content is more
 * than 4 GiB and 200 times as large as the archive.
 */
#ifndef REFLECTOR_IMPORT_SOURCE_INTERNAL_H
#define REFLECTOR_IMPORT_SOURCE_INTERNAL_H

#include "reflector/import/source.h"

#define ARCHIVE_HEAD 512 /* bytes of a file to know it by */

/* Returns true if a file that begins with the SIZE bytes of HEAD is compressed or an archive. */
bool archive_is_known(const char *head, size_t size);
/* Calls options->file for each wanted member of FILE. Returns as source_walk(). */
int archive_walk(const struct source_file *file, const struct source_options *options);

#endif
