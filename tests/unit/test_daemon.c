/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/daemon.h"

#include <signal.h>

#include "common/proc.h"
#include "common/unix_socket.h"
#include "tests/unit/unit.h"

#define PAGE "stats.test"

static void configure(const char *text)
{
	scratch_write(scratch_path("kinf.yaml"), text);
}

/* Makes the configuration of a test. */
static void begin(void)
{
	configure("feeds: [{resource: pods}]\n");
}

TestSuite(daemon, .init = begin);

/* Runs RUN as a daemon; returns its exit status. */
static int start(int (*run)(struct daemon *daemon))
{
	char name[] = "kinf-test", *argv[] = {name, NULL};
	struct daemon_program program = {.name = name,
		.about = "",
		.status_page = PAGE,
		.control_socket = "control.test",
		.user = CONFIG_PROCESSOR,
		.run = run};

	cr_assert_eq(setenv("KINF_CONFIG", scratch_path("kinf.yaml"), 1), 0);
	return daemon_main(&program, 1, argv);
}

static void open_page(struct daemon *daemon)
{
	AUTO_FD int fd = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(daemon_open_page(daemon, fd), 0);
}

static struct stats_process page_of(struct daemon *daemon)
{
	struct stats_process page;

	cr_assert_eq(stats_process(daemon->stats, &page), 0);
	return page;
}

/* Reads the page by its name after the daemon has ended. */
static struct stats_process page_left(void)
{
	AUTO_FD int fd = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(stats_close) struct stats *stats = NULL;
	struct stats_process page;

	cr_assert_eq(stats_open(fd, PAGE, &stats), 0);
	cr_assert_eq(stats_process(stats, &page), 0);
	return page;
}

static int wait_for_stop(struct daemon *daemon)
{
	open_page(daemon);
	daemon_ready(daemon);
	cr_assert_eq(daemon_tick(daemon), 0);
	uint64_t heartbeat = page_of(daemon).heartbeat_ns;
	cr_assert_eq(raise(SIGTERM), 0);
	daemon_sleep(daemon, 60000); /* the signal ends it */
	cr_assert(daemon->stop);
	cr_assert_eq(daemon_attend(daemon), -EINTR);
	cr_assert_gt(page_of(daemon).heartbeat_ns, heartbeat);
	return daemon_end(daemon, 0);
}

Test(daemon, stops_at_a_signal_and_says_so_in_its_page)
{
	cr_assert_eq(start(wait_for_stop), PROC_OK);
	cr_assert_str_eq(page_left().state, "stopped");
	cr_assert_str_eq(page_left().error, "");
}

static int supervisors_end;

static int lose_supervisor(struct daemon *daemon)
{
	cr_assert_eq(daemon_attend(daemon), 0);
	cr_assert_eq(close(supervisors_end), 0);
	daemon_sleep(daemon, 60000);
	cr_assert(daemon->stop);
	return daemon_end(daemon, 0);
}

Test(daemon, stops_when_its_supervisor_ends)
{
	char text[16];
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	(void)snprintf(text, sizeof(text), "%d", ends[0]);
	cr_assert_eq(setenv("KINF_DEATH_FD", text, 1), 0);
	supervisors_end = ends[1];
	cr_assert_eq(start(lose_supervisor), PROC_OK);
}

static int end_by_error(struct daemon *daemon)
{
	open_page(daemon);
	return daemon_end(daemon, err_say(ERR_CORRUPT, "the store is made of cheese"));
}

Test(daemon, the_error_that_ends_it_is_in_its_page_and_in_its_exit_status)
{
	cr_assert_eq(start(end_by_error), PROC_INTERNAL);
	cr_assert_str_eq(page_left().error, "the store is made of cheese");
}

static int lack_a_right(struct daemon *daemon)
{
	return daemon_end(daemon, err_set(-EROFS, "writing"));
}

static int lose_a_right(struct daemon *daemon)
{
	daemon_ready(daemon);
	return lack_a_right(daemon);
}

Test(daemon, a_lost_right_is_no_reason_to_stay_away)
{
	cr_assert_eq(start(lack_a_right), PROC_CONFIG);
	cr_assert_eq(start(lose_a_right), PROC_TEMPORARY);
}

static int reload(struct daemon *daemon)
{
	open_page(daemon);
	cr_assert_eq(daemon->config->n_feeds, 1);
	configure("feeds: [{resource: pods}, {resource: services}]\nmapSize: 32MiB\n");
	cr_assert_eq(raise(SIGHUP), 0);
	cr_assert_eq(daemon_attend(daemon), 0);
	cr_assert(daemon->reload);
	cr_assert(daemon_reload(daemon));
	cr_assert_not(daemon->reload);
	cr_assert_eq(daemon->config->n_feeds, 2);
	cr_assert_eq(daemon->config->map_bytes, (uint64_t)16 << 20, "only a restart changes it");

	configure("feeds: {}\n");
	cr_assert_not(daemon_reload(daemon));
	cr_assert_eq(daemon->config->n_feeds, 2);
	cr_assert(strstr(page_of(daemon).error, "kinf.yaml:1: feeds"), "%s", page_of(daemon).error);

	cr_assert_eq(unlink(scratch_path("kinf.yaml")), 0);
	cr_assert_eq(mkfifo(scratch_path("kinf.yaml"), 0600), 0);
	cr_assert_not(daemon_reload(daemon));
	cr_assert(strstr(page_of(daemon).error, "is a pipe"), "%s", page_of(daemon).error);
	cr_assert_eq(unlink(scratch_path("kinf.yaml")), 0);

	configure("feeds: [{resource: pods}]\n");
	cr_assert(daemon_reload(daemon));
	cr_assert_str_eq(page_of(daemon).error, "");
	return daemon_end(daemon, 0);
}

