/* SPDX-License-Identifier: Apache-2.0 */
/* Environments made on a machine with another page size. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/unit/env_rig.h"

static long claimed; /* to LMDB: the size of the machine's pages; 0: the real one */

/* Takes the place of the C library's function. */
__attribute__((visibility("default"))) long sysconf(int name)
{
	static long (*real)(int);

	Dl_info caller;

	if (name == _SC_PAGESIZE && claimed && dladdr(__builtin_return_address(0), &caller) &&
		strstr(caller.dli_fname, "liblmdb"))
		return claimed;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

#define KEYS      20
#define MAP_BYTES (3u << 19) /* Linux puts maps from 2 MiB on at multiples of 2 MiB */

static size_t size_of(int i)
{
	return i % 4 ? 100 : 50000;
}

/* Returns the error of opening it. */
static int write_keys(bool writemap)
{
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = MAP_BYTES,
		.file_mode = 0600,
		.writemap = writemap,
		.places = places_of()};
	CLEANUP(env_close) struct env *env = NULL;
	char key[8];

	(void)mkdir(scratch_path("e"), 0700); /* is there the second time */
	int r = env_open(scratch_path("e"), &options, &env);
	for (int i = 0; i < KEYS && r == 0; i++) {
		(void)snprintf(key, sizeof(key), "%02d", i);
		put(env, key, size_of(i));
		env_prepare(env);
	}
	return r;
}

/* Makes the environment in another process. LMDB believes the machine's pages to have PAGE bytes
 * there. */
static void write_with_pages_of(long page)
{
	cr_assert_not_null(places_of());
	pid_t writer = fork();
	int status;

	if (writer == 0) {
		claimed = page;
		_exit(write_keys(false) < 0);
	}
	cr_assert(waitpid(writer, &status, 0) == writer && status == 0);
}

static void check_once(size_t page)
{
	CLEANUP(env_close) struct env *env = open_env("e", ENV_READ);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes value, same;
	uint64_t place;
	char key[8];

	cr_assert_eq(env_page_size(env), page);
	OK(env_check(env));
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "%02d", i);
		cr_assert_eq(txn_get(txn, 0, bytes_str(key), &value), FOUND);
		cr_assert(value.size == size_of(i) &&
				  ((const char *)value.data)[value.size - 1] == key[0],
			"%s", key);
		if (value.size == 100)
			continue;
		cr_assert_eq(txn_place(txn, value, &place), FOUND, "%s", key);
		cr_assert_eq(place % page, 16);
		cr_assert(txn_at(txn, place, value.size, &same) == FOUND && same.data == value.data,
			"%s", key);
	}
}

/* Checks it with maps at several addresses, not only multiples of its page size. */
static void check_keys(size_t page)
{
	for (int i = 0; i < 9; i++) {
		check_once(page);
		cr_assert_neq(mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			MAP_FAILED);
	}
}

Test(env_pages, a_file_of_a_machine_with_larger_pages_is_read_and_written)
{
	write_with_pages_of(32768);
	check_keys(32768);
	OK(write_keys(true));
	check_keys(32768);
}

Test(env_pages, a_file_of_a_machine_with_smaller_pages_is_read_and_written)
{
	size_t page = sysconf(_SC_PAGESIZE) > 4096 ? 4096 : 2048;

	write_with_pages_of((long)page);
	check_keys(page);
	OK(write_keys(true));
	check_keys(page);
}
