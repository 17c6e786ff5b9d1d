/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into a program (LD_PRELOAD): the machine seems to have pages of $KINF_TORTURE_PAGE bytes,
 * a multiple of the real page size. sysconf() and getpagesize() return it, a new map begins at a
 * multiple of it, and a call with an unaligned address or offset fails as the kernel's would. LMDB
 * then makes databases with pages of this size, up to 32 KiB.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The build hides all symbols; these take the place of libc's. */
#pragma GCC visibility push(default)

static uintptr_t pages_size(void)
{
	static uintptr_t size;

	if (!size) {
		const char *text = getenv("KINF_TORTURE_PAGE");
		size = text ? strtoul(text, NULL, 10) : 4096;
	}
	return size;
}

static int pages_fail(void)
{
	errno = EINVAL;
	return -1;
}

long sysconf(int name)
{
	static long (*real)(int);

	Dl_info caller;

	/* Criterion changes the protection of its program's real pages. */
	if (name == _SC_PAGESIZE && (!dladdr(__builtin_return_address(0), &caller) ||
					    !strstr(caller.dli_fname, "criterion")))
		return (long)pages_size();
	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

int getpagesize(void)
{
	return (int)pages_size();
}

static void *pages_map(void *at, size_t n, int protection, int flags, int fd, off_t from)
{
	return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, from);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from)
{
	uintptr_t page = pages_size(), rest = page - 1;

	if ((from & (off_t)rest) || ((flags & MAP_FIXED) && ((uintptr_t)at & rest))) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (at) /* fixed, or a hint */
		return pages_map(at, n, protection, flags, fd, from);
	/* A larger place with an aligned address inside; the rest around it is given back. */
	uint8_t *place = pages_map(
		NULL, n + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (place == MAP_FAILED)
		return MAP_FAILED;
	uint8_t *start = (uint8_t *)(((uintptr_t)place + rest) & ~rest);
	void *mapped = pages_map(start, n, protection, flags | MAP_FIXED, fd, from);
	int error = errno;
	uint8_t *end = (uint8_t *)(((uintptr_t)start + n + 4095) & ~(uintptr_t)4095);
	if (mapped == MAP_FAILED)
		end = start;
	if (start > place)
		(void)syscall(SYS_munmap, place, (size_t)(start - place));
	if (place + n + page > end)
		(void)syscall(SYS_munmap, end, (size_t)(place + n + page - end));
	errno = error;
	return mapped;
}

#define ALIGNED(at) (((uintptr_t)(at) & (pages_size() - 1)) == 0)

int munmap(void *at, size_t n)
{
	return ALIGNED(at) ? (int)syscall(SYS_munmap, at, n) : pages_fail();
}

int msync(void *at, size_t n, int flags)
{
	return ALIGNED(at) ? (int)syscall(SYS_msync, at, n, flags) : pages_fail();
}

int madvise(void *at, size_t n, int advice)
{
	return ALIGNED(at) ? (int)syscall(SYS_madvise, at, n, advice) : pages_fail();
}
