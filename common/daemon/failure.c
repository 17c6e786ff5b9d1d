/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/failure.h"

#include <errno.h>
#include <string.h>

#include "common/crc.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

/* Returns the daemon's state while ERROR lasts, with the remedy if there is one. */
static const char *failure_state(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
		return "waiting for disk space";
	case ERR_MAP_FULL:
		return "the database map is full: raise mapSize in kinf.yaml, then restart";
	case -ENOMEM:
		return "out of memory: raise the memory limit of the service (MemoryMax=) or free "
		       "memory";
	case -EFBIG:
		return "a file is at the size limit: raise it (LimitFSIZE=, ulimit -f), then "
		       "restart";
	default:
		return "retrying after an error";
	}
}

void failure_add(struct failure *failure, struct stats *stats, int error, const char *text)
{
	bool logged = failure->n_logged == FAILURE_SENTENCES;
	uint32_t sum = crc32c(0, text, strlen(text));

	for (size_t i = 0; i < failure->n_logged; i++)
		logged |= failure->logged[i] == sum;
	if (!logged) {
		failure->logged[failure->n_logged++] = sum;
		LOG(work_failed, .error = text, .state = failure_state(error));
	}
	if (!failure->failing)
		failure->since_ns = proc_monotonic_ns();
	failure->failing = true;
	stats_set_error(stats, text);
	stats_set_state(stats, failure_state(error));
}

void failure_end(struct failure *failure, struct stats *stats, const char *state)
{
	if (!failure->failing)
		return;
	LOG(work_resumed, .failed_seconds = proc_monotonic_ns() - failure->since_ns);
	*failure = (struct failure){0};
	stats_set_state(stats, state);
	stats_set_error(stats, "");
}
