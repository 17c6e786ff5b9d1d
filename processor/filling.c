/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/filling.h"

#include <sys/resource.h>

#include "common/err.h"

#define BLOCK_BYTES 512 /* of ru_inblock */

void filling_note(struct filling *filling, uint64_t disk_bytes, uint64_t journal_bytes)
{
	if (!filling->begun)
		filling->begun_bytes = disk_bytes;
	filling->begun = true;
	filling->by_page |= disk_bytes - filling->begun_bytes > journal_bytes;
}

bool filling_look(struct filling *filling, struct journal *journal, struct txn *txn)
{
	struct rusage usage;
	struct env_info sizes;
	int r = txn_info(txn, &sizes);

	if (r == 0 && getrusage(RUSAGE_THREAD, &usage) == 0)
		filling_note(filling, (uint64_t)usage.ru_inblock * BLOCK_BYTES, sizes.file_bytes);
	err_ignore(r, "the journal is read as before");
	env_expect_random(journal_env(journal), filling->by_page);
	return filling->by_page && ahead_is_cold(&filling->ahead);
}

uint64_t filling_announce(
	struct filling *filling, struct journal *journal, struct txn *txn, uint64_t seq)
{
	uint64_t place = 0;
	uint32_t size = 0;
	int r = journal_place(journal, txn, seq, &place, &size);

	err_ignore(r < 0 ? r : 0, "the caller meets it when it reads the record");
	if (r != FOUND || !place)
		return 0;
	ahead_add(&filling->ahead, txn, place, size);
	return size;
}
