/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/proc.h"
#include "common/text/utf8.h"
#include "common/value/field_diff.h"
#include "common/value/json.h"
#include "reflector/record/record_internal.h"
#include "reflector/record/recorder.h"

#define LONG_KEY_SHOWN 100

/* ---- feeds -------------------------------------------------------------- */

/* The definition's drop paths, joined by line feeds. */
static int record_parse_drop(struct record_feed *feed, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy;

	if (!copy)
		return err_set(-ENOMEM, "paths");
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		int r = ARRAY_ROOM(feed->drop, feed->n_drop, feed->drop_room, 1, "the drop paths");
		if (r < 0)
			return r;
		r = path_parse(line, &feed->drop[feed->n_drop]);
		if (r < 0)
			return err_add(r, "drop");
		feed->n_drop++;
	}
	return 0;
}

static int record_take_checkpoint(
	struct record_feed *feed, struct txn *txn, const struct feed_checkpoint *checkpoint)
{
	uint64_t now = proc_realtime_ns(), mono = proc_monotonic_ns();
	uint64_t age = now > checkpoint->list_ns ? now - checkpoint->list_ns : 0;
	struct record last;

	feed->phase = checkpoint->phase;
	feed->listed = checkpoint->first_list != 0;
	feed->contact = checkpoint->contact;
	feed->list_begin = checkpoint->list_begin;
	feed->list_ns = checkpoint->list_ns;
	feed->list_mono_ns = mono > age ? mono - age : 0;
	feed->touched = feed->attempt = false;
	feed->n_seen = 0;
	buf_reset(&feed->reconcile_at);
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, checkpoint->rv);
	int r = buf_error(&feed->rv);
	if (r == 0)
		r = journal_get(recorder_journal(feed->recorder), txn, checkpoint->last, &last);
	/* Is the checkpoint's RV that of the feed's last record, a deletion? */
	feed->deletion = r == FOUND && last.feed == feed->id && last.type == RECORD_DELETED &&
			 bytes_equal(last.rv, checkpoint->rv);
	return r < 0 ? r : 0;
}

int record_feed_init(struct record_feed *feed, struct recorder *recorder,
	const struct feed_definition *definition, const struct feed_checkpoint *checkpoint)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	const char *group = definition->group;

	*feed = (struct record_feed){
		.recorder = recorder, .id = definition->id, .namespaced = definition->namespaced};
	if (definition->metadata_only) {
		snprintf(feed->kind, sizeof(feed->kind), "PartialObjectMetadata");
		snprintf(feed->api_version, sizeof(feed->api_version), "meta.k8s.io/v1");
	} else {
		snprintf(feed->kind, sizeof(feed->kind), "%s", definition->kind);
		snprintf(feed->api_version, sizeof(feed->api_version), "%s%s%s", group,
			*group ? "/" : "", definition->version);
	}
	int r = record_parse_drop(feed, definition->drop);
	if (r >= 0)
		r = txn_begin_read(journal_env(recorder_journal(recorder)), &txn);
	if (r >= 0)
		r = record_take_checkpoint(feed, txn, checkpoint);
	if (r >= 0)
		r = record_load_passed(feed);
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
	record_clear_passed(feed);
	buf_release(&feed->rv);
	buf_release(&feed->reconcile_at);
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
		r = record_take_checkpoint(feed, txn, &checkpoint);
	txn_abort(&txn);
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "feed %u is not in the journal", feed->id);
	return r < 0 ? r : record_load_passed(feed);
}

void record_phase(struct record_feed *feed, enum feed_phase phase)
{
	feed->phase = phase;
	recorder_touch(feed->recorder, feed);
}

void record_contact(struct record_feed *feed, const struct moment *moment)
{
	feed->contact = *moment;
	recorder_touch(feed->recorder, feed);
}

void record_progress(struct record_feed *feed, struct bytes rv)
{
	/* An older RV is no news: machine.c decides alike. */
	if (!rv.size || rv_compare(rv, buf_bytes(&feed->rv)) == -1)
		return;
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, rv);
	recorder_touch(feed->recorder, feed);
}

/* ---- one object --------------------------------------------------------- */

