/* SPDX-License-Identifier: Apache-2.0 */
/* A journal with one feed of pods: records lists and events, and reads the journal's records back
 * as text. */
#ifndef UNIT_RECORD_TEXT_H
#define UNIT_RECORD_TEXT_H

#include <stdio.h>

#include "reflector/record/object.h"
#include "tests/unit/record_rig.h"

/* What a test records into, from set_up() to tear_down(). */
static struct {
	struct record_rig record;
	struct stats *stats;
	struct buf text;
} rig;
static struct record_feed *const feed = &rig.record.feed;

static inline void set_up(void)
{
	record_rig_open(&rig.record);
	cr_assert_eq(stats_create(AT_FDCWD, scratch_path("stats"), &rig.stats), 0);
	record_rig_add_feed(&rig.record, "metadata.managedFields", NULL, rig.stats);
}

static inline void tear_down(void)
{
	record_rig_close(&rig.record);
	stats_close(&rig.stats);
	buf_release(&rig.text);
}

static inline const char *pod(const char *name, const char *uid, const char *rv)
{
	static char texts[4][300];
	static unsigned next;
	char *text = texts[next++ % 4];

	snprintf(text, sizeof(texts[0]),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\","
		"\"resourceVersion\":\"%s\",\"managedFields\":[{\"x\":1}]},\"spec\":{\"n\":%s}}",
		name, uid, rv, rv);
	return text;
}

static inline void item_text(const char *text)
{
	cr_assert_eq(
		record_item(feed, bytes_str(text), false, false), RECORD_TAKEN, "%s", err_text(-1));
}

static inline void item(const char *name, const char *uid, const char *rv)
{
	item_text(pod(name, uid, rv));
}

static inline void event(enum watch_type type, const char *object)
{
	struct bytes rv;

	cr_assert_eq(
		record_event(feed, &(struct api_event){.type = type, .object = bytes_str(object)},
			false, &rv),
		RECORD_TAKEN, "%s", err_text(-1));
}

static inline void begin_list(void)
{
	cr_assert_eq(record_list_begin(feed), 0);
}

static inline void end_list(const char *rv)
{
	int r;

	while ((r = record_list_end(feed, bytes_str(rv))) == AGAIN)
		cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(r, 0, "%s", err_text(r));
}

/* Records after SEQ as "ADDED d/a@5 ", with "?" for an unknown final state. */
static inline const char *log_after(uint64_t seq)
{
	struct journal_walk *walk;
	struct record record;
	CLEANUP(txn_abort) struct txn *txn = NULL;

	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	buf_reset(&rig.text);
	cr_assert_eq(txn_begin_read(journal_env(rig.record.journal), &txn), 0);
	cr_assert_eq(journal_walk_open(txn, seq + 1, &walk), 0);
	while (journal_walk_next(walk, &record) == FOUND)
		buf_printf(&rig.text, "%s%s%s%.*s@%.*s", rig.text.size ? " " : "",
			record_type_name(record.type),
			record.flags & RECORD_FINAL_STATE_UNKNOWN ? "? " : " ",
			BYTES_ARG(record.key), BYTES_ARG(record.rv));
	journal_walk_close(&walk);
	return buf_cstr(&rig.text);
}

static inline uint64_t committed(void)
{
	struct journal_meta meta;
	CLEANUP(txn_abort) struct txn *txn = NULL;

	cr_assert_eq(txn_begin_read(journal_env(rig.record.journal), &txn), 0);
	cr_assert_eq(journal_meta(rig.record.journal, txn, &meta), 0);
	return meta.next_seq - 1;
}

static inline uint64_t last_seq(void)
{
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	return committed();
}

static inline void check_checkpoint(const char *rv, bool list_open)
{
	struct feed_checkpoint checkpoint;
	CLEANUP(txn_abort) struct txn *txn = NULL;

	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(txn_begin_read(journal_env(rig.record.journal), &txn), 0);
	cr_assert_eq(
		journal_feed_checkpoint(rig.record.journal, txn, feed->id, &checkpoint), FOUND);
	cr_assert(bytes_equal(checkpoint.rv, bytes_str(rv)), "rv %.*s", BYTES_ARG(checkpoint.rv));
	cr_assert_eq(checkpoint.list_begin != 0, list_open);
}

/* Lists a and b, ends at RV 10. */
static inline void first_list(void)
{
	begin_list();
	item("a", "ua", "5");
	item("b", "ub", "6");
	end_list("10");
}

#endif
