/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions about our own code; they stay on in release. Bytes from outside (network, disk, ring)
 * are decoded instead, with ERR_CORRUPT as the result.
 *
 * Every handle begins with `uint32_t magic`; its public functions check it with CHECK_OBJ and its
 * destructor zeroes it. Magic values are unique in the tree (scripts/check-style.sh).
 */
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <stddef.h>

void check_failed(const char *file, int line, const char *expression)
	__attribute__((noreturn, cold));

/* Sets the buffer (in the status page) for the message of check_failed(), so that readers learn the
 * cause of an abort. It must stay valid. NULL: none. */
void check_note_into(char *text, size_t size);

#define REQUIRE(condition) \
	do { \
		if (__builtin_expect(!(condition), 0)) \
			check_failed(__FILE__, __LINE__, #condition); \
	} while (0)

#define CHECK_OBJ(object, wanted) REQUIRE((object) && (object)->magic == (wanted))

#endif
