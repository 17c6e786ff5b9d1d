/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named points where a test makes a process fail, pause or die: KINF_FAIL in the environment, e.g.
 * "journal.after_commit:3:kill,index.commit:1:error,ring.publish:5:pause=200". The point acts at its
 * N-th passing (0: at every one). Actions: kill (SIGKILL to ourselves), stop (SIGSTOP, until somebody
 * sends SIGCONT), error (the call returns ERR_FAILPOINT, or the errno named: error=ENOSPC),
 * pause=MILLISECONDS, exit=STATUS.
 * The names are in failpoint.def; "list" as value of KINF_FAIL prints them and exits.
 * Compiled away unless KINF_FAILPOINTS is defined (sanitizer and debug builds).
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
/* Reads KINF_FAIL; ERR_CONFIG when it names an unknown point. Call once at start of main. */
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

/* In a function that returns int. */
#define FAILPOINT_RETURN(symbol)                                                                   \
	do {                                                                                       \
		int failed_ = failpoint_pass(FAILPOINT_##symbol);                                  \
		if (failed_ < 0)                                                                   \
			return failed_;                                                            \
	} while (0)

#endif