static int record_unreadable(const char *why)
{
	(void)err_say(ERR_PROTOCOL, "%s", why);
	return RECORD_UNREADABLE;
}

static int record_unfit(const char *why)
{
	(void)err_say(ERR_TOO_LARGE, "%s", why);
	return RECORD_UNFIT;
}

/* Makes a key unlike any object's: the beginning of the object's own and its hash. */
static int record_cut_key(struct arrival *arrival)
{
	const struct object_identity *id = &arrival->identity;
	bool in_namespace = id->name_space.size != 0;
	int n = snprintf(arrival->key, LONG_KEY_SHOWN + 1, "%.*s%s%.*s", BYTES_ARG(id->name_space),
		in_namespace ? "/" : "", BYTES_ARG(id->name));
	size_t size = (size_t)n < LONG_KEY_SHOWN ? (size_t)n : LONG_KEY_SHOWN;

	while (size && !utf8_is_valid(BYTES(arrival->key, size)) && LONG_KEY_SHOWN - size < 4)
		size--;
	n = snprintf(arrival->key + size, sizeof(arrival->key) - size, "...~%016" PRIx64,
		hash_bytes(id->name, hash_bytes(id->name_space, 0)));
	arrival->key_size = size + (size_t)n;
	(void)err_say(ERR_TOO_LARGE, "its name has %zu bytes, with its namespace %d are the most",
		id->name_space.size + in_namespace + id->name.size, JOURNAL_KEY_MAX);
	return RECORD_UNFIT;
}

static int record_make_key(struct record_feed *feed, struct arrival *arrival)
{
	const struct object_identity *id = &arrival->identity;
	bool in_namespace = id->name_space.size != 0;
	size_t name_at = in_namespace ? id->name_space.size + 1 : 0;

	if (!id->name.size)
		return record_unreadable("an object without a name");
	if (name_at + id->name.size > sizeof(arrival->key))
		return record_cut_key(arrival);
	if (in_namespace) {
		memcpy(arrival->key, id->name_space.data, id->name_space.size);
		arrival->key[name_at - 1] = '/';
	}
	memcpy(arrival->key + name_at, id->name.data, id->name.size);
	arrival->key_size = name_at + id->name.size;
	if (memchr(arrival->key, '\0', arrival->key_size))
		return record_unfit(OBJECT_NAME_HAS_NUL);
	if (in_namespace == feed->namespaced)
		return RECORD_TAKEN;
	feed->wrong_kind = true;
	return record_unreadable(in_namespace
					 ? "an object with a namespace, of a resource that has none"
					 : "an object without a namespace");
}

static struct bytes record_copy_text(char *to, size_t size, struct bytes text)
{
	if (text.size > size)
		text.size = size; /* differs from every whole RV, so the next version is a change */
	memcpy(to, text.data, text.size);
	return BYTES(to, text.size);
}

static int record_find_head(struct record_feed *feed, struct arrival *arrival)
{
	struct journal *journal = recorder_journal(feed->recorder);
	int r = recorder_begin(feed->recorder);

	if (r < 0)
		return r;
	r = journal_head(
		journal, journal_txn(journal), feed->id, record_key(arrival), &arrival->head);
	arrival->has_head = r == FOUND;
	if (r != FOUND)
		return r < 0 ? recorder_fail(feed->recorder, r) : 0;
	arrival->head.uid =
		record_copy_text(arrival->head_uid, sizeof(arrival->head_uid), arrival->head.uid);
	arrival->head.rv =
		record_copy_text(arrival->head_rv, sizeof(arrival->head_rv), arrival->head.rv);
	return 0;
}

static int record_parse(struct record_feed *feed, struct bytes object,
	struct json_identity *identity, struct bytes *ret_body)
{
	struct json_options options = {
		.drop = (const struct path *const *)feed->drop,
		.n_drop = feed->n_drop,
		.kind = feed->kind,
		.api_version = feed->api_version,
		.identity = identity,
	};
	int r = recorder_parse(feed->recorder, object, &options, ret_body);

	return r == 0 || r == -ENOMEM ? r : r == ERR_TOO_LARGE ? RECORD_UNFIT : RECORD_UNREADABLE;
}

