/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/handled.h"

#include <string.h>

static _Thread_local struct handled handled;

struct handled handled_get(void)
{
	return handled;
}

void handled_set(const struct handled *to)
{
	handled = *to;
}

void handled_merge(struct handled *to, const struct handled *from)
{
	if (from->event && (from->event > to->event ||
				   memcmp(from->journal, to->journal, sizeof(to->journal)) != 0))
		*to = *from;
}
