/* SPDX-License-Identifier: Apache-2.0 */
/* The client's half of the control socket. */
#include "common/daemon/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/unix_socket.h"

#define CONNECT_SECONDS 10
#define SILENCE_NS      (60 * SECOND_NS) /* a daemon sends a sign of life each second */
#define NOTED_NS        (3 * SECOND_NS)
#define DOES_NOT_RESPOND \
	"the daemon does not respond: it is stopped (SIGCONT lets it go on), or it hangs ('kinf " \
	"run' then starts another)"

/* Returns: 0; NOT_FOUND: there is no socket, or no daemon has it open; errors. */
static int client_connect(int directory_fd, const char *name, int *ret_fd)
{
	struct sockaddr_un address = unix_socket_address(directory_fd, name);
	struct timeval limit = {.tv_sec = CONNECT_SECONDS};
	AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(-errno, "opening a socket");
	/* Connecting has the time limit of sending: a stopped daemon accepts nothing. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ENOENT && access("/proc/self/fd", F_OK) < 0)
			return proc_failed(-ENOENT, address.sun_path);
		if (errno == ENOENT || errno == ECONNREFUSED)
			return NOT_FOUND;
		if (errno == EACCES || errno == EPERM)
			return err_say(-EACCES, "only the owner of the store and root may do that");
		if (errno == EAGAIN)
			return err_say(ERR_TIMEOUT, DOES_NOT_RESPOND);
		return err_set(-errno, "connecting to '%s'", name);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Receives one message into TEXT: a letter, a blank, the rest. Calls HANDLER once if the daemon of
 * the socket NAME is slow. */
static int client_receive(
	int fd, const char *name, const struct control_handler *handler, char text[CONTROL_SIZE])
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	uint64_t begun = proc_monotonic_ns(), silence = 0;
	bool noted = false;
	int n = 0;

	while (n <= 0 && silence < SILENCE_NS) {
		n = poll(&wait, 1, 1000);
		if (n < 0 && errno != EINTR)
			return err_set(-errno, "waiting for the daemon");
		silence = proc_monotonic_ns() - begun;
		if (n <= 0 && !noted && silence >= NOTED_NS && handler && handler->note) {
			(void)snprintf(text, CONTROL_SIZE,
				"kinf-%s does not answer; waiting for up to %d s",
				strchr(name, '.') + 1, (int)(SILENCE_NS / SECOND_NS));
			handler->note(handler->arg, text);
			noted = true;
		}
	}
	if (n <= 0)
		return err_say(ERR_TIMEOUT, DOES_NOT_RESPOND);
	ssize_t size = recv(fd, text, CONTROL_SIZE - 1, 0);
	if (size < 0 &&
		errno ==
			/* a refusing daemon does not read the command; its answer comes after the
			 * error */
			ECONNRESET)
		size = recv(fd, text, CONTROL_SIZE - 1, MSG_DONTWAIT);
	if (size < 0 && errno != ECONNRESET && errno != EAGAIN)
		return err_set(-errno, "reading the daemon's answer");
	if (size <= 0)
		return err_say(ERR_MOVED, "the daemon has ended meanwhile");
	text[size] = '\0';
	if (text[1] != ' ')
		text[1] = text[2] = '\0';
	return 0;
}

int control_ask(int directory_fd, const char *name, const char *command, const char *argument,
	const struct control_handler *handler, char ret_text[CONTROL_SIZE])
{
	char text[CONTROL_SIZE];
	AUTO_FD int fd = -1;
	int size = snprintf(text, sizeof(text), "%s%s%s", command, *argument ? " " : "", argument);

	if (size < 0 || (size_t)size >= sizeof(text))
		return err_say(ERR_TOO_LARGE, "'%.40s...' is too long", argument);
	int r = client_connect(directory_fd, name, &fd);
	if (r != 0)
		return r;
	bool refused = send(fd, text, (size_t)size, MSG_NOSIGNAL) <
		       0; /* before the command came, or the daemon has ended */
	if (refused && errno != EPIPE)
		return err_set(-errno, "writing to the daemon");
	while ((r = client_receive(fd, name, handler, text)) == 0) {
		unsigned long long done, total;
		char unit[32];

		if (text[0] == 'd' || text[0] == 'f')
			break;
		if (text[0] == 'n' && handler && handler->note)
			handler->note(handler->arg, text + 2);
		if (text[0] == 'p' && handler && handler->progress &&
			sscanf(text + 2, "%llu %llu %31s", &done, &total, unit) == 3)
			handler->progress(handler->arg, done, total, unit);
	}
	if (r == ERR_MOVED && refused) {
		err_ignore(r, "there was no daemon");
		return NOT_FOUND;
	}
	if (r < 0)
		return r;
	(void)snprintf(ret_text, CONTROL_SIZE, "%s", text + 2);
	return text[0] == 'd' ? 0 : err_say(-EPROTO, "%s", ret_text);
}
