/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of this process by fork(3). A child of clone(2) or _Fork(3), both without handlers, may
 * only execute a program, like one of vfork(2) or posix_spawn(3).
 */
#ifndef STORE_ENV_FORKS_H
#define STORE_ENV_FORKS_H

/* Registers handlers as pthread_atfork(3); each may be NULL. IN_CHILD makes the locks of its file
 * again: another thread of the parent may have held them. */
void forks_watch(void (*before)(void), void (*after)(void), void (*in_child)(void));

/* Returns the number of forks since the first forks_watch(). */
unsigned forks_count(void);

#endif
