/* SPDX-License-Identifier: Apache-2.0 */
/* A store's directories in the scratch directory. */
#ifndef UNIT_HOME_RIG_H
#define UNIT_HOME_RIG_H

#include "store/env/home.h"
#include "tests/unit/unit.h"

static inline struct home *open_home(bool create)
{
	struct home_options options = {.create = create, .runtime_dir = create ? scratch() : NULL};
	struct home *home = NULL;

	OK(home_open(scratch_path("a/b/store"), &options, &home));
	return home;
}

static inline unsigned mode_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0, "%s", path);
	return st.st_mode & 07777;
}

static inline void remove_runtime(const struct home *home)
{
	scratch_remove(home_runtime(home));
}

#endif
