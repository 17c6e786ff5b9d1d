/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/intake.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/ring/ring.h"

#define INTAKE_MAGIC 0x494e544bu
/* the pause between two reads of the log without a ring */
#define POLL_MS 50

struct intake {
	uint32_t magic;
	bool live;    /* the log was read to its end after a note of the ring's tail */
	bool viewing; /* txn holds a snapshot */
	const struct processor *p;
	struct journal *journal;
	struct ring_reader *ring; /* NULL: none of this journal */
	struct txn *txn;          /* kept, reset between batches */
	struct journal_walk *walk;
	uint64_t taken;
	uint64_t corrupt; /* the ring's corrupt entries already counted */
};

int intake_new(const struct processor *p, struct journal *journal, uint64_t taken,
	struct intake **ret_intake)
{
	struct intake *intake = calloc(1, sizeof(*intake));
	if (!intake)
		return err_set(-ENOMEM, "reading the journal");
	intake->magic = INTAKE_MAGIC;
	intake->p = p;
	intake->journal = journal;
	intake->taken = taken;
	*ret_intake = intake;
	return 0;
}

void intake_free(struct intake **intake_pointer)
{
	struct intake *intake = TAKE(*intake_pointer);

	if (!intake)
		return;
	CHECK_OBJ(intake, INTAKE_MAGIC);
	journal_walk_close(&intake->walk);
	txn_abort(&intake->txn);
	ring_detach(&intake->ring);
	intake->magic = 0;
	free(intake);
}

/* ---- the ring ----------------------------------------------------------- */

static void intake_drop_ring(struct intake *intake)
{
	ring_detach(&intake->ring);
	intake->corrupt = 0;
	intake->live = false;
}

/* Drains the ring. Its entries only tell of records in the log. Returns: FOUND; AGAIN: the ring
 * tells of nothing beyond the read records. */
static int intake_drain(struct intake *intake)
{
	struct ring_status status;
	struct ring_entry entry;
	int r;

	do
		r = ring_next(intake->ring, &entry);
	while (r == FOUND);
	if (r == GONE) {
		intake_drop_ring(intake);
		return FOUND;
	}
	ring_status(intake->ring, &status);
	if (r == LAPPED) {
		stats_add(intake->p->stats, STAT_RING_LAPPED, 1);
		stats_add(intake->p->stats, STAT_RING_CORRUPT, status.corrupt - intake->corrupt);
		intake->corrupt = status.corrupt;
		(void)ring_to_tail(intake->ring);
		intake->live = false;
		return FOUND;
	}
	return status.last_seq > intake->taken ? FOUND : AGAIN;
}

/* ---- the log ------------------------------------------------------------ */

int intake_view(struct intake *intake, struct txn **ret_txn)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	int r = 0;

	if (!intake->txn)
		r = txn_begin_read(journal_env(intake->journal), &intake->txn);
	else if (!intake->viewing)
		r = txn_renew(intake->txn);
	if (r < 0) {
		txn_abort(&intake->txn);
		return err_add(r, "journal");
	}
	intake->viewing = true;
	*ret_txn = intake->txn;
	return 0;
}

struct txn *intake_txn(struct intake *intake)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	REQUIRE(intake->viewing);
	return intake->txn;
}

void intake_rest(struct intake *intake)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	journal_walk_close(&intake->walk);
	if (intake->viewing)
		txn_reset(intake->txn);
	intake->viewing = false;
}

static int intake_open_walk(struct intake *intake)
{
	struct journal_meta meta;
	struct txn *txn;
	int r = intake_view(intake, &txn);

	if (!r)
		r = journal_meta(intake->journal, txn, &meta);
	if (r)
		return r;
	if (meta.horizon > intake->taken)
		return LAPPED;
	if (meta.next_seq <= intake->taken + 1) {
		intake->live = intake->ring != NULL;
		return AGAIN;
	}
	return journal_walk_open_checked(
		txn, intake->taken + 1, meta.horizon, meta.next_seq, &intake->walk);
}

int intake_begin(struct intake *intake)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	REQUIRE(!intake->walk);
	int r;

	if (!intake->ring) { /* attaches at its tail: later records come through it */
		r = ring_attach(home_runtime_fd(intake->p->home), DELTA_RING, &intake->ring);
		err_ignore(r, "the log has everything, and the ring is retried");
		if (r >= 0 &&
			memcmp(ring_uuid(intake->ring), journal_uuid(intake->journal), 16) != 0)
			intake_drop_ring(intake);
		if (intake->ring) /* handlers need no index, or wait for it anyway */
			ring_wake_last(intake->ring);
	}
	r = intake->live ? intake_drain(intake) : FOUND;
	if (r == FOUND)
		r = intake_open_walk(intake);
	if (r != FOUND)
		intake_rest(intake);
	return r;
}

int intake_next(struct intake *intake, struct record *ret_record)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	REQUIRE(intake->walk);
	int r = journal_walk_next(intake->walk, ret_record);

	if (r < 0)
		return err_add(r, "journal, after seq %llu",
			(unsigned long long)journal_walk_seq(intake->walk));
	if (r == END) /* later records come through the ring, from the tail noted before */
		intake->live = intake->ring != NULL;
	return r;
}

void intake_end(struct intake *intake, uint64_t taken)
{
	intake_rest(intake);
	intake->taken = taken;
}

uint64_t intake_taken(const struct intake *intake)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	return intake->taken;
}

bool intake_is_live(const struct intake *intake)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	return intake->live;
}

int intake_wait(struct intake *intake, int timeout_ms)
{
	CHECK_OBJ(intake, INTAKE_MAGIC);
	REQUIRE(!intake->viewing);
	if (!intake->ring) {
		(void)poll(NULL, 0, timeout_ms < POLL_MS ? timeout_ms : POLL_MS); /* a pause */
		return 0;
	}
	if (!intake->live)
		return 0;
	int r = ring_wait(intake->ring, timeout_ms);
	if (r != GONE)
		return r;
	intake_drop_ring(intake);
	return 0;
}
