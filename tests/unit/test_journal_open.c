/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal.h"

#include <signal.h>

#include "store/env/generation.h"
#include "store/pins/pin_page.h"
#include "tests/unit/journal_rig.h"

TestSuite(journal, .init = set_up, .fini = tear_down);

Test(journal, kill_after_commit_loses_nothing_and_before_it_everything)
{
	journal_close(&j);
	pid_t child = fork();
	if (child == 0) {
		open_writer();
		append(feed, RECORD_ADDED, "kept");
		if (journal_commit(j) == 0)
			append(feed, RECORD_ADDED, "lost");
		(void)kill(getpid(), SIGKILL);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	char reason[256];
	cr_assert_eq(journal_open_write(home, &small, reason, &j), 0);
	cr_assert_str_eq(reason, "");
	struct head head;
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("kept"), &head), FOUND);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("lost"), &head), NOT_FOUND);
}

/* Else a starting processor would wait for a journal for as long as the reflector lives. */
Test(journal, its_writer_notices_that_it_is_named_no_more)
{
	cr_assert_eq(journal_check(j, home), 0);
	cr_assert_eq(rename(scratch_path("store/journal/CURRENT"), scratch_path("CURRENT")), 0);
	cr_assert_eq(journal_check(j, home), ERR_MOVED);
	cr_assert(
		strstr(err_text(ERR_MOVED), "'CURRENT' of the journal"), "%s", err_text(ERR_MOVED));
	cr_assert_eq(rename(scratch_path("CURRENT"), scratch_path("store/journal/CURRENT")), 0);
	cr_assert_eq(journal_check(j, home), 0);
	cr_assert_eq(truncate(scratch_path("store/journal/CURRENT"), 0), 0);
	cr_assert_eq(journal_check(j, home), ERR_MOVED);
	cr_assert_eq(generation_publish(home_journal_fd(home), 1), 0);
	cr_assert_eq(rename(scratch_path("store/journal/gen-1"), scratch_path("gen-1")), 0);
	cr_assert_eq(journal_check(j, home), ERR_MOVED);
	cr_assert(strstr(err_text(ERR_MOVED), "'gen-1' of the journal"), "%s", err_text(ERR_MOVED));
}

Test(journal, lost_one_is_begun_anew_and_says_why)
{
	uint8_t uuid[16];
	char reason[256];

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	journal_close(&j);
	FILE *file = fopen(scratch_path("store/journal/gen-1/data.mdb"), "r+");
	for (int i = 0; i < 8192; i++)
		(void)fputc('x', file);
	(void)fclose(file);
	cr_assert_eq(journal_open_read(home, NULL, &j), ERR_CORRUPT);
	cr_assert_eq(journal_open_write(home, &small, reason, &j), 0);
	cr_assert(strstr(reason, "generation 1"), "%s", reason);
	cr_assert_neq(memcmp(uuid, journal_uuid(j), sizeof(uuid)), 0);
	cr_assert_eq(journal_generation(j), 2);
	cr_assert_neq(access(scratch_path("store/journal/gen-1"), F_OK), 0, "the old one is gone");
}

Test(journal, one_in_which_a_daemon_met_damage_is_begun_anew)
{
	uint8_t uuid[16];
	char reason[256];

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	journal_close(&j);
	(void)err_say(ERR_CORRUPT, "checksum of record 7");
	cr_assert_eq(journal_note_damage(home), ERR_CORRUPT);
	cr_assert_eq(journal_open_write(home, &small, reason, &j), 0);
	cr_assert_neq(memcmp(uuid, journal_uuid(j), sizeof(uuid)), 0);
	cr_assert(strstr(reason, "checksum of record 7"), "%s", reason);
	journal_close(&j);
	cr_assert_neq(access(scratch_path("store/journal/gen-1"), F_OK), 0,
		"the old one is gone, with its file");
}

Test(journal, old_one_stays_while_the_index_needs_it)
{
	static const char *const databases[] = {"name"};
	static const struct generation_kind kind = {.what = "index",
		.remedy = "make another",
		.format = 1,
		.databases = databases,
		.n_databases = 1};
	struct generation_options options = {.map_bytes = 1u << 20, .file_mode = 0600};
	struct journal *reader = NULL;
	struct generation *index = NULL;
	uint8_t uuid[16];

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	cr_assert_eq(generation_create(home_index_fd(home), &kind, &options, uuid, &index), 0);
	cr_assert_eq(generation_publish(home_index_fd(home), 1), 0);
	generation_close(&index);
	cr_assert_eq(journal_begin_anew(&j, home, &small), 0);
	cr_assert_neq(memcmp(uuid, journal_uuid(j), sizeof(uuid)), 0);
	cr_assert_eq(journal_remove_old(home), 0);
	cr_assert_eq(journal_open_read(home, uuid, &reader), 0);
	cr_assert_arr_eq(journal_uuid(reader), uuid, sizeof(uuid));
	journal_close(&reader);
	cr_assert_eq(journal_open_read(home, NULL, &reader), 0);
	cr_assert_arr_eq(journal_uuid(reader), journal_uuid(j), sizeof(uuid));
	journal_close(&reader);
	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	cr_assert_eq(generation_create(home_index_fd(home), &kind, &options, uuid, &index), 0);
	cr_assert_eq(generation_publish(home_index_fd(home), 2), 0);
	generation_close(&index);
	cr_assert_eq(journal_remove_old(home), 1);
	memset(uuid, 1, sizeof(uuid));
	cr_assert_eq(journal_open_read(home, uuid, &reader), NOT_FOUND);
}

