/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/taken.h"

#include <pthread.h>
#include <time.h>

#include "tests/unit/unit.h"

static int directory = -1;
static struct taken *taken;
static struct taken_reader *reader;

static void setup(void)
{
	directory = open(scratch(), O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(directory, 0);
}

static void teardown(void)
{
	taken_detach(&reader);
	taken_close(&taken);
	(void)close(directory);
}

TestSuite(taken, .init = setup, .fini = teardown, .timeout = 60);

Test(taken, there_is_nothing_to_attach_to_before_a_processor_has_run)
{
	cr_assert_eq(taken_attach(directory, &reader), -ENOENT);
	cr_assert_null(reader);
}

Test(taken, a_reader_sees_what_was_published_and_that_it_moved)
{
	cr_assert_eq(taken_create(directory, 0640, 7, true, &taken), 0);
	cr_assert_eq(taken_attach(directory, &reader), 0);
	cr_assert_eq(taken_seq(reader), 7);
	cr_assert_eq(taken_wait(reader, 1), AGAIN, "nothing since it attached");
	taken_publish(taken, 9);
	cr_assert_eq(taken_wait(reader, 60000), 0);
	cr_assert_eq(taken_seq(reader), 9);
	taken_look(reader);
	cr_assert_eq(taken_wait(reader, 1), AGAIN);
}

static void *publish(void *arg)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	(void)arg;
	(void)nanosleep(&pause, NULL);
	taken_publish(taken, 8);
	return NULL;
}

Test(taken, a_sleeping_reader_is_woken)
{
	pthread_t thread;

	cr_assert_eq(taken_create(directory, 0600, 7, true, &taken), 0);
	cr_assert_eq(taken_attach(directory, &reader), 0);
	cr_assert_eq(pthread_create(&thread, NULL, publish, NULL), 0);
	cr_assert_eq(taken_wait(reader, 60000), 0);
	cr_assert_eq(taken_seq(reader), 8);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(taken, the_next_processor_takes_the_page_over_and_wakes)
{
	cr_assert_eq(taken_create(directory, 0600, 7, true, &taken), 0);
	cr_assert_eq(taken_attach(directory, &reader), 0);
	cr_assert_eq(taken_starts(reader), 1);
	taken_close(&taken);
	cr_assert_eq(taken_create(directory, 0600, 3, true, &taken), 0,
		"another index may have taken less");
	cr_assert_eq(taken_wait(reader, 60000), 0);
	cr_assert_eq(taken_seq(reader), 3);
	cr_assert_eq(taken_starts(reader), 2);
	taken_close(&taken);
	cr_assert_eq(
		taken_create(directory, 0600, 4, false, &taken), 0, "the same, with another index");
	cr_assert_eq(taken_starts(reader), 2);
}

Test(taken, a_page_that_lost_its_name_is_gone)
{
	cr_assert_eq(taken_create(directory, 0600, 7, true, &taken), 0);
	cr_assert_eq(taken_attach(directory, &reader), 0);
	cr_assert_eq(unlinkat(directory, TAKEN_FILE, 0), 0);
	cr_assert_eq(taken_wait(reader, 1), GONE);
}

Test(taken, a_file_that_is_no_page_is_not_attached_to)
{
	AUTO_FD int fd = openat(directory, TAKEN_FILE, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(taken_attach(directory, &reader), -ENOENT, "empty");
	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_assert_eq(taken_attach(directory, &reader), -ENOENT, "without a magic number");
}
