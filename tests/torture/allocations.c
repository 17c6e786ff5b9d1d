/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets one allocation of a program fail. It is linked into a program by `ld --wrap`, so it sees
 * the calls of our own objects and none of the libraries'.
 *
 *	KINF_TORTURE_FAIL=N    the N-th allocation fails, counted from 1; 0: none
 *	KINF_TORTURE_NOTE=FILE gets "failed N ADDRESS" at the failure, "made N" at the end
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The functions of the C library; the linker (--wrap) gives them these names. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
/* Only programs with C++ in them have it. */
void *__real__ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) __attribute__((weak));
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_asprintf(char **ret_text, const char *format, ...);
void *__wrap__ZnwmRKSt9nothrow_t(size_t size, const void *nothrow);

static atomic_ulong allocations_made;
static unsigned long allocations_fail;

static void allocations_note(const char *what, unsigned long number, const void *place)
{
	const char *name = getenv("KINF_TORTURE_NOTE");
	int fd = name ? open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	(void)dprintf(fd, "%s %lu %#tx\n", what, number,
		place ? (intptr_t)place - (intptr_t)_r_debug.r_map->l_addr : 0);
	(void)close(fd);
}

static void __attribute__((destructor)) allocations_end(void)
{
	allocations_note("made", allocations_made, NULL);
}

static void __attribute__((constructor)) allocations_begin(void)
{
	const char *number = getenv("KINF_TORTURE_FAIL");

	allocations_fail = number ? strtoul(number, NULL, 10) : 0;
}

static bool allocations_is_over(const void *place)
{
	unsigned long number = atomic_fetch_add(&allocations_made, 1) + 1;

	if (number != allocations_fail)
		return false;
	allocations_note("failed", number, place);
	errno = ENOMEM;
	return true;
}

#define FAILS allocations_is_over(__builtin_return_address(0))

void *__wrap_malloc(size_t size)
{
	return FAILS ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return FAILS ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return FAILS ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return FAILS ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
	return FAILS ? NULL : __real_strndup(text, size);
}

int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list arguments;

	if (FAILS)
		return -1;
	va_start(arguments, format);
	int n = vasprintf(ret_text, format, arguments);
	va_end(arguments);
	return n;
}

void *__wrap__ZnwmRKSt9nothrow_t(size_t size, const void *nothrow)
{
	return FAILS ? NULL : __real__ZnwmRKSt9nothrow_t(size, nothrow);
}
