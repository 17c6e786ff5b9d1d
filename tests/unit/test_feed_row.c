/* SPDX-License-Identifier: Apache-2.0 */
/* A feed's definition as it is stored, also by older and newer programs. */
#include "store/journal/journal_internal.h"

#include "common/value/value.h"
#include "tests/unit/unit.h"

TestSuite(feed_row, .timeout = 30);

static const struct feed_definition pods = {.id = 7,
	.name = "pods",
	.version = "v1",
	.resource = "pods",
	.kind = "Pod",
	.list_kind = "PodList",
	.namespaced = true,
	.resync_ns = UINT64_C(1) << 60};

/* A map of the name, and of VALUE under KEY when there is one. */
static void write_map(struct buf *buf, const char *key, const char *text)
{
	size_t map = value_open_map(buf);

	value_put_string(buf, BYTES_LIT("name"));
	value_put_string(buf, BYTES_LIT("pods"));
	if (key) {
		value_put_string(buf, bytes_str(key));
		value_put_string(buf, bytes_str(text));
	}
	value_close(buf, map, key ? 2 : 1);
	feed_checksum(1, FEED_DEFINITION, buf);
}

Test(feed_row, what_an_older_or_newer_program_wrote_is_read)
{
	static const char *const more[] = {NULL, "colour"};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		CLEANUP(buf_release) struct buf stored = BUF_INIT, texts = BUF_INIT;
		struct feed_definition d;

		write_map(&stored, more[i], "red");
		OK(definition_read(1, buf_bytes(&stored), &texts, &d));
		cr_assert_str_eq(d.name, "pods");
		cr_assert_eq(d.resync_ns, 0);
	}
}

Test(feed_row, a_resync_that_is_no_number_is_damage)
{
	CLEANUP(buf_release) struct buf stored = BUF_INIT, texts = BUF_INIT;
	struct feed_definition d;

	write_map(&stored, "resync", "10m");
	cr_assert_eq(definition_read(1, buf_bytes(&stored), &texts, &d), ERR_CORRUPT);
}

Test(feed_row, a_damaged_row_or_another_feeds_is_refused)
{
	CLEANUP(buf_release) struct buf stored = BUF_INIT, texts = BUF_INIT;
	struct feed_definition d;

	cr_assert_eq(definition_write(&pods, &stored), 0);
	for (size_t i = 0; i < stored.size * 8; i++) {
		uint8_t *byte = (uint8_t *)stored.data + i / 8;

		*byte ^= (uint8_t)(1u << i % 8);
		cr_expect_eq(definition_read(7, buf_bytes(&stored), &texts, &d), ERR_CORRUPT,
			"bit %zu", i);
		*byte ^= (uint8_t)(1u << i % 8);
	}
	cr_expect_eq(
		definition_read(8, buf_bytes(&stored), &texts, &d), ERR_CORRUPT, "another feed's");
	cr_expect_eq(definition_read(7, BYTES(stored.data, 3), &texts, &d), ERR_CORRUPT);
	cr_expect_eq(definition_read(7, buf_bytes(&stored), &texts, &d), 0);
}

/* ---- in the journal ----------------------------------------------------- */

static struct journal *open_writer(struct home **ret_home)
{
	const struct home_options create = {.create = true};
	const struct journal_options small = {.map_bytes = 64u << 20};
	struct journal *journal = NULL;
	char reason[256];

	cr_assert_eq(home_open(scratch_path("store"), &create, ret_home), 0);
	cr_assert_eq(journal_open_write(*ret_home, &small, reason, &journal), 0);
	return journal;
}

/* As the journal has it when it is opened anew. */
static uint64_t kept(struct journal **journal, struct home **home)
{
	uint64_t ns = UINT64_MAX;

	journal_close(journal);
	home_close(home);
	*journal = open_writer(home);
	cr_assert_eq(journal_begin(*journal), 0);
	CLEANUP(feed_walk_release) struct feed_walk walk = {*journal, journal_txn(*journal)};
	while (feed_walk_next(&walk) == FOUND) {
		cr_assert_str_eq(walk.definition.kind, "Pod");
		ns = walk.definition.resync_ns;
	}
	journal_abort(*journal);
	return ns;
}

Test(feed_row, a_resync_is_set_without_a_record)
{
	CLEANUP(home_close) struct home *home = NULL;
	CLEANUP(journal_close) struct journal *journal = open_writer(&home);
	struct feed_change change = {.resync_ns = &(uint64_t){5}};
	struct journal_meta before, after;
	uint32_t feed;

	cr_assert_eq(journal_begin(journal), 0);
	cr_assert_eq(journal_add_feed(journal, &pods, &feed), 0);
	cr_assert_eq(journal_meta(journal, journal_txn(journal), &before), 0);
	cr_assert_eq(journal_commit(journal), 0);
	cr_assert_eq(kept(&journal, &home), pods.resync_ns);

	cr_assert_eq(journal_begin(journal), 0);
	cr_assert_eq(journal_change_feed(journal, feed, &change), 0);
	journal_abort(journal);
	cr_assert_eq(kept(&journal, &home), pods.resync_ns);

	cr_assert_eq(journal_begin(journal), 0);
	cr_assert_eq(journal_change_feed(journal, feed, &change), 0);
	cr_assert_eq(journal_change_feed(journal, feed, &change), END);
	change.name = "other";
	cr_assert_eq(journal_change_feed(journal, feed, &change), 0);
	cr_assert_eq(journal_meta(journal, journal_txn(journal), &after), 0);
	cr_assert_eq(journal_commit(journal), 0);
	cr_assert_eq(kept(&journal, &home), 5);
	cr_assert_eq(after.next_seq, before.next_seq, "there is nothing for followers in it");
}
