/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/ahead.h"

#include <sys/resource.h>

/* what was announced causes no fault, so a cold store looks warm for a while */
#define COLD_ANSWERS 64
/* after which only each WARM_EACHth question is asked: a system call takes as long as four
 * objects */
#define WARM_ANSWERS 8
#define WARM_EACH    4
#define GAP_MAX      16384u /* bytes between two values that are read as one piece */

bool ahead_is_cold(struct ahead *ahead)
{
	bool is_asked = ahead->warm < WARM_ANSWERS || ahead->warm % WARM_EACH == 0;
	struct rusage usage;

	ahead->warm++;
	if (!is_asked)
		return false;
	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return false;
	if (ahead->faults && usage.ru_majflt + 1 != ahead->faults)
		ahead->cold = COLD_ANSWERS;
	else if (ahead->cold)
		ahead->cold--;
	ahead->faults = usage.ru_majflt + 1;
	if (ahead->cold)
		ahead->warm = 0;
	return ahead->cold;
}

void ahead_send(struct ahead *ahead, struct txn *txn)
{
	if (ahead->end)
		txn_announce(txn, ahead->begin, ahead->end - ahead->begin);
	ahead->end = 0;
}

void ahead_add(struct ahead *ahead, struct txn *txn, uint64_t offset, uint64_t size)
{
	if (ahead->end && offset >= ahead->begin && offset <= ahead->end + GAP_MAX) {
		if (offset + size > ahead->end)
			ahead->end = offset + size;
		return;
	}
	ahead_send(ahead, txn);
	ahead->begin = offset;
	ahead->end = offset + size;
}