/* Reads identity and body in one pass. An unparsable object may have an identity. */
static int record_read_object(
	struct record_feed *feed, struct bytes object, struct arrival *arrival)
{
	struct json_identity found = {0};
	int r = arrival->cut ? RECORD_UNFIT : record_parse(feed, object, &found, &arrival->body);

	if (r < 0)
		return r;
	arrival->is_parsed = r == RECORD_TAKEN;
	if (arrival->is_parsed && !found.is_odd) {
		object_set_identity(&found, &arrival->identity);
		return RECORD_TAKEN;
	}
	r = object_identity(object, arrival->cut, &arrival->identity);
	return r < 0 ? RECORD_UNREADABLE : RECORD_TAKEN;
}

int record_arrive(struct record_feed *feed, struct bytes object, bool cut, struct arrival *arrival)
{
	arrival->cut = cut;
	arrival->key_size = 0;
	arrival->has_head = false;
	int r = record_read_object(feed, object, arrival);
	if (r != RECORD_TAKEN)
		return r;
	r = record_make_key(feed, arrival);
	if (r != RECORD_TAKEN)
		return r;
	r = record_find_head(feed, arrival);
	if (r < 0)
		return r;
	struct bytes kind = arrival->identity.kind;
	if (kind.size && !bytes_equal(kind, bytes_str(feed->kind))) {
		feed->wrong_kind = true;
		return record_unreadable("an object of another kind");
	}
	if (!arrival->identity.rv.size || arrival->identity.rv.size > sizeof(arrival->head_rv))
		return record_unreadable("an object without a usable resourceVersion");
	return RECORD_TAKEN;
}

/* Gives the body of ARRIVAL, or says why OBJECT has none. */
static int record_get_body(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, struct bytes *ret_body)
{
	if (arrival->cut)
		return record_unfit("larger than maxObjectSize");
	if (arrival->identity.uid.size > sizeof(arrival->head_uid))
		return record_unfit("its uid is too long");
	if (!arrival->is_parsed)
		return record_parse(feed, object, NULL, ret_body);
	*ret_body = arrival->body;
	return RECORD_TAKEN;
}

static int record_append(struct record_feed *feed, const struct arrival *arrival,
	enum record_type type, struct bytes body, uint64_t *ret_seq)
{
	struct record record = {.feed = feed->id,
		.type = type,
		.key = record_key(arrival),
		.uid = arrival->identity.uid,
		.rv = arrival->identity.rv,
		.body = body};
	int r = recorder_append(feed->recorder, &record, ret_seq);

	return r == ERR_TOO_LARGE ? RECORD_UNFIT : r;
}

/* Records the deletion of the object UID of this name, in an unknown last state. */
static int record_append_gone(
	struct record_feed *feed, const struct arrival *arrival, struct bytes uid)
{
	struct record record = {.feed = feed->id,
		.type = RECORD_DELETED,
		.flags = RECORD_FINAL_STATE_UNKNOWN,
		.key = record_key(arrival),
		.uid = uid,
		.rv = arrival->identity.rv};
	uint64_t seq;

	return recorder_append(feed->recorder, &record, &seq);
}

int record_append_version(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, uint64_t *ret_seq)
{
	bool replaced = arrival->has_head && !record_same_uid(arrival);
	struct bytes body;
	int r = record_get_body(feed, arrival, object, &body);

	if (r == RECORD_TAKEN && replaced)
		r = record_append_gone(feed, arrival, arrival->head.uid);
	if (r != RECORD_TAKEN)
		return r;
	return record_append(feed, arrival,
		arrival->has_head && !replaced ? RECORD_MODIFIED : RECORD_ADDED, body, ret_seq);
}

static int record_found_difference(
	void *arg, const char *path, const struct value *before, const struct value *after)
{
	(void)arg, (void)path, (void)before, (void)after;
	return RECORD_DIFFERS;
}

