/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding by scope. A destructor takes T **, accepts NULL and half-built objects, and sets the
 * caller's pointer to NULL. CLEANUP names it directly:
 *
 *	CLEANUP(ring_close) struct ring *ring = NULL;
 *	...
 *	*ret_ring = TAKE(ring);
 *	return 0;
 */
#ifndef COMMON_CLEANUP_H
#define COMMON_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

/* Moves a pointer out of P, which becomes NULL. */
#define TAKE(p) \
	({ \
		__typeof__(p) taken_ = (p); \
		(p) = NULL; \
		taken_; \
	})

/* Moves a file descriptor out of FD, which becomes -1. */
#define TAKE_FD(fd) \
	({ \
		int taken_fd_ = (fd); \
		(fd) = -1; \
		taken_fd_; \
	})

static inline void cleanup_free(void *pointer_to_pointer)
{
	void **p = (void **)pointer_to_pointer;

	free(*p);
	*p = NULL;
}

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* an error here has no remedy */
	*fd = -1;
}

#define AUTO_FREE CLEANUP(cleanup_free)
#define AUTO_FD   CLEANUP(cleanup_fd)

#endif
