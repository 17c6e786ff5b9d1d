/* SPDX-License-Identifier: Apache-2.0 */
/* home_check() of a daemon after a file was removed or replaced. */
#include "tests/unit/home_rig.h"

/* The replaced inode is still open, so the new one differs. */
static void make_guarded(int runtime_fd)
{
	cr_assert_eq(mkfifoat(runtime_fd, "guarded.new", 0600), 0);
	cr_assert_eq(renameat(runtime_fd, "guarded.new", runtime_fd, "guarded"), 0);
}

/* Returns the result of a daemon's home_check() after DO_HARM. */
static int check_after(void (*do_harm)(void))
{
	CLEANUP(home_close) struct home *daemon = open_home(true);

	cr_assert_eq(home_take_role(daemon, HOME_REFLECTOR), 0);
	make_guarded(home_runtime_fd(daemon));
	home_guard_file(daemon, "guarded");
	cr_assert_eq(home_check(daemon), 0);
	do_harm();
	int r = home_check(daemon);
	cr_assert(!r || strstr(err_text(r), home_path(daemon)), "%s", err_text(r));
	return r;
}

static void remove_store(void)
{
	scratch_remove(scratch_path("a/b/store"));
}

static void move_store(void)
{
	cr_assert_eq(rename(scratch_path("a/b/store"), scratch_path("a/b/old")), 0);
}

static void replace_store(void)
{
	move_store();
	scratch_copy(scratch_path("a/b/old"), scratch_path("a/b/store"));
}

static void remove_id(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/id")), 0);
}

static void replace_id(void)
{
	scratch_write(scratch_path("a/b/store/id.new"), "kinf-store 1 0123456789abcdef\n");
	cr_assert_eq(rename(scratch_path("a/b/store/id.new"), scratch_path("a/b/store/id")), 0);
}

static void remove_lock(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/reflector.lock")), 0);
}

static void remove_journal(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/journal")), 0);
}

static void replace_index(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/index")), 0);
	cr_assert_eq(mkdir(scratch_path("a/b/store/index"), 0700), 0);
}

static void remove_cursors(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/cursors")), 0);
}

static void remove_record(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/runtime")), 0);
}

static void in_runtime(void (*fn)(int runtime_fd))
{
	CLEANUP(home_close) struct home *other = open_home(false);

	fn(home_runtime_fd(other));
}

static void remove_runtime_lock_at(int runtime_fd)
{
	cr_assert_eq(unlinkat(runtime_fd, "reflector.lock", 0), 0);
}

static void remove_runtime_lock(void)
{
	in_runtime(remove_runtime_lock_at);
}

static void remove_guarded_at(int runtime_fd)
{
	cr_assert_eq(unlinkat(runtime_fd, "guarded", 0), 0);
}

static void remove_guarded(void)
{
	in_runtime(remove_guarded_at);
}

static void replace_guarded(void)
{
	in_runtime(make_guarded);
}

static void remove_whole_runtime(void)
{
	CLEANUP(home_close) struct home *other = open_home(false);

	remove_runtime(other);
}

static void remove_others_lock(void)
{
	CLEANUP(home_close) struct home *other = open_home(true);

	cr_assert_eq(home_take_role(other, HOME_PROCESSOR), 0);
	cr_assert_eq(unlink(scratch_path("a/b/store/processor.lock")), 0);
}

Test(home_check, check_names_what_was_removed_or_replaced_under_a_daemon)
{
	const struct {
		void (*do_harm)(void);
		const char *named;
	} harms[] = {{remove_store, "b/store' was removed"}, {move_store, "b/store' was removed"},
		{replace_store, "b/store' was removed"}, {remove_id, "'id'"}, {replace_id, "'id'"},
		{remove_lock, "'reflector.lock'"}, {remove_journal, "'journal'"},
		{replace_index, "'index'"}, {remove_cursors, "'cursors'"},
		{remove_record, "'runtime'"}, {remove_whole_runtime, "/kinf-"},
		{remove_runtime_lock, "'reflector.lock'"}, {remove_guarded, "'guarded'"},
		{replace_guarded, "'guarded'"}};

	for (size_t i = 0; i < sizeof(harms) / sizeof(*harms); i++) {
		cr_assert_eq(check_after(harms[i].do_harm), ERR_MOVED, "harm %zu", i);
		cr_assert(strstr(err_text(ERR_MOVED), harms[i].named), "%s", err_text(ERR_MOVED));
		scratch_remove(scratch_path("a"));
	}
	cr_assert_eq(check_after(remove_others_lock), 0, "the other daemon will notice");
}

Test(home_check, file_that_is_made_again_is_guarded_again)
{
	CLEANUP(home_close) struct home *daemon = open_home(true);

	make_guarded(home_runtime_fd(daemon));
	home_guard_file(daemon, "guarded");
	replace_guarded();
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	home_guard_file(daemon, "guarded");
	cr_assert_eq(home_check(daemon), 0);
}
