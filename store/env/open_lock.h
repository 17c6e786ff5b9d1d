/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.lock: a generation's file whose flock(2) a process holds while it is inside mdb_env_open(), readers
 * included. A process that is killed there, while another one waits for LMDB's own lock, would leave an
 * environment that loses commits (store/README.md, What if it dies here); so nobody ever waits for that one.
 *
 * A holder that is stopped (SIGSTOP, a frozen container) keeps the lock for as long as it is stopped. Everybody
 * else waits for a limited time and then gets ERR_LOCKED with a sentence that names the holder; the
 * generation is whole, and stays as it is.
 *
 * flock(2), because a reader of the store's group may open this file for reading only, which fcntl(2) locks do not
 * accept. It belongs to the open file, which a child that is forked meanwhile, by another thread, would share and
 * hold for as long as it lives. So the descriptor is closed in each forked child (pthread_atfork), by O_CLOEXEC in
 * each program that is executed, and the lock is given back by LOCK_UN, which holds for all copies.
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