int record_compare(struct record_feed *feed, const struct arrival *arrival, struct bytes object)
{
	struct journal *journal = recorder_journal(feed->recorder);
	struct record stored;
	struct bytes body;

	if (arrival->cut)
		return RECORD_TAKEN; /* too little to compare */
	int r = record_get_body(feed, arrival, object, &body);
	if (r != RECORD_TAKEN)
		return r;
	r = journal_get(journal, journal_txn(journal), arrival->head.seq, &stored);
	if (r == FOUND)
		r = record_check(&stored);
	else if (r == NOT_FOUND)
		r = err_say(ERR_CORRUPT, "record %" PRIu64 ", the newest of '%.*s', is missing",
			arrival->head.seq, BYTES_ARG(record_key(arrival)));
	if (r < 0)
		return recorder_fail(feed->recorder, r);
	if (bytes_equal(stored.body, body))
		return RECORD_TAKEN;
	r = field_diff_each(stored.body, body, record_found_difference, NULL);
	return r < 0 ? recorder_fail(feed->recorder, r) : r;
}

/* ---- watch -------------------------------------------------------------- */

/* Counts an event without news. Its RV moves the checkpoint all the same. */
int record_drop_event(struct record_feed *feed)
{
	stats_add(recorder_stats(feed->recorder), STAT_DROPPED_EVENTS, 1);
	return RECORD_TAKEN;
}

bool record_is_deletion(const struct arrival *arrival)
{
	/* An equal RV is accepted: some servers leave the last state's RV in a DELETED. */
	return arrival->has_head && rv_compare(arrival->identity.rv, arrival->head.rv) != -1;
}

int record_append_deleted(
	struct record_feed *feed, const struct arrival *arrival, struct bytes object, bool tolerant)
{
	struct bytes body;
	uint64_t seq;

	/* Its addition was lost, or the event has no uid: it is no last state of the head's
	 * object. */
	if (!record_same_uid(arrival))
		return record_append_gone(feed, arrival, arrival->head.uid);
	int r = record_get_body(feed, arrival, object, &body);
	/* Else an unreadable object would stay for ever. */
	if (r == RECORD_UNFIT || (r == RECORD_UNREADABLE && tolerant))
		return record_append_gone(feed, arrival, arrival->identity.uid);
	return r == RECORD_TAKEN ? record_append(feed, arrival, RECORD_DELETED, body, &seq) : r;
}

int record_event(struct record_feed *feed, const struct api_event *event, bool tolerant,
	struct bytes *ret_rv)
{
	struct arrival arrival;

	recorder_announce(feed->recorder);
	int r = record_arrive(feed, event->object, event->cut, &arrival);

	if (r == RECORD_TAKEN) {
		/* A deletion of the head's object, or a newer version. */
		int order = arrival.has_head ? rv_compare(arrival.identity.rv, arrival.head.rv) : 1;
		uint64_t seq;

		if (event->type == WATCH_DELETED && record_is_deletion(&arrival))
			r = record_append_deleted(feed, &arrival, event->object, tolerant);
		else if (event->type == WATCH_DELETED || order == -1 || order == 0)
			r = record_drop_event(feed);
		else
			r = record_append_version(feed, &arrival, event->object, &seq);
	} else if (r == RECORD_UNFIT && event->type == WATCH_DELETED) {
		r = record_drop_event(feed); /* the journal does not have it */
	}
	bool readable = r == RECORD_TAKEN;
	r = record_end(feed, &arrival, r, tolerant);
	if (r != RECORD_TAKEN)
		return r;
	*ret_rv = BYTES_NONE;
	if (!readable)
		return RECORD_TAKEN;
	record_progress(feed, arrival.identity.rv);
	*ret_rv = recorder_keep_rv(feed->recorder, arrival.identity.rv);
	return recorder_bound(feed->recorder);
}

int record_bookmark(struct record_feed *feed, struct bytes object, struct bytes *ret_rv)
{
	struct object_identity identity;

	if (object_identity(object, false, &identity) < 0)
		return RECORD_UNREADABLE;
	if (!identity.rv.size)
		return record_unreadable("a bookmark without resourceVersion");
	if (identity.rv.size > RV_MAX)
		return record_unreadable("a bookmark with too long a resourceVersion");
	record_progress(feed, identity.rv);
	*ret_rv = recorder_keep_rv(feed->recorder, identity.rv);
	return RECORD_TAKEN;
}
