/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/filling.h"

#include "tests/unit/page_rig.h"
#include "tests/unit/rig.h"

#define MIB ((uint64_t)1 << 20)

/* A journal on disk is read once, and this alone is no reason to read its pages one by one. */
Test(filling, pages_are_read_alone_once_more_than_the_journal_was_read)
{
	struct filling filling = {0};

	filling_note(&filling, 500 * MIB, 100 * MIB); /* earlier growth does not count */
	cr_assert_not(filling.by_page);
	filling_note(&filling, 600 * MIB, 100 * MIB);
	cr_assert_not(filling.by_page);
	filling_note(&filling, 601 * MIB, 100 * MIB);
	cr_assert(filling.by_page);
	filling_note(&filling, 601 * MIB, 900 * MIB);
	cr_assert(filling.by_page, "it was decided");
}

Test(filling, what_it_decides_counts_for_the_journal_and_records_with_a_place_are_announced)
{
	static struct rig rig;
	struct filling filling = {0};

	rig_open(&rig, "feeds: [{resource: pods}]\n");
	uint32_t feed = rig_add_feed(&rig, "pods");
	size_t size = database_page() + 100;
	AUTO_FREE char *body = malloc(size);
	(void)snprintf(body, size, "{\"spec\":{\"text\":\"%0*d\"}}", (int)database_page(), 1);
	uint64_t large = rig_record(&rig, feed, RECORD_ADDED, "web/a", body);

	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	cr_assert_eq(journal_open_read(rig.p.home, NULL, &journal), 0);
	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	cr_assert_not(filling_look(&filling, journal, txn));
	cr_assert_not(txn_reads_by_page(txn));
	filling.by_page = true;
	(void)filling_look(&filling, journal, txn);
	cr_assert(txn_reads_by_page(txn));
	cr_assert_gt(filling_announce(&filling, journal, txn, large), database_page());
	cr_assert_eq(filling_announce(&filling, journal, txn, large + 1), 0);
	ahead_send(&filling.ahead, txn);
	txn_abort(&txn);
	journal_close(&journal);
	rig_close(&rig);
}
