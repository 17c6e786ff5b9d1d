/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in child processes, and a writer reusing pages as fast as it can. */
#include "tests/unit/pins_rig.h"

TestSuite(pins, .init = setup, .fini = teardown, .timeout = 60);

Test(pins, snapshot_stays_whole_while_all_pages_are_written_anew)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	for (int i = 0; i < 20; i++) {
		write_many(100);
		cr_assert_eq(ask(&child, 'c'), 'y');
	}
	cr_assert_eq(ask(&child, 'r'), 'y');
	end(&child, SIGTERM);
}

Test(pins, pages_are_reused_when_the_snapshot_ends_or_its_process_is_killed)
{
	struct child first = start(), second = start();

	setup_writer();
	uint64_t alone = growth();
	cr_assert_eq(ask(&first, 'o'), 'y');
	cr_assert_gt(growth(), alone + (8u << 20), "nothing that it reads is reused");
	cr_assert_eq(ask(&first, 'e'), 'y');
	cr_assert_lt(growth(), GROWTH_MOST);
	cr_assert_eq(ask(&first, 'r'), 'y');
	cr_assert_eq(ask(&second, 'o'), 'y');
	end(&first, SIGKILL);
	cr_assert_eq(ask(&second, 'e'), 'y');
	pause_ms(60); /* a process is asked for again after 50 ms */
	cr_assert_lt(growth(), GROWTH_MOST);
	cr_assert_eq(ask(&second, 'r'), 'y');
	end(&second, SIGTERM);
}

Test(pins, program_that_closes_all_descriptors_is_told_and_its_next_snapshot_is_whole)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'k'), 'y');
	cr_assert_eq(ask(&child, 'd'), 'y');
	write_many(300);
	cr_assert_eq(ask(&child, 'c'), 'n', "its lock is gone, and so are its pages");
	cr_assert_eq(ask(&child, 'k'), 'n');
	cr_assert_eq(ask(&child, 'r'), 'y');
	for (int i = 0; i < 5; i++) {
		write_many(100);
		cr_assert_eq(ask(&child, 'c'), 'y');
	}
	cr_assert_eq(ask(&child, 'k'), 'y');
	end(&child, SIGTERM);
}

Test(pins, snapshot_survives_kills_and_starts_of_the_writer)
{
	struct child reader = start();
	struct child writers[8];

	for (int i = 0; i < 8; i++)
		writers[i] = start();
	setup_writer();
	env_close(&env);
	cr_assert_eq(ask(&reader, 'o'), 'y');
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(ask(&writers[i], 'w'), 'y');
		pause_ms(20 + i * 7);
		end(&writers[i], SIGKILL);
		cr_assert_eq(ask(&reader, 'c'), 'y', "after writer %d", i);
		if (i % 3 == 2)
			cr_assert_eq(ask(&reader, 'r'), 'y', "after writer %d", i);
	}
	end(&reader, SIGTERM);
}

Test(pins, readers_renew_while_writers_are_killed)
{
	struct child readers[2] = {start(), start()}, writers[6];

	for (int i = 0; i < 6; i++)
		writers[i] = start();
	setup_writer();
	env_close(&env);
	cr_assert_eq(ask(&readers[0], 'o'), 'y');
	cr_assert_eq(ask(&readers[1], 'o'), 'y');
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(ask(&writers[i], 'w'), 'y');
		for (int j = 0; j < 300; j++)
			cr_assert_eq(ask(&readers[j % 2], 'r'), 'y', "renewal %d beside writer %d",
				j, i);
		end(&writers[i], SIGKILL);
	}
	end(&readers[0], SIGTERM);
	end(&readers[1], SIGTERM);
}

Test(pins, child_of_a_reader_holds_nothing_in_its_name)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'f'), 'y');
	end(&child, SIGKILL);
	pause_ms(60);
	cr_assert_lt(growth(), GROWTH_MOST);
}

Test(pins, reader_that_has_closed_its_standard_descriptors_can_not_print_into_its_pin_file)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 's'), 'y');
	write_many(100);
	cr_assert_eq(ask(&child, 'c'), 'y');
	end(&child, SIGTERM);
}

Test(pins, files_opened_and_closed_by_the_reading_program_change_nothing)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'b'), 'y');
	pause_ms(60);
	write_many(500);
	cr_assert_eq(ask(&child, 'c'), 'y');
	end(&child, SIGTERM);
}

Test(pins, program_that_leaks_snapshots_stops_itself_only)
{
	struct child leaking = start(), other = start();

	setup_writer();
	cr_assert_eq(ask(&leaking, 'o'), 'y');
	cr_assert_eq(ask(&leaking, 'l'), 'y');
	write_many(100);
	cr_assert_eq(ask(&other, 'o'), 'y');
	env_close(&env);
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env, "a writer that starts");
	write_many(100);
	cr_assert_eq(ask(&leaking, 'c'), 'y');
	cr_assert_eq(ask(&other, 'r'), 'y');
	end(&leaking, SIGTERM);
	end(&other, SIGTERM);
}
