/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the cache: woken by the event ring where there is one, else looking again and again. */
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/handle.h"
#include "store/ring/ring.h"

#define LOOK_AGAIN_MS 50
#define SLEEP_MAX_MS  500 /* checkpoints move by bookmarks too, which no ring entry tells */

/* 1: what is waited for holds; 0: not yet; negative: it can't be told. */
typedef int condition_fn(struct kinf_snapshot *snapshot, void *arg);

struct waiter {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct ring_reader *ring;
	uint64_t end_ns; /* monotonic; 0: never */
};

static int waiter_look(struct waiter *waiter, condition_fn *condition, void *arg)
{
	int r = waiter->snapshot ? kinf_snapshot_renew(waiter->snapshot)
				 : kinf_snapshot_open(waiter->kinf, &waiter->snapshot);

	if (r == AGAIN)
		return 0;
	if (r < 0)
		return r;
	r = condition(waiter->snapshot, arg);
	int reset = kinf_snapshot_reset(waiter->snapshot);
	return reset < 0 ? reset : r;
}

static int remaining_ms(const struct waiter *waiter)
{
	if (!waiter->end_ns)
		return SLEEP_MAX_MS;
	uint64_t now = proc_monotonic_ns();
	if (now >= waiter->end_ns)
		return 0;
	uint64_t left = (waiter->end_ns - now) / 1000000 + 1;
	return left < SLEEP_MAX_MS ? (int)left : SLEEP_MAX_MS;
}

/* Attaches before the look that may be followed by sleep, so that no wake-up is missed. */
static void waiter_attach(struct waiter *waiter)
{
	int runtime = home_runtime_fd(store_home(waiter->kinf->store));
	struct ring_entry entry;
	int r = AGAIN;

	if (!waiter->ring && runtime >= 0)
		(void)ring_attach(runtime, "event.ring", &waiter->ring); /* none: look again */
	while (waiter->ring && (r = ring_next(waiter->ring, &entry)) == FOUND)
		;
	if (waiter->ring && r == LAPPED) {
		uint64_t seq;
		r = ring_to_tail(waiter->ring, &seq);
	}
	if (waiter->ring && r != AGAIN && r != 0)
		ring_detach(&waiter->ring);
}

static void waiter_sleep(struct waiter *waiter, int ms)
{
	if (waiter->ring) {
		if (ring_wait(waiter->ring, ms) == GONE)
			ring_detach(&waiter->ring);
		return;
	}
	if (ms > LOOK_AGAIN_MS)
		ms = LOOK_AGAIN_MS;
	struct timespec pause = {.tv_nsec = (long)ms * 1000000};
	(void)nanosleep(&pause, NULL); /* woken early: looks early */
}

/* 0, ERR_TIMEOUT without a sentence, or what went wrong. */
static int wait_for(struct kinf *kinf, int timeout_ms, condition_fn *condition, void *arg)
{
	struct waiter waiter = {.kinf = kinf};
	int r;

	if (timeout_ms >= 0)
		waiter.end_ns = proc_monotonic_ns() + (uint64_t)timeout_ms * 1000000 + 1;
	for (;;) {
		waiter_attach(&waiter);
		r = waiter_look(&waiter, condition, arg);
		if (r != 0)
			break;
		int ms = remaining_ms(&waiter);
		if (ms == 0) {
			r = ERR_TIMEOUT;
			break;
		}
		waiter_sleep(&waiter, ms);
	}
	ring_detach(&waiter.ring);
	kinf_snapshot_close(&waiter.snapshot);
	return r > 0 ? 0 : r;
}

struct names {
	const char *const *names;
	size_t n;
	const char *lacking; /* the first that is not there */
};

static int all_synced(struct kinf_snapshot *snapshot, void *arg)
{
	struct names *wanted = arg;

	for (size_t i = 0; i < wanted->n; i++) {
		const struct feed_set *set;
		int r = feed_set_get(snapshot, wanted->names[i], &set);

		wanted->lacking = wanted->names[i];
		if (r == AGAIN || r == ERR_NO_FEED)
			return 0;
		if (r < 0)
			return r;
		for (size_t f = 0; f < set->n; f++)
			if (!set->feeds[f].visible)
				return 0;
	}
	return 1;
}

int kinf_wait_synced(struct kinf *kinf, const char *const *feeds, size_t n, int timeout_ms)
{
	struct names wanted = {feeds, n, n ? feeds[0] : ""};
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	r = wait_for(kinf, timeout_ms, all_synced, &wanted);
	if (r == ERR_TIMEOUT)
		r = err_say(r, "feed '%s' was not listed within %d ms", wanted.lacking, timeout_ms);
	return kinf_result(kinf, r);
}

struct version {
	const char *feed;
	struct bytes rv;
	uint64_t need; /* last seq of the journal when its checkpoints had reached RV; 0: not yet */
	uint8_t journal[16]; /* the one that NEED is a seq of */
};

/* All checkpoints at or above the version: 1, 0 or an error. */
static int is_journaled(const struct feed_set *set, struct bytes rv)
{
	for (size_t f = 0; f < set->n; f++) {
		struct bytes at = set->feeds[f].checkpoint.rv;
		int order = rv_compare(at, rv);

		if (order == RV_NOT_COMPARABLE && at.size)
			return err_set(ERR_UNSUPPORTED, "comparing resourceVersion '%.*s' with '%.*s'",
				BYTES_ARG(rv), BYTES_ARG(at));
		if (order != 0 && order != 1)
			return 0;
	}
	return 1;
}

/* First the journal has the version, then everything it held at that moment must be visible. */
static int has_version(struct kinf_snapshot *snapshot, void *arg)
{
	struct version *wanted = arg;
	const struct feed_set *set;
	struct journal_meta meta;
	int r = feed_set_get(snapshot, wanted->feed, &set);

	if (r != FOUND)
		return r < 0 ? r : 0;
	if (memcmp(wanted->journal, snapshot_uuid(snapshot->snapshot), sizeof(wanted->journal)) != 0)
		wanted->need = 0;
	if (!wanted->need) {
		r = is_journaled(set, wanted->rv);
		if (r == 1)
			r = journal_meta(snapshot_journal(snapshot->snapshot),
				snapshot_journal_txn(snapshot->snapshot), &meta);
		else
			return r;
		if (r < 0)
			return r;
		wanted->need = meta.next_seq - 1;
		memcpy(wanted->journal, meta.uuid, sizeof(wanted->journal));
	}
	for (size_t f = 0; f < set->n; f++)
		if (set->feeds[f].visible < wanted->need)
			return 0;
	return 1;
}

int kinf_wait_rv(struct kinf *kinf, const char *feed, const char *resource_version, int timeout_ms)
{
	struct version wanted = {feed, bytes_str(resource_version), 0, {0}};

	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	r = wait_for(kinf, timeout_ms, has_version, &wanted);
	if (r == ERR_TIMEOUT)
		r = err_say(r, "feed '%s' did not reach resourceVersion '%s' within %d ms", feed,
			resource_version, timeout_ms);
	return kinf_result(kinf, r);
}
