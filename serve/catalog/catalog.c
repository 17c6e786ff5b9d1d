/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/catalog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "print/table/age.h"
#include "reader/past.h"
#include "store/ring/progress_request.h"
#include "store/ring/ring.h"

#define EARLIER_MAX          1024
#define EARLIER_NAME         512
#define CATALOG_MAGIC        0x63617461u
#define CATALOG_POLL_MS      500                  /* checkpoints, states */
#define CATALOG_REQUESTED_MS 50                   /* while a client waits for progress */
#define CATALOG_REQUEST_NS   UINT64_C(250000000)  /* from one request for a feed to the next */
#define CATALOG_REQUESTED_NS UINT64_C(4000000000) /* longer than a client waits */
#define CATALOG_STATE_NS     UINT64_C(1000000000)
/* A first list that has failed for as long is not waited for. */
#define FAILING_NS (15 * UINT64_C(1000000000))

/* The newest RV of an earlier journal: clients may come back with it. */
struct earlier_feed {
	char resource[EARLIER_NAME]; /* group/version/resource */
	timeline_rv newest;
};

struct catalog {
	uint32_t magic;
	struct store *store;
	struct kinf *kinf; /* for states */
	struct kinf_snapshot *kinf_snapshot;
	bool is_past;   /* the log is shown up to `at` */
	bool is_replay; /* `at` moves */
	struct replay replay;
	catalog_news_fn *news;
	void *argument;
	pthread_t thread;
	bool thread_runs;
	bool stop;                   /* atomic */
	uint64_t requested_ns;       /* atomic: when a request was sent last */
	pthread_rwlock_t lock;       /* of all below; only the feeder writes */
	struct catalog_feed **feeds; /* by id */
	size_t n, room;
	struct earlier_feed *earlier;
	size_t n_earlier, earlier_room;
	bool is_imported; /* the store is of a dump */
	bool ready;
	char reason[200]; /* if it is not */
	/* The feeder's own. */
	struct snapshot *snapshot;
	struct ring_reader *ring;
	bool uuid_known;
	uint8_t uuid[16];
	uint64_t definitions;
	uint64_t at;       /* the last event of the log that is shown; UINT64_MAX: all */
	uint64_t next_ns;  /* of a replay: when the next event was recorded; UINT64_MAX: none is */
	uint64_t examined; /* the log, up to here */
	uint64_t states_ns;
	bool states_changed; /* `news` is to be called for it */
	bool has_index;
};

/* ---- earlier journals --------------------------------------------------- */

/* Finds the resource of D, and writes its NAME. Returns NULL if it is not there. */
static struct earlier_feed *earlier_find(
	const struct catalog *c, const struct feed_definition *d, char ret_name[EARLIER_NAME])
{
	(void)snprintf(ret_name, EARLIER_NAME, "%s/%s/%s", d->group, d->version, d->resource);
	for (size_t i = 0; i < c->n_earlier; i++)
		if (strcmp(c->earlier[i].resource, ret_name) == 0)
			return &c->earlier[i];
	return NULL;
}

static void earlier_remember(
	struct catalog *c, const struct feed_definition *definition, timeline_rv newest)
{
	struct earlier_feed feed = {.newest = newest};
	struct earlier_feed *known = earlier_find(c, definition, feed.resource);
	int r = 0;

	if (known && known->newest < newest)
		known->newest = newest;
	if (!known && c->n_earlier < EARLIER_MAX)
		r = ARRAY_ADD(c->earlier, c->n_earlier, c->earlier_room, feed,
			"RVs of an earlier journal");
	err_ignore(r, "a client that comes back waits instead of listing again");
}

/* ---- feeds -------------------------------------------------------------- */

