/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a daemon: command line, configuration, signals, status page, service manager. A
 * daemon's main.c calls daemon_main() with its program; its run() does the daemon's own work:
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
 *				... check for changes from outside ...
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
	/* Its commands, except "reload", the frame's; ends with NULL. NULL: none. */
	const char *const *commands;
	enum config_user user; /* this daemon, for config_needs_restart() */
	/* Checks what CONFIG names on this machine, for --check. NULL: nothing. */
	int (*check)(const struct config *config);
	/* Options of its own; NULL: none. */
	const struct options_group *options;
	/* Does what such an option asks for instead of running. Returns: 0; END: none asks;
	 * errors. NULL: none can. */
	int (*instead)(const struct config *config);
	/* Returns whether such an option makes it a part of a command of kinf, which tells a
	 * failure in one line. NULL: none does. */
	bool (*is_of_command)(void);
	/* Opens the status page in the store of CONFIG for a daemon that can't start, which then
	 * says in it why. Does nothing if the store is not there, or another daemon has it.
	 * NULL: it has no page then. */
	void (*open_page)(struct daemon *daemon, const struct config *config);
	/* Returns the exit status, daemon_end()'s. */
	int (*run)(struct daemon *daemon);
};

struct daemon {
	const struct daemon_program *program;
	struct config *config; /* replaced by daemon_reload() */
	struct stats *stats;   /* NULL before daemon_open_page() */
	struct failure failure;
	bool stop;   /* SIGTERM or SIGINT came, or the supervisor has ended */
	bool reload; /* SIGHUP or the command "reload" came */
	/* A command for the program, to end with control_end(), or to take over (TAKE). NULL:
	 * none. */
	struct control_call *call;

	/* daemon.c's own */
	struct config_flags flags;
	bool check;                       /* --check */
	int signals_fd, parent_fd;        /* parent_fd -1: no supervisor */
	struct control *control;          /* NULL before daemon_open_page() */
	struct control_call *reload_call; /* for the answer of daemon_reload(); NULL: none */
	bool ready;
	bool page_lost;      /* stats_is_lost(), as logged */
	bool config_refused; /* the status page has the error of the last reload */
	uint64_t
		/* when the configuration's file is looked at again; 0: it need not be */
		settled_ns;
	uint64_t ticked_ns, second_ns, notified_ns; /* monotonic */
};

/* Parses the command line, loads the configuration, sets the log up, and runs PROGRAM.
 * Returns: the process's exit status (enum proc_exit). */
int daemon_main(const struct daemon_program *program, int argc, char **argv);

/* Makes the status page and the control socket in the runtime directory. From then on a failed
 * check is noted there, and commands come into daemon->call. */
int daemon_open_page(struct daemon *daemon, int runtime_fd);
/* For open_page(): opens the status page of the process before this one, and makes one only if
 * there is none. */
int daemon_continue_page(struct daemon *daemon, int runtime_fd);

/* Waits for a second, and reports it, if R is a full disk. Returns: true: try again; false: R
 * stands, or the daemon is to stop. */
bool daemon_await_room(struct daemon *daemon, int r);

/* Sends READY=1 to the service manager, once. */
void daemon_ready(struct daemon *daemon);

/* Reads signals and commands, checks the supervisor, sets the heartbeat, feeds the watchdog; at
 * most every 20 ms.
 * Returns: 0; -EINTR: the daemon is to stop. */
int daemon_tick(struct daemon *daemon);

/* Returns whether a second has passed since this last returned true; the first call returns
 * true. */
bool daemon_second(struct daemon *daemon);

/* Fills the descriptors for a daemon's poll: signals, the supervisor's pipe, the control socket.
 * After an event on one of them the caller calls daemon_attend(), a daemon_tick() without the
 * limit. */
#define DAEMON_FDS 3
void daemon_poll_fds(const struct daemon *daemon, struct pollfd ret_fds[DAEMON_FDS]);
int daemon_attend(struct daemon *daemon);

/* Sleeps for TIMEOUT_MS, or until a signal comes. */
void daemon_sleep(struct daemon *daemon, int timeout_ms);

/* Loads the configuration again. Keys with a fixed value keep it; a log line names them. A refused
 * configuration is logged and is the status page's error. Returns: whether daemon->config is a new
 * one; the old one is then freed. The caller takes it over and calls daemon_reloaded(). */
bool daemon_reload(struct daemon *daemon);
/* Returns true if the configuration in use may be incomplete: the file had not stood still when it
 * was read (config_unsettled_ns()), or the last reload refused it. About 2 s later daemon_tick()
 * sets daemon->reload if the file has changed. */
bool daemon_awaits_file(const struct daemon *daemon);
/* Says to the log, and to `kinf reload`, that the changed WHAT counts only after a restart. Call
 * between the other two. */
void daemon_needs_restart(struct daemon *daemon, const char *what);
/* Answers a `kinf reload`. R negative: the error of the caller's part; the rest is
 * in use. */
void daemon_reloaded(struct daemon *daemon, int r);

/* Reports the daemon's stop, and the reason if ERROR is negative, to the service manager, the
 * status page and the log. The caller closes its files only afterwards, because closing may replace
 * the error's sentence. Returns: the exit status. */
int daemon_end(struct daemon *daemon, int error);

#endif
