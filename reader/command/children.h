/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemons that `kinf run` looks after: started by fork and exec, restarted with growing pauses,
 * told apart by their exit statuses (common/proc.h). The supervisor opens no environment and no
 * ring, so nothing that goes wrong in those can reach it. A child notices our death by a pipe that
 * only we hold the other end of.
 */
#ifndef READER_COMMAND_CHILDREN_H
#define READER_COMMAND_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	const char *program;  /* "kinf-reflector" */
	char *path;           /* where it is */
	char *const *arguments; /* from argv[1] on, NULL-terminated */
	pid_t pid;            /* 0: not running */
	uint64_t started_ns;  /* monotonic */
	uint64_t start_at_ns; /* when to start it (again) */
	uint64_t pause_ns;    /* before the next restart */
	uint64_t in_use_ns; /* since when another process does its work, monotonic; 0: none does */
	uint32_t restarts;
	bool given_up;        /* a status that says: not before somebody changes something */
};

struct children {
	struct child *child;
	size_t n;
	int death_fd[2]; /* the children inherit [0], nobody writes into [1] */
};

/* Finds each program beside our own executable, else in PATH. */
int children_init(struct children *children, struct child *child, size_t n);
void children_release(struct children *children);

/* Starts what is due. Returns milliseconds until the next start is due, -1: none waits. */
int children_start_due(struct children *children);

/* Takes notice of those that died: one log line each. */
void children_reap(struct children *children, bool stopping);

void children_signal(struct children *children, int signal_number);
bool children_any_running(const struct children *children);
/* The first that was given up; NULL: none. */
const struct child *children_given_up(const struct children *children);

#endif
