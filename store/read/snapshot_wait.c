/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a snapshot of an index with an event. */
#include <string.h>
#include <time.h>

#include "common/err.h"
#include "common/proc.h"
#include "store/read/snapshot.h"
#include "store/read/snapshot_internal.h"

#define WAIT_SLICE_MS 100
#define WAIT_SLICE_NS (WAIT_SLICE_MS * UINT64_C(1000000))
#define WAIT_POLL_MS  2 /* without the taken word */
/* a killed processor is started again within this time */
#define WAIT_GONE_NS UINT64_C(1000000000)

void store_wait_index(struct store *store, struct taken_reader **taken, int ms)
{
	const struct timespec pause = {.tv_nsec = WAIT_POLL_MS * 1000000};
	int runtime = home_runtime_fd(store->home);

	if (*taken) {
		if (taken_wait(*taken, ms) == GONE)
			taken_detach(taken);
		return;
	}
	if (runtime >= 0)
		err_ignore(taken_attach(runtime, taken), "without the word the index is polled");
	if (!*taken) /* else the index is checked once more before the first sleep */
		(void)nanosleep(&pause, NULL); /* a signal may end it early */
}

/* Returns whether no processor has run for too long. GONE_NS: since then; 0: one runs. */
static bool snapshot_is_forsaken(const struct snapshot *s, uint64_t now, uint64_t *gone_ns)
{
	if (home_role_holder(s->store->home, HOME_PROCESSOR) != 0)
		*gone_ns = 0;
	else if (!*gone_ns)
		*gone_ns = now;
	return *gone_ns && now - *gone_ns >= WAIT_GONE_NS;
}

int snapshot_renew_at(
	struct snapshot *snapshot, const uint8_t uuid[16], uint64_t seq, uint64_t limit_ns)
{
	struct snapshot *s = snapshot;
	uint64_t begin_ns = 0, gone_ns = 0;

	for (;;) {
		if (s->taken)
			taken_look(s->taken);
		int r = snapshot_renew(s);

		if (r < 0)
			return r;
		if (r == 0 &&
			(s->index.taken >= seq || (uuid && memcmp(uuid, s->journal.uuid,
								   sizeof(s->journal.uuid)) != 0)))
			return 0;
		/* An event is in the log before anybody is given its number. */
		bool foreign = r == 0 && !uuid && seq > snapshot_last(s);
		r = snapshot_reset(s); /* holds no pages while it waits */
		if (r < 0 || foreign)
			return r < 0 ? r : GONE;
		uint64_t now = proc_monotonic_ns();
		begin_ns = begin_ns ? begin_ns : now;
		/* The processor is looked for after the first slice: usually the index comes in
		 * microseconds. */
		if (s->store->copy || now - begin_ns >= limit_ns ||
			(now - begin_ns >= WAIT_SLICE_NS / 2 &&
				snapshot_is_forsaken(s, now, &gone_ns)))
			return AGAIN;
		uint64_t left_ns = limit_ns - (now - begin_ns);
		store_wait_index(s->store, &s->taken,
			left_ns < WAIT_SLICE_NS ? (int)(left_ns / 1000000) + 1 : WAIT_SLICE_MS);
	}
}
