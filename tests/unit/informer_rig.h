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

#endif
