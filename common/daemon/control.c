/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/unix_socket.h"

#define CONTROL_MAGIC 0x6374726cu
#define PROGRESS_NS   (SECOND_NS / 10)
#define LISTENER      UINT32_MAX

struct control_call {
	int fd; /* -1: free */
	enum { CALL_EXPECTED, CALL_WAITING, CALL_RUNNING } state;
	bool gone;
	uint64_t since_ns; /* EXPECTED: connected; later: the last sign of life (monotonic) */
	uint64_t progress_ns;
	char text[CONTROL_SIZE]; /* the command, NUL, the argument */
	const char *argument;
};

struct control {
	uint32_t magic;
	int listener, epoll;
	struct control_call calls[CONTROL_CALLS_MAX];
};

/* ---- opening ------------------------------------------------------------ */

static int control_watch(struct control *c, int fd, uint32_t place)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = place};

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event);
}

int control_open(int directory_fd, const char *name, struct control **ret_control)
{
	CLEANUP(control_close) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(-ENOMEM, "making the control socket");
	c->magic = CONTROL_MAGIC;
	c->epoll = -1;
	for (size_t i = 0; i < CONTROL_CALLS_MAX; i++)
		c->calls[i].fd = -1;
	c->listener =
		unix_socket_listen(directory_fd, name, SOCK_SEQPACKET, 0600, CONTROL_CALLS_MAX);
	if (c->listener < 0)
		return c->listener;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0 || control_watch(c, c->listener, LISTENER) < 0)
		return err_set(-errno, "making the control socket '%s'", name);
	*ret_control = TAKE(c);
	return 0;
}

void control_close(struct control **control)
{
	struct control *c = TAKE(*control);

	if (!c)
		return;
	CHECK_OBJ(c, CONTROL_MAGIC);
	for (size_t i = 0; i < CONTROL_CALLS_MAX; i++)
		cleanup_fd(&c->calls[i].fd);
	cleanup_fd(&c->listener);
	cleanup_fd(&c->epoll);
	c->magic = 0;
	free(c);
}

int control_fd(const struct control *c)
{
	return c ? c->epoll : -1;
}

/* ---- messages ----------------------------------------------------------- */

static void control_send(int fd, const char *text)
{
	/* A peer that does not read loses the message. */
	(void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void control_note(struct control_call *call, const char *format, ...)
{
	char text[CONTROL_SIZE] = "n ";
	va_list arguments;

	if (!call)
		return;
	va_start(arguments, format);
	(void)vsnprintf(text + 2, sizeof(text) - 2, format, arguments);
	va_end(arguments);
	control_send(call->fd, text);
}

void control_progress(struct control_call *call, uint64_t done, uint64_t total, const char *unit)
{
	uint64_t now = proc_monotonic_ns();
	char text[CONTROL_SIZE];

	if (!call || now - call->progress_ns < PROGRESS_NS)
		return;
	call->progress_ns = now;
	(void)snprintf(text, sizeof(text), "p %llu %llu %s", (unsigned long long)done,
		(unsigned long long)total, unit);
	control_send(call->fd, text);
}

void control_end(struct control_call **call_pointer, int result, const char *text)
{
	struct control_call *call = TAKE(*call_pointer);
	char message[CONTROL_SIZE];

	if (!call)
		return;
	(void)snprintf(message, sizeof(message), "%c %s", result < 0 ? 'f' : 'd', text);
	control_send(call->fd, message);
	cleanup_fd(&call->fd);
}

/* ---- receiving ---------------------------------------------------------- */

/* Splits the call into command and argument. Returns false if it is malformed. */
static bool control_read_call(struct control_call *call, ssize_t size)
{
	if (size <= 0 || size >= CONTROL_SIZE || memchr(call->text, '\0', (size_t)size))
		return false;
	for (ssize_t i = 0; i < size; i++)
		if ((unsigned char)call->text[i] < ' ' || call->text[i] == 0x7f)
			return false;
	call->text[size] = '\0';
	char *blank = strchr(call->text, ' ');
	if (blank)
		*blank++ = '\0';
	call->argument = blank ? blank : "";
	return true;
}

static void control_receive(struct control_call *call)
{
	char rest[16];

	if (call->state != CALL_EXPECTED) { /* only the end of the stream may follow */
		ssize_t size = recv(call->fd, rest, sizeof(rest), MSG_DONTWAIT);
		call->gone |= size >= 0 || (errno != EAGAIN && errno != EINTR);
		return;
	}
	ssize_t size = recv(call->fd, call->text, sizeof(call->text), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!control_read_call(call, size)) {
		if (size > 0)
			control_send(call->fd, "f not a command");
		cleanup_fd(&call->fd);
		return;
	}
	call->state = CALL_WAITING;
	call->since_ns = proc_monotonic_ns();
	control_send(call->fd, "a");
}

static void control_accept(struct control *c)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	uint32_t place = 0;
	AUTO_FD int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return; /* none, or no free descriptor: retried at the next turn */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		(peer.uid != 0 && peer.uid != geteuid())) {
		control_send(fd, "f only the owner of the store and root may do that");
		return;
	}
	while (place < CONTROL_CALLS_MAX && c->calls[place].fd >= 0)
		place++;
	if (place == CONTROL_CALLS_MAX || control_watch(c, fd, place) < 0) {
		control_send(fd, "f too many commands at once: try again later");
		return;
	}
	c->calls[place] = (struct control_call){
		.fd = TAKE_FD(fd), .since_ns = proc_monotonic_ns(), .argument = ""};
	control_receive(&c->calls[place]);
}

