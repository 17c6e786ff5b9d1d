/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/json.h"
#include "common/proc.h"
#include "reflector/batch.h"
#include "reflector/object.h"

/* ---- feeds ---- */

/* The definition's drop paths, joined by line feeds. */
static int parse_drop(struct record_feed *feed, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy;

	if (!copy)
		return err_set(-ENOMEM, "paths");
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		struct path **grown = realloc(feed->drop, (feed->n_drop + 1) * sizeof(*grown));
		if (!grown)
			return err_set(-ENOMEM, "paths");
		feed->drop = grown;
		int r = path_parse(line, &feed->drop[feed->n_drop]);
		if (r < 0)
			return err_add(r, "drop");
		feed->n_drop++;
	}
	return 0;
}

static int take_checkpoint(struct record_feed *feed, const struct feed_checkpoint *checkpoint)
{
	feed->phase = checkpoint->phase;
	feed->listed = checkpoint->first_list != 0;
	feed->list_begin = checkpoint->list_begin;
	feed->list_ns = checkpoint->list_ns;
	feed->touched = feed->attempt = false;
	feed->n_seen = 0;
	buf_reset(&feed->swept);
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, checkpoint->rv);
	return buf_error(&feed->rv);
}

int record_feed_init(struct record_feed *feed, struct recorder *recorder,
	const struct feed_definition *definition, const struct feed_checkpoint *checkpoint)
{
	const char *group = definition->group;

	*feed = (struct record_feed){.recorder = recorder, .id = definition->id,
		.namespaced = definition->namespaced};
	if (definition->metadata_only) {
		snprintf(feed->kind, sizeof(feed->kind), "PartialObjectMetadata");
		snprintf(feed->api_version, sizeof(feed->api_version), "meta.k8s.io/v1");
	} else {
		snprintf(feed->kind, sizeof(feed->kind), "%s", definition->kind);
		snprintf(feed->api_version, sizeof(feed->api_version), "%s%s%s", group,
			*group ? "/" : "", definition->version);
	}
	int r = parse_drop(feed, definition->drop);
	if (r >= 0)
		r = take_checkpoint(feed, checkpoint);
	if (r < 0)
		record_feed_release(feed);
	return r;
}

void record_feed_release(struct record_feed *feed)
{
	for (size_t i = 0; i < feed->n_drop; i++)
		path_free(&feed->drop[i]);
	free(feed->drop);
	free(feed->seen);
	buf_release(&feed->rv);
	buf_release(&feed->swept);
	*feed = (struct record_feed){0};
}

int record_feed_reload(struct record_feed *feed)
{
	struct journal *journal = recorder_journal(feed->recorder);
	struct feed_checkpoint checkpoint;
	struct txn *txn;
	int r = txn_begin_read(journal_env(journal), &txn);

	if (r < 0)
		return r;
	r = journal_feed_checkpoint(journal, txn, feed->id, &checkpoint);
	if (r == FOUND)
		r = take_checkpoint(feed, &checkpoint);
	txn_abort(&txn);
	return r == NOT_FOUND ? err_say(ERR_CORRUPT, "feed %u is not in the journal", feed->id) : r;
}

void record_phase(struct record_feed *feed, enum feed_phase phase)
{
	feed->phase = phase;
	recorder_touch(feed->recorder, feed);
}

static void set_rv(struct record_feed *feed, struct bytes rv)
{
	/* As the state machine does: an older one says nothing new. */
	if (!rv.size || rv_compare(rv, buf_bytes(&feed->rv)) == -1)
		return;
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, rv);
	recorder_touch(feed->recorder, feed);
}

/* ---- one object ---- */

/* What is known of an object that came, and what the journal has under its key. */
struct arrival {
	struct object_identity identity;
	char key[JOURNAL_KEY_MAX];
	size_t key_size;
	bool has_head;
	struct head head; /* uid and rv copied: an append would take them away */
	char head_uid[128];
	char head_rv[256];
};

