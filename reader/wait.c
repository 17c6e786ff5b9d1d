/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting until the cache meets a condition. The condition is checked on a new snapshot each
 * time the index has moved (the progress word), and every 50 ms: a bookmark moves only the journal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/err.h"
#include "common/proc.h"
#include "reader/handle.h"
#include "store/ring/taken.h"

#define POLL_MS 50

/* Returns: 1: the condition holds; 0: not yet; negative: it can't be decided. */
typedef int wait_condition_fn(struct kinf_snapshot *snapshot, void *arg);

struct waiter {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct taken_reader *word;
	uint64_t end_ns; /* monotonic; 0: never */
};

/* Returns whether there is time left for another check. */
static bool waiter_sleep(struct waiter *waiter)
{
	uint64_t now = proc_monotonic_ns();
	int ms = POLL_MS;

	if (waiter->end_ns && now >= waiter->end_ns)
		return false;
	if (waiter->end_ns && (waiter->end_ns - now) / 1000000 + 1 < POLL_MS)
		ms = (int)((waiter->end_ns - now) / 1000000 + 1);
	if (waiter->word) {
		if (taken_wait(waiter->word, ms) == GONE)
			taken_detach(&waiter->word);
		return true;
	}
	const struct timespec pause = {.tv_nsec = ms * 1000000L};
	(void)nanosleep(&pause, NULL); /* a signal only makes the next check come earlier */
	return true;
}

/* Returns: 1: the condition holds; 0: TIMEOUT_MS have passed; negative: it can't be decided. */
static int wait_for(struct kinf *kinf, int timeout_ms, wait_condition_fn *condition, void *arg)
{
	struct waiter waiter = {.kinf = kinf};
	int r, runtime = home_runtime_fd(store_home(kinf->store));

	if (timeout_ms >= 0)
		waiter.end_ns = proc_monotonic_ns() + (uint64_t)timeout_ms * 1000000 + 1;
	do {
		/* Before the check: no wake-up is missed. */
		if (waiter.word)
			taken_look(waiter.word);
		else if (runtime >= 0)
			err_ignore(taken_attach(runtime, &waiter.word), "the waiter polls");
		r = kinf_snapshot_take(kinf, &waiter.snapshot);
		if (r == AGAIN) {
			r = 0;
		} else if (r >= 0) {
			r = condition(waiter.snapshot, arg);
			int reset = kinf_snapshot_reset(waiter.snapshot);
			r = reset < 0 ? reset : r;
		}
	} while (r == 0 && waiter_sleep(&waiter));
	taken_detach(&waiter.word);
	kinf_snapshot_close(&waiter.snapshot);
	return r;
}

struct wait_names {
	const char *const *names;
	size_t n;
	const char *missing; /* the first unsynced feed */
	char why[512];       /* it is not, if known */
};

static int all_synced(struct kinf_snapshot *snapshot, void *arg)
{
	struct wait_names *wanted = arg;

	for (size_t i = 0; i < wanted->n; i++) {
		const struct feed_set *set;
		int r = feed_set_get_named(snapshot, wanted->names[i], &set);

		wanted->missing = wanted->names[i];
		(void)snprintf(wanted->why, sizeof(wanted->why), "%s",
			r == ERR_NO_FEED                    ? err_text(r)
			: kinf_has_unlisted(snapshot->kinf) ? kinf_error(snapshot->kinf)
							    : "");
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
	struct wait_names wanted = {.names = feeds, .n = n, .missing = n ? feeds[0] : ""};
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	r = wait_for(kinf, timeout_ms, all_synced, &wanted);
	if (r == 0)
		r = err_say(ERR_TIMEOUT, "feed '%s' was not listed within %d ms%s%s",
			wanted.missing, timeout_ms, *wanted.why ? ": " : "", wanted.why);
	return kinf_result(kinf, r < 0 ? r : 0);
}

struct wait_version {
	const char *feed, *namespace_; /* NULL: all feeds of the name */
	char late[64]; /* the namespace of a feed older than RV; "": it has none of its own */
	struct bytes rv;
	uint64_t need; /* last seq of the journal when its checkpoints had reached RV; 0: not yet */
	uint8_t journal[16]; /* the feed of NEED */
};

/* Waits first until the journal has the version, i.e. all checkpoints have reached it, then until
 * all records up to then are visible. */
static int has_version(struct kinf_snapshot *snapshot, void *arg)
{
	struct wait_version *wanted = arg;
	const struct feed_set *set;
	struct journal_meta meta;
	int r = feed_set_get_named(snapshot, wanted->feed, &set);

	if (r != FOUND)
		return r < 0 ? r : 0;
	if (memcmp(wanted->journal, snapshot_uuid(snapshot->snapshot), sizeof(wanted->journal)) !=
		0)
		wanted->need = 0;
	for (size_t f = 0; !wanted->need && f < set->n; f++) {
		const char *only = set->feeds[f].definition.namespace_;
		struct bytes at = set->feeds[f].checkpoint.rv;
		int order = rv_compare(at, wanted->rv);

		if (wanted->namespace_ && *only && strcmp(only, wanted->namespace_) != 0)
			continue;
		(void)snprintf(wanted->late, sizeof(wanted->late), "%s", only);
		if (order == RV_NOT_COMPARABLE && at.size)
			return err_set(ERR_UNSUPPORTED,
				"comparing resourceVersion '%.*s' with '%.*s'",
				BYTES_ARG(wanted->rv), BYTES_ARG(at));
		if (order != 0 && order != 1)
			return 0;
	}
	if (!wanted->need) {
		r = journal_meta(snapshot_journal(snapshot->snapshot),
			snapshot_journal_txn(snapshot->snapshot), &meta);
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
	return wait_rv_in(kinf, feed, NULL, resource_version, timeout_ms);
}

int wait_rv_in(struct kinf *kinf, const char *feed, const char *namespace_,
	const char *resource_version, int timeout_ms)
{
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	if (!resource_version)
		return kinf_result(
			kinf, err_say(-EINVAL, "the resourceVersion to wait for is NULL"));
	struct wait_version wanted = {
		.feed = feed, .namespace_ = namespace_, .rv = bytes_str(resource_version)};
	r = wait_for(kinf, timeout_ms, has_version, &wanted);
	if (r == 0)
		r = err_say(ERR_TIMEOUT,
			"feed '%s'%s%s did not reach resourceVersion '%s' within %d ms", feed,
			*wanted.late ? " in " : "", wanted.late, resource_version, timeout_ms);
	return kinf_result(kinf, r < 0 ? r : 0);
}
