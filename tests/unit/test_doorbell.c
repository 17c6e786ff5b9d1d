/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/doorbell.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/informer/informer.h"
#include "tests/unit/scratch.h"

static struct home *home;
static struct doorbell *bell;

static void setup(void)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};

	cr_assert_eq(home_open(scratch_path("store"), &options, &home), 0, "%s", err_text(-1));
	cr_assert_eq(doorbell_open(home, &bell), 0);
}

static void teardown(void)
{
	doorbell_close(&bell);
	home_close(&home);
}

TestSuite(doorbell, .init = setup, .fini = teardown, .timeout = 30);

static void come(struct wake *wake)
{
	cr_assert_eq(wake_open(wake), 0);
	wake_connect(wake, home_runtime_fd(home), 1);
	cr_assert(wake_has_bell(wake));
}

static bool is_rung(struct wake *wake)
{
	struct pollfd fd = {.fd = wake->epoll, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

Test(doorbell, everybody_who_came_before_is_rung)
{
	struct wake a, b;

	come(&a);
	come(&b);
	cr_assert_not(is_rung(&a));
	doorbell_ring(bell);
	cr_assert(is_rung(&a));
	cr_assert(is_rung(&b));
	cr_assert_not(wake_take(&a));
	cr_assert_not(is_rung(&a));
	cr_assert(is_rung(&b));
	doorbell_ring(bell);
	cr_assert(is_rung(&a));
	wake_close(&a);
	wake_close(&b);
}

/* The processor is never delayed. */
Test(doorbell, who_does_not_listen_is_rung_all_the_same)
{
	struct wake deaf, other;

	come(&deaf);
	come(&other);
	for (int i = 0; i < 100000; i++)
		doorbell_ring(bell);
	cr_assert(is_rung(&other));
	cr_assert_not(wake_take(&other));
	doorbell_ring(bell);
	cr_assert(is_rung(&other));
	(void)wake_take(&deaf);
	cr_assert(wake_has_bell(&deaf));
	cr_assert_not(is_rung(&deaf), "all is taken at once");
	wake_close(&deaf);
	wake_close(&other);
}

Test(doorbell, who_has_left_is_forgotten)
{
	struct wake wake;

	for (int i = 0; i < 2000; i++) { /* more than there is room for */
		come(&wake);
		doorbell_ring(bell);
		wake_close(&wake);
	}
	come(&wake);
	doorbell_ring(bell);
	doorbell_ring(bell);
	cr_assert(is_rung(&wake));
	(void)wake_take(&wake);
	cr_assert(wake_has_bell(&wake));
	wake_close(&wake);
}

Test(doorbell, a_listener_learns_that_the_processor_has_gone)
{
	struct wake wake;

	come(&wake);
	doorbell_ring(bell);
	doorbell_close(&bell);
	cr_assert(is_rung(&wake));
	(void)wake_take(&wake);
	cr_assert_not(wake_has_bell(&wake));
	cr_assert_not(is_rung(&wake));
	cr_assert_eq(doorbell_open(home, &bell), 0, "in the place of the old one");
	wake_connect(&wake, home_runtime_fd(home), 2);
	cr_assert_not(wake_has_bell(&wake), "not again at once");
	wake_connect(&wake, home_runtime_fd(home), 2000000000);
	cr_assert(wake_has_bell(&wake));
	wake_close(&wake);
}

Test(doorbell, no_doorbell_is_rung_without_harm)
{
	doorbell_ring(NULL);
}

Test(doorbell, only_the_owner_may_connect)
{
	struct stat st;

	cr_assert_eq(fstatat(home_runtime_fd(home), HOME_DOORBELL, &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
}
