/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/pair.h"

#include "store/env/generation.h"
#include "store/journal/journal_copy.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/page_rig.h"
#include "tests/unit/rig.h"

static struct rig rig;

static void setup(void)
{
	rig_open(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
}

static void teardown(void)
{
	rig_close(&rig);
}

static const char *on(const char *node)
{
	static char text[4][64];
	static unsigned turn;
	char *at = text[turn++ % 4];

	(void)snprintf(at, sizeof(text[0]), "{\"spec\":{\"nodeName\":\"%s\"}}", node);
	return at;
}

static uint32_t listed_feed(void)
{
	uint32_t feed = rig_add_feed(&rig, "pods");

	rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_ADDED, "a/1", on("n1"));
	rig_record(&rig, feed, RECORD_ADDED, "b/2", on("n2"));
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	return feed;
}

static void drop_index(void)
{
	pair_close(&rig.pair);
	cr_assert_geq(generation_remove_except(home_index_fd(rig.p.home), NULL, 0, NULL), 1);
	cr_assert_eq(unlinkat(home_index_fd(rig.p.home), "CURRENT", 0), 0);
}

TestSuite(rebuild, .init = setup, .fini = teardown, .timeout = 60);

Test(rebuild, a_damaged_current_stops_nobody)
{
	uint32_t feed = listed_feed();

	rig_settle(&rig);
	pair_close(&rig.pair);
	scratch_write(scratch_path("store/index/CURRENT"), "");
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1");
	cr_assert_eq(rig_generation(&rig), 2);
	cr_assert_neq(access(scratch_path("store/index/gen-1"), F_OK), 0, "it is removed then");
}

/* Other files beside them, a copy for example, are not ours to remove. */
Test(rebuild, what_is_not_ours_among_the_generations_stops_nobody)
{
	uint32_t feed = listed_feed();

	rig_settle(&rig);
	scratch_write(scratch_path("store/index/gen-1/data.mdb.copy"), "x");
	scratch_write(scratch_path("store/index/gen-7"), "x");
	pair_close(&rig.pair);
	OK(pair_open(&rig.p, "a test", &rig.pair));
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1");
	cr_assert_neq(access(scratch_path("store/index/gen-1/data.mdb"), F_OK), 0);
	pair_close(&rig.pair);
	OK(pair_open(&rig.p, "a test", &rig.pair));
	cr_assert_neq(access(scratch_path("store/index/gen-8"), F_OK), 0, "of the others all go");
	rig_record(&rig, feed, RECORD_ADDED, "c/3", on("n1"));
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1 c/3");
}

Test(rebuild, a_damaged_version_has_the_journal_given_up)
{
	char reason[256];

	(void)listed_feed();
	rig_settle(&rig);
	pair_close(&rig.pair);
	drop_index();
	damage(rig.journal, 3, 1000, 0); /* the last byte of a/1 */
	cr_assert_eq(pair_open(&rig.p, NULL, &rig.pair), ERR_CORRUPT);
	cr_expect(strstr(err_text(ERR_CORRUPT), "another journal"), "%s", err_text(ERR_CORRUPT));
	cr_assert_eq(journal_check_damage(rig.journal), ERR_CORRUPT);
	journal_close(&rig.journal);
	cr_assert_eq(
		journal_open_write(rig.p.home, &(struct journal_options){.map_bytes = 1u << 24},
			reason, &rig.journal),
		0);
	cr_expect(strstr(reason, "a daemon met damage in it"), "%s", reason);
	cr_expect_eq(journal_generation(rig.journal), 2);
}

Test(rebuild, journal_trimmed_beyond_the_index_is_noticed)
{
	uint32_t feed = listed_feed();
	uint64_t trimmed;

	rig_settle(&rig);
	pair_close(&rig.pair);
	uint64_t seq = rig_record(&rig, feed, RECORD_MODIFIED, "a/1", on("n7"));
	while (journal_trim(rig.journal, seq, 100, &trimmed) == AGAIN)
		;
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "a/1");
	EXPECT(rig_under(&rig, feed, "node", "n1"), "");
	cr_assert_eq(stats_get(rig.p.stats, STAT_REBUILDS), 2);
	cr_assert_eq(rig_taken(&rig), seq);
}

Test(rebuild, garbled_index_is_replaced)
{
	uint32_t feed = listed_feed();
	char garbage[8192];

	rig_settle(&rig);
	pair_close(&rig.pair);
	memset(garbage, 0x5a, sizeof(garbage));
	int fd = openat(home_index_fd(rig.p.home), "gen-1/data.mdb", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, garbage, sizeof(garbage), 0), (ssize_t)sizeof(garbage));
	close(fd);
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1");
	cr_assert_eq(stats_get(rig.p.stats, STAT_REBUILDS), 2);
}

Test(rebuild, unfinished_build_is_thrown_away)
{
	uint32_t feed = listed_feed();
	struct index *index = NULL;

	rig_settle(&rig);
	pair_close(&rig.pair);
	cr_assert_eq(index_create(rig.p.home, NULL, journal_uuid(rig.journal), 0, &index), 0);
	index_close(&index);
	cr_assert_eq(faccessat(home_index_fd(rig.p.home), "gen-2", F_OK, 0), 0);
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1");
	cr_assert_eq(rig_generation(&rig), 1);
	cr_assert_neq(faccessat(home_index_fd(rig.p.home), "gen-2", F_OK, 0), 0);
}

