/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs. A reflector that starts begins one: the events from the next one on are this run's. An
 * older copy of the journal that is put in its place lacks the runs that came after it was made,
 * and the next reflector begins another one there. So the number of an event that a follower
 * knows is still that event's if it comes before the run that follows the follower's.
 */
#include "store/journal/journal_internal.h"

#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/proc.h"

#define RUNS_KEY BYTES_LIT("runs")
#define RUNS_MAX 64 /* a follower that slept while more began has lapsed */
#define RUN_SIZE 16
#define CRC_SIZE 4

struct runs {
	size_t n;
	struct {
		uint64_t id, first;
	} run[RUNS_MAX];
};

/* Without a row, or with a damaged one, there are none. */
static int runs_read(struct txn *txn, struct runs *ret_runs)
{
	struct bytes value;
	int r = txn_get(txn, DB_META, RUNS_KEY, &value);

	ret_runs->n = 0;
	if (r != FOUND)
		return r < 0 ? r : 0;
	const uint8_t *row = value.data;
	size_t n = value.size / RUN_SIZE;
	if (n > RUNS_MAX || value.size != n * RUN_SIZE + CRC_SIZE ||
		row_checksum(RUNS_KEY, BYTES(row, n * RUN_SIZE)) != le32_get(row + n * RUN_SIZE))
		return 0;
	for (size_t i = 0; i < n; i++) {
		ret_runs->run[i].id = le64_get(row + i * RUN_SIZE);
		ret_runs->run[i].first = le64_get(row + i * RUN_SIZE + 8);
	}
	ret_runs->n = n;
	return 0;
}

static int runs_write(struct txn *txn, const struct runs *runs)
{
	uint8_t row[RUNS_MAX * RUN_SIZE + CRC_SIZE];
	size_t size = runs->n * RUN_SIZE;

	for (size_t i = 0; i < runs->n; i++) {
		le64_put(row + i * RUN_SIZE, runs->run[i].id);
		le64_put(row + i * RUN_SIZE + 8, runs->run[i].first);
	}
	le32_put(row + size, row_checksum(RUNS_KEY, BYTES(row, size)));
	return txn_put(txn, DB_META, RUNS_KEY, BYTES(row, size + CRC_SIZE), 0);
}

int journal_begin_run(struct journal *journal)
{
	struct runs runs;
	uint64_t id;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(!journal->txn);
	int r = proc_random(&id, sizeof(id));
	if (r == 0)
		r = journal_begin_trim(journal);
	if (r < 0)
		return r;
	journal->meta_changed = true; /* an abort must not be taken for one of nothing */
	r = runs_read(journal->txn, &runs);
	if (r == 0 && runs.n == RUNS_MAX)
		memmove(runs.run, runs.run + 1, --runs.n * sizeof(runs.run[0]));
	if (r == 0) {
		runs.run[runs.n].id = id ? id : 1;
		runs.run[runs.n++].first = journal->meta.next_seq;
		r = runs_write(journal->txn, &runs);
	}
	journal->error = r;
	return journal_finish(journal);
}

int journal_run(struct journal *journal, struct txn *txn, uint64_t known, uint64_t *ret_newest,
	uint64_t *ret_end)
{
	struct runs runs;
	size_t next;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = runs_read(txn, &runs);
	if (r < 0)
		return r;
	*ret_newest = runs.n ? runs.run[runs.n - 1].id : 0;
	for (next = runs.n; next > 0 && runs.run[next - 1].id != known; next--)
		continue;
	if (next == 0 &&
		(known || runs.n ==
				  /* before the first run that is known there is one of the number
				 * 0 */
				  RUNS_MAX))
		*ret_end = 0;
	else
		*ret_end = next < runs.n ? runs.run[next].first : UINT64_MAX;
	return 0;
}