static struct bytes arrival_key(const struct arrival *arrival)
{
	return BYTES(arrival->key, arrival->key_size);
}

static int unreadable(const char *why)
{
	(void)err_say(ERR_PROTOCOL, "%s", why);
	return RECORD_UNREADABLE;
}

static int make_key(const struct record_feed *feed, struct arrival *arrival)
{
	const struct object_identity *id = &arrival->identity;

	if (!id->name.size)
		return unreadable("an object without a name");
	if (feed->namespaced && !id->name_space.size)
		return unreadable("an object without a namespace");
	int n = feed->namespaced
		? snprintf(arrival->key, sizeof(arrival->key), "%.*s/%.*s",
			  BYTES_ARG(id->name_space), BYTES_ARG(id->name))
		: snprintf(arrival->key, sizeof(arrival->key), "%.*s", BYTES_ARG(id->name));
	if (n < 0 || (size_t)n >= sizeof(arrival->key))
		return unreadable("an object with too long a name");
	arrival->key_size = (size_t)n;
	return RECORD_TAKEN;
}

static struct bytes copy_text(char *to, size_t size, struct bytes text)
{
	if (text.size > size)
		text.size = size; /* equal only to itself: the next version is then a change */
	memcpy(to, text.data, text.size);
	return BYTES(to, text.size);
}

static int find_head(struct record_feed *feed, struct arrival *arrival)
{
	struct journal *journal = recorder_journal(feed->recorder);
	int r = recorder_begin(feed->recorder);

	if (r < 0)
		return r;
	r = journal_head(journal, journal_txn(journal), feed->id, arrival_key(arrival),
		&arrival->head);
	arrival->has_head = r == FOUND;
	if (r != FOUND)
		return r < 0 ? recorder_fail(feed->recorder, r) : 0;
	arrival->head.uid = copy_text(arrival->head_uid, sizeof(arrival->head_uid), arrival->head.uid);
	arrival->head.rv = copy_text(arrival->head_rv, sizeof(arrival->head_rv), arrival->head.rv);
	return 0;
}

/* RECORD_TAKEN with identity, key and head; the key is there even when the rest is not. */
static int arrive(struct record_feed *feed, struct bytes object, struct arrival *arrival)
{
	arrival->key_size = 0;
	arrival->has_head = false;
	if (object_identity(object, &arrival->identity) < 0)
		return RECORD_UNREADABLE;
	int r = make_key(feed, arrival);
	if (r != RECORD_TAKEN)
		return r;
	r = find_head(feed, arrival);
	if (r < 0)
		return r;
	struct bytes kind = arrival->identity.kind;
	if (kind.size && !bytes_equal(kind, bytes_str(feed->kind)))
		return unreadable("an object of another kind");
	if (!arrival->identity.rv.size || arrival->identity.rv.size > sizeof(arrival->head_rv))
		return unreadable("an object without a usable resourceVersion");
	if (arrival->identity.uid.size > sizeof(arrival->head_uid))
		return unreadable("an object with too long a uid");
	return RECORD_TAKEN;
}

static int parse_body(struct record_feed *feed, struct bytes object,
	struct bytes *ret_body)
{
	struct json_options options = {
		.drop = (const struct path *const *)feed->drop,
		.n_drop = feed->n_drop,
		.kind = feed->kind,
		.api_version = feed->api_version,
	};
	struct buf *body = recorder_body(feed->recorder);

	buf_reset(body);
	int r = json_parse(recorder_parser(feed->recorder), object, &options, body);
	if (r == -ENOMEM)
		return recorder_fail(feed->recorder, r);
	if (r < 0)
		return RECORD_UNREADABLE;
	*ret_body = buf_bytes(body);
	return RECORD_TAKEN;
}

static bool same_uid(const struct arrival *arrival)
{
	/* Servers that give no uid (metrics) can't tell incarnations apart, nor can we. */
	return bytes_equal(arrival->head.uid, arrival->identity.uid);
}

