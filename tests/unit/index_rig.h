/* SPDX-License-Identifier: Apache-2.0 */
/* An index in a folder of its own, for the tests of its files. All failures fail the test. */
#ifndef UNIT_INDEX_RIG_H
#define UNIT_INDEX_RIG_H

#include "store/index/index.h"
#include "tests/unit/unit.h"

#define FEED 7u

/* The index of a test, from setup() to teardown(). */
static struct {
	struct home *home;
	struct index *index;
	uint8_t uuid[16];
} rig = {.uuid = "0123456789abcde"};

static const struct index_options small = {.map_bytes = (uint64_t)256 << 20};

static inline void setup(void)
{
	struct home_options how = {.create = true, .runtime_dir = scratch()};

	OK(home_open(scratch(), &how, &rig.home));
	cr_assert_eq(home_take_role(rig.home, HOME_PROCESSOR), 0);
	OK(index_create(rig.home, &small, rig.uuid, 0, &rig.index));
}

static inline void teardown(void)
{
	index_close(&rig.index);
	home_close(&rig.home);
}

static inline struct index_term term(uint32_t definition, const char *value)
{
	return (struct index_term){.definition = definition, .value = bytes_str(value)};
}

static inline void put(const char *key, uint64_t seq, const struct index_term *old, size_t n_old,
	const struct index_term *new, size_t n_new)
{
	struct index_change change = {
		.feed = FEED,
		.key = bytes_str(key),
		.to = {.seq = seq, .place = seq * 10, .place_size = 5, .generation = 1},
		.old = old,
		.n_old = n_old,
		.new = new,
		.n_new = n_new,
	};

	OK(index_put(rig.index, &change));
}

/* The objects of a value as "key key ", with the count in front. */
static inline const char *under(uint32_t definition, struct bytes value)
{
	static char text[4096];
	struct index_walk *walk;
	struct index_entry entry;
	struct txn *txn;
	uint64_t count;
	struct bytes key;
	size_t n;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	int r = index_postings(rig.index, txn, definition, value, &count, &walk);

	if (r == NOT_FOUND) {
		txn_abort(&txn);
		return "none";
	}
	cr_assert_eq(r, FOUND, "%s", err_text(r));
	n = (size_t)snprintf(text, sizeof(text), "%llu:", (unsigned long long)count);
	while ((r = index_walk_next(walk, &key, &entry)) == FOUND)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %.*s", BYTES_ARG(key));
	cr_assert_eq(r, END, "%s", err_text(r));
	index_walk_close(&walk);
	uint64_t only_counted = 0;
	cr_assert_eq(index_postings(rig.index, txn, definition, value, &only_counted, NULL), FOUND);
	cr_assert_eq(only_counted, count);
	txn_abort(&txn);
	return text;
}

static inline const char *names(const char *prefix, const char *from)
{
	static char text[4096];
	struct index_walk *walk;
	struct index_entry entry;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes key;
	size_t n = 0;
	int r;

	text[0] = 0;
	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	cr_assert_eq(
		index_names(rig.index, txn, FEED, bytes_str(prefix), bytes_str(from), &walk), 0);
	while ((r = index_walk_next(walk, &key, &entry)) == FOUND)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%llu ", BYTES_ARG(key),
			(unsigned long long)entry.seq);
	cr_assert_eq(r, END, "%s", err_text(r));
	index_walk_close(&walk);
	return text;
}

static inline uint32_t define(const char *name)
{
	uint32_t id;

	OK(index_define(rig.index, FEED, name, "a", &id));
	return id;
}

static inline void begin(void)
{
	OK(index_begin(rig.index));
}

static inline void commit(void)
{
	OK(index_commit(rig.index));
}

static inline uint64_t objects(void)
{
	struct index_feed feed;
	CLEANUP(txn_abort) struct txn *txn = NULL;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	int r = index_feed(rig.index, txn, FEED, &feed);
	return r == FOUND ? feed.objects : UINT64_MAX;
}

static struct index_definition defined; /* set by definitions() */

static inline unsigned definitions(void)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_definition one;
	unsigned n = 0;
	int r;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	CLEANUP(index_rows_release) struct index_rows rows = {txn};
	while ((r = index_next_definition(&rows, &one)) == FOUND)
		if (one.feed == FEED) {
			defined = one;
			n++;
		}
	cr_assert_eq(r, END);
	return n;
}

#endif