void catalog_release(struct catalog_feed **feed)
{
	struct catalog_feed *f = TAKE(*feed);

	if (!f || __atomic_sub_fetch(&f->references, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	coverage_release(&f->coverage);
	floor_release(&f->forwarded);
	since_release(&f->since);
	timeline_release(&f->timeline);
	free(f->texts);
	for (size_t i = 0; i < CATALOG_LATER; i++)
		free(f->later[i]);
	free(f);
}

/* Copies DEFINITION with its texts. */
static int catalog_copy_definition(
	struct catalog_feed *feed, const struct feed_definition *definition)
{
	struct feed_definition *d = &feed->definition;
	size_t size = 0;

	*d = *definition;
	for (size_t i = 0; i < FEED_TEXTS; i++)
		size += strlen(*feed_definition_text(d, i)) + 1;
	char *p = feed->texts = malloc(size);
	if (!p)
		return err_set(-ENOMEM, "feed '%s'", definition->name);
	for (size_t i = 0; i < FEED_TEXTS; i++) {
		const char **text = feed_definition_text(d, i);
		size_t length = strlen(*text) + 1;

		*text = memcpy(p, *text, length);
		p += length;
	}
	return 0;
}

/* Takes what may change in the definition of a known feed. */
static int catalog_refresh_definition(
	struct catalog_feed *feed, const struct feed_definition *definition)
{
	struct feed_definition *d = &feed->definition;
	const char **const texts[CATALOG_LATER] = {&d->aliases, &d->categories, &d->columns};
	const char *const values[CATALOG_LATER] = {
		definition->aliases, definition->categories, definition->columns};

	for (size_t i = 0; i < CATALOG_LATER; i++) {
		if (strcmp(*texts[i], values[i]) == 0)
			continue;
		char *copy = strdup(values[i]);
		if (!copy)
			return err_set(-ENOMEM, "feed '%s'", d->name);
		free(feed->later[i]);
		*texts[i] = feed->later[i] = copy;
	}
	return 0;
}

static struct catalog_feed *catalog_by_id(const struct catalog *c, uint32_t id)
{
	size_t i = ARRAY_PLACE(c->feeds, c->n, ->id, id);

	return i < c->n && c->feeds[i]->id == id ? c->feeds[i] : NULL;
}

/* Adds a new feed, or refreshes a known one. Ids only grow. */
static int catalog_take_definition(struct catalog *c, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	char name[EARLIER_NAME];

	struct catalog_feed *feed = catalog_by_id(c, definition->id);
	if (feed)
		return catalog_refresh_definition(feed, definition);
	if (checkpoint->phase == FEED_REMOVED)
		return 0;
	feed = calloc(1, sizeof(*feed));
	if (!feed)
		return err_set(-ENOMEM, "feed '%s'", definition->name);
	const struct earlier_feed *earlier = earlier_find(c, definition, name);
	feed->references = 1;
	floor_init(&feed->forwarded);
	since_init(&feed->since);
	feed->id = definition->id;
	feed->age_seconds = -1;
	feed->timeline.earlier = earlier ? earlier->newest : 0;
	timeline_begin(&feed->timeline, checkpoint);
	int r = catalog_copy_definition(feed, definition);
	if (r == 0)
		r = coverage_init(&feed->coverage, &feed->definition);
	if (r == 0)
		r = ARRAY_ADD(c->feeds, c->n, c->room, feed, "the list of feeds");
	if (r < 0)
		catalog_release(&feed);
	return r;
}

/* Drops the feed at I; its watches end. */
static void catalog_drop(struct catalog *c, size_t i)
{
	struct catalog_feed *feed = c->feeds[i];

	__atomic_store_n(&feed->gone, true, __ATOMIC_RELEASE);
	(void)__atomic_add_fetch(&feed->news, 1, __ATOMIC_ACQ_REL);
	memmove(&c->feeds[i], &c->feeds[i + 1], (--c->n - i) * sizeof(*c->feeds));
	catalog_release(&feed);
}

static void catalog_drop_all(struct catalog *c, bool remember)
{
	while (c->n) {
		const struct catalog_feed *feed = c->feeds[c->n - 1];

		if (remember && !feed->timeline.opaque && feed->timeline.newest)
			earlier_remember(c, &feed->definition, feed->timeline.newest);
		catalog_drop(c, c->n - 1);
	}
	c->definitions = 0;
}

/* ---- following the journal ---------------------------------------------- */

/* Steps on. The log ends where it can't be read: the watches of all feeds begin again after it. */
static int catalog_next(struct catalog *c, struct journal_walk *log, struct record *ret_record)
{
	int r = journal_walk_next(log, ret_record);

	if (r == ERR_CORRUPT)
		r = snapshot_result(c->snapshot, r);
	if (r != ERR_CORRUPT)
		return r;
	LOG(serve_log_damaged, .error = err_text(r));
	err_forget();
	c->examined = snapshot_last(c->snapshot);
	for (size_t i = 0; i < c->n; i++)
		timeline_break(&c->feeds[i]->timeline);
	return END;
}

/* Reads the log on to NEWEST, its last event; of a replay up to the time UNTIL_NS, or ONE record.
 * The timelines are ahead of the visible state until they are settled. */
static int catalog_read_log(
	struct catalog *c, uint64_t newest, uint64_t until_ns, bool one, uint64_t *ret_time_ns)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct record record;
	int r = snapshot_open_walk(c->snapshot, c->examined + 1, &log);

	c->next_ns = UINT64_MAX;
	while (r == 0 && (r = catalog_next(c, log, &record)) == FOUND) {
		if (c->is_replay && record.seq > c->at) {
			if (record.time_ns > until_ns && !one) {
				c->next_ns = record.time_ns;
				return 0;
			}
			one = false;
			c->at = record.seq;
			*ret_time_ns = record.time_ns;
		}
		struct catalog_feed *feed = catalog_by_id(c, record.feed);
		/* The log of the past is read from its beginning: old versions that are still
		 * current are there, but the history is trimmed. */
		bool trimmed = feed && c->is_past && record.seq <= feed->timeline.gone;
		r = feed && record.seq <= c->at && !trimmed ? timeline_add(&feed->timeline, &record)
							    : 0;
		if (r == 0)
			c->examined = record.seq;
	}
	if (r == END && c->is_replay && c->at < newest)
		c->at = newest; /* the last records were trimmed */
	return r == END ? 0 : r;
}

/* Settles FEED at END. Returns whether a client can see it. */
static bool catalog_settle_one(const struct catalog *c, struct catalog_feed *feed,
	const struct feed_checkpoint *checkpoint, uint64_t end)
{
	struct timeline *t = &feed->timeline;
	struct feed_checkpoint then = *checkpoint;
	timeline_rv newest = t->newest;
	bool was_listed = t->visible != 0;
	char rv[TIMELINE_RV_SIZE];

	feed->settled = true;
	if (c->is_past) { /* its RV is one of the present: the last entry's is meant */
		timeline_last(t, rv);
		then.rv = bytes_str(rv);
	}
	timeline_settle(t, &then, end);
	uint64_t shown = t->n > t->first ? t->entries[t->n - 1].seq : t->gone;
	bool is_news =
		newest != t->newest || shown != feed->shown || was_listed != (t->visible != 0);

	if (is_news)
		(void)__atomic_add_fetch(&feed->news, 1, __ATOMIC_ACQ_REL);
	feed->shown = shown;
	return is_news;
}

/* Settles all feeds at END, and drops those removed from the journal. */
static int catalog_settle(struct catalog *c, uint64_t end, bool *any)
{
	CLEANUP(feed_walk_release)
	struct feed_walk walk = {snapshot_journal(c->snapshot), snapshot_journal_txn(c->snapshot)};
	int r;

	for (size_t i = 0; i < c->n; i++)
		c->feeds[i]->settled = false;
	while ((r = feed_walk_next(&walk)) == FOUND) {
		struct catalog_feed *feed = catalog_by_id(c, walk.definition.id);

		if (feed && walk.checkpoint.phase != FEED_REMOVED)
			*any |= catalog_settle_one(c, feed, &walk.checkpoint, end);
	}
	for (size_t i = c->n; r == END && i-- > 0;)
		if (!c->feeds[i]->settled) {
			c->feeds[i]->removed = true;
			catalog_drop(c, i);
		}
	return r == END ? 0 : r;
}

/* Reads the log on to NEWEST, its last event, and settles the feeds. A step of a replay ends with
 * the first change that a client can see. */
static int catalog_go_on(struct catalog *c, uint64_t newest, bool *ret_any)
{
	bool one = false;
	int r;

	do {
		bool any = false;
		uint64_t until_ns = c->is_replay ? replay_until(&c->replay, &one) : 0, time_ns = 0;

		r = catalog_read_log(c, newest, until_ns, one, &time_ns);
		if (r == 0)
			r = catalog_settle(c, newest < c->at ? newest : c->at, &any);
		*ret_any |= any;
		if (r == 0 && c->is_replay)
			replay_came_to(&c->replay, c->at, time_ns, newest, any);
	} while (r == 0 && one);
	if (c->is_replay)
		age_set_now(replay_moment(&c->replay));
	return r;
}

/* Brings the catalog up to the snapshot, under the lock. */
static int catalog_take(struct catalog *c, bool *ret_any)
{
	struct journal *journal = snapshot_journal(c->snapshot);
	struct txn *txn = snapshot_journal_txn(c->snapshot);
	struct journal_meta meta;
	uint64_t hash, horizon;
	size_t before = c->n;

	if (c->uuid_known && c->is_past &&
		memcmp(c->uuid, snapshot_uuid(c->snapshot), sizeof(c->uuid)) != 0)
		return err_say(-ESTALE, "the store began a new journal: the state that was served "
					"is gone with the one before");
	if (c->uuid_known && memcmp(c->uuid, snapshot_uuid(c->snapshot), sizeof(c->uuid)) != 0) {
		catalog_drop_all(c, true);
		c->examined = 0;
		*ret_any = true;
	}
	memcpy(c->uuid, snapshot_uuid(c->snapshot), sizeof(c->uuid));
	c->uuid_known = true;
	int r = journal_meta(journal, txn, &meta);
	if (r < 0)
		return r;
	c->is_imported = journal_is_imported(&meta);
	horizon = meta.horizon;
	if (c->examined < horizon &&
		!c->is_past) { /* the first time, or trimmed before we have read it */
		catalog_drop_all(c, false);
		c->examined = horizon;
	}
	r = journal_definitions_hash(txn, &hash);
	if (r == 0 && hash != c->definitions) {
		CLEANUP(feed_walk_release) struct feed_walk walk = {journal, txn};

		while (r == 0 && (r = feed_walk_next(&walk)) == FOUND)
			r = catalog_take_definition(c, &walk.definition, &walk.checkpoint);
		r = r == END ? 0 : r;
		if (r == 0)
			c->definitions = hash;
	}
	if (r == 0)
		r = catalog_go_on(c, meta.next_seq - 1, ret_any);
	*ret_any |= before != c->n;
	return r;
}

static int catalog_take_state(void *argument, const struct kinf_feed_info *info)
{
	struct catalog *c = argument;
	struct catalog_feed *feed = catalog_by_id(c, info->feed);

	if (feed) {
		/* A dump is as new as it will ever be. */
		const char *state = c->is_imported ? "live" : info->state;
		bool was_live = strcmp(feed->state, "live") == 0;

		if (was_live != (strcmp(state, "live") == 0)) {
			/* Watches of leaves report it. */
			(void)__atomic_add_fetch(&feed->states, 1, __ATOMIC_ACQ_REL);
			(void)__atomic_add_fetch(&feed->news, 1, __ATOMIC_ACQ_REL);
			c->states_changed = true;
		}
		if (c->is_past) { /* the past is never stale */
			(void)snprintf(feed->state, sizeof(feed->state), "live");
			(void)snprintf(feed->why, sizeof(feed->why),
				"its first list is later than the state that is served");
			return 0;
		}
		feed->age_seconds = info->last_contact_seconds;
		(void)snprintf(feed->state, sizeof(feed->state), "%s", state);
		memcpy(feed->why, info->last_error, sizeof(feed->why));
		if (strcmp(state, "error") != 0)
			feed->failing_ns = 0;
		else if (!feed->failing_ns)
			feed->failing_ns = proc_monotonic_ns();
	}
	return 0;
}

/* Reads the states of feeds once a second: is the reflector alive, and its last contact. */
static void catalog_take_states(struct catalog *c)
{
	uint64_t now = proc_monotonic_ns();
	int r = 0;

	if (c->states_ns && now - c->states_ns < CATALOG_STATE_NS)
		return;
	c->states_ns = now;
	if (!c->kinf_snapshot)
		r = kinf_snapshot_open(c->kinf, &c->kinf_snapshot);
	else
		r = kinf_snapshot_renew(c->kinf_snapshot);
	c->has_index = r == 0;
	if (r == 0) {
		pthread_rwlock_wrlock(&c->lock);
		(void)kinf_feed_status(c->kinf_snapshot, NULL, catalog_take_state, c);
		pthread_rwlock_unlock(&c->lock);
		(void)kinf_snapshot_reset(c->kinf_snapshot);
	}
}

static bool catalog_refresh(struct catalog *c)
{
	bool any = false;
	int r = c->snapshot ? snapshot_renew_log(c->snapshot)
			    : snapshot_open_log(c->store, &c->snapshot);
	bool held = r == 0;

	pthread_rwlock_wrlock(&c->lock);
	if (r == 0)
		r = catalog_take(c, &any);
	if (r < 0 && c->ready)
		LOG(serve_catalog_failed, .error = err_text(r));
	c->ready = r == 0 && c->has_index;
	if (r == AGAIN || (r == 0 && !c->has_index))
		(void)snprintf(c->reason, sizeof(c->reason), "the index is being built");
	else if (r < 0)
		(void)snprintf(c->reason, sizeof(c->reason), "%.190s", err_text(r));
	pthread_rwlock_unlock(&c->lock);
	err_forget();
	if (held) {
		r = snapshot_reset(c->snapshot);
		err_ignore(r < 0 ? r : 0, "a copy that expires is read again");
	}
	return any;
}

/* Sleeps until the ring reports a commit, or the next event of a replay is due. */
static void catalog_wait(struct catalog *c)
{
	struct home *home = store_home(c->store);
	int runtime = home_runtime_fd(home);
	int r;

	if (c->is_replay) {
		replay_wait(&c->replay, c->next_ns);
		return;
	}
	if (c->ring && ring_is_replaced(c->ring))
		ring_detach(&c->ring);
	if (!c->ring && runtime >= 0) {
		r = ring_attach(runtime, "delta.ring", &c->ring);
		if (r == 0)
			return; /* earlier records are read first */
		err_ignore(
			r, "no reflector has run here: the feeder reads the journal every 50 ms");
		c->ring = NULL;
		err_ignore(home_reopen(home), "the store that is open goes on being read");
	}
	if (!c->ring) {
		const struct timespec pause = {.tv_nsec = 50000000};
		(void)nanosleep(&pause, NULL); /* a signal may end it early */
		return;
	}
	uint64_t requested_ns = __atomic_load_n(&c->requested_ns, __ATOMIC_RELAXED);
	bool requested = requested_ns && proc_monotonic_ns() - requested_ns < CATALOG_REQUESTED_NS;
	if (ring_wait(c->ring, requested ? CATALOG_REQUESTED_MS : CATALOG_POLL_MS) == GONE)
		ring_detach(&c->ring);
}

static void *catalog_run(void *argument)
{
	struct catalog *c = argument;

	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		struct ring_entry entry;

		/* The entries only wake the feeder; it reads the records from the log. */
		if (c->ring && ring_next(c->ring, &entry) != AGAIN)
			(void)ring_to_tail(c->ring);
		bool any = catalog_refresh(c);
		c->states_changed = false;
		catalog_take_states(c);
		if (any || c->states_changed)
			c->news(c->argument);
		catalog_wait(c);
	}
	return NULL;
}

