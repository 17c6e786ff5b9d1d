/* SPDX-License-Identifier: Apache-2.0 */
/* A journal in the scratch folder, for the tests of its files. All failures fail the test. */
#ifndef UNIT_JOURNAL_RIG_H
#define UNIT_JOURNAL_RIG_H

#include "store/journal/journal.h"
#include "tests/unit/unit.h"

static const struct journal_options small = {.map_bytes = 64u << 20};

/* The journal of a test, with a feed, from set_up() to tear_down(). */
static struct home *home;
static struct journal *j;
static uint32_t feed;

static inline void open_home(void)
{
	struct home_options options = {.create = true};

	OK(home_open(scratch_path("store"), &options, &home));
}

static inline void open_writer(void)
{
	char reason[256];

	OK(journal_open_write(home, &small, reason, &j));
}

static inline struct feed_definition pods(void)
{
	return (struct feed_definition){.name = "pods",
		.group = "",
		.version = "v1",
		.resource = "pods",
		.kind = "Pod",
		.list_kind = "PodList",
		.namespace_ = "",
		.label_selector = "app=web",
		.field_selector = "",
		.drop = "metadata.managedFields",
		.namespaced = true};
}

static inline uint32_t add_feed(void)
{
	struct feed_definition definition = pods();
	uint32_t id = 0;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_add_feed(j, &definition, &id), 0);
	cr_assert_eq(journal_commit(j), 0);
	return id;
}

static inline uint64_t append(uint32_t to, enum record_type type, const char *key)
{
	struct record record = {.feed = to,
		.type = type,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7"),
		.body = BYTES_LIT("\x81\xa1x\x01")};
	uint64_t seq = 0;

	cr_assert_eq(journal_begin(j), 0);
	OK(journal_append(j, &record, &seq));
	return seq;
}

static inline void set_up(void)
{
	open_home();
	open_writer();
	feed = add_feed();
}

static inline void tear_down(void)
{
	journal_close(&j);
	home_close(&home);
}

/* What another process finds. */
static inline void open_again(void)
{
	journal_close(&j);
	open_writer();
}

#endif