Test(daemon, a_refused_configuration_stays_in_its_page_until_one_is_loaded)
{
	configure("feeds: [{resource: pods}]\nmapSize: 16MiB\n");
	cr_assert_eq(start(reload), PROC_OK);
}

static int call_reload(void)
{
	AUTO_FD int directory = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un address = unix_socket_address(directory, "control.test");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(send(fd, "reload", 6, 0), 6);
	return fd;
}

static int reload_for_two(struct daemon *daemon)
{
	open_page(daemon);
	int calls[] = {call_reload(), call_reload()};

	for (int turn = 0; turn < 4; turn++)
		cr_assert_eq(daemon_attend(daemon), 0); /* both have come */
	for (size_t i = 0; i < 2; i++) {
		char text[CONTROL_SIZE] = "";

		cr_assert_eq(daemon_attend(daemon), 0);
		cr_assert(daemon->reload);
		cr_assert(daemon_reload(daemon));
		daemon_reloaded(daemon, 0);
		while (*text != 'd')
			cr_assert_gt(recv(calls[i], text, sizeof(text) - 1, MSG_DONTWAIT), 0);
		(void)close(calls[i]);
	}
	return daemon_end(daemon, 0);
}

Test(daemon, a_reload_during_another_waits_for_it)
{
	cr_assert_eq(start(reload_for_two), PROC_OK);
}

/* Lets the daemon attend until it wants to read its configuration again. */
static void await_reload(struct daemon *daemon)
{
	while (!daemon->reload)
		daemon_sleep(daemon, 10);
}

static int read_the_rest(struct daemon *daemon)
{
	open_page(daemon);
	cr_assert(daemon_awaits_file(daemon));
	configure("feeds: [{resource: pods}, {res");
	await_reload(daemon);
	cr_assert_not(daemon_reload(daemon));
	cr_assert(daemon_awaits_file(daemon));
	configure("feeds: [{resource: pods}, {resource: services}]\n");
	await_reload(daemon);
	cr_assert(daemon_reload(daemon));
	cr_assert_eq(daemon->config->n_feeds, 2);
	cr_assert_str_eq(page_of(daemon).error, "");
	while (daemon_awaits_file(daemon)) {
		daemon_sleep(daemon, 10);
		cr_assert_not(daemon->reload, "the file has not changed");
	}
	return daemon_end(daemon, 0);
}

Test(daemon, a_file_that_changes_soon_after_it_was_read_is_read_again_until_it_stands_still)
{
	cr_assert_eq(start(read_the_rest), PROC_OK);
}

static int await_nothing(struct daemon *daemon)
{
	struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	open_page(daemon);
	cr_assert_not(daemon_awaits_file(daemon), "a time in the future says nothing");
	cr_assert_eq(utimensat(AT_FDCWD, daemon->config->file, old, 0), 0);
	cr_assert(daemon_reload(daemon));
	cr_assert_not(daemon_awaits_file(daemon), "an old file stands still");
	return daemon_end(daemon, 0);
}

Test(daemon, a_file_that_stands_still_is_not_waited_for)
{
	struct timespec future[2] = {{.tv_sec = 32000000000}, {.tv_sec = 32000000000}};

	cr_assert_eq(utimensat(AT_FDCWD, scratch_path("kinf.yaml"), future, 0), 0);
	cr_assert_eq(start(await_nothing), PROC_OK);
}

static int never(struct daemon *daemon)
{
	(void)daemon;
	cr_assert_fail("a daemon without a configuration runs");
	return 0;
}

Test(daemon, does_not_run_with_a_bad_configuration_or_command_line)
{
	char name[] = "kinf-test", word[] = "word", *argv[] = {name, word, NULL};
	struct daemon_program program = {.name = name, .about = "", .run = never};

	configure("feeds: 3\n");
	cr_assert_eq(start(never), PROC_CONFIG);
	cr_assert_eq(daemon_main(&program, 2, argv), PROC_USAGE);
}

static int seconds(struct daemon *daemon)
{
	cr_assert(daemon_second(daemon));
	cr_assert_not(daemon_second(daemon));
	daemon_sleep(daemon, 1010);
	cr_assert(daemon_second(daemon));
	return daemon_end(daemon, 0);
}

Test(daemon, work_of_each_second_is_due_once_a_second)
{
	cr_assert_eq(start(seconds), PROC_OK);
}
