/* SPDX-License-Identifier: Apache-2.0 */
/* Environments: transactions, cursors, places, several handles and processes. */
#include <inttypes.h>
#include <sys/mman.h>

#include "tests/unit/env_rig.h"
#include "tests/unit/rows.h"

static struct env *env;
static struct txn *txn;

static void set_up(void)
{
	env = open_env("e", ENV_WRITE);
}

static void tear_down(void)
{
	txn_abort(&txn);
	env_close(&env);
}

TestSuite(env, .init = set_up, .fini = tear_down);
/* They open their environments in other ways. */
TestSuite(envs, .fini = tear_down);

Test(env, what_is_committed_is_read)
{
	struct bytes value;
	uint64_t n;

	put(env, "a", 10);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("aaaaaaaaaa")));
	cr_assert_eq(txn_get(txn, 1, BYTES_LIT("a"), &value), NOT_FOUND);
	cr_assert_eq(count_rows(txn, 0, &n), 0);
	cr_assert_eq(n, 1);
	put(env, "b", 10);
	cr_assert_eq(
		txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND, "a snapshot stays as it is");
	cr_assert_eq(txn_renew(txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), FOUND);
	txn_abort(&txn);
	env_close(&env);
	cr_assert_null(env);
}

Test(env, first_error_sticks_and_commit_aborts)
{
	struct bytes value;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("b"), BYTES_LIT("1"), TXN_APPEND), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("a"), BYTES_LIT("1"), TXN_APPEND), ERR_CORRUPT);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("c"), BYTES_LIT("1"), 0), ERR_CORRUPT);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), ERR_CORRUPT);
	cr_assert_eq(txn_commit(&txn), ERR_CORRUPT);
	cr_assert_null(txn);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND);
}

Test(env, full_map_is_an_error_and_reading_goes_on)
{
	struct bytes value;

	void *place;

	put(env, "a", 10);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, BYTES_LIT("b"), 20u << 20, 0, &place), ERR_MAP_FULL);
	cr_assert_eq(txn_commit(&txn), ERR_MAP_FULL);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
}

Test(env, cursor_deletes_and_goes_on)
{
	struct cursor *cursor = NULL;
	struct bytes key, value;
	char text[16];
	uint64_t n;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "%06d", i);
		cr_assert_eq(txn_put(txn, 0, bytes_str(text), bytes_str(text), TXN_APPEND), 0);
	}
	cr_assert_eq(cursor_open(txn, 0, &cursor), 0);
	int seen = 0;
	for (int r = cursor_seek(cursor, BYTES_LIT("001000"), &key, &value); r == FOUND;
		r = cursor_next(cursor, &key, &value), seen++) {
		(void)snprintf(text, sizeof(text), "%06d", 1000 + seen);
		cr_assert(bytes_equal(key, bytes_str(text)), "at %d", seen);
		cr_assert_eq(cursor_del(cursor), 0);
	}
	cr_assert_eq(seen, 4000);
	cr_assert_eq(count_rows(txn, 0, &n), 0);
	cr_assert_eq(n, 1000);
	cr_assert_eq(cursor_last(cursor, &key, &value), FOUND);
	cr_assert(bytes_equal(key, BYTES_LIT("000999")));
	cr_assert_eq(cursor_put(cursor, BYTES_LIT("000999"), BYTES_LIT("x"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	cursor_close(&cursor); /* after its transaction: LMDB has freed its part */
}

Test(env, closing_the_first_of_two_write_cursors)
{
	struct cursor *a = NULL, *b = NULL;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(cursor_open(txn, 0, &a), 0);
	cr_assert_eq(cursor_open(txn, 1, &b), 0);
	cursor_close(&a);
	txn_abort(&txn);
	cursor_close(&b);
}

Test(env, large_values_have_a_place_and_small_ones_none)
{
	struct bytes value, again;
	uint64_t place = 0;

	put(env, "small", 100);
	put(env, "large", 2 * env_page_size(env) + 800);
	put(env, "medium", env_page_size(env) * 5 / 8);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("small"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), NOT_FOUND);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("medium"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), FOUND);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("large"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), FOUND);
	cr_assert_eq(txn_at(txn, place, value.size, &again), FOUND);
	cr_assert_eq(again.data, value.data);
	txn_abort(&txn);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("large"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), NOT_FOUND);
}