/* ---- the interface ------------------------------------------------------ */

/* Finds the event that AT means, and makes ages count to it. */
static int catalog_go_to(struct catalog *c, const char *at, const char *speed_text)
{
	struct past when;
	uint64_t speed;
	int r = past_parse(at, proc_realtime_ns(), &when);

	if (r == 0 && speed_text)
		r = replay_parse_speed(speed_text, &speed);
	if (r < 0)
		return r;
	r = kinf_snapshot_open(c->kinf, &c->kinf_snapshot);
	if (r == 0)
		r = past_enter(c->kinf_snapshot, &when);
	if (r != 0)
		return err_say(r < 0 ? r : -ESTALE, "%s", kinf_error(c->kinf));
	c->at = when.event;
	c->is_past = true;
	age_set_now(when.time_ns);
	if (speed_text)
		replay_init(&c->replay, when.time_ns, speed);
	c->is_replay = speed_text != NULL;
	return 0;
}

int catalog_open(const char *directory, const char *at, const char *speed, catalog_news_fn *news,
	void *argument, struct catalog **ret_catalog)
{
	CLEANUP(catalog_close) struct catalog *c = calloc(1, sizeof(*c));
	const struct store_options options = {.check = true};
	pthread_rwlockattr_t attributes;

	if (!c)
		return err_set(-ENOMEM, "the feeds to serve");
	*c = (struct catalog){.magic = CATALOG_MAGIC,
		.at = UINT64_MAX,
		.news = news,
		.argument = argument,
		.reason = "the feeds were not read yet"};
	/* Readers preferring each other would starve the feeder. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&c->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	int r = store_open(directory, &options, &c->store);
	if (r < 0)
		return r;
	r = kinf_open(directory, &c->kinf);
	if (r < 0)
		return err_say(r, "%s", kinf_error(c->kinf));
	r = at ? catalog_go_to(c, at, speed) : 0;
	if (r < 0)
		return err_add(r, "the state as of '%s' (serve.at)", at);
	(void)catalog_refresh(c); /* for the first answers */
	catalog_take_states(c);
	(void)catalog_refresh(c);
	r = pthread_create(&c->thread, NULL, catalog_run, c);
	if (r != 0)
		return err_set(-r, "the thread that follows the journal");
	c->thread_runs = true;
	*ret_catalog = TAKE(c);
	return 0;
}

