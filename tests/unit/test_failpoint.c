/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "common/failpoint.h"
#include "common/proc.h"
#include "tests/unit/unit.h"

#ifdef KINF_FAILPOINTS

static int setup(const char *text)
{
	cr_assert_eq(setenv("KINF_FAIL", text, 1), 0);
	return failpoint_setup();
}

Test(failpoint, without_setting_nothing_happens)
{
	cr_assert_eq(unsetenv("KINF_FAIL"), 0);
	cr_assert_eq(failpoint_setup(), 0);
	for (int i = 0; i < FAILPOINT_MAX; i++)
		cr_assert_eq(failpoint_pass((enum failpoint)i), 0);
}

Test(failpoint, acts_at_its_nth_passing_only)
{
	cr_assert_eq(setup("journal.after_commit:3:error"), 0);
	for (int i = 1; i <= 5; i++)
		cr_assert_eq(failpoint_pass(FAILPOINT_JOURNAL_AFTER_COMMIT),
			i == 3 ? ERR_FAILPOINT : 0, "passing %d", i);
	cr_assert_eq(failpoint_pass(FAILPOINT_JOURNAL_BEFORE_COMMIT), 0);
}

Test(failpoint, zero_means_every_passing)
{
	cr_assert_eq(setup("list.page:0:error=ENOSPC"), 0);
	cr_assert_eq(failpoint_pass(FAILPOINT_LIST_PAGE), -ENOSPC);
	cr_assert_eq(failpoint_pass(FAILPOINT_LIST_PAGE), -ENOSPC);
	cr_assert_str_eq(err_text(-ENOSPC), "failpoint list.page: No space left on device");
}

Test(failpoint, own_errors_go_by_their_names)
{
	cr_assert_eq(setup("index.open:1:error=MAP_FULL,list.page:1:error=EIO"), 0);
	cr_assert_eq(failpoint_pass(FAILPOINT_INDEX_OPEN), ERR_MAP_FULL);
	cr_assert_eq(failpoint_pass(FAILPOINT_LIST_PAGE), -EIO);
}

static int passes(void)
{
	FAILPOINT_RETURN(LIST_PAGE);
	return 7;
}

Test(failpoint, macro_returns_the_error)
{
	cr_assert_eq(setup("list.page:2:error"), 0);
	cr_assert_eq(passes(), 7);
	cr_assert_eq(passes(), ERR_FAILPOINT);
}

Test(failpoint, pause_takes_its_time)
{
	cr_assert_eq(setup("ring.copied:1:pause=30"), 0);
	uint64_t before = proc_monotonic_ns();
	cr_assert_eq(failpoint_pass(FAILPOINT_RING_COPIED), 0);
	cr_assert_geq(proc_monotonic_ns() - before, 30000000u);
}

Test(failpoint, kill_kills, .signal = SIGKILL)
{
	cr_assert_eq(setup("ring.copied:1:kill"), 0);
	(void)failpoint_pass(FAILPOINT_RING_COPIED);
}

Test(failpoint, stop_waits_to_be_continued)
{
	int status;

	cr_assert_eq(setup("ring.copied:1:stop"), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(failpoint_pass(FAILPOINT_RING_COPIED));
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(kill(child, SIGCONT), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(failpoint, bad_settings_are_refused)
{
	static const char *const bad[] = {"nowhere:1:kill", "list.page:x:kill", "list.page",
		"list.page:1:kill=3", "list.page:1", "list.page:1:", "list.page:1:error=EWHAT",
		"list.page:1:pause", "list.page:1:kill,"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(setup(bad[i]), ERR_CONFIG, "%s", bad[i]);
}

#else

Test(failpoint, is_compiled_away_in_release)
{
	cr_assert_eq(setenv("KINF_FAIL", "list.page:1:kill", 1), 0);
	cr_assert_eq(failpoint_setup(), 0);
	cr_assert_eq(failpoint_pass(FAILPOINT_LIST_PAGE), 0);
}

#endif
