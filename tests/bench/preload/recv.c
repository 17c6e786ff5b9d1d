/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library loaded before libcurl. It notes the times of the API server's bytes and of their
 * decryption by OpenSSL (tests/bench/stamp.h), without code in the measured program.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/stamp.h"

static struct stamp *stamp;

__attribute__((constructor)) static void map_stamp(void)
{
	const char *path = getenv(STAMP_FILE_VARIABLE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	void *page = mmap(NULL, sizeof(*stamp), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED)
		stamp = page;
	(void)close(fd); /* the mapping stays */
}

static uint64_t stamp_now(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_MONOTONIC, &now) == 0
		       ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec
		       : 0;
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *to, size_t size, int flags)
{
	ssize_t n = syscall(SYS_recvfrom, fd, to, size, flags, NULL, NULL);

	/* The API server's bytes only: libcurl sets no flags. The doorbell sets MSG_DONTWAIT,
	 * and its bytes come after the event was published. */
	if (n > 0 && flags == 0 && stamp)
		stamp->read_ns = stamp_now();
	return n;
}

/* libcurl calls it; the declaration is OpenSSL's, without its headers for one pointer. */
int SSL_read(void *ssl, void *to, int size);

__attribute__((visibility("default"))) int SSL_read(void *ssl, void *to, int size)
{
	static int (*next)(void *, void *, int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "SSL_read");
	int n = next ? next(ssl, to, size) : -1;
	if (n > 0 && stamp)
		stamp->decrypted_ns = stamp_now();
	return n;
}