Test(no_journal, reading_before_there_is_one_says_what_to_do, .init = open_home, .fini = tear_down)
{
	cr_assert_eq(journal_open_read(home, NULL, &j), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "kinf run"));
}

static void expect_success(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(WEXITSTATUS(status), 0, "child: %d", WEXITSTATUS(status));
}

Test(journal, copy_is_read_where_nothing_can_be_written)
{
	append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	tear_down();
	/* Root may write everywhere, so the readers change their user. */
	cr_assert_eq(chmod(scratch(), 0755), 0);
	scratch_chmod("a+rX,a-w", scratch_path("store"));
	pid_t child = fork();
	if (child == 0) {
		struct home_options options = {0};
		struct head head;
		struct txn *txn = NULL;
		if (geteuid() == 0 && setuid(65534) < 0)
			_exit(2);
		if (home_open(scratch_path("store"), &options, &home) < 0 ||
			home_check_all_pins(home) != ERR_LOCKED)
			_exit(3);
		if (journal_open_read(home, NULL, &j) < 0 ||
			txn_begin_read(journal_env(j), &txn) < 0 ||
			journal_head(j, txn, feed, BYTES_LIT("a"), &head) != FOUND)
			_exit(4);
		_exit(0);
	}
	expect_success(child);
	/* The same while a reflector runs: pages would be recycled under the reader. */
	scratch_chmod("u+w", scratch_path("store"));
	open_home();
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	cr_assert_eq(chmod(scratch_path("store"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/journal"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/index"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/cursors"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/reflector.lock"), 0644), 0);
	child = fork();
	if (child == 0) {
		struct home_options options = {0};
		struct home *mine = NULL;
		if (geteuid() != 0)
			_exit(0); /* the owner can write */
		if (setuid(65534) < 0 || home_open(scratch_path("store"), &options, &mine) < 0)
			_exit(2);
		_exit(journal_open_read(mine, NULL, &j) == ERR_LOCKED ? 0 : 3);
	}
	expect_success(child);
}

/* A reader can open the journal although the index was replaced under its processor. Without the
 * journal's own pin page it can't. */
Test(journal, each_database_needs_its_own_pin_page_only)
{
	append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	cr_assert_eq(mkdir(scratch_path("store/index/gen-1"), 0700), 0);
	scratch_write(scratch_path("store/index/gen-1/data.mdb"), "rubbish");
	scratch_write(scratch_path("store/index/CURRENT"), "gen-1\n");
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	cr_assert_eq(home_check_pins(home, HOME_JOURNAL), 0);
	cr_assert_eq(home_check_pins(home, HOME_INDEX), ERR_LOCKED);
	cr_assert(
		strstr(err_text(ERR_LOCKED), "its index is not the one that its processor writes"),
		"%s", err_text(ERR_LOCKED));
	cr_assert_eq(home_check_all_pins(home), ERR_LOCKED);
	OK(journal_open_read(home, NULL, &j));
	journal_close(&j);
	cr_assert_eq(unlink(scratch_path("store/journal/gen-1/pins")), 0);
	cr_assert_eq(journal_open_read(home, NULL, &j), ERR_LOCKED);
	cr_assert(strstr(err_text(ERR_LOCKED),
			  "its journal is not the one that its reflector writes"),
		"%s", err_text(ERR_LOCKED));
}

static int page_file(void)
{
	int fd = open(scratch_path("store/journal/gen-1/pins"), O_RDWR | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

/* Damages the pin page in the way NUMBER. */
static void damage_page(int number)
{
	static const size_t words[] = {offsetof(struct pin_page, magic),
		offsetof(struct pin_page, inode), offsetof(struct pin_page, began),
		offsetof(struct pin_page, oldest), offsetof(struct pin_page, given_up),
		offsetof(struct pin_page, scanned[1])}; /* of the store's own directory */
	uint64_t wrong = UINT64_MAX;
	char page[PIN_PAGE_BYTES];
	AUTO_FD int fd = page_file();

	if (number == 0) {
		cr_assert_eq(ftruncate(fd, PIN_PAGE_BYTES / 2), 0);
	} else if (number == 1) { /* its copy takes its place, as rsync does it */
		cr_assert_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
		int copy = open(scratch_path("store/journal/gen-1/copy"),
			O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		cr_assert_eq(write(copy, page, sizeof(page)), sizeof(page));
		(void)close(copy);
		char from[4096];
		(void)snprintf(from, sizeof(from), "%s", scratch_path("store/journal/gen-1/copy"));
		cr_assert_eq(rename(from, scratch_path("store/journal/gen-1/pins")), 0);
	} else {
		cr_assert_eq(
			pwrite(fd, &wrong, sizeof(wrong), (off_t)words[number - 2]), sizeof(wrong));
	}
}

/* The restarted writer makes the page again. */
Test(journal, a_damaged_pin_page_is_noticed_by_its_writer)
{
	append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	for (int number = 0; number < 8; number++) {
		cr_assert_eq(journal_check(j, home), 0, "%d: %s", number, err_text(ERR_MOVED));
		damage_page(number);
		cr_assert_eq(journal_check(j, home), ERR_MOVED, "%d", number);
		cr_assert(strstr(err_text(ERR_MOVED),
				  "'gen-1/pins' of the journal was removed, replaced or damaged"),
			"%s", err_text(ERR_MOVED));
		open_again();
	}
	OK(journal_check(j, home));
	journal_close(&j);
	OK(journal_open_read(home, NULL, &j));
}
