/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of pin files, and the check that the daemons scan them. */
#include "store/env/home.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/datafile.h"
#include "store/env/generation.h"
#include "store/env/home_internal.h"

void home_pin_places(const struct home *home, struct pin_places *ret_places)
{
	char path[PATH_MAX - 8];

	CHECK_OBJ(home, HOME_MAGIC);
	*ret_places = (struct pin_places){0};
	if (home->runtime[0] &&
		(size_t)snprintf(ret_places->path[0], sizeof(ret_places->path[0]), "%s/" HOME_PINS,
			home->runtime) >= sizeof(ret_places->path[0]))
		ret_places->path[0][0] = '\0';
	/* Without links: they may lead to another store later. */
	int r = proc_path_of(home->fd, path, sizeof(path));
	err_ignore(r, "the runtime directory is the place then");
	if (r == 0)
		(void)snprintf(
			ret_places->path[1], sizeof(ret_places->path[1]), "%s/" HOME_PINS, path);
}

int home_check_pins(const struct home *home, enum home_database database)
{
	const char *name = database == HOME_JOURNAL ? "journal" : "index";
	const char *writer = database == HOME_JOURNAL ? "reflector" : "processor";
	bool writable = false, scanned = false;
	struct pin_places places;
	struct pin_page page;

	CHECK_OBJ(home, HOME_MAGIC);
	home_pin_places(home, &places);
	int r = generation_read_pin_page(
		database == HOME_JOURNAL ? home->journal_fd : home->index_fd, &page);
	for (int i = 0; i < PIN_PLACES; i++) {
		if (!places.path[i][0] ||
			faccessat(AT_FDCWD, places.path[i], W_OK | X_OK, AT_EACCESS) < 0)
			continue;
		struct pin_place_id id = pin_place_identify(places.path[i]);
		writable |= id.inode != 0;
		scanned |= r == FOUND && pin_page_scans(&page, id);
	}
	if (r < 0)
		return err_add(r, "the store '%s'", home->path);
	/* On a full disk a process marks the page instead of a file (pin_file.h). */
	if (r == FOUND && !(writable && scanned) && datafile_disk_is_full(home->path))
		return 0;
	if (!writable)
		return err_say(ERR_LOCKED,
			"the store '%s' is in use, and this process may make no pin file in its "
			"runtime directory '%s': mount that directory writable, as the daemons see "
			"it (the store itself may be read-only), join the store's group, or read a "
			"copy of the store",
			home->path, home->runtime);
	if (r == NOT_FOUND)
		return err_say(ERR_LOCKED,
			"the store '%s' is in use, but its %s is not the one that its %s writes: "
			"data.mdb or pins was removed, replaced or copied. Wait until the %s has "
			"opened or made it again, or restart the %s after a minute",
			home->path, name, writer, writer, writer);
	if (r == FOUND && !scanned)
		return err_say(ERR_LOCKED,
			"the store '%s' is in use, and its %s does not see this process's pin "
			"files in the runtime directory '%s': mount that directory writable, as "
			"the daemons see it, or read a copy of the store",
			home->path, writer, home->runtime);
	return 0;
}

int home_check_all_pins(const struct home *home)
{
	int r = home_check_pins(home, HOME_JOURNAL);

	return r < 0 ? r : home_check_pins(home, HOME_INDEX);
}

struct replaced_files *home_replaced_files(struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return &home->replaced;
}

bool home_maintain_replaced(struct home *home, struct replaced_loss *ret_loss)
{
	struct pin_places places;

	CHECK_OBJ(home, HOME_MAGIC);
	if (!home->replaced.n)
		return false;
	home_pin_places(home, &places);
	return replaced_files_maintain(&home->replaced, &places, proc_monotonic_ns(), ret_loss);
}
