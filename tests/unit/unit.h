/* SPDX-License-Identifier: Apache-2.0 */
/* What nearly each unit test includes: Criterion, the C library, errors, cleanup, scratch files, and
 * assertions that name the call and its error, or both texts. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/unit/scratch.h"

#define OK(call) \
	do { \
		int ok_ = (call); \
		cr_assert_eq(ok_, 0, "%s: %d %s", #call, ok_, err_text(ok_)); \
	} while (0)

#define EXPECT(got, want) \
	do { \
		const char *got_ = (got); \
		cr_assert_str_eq(got_, want, "got '%s', expected '%s'", got_, want); \
	} while (0)

#endif
