/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a database of this machine. */
#ifndef UNIT_PAGE_RIG_H
#define UNIT_PAGE_RIG_H

#include <stddef.h>
#include <unistd.h>

/* Returns the page size of a new database: LMDB takes the machine's, but none above 32 KiB. */
static inline size_t database_page(void)
{
	size_t machine = (size_t)sysconf(_SC_PAGESIZE);

	return machine < 32768 ? machine : 32768;
}

#endif
