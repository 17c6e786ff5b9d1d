/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of killed writers. */
#include <sys/mman.h>

#include "common/bytes.h"
#include "store/pins/pin_page.h"
#include "tests/unit/env_rig.h"
#include "tests/unit/page_rig.h"

/* ---- commits that were killed inside ------------------------------------ */

/* The bytes of data.mdb after the last three commits, states 4, 5 and 6. */
struct states {
	size_t page, size;
	uint8_t *bytes[3];
	int fd;
	struct pin_page *pins; /* of the environment */
};

static struct states states_make(void)
{
	struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 16u << 20,
		.file_mode = 0600,
		.places = places_of()};
	struct states s = {.page = database_page()};
	struct stat st;

	(void)mkdir(scratch_path("e"), 0700);
	for (int i = 0; i < 5; i++) {
		struct env *env = NULL;

		OK(env_open(scratch_path("e"), &options, &env));
		put(env, "a", 10 + (size_t)i);
		env_close(&env);
		if (i < 2)
			continue;
		s.fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
		cr_assert(s.fd >= 0 && fstat(s.fd, &st) == 0);
		s.size = (size_t)st.st_size;
		s.bytes[i - 2] = malloc(s.size);
		cr_assert_eq(pread(s.fd, s.bytes[i - 2], s.size, 0), (ssize_t)s.size);
		cr_assert(i == 4 || close(s.fd) == 0);
	}
	AUTO_FD int pins = open(scratch_path("e/pins"), O_RDWR | O_CLOEXEC);
	s.pins = mmap(NULL, PIN_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pins, 0);
	cr_assert(s.pins != MAP_FAILED && s.pins->committed == 6);
	return s;
}

static void states_release(struct states *s)
{
	(void)munmap(s->pins, PIN_PAGE_BYTES);
	(void)close(s->fd);
	for (int i = 0; i < 3; i++)
		free(s->bytes[i]);
}

static size_t value_size(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 16u << 20,
		.file_mode = 0600,
		.places = places_of()};
	CLEANUP(env_close) struct env *env = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes value;

	OK(env_open(scratch_path(name), &options, &env));
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	return value.size;
}

/* Checks a file with state 6 whole or not begun, for any content of its meta page, and writes
 * another state. */
static void check_sound(bool is_whole, const char *text, size_t step)
{
	enum env_mode mode = access(scratch_path("e/pins"), F_OK) == 0 ? ENV_READ : ENV_COPY;
	int code;
	uint64_t newest = newest_of("e", mode, &code);

	cr_assert_eq(newest, is_whole ? 6 : 5, "%s, %zu: %d, %s", text, step, (int)newest,
		err_text(code));
	cr_assert_eq(value_size("e", ENV_WRITE), is_whole ? 14 : 13, "%s, %zu", text, step);
	struct env *env = open_env("e", ENV_WRITE);
	put(env, "a", 99);
	env_close(&env);
	cr_assert_eq(newest_or_damaged("e"), is_whole ? 7 : 6, "%s, %zu", text, step);
	cr_assert_eq(value_size("e", ENV_READ), 99);
}

struct store_step {
	uint8_t from, size;
};

/* The order in which a commit stores the parts of a meta page, in place. LMDB's source, and gcc's
 * code in Debian 12, where the table's root follows the number: a kill between them is damage. */
static const struct store_step as_written[] = {
	{32, 8}, {40, 48}, {88, 16}, {104, 16}, {120, 8}, {128, 8}, {136, 8}, {144, 8}};
static const struct store_step as_compiled[] = {
	{40, 16}, {32, 8}, {56, 16}, {72, 16}, {88, 16}, {104, 16}, {136, 8}, {144, 8}, {120, 16}};

static void kill_inside(struct states *s, const struct store_step *steps, size_t n, bool with_pins,
	const char *text)
{
	uint8_t *newest = s->bytes[2]; /* state 6 is in meta page 0 */

	cr_assert_eq(le64_get(newest + 144), 6);
	for (size_t done = 0; done <= n; done++) {
		uint8_t meta[152];
		bool has_root = false, has_number = false;

		memcpy(meta, s->bytes[0], sizeof(meta));
		for (size_t i = 0; i < done; i++) {
			memcpy(meta + steps[i].from, newest + steps[i].from, steps[i].size);
			has_root |= steps[i].from <= 128 && steps[i].from + steps[i].size > 128;
			has_number |= steps[i].from == 144;
		}
		cr_assert_eq(pwrite(s->fd, newest, s->size, 0), (ssize_t)s->size);
		cr_assert_eq(pwrite(s->fd, meta, sizeof(meta), 0), (ssize_t)sizeof(meta));
		if (with_pins) {
			s->pins->began = 6;
			s->pins->committed = 5;
		} else {
			(void)unlink(scratch_path("e/pins"));
		}
		if (has_number && !has_root)
			cr_assert_eq(open_code("e", ENV_WRITE), ERR_CORRUPT);
		else
			check_sound(has_root && has_number, text, done);
	}
}

