/* SPDX-License-Identifier: Apache-2.0 */
/* Informers in the child of a fork, and on a copy written by another process. */
#include "reader/informer/informer.h"

#include <sys/resource.h>

#include "common/failpoint.h"
#include "tests/unit/informer_rig.h"

TestSuite(informer_process, .init = cache_open, .fini = informer_close, .timeout = 60);

static void three_objects(void)
{
	cache_put("a/w", NULL);
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
}

/* ---- a copy with a writer ---------------------------------------- */

static void write_meanwhile(struct tape *tape)
{
	tape->then = NULL;
	cache_put("a/z", NULL);
	cache_take();
}

/* As for a reader without pins in the store and without a known writer. */
static void become_a_copy(void)
{
	cr_assert_eq(setenv("KINF_FAIL", "env.pinned:0:error", 1), 0);
	cr_assert_eq(failpoint_setup(), 0);
}

static void is_lapsed_after_a_write(const struct kinf_informer_options *options)
{
	three_objects();
	become_a_copy();
	informer = tape_informer(options);
	tape_add(informer, &a, NULL);
	a.then = write_meanwhile;
	cr_assert_eq(kinf_informer_dispatch(informer, 0), KINF_SNAPSHOT_EXPIRED);
	tape_is(&a, "add! a/w=1");
	then_gets(&a, "lapped add! a/w=1 add! a/x=2 add! a/y=3 add! a/z=4 sync");
}

Test(informer_process, a_copy_that_is_written_while_it_is_followed_is_a_lapse)
{
	is_lapsed_after_a_write(NULL);
}

Test(informer_process, a_copy_that_is_written_makes_tracked_keys_worthless)
{
	const struct kinf_informer_options options = {
		.size = sizeof(options), .flags = KINF_TRACK_KEYS};

	is_lapsed_after_a_write(&options);
}

/* Written between the last callback and the end of the dispatch. */
static void write_at_the_end(struct tape *tape)
{
	if (tape->calls == 4) /* SYNC */
		write_meanwhile(tape);
}

