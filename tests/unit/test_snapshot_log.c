/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of the journal alone, for a caller that knows of a record (a follower with a ring's entry). */
#include "store/read/snapshot.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"
#include "store/journal/journal_copy.h"
#include "store/read/snapshot_internal.h"
#include "tests/unit/scratch.h"
#include "tests/unit/small_store.h"

#define OK(call) \
	do { \
		int ok_ = (call); \
		cr_assert_eq(ok_, 0, #call ": %s", err_text(ok_)); \
	} while (0)

static struct small_store s;
static struct store *store;
static struct snapshot *snapshot;

static void set_up(void)
{
	small_store_open(&s);
	(void)small_store_put(&s, "web/a", "n1", 3000);
	small_store_take(&s);
	OK(store_open(s.path, NULL, &store));
	OK(snapshot_open_log(store, &snapshot));
}

static void tear_down(void)
{
	snapshot_close(&snapshot);
	store_close(&store);
	small_store_close(&s);
}

TestSuite(snapshot_log, .init = set_up, .fini = tear_down, .timeout = 60);

static void compact(void)
{
	struct journal_copy_options options = {.to = s.home, .from = s.journal};
	struct journal_copy *copy;

	OK(journal_copy_new(&options, &copy));
	while (journal_copy_slice(copy, 1 << 20) == AGAIN)
		;
	OK(journal_copy_end(copy, s.journal));
	journal_copy_free(&copy);
}

/* The version SEQ as the snapshot sees it. */
static int version(uint64_t seq)
{
	struct record record;

	return snapshot_version(snapshot, seq, &record);
}

Test(snapshot_log, shows_the_record_that_the_caller_knows_of)
{
	uint64_t known = small_store_put(&s, "web/a", "n2", 3000);

	cr_assert_eq(version(known), NOT_FOUND);
	OK(snapshot_renew_log_to(snapshot, known));
	cr_assert_eq(version(known), FOUND);
	cr_assert_geq(snapshot_last(snapshot), known);
}

Test(snapshot_log, examines_current_only_if_the_open_file_lacks_the_record)
{
	uint64_t known = small_store_put(&s, "web/a", "n2", 3000);

	store->checked_ns = 1; /* long ago */
	OK(snapshot_renew_log_to(snapshot, known));
	cr_assert_eq(store->checked_ns, 1);
	OK(snapshot_renew_log_to(snapshot, known + 1));
	cr_assert_gt(store->checked_ns, 1);
}

Test(snapshot_log, finds_a_record_that_only_the_compacted_journal_has)
{
	const struct store_pair *before = snapshot->pair;
	uint64_t old = small_store_put(&s, "web/a", "n2", 3000);

	compact();
	uint64_t known = small_store_put(&s, "web/a", "n3", 3000);
	store->checked_ns = 1;
	OK(snapshot_renew_log_to(snapshot, old));
	cr_assert_eq(snapshot->pair, before, "the file that was left has this one");
	cr_assert_eq(version(known), NOT_FOUND);
	OK(snapshot_renew_log_to(snapshot, known));
	cr_assert_neq(snapshot->pair, before);
	cr_assert_eq(version(old), FOUND);
	cr_assert_eq(version(known), FOUND);
}
