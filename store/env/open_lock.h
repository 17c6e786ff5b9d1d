/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.lock: a file of each generation. Every process, writer or reader, holds its flock(2) while it is inside
 * mdb_env_open(). LMDB has a lock of its own there, but if a process is killed in it while another one waits for
 * it, the environment later loses commits (docs/architecture.md, LMDB). With open.lock no process ever waits for
 * LMDB's lock.
 *
 * A holder that is stopped (SIGSTOP, a frozen container) keeps open.lock for as long as it is stopped. Other
 * processes wait for a limited time and then get ERR_LOCKED, with a sentence that names the holder. The generation
 * is whole, and stays as it is.
 *
 * It is a flock(2), because a reader of the store's group may open this file for reading only, and fcntl(2) write
 * locks need more. A flock belongs to the open file, so a child that another thread forks meanwhile would hold it for
 * as long as the child lives. Three things prevent that: each forked child closes the descriptor (pthread_atfork), so
 * does execve(2) (O_CLOEXEC), and the holder releases the lock by LOCK_UN, which counts for all copies.
 */
#ifndef STORE_ENV_OPEN_LOCK_H
#define STORE_ENV_OPEN_LOCK_H

#include <stdint.h>

struct open_lock {
	int fd; /* -1: not held */
	struct open_lock *next;
};

#define OPEN_LOCK_INIT {.fd = -1}
#define OPEN_LOCK_FILE "open.lock"

/*
 * Takes the lock of the generation's directory GENERATION_FD, waiting for at most WAIT_NS. LOCK must stay where it
 * is until open_lock_release().
 * Returns: 0; ERR_LOCKED; -ENOENT: the generation was removed meanwhile.
 */
int open_lock_take(int generation_fd, uint64_t wait_ns, struct open_lock *lock);
void open_lock_release(struct open_lock *lock);

#endif
