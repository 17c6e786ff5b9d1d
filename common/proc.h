/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about processes: exit statuses, the lock for one process per role, clocks, the boot id,
 * randomness. */
#ifndef COMMON_PROC_H
#define COMMON_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum proc_exit {
	PROC_OK = 0,
	PROC_FAILED = 1,
	PROC_USAGE = 2,
	PROC_PARTLY = 3,     /* of kinf-reflector --import: something was left out */
	PROC_IN_USE = 69,    /* another process has this role: restart after its end */
	PROC_INTERNAL = 70,  /* damaged data or a failed check: restart, the data is rebuilt */
	PROC_TEMPORARY = 75, /* restart later */
	PROC_CONFIG = 78,    /* do not restart before the configuration is changed */
};

/* Returns the exit status of a daemon for ERROR; its supervisor acts on it. */
enum proc_exit proc_exit_of(int error);

/* Locks a role by the file DIRECTORY_FD/NAME (created with mode 0600, never removed) and writes the
 * pid into it. Other processes can check an open-file-description lock without taking it. Returns:
 * the fd, to be kept open for the role and not inherited (the kernel frees the lock with the last
 * copy); ERR_LOCKED with the holder's pid in the sentence. */
int proc_lock(int directory_fd, const char *name);

/* As proc_lock(), but waits NS nanoseconds at most while another process holds the lock. */
int proc_lock_within(int directory_fd, const char *name, uint64_t ns);

/* Makes a new file of this MODE, locks it, and renames it to NAME; locks on the old file do not
 * matter. Returns the fd, as proc_lock(). */
int proc_show_lock(int directory_fd, const char *name, unsigned mode);

/* Returns true if a process holds the lock; any reader of the file can have a read lock, so those
 * do not count. Never disturbs a starting daemon. True also if the file can't be opened or
 * checked. */
bool proc_is_locked(int directory_fd, const char *name);

#define SECOND_NS UINT64_C(1000000000)

/* Return CLOCK_MONOTONIC, CLOCK_REALTIME and CLOCK_BOOTTIME in nanoseconds. */
uint64_t proc_monotonic_ns(void);
uint64_t proc_realtime_ns(void);
uint64_t proc_boottime_ns(void);
/* Returns true if THEN, of the wall clock, is further from now than LIMIT_NS, and from STEADY_NS:
 * the present time had the wall clock not been set since the caller's start. A time in the future
 * came from a wrong clock and counts by its distance. */
bool proc_is_aged(uint64_t then, uint64_t limit_ns, uint64_t steady_ns);
/* Returns the milliseconds until END_NS (CLOCK_MONOTONIC) for poll(), rounded up: 0: it has passed;
 * -1: END_NS is UINT64_MAX; at most INT_MAX, some 24 days. */
int proc_ms_until(uint64_t end_ns);

/* Tells the CPU that the caller polls a word of another process. */
static inline void proc_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Returns the number of usable CPUs, at least 1; read once. */
unsigned proc_cpus(void);

/* Sets the sentence for an unreadable file PATH of /proc. Returns ERROR; ERR_UNSUPPORTED with the
 * remedy if /proc is not or only partly mounted. */
int proc_failed(int error, const char *path);

/* Called first in main(). Opens closed standard descriptors, so that no other file gets their
 * numbers; reading and writing them still fails. Clears the owner's bits of the umask: the program
 * must be able to reopen its files. Unblocks signals of faults: a growing file is a SIGBUS with a
 * handler (store/env/env_fault.c). */
void proc_begin(void);

/* For the library's written or locked files, in programs with closed standard descriptors that may
 * still print. Returns FD, or a copy above the standard ones and closes FD; -1 with errno, also if
 * FD is negative. */
int proc_above_standard(int fd);

/* Returns true if RLIMIT_FSIZE allows a file of SIZE. Beyond it SIGXFSZ would end a program using
 * the library (ours ignore it): the library asks first and reports -EFBIG. */
bool proc_may_write(uint64_t size);

/* For the library's long-lived files: moves FD to a number that open(2) does not pick, and returns
 * it. After closefrom(3) a program's new files get low numbers: the library's later close() hits
 * none of them. Under a low limit as proc_above_standard(). */
int proc_apart(int fd);

/* Writes the current path of an open file, with a NUL. Returns: 0; -ENAMETOOLONG; as
 * proc_failed(). */
int proc_path_of(int fd, char *path, size_t size);

/* Opens the directory DIRECTORY_FD/PATH, which is no link, for readdir(3). NULL: errno says why. */
DIR *proc_list(int directory_fd, const char *path);
/* For CLEANUP(). */
void proc_end_list(DIR **list);

/* Sets RET_ID to the id of this boot: 32 hex digits and a NUL. In builds with failpoints
 * $KINF_BOOT_ID replaces it, to simulate a reboot. Returns: 0; as proc_failed(); ERR_SYNTAX:
 * $KINF_BOOT_ID is no id. */
int proc_boot_id(char ret_id[33]);

struct proc_stat {
	char state;           /* 'D' waits for a disk, 'T' and 't' stopped, 'Z' and 'X' ended */
	uint64_t cpu_ticks;   /* CPU time used, in clock ticks */
	uint64_t start_ticks; /* start time, in clock ticks since boot */
};

/* Reads /proc/PID/stat, proc(5). Returns: 0; -ESRCH: there is no such process; ERR_UNSUPPORTED:
 * no /proc; a shortage (err_is_shortage). */
int proc_read_stat(int32_t pid, struct proc_stat *ret_stat);

struct proc_memory {
	uint64_t resident;  /* bytes in memory */
	uint64_t anonymous; /* those without a file: mapped files are the page cache's */
};

/* Reads /proc/PID/statm, proc(5). -ESRCH as above. */
int proc_read_memory(int32_t pid, struct proc_memory *ret_memory);

/* Sets RET_TICKS to the start of process PID, in clock ticks since boot: pid and ticks name one
 * process until the next boot. -ESRCH without one; a zombie counts as none. */
int proc_start_ticks(int32_t pid, uint64_t *ret_ticks);

/* A daemon needs about 45 with one feed. */
#define PROC_FILES_LEAST 64u

/* Raises the limit of open files to MOST, or as far as allowed. Returns: 0; -EMFILE: fewer than
 * PROC_FILES_LEAST are allowed. */
int proc_raise_files(unsigned most);

/* Fills DATA with SIZE random bytes from the kernel. */
int proc_random(void *data, uint32_t size);

#endif