bool catalog_is_past(const struct catalog *catalog)
{
	return catalog->is_past;
}

int catalog_renew(struct catalog *c, struct snapshot *snapshot, struct catalog_feed *feed,
	struct as_of *as_of)
{
	/* The moment of a replay moves. */
	bool stays = c->is_past && !c->is_replay;
	int r = stays ? since_give(&feed->since, snapshot, feed->id, as_of) : 0;

	return r == 0 ? as_of_renew(as_of, snapshot, stays ? SIZE_MAX : SINCE_SLICE) : r;
}

void catalog_close(struct catalog **catalog)
{
	struct catalog *c = TAKE(*catalog);

	if (!c)
		return;
	CHECK_OBJ(c, CATALOG_MAGIC);
	__atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
	if (c->is_replay)
		replay_wake(&c->replay);
	if (c->thread_runs)
		pthread_join(c->thread, NULL);
	catalog_drop_all(c, false);
	free(c->feeds);
	free(c->earlier);
	ring_detach(&c->ring);
	snapshot_close(&c->snapshot);
	kinf_snapshot_close(&c->kinf_snapshot);
	kinf_close(&c->kinf);
	store_close(&c->store);
	if (c->is_replay)
		replay_release(&c->replay);
	pthread_rwlock_destroy(&c->lock);
	c->magic = 0;
	free(c);
}

