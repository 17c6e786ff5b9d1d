/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a snapshot into a store of its own. The copy's journal has another uuid: it will give the
 * same seqs to other changes, so positions are not valid in both. Cursors are left out for the same
 * reason: a follower begins with the whole state. The feeds keep their resourceVersions: the copy's
 * reflector watches on without a list while the API server has them.
 */
#include "store/read/snapshot.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/journal/journal_copy.h"

#define SLICE ((uint64_t)4 << 20)

struct snapshot_copying {
	snapshot_copy_fn *progress;
	void *arg;
	uint64_t before; /* bytes of the journal */
	uint64_t total;
};

static int copying_report(void *arg, uint64_t bytes)
{
	struct snapshot_copying *copying = arg;
	uint64_t done = copying->before + bytes;

	return copying->progress ? copying->progress(copying->arg, done, copying->total) : 0;
}

static int copying_journal(
	struct snapshot_copying *copying, struct snapshot *snapshot, struct home *to)
{
	CLEANUP(journal_copy_free) struct journal_copy *copy = NULL;
	const struct journal_copy_options options = {.to = to,
		.from = snapshot_journal(snapshot),
		.txn = snapshot_journal_txn(snapshot),
		.new_uuid = true,
		.taken = snapshot_taken(snapshot)};
	int r = journal_copy_new(&options, &copy);

	if (r < 0)
		return r;
	do {
		r = copying_report(copying, journal_copy_done(copy));
		if (r == 0)
			r = journal_copy_slice(copy, SLICE);
	} while (r == AGAIN);
	if (r == 0)
		r = journal_copy_end(copy, NULL);
	copying->before = journal_copy_done(copy);
	return r;
}

int snapshot_copy_size(struct snapshot *snapshot, uint64_t *ret_bytes)
{
	struct env_info journal, index;
	int r = env_info(journal_env(snapshot_journal(snapshot)), &journal);

	if (r == 0)
		r = env_info(index_env(snapshot_index(snapshot)), &index);
	if (r == 0)
		*ret_bytes = journal.used_bytes + index.used_bytes;
	return r;
}

int snapshot_copy(
	struct snapshot *snapshot, const char *path, snapshot_copy_fn *progress, void *arg)
{
	struct snapshot_copying copying = {.progress = progress, .arg = arg};
	CLEANUP(home_close) struct home *to = NULL;
	CLEANUP(journal_close) struct journal *journal = NULL;
	int r = snapshot_copy_size(snapshot, &copying.total);

	if (r == 0 && mkdir(path, 0700) < 0)
		r = err_set(-errno, "making '%s'", path);
	if (r == 0)
		r = home_open(path, &(struct home_options){.create = true}, &to);
	if (r == 0)
		r = copying_journal(&copying, snapshot, to);
	if (r == 0)
		r = journal_open_read(to, NULL, &journal);
	if (r == 0)
		r = index_copy(snapshot_index(snapshot), snapshot_index_txn(snapshot), journal, to,
			NULL, copying_report, &copying);
	return r;
}