Test(env, places_outside_the_file_are_refused)
{
	struct bytes value;
	struct stat st;

	const uint64_t page = env_page_size(env);
	put(env, "large", 2 * page + 800);
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_at(txn, 17, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size + 16, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size - page + 16, page, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, UINT64_MAX - (page - 1) + 16, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, page + 16, SIZE_MAX, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size - page + 16, page - 16, &value), FOUND);
}

Test(envs, reader_and_writer_of_one_process_share_the_map)
{
	CLEANUP(env_close) struct env *writer = open_env("e", ENV_WRITE);
	CLEANUP(env_close) struct env *reader = open_env("e", ENV_READ);

	put(writer, "a", 1);
	cr_assert_eq(txn_begin_read(reader, &txn), 0);
	env_close(&writer);
	struct bytes value;
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	writer = open_env("e", ENV_WRITE);
	put(writer, "b", 1);
	cr_assert_eq(env_clean_pins(writer), 0, "the live one keeps its slot");
	txn_abort(&txn);
}

Test(envs, no_descriptor_is_left_open_in_a_program_that_is_started)
{
	bool before[256];

	for (int fd = 0; fd < 256; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	CLEANUP(env_close) struct env *writer = open_env("e", ENV_WRITE), *reader = NULL;
	put(writer, "a", 1);
	env_close(&writer);
	reader = open_env("e", ENV_READ);
	writer = open_env("other", ENV_WRITE);
	int opened = 0;
	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (before[fd] || flags < 0)
			continue;
		cr_assert(flags & FD_CLOEXEC, "descriptor %d", fd);
		opened++;
	}
	cr_assert_geq(opened, 2, "both data.mdb");
}

Test(envs, second_writer_of_one_process_is_refused)
{
	CLEANUP(env_close) struct env *writer = open_env("e", ENV_WRITE), *second = NULL;
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 16u << 20,
		.file_mode = 0600};

	cr_assert_eq(env_open(scratch_path("e"), &options, &second), ERR_LOCKED);
	cr_assert_null(second);
}

Test(env, child_is_told_to_open_its_own)
{
	put(env, "a", 1);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	pid_t child = fork();
	if (child == 0) {
		struct txn *other = NULL;
		bool good = txn_renew(txn) == ERR_FORKED &&
			    txn_begin_read(env, &other) == ERR_FORKED &&
			    txn_begin_write(env, &other) == ERR_FORKED;
		txn_abort(&txn);
		env_close(&env);
		struct env_options options = {.mode = ENV_READ,
			.databases = databases,
			.n_databases = 2,
			.places = places_of()};
		good = good && env_open(scratch_path("e"), &options, &env) == 0 &&
		       txn_begin_read(env, &txn) == 0;
		_exit(good ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	/* The child was not able to take our slot away; its own is cleared. */
	cr_assert_eq(env_clean_pins(env), 1);
	put(env, "b", 1);
}

Test(envs, a_map_of_any_size_is_opened_again)
{
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = (16u << 20) + 1,
		.file_mode = 0600,
		.places = places_of()};

	(void)mkdir(scratch_path("e"), 0700);
	for (int i = 0; i < 2; i++) {
		OK(env_open(scratch_path("e"), &options, &env));
		put(env, "a", 10);
		env_close(&env);
	}
	cr_assert_eq(newest_or_damaged("e"), 3);
}

Test(envs, a_lower_size_of_the_map_is_that_of_the_next_readers_also)
{
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 64u << 20,
		.file_mode = 0600,
		.places = places_of()};
	const uint64_t sizes[] = {64u << 20, 32u << 20, 16u << 20, 24u << 20};
	struct env_info info;

	(void)mkdir(scratch_path("e"), 0700);
	for (size_t i = 0; i < 4; i++) {
		options.map_bytes = sizes[i];
		OK(env_open(scratch_path("e"), &options, &env));
		if (i != 2) /* this one is full */
			put(env, i ? "a" : "b", i ? 1000 : 20u << 20);
		env_close(&env);
		env = open_env("e", ENV_READ);
		cr_assert_eq(env_info(env, &info), 0);
		cr_assert(i == 2 ? info.map_bytes >= info.file_bytes && info.map_bytes < 24u << 20
				 : info.map_bytes == sizes[i],
			"%zu: %" PRIu64, i, info.map_bytes);
		env_close(&env);
	}
}

Test(env, copy_is_read_without_lock)
{
	put(env, "a", 1);
	env_close(&env);
	cr_assert_eq(unlink(scratch_path("e/lock.mdb")), 0);
	env = open_env("e", ENV_COPY);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_neq(access(scratch_path("e/lock.mdb"), F_OK), 0, "nothing was written");
}