struct replay *catalog_replay(struct catalog *catalog)
{
	return catalog->is_replay ? &catalog->replay : NULL;
}

struct store *catalog_store(struct catalog *catalog)
{
	CHECK_OBJ(catalog, CATALOG_MAGIC);
	return catalog->store;
}

uint64_t catalog_at(const struct catalog *catalog)
{
	return catalog->at;
}

struct kinf *catalog_kinf(struct catalog *catalog)
{
	return catalog->kinf;
}

void catalog_lock(struct catalog *catalog)
{
	CHECK_OBJ(catalog, CATALOG_MAGIC);
	pthread_rwlock_rdlock(&catalog->lock);
}

void catalog_unlock(struct catalog *catalog)
{
	pthread_rwlock_unlock(&catalog->lock);
}

bool catalog_is_ready(struct catalog *catalog, char reason[200])
{
	catalog_lock(catalog);
	bool ready = catalog->ready;
	if (!ready)
		memcpy(reason, catalog->reason, 200);
	catalog_unlock(catalog);
	return ready;
}

bool catalog_is_empty(struct catalog *catalog)
{
	catalog_lock(catalog);
	bool empty = !catalog->n;
	catalog_unlock(catalog);
	return empty;
}

bool catalog_is_imported(struct catalog *catalog)
{
	catalog_lock(catalog);
	bool is_imported = catalog->is_imported;
	catalog_unlock(catalog);
	return is_imported;
}

