/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: calls, answers, bounds. Client and daemon are two processes. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/daemon/control.h"
#include "tests/unit/unit.h"

#define NAME "control.test"

static char directory[] = "/tmp/kinf-control-XXXXXX";
static int directory_fd;
static struct control *control;

static void control_test_begin(void)
{
	cr_assert(mkdtemp(directory));
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert(directory_fd >= 0);
	OK(control_open(directory_fd, NAME, &control));
}

static void control_test_end(void)
{
	control_close(&control);
	(void)unlinkat(directory_fd, NAME, 0);
	(void)rmdir(directory);
	(void)close(directory_fd);
}

TestSuite(control, .init = control_test_begin, .fini = control_test_end);

static int control_test_dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" NAME, directory);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Returns the next call of COMMAND; NULL: of another than "reload". */
static struct control_call *control_test_await(const char *command)
{
	struct control_call *call = NULL;

	while (!call) {
		struct pollfd wait = {.fd = control_fd(control), .events = POLLIN};

		(void)poll(&wait, 1, 1000);
		control_turn(control);
		call = command ? control_next(control, command)
			       : control_next_other(control, "reload");
	}
	return call;
}

static void control_test_note(void *arg, const char *text)
{
	(void)snprintf(arg, 200, "%s", text);
}

/* The client's process: its exit status tells its result. */
static pid_t control_test_ask(
	const char *command, const char *argument, int result, const char *expected)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	char text[CONTROL_SIZE] = "", note[200] = "";
	struct control_handler handler = {.note = control_test_note, .arg = note};
	int r = control_ask(directory_fd, NAME, command, argument, &handler, text);
	if (r != result || strcmp(text, expected) != 0) {
		(void)fprintf(stderr, "got %d '%s' (%s)\n", r, text, err_text(r));
		_exit(1);
	}
	_exit(strcmp(note, "a note of 7") == 0 ? 0 : 2);
}

static int control_test_status(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

Test(control, call_has_command_argument_notes_and_an_end)
{
	struct stat st;

	cr_assert_eq(fstatat(directory_fd, NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	pid_t pid = control_test_ask("relist", "pods of web", 0, "2 feeds");
	struct control_call *call = control_test_await(NULL);

	cr_assert_str_eq(control_command(call), "relist");
	cr_assert_str_eq(control_argument(call), "pods of web");
	cr_assert_null(control_next_other(control, "reload"), "it is returned once");
	control_note(call, "a note of %d", 7);
	control_progress(call, 1, 2, "MiB");
	cr_assert(!control_is_gone(call));
	control_end(&call, 0, "2 feeds");
	cr_assert_null(call);
	cr_assert_eq(control_test_status(pid), 0);
}

Test(control, failure_has_its_sentence)
{
	pid_t pid = control_test_ask("relist", "", -EPROTO, "no such feed");
	struct control_call *call = control_test_await("relist");

	cr_assert_str_eq(control_argument(call), "");
	control_note(call, "a note of 7");
	control_end(&call, -1, "no such feed");
	cr_assert_eq(control_test_status(pid), 0);
}

Test(control, commands_are_told_apart)
{
	int first = control_test_dial(), second = control_test_dial();

	cr_assert_eq(send(first, "compact", 7, 0), 7);
	cr_assert_eq(send(second, "reload", 6, 0), 6);
	struct control_call *reload = control_test_await("reload"),
			    *compact = control_test_await(NULL);

	cr_assert_str_eq(control_command(compact), "compact");
	(void)close(first);
	control_turn(control);
	cr_assert(control_is_gone(compact), "the client has closed the connection");
	cr_assert(!control_is_gone(reload));
	control_end(&compact, 0, "");
	control_end(&reload, 0, "");
	(void)close(second);
}

Test(control, no_call_is_made_of_other_bytes)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {{"relist\n", 7}, {"re\0list", 7}, {"\x7f", 1}, {"\x01", 1}};
	char large[CONTROL_SIZE + 10];

	memset(large, 'x', sizeof(large));
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		bool is_large = i == sizeof(bad) / sizeof(bad[0]);
		char answer[64] = "";
		int fd = control_test_dial();

		cr_assert_geq(send(fd, is_large ? large : bad[i].bytes,
				      is_large ? sizeof(large) : bad[i].size, 0),
			0);
		control_turn(control);
		control_turn(control);
		cr_assert_null(control_next_other(control, "reload"));
		cr_assert_geq(recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT), 1);
		cr_assert_str_eq(answer, "f not a command");
		(void)close(fd);
	}
}

Test(control, places_are_bounded_and_free_again)
{
	int fds[CONTROL_CALLS_MAX + 1];
	char answer[100] = "";

	for (int i = 0; i <= CONTROL_CALLS_MAX; i++) {
		fds[i] = control_test_dial();
		control_turn(control);
	}
	cr_assert_geq(recv(fds[CONTROL_CALLS_MAX], answer, sizeof(answer) - 1, MSG_DONTWAIT), 1);
	cr_assert(strstr(answer, "too many"), "%s", answer);
	for (int i = 0; i <= CONTROL_CALLS_MAX; i++)
		(void)close(fds[i]);
	control_turn(control);
	pid_t pid = control_test_ask("reload", "", 0, "");
	struct control_call *call = control_test_await("reload");
	control_note(call, "a note of 7");
	control_end(&call, 0, "");
	cr_assert_eq(control_test_status(pid), 0);
}

Test(control, a_peer_that_does_not_read_delays_nobody)
{
	AUTO_FD int fd = control_test_dial();

	cr_assert_eq(send(fd, "compact", 7, 0), 7);
	struct control_call *call = control_test_await(NULL);
	for (int i = 0; i < 100000; i++) /* many times a socket's buffer */
		control_note(call, "%0500d", i);
	control_end(&call, 0, "");
}

Test(control, without_a_daemon_there_is_none)
{
	char text[CONTROL_SIZE];

	control_close(&control); /* the socket's name stays */
	cr_assert_eq(control_ask(directory_fd, NAME, "reload", "", NULL, text), NOT_FOUND);
	cr_assert_eq(control_ask(directory_fd, "nothing", "reload", "", NULL, text), NOT_FOUND);
}
