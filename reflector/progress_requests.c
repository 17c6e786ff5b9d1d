/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/progress_requests.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/progress_request.h"

#define PAUSE UINT64_C(20000000) /* from one reading to the next */

void progress_requests_make(struct progress_requests *requests, struct home *home)
{
	progress_request_keep(home, &requests->fd);
}

void progress_requests_close(struct progress_requests *requests)
{
	cleanup_fd(&requests->fd);
}

int progress_requests_fd(const struct progress_requests *requests, uint64_t now_ns)
{
	return requests->next_ns <= now_ns ? requests->fd : -1;
}

uint64_t progress_requests_until(const struct progress_requests *requests, uint64_t now_ns)
{
	return requests->next_ns > now_ns ? requests->next_ns : UINT64_MAX;
}

void progress_requests_receive(
	struct progress_requests *requests, struct feeds *feeds, const uint8_t uuid[16])
{
	uint64_t now = proc_monotonic_ns();
	struct progress_request request;
	unsigned n = 0;

	while (n < PROGRESS_REQUESTS_MAX &&
		progress_request_receive(requests->fd, &request) == FOUND) {
		n++;
		if (memcmp(request.journal, uuid, sizeof(request.journal)) == 0)
			feeds_progress(feeds, request.feed, request.rv);
	}
	requests->next_ns = now + PAUSE;
}
