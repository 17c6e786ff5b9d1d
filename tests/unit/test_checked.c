/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/checked.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"
#include "tests/unit/scratch.h"
#include "tests/unit/small_store.h"

static const char *store;

static struct home *store_to_check(void)
{
	struct small_store s;
	struct home *home = NULL;

	small_store_open(&s);
	store = s.path;
	small_store_close(&s);
	cr_assert_eq(setenv("XDG_CACHE_HOME", scratch_path("cache"), 1), 0);
	cr_assert_eq(home_open(store, &(struct home_options){.unchecked = true}, &home), 0);
	return home;
}

static void touch(const char *file)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", store, file);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "x", 1), 1);
	(void)close(fd);
}

Test(checked, a_store_is_known_until_a_file_of_it_changes)
{
	struct home *home = store_to_check();
	struct checked first, now;

	checked_identify(home, &first);
	cr_assert_eq(strlen(first.line), 32);
	cr_assert_not(checked_is_known(&first));
	checked_remember(home, &first);
	cr_assert(checked_is_known(&first));
	static const char *const files[] = {"journal/gen-1/data.mdb", "index/gen-1/data.mdb",
		"journal/gen-1/STATE", "index/gen-1/STATE"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		touch(files[i]);
		checked_identify(home, &now);
		cr_assert_not(checked_is_known(&now), "%s", files[i]);
		checked_remember(home, &first);
		checked_remember(home, &now);
		cr_assert(checked_is_known(&now));
	}
	home_close(&home);
}

Test(checked, what_changes_during_the_check_is_not_remembered)
{
	struct home *home = store_to_check();
	struct checked first;

	checked_identify(home, &first);
	touch("journal/gen-1/data.mdb");
	checked_remember(home, &first);
	cr_assert_not(checked_is_known(&first));
	home_close(&home);
}

Test(checked, a_file_that_others_may_write_is_not_believed)
{
	struct home *home = store_to_check();
	struct checked first;

	checked_identify(home, &first);
	checked_remember(home, &first);
	cr_assert_eq(chmod(scratch_path("cache/kinf/checked"), 0666), 0);
	cr_assert_not(checked_is_known(&first));
	cr_assert_eq(chmod(scratch_path("cache/kinf/checked"), 0600), 0);
	cr_assert_eq(chmod(scratch_path("cache/kinf"), 0777), 0);
	cr_assert_not(checked_is_known(&first));
	home_close(&home);
}

Test(checked, the_oldest_lines_are_forgotten)
{
	struct home *home = store_to_check();
	struct checked first, now;
	struct stat st;

	checked_identify(home, &first);
	checked_remember(home, &first);
	for (int i = 0; i < 100; i++) {
		touch("journal/gen-1/data.mdb");
		checked_identify(home, &now);
		checked_remember(home, &now);
		cr_assert(checked_is_known(&now));
	}
	cr_assert_not(checked_is_known(&first));
	cr_assert_eq(stat(scratch_path("cache/kinf/checked"), &st), 0);
	cr_assert_leq(st.st_size, 64 * 33);
	home_close(&home);
}

Test(checked, without_a_home_nothing_is_remembered)
{
	struct home *home = store_to_check();
	struct checked first;

	cr_assert_eq(unsetenv("XDG_CACHE_HOME"), 0);
	cr_assert_eq(unsetenv("HOME"), 0);
	checked_identify(home, &first);
	checked_remember(home, &first);
	cr_assert_not(checked_is_known(&first));
	home_close(&home);
}
