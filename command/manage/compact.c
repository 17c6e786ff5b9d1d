/* SPDX-License-Identifier: Apache-2.0 */
/* kinf compact */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "command/manage/ticker.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "store/env/generation.h"
#include "store/index/index.h"
#include "store/journal/journal_copy.h"

#define SLICE ((uint64_t)4 << 20)

struct compact {
	struct home *home;
	struct ticker ticker;
	int signals;
	uint64_t total; /* bytes; 0: unknown */
};

/* Shows the progress. Returns -EINTR after SIGINT or SIGTERM. */
static int compact_report(void *arg, uint64_t bytes)
{
	struct compact *compact = arg;
	int number = signals_next(compact->signals);

	ticker_show(&compact->ticker, bytes >> 20, compact->total >> 20, "MiB");
	if (number > 0 && number != SIGHUP && number != SIGCHLD)
		return err_say(-EINTR, "interrupted: the store is as before");
	return 0;
}

/* ---- without the reflector ---------------------------------------------- */

/* Returns the applied seq of JOURNAL's index; 0: there is none. */
static uint64_t compact_read_taken(struct home *home, const struct journal *journal)
{
	CLEANUP(index_close) struct index *index = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta;
	int r = index_open_read(home, &index);

	if (r == 0)
		r = txn_begin_read(index_env(index), &txn);
	if (r == 0)
		r = index_meta(index, txn, &meta);
	if (r == 0 && !meta.building && memcmp(meta.journal, journal_uuid(journal), 16) == 0)
		return meta.taken;
	if (r != 0)
		(void)fprintf(stderr,
			"note: without an index the values of removed feeds are kept%s%s\n",
			r < 0 ? ": " : "", r < 0 ? err_text(r) : "");
	err_ignore(r, "it is noted");
	return 0;
}

/* Copies the journal, open for reading. */
static int compact_copy_journal(struct compact *compact, struct journal *journal)
{
	CLEANUP(journal_copy_free) struct journal_copy *copy = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_copy_options options = {.to = compact->home, .from = journal};
	int r = txn_begin_read(journal_env(journal), &txn);

	options.txn = txn;
	if (r == 0) {
		options.taken = compact_read_taken(compact->home, journal);
		r = journal_copy_new(&options, &copy);
	}
	if (r < 0)
		return r;
	compact->total = journal_copy_total(copy);
	do {
		r = compact_report(compact, journal_copy_done(copy));
		if (r == 0)
			r = journal_copy_slice(copy, SLICE);
	} while (r == AGAIN);
	return r < 0 ? r : journal_copy_end(copy, NULL);
}

static int compact_journal(struct compact *compact)
{
	CLEANUP(journal_close) struct journal *journal = NULL;
	uint32_t current;
	/* Opened before taking the role: a store without pins has no readers while it has an
	 * owner. */
	int r = journal_open_read(compact->home, NULL, &journal);

	if (r == 0)
		r = maintenance_take(compact->home, HOME_REFLECTOR);
	if (r == 0)
		r = generation_current(home_journal_fd(compact->home), &current);
	if (r == FOUND && current != journal_generation(journal))
		r = err_say(ERR_MOVED, "a daemon ran meanwhile: try again");
	return r < 0 ? r : compact_copy_journal(compact, journal);
}

/* ---- both --------------------------------------------------------------- */

/* Returns the length of the database in use: its disk space includes preallocated blocks. */
static uint64_t compact_size(const struct compact *compact, enum home_role role)
{
	int fd = role == HOME_REFLECTOR ? home_journal_fd(compact->home)
					: home_index_fd(compact->home);
	char path[64];
	uint32_t number;
	struct stat st = {.st_size = 0};
	int r = fd < 0 ? NOT_FOUND : generation_current(fd, &number);

	err_ignore(r, "the compaction reports the fault");
	if (r != FOUND)
		return 0;
	(void)snprintf(path, sizeof(path), "gen-%" PRIu32 "/data.mdb", number);
	return fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* Compacts without the daemon. */
static int compact_offline(struct compact *compact, enum home_role role)
{
	int r;

	compact->signals = signals_open();
	if (compact->signals < 0)
		return compact->signals;
	if (role == HOME_REFLECTOR) {
		r = compact_journal(compact);
	} else {
		compact->total = 0;
		r = maintenance_take(compact->home, role);
		if (r == 0)
			r = index_compact(compact->home, NULL, compact_report, compact);
	}
	cleanup_fd(&compact->signals);
	signals_reset();
	return r;
}

/* Returns: 0; NOT_FOUND: no index; errors. */
static int compact_database(struct compact *compact, enum home_role role)
{
	static const char *const names[] = {"journal", "index"};
	static const char *const work[] = {"compacting the journal", "compacting the index"};
	double before = (double)compact_size(compact, role) / 1048576;
	char text[CONTROL_SIZE];

	compact->ticker.what = work[role];
	/* A signal ends this process, and with it the daemon's work. */
	int r = maintenance_ask(compact->home, role, "compact", "", work[role], text);
	if (r == NOT_FOUND)
		r = compact_offline(compact, role);
	ticker_clear(&compact->ticker);
	if (r != 0)
		return r;
	double after = (double)compact_size(compact, role) / 1048576;
	(void)printf("%s: %.1f MiB, before %.1f MiB%s\n", names[role], after, before,
		after > before ? " (its daemon has allocated some of it ahead)" : "");
	return 0;
}

int command_compact(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	struct command_line line = {
		.options = {"kinf compact", "",
			"Replaces journal and index by copies that hold nothing else than what can "
			"be read: they are as small as can be, and the values of removed feeds and "
			"trimmed versions are gone from the files. Works while the daemons run, "
			"and without them. Nothing is listed again, and no follower begins again."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = maintenance_open(&line.flags, &home);
	if (r < 0)
		return command_fail(r);
	struct compact compact = {.home = home, .signals = -1};
	uint64_t journal = compact_size(&compact, HOME_REFLECTOR),
		 index = compact_size(&compact, HOME_PROCESSOR);
	uint64_t most = journal > index ? journal : index;
	struct statvfs disk;
	if (fstatvfs(home_fd(home), &disk) == 0)
		(void)fprintf(stderr,
			"note: this takes at most %" PRIu64
			" MiB of disk space for a while, and %" PRIu64 " MiB are free\n",
			((most + most / 5) >> 20) + 1,
			(uint64_t)disk.f_bavail * disk.f_frsize >> 20);
	for (int role = 0; r == 0 && role < HOME_ROLE_MAX; role++)
		r = compact_database(&compact, (enum home_role)role);
	if (r == NOT_FOUND)
		(void)fprintf(stderr, "note: there is no index; kinf-processor builds it\n");
	return r < 0 ? command_fail(r) : PROC_OK;
}
