/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/scrub.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/damage.h"

#define SLICE_NS    UINT64_C(500000)
#define SLICE_BYTES ((size_t)256 << 10)
#define SECOND_NS   UINT64_C(1000000000)
#define MINUTE_NS   (60 * SECOND_NS)
#define DAY_NS      (24 * 60 * MINUTE_NS)

void scrub_begin(struct scrub *scrub, struct journal *journal)
{
	*scrub = (struct scrub){.journal = journal, .next = 1, .pause = SECOND_NS};
}

void scrub_report(
	const struct processor *p, const struct journal *journal, uint32_t feed, uint64_t seq)
{
	struct damage_report report = {.feed = feed, .seq = seq};

	memcpy(report.journal, journal_uuid(journal), sizeof(report.journal));
	damage_send(p->home, DAMAGE_REFLECTOR, &report);
}

/* Compares checksums from scrub->next on. Returns: FOUND: the slice is over; END: the log is;
 * errors. */
static int scrub_read(struct scrub *scrub, const struct processor *p, struct journal_walk *walk)
{
	uint64_t start = proc_monotonic_ns();
	size_t bytes = 0;
	int r = FOUND;

	while (bytes < SLICE_BYTES && proc_monotonic_ns() - start < SLICE_NS) {
		struct record record = {0};

		r = journal_walk_next(walk, &record);
		if (r != FOUND && r != ERR_CORRUPT)
			break;
		bool readable = r == FOUND;
		uint64_t seq = journal_walk_seq(walk);
		if (readable)
			r = record_check(&record);
		if (r == ERR_CORRUPT) {
			err_ignore(r, "the reflector is told");
			scrub_report(p, scrub->journal, readable ? record.feed : 0, seq);
			if (!scrub->first)
				scrub->first = seq;
		}
		if (seq < scrub->next) /* a damaged tree that leads back */
			return END;
		r = FOUND;
		scrub->next = seq + 1;
		bytes += readable ? record.stored.size : 4096;
	}
	return r;
}

/* Settles when the next pass begins, and where. */
static void scrub_end(struct scrub *scrub, uint64_t now)
{
	uint64_t twice = 2 * scrub->pause;

	scrub->next = 0;
	scrub->begin = scrub->first ? scrub->first : 1;
	scrub->due_ns = now + (scrub->first ? scrub->pause : DAY_NS);
	if (!scrub->first)
		scrub->pause = SECOND_NS;
	else
		scrub->pause = twice < MINUTE_NS ? twice : MINUTE_NS;
}

int scrub_slice(struct scrub *scrub, const struct processor *p, struct intake *intake)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	uint64_t now = proc_monotonic_ns();
	struct txn *txn;

	if (!scrub->next && now < scrub->due_ns)
		return 0;
	if (!scrub->next) {
		scrub->next = scrub->begin;
		scrub->first = 0;
	}
	int r = intake_view(intake, &txn);
	if (!r)
		r = journal_walk_open(scrub->journal, txn, scrub->next, &walk);
	if (!r)
		r = scrub_read(scrub, p, walk);
	journal_walk_close(&walk);
	intake_rest(intake);
	if (r != END)
		return r < 0 ? r : AGAIN;
	scrub_end(scrub, now);
	return 0;
}
