/* SPDX-License-Identifier: Apache-2.0 */
/* First snapshots of a store with a journal replaced since it was opened. */
#include "store/read/snapshot.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "store/env/home.h"
#include "store/journal/journal_copy.h"
#include "store/pins/pin_page.h"
#include "store/read/snapshot_internal.h"
#include "tests/unit/snapshot_rig.h"

/* A reader looks at CURRENT once a millisecond; this clock stops for it. */
static struct timespec stopped;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (id != CLOCK_MONOTONIC || !stopped.tv_sec)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = stopped;
	return 0;
}

static void compact(void)
{
	struct journal_copy_options options = {.to = s.home, .from = s.journal};
	CLEANUP(journal_copy_free) struct journal_copy *copy = NULL;

	OK(journal_copy_new(&options, &copy));
	while (journal_copy_slice(copy, 1 << 20) == AGAIN)
		;
	OK(journal_copy_end(copy, s.journal));
}

/* Starts a new epoch on the journal's page, as a new writer does: readers look for their pin files
 * then. */
static void begin_epoch(void)
{
	uint64_t epoch;
	int fd = open(scratch_path("store/journal/gen-1/" PIN_PAGE_FILE), O_RDWR | O_CLOEXEC);

	cr_assert_eq(
		pread(fd, &epoch, sizeof(epoch), offsetof(struct pin_page, epoch)), sizeof(epoch));
	epoch++;
	cr_assert_eq(
		pwrite(fd, &epoch, sizeof(epoch), offsetof(struct pin_page, epoch)), sizeof(epoch));
	OK(close(fd));
}

/* Removes all pin files, as a cleaner of temporary files does. */
static void remove_pin_files(void)
{
	struct pin_places places;
	unsigned n = 0;

	home_pin_places(s.home, &places);
	for (int i = 0; i < PIN_PLACES; i++) {
		DIR *directory = places.path[i][0] ? opendir(places.path[i]) : NULL;
		for (struct dirent *entry; directory && (entry = readdir(directory));)
			n += unlinkat(dirfd(directory), entry->d_name, 0) == 0;
		if (directory)
			(void)closedir(directory);
	}
	cr_assert_gt(n, 0);
}

/* Opens the store in another process, and takes the first snapshot after its open generations are
 * gone, and with them the pages to mark another pin file. */
static int read_after_compaction(int go, int ready, const char *path, bool whole)
{
	struct store *other = NULL;
	struct snapshot *first = NULL;
	char byte;

	if (read(go, &byte, 1) != 1)
		return 1;
	(void)clock_gettime(CLOCK_MONOTONIC, &stopped);
	int r = store_open(path, NULL, &other);
	if (r != 0 || write(ready, "y", 1) != 1 || read(go, &byte, 1) != 1)
		return 2;
	r = whole ? snapshot_open(other, &first) : snapshot_open_log(other, &first);
	if (r != 0)
		(void)fprintf(stderr, "%s\n", err_text(r));
	return r == 0 ? 0 : 3;
}

static void opens_the_next_pair(bool whole)
{
	const char *path = scratch_path("store");
	int go[2], ready[2], status;
	char byte;

	OK(pipe(go));
	OK(pipe(ready));
	pid_t reader = fork(); /* before anything is open: handles do not survive it */
	if (reader == 0)
		_exit(read_after_compaction(go[0], ready[1], path, whole));
	small_store_open(&s);
	(void)small_store_put(&s, "web/a", "n1", 3000);
	small_store_take(&s);
	cr_assert_eq(write(go[1], "1", 1), 1);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	begin_epoch();
	remove_pin_files();
	compact();
	cr_assert_eq(write(go[1], "2", 1), 1);
	cr_assert_eq(waitpid(reader, &status, 0), reader);
	cr_assert_eq(status, 0, "the reader ended with %x", (unsigned)status);
	small_store_close(&s);
}

Test(snapshot_superseded, the_journal_was_replaced_before_its_first_snapshot, .timeout = 60)
{
	opens_the_next_pair(false);
}

Test(snapshot_superseded, the_journal_was_replaced_before_a_whole_snapshot, .timeout = 60)
{
	opens_the_next_pair(true);
}
