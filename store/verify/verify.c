/* SPDX-License-Identifier: Apache-2.0 */
#include "store/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/ring/ring.h"
#include "store/verify/verify_layout.h"

/* ---- faults and arrays ---- */

void verify_fault(struct verify *v, const char *format, ...)
{
	char sentence[1024];
	va_list args;

	v->report.faults++;
	if (!v->options->fault)
		return;
	va_start(args, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	/* Keys may hold any bytes in a damaged store: one line per fault, whatever they are. */
	for (char *p = sentence; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	v->options->fault(v->options->arg, sentence);
}

int verify_failed(struct verify *v, int r, const char *what)
{
	if (r >= 0)
		return 0;
	if (r == -ENOMEM)
		return r;
	verify_fault(v, "%s: %s", what, err_text(r));
	return 0;
}

int verify_room(void *array, size_t n, size_t *room, size_t size)
{
	void *old, *moved;

	if (n < *room)
		return 0;
	size_t wanted = *room ? *room * 2 : 64;

	memcpy(&old, array, sizeof(old));
	moved = reallocarray(old, wanted, size);
	if (!moved)
		return err_set(-ENOMEM, "verify");
	memcpy(array, &moved, sizeof(moved));
	*room = wanted;
	return 0;
}

/* ---- feeds ---- */

struct verify_feed *verify_feed(struct verify *v, uint32_t id)
{
	for (size_t i = 0; i < v->n_feeds; i++)
		if (v->feeds[i].id == id)
			return &v->feeds[i];
	return NULL;
}

struct verify_feed *verify_feed_add(struct verify *v, uint32_t id)
{
	struct verify_feed *feed = verify_feed(v, id);

	if (feed)
		return feed;
	if (verify_room(&v->feeds, v->n_feeds, &v->feeds_room, sizeof(*v->feeds)) < 0)
		return NULL;
	feed = &v->feeds[v->n_feeds++];
	*feed = (struct verify_feed){.id = id};
	return feed;
}

/* Which feeds' objects are compared. */
static int choose_feeds(struct verify *v)
{
	AUTO_FREE struct snapshot_feed *chosen = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->n_feeds; i++)
		v->feeds[i].wanted = !v->options->feed;
	if (!v->options->feed)
		return 0;
	int r = snapshot_feeds(v->snapshot, v->options->feed, &chosen, &n);

	for (size_t i = 0; i < n && r == 0; i++) {
		struct verify_feed *feed = verify_feed(v, chosen[i].definition.id);

		if (feed)
			feed->wanted = true;
	}
	return r;
}

/* ---- rings ---- */

/* What a ring said before the snapshot was taken: what it had published by then is committed, so
 * the snapshot holds it. */
struct ring_sight {
	const char *name;
	bool seen;
	uint8_t uuid[16];
	struct ring_status status;
};

static bool is_sane(const struct ring_entry *entry)
{
	if (entry->type == RING_LIST)
		return entry->begin && entry->begin < entry->seq && entry->feed;
	return entry->type && entry->type < RECORD_TYPE_MAX && entry->seq && entry->feed;
}

/* Reads what is still in the ring; being overtaken by its writer is no fault. */
static void read_ring(struct verify *v, struct ring_reader *ring, const char *name)
{
	struct ring_entry entry;
	struct ring_status status;
	int r;

	ring_to_oldest(ring);
	while ((r = ring_next(ring, &entry)) == FOUND)
		if (!is_sane(&entry))
			verify_fault(v,
				"%s: an entry of type %u, feed %u, seq %" PRIu64 " makes no sense",
				name, entry.type, entry.feed, entry.seq);
	ring_status(ring, &status);
	if (status.corrupt)
		verify_fault(v, "%s: an entry before the tail is damaged", name);
}

static void look_at_ring(struct verify *v, struct home *home, struct ring_sight *sight)
{
	struct ring_reader *ring;

	if (home_runtime_fd(home) < 0)
		return;
	int r = ring_attach(home_runtime_fd(home), sight->name, &ring);

	if (r == -ENOENT)
		return; /* nobody has run since the machine started */
	(void)verify_failed(v, r, sight->name);
	if (r != 0)
		return;
	ring_status(ring, &sight->status);
	memcpy(sight->uuid, ring_uuid(ring), sizeof(sight->uuid));
	sight->seen = true;
	read_ring(v, ring, sight->name);
	ring_detach(&ring);
}

/* A writer that was killed between a claim and the tail may have jumped ahead of all that an earlier one
 * had claimed (writer_start in ring.c). */
static bool is_whole(const struct ring_status *s)
{
	return s->capacity && !(s->capacity & (s->capacity - 1)) && s->claim >= s->tail &&
		s->claim - s->tail <= 2 * s->capacity + 4096;
}

static void check_ring(struct verify *v, const struct ring_sight *sight)
{
	const struct ring_status *s = &sight->status;

	if (!sight->seen)
		return;
	if (!is_whole(s))
		verify_fault(v,
			"%s: capacity %" PRIu64 ", claim %" PRIu64 ", tail %" PRIu64
			" do not go together",
			sight->name, s->capacity, s->claim, s->tail);
	if (memcmp(sight->uuid, v->meta.uuid, sizeof(sight->uuid)) != 0)
		return; /* of the journal before, until its writer starts again: readers see that */
	if (s->last_seq >= v->meta.next_seq)
		verify_fault(v, "%s: published up to %" PRIu64 ", the journal ends at %" PRIu64,
			sight->name, s->last_seq, v->meta.next_seq - 1);
}

/* ---- the store ---- */

static int take_journal(struct verify *v, struct home *home)
{
	int r = journal_open_read(home, NULL, &v->journal);

	if (r == 0)
		r = txn_begin_read(journal_env(v->journal), &v->journal_txn);
	return r;
}

static int check_all(struct verify *v)
{
	int r = verify_journal(v);

	if (r < 0 || !v->snapshot)
		return r;
	v->report.has_index = true;
	r = verify_index(v);
	if (r == 0)
		r = choose_feeds(v);
	if (r == 0 && !v->index_is_broken)
		r = verify_state(v);
	if (r == 0 && v->options->deep && !v->index_is_broken)
		r = verify_terms(v);
	return r;
}

/* With an index: one snapshot of both. Without: the journal alone. */
static int verify_with(struct verify *v, const char *directory)
{
	CLEANUP(store_close) struct store *store = NULL;
	CLEANUP(snapshot_close) struct snapshot *snapshot = NULL;
	int r = store_open(directory, NULL, &store);

	if (r == 0)
		r = snapshot_open(store, &snapshot);
	if (r < 0)
		return r;
	if (r == AGAIN)
		return AGAIN;
	v->snapshot = snapshot;
	v->journal = snapshot_journal(snapshot);
	v->journal_txn = snapshot_journal_txn(snapshot);
	r = check_all(v);
	v->snapshot = NULL;
	v->journal = NULL;
	v->journal_txn = NULL;
	if (r == 0)
		r = verify_failed(v, snapshot_reset(snapshot), "store");
	return r;
}

static int verify_journal_only(struct verify *v, struct home *home)
{
	int r = take_journal(v, home);

	if (r == 0)
		r = check_all(v);
	else if (r != ERR_NO_STORE)
		r = verify_failed(v, r, "journal");
	txn_abort(&v->journal_txn);
	journal_close(&v->journal);
	return r;
}

static void verify_release(struct verify *v)
{
	free(v->feeds);
	free(v->versions);
	free(v->terms);
}

/* Errors that say that this store cannot be read at all, rather than that something in it is bad.
 */
static bool is_final(int r)
{
	return r == ERR_NO_STORE || r == ERR_NO_FEED || r == ERR_LOCKED || r == -ENOMEM ||
	       r == -EACCES || r == ERR_FORKED;
}

int verify_store(const char *directory, const struct verify_options *options,
	struct verify_report *ret_report)
{
	CLEANUP(home_close) struct home *home = NULL;
	CLEANUP(verify_release) struct verify v = {.options = options};
	struct home_options how = {0};
	int r = home_open(directory, &how, &home);

	if (r < 0)
		return r;
	struct ring_sight rings[] = {{.name = "delta.ring"}, {.name = "event.ring"}};

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		look_at_ring(&v, home, &rings[i]);
	r = verify_with(&v, directory);
	if (r == AGAIN && options->feed)
		return err_say(
			ERR_NO_FEED, "there is no index yet to look '%s' up in", options->feed);
	if (r < 0 && is_final(r))
		return r;
	if (r < 0)
		(void)verify_failed(
			&v, r, "store"); /* the journal by itself is looked at all the same */
	if (r != 0)
		r = verify_journal_only(&v, home);
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		check_ring(&v, &rings[i]);
	*ret_report = v.report;
	return r;
}
