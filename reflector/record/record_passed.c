/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that can't be read are passed over in the end (reflector/README.md): which, and why. The journal
 * has it as well, because the RV from which a restart watches on lies behind them. */
#include "reflector/record/record_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/record/recorder.h"

int record_load_passed(struct record_feed *feed)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct feed_passed passed;
	int r = txn_begin_read(journal_env(journal), &txn);

	if (r >= 0)
		r = journal_passed(journal, txn, feed->id, &passed);
	if (r < 0)
		return r;
	feed->passed_stored = r == FOUND;
	feed->passed_over = feed->passed_stored;
	feed->passed_limit = 0;
	if (r == NOT_FOUND)
		return 0;
	snprintf(feed->passed_name, sizeof(feed->passed_name), "%.*s", BYTES_ARG(passed.name));
	snprintf(feed->passed_why, sizeof(feed->passed_why), "%.*s", BYTES_ARG(passed.why));
	feed->passed_others = passed.several;
	feed->passed_limit = passed.limit;
	return 0;
}

int record_store_passed(struct record_feed *feed)
{
	const struct feed_passed passed = {.name = bytes_str(feed->passed_name), .why = bytes_str(feed->passed_why),
		.several = feed->passed_others, .limit = feed->passed_limit};
	struct recorder *recorder = feed->recorder;

	if (!feed->passed_over && !feed->passed_stored)
		return 0;
	int r = recorder_begin(recorder);
	if (r < 0)
		return r;
	r = journal_set_passed(recorder_journal(recorder), feed->id, feed->passed_over ? &passed : NULL);
	if (r < 0)
		return recorder_fail(recorder, r);
	recorder_changed(recorder);
	feed->passed_stored = feed->passed_over != 0;
	return 0;
}

/* Notes that ARRIVAL is passed over because of WHY. Returns whether anything was not known yet. */
static bool record_pass_over(struct record_feed *feed, const struct arrival *arrival, const char *name, const char *why)
{
	bool known = feed->passed_over != 0;
	bool same = known && strcmp(name, feed->passed_name) == 0 && strncmp(why, feed->passed_why, PASSED_WHY_MAX) == 0;
	uint64_t limit = arrival->cut ? feed->item_max : known ? feed->passed_limit : 0;

	same &= limit == feed->passed_limit;
	feed->passed_others = known && (feed->passed_others || strcmp(name, feed->passed_name) != 0);
	feed->passed_over++;
	feed->passed_limit = limit;
	snprintf(feed->passed_name, sizeof(feed->passed_name), "%s", name);
	snprintf(feed->passed_why, sizeof(feed->passed_why), "%.*s", PASSED_WHY_MAX, why);
	return !same;
}

int record_end(struct record_feed *feed, const struct arrival *arrival, int r, bool tolerant)
{
	char name[sizeof(feed->passed_name)] = "unnamed";
	bool news = false;
	struct err_kept why;

	if (r == RECORD_UNREADABLE) {
		if (arrival->key_size)
			snprintf(name, sizeof(name), "%.*s", (int)arrival->key_size, arrival->key);
		err_keep(&why);
		stats_add(recorder_stats(feed->recorder), STAT_BAD_OBJECTS, 1);
		if (!tolerant) {
			(void)err_say(ERR_PROTOCOL, "'%s': %s", name, why.text);
			return RECORD_UNREADABLE;
		}
		news = record_pass_over(feed, arrival, name, why.text);
		r = RECORD_TAKEN;
	} else if (r == RECORD_TAKEN && feed->passed_over && !feed->passed_others &&
		bytes_equal(record_key(arrival), bytes_str(feed->passed_name))) {
		/* The only object that was passed over came again readable, or went. */
		feed->passed_over = 0;
		news = true;
	}
	if (!news || feed->attempt) /* the end of a list stores it */
		return r;
	int stored = record_store_passed(feed);
	return stored < 0 ? stored : r;
}
