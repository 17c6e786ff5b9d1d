/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/failure.h"

#include "common/log.h"
#include "tests/unit/unit.h"

static int log_end;
static struct stats *stats;
static struct failure failure;

static void set_up(void)
{
	int ends[2];

	cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_end = ends[0];
	log_setup("kinf-test", LOG_INFO, LOG_TEXT);
	cr_assert_eq(stats_create(AT_FDCWD, scratch_path("stats"), &stats), 0);
}

static void tear_down(void)
{
	stats_close(&stats);
}

TestSuite(failure, .init = set_up, .fini = tear_down);

/* Returns the lines logged since the last call. */
static int logged_lines(void)
{
	static char text[65536];
	ssize_t n = read(log_end, text, sizeof(text) - 1);
	int lines = 0;

	text[n > 0 ? n : 0] = '\0';
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	return lines;
}

static const char *state(void)
{
	static struct stats_process page;

	cr_assert_eq(stats_process(stats, &page), 0);
	return page.state;
}

static void fail(int error, const char *text)
{
	failure_add(&failure, stats, error, text);
}

Test(failure, state_names_what_is_missing)
{
	fail(-ENOSPC, "a");
	cr_assert_str_eq(state(), "waiting for disk space");
	fail(ERR_MAP_FULL, "b");
	cr_assert(strstr(state(), "the database map is full: raise mapSize"));
	fail(-ENOMEM, "c");
	cr_assert(strstr(state(), "out of memory: "));
	fail(ERR_CORRUPT, "d");
	cr_assert_str_eq(state(), "retrying after an error");
	failure_end(&failure, stats, "running");
	cr_assert_str_eq(state(), "running");
}

Test(failure, each_sentence_is_logged_once_until_work_succeeds)
{
	fail(-ENOSPC, "a");
	fail(-ENOSPC, "a");
	cr_assert_eq(logged_lines(), 1);
	fail(-ENOMEM, "b");
	cr_assert_eq(logged_lines(), 1);
	fail(-ENOSPC, "a");
	fail(-ENOMEM, "b");
	cr_assert_eq(logged_lines(), 0);
	failure_end(&failure, stats, "running");
	cr_assert_eq(logged_lines(), 1);
	failure_end(&failure, stats, "running");
	cr_assert_eq(logged_lines(), 0);
	fail(-ENOSPC, "a");
	cr_assert_eq(logged_lines(), 1);
}

Test(failure, sentences_that_never_repeat_do_not_fill_the_log)
{
	for (int i = 0; i < 1000; i++) {
		char text[32];
		(void)snprintf(text, sizeof(text), "seq %d", i);
		fail(ERR_CORRUPT, text);
	}
	cr_assert_eq(logged_lines(), FAILURE_SENTENCES);
}
