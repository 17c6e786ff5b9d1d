/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows in the pages of a data.mdb, whatever its trees: for a file with broken trees, such as a
 * copy made while its daemon wrote. Pages of older states are among them until they are used again,
 * so a row comes several times, also in versions of no state any more. The caller knows a row by
 * its content.
 */
#ifndef STORE_ENV_PAGES_H
#define STORE_ENV_PAGES_H

#include <stdint.h>

#include "common/bytes.h"

/* A whole file in memory, read-only. Cutting it meanwhile is a SIGBUS: programs call
 * faults_catch(). */
struct pages {
	const uint8_t *bytes; /* NULL: an empty file */
	uint64_t size;
	uint32_t page_size;
};

/* Maps data.mdb of a generation, whatever its STATE. Returns: 0; -ENOENT; errors. */
int pages_open(int directory_fd, uint32_t generation, struct pages *ret_pages);
void pages_close(struct pages *pages);

/* Gets a row. KEY and VALUE are parts of the mapped file. A large value has pages of its own
 * without its key: KEY is empty then, and VALUE is the whole of these pages. Returns: FOUND: a
 * known row; the other pages of a large value are passed over; NOT_FOUND: it is none; errors end
 * the walk. */
typedef int pages_row_fn(void *arg, struct bytes key, struct bytes value);

/* Calls FN for each row of each page, in the order of the file. Returns: 0; the first error of
 * FN. */
int pages_each_row(const struct pages *pages, pages_row_fn *fn, void *arg);

#endif
