/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "tests/unit/rig.h"
#include "tests/unit/scratch.h"

static struct rig rig;
static struct readers *readers;
static pid_t holder;
static int to_holder[2], from_holder[2];

/* Another process: told to, it opens the store and holds a snapshot of the index. Made before the
 * rig opens anything, because handles do not survive fork (store/env/env.h). */
static void hold(const char *store)
{
	struct home_options options = {0};
	struct home *home = NULL;
	struct index *index = NULL;
	struct txn *txn = NULL;
	char byte;

	if (read(to_holder[0], &byte, 1) != 1 || home_open(store, &options, &home) != 0 ||
		index_open_read(home, &index) != 0 || txn_begin_read(index_env(index), &txn) != 0 ||
		write(from_holder[1], "y", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void setup(void)
{
	const char *store = scratch_path("store");

	cr_assert_eq(pipe(to_holder), 0);
	cr_assert_eq(pipe(from_holder), 0);
	holder = fork();
	if (holder == 0)
		hold(store);
	close(from_holder[1]);
	rig_open(&rig, "feeds: []\n");
	rig_settle(&rig);
	cr_assert_eq(readers_new(&readers), 0);
}

static void end_holder(void)
{
	cr_assert_eq(kill(holder, SIGKILL), 0);
	cr_assert_eq(waitpid(holder, NULL, 0), holder);
	holder = 0;
}

static void teardown(void)
{
	if (holder)
		end_holder();
	readers_free(&readers);
	rig_close(&rig);
}

static void let_it_hold(void)
{
	char byte;

	cr_assert_eq(write(to_holder[1], "g", 1), 1);
	cr_assert_eq(read(from_holder[0], &byte, 1), 1, "the other process has no snapshot");
}

static void check(uint64_t seconds)
{
	int r = readers_check(readers, pair_env(rig.pair), pair_journal_env(rig.pair), rig.p.stats, seconds * 1000000000);

	cr_assert_eq(r, 0, "%s", err_text(r));
}

TestSuite(readers, .init = setup, .fini = teardown, .timeout = 60);

Test(readers, snapshot_held_for_a_minute_is_counted_once)
{
	let_it_hold();
	check(100);
	check(160);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 0);
	check(161);
	check(162);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 1);
	cr_assert_eq(stats_get(rig.p.stats, STAT_STALE_READERS), 0);
}

Test(readers, slot_of_a_killed_reader_is_cleared)
{
	let_it_hold();
	check(1);
	end_holder();
	check(2);
	cr_assert_eq(stats_get(rig.p.stats, STAT_STALE_READERS), 1);
	check(100);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 0);
}