/* Returns whether FEED's first list is to be waited for. An account need not have all rights, and
 * an aggregated API may be broken for months: the API server is ready all the same. */
static bool catalog_is_awaited(const struct catalog_feed *feed)
{
	if (feed->timeline.visible || !strcmp(feed->state, "forbidden") ||
		!strcmp(feed->state, "gone"))
		return false;
	return !feed->failing_ns || proc_monotonic_ns() - feed->failing_ns < FAILING_NS;
}

bool catalog_are_listed(struct catalog *catalog, char reason[200])
{
	const struct catalog_feed *awaited = NULL, *listed = NULL;

	catalog_lock(catalog);
	for (size_t i = 0; i < catalog->n && !awaited; i++) {
		const struct catalog_feed *feed = catalog->feeds[i];

		if (catalog_is_awaited(feed))
			awaited = feed;
		else if (feed->timeline.visible)
			listed = feed;
	}
	if (!catalog->n)
		(void)snprintf(reason, 200, "nothing is watched yet; 'kinf status' may say why");
	else if (awaited || !listed)
		(void)snprintf(reason, 200, "%.100s is not listed",
			(awaited ? awaited : catalog->feeds[0])->definition.name);
	catalog_unlock(catalog);
	return listed && !awaited;
}

int catalog_find(struct catalog *catalog, const struct coverage_request *request,
	struct catalog_feed **ret_feed, enum coverage_answer *ret_answer, bool *ret_known)
{
	struct catalog_feed *best = NULL;
	enum coverage_answer best_answer = COVERAGE_NONE;

