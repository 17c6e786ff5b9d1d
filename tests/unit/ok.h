/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions that name the call and its error, or both texts. */
#ifndef UNIT_OK_H
#define UNIT_OK_H

#include "tests/unit/unit.h"

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
