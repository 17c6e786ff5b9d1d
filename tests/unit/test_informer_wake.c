/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/informer/informer.h"

#include <poll.h>
#include <sys/timerfd.h>

#include "common/proc.h"
#include "tests/unit/unit.h"

#define MS ((uint64_t)1000000)

static struct wake wake;

static void set_up(void)
{
	cr_assert_eq(wake_open(&wake), 0);
}

static void tear_down(void)
{
	wake_close(&wake);
}

TestSuite(wake, .init = set_up, .fini = tear_down, .timeout = 60);

/* Until the timer fires; 0: it does not. */
static uint64_t left_ns(void)
{
	struct itimerspec left;

	cr_assert_eq(timerfd_gettime(wake.timer, &left), 0);
	return (uint64_t)left.it_value.tv_sec * 1000 * MS + (uint64_t)left.it_value.tv_nsec;
}

static void arm_in(uint64_t ms)
{
	cr_assert_eq(wake_arm(&wake, proc_monotonic_ns() + ms * MS), 0);
}

static bool is_readable(int timeout_ms)
{
	return poll(&(struct pollfd){.fd = wake.epoll, .events = POLLIN}, 1, timeout_ms) == 1;
}

Test(wake, a_descriptor_that_is_to_stop_it_has_to_be_open)
{
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_eq(wake_arm(&wake, 0), 0);
	cr_assert_eq(wake_wait(&wake, ends[0]), 0, "the timer has fired");
	(void)close(ends[1]);
	cr_assert_eq(wake_wait(&wake, ends[0]), END, "nobody can write to it any more");
	(void)close(ends[0]);
	cr_assert_eq(wake_wait(&wake, ends[0]), -EBADF);
}

Test(wake, gets_no_number_of_a_standard_descriptor)
{
	int output = dup(STDOUT_FILENO);

	wake_close(&wake);
	(void)close(STDOUT_FILENO);
	int r = wake_open(&wake);
	bool is_free = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	(void)dup2(output, STDOUT_FILENO);
	(void)close(output);
	cr_assert_eq(r, 0);
	cr_assert(is_free);
}

Test(wake, comes_at_the_earliest_time_that_was_asked_for)
{
	arm_in(50000);
	arm_in(90000);
	cr_assert_leq(left_ns(), 50000 * MS);
	arm_in(30000);
	cr_assert_leq(left_ns(), 30000 * MS);
	arm_in(20);
	cr_assert(is_readable(10000));
	cr_assert_not(wake_read(&wake));
	cr_assert_not(is_readable(0));
	arm_in(70000);
	cr_assert_gt(left_ns(), 30000 * MS, "what was taken counts no longer");
}

Test(wake, that_is_over_already_comes_at_once)
{
	cr_assert_eq(wake_arm(&wake, 0), 0);
	cr_assert(is_readable(10000));
	arm_in(60000);
	cr_assert(is_readable(0), "until it is taken");
	cr_assert_not(wake_read(&wake));
	arm_in(60000);
	cr_assert_not(is_readable(0));
}

Test(wake, a_stop_stays)
{
	wake_stop(&wake);
	cr_assert(wake_read(&wake));
	cr_assert(wake_read(&wake));
	cr_assert(is_readable(0));
}

Test(wake, a_wait_ends_with_what_is_there_or_with_the_stop_descriptor)
{
	int stop[2];

	cr_assert_eq(pipe(stop), 0);
	wake_stop(&wake);
	cr_assert_eq(wake_wait(&wake, -1), 0);
	cr_assert_eq(wake.n_ready, 1);
	cr_assert(wake_read(&wake), "what the wait has found");
	cr_assert_eq(wake.n_ready, 0);
	cr_assert_eq(wake_wait(&wake, stop[0]), 0);
	cr_assert(wake_read(&wake));
	cr_assert_eq(close(stop[1]), 0);
	cr_assert_eq(wake_wait(&wake, stop[0]), END);
	cr_assert_eq(close(stop[0]), 0);
}
