/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a daemon: command line, configuration, signals, status page, service manager. main.c
 * calls daemon_main() with its program; run() does the daemon's own work:
 *
 *	static int run(struct daemon *daemon)
 *	{
 *		... open the store ...
 *		r = daemon_open_page(daemon, runtime directory);
 *		...
 *		daemon_ready(daemon);
 *		while (r >= 0 && !daemon->stop) {
 *			(void)daemon_tick(daemon);
 *			if (daemon_second(daemon))
 *				... check outside changes ...
 *			if (daemon->reload)
 *				... daemon_reload(daemon) ...
 *			r = work of some milliseconds;
 *		}
 *		return daemon_end(daemon, r);
 *	}
 *
 * Long work calls daemon_tick() every few milliseconds, and ends when it returns an error. The
 * frame knows nothing of the store. One thread.
 */
#ifndef COMMON_DAEMON_DAEMON_H
#define COMMON_DAEMON_DAEMON_H

#include <poll.h>

#include "common/config/config.h"
#include "common/daemon/control.h"
#include "common/daemon/failure.h"
#include "common/stats.h"

struct daemon;

struct daemon_program {
	const char *name;           /* "kinf-processor" */
	const char *about;          /* for --help */
	const char *status_page;    /* its file in the runtime directory */
	const char *control_socket; /* likewise (control.h) */
	/* Its commands there, ended by NULL, without the frame's "reload". NULL: none. */
	const char *const *commands;
	enum config_user user; /* this daemon, for config_needs_restart() */
	/* Checks CONFIG against this machine, for --check. NULL: nothing. */
	int (*check)(const struct config *config);
	/* Options of its own; NULL: none. */
	const struct options_group *options;
	/* Runs such an option's action instead of run(). Returns: an exit status;
	 * END: none was given; errors. NULL: none. */
	int (*instead)(const struct config *config);
	/* Returns true if such an option makes the daemon part of a kinf command: failures are one
	 * line. NULL: never. */
	bool (*is_of_command)(void);
	/* Opens the status page in the store of CONFIG, for the reason of a failed start. Does
	 * nothing without a store or if another daemon has it. NULL: no page. */
	void (*open_page)(struct daemon *daemon, const struct config *config);
	/* Returns the exit status of daemon_end(). */
	int (*run)(struct daemon *daemon);
};

struct daemon {
	const struct daemon_program *program;
	struct config *config; /* replaced by daemon_reload() */
	struct stats *stats;   /* NULL before daemon_open_page() */
	struct failure failure;
	bool stop;   /* SIGTERM, SIGINT or the supervisor's end */
	bool reload; /* SIGHUP or the command "reload" came */
	/* A command for the program: it ends it by control_end(), or takes it (TAKE). NULL:
	 * none. */
	struct control_call *call;

	/* daemon.c's own */
	struct config_flags flags;
	bool check;                       /* --check */
	int signals_fd, parent_fd;        /* parent_fd -1: no supervisor */
	struct control *control;          /* NULL before daemon_open_page() */
	struct control_call *reload_call; /* to be answered by daemon_reload(); NULL: none */
	bool ready;
	bool config_refused; /* the status page's error is that of the last reload */
	uint64_t settled_ns; /* next look at the configuration's file; 0: none */
	uint64_t ticked_ns, second_ns, notified_ns; /* monotonic */
};

/* Parses the command line, loads the configuration, sets the log up, and runs PROGRAM. Returns the
 * exit status (enum proc_exit). */
int daemon_main(const struct daemon_program *program, int argc, char **argv);

/* Makes the status page and the control socket in the runtime directory. Failed assertions are
 * noted there afterwards, and commands come into daemon->call. */
int daemon_open_page(struct daemon *daemon, int runtime_fd);
/* For open_page(): opens the previous process's status page; makes one only if there is none. */
int daemon_continue_page(struct daemon *daemon, int runtime_fd);

/* Reports a full disk and waits a second if R is one. Returns true to try again, false if R is
 * another error or the daemon is to stop. */
bool daemon_await_room(struct daemon *daemon, int r);

/* Sends READY=1 to the service manager, once. A right that is lost from now on ends the daemon with
 * PROC_TEMPORARY: it had it. */
void daemon_ready(struct daemon *daemon);

/* Reads signals and commands, checks the supervisor, sets the heartbeat, feeds the watchdog; at
 * most every 20 ms.
 * Returns: 0; -EINTR: the daemon is to stop. */
int daemon_tick(struct daemon *daemon);

/* Returns true once a second, and at the first call. */
bool daemon_second(struct daemon *daemon);

/* Fills the descriptors for a sleeping daemon's poll: signals, the supervisor's pipe, the control
 * socket. If one is ready the caller calls daemon_attend(), a daemon_tick() without the rate
 * limit. */
#define DAEMON_FDS 3
void daemon_poll_fds(const struct daemon *daemon, struct pollfd ret_fds[DAEMON_FDS]);
int daemon_attend(struct daemon *daemon);

/* Sleeps for TIMEOUT_MS, or until a signal comes. */
void daemon_sleep(struct daemon *daemon, int timeout_ms);

/* Loads the configuration again. Start-only keys keep their values; a log line names them. A
 * refused configuration is logged and becomes the status page's error. Returns true if
 * daemon->config is new; the old one is freed, and the caller applies it and calls
 * daemon_reloaded(). */
bool daemon_reload(struct daemon *daemon);
/* Returns true if the configuration in use may be a half-written file: it was too fresh when read
 * (config_unsettled_ns()), or the last reload refused it. About 2 s later daemon_tick() sets
 * daemon->reload if the file has changed. */
bool daemon_awaits_file(const struct daemon *daemon);
/* Tells the log and `kinf reload` that a change of WHAT needs a restart. Call between the other
 * two. */
void daemon_needs_restart(struct daemon *daemon, const char *what);
/* Answers `kinf reload`, if one waits. R negative: a part could not be applied; the rest is in
 * use. */
void daemon_reloaded(struct daemon *daemon, int r);

/* Reports the stop to the service manager, the status page and the log, with the reason if ERROR is
 * negative. Call it before closing files: closing may replace the sentence. Returns the exit
 * status. */
int daemon_end(struct daemon *daemon, int error);

#endif
