/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named points where a test makes a process fail, pause or die, by KINF_FAIL in the environment:
 * "journal.after_commit:3:kill,journal.trim:1:error,ring.published:5:pause=200". A point acts at
 * its N-th passing (0: each). Actions: kill (SIGKILL to itself), stop (SIGSTOP, until the test
 * sends SIGCONT), error (the call returns ERR_FAILPOINT, or the error named: error=ENOSPC),
 * pause=MILLISECONDS.
 *
 * The names are in failpoint.def; KINF_FAIL=list prints them and exits. Only debug and sanitizer
 * builds define KINF_FAILPOINTS; release builds have no failpoints.
 */
#ifndef COMMON_FAILPOINT_H
#define COMMON_FAILPOINT_H

enum failpoint {
#define FAILPOINT(symbol, name, where) FAILPOINT_##symbol,
#include "common/failpoint.def"
#undef FAILPOINT
	FAILPOINT_MAX
};

#ifdef KINF_FAILPOINTS
int failpoint_pass(enum failpoint point);
/* Reads KINF_FAIL; main calls it once at its start. Returns: 0, or ERR_CONFIG. */
int failpoint_setup(void);
#else
static inline int failpoint_pass(enum failpoint point)
{
	(void)point;
	return 0;
}
static inline int failpoint_setup(void)
{
	return 0;
}
#endif

/* Passes a point in a function returning int; returns its error. */
#define FAILPOINT_RETURN(symbol) \
	do { \
		int failed_ = failpoint_pass(FAILPOINT_##symbol); \
		if (failed_ < 0) \
			return failed_; \
	} while (0)

#endif