Test(env_killed, a_commit_that_was_killed_inside_is_none_and_no_damage)
{
	CLEANUP(states_release) struct states s = states_make();

	kill_inside(&s, as_written, ARRAY_SIZE(as_written), true, "as written");
}

Test(env_killed, a_commit_that_was_killed_inside_is_none_whatever_the_compiler_made)
{
	CLEANUP(states_release) struct states s = states_make();

	kill_inside(&s, as_compiled, ARRAY_SIZE(as_compiled), true, "as compiled");
}

Test(env_killed, a_copy_of_a_commit_that_was_killed_inside_is_no_damage)
{
	CLEANUP(states_release) struct states s = states_make();

	kill_inside(&s, as_written, ARRAY_SIZE(as_written), false, "as written");
	kill_inside(&s, as_compiled, ARRAY_SIZE(as_compiled), false, "as compiled");
}

/* The killed commit's meta page stays until the next commit, but its pages are reused before. */
Test(env_killed, pages_of_a_killed_commit_that_are_used_again_are_no_damage)
{
	CLEANUP(states_release) struct states s = states_make();
	uint8_t *newest = s.bytes[2], number[8];
	size_t root = le64_get(newest + 128) * s.page,
	       root_5 = le64_get(newest + s.page + 128) * s.page;

	le64_put(number, 4);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(pwrite(s.fd, newest, s.size, 0), (ssize_t)s.size);
		cr_assert_eq(pwrite(s.fd, number, 8, 144), 8);
		uint8_t *page = malloc(s.page);
		memcpy(page, newest + root_5,
			s.page); /* a copy of 5's table, without its marker yet */
		memcpy(page, newest + root, 8);
		if (i == 1)
			memset(page, 0, s.page);
		if (i == 2)
			memset(page, 0xff, s.page);
		if (i < 3)
			cr_assert_eq(pwrite(s.fd, page, s.page, (off_t)root), (ssize_t)s.page);
		free(page);
		s.pins->began = i == 3 ? 5 : 6; /* 3: another writer has started */
		s.pins->committed = 5;
		check_sound(false, "used again", (size_t)i);
	}
}

/* After a power cut the pin page is of any age; and a data.mdb may have got the content of
 * another one. */
Test(env_killed, a_pin_page_of_any_age_makes_no_damage)
{
	CLEANUP(states_release) struct states s = states_make();

	for (uint64_t committed = 0; committed <= 8; committed++)
		for (uint64_t began = committed; began <= committed + 1; began++) {
			cr_assert_eq(pwrite(s.fd, s.bytes[2], s.size, 0), (ssize_t)s.size);
			s.pins->committed = committed;
			s.pins->began = began;
			cr_assert_eq(value_size("e", ENV_WRITE), 14, "committed %d, began %d",
				(int)committed, (int)began);
			(void)munmap(s.pins, PIN_PAGE_BYTES);
			int pins = open(scratch_path("e/pins"), O_RDWR | O_CLOEXEC);
			s.pins = mmap(
				NULL, PIN_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pins, 0);
			(void)close(pins);
			cr_assert_neq(s.pins, MAP_FAILED);
		}
}

/* The number looks like a killed commit's, but the pin page knows the commit as published. */
Test(env_killed, a_published_state_is_not_taken_for_a_killed_commit)
{
	CLEANUP(states_release) struct states s = states_make();
	uint8_t number[8];
	int code;

	le64_put(number, 4);
	cr_assert_eq(pwrite(s.fd, number, 8, 144), 8);
	cr_assert_eq(newest_of("e", ENV_READ, &code), 0);
	cr_assert_eq(code, ERR_CORRUPT);
	cr_assert_eq(newest_of("e", ENV_WRITE, &code), 0);
	cr_assert_eq(code, ERR_CORRUPT, "%s", err_text(code));
}
