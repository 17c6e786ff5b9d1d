/* SPDX-License-Identifier: Apache-2.0 */
/* The informer of a test and its tapes; a suite's .init is cache_open. */
#ifndef UNIT_INFORMER_RIG_H
#define UNIT_INFORMER_RIG_H

#include "tests/unit/tape.h"

static struct tape a, b;
static struct kinf_informer *informer;

/* Frees the test's objects; a suite's .fini. */
static void informer_close(void)
{
	kinf_informer_free(&informer);
	tape_release(&a);
	tape_release(&b);
	cache_close();
}

/* An informer with the handler TAPE. */
static inline void start(struct tape *tape)
{
	informer = tape_informer(NULL);
	tape_add(informer, tape, NULL);
}

/* TAPE gets exactly this until nothing is left. */
static inline void then_gets(struct tape *tape, const char *text)
{
	tape_drain(informer);
	tape_is(tape, text);
}

#endif
