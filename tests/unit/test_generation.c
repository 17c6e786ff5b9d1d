/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/generation.h"

#include <signal.h>
#include <sys/statvfs.h>

#include "store/env/state.h"
#include "store/pins/pin_page.h"
#include "tests/unit/rows.h"
#include "tests/unit/unit.h"

static const char *const databases[] = {"one"};
static const struct generation_kind kind = {.what = "journal",
	.remedy = "make another",
	.format = 7,
	.databases = databases,
	.n_databases = 1};
static struct pin_places places;
static const struct generation_options usual = {
	.map_bytes = 4u << 20, .file_mode = 0600, .places = &places};
static const uint8_t uuid[16] = {1, 2, 3, 0xff};

static int fd; /* of the directory with the generations */

static void open_folder(void)
{
	fd = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("pins"));
	cr_assert_eq(mkdir(places.path[0], 0700), 0);
}

static void close_folder(void)
{
	(void)close(fd);
}

TestSuite(generation, .init = open_folder, .fini = close_folder);

static struct generation *create(void)
{
	struct generation *gen = NULL;

	OK(generation_create(fd, &kind, &usual, uuid, &gen));
	return gen;
}

static void put(struct generation *gen, const char *key)
{
	struct txn *txn = NULL;

	cr_assert_eq(txn_begin_write(generation_env(gen), &txn), 0);
	cr_assert_eq(txn_put(txn, 0, bytes_str(key), BYTES_LIT("v"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
}

static uint64_t count(struct generation *gen)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint64_t n = 0;

	cr_assert_eq(txn_begin_read(generation_env(gen), &txn), 0);
	cr_assert_eq(count_rows(txn, 0, &n), 0);
	return n;
}

static int read_code(int in, uint32_t number, bool copy)
{
	CLEANUP(generation_close) struct generation *gen = NULL;
	int r = generation_open_read(in, &kind, number, copy ? NULL : &places, false, &gen);

	return r;
}

static int write_code(int in, uint32_t number)
{
	CLEANUP(generation_close) struct generation *gen = NULL;
	int r = generation_open_write(in, &kind, &usual, number, &gen);

	return r;
}

/* Writes and dies without closing: STATE stays dirty. */
static void die_dirty(const struct generation_options *options)
{
	pid_t child = fork();

	if (child == 0) {
		struct generation *gen = NULL;
		if (generation_open_write(fd, &kind, options, 1, &gen) == 0)
			put(gen, "dirty");
		(void)kill(getpid(), SIGKILL);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
}

static void other_boot(void)
{
	cr_assert_eq(setenv("KINF_BOOT_ID", "00000000000000000000000000000001", 1), 0);
}

Test(generation, current_names_what_was_published)
{
	uint32_t number = 0;

	cr_assert_eq(generation_current(fd, &number), NOT_FOUND);
	CLEANUP(generation_close) struct generation *gen = create();
	cr_assert_eq(generation_number(gen), 1);
	cr_assert_eq(generation_current(fd, &number), NOT_FOUND, "not before it is published");
	cr_assert_eq(generation_publish(fd, 1), 0);
	cr_assert_eq(generation_current(fd, &number), FOUND);
	cr_assert_eq(number, 1);
	CLEANUP(generation_close) struct generation *second = create();
	cr_assert_eq(generation_number(second), 2);
	cr_assert_eq(generation_publish(fd, 3), -ENOENT);
}

/* generation_current() refuses a directory, a pipe or a link of this name, and generation_publish()
 * replaces it. */
Test(generation, something_else_than_a_file_is_no_current)
{
	CLEANUP(generation_close) struct generation *gen = create();
	uint32_t number;

	for (int what = 0; what < 3; what++) {
		(void)unlinkat(fd, "CURRENT", 0);
		cr_assert_eq(what == 0   ? mkdirat(fd, "CURRENT", 0700)
			     : what == 1 ? mkfifoat(fd, "CURRENT", 0600)
					 : symlinkat("gen-1", fd, "CURRENT"),
			0);
		cr_expect_eq(generation_current(fd, &number), ERR_CORRUPT, "%d: %s", what,
			err_text(ERR_CORRUPT));
		cr_assert_eq(generation_publish(fd, 1), 0, "%d", what);
		cr_assert_eq(generation_current(fd, &number), FOUND);
		cr_expect_eq(number, 1);
	}
	(void)unlinkat(fd, "CURRENT", 0);
	cr_assert_eq(mkdirat(fd, "CURRENT", 0700), 0);
	cr_assert_eq(mkdirat(fd, "CURRENT/x", 0700), 0);
	cr_assert_eq(generation_publish(fd, 1), -ENOTEMPTY);
	cr_expect(strstr(err_text(-ENOTEMPTY),
			  "CURRENT is a directory with something in it: remove it"),
		"%s", err_text(-ENOTEMPTY));
}

Test(generation, clean_one_is_trusted_after_a_reboot)
{
	struct generation *gen = create();

	put(gen, "a");
	generation_close(&gen);
	other_boot();
	cr_assert_eq(generation_open_read(fd, &kind, 1, &places, false, &gen), 0);
	cr_assert_eq(count(gen), 1);
	cr_assert_arr_eq(generation_uuid(gen), uuid, 16);
	generation_close(&gen);
	cr_assert_eq(generation_open_write(fd, &kind, &usual, 1, &gen), 0);
	put(gen, "b");
	generation_close(&gen);
	cr_assert_eq(read_code(fd, 1, true), 0);
}

Test(generation, killed_writer_is_trusted_in_the_same_boot_only)
{
	struct generation *gen = create();

	generation_close(&gen);
	die_dirty(&usual);
	cr_assert_eq(generation_open_read(fd, &kind, 1, &places, false, &gen), 0);
	cr_assert_eq(count(gen), 1);
	generation_close(&gen);
	other_boot();
	cr_assert_eq(read_code(fd, 1, false), ERR_UNTRUSTED);
	cr_assert_eq(write_code(fd, 1), ERR_UNTRUSTED);
	cr_assert_eq(write_code(fd, 1), ERR_UNTRUSTED, "opening did not make it clean");
	cr_assert(strstr(err_text(ERR_UNTRUSTED), "journal generation 1"));
}

/* No descriptor was left to read the boot's id: the journal was given up, and everything listed
 * again. */
Test(generation, a_boot_id_that_cannot_be_read_says_nothing_of_the_data)
{
	struct generation *gen = create();

	generation_close(&gen);
	die_dirty(&usual);
	cr_assert_eq(setenv("KINF_BOOT_ID", "no id", 1), 0);
	cr_assert_eq(read_code(fd, 1, false), ERR_SYNTAX);
	cr_assert_eq(write_code(fd, 1), ERR_SYNTAX);
	cr_assert_eq(unsetenv("KINF_BOOT_ID"), 0);
	cr_assert_eq(read_code(fd, 1, false), 0);
	cr_assert_eq(write_code(fd, 1), 0);
	/* A clean generation is not marked with an invalid id. */
	cr_assert_eq(setenv("KINF_BOOT_ID", "no id", 1), 0);
	cr_assert_eq(write_code(fd, 1), ERR_SYNTAX);
	cr_assert_eq(unsetenv("KINF_BOOT_ID"), 0);
	cr_assert_eq(read_code(fd, 1, false), 0);
}

Test(generation, durable_one_is_trusted_after_a_power_cut)
{
	struct generation_options durable = usual;
	struct generation *gen = create();

	durable.durable = true;
	generation_close(&gen);
	die_dirty(&durable);
	other_boot();
	cr_assert_eq(write_code(fd, 1), 0);
}

Test(generation, durable_run_after_a_killed_one_makes_it_durable)
{
	struct generation_options durable = usual;
	struct generation *gen = create();

	durable.durable = true;
	generation_close(&gen);
	die_dirty(&usual);
	die_dirty(&durable);
	other_boot();
	cr_assert_eq(read_code(fd, 1, false), 0);
}

Test(generation, copy_of_a_killed_one_is_opened_by_those_who_check_it)
{
	struct generation *gen = create();

	put(gen, "a");
	generation_close(&gen);
	die_dirty(&usual);
	cr_assert_eq(mkdir(scratch_path("copy"), 0700), 0);
	scratch_copy(scratch_path("gen-1"), scratch_path("copy"));
	AUTO_FD int copy = open(scratch_path("copy"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(read_code(copy, 1, true), ERR_UNTRUSTED);
	cr_assert(strstr(err_text(ERR_UNTRUSTED), "killed"));
	struct generation *unchecked = NULL;
	cr_assert_eq(generation_open_read(copy, &kind, 1, &places, true, &unchecked), 0);
	cr_assert(generation_is_untrusted(unchecked));
	cr_assert_geq(count(unchecked), 1);
	generation_close(&unchecked);
	cr_assert_eq(write_code(copy, 1), ERR_UNTRUSTED);
	cr_assert_eq(write_code(fd, 1), 0);
	cr_assert_eq(mkdir(scratch_path("good"), 0700), 0);
	scratch_copy(scratch_path("gen-1"), scratch_path("good"));
	AUTO_FD int good = open(scratch_path("good"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(read_code(good, 1, true), 0);
}

/* The file has the same inode in a snapshot or an image of its file system mounted elsewhere. */
Test(generation, one_of_a_killed_writer_on_another_device_is_a_copy)
{
	struct generation *gen = create();
	char text[1024] = "";

	generation_close(&gen);
	die_dirty(&usual);
	cr_assert_eq(read_code(fd, 1, false), 0);
	FILE *file = fopen(scratch_path("gen-1/STATE"), "r");
	(void)fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	char *device = strstr(text, "device ");
	cr_assert(device);
	(void)snprintf(device, 16, "device 1\n");
	scratch_write(scratch_path("gen-1/STATE"), text);
	cr_assert_eq(read_code(fd, 1, false), ERR_UNTRUSTED);
	cr_assert_eq(write_code(fd, 1), ERR_UNTRUSTED);
}

Test(generation, other_format_is_told)
{
	struct generation_kind newer = kind;
	struct generation *gen = create();

	newer.format = 8;
	generation_close(&gen);
	cr_assert_eq(generation_open_read(fd, &newer, 1, &places, false, &gen), ERR_FORMAT);
	cr_assert_eq(generation_open_write(fd, &newer, &usual, 1, &gen), ERR_FORMAT);
}

Test(generation, one_in_which_a_daemon_met_damage_is_given_up_by_its_writer_and_read)
{
	struct generation *gen = create();

	generation_close(&gen);
	AUTO_FD int own = open(scratch_path("gen-1"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(write_code(fd, 1), 0);
	cr_assert_eq(damaged_note(own, "an assertion"), 0);
	cr_assert_eq(write_code(fd, 1), ERR_CORRUPT);
	cr_assert_eq(read_code(fd, 1, false), 0);
}

Test(generation, damaged_state_is_told)
{
	struct generation *gen = create();
	char good[1024] = "";

	generation_close(&gen);
	FILE *file = fopen(scratch_path("gen-1/STATE"), "r");
	size_t size = fread(good, 1, sizeof(good) - 1, file);
	(void)fclose(file);
	for (size_t cut = 0; cut + 1 < size; cut++) {
		char text[1024];
		memcpy(text, good, cut);
		text[cut] = '\0';
		scratch_write(scratch_path("gen-1/STATE"), text);
		cr_assert_eq(read_code(fd, 1, false), ERR_CORRUPT, "cut at %zu of %zu", cut, size);
	}
	scratch_write(scratch_path("gen-1/STATE"), "kinf-generation 2\n");
	cr_assert_eq(read_code(fd, 1, false), ERR_FORMAT);
	scratch_write(scratch_path("gen-1/STATE"), good);
	cr_assert_eq(read_code(fd, 1, false), 0);
	cr_assert_eq(unlink(scratch_path("gen-1/STATE")), 0);
	cr_assert_eq(read_code(fd, 1, false), -ENOENT);
}

Test(generation, found_by_uuid_current_first)
{
	uint8_t other[16] = {9};
	struct generation *a = create(), *b = create(), *c = NULL;
	uint32_t number = 0;

	cr_assert_eq(generation_create(fd, &kind, &usual, other, &c), 0);
	cr_assert_eq(generation_publish(fd, 1), 0);
	cr_assert_eq(generation_find(fd, uuid, &number), FOUND);
	cr_assert_eq(number, 1);
	cr_assert_eq(generation_find(fd, other, &number), FOUND);
	cr_assert_eq(number, 3);
	other[0] = 8;
	cr_assert_eq(generation_find(fd, other, &number), NOT_FOUND);
	generation_close(&a);
	generation_close(&b);
	generation_close(&c);
}

Test(generation, others_are_removed_and_mapped_readers_go_on)
{
	CLEANUP(generation_close) struct generation *a = create(), *b = create(), *c = create();

	put(a, "a");
	cr_assert_eq(generation_remove_except(fd, (uint32_t[]){1, 2}, 2, NULL), 1);
	cr_assert_eq(generation_remove_except(fd, (uint32_t[]){2}, 1, NULL), 1);
	cr_assert_eq(count(a), 1);
	cr_assert_eq(read_code(fd, 1, false), -ENOENT);
	cr_assert_neq(access(scratch_path("gen-1"), F_OK), 0);
	cr_assert_eq(access(scratch_path("gen-2"), F_OK), 0);
	generation_close(&a);
	generation_close(&b);
	generation_close(&c);
	a = create();
	cr_assert_eq(generation_number(a), 3);
}

Test(generation, failed_creation_leaves_nothing)
{
	struct generation_options tiny = usual;
	struct generation *gen = NULL;

	tiny.map_bytes = 4096; /* not even the two meta pages and the databases */
	cr_assert_lt(generation_create(fd, &kind, &tiny, uuid, &gen), 0);
	cr_assert_neq(access(scratch_path("gen-1"), F_OK), 0);
}

Test(generation, another_one_needs_a_fifth_more_than_is_live)
{
	struct statvfs disk;
	CLEANUP(generation_close) struct generation *gen = create();

	cr_assert_eq(fstatvfs(fd, &disk), 0);
	uint64_t room = (uint64_t)disk.f_bfree * disk.f_frsize;
	cr_assert_eq(generation_require_room(fd, "index", 0), 0);
	OK(generation_require_room(fd, "index", room / 2));
	cr_assert_eq(generation_require_room(fd, "index", room), -ENOSPC);
	/* The next step depends on the caller: a compaction is not begun again. */
	cr_assert(strstr(err_text(-ENOSPC), "are free: make room there"), "%s", err_text(-ENOSPC));
	cr_assert_not(strstr(err_text(-ENOSPC), "restart"), "%s", err_text(-ENOSPC));
	cr_assert(strstr(err_text(-ENOSPC), "a second index needs"));
	cr_assert_gt(generation_bytes_on_disk(fd, 1), 0);
	cr_assert_eq(generation_bytes_on_disk(fd, 9), 0);
}
