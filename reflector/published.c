/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "store/index/index.h"
#include "store/read/cursor_file.h"
#include "store/ring/ring.h"

/* Returns the index's newest event of the journal UUID; 0: none, or it can't be read. */
static uint64_t published_taken(struct home *home, const uint8_t uuid[16])
{
	CLEANUP(index_close) struct index *index = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta = {.taken = 0};
	int r = index_open_read(home, &index);

	if (r == 0)
		r = txn_begin_read(index_env(index), &txn);
	if (r == 0)
		r = index_meta(index, txn, &meta);
	err_ignore(r < 0 ? r : 0, "it says nothing of the journal");
	return r == 0 && memcmp(meta.journal, uuid, 16) == 0 ? meta.taken : 0;
}

int published_check(
	struct home *home, struct journal **journal, const struct journal_options *options)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;
	char reason[160];
	uint64_t newest = ring_newest(home_runtime_fd(home), DELTA_RING, journal_uuid(*journal));
	uint64_t taken = published_taken(home, journal_uuid(*journal));
	if (newest < taken)
		newest = taken;
	int r = txn_begin_read(journal_env(*journal), &txn);

	if (r == 0)
		r = journal_meta(*journal, txn, &meta);
	txn_abort(&txn);
	if (r < 0)
		return r;
	if (newest < meta.next_seq) {
		r = cursor_lapse_later(home, journal_uuid(*journal), meta.next_seq);
		err_ignore(r < 0 ? r : 0,
			"their followers lapse unless the journal has grown beyond them by then");
		return 0;
	}
	(void)snprintf(reason, sizeof(reason),
		"event %" PRIu64 " was published, and the journal ends at event %" PRIu64
		": an older copy was put in its place",
		newest, meta.next_seq - 1);
	LOG(journal_created, .reason = reason);
	return journal_begin_anew(journal, home, options);
}
