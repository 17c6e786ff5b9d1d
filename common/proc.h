/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about processes: exit statuses, the lock of a role, clocks, the boot id, randomness. */
#ifndef COMMON_PROC_H
#define COMMON_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum proc_exit {
	PROC_OK = 0,
	PROC_FAILED = 1,
	PROC_USAGE = 2,
	PROC_IN_USE = 69,    /* another process has this role: restart after its end */
	PROC_INTERNAL = 70,  /* damaged data or a failed check: restart, the data is rebuilt */
	PROC_TEMPORARY = 75, /* restart later */
	PROC_CONFIG = 78,    /* do not restart before the configuration is changed */
};

/* Returns a daemon's exit status for ERROR; its supervisor acts on it. */
enum proc_exit proc_exit_of(int error);

/* Takes the lock of a role on the file DIRECTORY_FD/NAME, created with mode 0600 and never removed,
 * and writes the process's pid into it. It is an open-file-description lock, visible to other
 * processes. Returns: the fd; the caller keeps it open as long as it has the role, and gives it to
 * no child (the kernel frees the lock with the last copy); ERR_LOCKED with the holder's pid in the
 * sentence. */
int proc_lock(int directory_fd, const char *name);

/* Makes a new file of this MODE, locks it as proc_lock() does, and puts it in the place of NAME.
 * Locks on the file before do not matter to it. Returns: the fd, as proc_lock(). */
int proc_show_lock(int directory_fd, const char *name, unsigned mode);

/* Returns whether a process holds the lock. A read lock, possible for every reader of the file,
 * does not count. Takes nothing, so it never disturbs a starting daemon. True also when the file
 * cannot be opened or checked. */
bool proc_is_locked(int directory_fd, const char *name);

/* Return CLOCK_MONOTONIC, CLOCK_REALTIME and CLOCK_BOOTTIME in nanoseconds. */
uint64_t proc_monotonic_ns(void);
uint64_t proc_realtime_ns(void);
uint64_t proc_boottime_ns(void);
/* Returns the milliseconds until END_NS (CLOCK_MONOTONIC), rounded up, as poll() takes them: 0:
 * it has passed; -1: END_NS is UINT64_MAX, which never comes; at most INT_MAX, some 24 days. */
int proc_ms_until(uint64_t end_ns);

/* Tells the CPU about polling a word of another process. */
static inline void proc_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Returns the number of CPUs of the process, at least 1; read once. */
unsigned proc_cpus(void);

/* Sets the sentence for an unreadable file PATH of /proc. Returns ERROR, or ERR_UNSUPPORTED with
 * the remedy if /proc is not mounted, or only in part. */
int proc_failed(int error, const char *path);

/* Called first in main(). Opens closed standard descriptors, so that no other file gets their
 * numbers and is read as input or written by messages; reading and writing them fails, as it did.
 * Removes the owner's bits from the umask: else the program could not open its own files again.
 * Lets signals of faults through if the caller had blocked them: a growing file is a SIGBUS with a
 * handler (mapped_file.h). */
void proc_begin(void);

/* For the library's own files, in programs without standard descriptors: returns FD; or if it has
 * got such a number, a copy with a higher one, and closes FD; or -1 with errno, also if FD is
 * negative. */
int proc_above_standard(int fd);

/* Returns whether this process may make a file as long as SIZE. Beyond its limit (RLIMIT_FSIZE) the
 * kernel sends SIGXFSZ, ignored by our own programs, but the end of another one: it asks first, and
 * reports -EFBIG. */
bool proc_may_write(uint64_t size);

/* For the library's open files: moves FD to a high number, and returns it. A program that closes
 * all descriptors (closefrom(3)) then opens files of its own; when the library later closes its
 * numbers, it hits none of these. A low limit of open files allows no such number: then as
 * proc_above_standard(). */
int proc_apart(int fd);

/* Writes the path of an open file, as it is now, and a NUL. Returns: 0; -ENAMETOOLONG; as
 * proc_failed(). */
int proc_path_of(int fd, char *path, size_t size);

/* Returns in RET_ID the id of this boot of the machine: 32 hex digits and a NUL. In builds with
 * failpoints $KINF_BOOT_ID replaces it, to simulate a reboot. Returns: 0; as proc_failed();
 * ERR_SYNTAX: $KINF_BOOT_ID is no id. */
int proc_boot_id(char ret_id[33]);

struct proc_stat {
	char state;           /* 'D' waits for a disk, 'T' and 't' stopped, 'Z' and 'X' ended */
	uint64_t cpu_ticks;   /* it has used the CPU for, in clock ticks */
	uint64_t start_ticks; /* when it started, in clock ticks since boot */
};

/* Reads /proc/PID/stat, proc(5). Returns: 0; -ESRCH: there is no such process; ERR_UNSUPPORTED:
 * no /proc; a shortage (err_is_shortage). */
int proc_read_stat(int32_t pid, struct proc_stat *ret_stat);

struct proc_memory {
	uint64_t resident; /* bytes in memory */
	uint64_t
		/* those without a file: mapped files are the page cache's */
		anonymous;
};

/* Reads /proc/PID/statm, proc(5). -ESRCH as above. */
int proc_read_memory(int32_t pid, struct proc_memory *ret_memory);

/* Returns in RET_TICKS when the process PID started, in clock ticks since boot: pid and ticks
 * together name one process until the next boot. -ESRCH when there is none; a zombie counts as
 * none. */
int proc_start_ticks(int32_t pid, uint64_t *ret_ticks);

/* A daemon needs about 45 with one feed. */
#define PROC_FILES_LEAST 64u

/* Raises the limit of open files to MOST, or to as many as are allowed. Returns: 0; -EMFILE:
 * fewer than LEAST are. */
int proc_raise_files(unsigned least, unsigned most);

/* Fills DATA with SIZE random bytes from the kernel. */
int proc_random(void *data, uint32_t size);

#endif
