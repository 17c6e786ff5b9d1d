/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: commands to a running daemon, from the owner of the store and from root.
 *
 * Each daemon has one, `control.NAME` in the runtime directory (NAME as of its status page), with
 * mode 0600 and a check of SO_PEERCRED. The socket keeps message boundaries (SOCK_SEQPACKET). A
 * connection carries one call: the client sends one message, "COMMAND" or "COMMAND ARGUMENT", and
 * the daemon answers with messages of a letter and a text:
 *
 *	a                      the call has arrived; repeated each second during the work
 *	p DONE TOTAL UNIT      progress
 *	n TEXT                 a notice for the user
 *	d TEXT                 the end: done
 *	f TEXT                 the end: failed, with the reason
 *
 * Bounds: CONTROL_CALLS_MAX connections, CONTROL_SIZE bytes a message, CONTROL_SILENCE_NS until a
 * call has come. A peer that does not read loses messages; one that closes the connection cancels
 * the call if the command supports it (control_is_gone). The daemon never waits for a peer.
 *
 * The daemon frame (daemon.h) owns the server's half; the client's half is control_client.c.
 */
#ifndef COMMON_DAEMON_CONTROL_H
#define COMMON_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_CALLS_MAX  8
#define CONTROL_SIZE       1024
#define CONTROL_SILENCE_NS (10 * UINT64_C(1000000000))

/* ---- the daemon --------------------------------------------------------- */

struct control;
struct control_call;

/* Makes the socket DIRECTORY_FD/NAME. */
int control_open(int directory_fd, const char *name, struct control **ret_control);
void control_close(struct control **control);

/* Returns a descriptor, readable when control_turn() has work; -1 without CONTROL. */
int control_fd(const struct control *control);
/* Accepts and receives without waiting. Does nothing without CONTROL. */
void control_turn(struct control *control);

/* Return the next new call, of COMMAND or of another one; NULL: none. The caller ends it by
 * control_end(), now or later. */
struct control_call *control_next(struct control *control, const char *command);
struct control_call *control_next_other(struct control *control, const char *command);

const char *control_command(const struct control_call *call);
const char *control_argument(const struct control_call *call); /* "" if there is none */
/* Returns true if the client closed the connection. */
bool control_is_gone(const struct control_call *call);

void control_note(struct control_call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends progress, at most every 100 ms. */
void control_progress(struct control_call *call, uint64_t done, uint64_t total, const char *unit);
/* Ends the call with TEXT; RESULT negative: it has failed. Sets *CALL to NULL; accepts NULL. */
void control_end(struct control_call **call, int result, const char *text);

/* ---- the client --------------------------------------------------------- */

struct control_handler {
	void (*note)(void *arg, const char *text);
	void (*progress)(void *arg, uint64_t done, uint64_t total, const char *unit);
	void *arg;
};

/* Calls COMMAND of the daemon with the socket DIRECTORY_FD/NAME, and waits for its end as long as
 * the daemon gives signs of life. RET_TEXT gets the last text. Returns: 0; NOT_FOUND: no daemon has
 * the socket open; errors; -EPROTO with the daemon's sentence. */
int control_ask(int directory_fd, const char *name, const char *command, const char *argument,
	const struct control_handler *handler, char ret_text[CONTROL_SIZE]);

#endif
