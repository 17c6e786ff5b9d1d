/* SPDX-License-Identifier: Apache-2.0 */
/* Pins of readers on a full disk, and on file systems without a block for a store into a map. */
#include "common/failpoint.h"
#include "tests/unit/pins_rig.h"

TestSuite(pins, .init = setup, .fini = teardown, .timeout = 60);

#define NO_FILES "pins.make:0:error=ENOSPC"

/* Starts a child with these failpoints. They do nothing in this process, because a writer has no
 * pin file. */
static struct child start_with(const char *failpoints)
{
	cr_assert_eq(setenv("KINF_FAIL", failpoints, 1), 0);
	OK(failpoint_setup());
	return start();
}

static int pin_files(void)
{
	DIR *directory = opendir(places.path[0]);
	int n = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		n += entry->d_name[0] != '.';
	(void)closedir(directory);
	return n;
}

Test(pins, reader_without_room_for_a_pin_file_holds_everything_while_it_reads)
{
	struct child child = start_with(NO_FILES);

	setup_writer();
	uint64_t alone = growth();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(pin_files(), 0);
	cr_assert_gt(growth(), alone + (8u << 20), "nothing is reused");
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'e'), 'y');
	cr_assert_lt(growth(), GROWTH_MOST, "it holds nothing between two snapshots");
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(ask(&child, 'r'), 'y');
		write_many(50);
		cr_assert_eq(ask(&child, 'c'), 'y');
	}
	end(&child, SIGKILL);
	cr_assert_lt(growth(), GROWTH_MOST, "nor does it when it is killed");
}

Test(pins, writer_that_starts_sees_readers_without_pin_files)
{
	struct child first = start_with(NO_FILES);

	setup_writer();
	write_many(100);
	env_close(&env);
	cr_assert_eq(ask(&first, 'o'), 'y');
	for (int i = 0; i < 3; i++) {
		env = open_env(ENV_WRITE);
		cr_assert_not_null(env);
		write_many(200);
		cr_assert_eq(ask(&first, 'c'), 'y');
		env_close(&env);
	}
	end(&first, SIGTERM);
	env = open_env(ENV_WRITE);
	cr_assert_lt(growth(), GROWTH_MOST);
}

Test(pins, reader_makes_its_pin_file_when_there_is_room_again)
{
	struct child child =
		start_with("pins.make:1:error=ENOSPC"); /* when it opens the database */

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(pin_files(), 1);
	write_many(200);
	cr_assert_eq(ask(&child, 'c'), 'y');
	end(&child, SIGTERM);
}

Test(pins, other_errors_than_a_full_disk_still_refuse)
{
	struct child child = start_with("pins.make:0:error=EACCES");

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'n');
	end(&child, SIGTERM);
}

Test(pins, pins_that_are_written_into_the_file_hold_as_well)
{
	struct child child = start_with("pins.map:0:error");

	setup_writer();
	uint64_t alone = growth();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(pin_files(), 1);
	cr_assert_gt(growth(), alone + (8u << 20));
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'e'), 'y');
	cr_assert_lt(growth(), GROWTH_MOST);
	cr_assert_eq(ask(&child, 'r'), 'y');
	write_many(500);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'l'), 'y', "it takes all slots that a file can have");
	end(&child, SIGKILL);
	pause_ms(60);
	cr_assert_lt(growth(), GROWTH_MOST);
}

/* The disk fills up at each write of a pin file in turn: its head, the number of slots, a pin. */
Test(pins, reader_that_can_not_write_its_pin_reads_without_its_file)
{
	char failpoints[64];

	setup_writer();
	for (int number = 0; number < 10; number++) {
		(void)snprintf(failpoints, sizeof(failpoints),
			"pins.map:0:error,pins.write:%d:error", number);
		pid_t pid = fork(); /* each sets failpoints once */
		if (pid == 0) {
			if (setenv("KINF_FAIL", failpoints, 1) < 0 || failpoint_setup() < 0)
				_exit(2);
			env = NULL;
			struct env *reader = open_env(ENV_READ);
			struct txn *txn = NULL, *more = NULL;
			bool good = reader && txn_begin_read(reader, &txn) == 0 && is_whole(txn) &&
				    txn_begin_read(reader, &more) == 0 && is_whole(more);
			for (int i = 0; good && i < 5; i++)
				good = txn_renew(txn) == 0 && is_whole(txn) && is_whole(more);
			_exit(good ? 0 : 1);
		}
		int status;
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "%s: %x", failpoints, (unsigned)status);
		/* The writer detects the child's death within 50 ms of its own time; a busy machine
		 * may take longer. */
		for (int try = 0; growth() >= GROWTH_MOST; try++) {
			cr_assert_lt(try, 50, "%s", failpoints);
			pause_ms(60);
		}
	}
}
