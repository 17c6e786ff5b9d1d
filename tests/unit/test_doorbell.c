/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/doorbell.h"

#include <poll.h>
#include <sys/socket.h>

#include "reader/informer/informer.h"
#include "tests/unit/unit.h"

static struct home *home;
static struct doorbell *bell;

static void setup(void)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};

	OK(home_open(scratch_path("store"), &options, &home));
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
	cr_assert(wake->bell >= 0);
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
	cr_assert_not(wake_read(&a));
	cr_assert_not(is_rung(&a));
	cr_assert(is_rung(&b));
	doorbell_ring(bell);
	cr_assert(is_rung(&a));
	wake_close(&a);
	wake_close(&b);
}

static void leave_all(struct wake *wakes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		wake_close(&wakes[i]);
}

/* On an idle store nothing is published, so only turns of the loop accept them. */
Test(doorbell, followers_of_an_idle_store_all_get_a_bell)
{
	struct wake wakes[300];

	for (size_t i = 0; i < 300; i++)
		come(&wakes[i]);
	doorbell_turn(bell);
	for (size_t i = 0; i < 300; i++)
		cr_assert_not(is_rung(&wakes[i]), "nothing was published");
	leave_all(wakes, 300);
}

/* A follower costs nothing unless it arms again, and is rung once a batch if it does. */
Test(doorbell, followers_are_rung_once_each_time_they_arm)
{
	struct wake wake;
	char bytes[64];

	come(&wake);
	for (int i = 0; i < 100; i++)
		doorbell_ring(bell);
	cr_assert_eq(recv(wake.bell, bytes, sizeof(bytes), MSG_DONTWAIT), 1);
	cr_assert_eq(send(wake.bell, "", 1, 0), 1);
	doorbell_turn(bell);
	cr_assert_not(is_rung(&wake), "it has seen the last batch");
	doorbell_ring(bell);
	cr_assert(is_rung(&wake));
	wake_close(&wake);
}

/* A processor without a free place closes the connection. The follower tries again after growing
 * pauses. */
Test(doorbell, followers_without_a_place_come_back_after_growing_pauses)
{
	struct wake wake;
	uint64_t now = 1, waited = 0;

	doorbell_close(&bell);
	cr_assert_eq(wake_open(&wake), 0);
	for (int attempts = 0; attempts < 6; attempts++) {
		uint64_t before = wake.tried_ns;
		while (wake.tried_ns == before)
			wake_connect(&wake, home_runtime_fd(home), now += 100000000);
		waited = now - before;
	}
	cr_assert_geq(waited, UINT64_C(16000000000));
	cr_assert_eq(doorbell_open(home, &bell), 0);
	wake_connect(&wake, home_runtime_fd(home), now += UINT64_C(16000000000));
	cr_assert(wake.bell >= 0);
	wake_close(&wake);
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
	cr_assert_not(wake_read(&other));
	doorbell_ring(bell);
	cr_assert(is_rung(&other));
	(void)wake_read(&deaf);
	cr_assert(deaf.bell >= 0);
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
	(void)wake_read(&wake);
	cr_assert(wake.bell >= 0);
	wake_close(&wake);
}

Test(doorbell, a_listener_learns_that_the_processor_has_gone)
{
	struct wake wake;

	come(&wake);
	doorbell_ring(bell);
	doorbell_close(&bell);
	cr_assert(is_rung(&wake));
	(void)wake_read(&wake);
	cr_assert_not(wake.bell >= 0);
	cr_assert_not(is_rung(&wake));
	cr_assert_eq(doorbell_open(home, &bell), 0, "in the place of the old one");
	wake_connect(&wake, home_runtime_fd(home), 2);
	cr_assert_not(wake.bell >= 0, "not again at once");
	wake_connect(&wake, home_runtime_fd(home), 2000000000);
	cr_assert(wake.bell >= 0);
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
