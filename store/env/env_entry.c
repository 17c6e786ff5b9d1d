/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_internal.h"

#include <errno.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

struct cursor {
	uint32_t magic;
	unsigned db;
	struct txn *txn;
	bool has_moved;
	struct tree_way way;         /* read transactions only */
	MDB_cursor *mdb;             /* write transactions only; NULL when it has ended */
	struct cursor *next, **link; /* write transactions only */
};

#define VAL(b)   ((MDB_val){(b).size, (void *)(uintptr_t)(b).data})
#define UNVAL(v) BYTES((v).mv_data, (v).mv_size)

static MDB_dbi database(const struct txn *txn, unsigned db)
{
	REQUIRE(db < txn->map->n_databases);
	return txn->map->databases[db];
}

static unsigned txn_mdb_flags(unsigned flags)
{
	return flags & TXN_APPEND ? MDB_APPEND : 0;
}

int txn_get(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_value)
{
	MDB_val k = VAL(key), v;
	struct bytes found;

	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->error)
		return txn_first_error(txn);
	MDB_dbi number = database(txn, db);
	if (!txn->is_write) {
		int r = txn_find(txn, db, key, true, &found, ret_value);
		return r == END ? NOT_FOUND : r;
	}
	int rc = mdb_get(txn->mdb, number, &k, &v);
	if (rc)
		return rc == MDB_NOTFOUND ? NOT_FOUND : txn_failed(txn, rc, "reading");
	*ret_value = UNVAL(v);
	return FOUND;
}

int txn_floor(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;

	CHECK_OBJ(txn, TXN_MAGIC);
	REQUIRE(db < txn->map->n_databases);
	if (!txn->is_write)
		return txn_find(txn, db, key, false, ret_key, ret_value);
	int r = cursor_open(txn, db, &cursor);
	return r < 0 ? r : cursor_floor(cursor, key, ret_key, ret_value);
}

int txn_put(struct txn *txn, unsigned db, struct bytes key, struct bytes value, unsigned flags)
{
	MDB_val k = VAL(key), v = VAL(value);

	txn_require_write(txn);
	if (txn->error)
		return txn_first_error(txn);
	txn->has_written = true;
	int rc = mdb_put(txn->mdb, database(txn, db), &k, &v, txn_mdb_flags(flags));
	return txn_wrote(txn, rc, "writing");
}

int txn_reserve(struct txn *txn, unsigned db, struct bytes key, size_t size, unsigned flags,
	void **ret_place)
{
	MDB_val k = VAL(key), v = {size, NULL};

	txn_require_write(txn);
	if (txn->error)
		return txn_first_error(txn);
	txn->has_written = true;
	int rc = mdb_put(txn->mdb, database(txn, db), &k, &v, MDB_RESERVE | txn_mdb_flags(flags));
	int r = txn_wrote(txn, rc, "writing");
	if (r == 0)
		*ret_place = v.mv_data;
	return r;
}

int txn_del(struct txn *txn, unsigned db, struct bytes key)
{
	MDB_val k = VAL(key);

	txn_require_write(txn);
	if (txn->error)
		return txn_first_error(txn);
	int rc = mdb_del(txn->mdb, database(txn, db), &k, NULL);
	txn->has_written |= rc == 0;
	return rc == MDB_NOTFOUND ? NOT_FOUND : txn_wrote(txn, rc, "deleting in");
}

/* ---- cursors ------------------------------------------------------------ */

int cursor_open(struct txn *txn, unsigned db, struct cursor **ret_cursor)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->error)
		return txn_first_error(txn);
	AUTO_FREE struct cursor *cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return err_set(-ENOMEM, "opening a cursor");
	MDB_dbi number = database(txn, db);
	int rc = txn->is_write ? mdb_cursor_open(txn->mdb, number, &cursor->mdb) : 0;
	if (rc)
		return txn_failed(txn, rc, "reading");
	cursor->magic = CURSOR_MAGIC;
	cursor->db = db;
	cursor->txn = txn;
	if (txn->is_write) {
		cursor->next = txn->cursors;
		cursor->link = &txn->cursors;
		if (cursor->next)
			cursor->next->link = &cursor->next;
		txn->cursors = cursor;
	}
	*ret_cursor = TAKE(cursor);
	return 0;
}

void cursor_close(struct cursor **cursor)
{
	struct cursor *c = *cursor;

	if (!c)
		return;
	CHECK_OBJ(c, CURSOR_MAGIC);
	if (c->mdb)
		mdb_cursor_close(c->mdb);
	if (c->link) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
	}
	c->magic = 0;
	free(c);
	*cursor = NULL;
}

