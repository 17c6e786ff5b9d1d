/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemons under `kinf run`: started by fork and exec, and restarted after growing pauses if the
 * exit status (common/proc.h) allows it. Each child inherits the reading end of a pipe; only the
 * supervisor has the writing end, and its death is the end of the file.
 */
#ifndef COMMAND_MANAGE_CHILDREN_H
#define COMMAND_MANAGE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	const char *program;    /* "kinf-reflector" */
	char *path;             /* its path */
	char *const *arguments; /* from argv[1] on, NULL-terminated */
	pid_t pid;              /* 0: not running */
	uint64_t started_ns;    /* monotonic */
	uint64_t start_at_ns;   /* time of the next start */
	uint64_t pause_ns;      /* before the next restart */
	uint64_t in_use_ns;     /* since when another process has its role, monotonic; 0: none */
	uint32_t restarts;
	bool takes_sockets; /* it inherits the sockets of the service manager */
	bool has_run;       /* a run of it ended otherwise than by a refusal */
	bool given_up;      /* its exit status rules a restart out */
	bool refused;       /* its configuration, or a missing right, prevents a run */
};

#define CHILD_NOT_EXECUTED 127 /* a shell's exit status for that */

/* The difference between a program that a command waits for and the command itself. */
struct child_start {
	const char *directory; /* NULL: none */
	int fd, number;        /* FD becomes its descriptor NUMBER; 0: none does */
	bool quiet;            /* its errors go to FD also, and it reads nothing */
	int death_signal;      /* when this process dies; 0: none */
	bool background;       /* the terminal's signals are not for it */
};

/* Starts PATH, searched in PATH without a slash, without this process's handling of signals. */
int child_start(
	const char *path, char *const *arguments, const struct child_start *start, pid_t *ret_pid);

struct children {
	struct child *child;
	size_t n;
	int death_fd[2]; /* the children inherit [0], nothing is written into [1] */
	int sockets;     /* of the service manager, from PARENT_SOCKET on */
};

/* Finds the path of PROGRAM: beside kinf, else in PATH. The caller frees it. Returns: 0; -ENOENT:
 * none; -ENOMEM; as proc_failed(): kinf's own directory is unknown. */
int children_find(const char *program, char **ret_path);

/* Finds each program in the directory of this executable, else in PATH. */
int children_init(struct children *children, struct child *child, size_t n);
void children_release(struct children *children);

/* Starts the due children. Returns the milliseconds until the next start, -1 if none is planned. */
int children_start_due(struct children *children);

/* Reaps the ended children, one log line each, and plans their restarts. */
void children_reap(struct children *children, bool stopping);

void children_signal(struct children *children, int signal_number);
bool children_any_running(const struct children *children);
/* Returns the first child given up, NULL if none was. */
const struct child *children_given_up(const struct children *children);

#endif
