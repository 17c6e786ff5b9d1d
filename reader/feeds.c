/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the feeds of a name, and reports their states. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/moment.h"
#include "common/text/timestamp.h"
#include "reader/past.h"

/* by less, a clock made slower may seem to have been */
#define SET_BACK_NS UINT64_C(1000000000)

static void feed_set_free(struct feed_set **set)
{
	struct feed_set *s = TAKE(*set);

	if (!s)
		return;
	free(s->name);
	free(s->feeds);
	buf_release(&s->text);
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

/* Releases the sets of earlier states if other feeds may be chosen now. */
static int feed_sets_check(struct kinf_snapshot *snapshot)
{
	uint64_t hash;

	if (snapshot->sets_state == snapshot->state)
		return 0;
	int r = snapshot_feeds_hash(snapshot->snapshot, &hash);
	if (r < 0)
		return r;
	if (hash != snapshot->sets_hash)
		feed_sets_release(snapshot);
	snapshot->sets_hash = hash;
	snapshot->sets_state = snapshot->state;
	return 0;
}

int feed_set_get(struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set)
{
	CLEANUP(feed_set_free) struct feed_set *set = NULL;
	struct feed_set *found = NULL;
	int r = feed_sets_check(snapshot);

	if (r < 0)
		return r;
	for (size_t i = 0; i < snapshot->n_sets && !found; i++) {
		const char *of = snapshot->sets[i]->name;

		if (name && of ? strcmp(of, name) == 0 : name == of)
			found = snapshot->sets[i];
	}
	if (!found) {
		set = calloc(1, sizeof(*set));
		if (set && name)
			set->name = strdup(name);
		if (!set || (name && !set->name))
			return err_set(-ENOMEM, "feed '%s'", name ? name : "");
		const struct feed_set *all;
		r = name ? feed_set_get(snapshot, NULL, &all) : 0;

		/* All are read once: a wildcard can make thousands. */
		if (r >= 0)
			r = name ? snapshot_feeds_among(snapshot->snapshot, all->feeds, all->n,
					   name, &set->feeds, &set->n)
				 : snapshot_feeds(snapshot->snapshot, NULL, &set->feeds, &set->n);
		set->state = snapshot->state;
		if (r == 0)
			r = ARRAY_ADD(snapshot->sets, snapshot->n_sets, snapshot->sets_room, set,
				"the feeds of a snapshot");
		if (r < 0)
			return r;
		found = TAKE(set);
	} else if (found->state != snapshot->state) {
		r = snapshot_feeds_renew(snapshot->snapshot, found->feeds, found->n, &found->text);
		if (r < 0)
			return r;
		found->state = snapshot->state;
	}
	*ret_set = found;
	kinf_forget_unlisted();
	for (size_t i = 0; i < found->n; i++)
		if (found->feeds[i].visible)
			return FOUND;
	if (found->n)
		feed_explain_unlisted(snapshot, &found->feeds[0]);
	return found->n ? AGAIN : FOUND;
}

int feed_set_get_named(
	struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set)
{
	return name ? feed_set_get(snapshot, name, ret_set)
		    : err_say(-EINVAL, "the name of the feed is NULL");
}

struct status_view {
	struct daemon_view daemon[HOME_ROLE_MAX];
	bool moving; /* the reflector is filling another journal than ours */
	struct journal_meta meta;
	uint64_t taken;
};

void daemon_view_release(struct daemon_view *view)
{
	stats_close(&view->page);
}

static void status_view_release(struct status_view *view)
{
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		daemon_view_release(&view->daemon[i]);
}

void daemon_view_take(const struct home *home, enum home_role role, struct daemon_view *view)
{
	static const char *const pages[HOME_ROLE_MAX] = {
		[HOME_REFLECTOR] = "stats.reflector", [HOME_PROCESSOR] = "stats.processor"};

	daemon_view_take_page(home, pages[role], home_role_holder(home, role), view);
}

void daemon_view_take_page(
	const struct home *home, const char *page, int holder, struct daemon_view *view)
{
	int runtime = home_runtime_fd(home);

	if (runtime < 0 || stats_open(runtime, page, &view->page) < 0 ||
		stats_process(view->page, &view->process) < 0) {
		stats_close(&view->page);
		view->alive = holder != 0;
		return;
	}
	/* The role's lock is trusted, because a pid means nothing in another PID namespace, and
	 * because the runtime directory of a copy is the original's. Only if the lock can't be
	 * checked the pid decides. */
	view->alive = holder > 0 ? holder == view->process.pid : holder < 0 && view->process.alive;
	if (!view->alive && view->process.alive)
		stats_close(&view->page); /* of a daemon of the original, if this store is a copy */
	view->responding = view->alive && view->process.responding;
}

static int status_view_take(struct kinf_snapshot *snapshot, struct status_view *view)
{
	const struct home *home = store_home(snapshot->kinf->store);
	struct journal *journal = snapshot_journal(snapshot->snapshot);
	struct stats *page;
	uint8_t uuid[16];

	for (int i = 0; i < HOME_ROLE_MAX; i++)
		daemon_view_take(home, (enum home_role)i, &view->daemon[i]);
	page = view->daemon[HOME_REFLECTOR].page;
	view->moving = page && stats_journal(page, uuid) &&
		       memcmp(uuid, journal_uuid(journal), sizeof(uuid)) != 0;
	view->taken = snapshot_taken(snapshot->snapshot);
	return journal_meta(journal, snapshot_journal_txn(snapshot->snapshot), &view->meta);
}

/* ---- the state of one feed ---------------------------------------------- */

const char *process_failure(const struct stats_process *page)
{
	return strcmp(page->state, "failed") == 0 ? page->error : "";
}

const char *daemon_view_remedy(const struct daemon_view *daemon)
{
	const char *failure = daemon->page ? process_failure(&daemon->process) : "";

	return *failure ? failure : "start it with 'kinf run'";
}

/* Writes why DAEMON is no help now. */
static void daemon_view_explain(
	const struct daemon_view *daemon, const char *name, char *to, size_t size)
{
	const char *failure = daemon->page ? process_failure(&daemon->process) : "";

	if (!daemon->alive)
		(void)snprintf(
			to, size, "%s does not run%s%.190s", name, *failure ? ": " : "", failure);
	else if (daemon->page)
		(void)snprintf(to, size,
			"%s (process %d) runs, but does not respond: it is stopped, or it hangs",
			name, (int)daemon->process.pid);
	else
		(void)snprintf(to, size,
			"%s runs, but has no status page yet, or one that can't be read", name);
}

#define IMPORTED "imported from a dump"

/* A feed is live when the reflector runs, has heard of it since it started and reports no error,
 * and the processor keeps the index. Returns the state of a listed feed; if it is not "live", WHY
 * is the reason, or "". */
static const char *feed_state_listed(const struct status_view *view, const struct stats_feed *row,
	bool visible, uint64_t lag, char *why, size_t size)
{
	const struct daemon_view *reflector = &view->daemon[HOME_REFLECTOR];
	const struct daemon_view *processor = &view->daemon[HOME_PROCESSOR];
	const struct stats_process *process = &reflector->process;

	*why = '\0';
	if (!reflector->responding) {
		if (!reflector->alive && journal_is_imported(&view->meta))
			(void)snprintf(why, size, "%s", IMPORTED);
		else
			daemon_view_explain(reflector, "kinf-reflector", why, size);
		/* Without a page it says nothing of any feed, as when it has just started. */
		return reflector->alive && reflector->page ? "stale" : "offline";
	}
	if (view->moving)
		(void)snprintf(why, size,
			"the cluster is another one, or in another past: a new journal is being "
			"filled");
	else if (!row)
		(void)snprintf(why, size, "kinf-reflector does not watch it%s%.200s",
			*process->error ? ": " : "", process->error);
	else if (row->error[0])
		(void)snprintf(why, size, "%s", row->error);
	else if (!row->heard_ns && *process->error)
		(void)snprintf(why, size, "%s", process->error);
	else if (!row->heard_ns)
		(void)snprintf(why, size, "kinf-reflector has not heard of it since it started");
	else if (!processor->responding)
		daemon_view_explain(processor, "kinf-processor", why, size);
	else if (lag && *processor->process.error)
		(void)snprintf(why, size, "kinf-processor: %.200s", processor->process.error);
	return *why ? "stale" : visible ? "live" : "listing";
}

/* `live`, `stale` and `offline` are stored nowhere: they follow from the phase and the daemons'
 * status pages. */
static const char *feed_state(const struct snapshot_feed *feed, const struct status_view *view,
	const struct stats_feed *row, uint64_t lag, char *why, size_t size)
{
	const struct daemon_view *reflector = &view->daemon[HOME_REFLECTOR];

	switch (feed->checkpoint.phase) {
	case FEED_LISTING:
	case FEED_FORBIDDEN:
	case FEED_GONE:
	case FEED_REMOVED:
	case FEED_ERROR:
		break;
	default:
		return feed_state_listed(view, row, feed->visible != 0, lag, why, size);
	}
	/* Its own last error or, until the reflector has heard of it, the reflector's. */
	const char *error = reflector->process.error;
	if (row && (row->error[0] || row->heard_ns || row->list_done))
		(void)snprintf(why, size, "%s", row->error);
	else if (feed->checkpoint.phase == FEED_LISTING || !*error)
		(void)snprintf(why, size, "%s", error);
	else
		(void)snprintf(why, size, "so it was before kinf-reflector started: %.190s", error);
	if (!reflector->responding)
		daemon_view_explain(reflector, "kinf-reflector", why, size);
	switch (feed->checkpoint.phase) {
	case FEED_LISTING:
		return !reflector->alive || !reflector->page ? "offline"
		       : reflector->responding && *why       ? "error"
							     : "listing";
	case FEED_FORBIDDEN:
		return "forbidden";
	case FEED_ERROR:
		return "error";
	default:
		return "gone";
	}
}

/* Returns how old the feed's data is, in seconds: the time since the last stored contact or, if the
 * reader does not see its outcome yet, since the first record beyond its sight. Negative: unknown,
 * also if the record is of the future: the clock was set back since. */
static double feed_age(
	struct kinf_snapshot *snapshot, const struct snapshot_feed *feed, uint64_t lag)
{
	uint64_t age, now = proc_realtime_ns();
	struct record record;

	if (!moment_age_ns(&feed->checkpoint.contact, &age))
		return -1;
	if (lag && feed->visible) {
		int r = journal_get(snapshot_journal(snapshot->snapshot),
			snapshot_journal_txn(snapshot->snapshot), feed->visible + 1, &record);

		if (r != FOUND) {
			err_ignore(r < 0 ? r : 0, "the age is unknown then");
			return -1;
		}
		if (record.time_ns > now + SET_BACK_NS)
			return -1;
		if (record.time_ns < now && now - record.time_ns > age)
			age = now - record.time_ns;
	}
	return (double)age / 1e9;
}

static void copy_text(char *to, size_t size, struct bytes text)
{
	(void)snprintf(to, size, "%.*s", BYTES_ARG(text));
}

static void feed_status(struct kinf_snapshot *snapshot, const struct status_view *view,
	const struct snapshot_feed *feed, struct kinf_feed_info *ret)
{
	const struct feed_definition *d = &feed->definition;
	const struct stats *page = view->moving ? NULL : view->daemon[HOME_REFLECTOR].page;
	char time[TIMESTAMP_SIZE];
	struct record record;
	struct stats_feed row;
	bool reported = page && stats_feed_get(page, d->id, &row) == FOUND;
	uint64_t end = view->meta.next_seq - 1, seen = feed->visible ? feed->visible : view->taken;
	/* the feed's records in the journal that are invisible to the reader yet */
	uint64_t lag = feed->checkpoint.last > seen && end > seen ? end - seen : 0;

	*ret = (struct kinf_feed_info){
		.size = sizeof(*ret),
		.feed = d->id,
		.objects = feed->index.objects,
		.event = feed->visible,
		.lag = lag,
		.synced = feed->visible > 0,
		.namespaced = d->namespaced,
		.resync_ms = d->resync_ns / 1000000,
		.last_contact_seconds = feed_age(snapshot, feed, lag),
	};
	copy_text(ret->name, sizeof(ret->name), bytes_str(d->name));
	copy_text(ret->full_name, sizeof(ret->full_name), bytes_str(d->name));
	(void)snprintf(ret->resource, sizeof(ret->resource), *d->group ? "%s.%s" : "%s",
		d->resource, d->group);
	copy_text(ret->kind, sizeof(ret->kind), bytes_str(d->kind));
	copy_text(ret->namespace_, sizeof(ret->namespace_), bytes_str(d->namespace_));
	if (reported) {
		ret->lists = row.lists;
		ret->watches = row.watches;
		ret->events = row.events;
		ret->retries = row.retries;
		ret->bytes = row.bytes;
		ret->list_done = row.list_done;
		ret->list_total = row.list_total;
	}
	copy_text(ret->resource_version, sizeof(ret->resource_version), snapshot_feed_rv(feed));
	const char *state = feed_state(
		feed, view, reported ? &row : NULL, lag, ret->last_error, sizeof(ret->last_error));
	copy_text(ret->state, sizeof(ret->state), bytes_str(state));
	if (strcmp(ret->last_error, IMPORTED) != 0)
		return;
	/* of when the dump is: the time of its newest record */
	int r = journal_get(snapshot_journal(snapshot->snapshot),
		snapshot_journal_txn(snapshot->snapshot), feed->checkpoint.last, &record);
	err_ignore(r < 0 ? r : 0, "it is said without a time then");
	if (r != FOUND)
		return;
	timestamp_seconds(record.time_ns, time);
	(void)snprintf(ret->last_error, sizeof(ret->last_error), "%s of %s", IMPORTED, time);
}

void feed_explain_unlisted(struct kinf_snapshot *snapshot, const struct snapshot_feed *feed)
{
	CLEANUP(status_view_release) struct status_view view = {.moving = false};
	struct kinf_feed_info info;
	char text[1088], remedy[320] = "start it with 'kinf run'", done[48] = "";
	int r = status_view_take(snapshot, &view);

	err_ignore(r, "the caller says it in general words");
	if (r < 0)
		return;
	feed_status(snapshot, &view, feed, &info);
	if (strcmp(info.state, "listing") == 0)
		(void)snprintf(done, sizeof(done), " (%" PRIu64 " objects so far)", info.list_done);
	bool is_forbidden = strcmp(info.state, "forbidden") == 0;
	if (strcmp(info.state, "offline") != 0)
		(void)snprintf(remedy, sizeof(remedy),
			is_forbidden ? "grant the account of the daemons 'list' and 'watch' of %s"
				     : "wait with 'kinf wait %s'",
			is_forbidden ? info.resource : info.full_name);
	(void)snprintf(text, sizeof(text), "%s%s%s: never listed so far, it is %s%s%s%s; %s",
		info.full_name, *info.namespace_ ? " in " : "", info.namespace_, info.state, done,
		*info.last_error ? ": " : "", info.last_error, remedy);
	kinf_say_unlisted(snapshot->kinf, text);
}

int kinf_feed_status(struct kinf_snapshot *snapshot, const char *feed, kinf_feed_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	CLEANUP(status_view_release) struct status_view view = {.moving = false};
	const struct feed_set *set;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get(snapshot, feed, &set);
	if (r >= 0)
		r = status_view_take(snapshot, &view);
	if (r < 0)
		return kinf_result_of(snapshot, r);
	for (size_t i = 0; i < set->n; i++) {
		struct kinf_feed_info status;

		feed_status(snapshot, &view, &set->feeds[i], &status);
		r = fn(arg, &status);
		if (r != 0)
			return kinf_result_of(snapshot, r);
	}
	return 0;
}