Test(env, used_bytes_do_not_count_free_pages)
{
	struct env_info before, full, after;

	cr_assert_eq(env_info(env, &before), 0);
	put(env, "a", 1u << 20);
	cr_assert_eq(env_info(env, &full), 0);
	cr_assert_geq(full.used_bytes, before.used_bytes + (1u << 20));
	cr_assert_eq(full.map_bytes, 16u << 20);
	cr_assert_gt(full.last_txn, before.last_txn);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_del(txn, 0, BYTES_LIT("a")), FOUND);
	cr_assert_eq(txn_del(txn, 0, BYTES_LIT("a")), NOT_FOUND);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_eq(env_info(env, &after), 0);
	cr_assert_lt(after.used_bytes, before.used_bytes + 5 * env_page_size(env));
	cr_assert_geq(after.file_bytes, full.file_bytes);
}

/* A daemon ends after its store was removed and another one was made at the same path. */
Test(envs, closing_touches_no_other_file_that_has_the_path_now)
{
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 64u << 20,
		.file_mode = 0600,
		.writemap = true};
	char path[512], moved[512];
	struct env *old = NULL, *new = NULL;
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", scratch_path("w"));
	(void)snprintf(moved, sizeof(moved), "%s", scratch_path("away"));
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(env_open(path, &options, &old), 0);
	cr_assert_eq(rename(path, moved), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(env_open(path, &options, &new), 0);
	put(new, "a", 1u << 20);
	env_close(&old);
	cr_assert_eq(stat(scratch_path("w/data.mdb"), &st), 0);
	cr_assert_geq(st.st_size, 1 << 20, "of %lld bytes", (long long)st.st_size);
	put(new, "b", 1u << 20);
	env_close(&new);
	cr_assert_eq(stat(scratch_path("away/data.mdb"), &st), 0);
	cr_assert_leq(st.st_size, 1 << 20, "its own is cut");
}

/* Returns whether the kernel reads single pages of the map of e/data.mdb (flag rr); true if no map
 * has flags (qemu). */
static bool is_read_by_page(void)
{
	void *probe = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[4096 + 128], path[4096];
	bool here = false, probed = false, told = false, found = false;
	unsigned long begin, end;

	cr_assert(probe != MAP_FAILED && madvise(probe, 1 << 16, MADV_RANDOM) == 0);
	(void)snprintf(path, sizeof(path), "%s", scratch_path("e/data.mdb"));
	while (maps && fgets(line, sizeof(line), maps)) {
		bool is_random = strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " rr");
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
			here = strstr(line, path) != NULL;
			probed = begin <= (uintptr_t)probe && (uintptr_t)probe < end;
		}
		told |= is_random && probed;
		found |= is_random && here;
	}
	if (maps)
		(void)fclose(maps);
	(void)munmap(probe, 1 << 16);
	return found || !told;
}

Test(env, readers_of_a_larger_map_open_the_file_again)
{
	struct env *reader = NULL;
	int ready[2], go[2];
	char byte;

	put(env, "a", 1u << 20);
	env_close(&env);
	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(go), 0);
	pid_t child = fork();
	if (child == 0) {
		struct txn *other = NULL, *again = NULL;
		struct bytes value;
		reader = open_env("e", ENV_READ);
		bool good =
			txn_begin_read(reader, &txn) == 0 && txn_begin_read(reader, &other) == 0;
		good = good && write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1;
		good = good && !env_is_outdated(reader) && txn_renew(txn) == ERR_SNAPSHOT_EXPIRED &&
		       env_is_outdated(reader) &&
		       txn_get(other, 0, BYTES_LIT("a"), &value) == FOUND && value.size == 1u << 20;
		reader = open_env("e", ENV_READ);
		env_expect_random(reader, true);
		good = good && is_read_by_page() && txn_begin_read(reader, &again) == 0 &&
		       txn_get(again, 0, BYTES_LIT("b"), &value) == FOUND &&
		       value.size == 30u << 20;
		_exit(good ? 0 : 1);
	}
	cr_assert_eq(close(ready[1]), 0); /* reading ends with the child */
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 64u << 20,
		.file_mode = 0600};
	cr_assert_eq(env_open(scratch_path("e"), &options, &env), 0);
	put(env, "b", 30u << 20);
	cr_assert_eq(write(go[1], "g", 1), 1);
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}
