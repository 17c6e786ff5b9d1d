/* SPDX-License-Identifier: Apache-2.0 */
/* A journal in the scratch folder, for the tests of its files. All failures fail the test. */
#ifndef UNIT_JOURNAL_RIG_H
#define UNIT_JOURNAL_RIG_H

#include <criterion/criterion.h>

#include "common/err.h"
#include "store/journal/journal.h"
#include "tests/unit/scratch.h"

static const struct journal_options small = {.map_bytes = 64u << 20};

static inline struct home *open_home(void)
{
	struct home_options options = {.create = true};
	struct home *home = NULL;
	int r = home_open(scratch_path("store"), &options, &home);

	cr_assert_eq(r, 0, "%s", err_text(r));
	return home;
}

static inline struct journal *open_writer(struct home *home)
{
	struct journal *journal = NULL;
	char reason[256];
	int r = journal_open_write(home, &small, reason, &journal);

	cr_assert_eq(r, 0, "%s", err_text(r));
	return journal;
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

static inline uint32_t add_feed(struct journal *j)
{
	struct feed_definition definition = pods();
	uint32_t feed = 0;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_add_feed(j, &definition, &feed), 0);
	cr_assert_eq(journal_commit(j), 0);
	return feed;
}

static inline uint64_t append(
	struct journal *j, uint32_t feed, enum record_type type, const char *key)
{
	struct record record = {.feed = feed,
		.type = type,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7"),
		.body = BYTES_LIT("\x81\xa1x\x01")};
	uint64_t seq = 0;

	cr_assert_eq(journal_begin(j), 0);
	int r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	return seq;
}

#endif
