/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds behind a name, and their states. */
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

static int feed_set_load(struct kinf_snapshot *snapshot, const char *name,
	const struct feed_set **ret_set)
{
	CLEANUP(feed_set_free) struct feed_set *set = calloc(1, sizeof(*set));

	if (set)
		set->name = strdup(name ? name : "");
	if (!set || !set->name)
		return err_set(-ENOMEM, "feed '%s'", name ? name : "");
	int r = snapshot_feeds(snapshot->snapshot, name, &set->feeds, &set->n);
	if (r == 0)
		r = ARRAY_ADD(snapshot->sets, snapshot->n_sets, snapshot->sets_room, set,
			"the feeds of a snapshot");
	if (r < 0)
		return r;
	*ret_set = TAKE(set);
	return 0;
}

bool feed_is_listing(const struct snapshot_feed *feed)
{
	return !feed->visible && feed->checkpoint.phase == FEED_LISTING;
}

static bool is_listed(const struct feed_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->feeds[i].visible)
			return true;
	return set->n == 0;
}

int feed_set_get(struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set)
{
	const char *wanted = name ? name : "";

	for (size_t i = 0; i < snapshot->n_sets; i++)
		if (strcmp(snapshot->sets[i]->name, wanted) == 0) {
			*ret_set = snapshot->sets[i];
			return is_listed(*ret_set) ? FOUND : AGAIN;
		}
	int r = feed_set_load(snapshot, name, ret_set);
	return r < 0 ? r : is_listed(*ret_set) ? FOUND : AGAIN;
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

/* The status page of the reflector; NULL: there is none. */
struct feeds_report {
	struct stats *page;
	bool running;
};

static void report_open(const struct home *home, struct feeds_report *ret)
{
	int runtime = home_runtime_fd(home);
	struct stats_process process;

	*ret = (struct feeds_report){.page = NULL};
	if (runtime < 0 || stats_open(runtime, "stats.reflector", &ret->page) < 0 ||
		stats_process(ret->page, &process) < 0)
		return;
	enum daemon_life life = daemon_life(home, HOME_REFLECTOR, &process);
	if (life == DAEMON_OTHERS)
		stats_close(&ret->page);
	ret->running = life == DAEMON_ALIVE && process.responding;
}

static void report_close(struct feeds_report *report)
{
	stats_close(&report->page);
}

/* The reflector's report of one feed. */
struct contact {
	bool running;
	bool known;
	bool moving; /* the reflector is filling another journal than ours */
	struct stats_feed row;
};

static void contact_read(const struct kinf_snapshot *snapshot, const struct feeds_report *report,
	uint32_t feed, struct contact *ret)
{
	const uint8_t *ours = journal_uuid(snapshot_journal(snapshot->snapshot));
	uint8_t uuid[16];

	*ret = (struct contact){.running = report->running};
	if (!report->page)
		return;
	ret->moving = stats_journal(report->page, uuid) && memcmp(uuid, ours, sizeof(uuid)) != 0;
	ret->known = !ret->moving && stats_feed_get(report->page, feed, &ret->row) == FOUND;
}

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

static void copy_definition(const struct feed_definition *d, struct kinf_feed_info *to)
{
	copy_text(to->name, sizeof(to->name), bytes_str(d->name));
	(void)snprintf(to->resource, sizeof(to->resource), *d->group ? "%s.%s" : "%s", d->resource,
		d->group);
	copy_text(to->kind, sizeof(to->kind), bytes_str(d->kind));
	copy_text(to->namespace_, sizeof(to->namespace_), bytes_str(d->namespace_));
	to->namespaced = d->namespaced;
	to->resync_ms = d->resync_ns / 1000000;
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

static int feed_status(struct kinf_snapshot *snapshot, const struct feeds_report *report,
	const struct snapshot_feed *feed, struct kinf_feed_info *ret)
{
	struct journal_meta meta;
	struct contact contact;
	int r = journal_meta(snapshot_journal(snapshot->snapshot),
		snapshot_journal_txn(snapshot->snapshot), &meta);

	if (r < 0)
		return r;
	contact_read(snapshot, report, feed->definition.id, &contact);
	*ret = (struct kinf_feed_info){
		.size = sizeof(*ret),
		.feed = feed->definition.id,
		.objects = feed->index.objects,
		.event = feed->visible,
		.lag = meta.next_seq - 1 - (feed->visible < meta.next_seq ? feed->visible
									   : meta.next_seq - 1),
		.synced = feed->visible > 0,
	};
	copy_definition(&feed->definition, ret);
	copy_contact(&contact, ret);
	copy_text(ret->resource_version, sizeof(ret->resource_version), snapshot_feed_rv(feed));
	copy_text(ret->state, sizeof(ret->state), bytes_str(feed_state(feed, &contact)));
	return 0;
}

int kinf_feed_status(struct kinf_snapshot *snapshot, const char *feed, kinf_feed_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	CLEANUP(report_close) struct feeds_report report = {.page = NULL};
	const struct feed_set *set;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get(snapshot, feed, &set);
	if (r < 0)
		return kinf_result(snapshot->kinf, r);
	report_open(store_home(snapshot->kinf->store), &report);
	for (size_t i = 0; i < set->n; i++) {
		struct kinf_feed_info status;

		r = feed_status(snapshot, &report, &set->feeds[i], &status);
		if (r == 0)
			r = fn(arg, &status);
		if (r != 0)
			return kinf_result(snapshot->kinf, r);
	}
	return 0;
}
