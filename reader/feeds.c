/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the feeds that a name stands for, and reports their states. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/handle.h"

static void feed_set_free(struct feed_set **set)
{
	struct feed_set *s = TAKE(*set);

	if (!s)
		return;
	free(s->name);
	free(s->feeds);
	free(s);
}

void feed_sets_release(struct kinf_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_sets; i++)
		feed_set_free(&snapshot->sets[i]);
	free(snapshot->sets);
	snapshot->sets = NULL;
	snapshot->n_sets = snapshot->sets_room = 0;
}

int feed_set_get(struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set)
{
	CLEANUP(feed_set_free) struct feed_set *set = NULL;
	const char *text = name ? name : "";
	const struct feed_set *found = NULL;

	for (size_t i = 0; i < snapshot->n_sets && !found; i++)
		if (strcmp(snapshot->sets[i]->name, text) == 0)
			found = snapshot->sets[i];
	if (!found) {
		set = calloc(1, sizeof(*set));
		if (set)
			set->name = strdup(text);
		if (!set || !set->name)
			return err_set(-ENOMEM, "feed '%s'", text);
		int r = snapshot_feeds(snapshot->snapshot, name, &set->feeds, &set->n);
		if (r == 0)
			r = ARRAY_ADD(snapshot->sets, snapshot->n_sets, snapshot->sets_room, set,
				"the feeds of a snapshot");
		if (r < 0)
			return r;
		found = TAKE(set);
	}
	*ret_set = found;
	for (size_t i = 0; i < found->n; i++)
		if (found->feeds[i].visible)
			return FOUND;
	return found->n ? AGAIN : FOUND;
}

/* Trusts the role's lock, because a pid means nothing in another PID namespace, and because the runtime
 * directory of a copy is the original's. Only if the lock can't be checked the pid decides. */
enum daemon_life daemon_life(const struct home *home, enum home_role role,
	const struct stats_process *page)
{
	int holder = home_role_holder(home, role);

	if (holder > 0 ? holder == page->pid : holder < 0 && page->alive)
		return DAEMON_ALIVE;
	return page->alive ? DAEMON_OTHERS : DAEMON_DEAD;
}

/* The reflector's report of one feed. */
struct contact {
	bool running;
	bool known;
	bool moving; /* the reflector is filling another journal than ours */
	struct stats_feed row;
};

/* `live` and `stale` are stored nowhere: they follow from the phase and the reflector's report. */
static const char *feed_state(const struct snapshot_feed *feed, const struct contact *contact)
{
	switch (feed->checkpoint.phase) {
	case FEED_LISTING:
		if (!contact->running)
			return "offline";
		return contact->known && contact->row.error[0] ? "error" : "listing";
	case FEED_FORBIDDEN:
		return "forbidden";
	case FEED_GONE:
	case FEED_REMOVED:
		return "gone";
	case FEED_ERROR:
		return "error";
	default:
		break;
	}
	if (contact->running && contact->moving)
		return "stale";
	if (!contact->running || !contact->known)
		return "offline";
	return contact->row.error[0] ? "stale" : "live";
}

static void copy_text(char *to, size_t size, struct bytes text)
{
	(void)snprintf(to, size, "%.*s", BYTES_ARG(text));
}

static void copy_contact(const struct contact *contact, struct kinf_feed_info *to)
{
	const struct stats_feed *row = &contact->row;

	to->last_contact_seconds = -1;
	if (contact->running && contact->moving)
		copy_text(to->last_error, sizeof(to->last_error), BYTES_LIT("the cluster is "
			"another one, or in another past: a new journal is being filled"));
	if (!contact->known)
		return;
	to->lists = row->lists;
	to->watches = row->watches;
	to->events = row->events;
	to->retries = row->retries;
	to->bytes = row->bytes;
	to->list_done = row->list_done;
	to->list_total = row->list_total;
	copy_text(to->last_error, sizeof(to->last_error), bytes_str(row->error));
	uint64_t now = proc_realtime_ns();
	if (row->last_contact_ns && row->last_contact_ns <= now)
		to->last_contact_seconds = (double)(now - row->last_contact_ns) / 1e9;
}

/* PAGE: the status page of the reflector, NULL if there is none; RUNNING: it is alive. */
static int feed_status(struct kinf_snapshot *snapshot, struct stats *page, bool running,
	const struct snapshot_feed *feed, struct kinf_feed_info *ret)
{
	struct journal *journal = snapshot_journal(snapshot->snapshot);
	const struct feed_definition *d = &feed->definition;
	struct contact contact = {.running = running};
	struct journal_meta meta;
	uint8_t uuid[16];
	int r = journal_meta(journal, snapshot_journal_txn(snapshot->snapshot), &meta);

	if (r < 0)
		return r;
	if (page) {
		contact.moving = stats_journal(page, uuid) &&
			memcmp(uuid, journal_uuid(journal), sizeof(uuid)) != 0;
		contact.known = !contact.moving && stats_feed_get(page, d->id, &contact.row) == FOUND;
	}
	*ret = (struct kinf_feed_info){
		.size = sizeof(*ret),
		.feed = d->id,
		.objects = feed->index.objects,
		.event = feed->visible,
		.lag = meta.next_seq - 1 - (feed->visible < meta.next_seq ? feed->visible
									   : meta.next_seq - 1),
		.synced = feed->visible > 0,
		.namespaced = d->namespaced,
		.resync_ms = d->resync_ns / 1000000,
	};
	copy_text(ret->name, sizeof(ret->name), bytes_str(d->name));
	(void)snprintf(ret->resource, sizeof(ret->resource), *d->group ? "%s.%s" : "%s", d->resource,
		d->group);
	copy_text(ret->kind, sizeof(ret->kind), bytes_str(d->kind));
	copy_text(ret->namespace_, sizeof(ret->namespace_), bytes_str(d->namespace_));
	copy_contact(&contact, ret);
	copy_text(ret->resource_version, sizeof(ret->resource_version), snapshot_feed_rv(feed));
	copy_text(ret->state, sizeof(ret->state), bytes_str(feed_state(feed, &contact)));
	return 0;
}

int kinf_feed_status(struct kinf_snapshot *snapshot, const char *feed, kinf_feed_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	CLEANUP(stats_close) struct stats *page = NULL;
	struct stats_process process;
	const struct feed_set *set;
	bool running = false;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get(snapshot, feed, &set);
	if (r < 0)
		return kinf_result(snapshot->kinf, r);
	const struct home *home = store_home(snapshot->kinf->store);
	int runtime = home_runtime_fd(home);
	if (runtime >= 0 && stats_open(runtime, "stats.reflector", &page) >= 0 &&
		stats_process(page, &process) >= 0) {
		enum daemon_life life = daemon_life(home, HOME_REFLECTOR, &process);

		if (life == DAEMON_OTHERS)
			stats_close(&page);
		running = life == DAEMON_ALIVE && process.responding;
	}
	for (size_t i = 0; i < set->n; i++) {
		struct kinf_feed_info status;

		r = feed_status(snapshot, page, running, &set->feeds[i], &status);
		if (r == 0)
			r = fn(arg, &status);
		if (r != 0)
			return kinf_result(snapshot->kinf, r);
	}
	return 0;
}
