/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/crc.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

const char *failure_state(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
		return "waiting for disk space";
	case ERR_MAP_FULL:
		return "the database map is full: raise mapSize in kinf.yaml, then restart";
	case -ENOMEM:
		return "out of memory: raise the memory limit of the service (MemoryMax=) or free memory";
	case -EFBIG:
		return "a file is at the size limit: raise it (LimitFSIZE=, ulimit -f), then restart";
	default:
		return "retrying after an error";
	}
}

static bool failures_is_logged(const struct failures *failures, uint32_t sum)
{
	for (size_t i = 0; i < failures->n_logged; i++)
		if (failures->logged[i] == sum)
			return true;
	return failures->n_logged == FAILURES_LOGGED;
}

void failures_add(struct failures *failures, struct stats *stats, int error, const char *text)
{
	uint32_t sum = crc32c(0, text, strlen(text));

	if (!failures_is_logged(failures, sum)) {
		failures->logged[failures->n_logged++] = sum;
		LOG(work_failed, .error = text, .state = failure_state(error));
	}
	if (!failures->failing)
		failures->since_ns = proc_monotonic_ns();
	failures->failing = true;
	stats_set_error(stats, text);
	stats_set_state(stats, failure_state(error));
}

void failures_end(struct failures *failures, struct stats *stats)
{
	if (!failures->failing)
		return;
	LOG(work_resumed, .failed_seconds = proc_monotonic_ns() - failures->since_ns);
	*failures = (struct failures){0};
	stats_set_state(stats, "running");
	stats_set_error(stats, "");
}
