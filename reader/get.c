/* SPDX-License-Identifier: Apache-2.0 */
/* Gets objects by key: one, or many with their memory loaded at the same time. */
#include <errno.h>
#include <string.h>

#include "common/err.h"
#include "reader/past.h"

int key_join(
	const char *namespace_, const char *name, char key[JOURNAL_KEY_MAX], struct bytes *ret_key)
{
	size_t skip = namespace_ && *namespace_ ? strlen(namespace_) + 1 : 0;

	if (!name)
		return err_say(-EINVAL, "the name of the object is NULL");
	size_t size = strlen(name);
	if (skip > JOURNAL_KEY_MAX || size > JOURNAL_KEY_MAX - skip)
		return NOT_FOUND;
	if (skip) {
		memcpy(key, namespace_, skip - 1);
		key[skip - 1] = '/';
	}
	memcpy(key + skip, name, size);
	*ret_key = BYTES(key, skip + size);
	return 0;
}

/* Returns whether the feed may hold KEY: it has no namespace of its own, or the key's. */
static bool get_may_hold(const struct snapshot_feed *feed, struct bytes key)
{
	const char *only = feed->definition.namespace_;
	const uint8_t *slash = *only && key.size ? memchr(key.data, '/', key.size) : NULL;

	return !slash || bytes_equal(BYTES(key.data, (size_t)(slash - (const uint8_t *)key.data)),
				 bytes_str(only));
}

int feed_set_find(struct kinf_snapshot *snapshot, const struct feed_set *set, struct bytes key,
	struct record *ret_record)
{
	const struct snapshot_feed *unlisted = NULL;
	int r = NOT_FOUND;

	if (key.size > JOURNAL_KEY_MAX)
		return NOT_FOUND;
	for (size_t i = 0; r == NOT_FOUND && i < set->n; i++) {
		const struct snapshot_feed *feed = &set->feeds[i];

		if (!get_may_hold(feed, key))
			continue;
		if (feed->visible && snapshot->at_event)
			r = past_get(snapshot, feed, key, ret_record);
		else if (feed->visible)
			r = snapshot_get(snapshot->snapshot, feed->definition.id, key, ret_record);
		else
			unlisted = feed;
	}
	if (r != NOT_FOUND || !unlisted)
		return r;
	feed_explain_unlisted(snapshot, unlisted);
	return AGAIN;
}

int kinf_get(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, struct kinf_object *ret_object)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	char text[JOURNAL_KEY_MAX];
	const struct feed_set *set;
	struct record record;
	struct bytes key;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get_named(snapshot, feed, &set);
	if (r == 0)
		r = key_join(namespace_, name, text, &key);
	if (r == 0)
		r = feed_set_find(snapshot, set, key, &record);
	if (r == FOUND)
		object_from_record(&record, ret_object);
	return kinf_result_of(snapshot, r);
}

/* Looks N keys up in the feeds of SET. Results are the same as of feed_set_find(). */
static void get_batch(struct kinf_snapshot *snapshot, const struct feed_set *set,
	struct snapshot_key *keys, size_t n)
{
	struct snapshot_key *asked[SNAPSHOT_OBJECTS_MAX];
	bool unlisted[SNAPSHOT_OBJECTS_MAX] = {false};

	for (size_t i = 0; i < n; i++)
		keys[i].result = NOT_FOUND;
	for (size_t f = 0; f < set->n; f++) {
		const struct snapshot_feed *feed = &set->feeds[f];
		size_t n_asked = 0;

		for (size_t i = 0; i < n; i++) {
			if (keys[i].result != NOT_FOUND || keys[i].key.size > JOURNAL_KEY_MAX ||
				!get_may_hold(feed, keys[i].key))
				continue;
			unlisted[i] |= !feed->visible;
			asked[n_asked++] = &keys[i];
		}
		if (feed->visible)
			snapshot_get_batch(snapshot->snapshot, feed->definition.id, asked, n_asked);
	}
	for (size_t i = 0; i < n; i++)
		if (keys[i].result == NOT_FOUND && unlisted[i])
			keys[i].result = AGAIN;
}

int kinf_get_many(struct kinf_snapshot *snapshot, const char *feed, const char *const *keys,
	size_t n, kinf_get_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	struct snapshot_key batch[SNAPSHOT_OBJECTS_MAX];
	uint64_t taken_as = snapshot->taken_as;
	const struct feed_set *set;
	struct kinf_object object;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get_named(snapshot, feed, &set);
	for (size_t from = 0; r == 0 && from < n; from += SNAPSHOT_OBJECTS_MAX) {
		size_t m = n - from < SNAPSHOT_OBJECTS_MAX ? n - from : SNAPSHOT_OBJECTS_MAX;

		for (size_t i = 0; i < m; i++)
			batch[i].key = bytes_str(keys[from + i]);
		get_batch(snapshot, set, batch, m);
		for (size_t i = 0; r == 0 && i < m; i++) {
			int found = batch[i].result;

			if (found < 0)
				return kinf_result_of(snapshot, found);
			if (found == FOUND)
				object_from_record(&batch[i].record, &object);
			r = fn(arg, from + i, found, found == FOUND ? &object : NULL);
			if (r != 0)
				return r;
			if (snapshot->taken_as != taken_as)
				r = err_say(-EINVAL, "kinf_get_many: the function that was called "
						     "renewed or reset the snapshot");
		}
	}
	return kinf_result_of(snapshot, r);
}