static int append(struct record_feed *feed, const struct arrival *arrival, enum record_type type,
	struct bytes body, uint64_t *ret_seq)
{
	struct record record = {.feed = feed->id, .type = type, .key = arrival_key(arrival),
		.uid = arrival->identity.uid, .rv = arrival->identity.rv, .body = body};
	int r = recorder_append(feed->recorder, &record, ret_seq);

	return r == ERR_TOO_LARGE ? RECORD_UNREADABLE : r;
}

/* The object that had this name before is gone; how it looked in the end nobody told us. */
static int append_replaced(struct record_feed *feed, const struct arrival *arrival)
{
	struct record record = {.feed = feed->id, .type = RECORD_DELETED,
		.flags = RECORD_FINAL_STATE_UNKNOWN, .key = arrival_key(arrival),
		.uid = arrival->head.uid, .rv = arrival->identity.rv};
	uint64_t seq;

	return recorder_append(feed->recorder, &record, &seq);
}

/* A version that the journal does not have becomes a record. */
static int append_version(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, uint64_t *ret_seq)
{
	bool replaced = arrival->has_head && !same_uid(arrival);
	struct bytes body;
	int r = parse_body(feed, object, &body);

	if (r == RECORD_TAKEN && replaced)
		r = append_replaced(feed, arrival);
	if (r != RECORD_TAKEN)
		return r;
	return append(feed, arrival, arrival->has_head && !replaced ? RECORD_MODIFIED : RECORD_ADDED,
		body, ret_seq);
}

/* ---- watch ---- */

/* Dropped events are counted, and their RV moves the checkpoint like any other's. */
static int drop_event(struct record_feed *feed)
{
	stats_add(recorder_stats(feed->recorder), STAT_DROPPED_EVENTS, 1);
	return RECORD_TAKEN;
}

static int take_deleted(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object)
{
	struct bytes body;
	uint64_t seq;

	/* An equal RV is a deletion all the same: some servers leave the last state's RV in it. */
	if (!arrival->has_head || !same_uid(arrival) ||
		rv_compare(arrival->identity.rv, arrival->head.rv) == -1)
		return drop_event(feed);
	int r = parse_body(feed, object, &body);
	return r == RECORD_TAKEN ? append(feed, arrival, RECORD_DELETED, body, &seq) : r;
}

static int take_version(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object)
{
	uint64_t seq;
	int order = arrival->has_head ? rv_compare(arrival->identity.rv, arrival->head.rv) : 1;

	if (order == -1 || order == 0)
		return drop_event(feed);
	return append_version(feed, arrival, object, &seq);
}

static void note_unreadable(struct record_feed *feed, const struct arrival *arrival)
{
	stats_add(recorder_stats(feed->recorder), STAT_BAD_OBJECTS, 1);
	feed->unreadable++;
	snprintf(feed->unreadable_name, sizeof(feed->unreadable_name), "%.*s",
		arrival->key_size ? (int)arrival->key_size : 7,
		arrival->key_size ? arrival->key : "unnamed");
}

int record_event(struct record_feed *feed, const struct watch_event *event, bool tolerant,
	struct bytes *ret_rv)
{
	struct arrival arrival;
	int r = arrive(feed, event->object, &arrival);

	if (r == RECORD_TAKEN && event->type == WATCH_DELETED)
		r = take_deleted(feed, &arrival, event->object);
	else if (r == RECORD_TAKEN)
		r = take_version(feed, &arrival, event->object);
	if (r == RECORD_UNREADABLE) {
		note_unreadable(feed, &arrival);
		if (!tolerant)
			return r;
		*ret_rv = BYTES_NONE;
		return RECORD_TAKEN;
	}
	if (r < 0)
		return r;
	set_rv(feed, arrival.identity.rv);
	*ret_rv = arrival.identity.rv;
	return recorder_bound(feed->recorder);
}

