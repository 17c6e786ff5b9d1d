/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about processes: exit statuses, one instance per role, clocks, boot, randomness. */
#ifndef COMMON_PROC_H
#define COMMON_PROC_H

#include <stdbool.h>
#include <stdint.h>

enum proc_exit {
	PROC_OK = 0,
	PROC_FAILED = 1,
	PROC_USAGE = 2,
	PROC_IN_USE = 69,   /* another process does this already: restart when that has ended */
	PROC_INTERNAL = 70, /* damaged data or a failed check: restart, data is rebuilt */
	PROC_TEMPORARY = 75, /* restart later */
	PROC_CONFIG = 78,   /* do not restart before somebody changes something */
};

/* With which of them a daemon ends because of ERROR: its supervisor acts on it. */
enum proc_exit proc_exit_of(int error);

/* Takes the role's lock on DIRECTORY_FD/NAME, created 0600, our pid written into it. Returns the fd
 * to keep open for life (the kernel frees the lock with the last copy of it, so give it to no
 * child), or ERR_LOCKED with the holder's pid in the sentence. The file is never removed.
 * An open-file-description lock rather than flock(2): those can be looked at without being taken. */
int proc_lock(int directory_fd, const char *name);

/* The lock is held by somebody; nothing is taken, so no daemon that starts just then is disturbed.
 * True also where we may not look. */
bool proc_is_locked(int directory_fd, const char *name);

/* Monotonic and wall clock, nanoseconds. */
uint64_t proc_monotonic_ns(void);
uint64_t proc_realtime_ns(void);

/* How many CPUs this process may run on, as it was when first asked; at least 1. */
unsigned proc_cpus(void);

/* This boot's id, 32 hex digits and a NUL; $KINF_BOOT_ID overrides it (tests), with or without
 * dashes. -errno when unknown, ERR_SYNTAX when it is no id. */
int proc_boot_id(char ret_id[33]);

/* When the process PID started, in clock ticks since boot: with the pid it names one process for as
 * long as this boot lasts. -ESRCH when there is none (a zombie counts as none). */
int proc_start_ticks(int32_t pid, uint64_t *ret_ticks);

/* SIZE random bytes from the kernel. */
int proc_random(void *data, uint32_t size);

#endif
