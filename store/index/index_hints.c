/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the hints of an index for its writer (hints.h). */
#include "store/index/index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"

#define RETRY_SEQS (UINT64_C(1) << 20)

static struct hints_of index_hints_identity(const struct index *index, const uint8_t journal[16])
{
	struct hints_of of = {.index_generation = generation_number(index->gen)};

	memcpy(of.journal, journal, sizeof(of.journal));
	return of;
}

int index_open_hints(struct index *index, const uint8_t journal[16], struct hints **ret_hints)
{
	struct hints_of of = index_hints_identity(index, journal);

	CHECK_OBJ(index, INDEX_MAGIC);
	return hints_open(generation_folder_fd(index->gen), &of, false, ret_hints);
}

static uint64_t index_hints_count(const struct index *index)
{
	uint64_t n = 0;

	for (size_t i = 0; i < index->n_feeds; i++)
		n += index->feeds[i].feed.objects;
	return n;
}

/* Makes a table of the committed state and replaces the present one by it. */
static int index_hints_make(struct index *index)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	CLEANUP(hints_close) struct hints *hints = NULL;
	struct hints_of of = index_hints_identity(index, index->state.meta.journal);
	int fd = generation_folder_fd(index->gen);
	struct index_entry entry;
	struct bytes key, value;
	struct stat st;

	if (fstatat(fd, "data.mdb", &st, 0) < 0)
		return err_set(-errno, "index: 'data.mdb'");
	int r = txn_begin_read(generation_env(index->gen), &txn);
	if (r == 0)
		r = hints_create(fd, &of, index_hints_count(index), index->state.meta.taken,
			st.st_mode & 0777, &hints);
	if (r == 0)
		r = cursor_open(txn, INDEX_NAME, &cursor);
	if (r == 0)
		r = cursor_seek(cursor, BYTES_NONE, &key, &value);
	while (r == FOUND) {
		r = index_read_name(key, value, &entry);
		if (r < 0)
			return r;
		hints_put(hints, be32_get(key.data),
			BYTES((const uint8_t *)key.data + 4, key.size - 4), &entry);
		r = cursor_next(cursor, &key, &value);
	}
	if (r < 0)
		return r;
	/* Nothing has changed since the commit, so the writer's copy of meta is the committed
	 * one. */
	hints_cover(hints, index->state.meta.taken, txn_id(txn));
	r = hints_publish(hints, fd);
	if (r < 0)
		return r;
	hints_close(&index->hints);
	index->hints = TAKE(hints);
	return 0;
}

/* Makes a table if it can. If not, the present one stays: it is right, and only lacks objects. */
static void index_hints_try_make(struct index *index)
{
	struct err_kept kept;

	err_keep(&kept);
	int r = index_hints_make(index);
	if (r < 0) {
		index->hints_retry_objects = 2 * (index_hints_count(index) + 1);
		index->hints_retry_taken = index->state.meta.taken + RETRY_SEQS;
	}
	err_ignore(r, "lookups without hints are only slower");
	err_restore(&kept);
}

void index_hints_open(struct index *index)
{
	struct hints_of of = index_hints_identity(index, index->state.meta.journal);

	REQUIRE(index->txn && !index->hints);
	if (index->state.meta.building)
		return; /* readers don't know it yet */
	if (hints_open(generation_folder_fd(index->gen), &of, true, &index->hints) == FOUND) {
		/* The table is of the last transaction, or of a next one never committed. Else a
		 * writer without hints has changed the index since. */
		uint64_t next = txn_id(index->txn), txn = hints_txn(index->hints);

		if ((txn == next || txn + 1 == next) &&
			hints_taken(index->hints) >= index->state.meta.taken)
			return;
	}
	hints_close(&index->hints);
	index_hints_try_make(index);
}

void index_hints_note(struct index *index)
{
	const struct changes *changes = &index->changes;

	if (!index->hints)
		return;
	for (size_t i = 0; i < changes->n_objects; i++) {
		const struct change_object *o = &changes->objects[i];
		struct bytes key = changes_key(changes, o->key_at, o->key_size);

		if (!o->changed)
			continue;
		/* An object deleted and created again has a new id under the same name. One neither
		 * present nor stored came and went within this transaction; an interrupted earlier
		 * attempt may have left a hint. */
		if (!o->present || (o->stored_object && o->stored_object != o->to.object))
			hints_remove(index->hints, o->feed, key, o->stored_object);
		if (o->present)
			hints_put(index->hints, o->feed, key, &o->to);
	}
}

void index_hints_grow(struct index *index)
{
	uint64_t objects = index_hints_count(index), taken = index->state.meta.taken;

	if (index->hints && hints_is_worn(index->hints, objects, taken) &&
		(objects >= index->hints_retry_objects || taken >= index->hints_retry_taken))
		index_hints_try_make(index);
}