int record_bookmark(struct record_feed *feed, struct bytes object, struct bytes *ret_rv)
{
	struct object_identity identity;

	if (object_identity(object, &identity) < 0)
		return RECORD_UNREADABLE;
	if (!identity.rv.size)
		return unreadable("a bookmark without resourceVersion");
	set_rv(feed, identity.rv);
	*ret_rv = identity.rv;
	return RECORD_TAKEN;
}

/* ---- lists ---- */

#define SWEEP_HEADS   4096 /* looked at in one slice */
#define SWEEP_DELETES 512  /* found in one slice */

static int remember(struct record_feed *feed, uint64_t seq)
{
	if (feed->n_seen == feed->seen_capacity) {
		size_t capacity = feed->seen_capacity ? feed->seen_capacity * 2 : 1024;
		uint64_t *grown = realloc(feed->seen, capacity * sizeof(*grown));

		if (!grown)
			return recorder_fail(feed->recorder, err_set(-ENOMEM, "a list"));
		feed->seen = grown;
		feed->seen_capacity = capacity;
	}
	feed->seen[feed->n_seen++] = seq;
	return 0;
}

static void forget_seen(struct record_feed *feed)
{
	free(feed->seen);
	feed->seen = NULL;
	feed->n_seen = feed->seen_capacity = 0;
	buf_reset(&feed->swept);
	feed->sorted = false;
}

static int open_bracket(struct record_feed *feed)
{
	struct record record = {.feed = feed->id, .type = RECORD_LIST_BEGIN};

	if (feed->list_begin)
		return 0;
	int r = recorder_append(feed->recorder, &record, &feed->list_begin);
	feed->list_ns = proc_realtime_ns();
	return r;
}

int record_list_begin(struct record_feed *feed)
{
	forget_seen(feed);
	feed->attempt = true;
	feed->items = feed->unreadable = 0;
	feed->unreadable_name[0] = '\0';
	/* A first list shows itself even when it is empty; a relist only when it differs. */
	return feed->listed ? 0 : open_bracket(feed);
}

static int take_item(struct record_feed *feed, const struct arrival *arrival, struct bytes item)
{
	uint64_t seq;

	if (arrival->has_head && same_uid(arrival) &&
		bytes_equal(arrival->head.rv, arrival->identity.rv))
		return remember(feed, arrival->head.seq);
	int r = open_bracket(feed);
	if (r >= 0)
		r = append_version(feed, arrival, item, &seq);
	return r == RECORD_TAKEN ? remember(feed, seq) : r;
}

int record_item(struct record_feed *feed, struct bytes item, bool tolerant)
{
	struct arrival arrival;
	int r = arrive(feed, item, &arrival);

	feed->items++;
	if (r == RECORD_TAKEN)
		r = take_item(feed, &arrival, item);
	if (r == RECORD_UNREADABLE) {
		note_unreadable(feed, &arrival);
		if (!tolerant)
			return r;
		/* It is there, if not readable: what we have of it is not swept away. */
		r = arrival.has_head ? remember(feed, arrival.head.seq) : 0;
	}
	return r < 0 ? r : recorder_bound(feed->recorder);
}