Test(rebuild, new_journal_is_indexed_beside_and_shown_when_its_feeds_are_listed)
{
	static const struct journal_options options = {.map_bytes = 256u << 20};
	uint32_t feed = listed_feed();

	rig_settle(&rig);
	uint32_t old = rig_generation(&rig);
	ring_close(&rig.delta);
	cr_assert_eq(journal_begin_anew(&rig.journal, rig.p.home, &options), 0);
	cr_assert_eq(pair_check(rig.pair), GONE);
	pair_close(&rig.pair);
	rig_settle(&rig);
	cr_assert_eq(rig_generation(&rig), old, "readers keep the old pair");
	EXPECT(rig_under(&rig, feed, "node", "n1"), "a/1");

	feed = rig_add_feed(&rig, "pods");
	rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_ADDED, "x/1", on("n5"));
	rig_settle(&rig);
	cr_assert_eq(rig_generation(&rig), old);
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_settle(&rig);
	cr_assert_neq(rig_generation(&rig), old);
	EXPECT(rig_under(&rig, feed, "node", "n5"), "x/1");
	EXPECT(rig_under(&rig, feed, "node", "n1"), "");
}

Test(rebuild, damaged_old_journal_serves_nobody_so_the_new_one_is_shown_at_once)
{
	static const struct journal_options options = {.map_bytes = 256u << 20};
	char reason[256], garbage[8192];

	(void)listed_feed();
	rig_settle(&rig);
	uint32_t old = rig_generation(&rig);
	pair_close(&rig.pair);
	ring_close(&rig.delta);
	journal_close(&rig.journal);
	memset(garbage, 0x5a, sizeof(garbage));
	int fd = openat(home_journal_fd(rig.p.home), "gen-1/data.mdb", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, garbage, sizeof(garbage), 0), (ssize_t)sizeof(garbage));
	close(fd);
	cr_assert_eq(journal_open_write(rig.p.home, &options, reason, &rig.journal), 0);
	cr_assert_neq(reason[0], '\0');
	rig_settle(&rig);
	cr_assert_neq(rig_generation(&rig), old);
}

static int stop(void *arg)
{
	int *left = arg;

	return --*left < 0 ? err_set(-EINTR, "stopping") : 0;
}

Test(rebuild, can_be_stopped_and_begins_again)
{
	uint32_t feed = rig_add_feed(&rig, "pods");
	int left = 2;

	rig_append(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	for (int i = 0; i < 2000; i++) {
		char key[16];
		(void)snprintf(key, sizeof(key), "ns/%04d", i);
		rig_append(&rig, feed, RECORD_ADDED, key, on("n1"));
	}
	rig_append(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_commit(&rig);
	rig.p.tick = stop;
	rig.p.tick_arg = &left;
	cr_assert_eq(pair_open(&rig.p, NULL, &rig.pair), -EINTR);
	rig.p.tick = NULL;
	rig_settle(&rig);
	cr_assert_eq(rig_feed(&rig, feed).objects, 2000);
}

static void compact_journal(void)
{
	struct journal_copy_options options = {.to = rig.p.home, .from = rig.journal};
	CLEANUP(journal_copy_free) struct journal_copy *copy = NULL;
	int r = journal_copy_new(&options, &copy);

	while (r == 0 && (r = journal_copy_slice(copy, 1 << 20)) == AGAIN)
		r = 0;
	r = r == 0 ? journal_copy_end(copy, rig.journal) : r;
	cr_assert_eq(r, 0, "%s", err_text(r));
}

/* Until then each record is searched by its seq, so the processor copies the index when it has the
 * time. */
Test(rebuild, a_compacted_journal_leaves_old_places_in_the_index_until_that_is_compacted)
{
	uint32_t feed = rig_add_feed(&rig, "pods");
	size_t page = database_page(), size = page + 100;
	AUTO_FREE char *body = malloc(size); /* small ones have no place of their own */

	(void)snprintf(body, size, "{\"spec\":{\"text\":\"%0*d\"}}", (int)page, 1);
	rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_ADDED, "web/a", body);
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_settle(&rig);
	cr_assert_eq(pair_find_old_places(rig.pair), NOT_FOUND);
	compact_journal();
	rig_restart(&rig);
	cr_assert_eq(pair_find_old_places(rig.pair), FOUND);
	pair_close(&rig.pair);
	OK(index_compact(rig.p.home, NULL, NULL, NULL));
	rig_settle(&rig);
	cr_assert_eq(pair_find_old_places(rig.pair), NOT_FOUND);
}

Test(rebuild, compaction_finds_that_there_is_no_index)
{
	cr_assert_eq(index_compact(rig.p.home, NULL, NULL, NULL), NOT_FOUND);
	(void)listed_feed();
	rig_settle(&rig);
	drop_index();
	cr_assert_eq(index_compact(rig.p.home, NULL, NULL, NULL), NOT_FOUND);
}

/* In a container with little memory each row would bring in read_ahead_kb of bodies, and evict the
 * next rows. */
Test(rebuild, a_copy_of_the_index_reads_the_journal_by_page)
{
	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint32_t feed = rig_add_feed(&rig, "pods");

	rig_record(&rig, feed, RECORD_ADDED, "web/a", "{}");
	rig_settle(&rig);
	pair_close(&rig.pair);
	cr_assert_eq(journal_open_read(rig.p.home, NULL, &journal), 0);
	env_expect_random(journal_env(journal), false);
	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	OK(index_compact(rig.p.home, NULL, NULL, NULL));
	cr_assert(txn_reads_by_page(txn));
}