Test(informer_process, a_copy_that_was_written_when_all_was_told_is_a_lapse_too)
{
	three_objects();
	become_a_copy();
	start(&a);
	a.then = write_at_the_end;
	cr_assert_eq(kinf_informer_dispatch(informer, 0), KINF_SNAPSHOT_EXPIRED);
	tape_is(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	then_gets(&a, "lapped add! a/w=1 add! a/x=2 add! a/y=3 add! a/z=4 sync");
}

/* ---- fork --------------------------------------------------------------- */

/* Everything a child might try with its parent's informer; 0: each was refused, and nothing
 * happened. */
static int use_as_a_child(void)
{
	struct kinf_handler_options options = tape_options(&b);
	struct kinf_informer *other = NULL;
	struct kinf_handler *handler = NULL;

	if (kinf_informer_dispatch(informer, 0) != KINF_FORKED ||
		kinf_informer_run(informer, -1) != KINF_FORKED ||
		kinf_informer_commit(informer) != KINF_FORKED ||
		kinf_informer_add_handler(informer, &options, &handler) != KINF_FORKED ||
		kinf_informer_new(cache.kinf, "pods", NULL, &other) != KINF_FORKED)
		return 1;
	kinf_informer_stop(informer);
	if (kinf_informer_phase(informer) == KINF_INFORMER_STOPPED)
		return 2;
	kinf_informer_free(&informer);
	return 0;
}

static void wait_for(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
}

Test(informer_process, a_child_of_fork_is_refused_and_harms_nobody)
{
	three_objects();
	start(&a);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	pid_t child = fork();
	if (child == 0)
		_exit(use_as_a_child());
	wait_for(child);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	cr_assert_eq(kinf_informer_phase(informer), KINF_INFORMER_STARTED);
}

static pid_t forked;

static void fork_and_go_on(struct tape *tape)
{
	forked = fork();
	tape->then = NULL;
}

/* The child comes back out of the callback, into the parent's dispatch. */
Test(informer_process, a_child_that_returns_from_a_callback_is_told_no_more)
{
	const struct kinf_informer_options options = {.size = sizeof(options), .cursor = "c"};

	three_objects();
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
	a.then = fork_and_go_on;
	int r = kinf_informer_dispatch(informer, 0);
	if (forked == 0)
		_exit(r != KINF_FORKED || strcmp(buf_cstr(&a.text), "add! a/w=1") != 0);
	wait_for(forked);
	cr_assert_gt(r, 0);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
}

/* ---- a program that closes all descriptors ------------------------------ */

static bool closes_nothing_of_its_program(void)
{
	enum { OWN = 60 };
	struct kinf_informer_options options = {.size = sizeof(options), .cursor = "mine"};
	struct kinf_handler_options none = {.size = sizeof(none)};
	struct kinf_snapshot *snapshot = NULL;
	struct kinf_handler *handler;
	struct kinf *own = NULL;
	int fds[OWN];
	bool good = kinf_open(scratch_path("store"), &own) == 0 &&
		    kinf_snapshot_open(own, &snapshot) == 0 &&
		    kinf_informer_new(own, "pods", &options, &informer) == 0 &&
		    kinf_informer_add_handler(informer, &none, &handler) == 0 &&
		    kinf_informer_dispatch(informer, 0) >= 0;

	closefrom(STDERR_FILENO + 1);
	for (size_t i = 0; i < OWN; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)kinf_snapshot_renew(snapshot); /* succeeds or fails, as it likes */
	kinf_informer_free(&informer);
	kinf_snapshot_close(&snapshot);
	kinf_close(&own);
	for (size_t i = 0; i < OWN; i++)
		good = good && fcntl(fds[i], F_GETFD) >= 0;
	return good;
}

Test(informer_process, files_that_a_program_opens_after_it_has_closed_all_stay_open)
{
	int status = -1;

	three_objects();
	pid_t child = fork();
	if (child == 0)
		_exit(closes_nothing_of_its_program() ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
}

/* ---- a program that may write no files ---------------------------------- */

static void limit_files(rlim_t most)
{
	const struct rlimit limit = {most, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* SIGXFSZ would end the program. Returns the place of the first call with another result than it
 * has to have. */
static int reads_without_files(void)
{
	const struct kinf_informer_options options = {.size = sizeof(options), .cursor = "new"};
	struct kinf_snapshot *snapshot = NULL;
	struct kinf *own = NULL, *other = NULL;

	limit_files(0);
	if (kinf_open(scratch_path("store"), &other) != -EFBIG ||
		!strstr(kinf_error(other), "ulimit -f"))
		return 1;
	limit_files(RLIM_INFINITY);
	kinf_close(&other);
	if (kinf_open(scratch_path("store"), &own) != 0)
		return 2;
	limit_files(0); /* as in a program with all its files open */
	if (kinf_snapshot_open(own, &snapshot) != 0 || kinf_snapshot_renew(snapshot) != 0)
		return 3;
	if (kinf_informer_new(own, "pods", &options, &informer) != -EFBIG ||
		!strstr(kinf_error(own), "ulimit -f"))
		return 4;
	kinf_snapshot_close(&snapshot);
	kinf_close(&own);
	return 0;
}

/* The claim exists already, so only the position can't be written. */
static int commits_without_files(void)
{
	const struct kinf_informer_options options = {.size = sizeof(options), .cursor = "mine"};
	struct kinf_handler_options none = {.size = sizeof(none)};
	struct kinf_handler *handler;
	struct kinf *own = NULL;

	if (kinf_open(scratch_path("store"), &own) != 0 ||
		kinf_informer_new(own, "pods", &options, &informer) != 0 ||
		kinf_informer_add_handler(informer, &none, &handler) != 0)
		return 1;
	limit_files(0);
	if (kinf_informer_dispatch(informer, 0) != -EFBIG || !strstr(kinf_error(own), "ulimit -f"))
		return 2;
	limit_files(RLIM_INFINITY);
	return kinf_informer_commit(informer) == 0 ? 0 : 3;
}

Test(informer_process, a_program_with_a_limit_on_files_gets_an_error_and_lives)
{
	int (*const programs[])(void) = {reads_without_files, commits_without_files};

	three_objects();
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(programs[i]());
		wait_for(child);
	}
}
