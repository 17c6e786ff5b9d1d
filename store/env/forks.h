/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of this process. One that fork(3) made is noticed at once, by pthread_atfork(3). One
 * that was made without its handlers, by _Fork(3) or clone(2), is noticed when it asks for the
 * number of forks: a page of memory that the kernel gives such a child as zeros
 * (MADV_WIPEONFORK) says so. If there are no such pages (Linux before 4.14, qemu-user), its
 * process id says so; this costs a system call each time, and misses a child that has the same
 * id in a PID namespace of its own. A child that shares its parent's memory, as vfork(2) and
 * posix_spawn(3) make them, can do nothing but execute a program.
 */
#ifndef STORE_ENV_FORKS_H
#define STORE_ENV_FORKS_H

/* BEFORE and AFTER run in the parent around fork(3), BEFORE in reverse order; they may be NULL.
 * IN_CHILD runs in each child before anything else of this library does. It makes the locks of
 * its file again: another thread of the parent may have held them. */
void forks_watch(void (*before)(void), void (*after)(void), void (*in_child)(void));

/* Returns how many forks lie between the process that called forks_watch() first and this one. */
unsigned forks_count(void);

/* Comes before a lock that IN_CHILD makes again. */
static inline void forks_look(void)
{
	(void)forks_count();
}

#endif