	*ret_known = false;
	catalog_lock(catalog);
	for (size_t i = 0; i < catalog->n; i++) {
		struct catalog_feed *feed = catalog->feeds[i];

		if (!coverage_is_resource(
			    &feed->coverage, request->group, request->version, request->resource))
			continue;
		*ret_known = true;
		enum coverage_answer answer = coverage_check(&feed->coverage, request);
		if (answer == COVERAGE_NONE)
			continue;
		if (!best || answer > best_answer ||
			(answer == best_answer && feed->timeline.visible &&
				!best->timeline.visible)) {
			best = feed;
			best_answer = answer;
		}
	}
	if (best)
		(void)__atomic_add_fetch(&best->references, 1, __ATOMIC_ACQ_REL);
	catalog_unlock(catalog);
	*ret_feed = best;
	*ret_answer = best_answer;
	return best ? FOUND : NOT_FOUND;
}

struct catalog_feed *catalog_next_feed(const struct catalog *catalog, size_t *at)
{
	return *at < catalog->n ? catalog->feeds[(*at)++] : NULL;
}

int catalog_read(struct catalog *catalog, const struct catalog_feed *feed, uint64_t position,
	size_t most, struct catalog_news *ret_news)
{
	const struct timeline *timeline = &feed->timeline;
	int r = FOUND;

	ret_news->n = 0;
	catalog_lock(catalog);
	ret_news->gone = __atomic_load_n(&feed->gone, __ATOMIC_ACQUIRE);
	ret_news->removed = feed->removed;
	while (ret_news->n < most &&
		(r = timeline_next(timeline, position, &ret_news->entries[ret_news->n])) == FOUND)
		position = ret_news->entries[ret_news->n++].seq;
	ret_news->visible = timeline->visible;
	memcpy(ret_news->newest, timeline->newest_text, sizeof(ret_news->newest));
	catalog_unlock(catalog);
	return r;
}

void catalog_request_progress(struct catalog *catalog, struct catalog_feed *feed, uint64_t rv)
{
	uint64_t now = proc_monotonic_ns();
	uint64_t last = __atomic_load_n(&feed->requested_ns, __ATOMIC_RELAXED);
	struct progress_request request = {.feed = feed->id, .rv = rv};

	/* The reflector asks for the smallest. */
	if (last && now - last < CATALOG_REQUEST_NS &&
		rv >= __atomic_load_n(&feed->requested_rv, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&feed->requested_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&feed->requested_rv, rv, __ATOMIC_RELAXED);
	__atomic_store_n(&catalog->requested_ns, now, __ATOMIC_RELAXED);
	catalog_lock(catalog);
	memcpy(request.journal, catalog->uuid, sizeof(request.journal));
	if (!__atomic_load_n(&feed->gone, __ATOMIC_ACQUIRE))
		progress_request_send(store_home(catalog->store), &request);
	catalog_unlock(catalog);
}

void catalog_raise_floor(struct catalog_feed *feed, uint64_t seq)
{
	uint64_t floor = __atomic_load_n(&feed->floor, __ATOMIC_RELAXED);

	while (floor < seq && !__atomic_compare_exchange_n(&feed->floor, &floor, seq, true,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}
