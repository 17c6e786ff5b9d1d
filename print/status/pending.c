/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the configuration without a feed. */
#include "print/status/status.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/handle.h"

int status_each_pending(const struct kinf *kinf, kinf_feed_fn *fn, void *arg)
{
	CLEANUP(daemon_view_release) struct daemon_view reflector = {.page = NULL};
	struct stats_feed row;
	int r = 0, found;

	daemon_view_take(store_home(kinf->store), HOME_REFLECTOR, &reflector);
	if (!reflector.page || !reflector.alive)
		return 0;
	for (uint32_t i = 0; r == 0 && (found = stats_feed_at(reflector.page, i, &row)) != END;
		i++) {
		const char *colon = strstr(row.error, ": ");
		struct kinf_feed_info info = {.size = sizeof(info), .last_contact_seconds = -1};

		if (found != FOUND || !(row.feed & STATS_PENDING) || !colon)
			continue;
		info.retries = row.retries;
		(void)snprintf(info.full_name, sizeof(info.full_name), "%.*s",
			(int)(colon - row.error), row.error);
		(void)snprintf(
			info.name, sizeof(info.name), "%.*s", (int)(colon - row.error), row.error);
		(void)snprintf(info.last_error, sizeof(info.last_error), "%s", colon + 2);
		(void)snprintf(info.state, sizeof(info.state), "%s", "error");
		r = fn(arg, &info);
	}
	return r;
}
