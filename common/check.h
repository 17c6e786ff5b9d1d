/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of our own code in our own process; they stay on in release. Never use them on bytes from
 * outside (network, disk, ring): decode those and return ERR_CORRUPT.
 *
 * Every handle begins with `uint32_t magic`; its public functions check it with CHECK_OBJ and its
 * destructor zeroes it. Magic values are unique in the tree (scripts/check-style.sh).
 */
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <stddef.h>

void check_failed(const char *file, int line, const char *expression)
	__attribute__((noreturn, cold));

/* Sets the place (on the status page) for the line of check_failed(), the reason of this process's
 * death. NULL: none. It must stay valid. */
void check_note_into(char *text, size_t size);

#define REQUIRE(condition) \
	do { \
		if (__builtin_expect(!(condition), 0)) \
			check_failed(__FILE__, __LINE__, #condition); \
	} while (0)

#define CHECK_OBJ(object, wanted) REQUIRE((object) && (object)->magic == (wanted))

#endif