void txn_forget_cursors(struct txn *txn)
{
	while (txn->cursors) {
		struct cursor *cursor = txn->cursors;
		txn->cursors = cursor->next;
		cursor->mdb = NULL;
		cursor->link = NULL;
	}
}

/* Moves by LMDB, in a write transaction. */
static int cursor_move(struct cursor *cursor, MDB_val *key, MDB_cursor_op op, struct bytes *ret_key,
	struct bytes *ret_value)
{
	MDB_val value;

	REQUIRE(cursor->mdb);
	if (cursor->txn->error)
		return txn_first_error(cursor->txn);
	int rc = mdb_cursor_get(cursor->mdb, key, &value, op);
	if (rc)
		return rc == MDB_NOTFOUND ? END : txn_failed(cursor->txn, rc, "reading");
	*ret_key = UNVAL(*key);
	*ret_value = UNVAL(value);
	return FOUND;
}

int cursor_seek(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	cursor->has_moved = true;
	return cursor->txn->is_write
		       ? cursor_move(cursor, &VAL(key), key.size ? MDB_SET_RANGE : MDB_FIRST,
				 ret_key, ret_value)
		       : txn_way_seek(
				 cursor->txn, cursor->db, &cursor->way, &key, ret_key, ret_value);
}

int cursor_next(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	if (!cursor->has_moved)
		return cursor_seek(cursor, BYTES_NONE, ret_key, ret_value);
	return cursor->txn->is_write
		       ? cursor_move(cursor, &(MDB_val){0}, MDB_NEXT, ret_key, ret_value)
		       : txn_way_step(cursor->txn, &cursor->way, false, ret_key, ret_value);
}

int cursor_prev(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	return cursor->txn->is_write
		       ? cursor_move(cursor, &(MDB_val){0}, MDB_PREV, ret_key, ret_value)
		       : txn_way_step(cursor->txn, &cursor->way, true, ret_key, ret_value);
}

int cursor_last(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	cursor->has_moved = true;
	return cursor->txn->is_write
		       ? cursor_move(cursor, &(MDB_val){0}, MDB_LAST, ret_key, ret_value)
		       : txn_way_seek(
				 cursor->txn, cursor->db, &cursor->way, NULL, ret_key, ret_value);
}

int cursor_before(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value)
{
	int r = cursor_seek(cursor, key, ret_key, ret_value);

	return r == FOUND ? cursor_prev(cursor, ret_key, ret_value)
	       : r == END ? cursor_last(cursor, ret_key, ret_value)
			  : r;
}

bool cursor_page_is_whole(struct cursor *cursor, struct bytes key)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	const struct mapping *map = cursor->txn->map;
	uint64_t at = (uint64_t)((uintptr_t)key.data - (uintptr_t)map->address);

	if (at >= map->map_bytes)
		return true;
	const uint8_t *leaf = map->address + (at & ~((uint64_t)map->page_size - 1));
	return cursor->txn->is_write ? mapping_leaf_is_whole(leaf, map->page_size)
				     : txn_leaf_is_whole(cursor->txn, leaf);
}

int cursor_floor(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value)
{
	int r = cursor_seek(cursor, key, ret_key, ret_value);

	if (r == END)
		return cursor_last(cursor, ret_key, ret_value);
	return r != FOUND || bytes_equal(*ret_key, key) ? r
							: cursor_prev(cursor, ret_key, ret_value);
}

int cursor_put(struct cursor *cursor, struct bytes key, struct bytes value, unsigned flags)
{
	MDB_val k = VAL(key), v = VAL(value);

	CHECK_OBJ(cursor, CURSOR_MAGIC);
	txn_require_write(cursor->txn);
	if (cursor->txn->error)
		return txn_first_error(cursor->txn);
	cursor->txn->has_written = cursor->has_moved = true;
	int rc = mdb_cursor_put(cursor->mdb, &k, &v, txn_mdb_flags(flags));
	return txn_wrote(cursor->txn, rc, "writing");
}

int cursor_del(struct cursor *cursor)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	txn_require_write(cursor->txn);
	if (cursor->txn->error)
		return txn_first_error(cursor->txn);
	cursor->txn->has_written = true;
	int rc = mdb_cursor_del(cursor->mdb, 0);
	return txn_wrote(cursor->txn, rc, "deleting in");
}
