/* SPDX-License-Identifier: Apache-2.0 */
/* The objects passed over (reflector/README.md), and why. The journal has them as well, because a
 * restart watches on from an RV after theirs. */
#include "reflector/record/record_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/record/recorder.h"

#define WHY_MAX 150

/* ---- the objects missing in a feed -------------------------------------- */

void record_clear_passed(struct record_feed *feed)
{
	for (size_t i = 0; i < feed->n_passed; i++)
		free(feed->passed[i].name);
	free(feed->passed);
	feed->passed = NULL;
	feed->n_passed = feed->passed_room = 0;
	feed->passed_more = feed->passed_unsure = false;
	feed->passed_changes++;
}

/* Returns its place; n_passed: it is not known. */
static size_t record_find_passed(const struct record_feed *feed, struct bytes name)
{
	size_t i = 0;

	while (i < feed->n_passed &&
		!bytes_equal(BYTES(feed->passed[i].name, feed->passed[i].name_size), name))
		i++;
	return i;
}

static int record_make_passed(const struct passed_object *object, struct passed *ret_passed)
{
	size_t why_size = object->why.size < WHY_MAX ? object->why.size : WHY_MAX;
	char *name = malloc(object->name.size + 1 + why_size + 1);

	if (!name)
		return err_set(-ENOMEM, "an object that can't be stored");
	char *why = name + object->name.size + 1;
	if (object->name.size)
		memcpy(name, object->name.data, object->name.size);
	name[object->name.size] = '\0';
	(void)snprintf(why, why_size + 1, "%.*s", BYTES_ARG(object->why));
	*ret_passed = (struct passed){
		.name_size = object->name.size, .name = name, .why = why, .limit = object->limit};
	return 0;
}

/* Returns: 1: something is new; 0; -ENOMEM. */
static int record_put_passed(struct record_feed *feed, const struct passed_object *object)
{
	size_t i = record_find_passed(feed, object->name);
	struct passed passed;
	int r;

	if (i == FEED_PASSED_MAX) {
		bool known = feed->passed_more;

		feed->passed_more = true;
		return !known;
	}
	r = record_make_passed(object, &passed);
	if (r == 0 && i == feed->n_passed) {
		r = ARRAY_ADD(feed->passed, feed->n_passed, feed->passed_room, passed,
			"the objects that can't be stored");
		if (r == 0)
			return 1;
		free(passed.name);
	}
	if (r < 0)
		return r;
	bool same = strcmp(passed.why, feed->passed[i].why) == 0 &&
		    passed.limit == feed->passed[i].limit;
	free(feed->passed[i].name);
	feed->passed[i] = passed;
	return !same;
}

bool record_would_fit(const struct record_feed *feed, uint64_t limit)
{
	for (size_t i = 0; i < feed->n_passed; i++)
		if (feed->passed[i].limit && feed->passed[i].limit < limit)
			return true;
	return false;
}

/* ---- their row in the journal ------------------------------------------- */

int record_load_passed(struct record_feed *feed)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct feed_passed passed;
	int r = txn_begin_read(journal_env(journal), &txn);

	record_clear_passed(feed);
	if (r >= 0)
		r = journal_passed(journal, txn, feed->id, &passed);
	if (r < 0)
		return r;
	feed->passed_stored = r == FOUND;
	if (r == NOT_FOUND)
		return 0;
	feed->passed_more = passed.more;
	feed->passed_unsure =
		passed.more && !passed.n; /* rows of before have no names: a list finds them */
	r = 0;
	for (size_t i = 0; r >= 0 && i < passed.n; i++)
		r = record_put_passed(feed, &passed.objects[i]);
	return r < 0 ? r : 0;
}

int record_store_passed(struct record_feed *feed)
{
	struct feed_passed passed = {.n = feed->n_passed, .more = feed->passed_more};
	struct recorder *recorder = feed->recorder;

	if (!record_lacks(feed) && !feed->passed_stored)
		return 0;
	for (size_t i = 0; i < passed.n; i++)
		passed.objects[i] = (struct passed_object){
			.name = BYTES(feed->passed[i].name, feed->passed[i].name_size),
			.why = bytes_str(feed->passed[i].why),
			.limit = feed->passed[i].limit};
	int r = recorder_begin(recorder);
	if (r < 0)
		return r;
	r = journal_set_passed(
		recorder_journal(recorder), feed->id, record_lacks(feed) ? &passed : NULL);
	if (r == 0)
		feed->passed_stored = record_lacks(feed);
	return recorder_changed(recorder, r);
}

/* ---- the end of an object ----------------------------------------------- */

int record_end(struct record_feed *feed, const struct arrival *arrival, int r, bool tolerant)
{
	int changed = 0;

	if (r < 0)
		return r;
	if (r == RECORD_UNREADABLE || r == RECORD_UNFIT) {
		struct bytes name = arrival->key_size ? record_key(arrival) : BYTES_LIT("unnamed");
		struct err_kept why;

		err_keep(&why);
		stats_add(recorder_stats(feed->recorder), STAT_BAD_OBJECTS, 1);
		if (r == RECORD_UNREADABLE && !tolerant) {
			(void)err_say(ERR_PROTOCOL, "'%.*s': %s", BYTES_ARG(name), why.text);
			return RECORD_UNREADABLE;
		}
		changed = record_put_passed(
			feed, &(struct passed_object){.name = record_key(arrival),
				      .why = bytes_str(why.text),
				      .limit = arrival->cut ? feed->item_max : 0});
		if (changed < 0)
			return recorder_fail(feed->recorder, changed);
	} else if (feed->n_passed) {
		/* A known object came again in a sound form, or went. */
		size_t i = record_find_passed(feed, record_key(arrival));

		changed = i < feed->n_passed;
		if (changed) {
			free(feed->passed[i].name);
			memmove(feed->passed + i, feed->passed + i + 1,
				(--feed->n_passed - i) * sizeof(*feed->passed));
			feed->passed_unsure |= !feed->n_passed && feed->passed_more;
		}
	}
	if (changed <= 0)
		return changed;
	feed->passed_changes++;
	return feed->attempt ? RECORD_TAKEN
			     : record_store_passed(feed); /* the end of a list stores it */
}