static int compare_seq(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool was_seen(const struct record_feed *feed, uint64_t seq)
{
	return bsearch(&seq, feed->seen, feed->n_seen, sizeof(seq), compare_seq) != NULL;
}

/* Objects that the list lacks, copied out of the walk: deleting moves what it points to. */
struct missing {
	struct buf text; /* per object: u16 key size, u16 uid size, key, uid */
	size_t n;
};

static void put_missing(struct missing *missing, struct bytes key, struct bytes uid)
{
	uint8_t sizes[4];

	le16_put(sizes, (uint16_t)key.size);
	le16_put(sizes + 2, (uint16_t)uid.size);
	buf_put(&missing->text, sizes, sizeof(sizes));
	buf_bytes_put(&missing->text, key);
	buf_bytes_put(&missing->text, uid);
	missing->n++;
}

/* One slice of the heads, from where the last one ended: AGAIN while there are more. */
static int find_missing(struct record_feed *feed, struct missing *missing)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key = BYTES_NONE;
	struct head head;
	int r = head_walk_open(journal, journal_txn(journal), feed->id, buf_bytes(&feed->swept), &walk);

	for (size_t i = 0; r >= 0 && i < SWEEP_HEADS && missing->n < SWEEP_DELETES; i++) {
		r = head_walk_next(walk, &key, &head);
		if (r != FOUND)
			return r == END ? 0 : r;
		if (!was_seen(feed, head.seq))
			put_missing(missing, key, head.uid);
	}
	if (r < 0)
		return r;
	buf_reset(&feed->swept);
	buf_bytes_put(&feed->swept, key);
	buf_byte(&feed->swept, '\0'); /* the first key behind this one */
	r = buf_error(&feed->swept);
	return r < 0 ? r : AGAIN;
}

static int delete_missing(struct record_feed *feed, const struct missing *missing, struct bytes rv)
{
	const uint8_t *p = missing->text.data;

	for (size_t i = 0; i < missing->n; i++) {
		struct bytes key = BYTES(p + 4, le16_get(p));
		struct bytes uid = BYTES(p + 4 + key.size, le16_get(p + 2));
		struct record record = {.feed = feed->id, .type = RECORD_DELETED,
			.flags = RECORD_FINAL_STATE_UNKNOWN, .key = key, .uid = uid, .rv = rv};
		uint64_t seq;

		p += 4 + key.size + uid.size;
		int r = open_bracket(feed);
		if (r >= 0)
			r = recorder_append(feed->recorder, &record, &seq);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A slice of the sweep: AGAIN, or 0 when all heads have been looked at. */
static int sweep(struct record_feed *feed, struct bytes rv)
{
	struct missing missing = {.text = BUF_INIT};

	if (!feed->sorted && feed->n_seen)
		qsort(feed->seen, feed->n_seen, sizeof(*feed->seen), compare_seq);
	feed->sorted = true;
	int r = find_missing(feed, &missing);
	if (r >= 0 && buf_error(&missing.text) < 0)
		r = buf_error(&missing.text);
	if (r < 0)
		r = recorder_fail(feed->recorder, r);
	int deleted = r < 0 ? 0 : delete_missing(feed, &missing, rv);
	buf_release(&missing.text);
	return deleted < 0 ? deleted : r;
}

static int close_bracket(struct record_feed *feed, struct bytes rv, uint8_t flags)
{
	struct record record = {.feed = feed->id, .type = RECORD_LIST_END, .flags = flags, .rv = rv};
	uint64_t seq;

	if (!feed->list_begin)
		return 0;
	int r = recorder_append(feed->recorder, &record, &seq);
	feed->list_begin = 0;
	if (!(flags & RECORD_ABANDONED))
		feed->list_ns = 0;
	return r;
}

int record_list_end(struct record_feed *feed, struct bytes rv)
{
	int r = recorder_begin(feed->recorder);

	if (r >= 0)
		r = sweep(feed, rv);
	if (r == AGAIN) {
		r = recorder_bound(feed->recorder);
		return r < 0 ? r : AGAIN;
	}
	/* What an abandoned list has left owing is paid by a bracket, even an empty one. */
	if (r >= 0 && feed->list_ns)
		r = open_bracket(feed);
	if (r >= 0)
		r = close_bracket(feed, rv, 0);
	if (r < 0)
		return r;
	feed->phase = FEED_SYNCED;
	feed->listed = true;
	feed->attempt = false;
	/* Whatever it was before: a list says what is. */
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, rv);
	recorder_touch(feed->recorder, feed);
	forget_seen(feed);
	return 0;
}

int record_list_abandon(struct record_feed *feed)
{
	int r = recorder_begin(feed->recorder);

	return r < 0 ? r : close_bracket(feed, BYTES_NONE, RECORD_ABANDONED);
}