void control_turn(struct control *c)
{
	struct epoll_event events[CONTROL_CALLS_MAX + 1];

	if (!c)
		return;
	CHECK_OBJ(c, CONTROL_MAGIC);
	int n = epoll_wait(c->epoll, events, CONTROL_CALLS_MAX + 1, 0);
	for (int i = 0; i < n; i++) {
		uint32_t place = events[i].data.u32;

		if (place == LISTENER)
			control_accept(c);
		else if (c->calls[place].fd >= 0 && !c->calls[place].gone)
			control_receive(&c->calls[place]);
		if (place != LISTENER && c->calls[place].fd >= 0 && c->calls[place].gone)
			(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->calls[place].fd, NULL);
	}
	uint64_t now = proc_monotonic_ns();
	/* Drops silent peers and unstarted calls of closed peers. Sends a sign of life to the
	 * others. */
	for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
		struct control_call *call = &c->calls[i];
		uint64_t silent_ns = now - call->since_ns;

		if (call->fd < 0)
			continue;
		if (call->state == CALL_EXPECTED ? silent_ns >= CONTROL_SILENCE_NS
						 : call->state == CALL_WAITING && call->gone)
			cleanup_fd(&call->fd);
		else if (call->state != CALL_EXPECTED && silent_ns >= SECOND_NS) {
			call->since_ns = now;
			control_send(call->fd, "a");
		}
	}
}

static struct control_call *control_find(struct control *c, const char *command, bool other)
{
	for (size_t i = 0; c && i < CONTROL_CALLS_MAX; i++)
		if (c->calls[i].fd >= 0 && c->calls[i].state == CALL_WAITING &&
			(strcmp(c->calls[i].text, command) != 0) == other) {
			c->calls[i].state = CALL_RUNNING;
			return &c->calls[i];
		}
	return NULL;
}

struct control_call *control_next(struct control *c, const char *command)
{
	return control_find(c, command, false);
}

struct control_call *control_next_other(struct control *c, const char *command)
{
	return control_find(c, command, true);
}

const char *control_command(const struct control_call *call)
{
	return call->text;
}

const char *control_argument(const struct control_call *call)
{
	return call->argument;
}

bool control_is_gone(const struct control_call *call)
{
	return call && call->gone;
}
