/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/parent.h"

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/unit.h"

static void expect_notification(const char *path, const struct sockaddr_un *address, socklen_t size)
{
	char text[64] = "";

	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)address, size), 0);
	cr_assert_eq(setenv("NOTIFY_SOCKET", path, 1), 0);
	parent_notify("READY=1\nSTATUS=fine");
	cr_assert_gt(recv(fd, text, sizeof(text) - 1, 0), 0);
	cr_assert_str_eq(text, "READY=1\nSTATUS=fine");
}

Test(parent, service_manager_is_notified_through_a_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", scratch_path("socket"));
	expect_notification(address.sun_path, &address, sizeof(address));
}

Test(parent, service_manager_is_notified_through_an_abstract_name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[64];

	int n = snprintf(name, sizeof(name), "@kinf-test-%d", (int)getpid());
	memcpy(address.sun_path + 1, name + 1, (size_t)n - 1);
	expect_notification(
		name, &address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n));
}

Test(parent, notification_without_a_listener_is_nobodys_error)
{
	char longer[300];

	cr_assert_eq(unsetenv("NOTIFY_SOCKET"), 0);
	parent_notify("READY=1");
	cr_assert_eq(setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1), 0);
	parent_notify("READY=1");
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	cr_assert_eq(setenv("NOTIFY_SOCKET", longer, 1), 0);
	parent_notify("READY=1");
}

Test(parent, death_of_the_supervisor_is_end_of_file)
{
	int ends[2];
	char text[16];

	cr_assert_eq(unsetenv("KINF_DEATH_FD"), 0);
	cr_assert_eq(parent_pipe(), -1);
	cr_assert_eq(setenv("KINF_DEATH_FD", "999", 1), 0);
	cr_assert_eq(parent_pipe(), -1);
	cr_assert_eq(setenv("KINF_DEATH_FD", "-1", 1), 0);
	cr_assert_eq(parent_pipe(), -1);
	cr_assert_eq(pipe(ends), 0);
	(void)snprintf(text, sizeof(text), "%d", ends[0]);
	cr_assert_eq(setenv("KINF_DEATH_FD", text, 1), 0);
	AUTO_FD int fd = parent_pipe();
	cr_assert_eq(fd, ends[0]);
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	cr_assert_eq(poll(&p, 1, 0), 0);
	(void)close(ends[1]);
	cr_assert_eq(poll(&p, 1, 1000), 1);
	cr_assert(p.revents & POLLHUP);
}

Test(parent, the_manager_of_a_supervisor_is_not_its_childrens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[64] = "";

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", scratch_path("kept"));
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	parent_keep_manager();
	cr_assert_null(getenv("NOTIFY_SOCKET"));
	cr_assert(parent_has_manager());
	parent_notify("READY=1");
	cr_assert_gt(recv(fd, text, sizeof(text) - 1, 0), 0);
	cr_assert_str_eq(text, "READY=1");
}
