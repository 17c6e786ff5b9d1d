/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_internal.h"

#include <errno.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"

/* ---- beginning and ending ----------------------------------------------- */

static void txn_unpin(struct txn *txn)
{
	struct pin *pin = &txn->pin;

	if (!pin->file)
		return;
	if (pin->kind == PIN_MARK) /* it holds everything */
		pins_give(txn->map->pins, pin);
	else if (pin_set(pin, 0))
		pins_drop(txn->map->pins, pin);
}

static int txn_start_read(struct txn *txn)
{
	struct mapping *map = txn->map;
	int r = mapping_pin(map, &txn->pin);

	if (r < 0)
		return r;
	int rc = __atomic_load_n(&map->is_outdated, __ATOMIC_RELAXED)
			 ? MAPPING_REPLACED
			 : mapping_begin_read(map, &txn->pin, &txn->mdb);
	if (__builtin_expect(rc != 0, 0)) {
		r = mapping_failed(map, rc, "reading");
		txn_unpin(txn);
		return r;
	}
	txn->is_running = true;
	txn_begin_paths(txn);
	return 0;
}

static int txn_begin(struct env *env, bool is_write, struct txn **ret_txn)
{
	CHECK_OBJ(env, ENV_MAGIC);
	if (mapping_is_forked(env->map))
		return mapping_forked(env->map);
	AUTO_FREE struct txn *txn = calloc(1, sizeof(*txn));
	if (!txn)
		return err_set(-ENOMEM, "beginning a transaction");
	txn->magic = TXN_MAGIC;
	txn->is_write = is_write;
	txn->map = env->map;
	if (is_write) {
		err_ignore(mapping_advance(env->map, false),
			"nothing is reused meanwhile, and env_clean_pins() reports it");
		errno = 0; /* mapping_write_error() looks at it */
		int rc = mdb_txn_begin(env->map->mdb, NULL, 0, &txn->mdb);
		if (rc)
			return mapping_failed(env->map, rc, "writing");
		int r = mapping_check_ours(env->map);
		if (r < 0) { /* nothing is written on top of it */
			mdb_txn_abort(txn->mdb);
			return r;
		}
		txn->is_running = true;
	} else {
		int r = txn_start_read(txn);
		if (r < 0) {
			if (txn->mdb)
				mdb_txn_abort(txn->mdb);
			pins_give(env->map->pins, &txn->pin);
			return r;
		}
	}
	*ret_txn = TAKE(txn);
	return 0;
}

int txn_begin_write(struct env *env, struct txn **ret_txn)
{
	REQUIRE(env && env->mode == ENV_WRITE);
	return txn_begin(env, true, ret_txn);
}

int txn_begin_read(struct env *env, struct txn **ret_txn)
{
	return txn_begin(env, false, ret_txn);
}

void txn_abort(struct txn **txn)
{
	if (!*txn)
		return;
	CHECK_OBJ(*txn, TXN_MAGIC);
	if ((*txn)->mdb && !mapping_is_forked((*txn)->map))
		mdb_txn_abort((*txn)->mdb);
	if (!mapping_is_forked((*txn)->map))
		pins_give((*txn)->map->pins, &(*txn)->pin);
	txn_forget_cursors(*txn);
	if ((*txn)->is_write && (*txn)->is_running && !mapping_is_forked((*txn)->map))
		mapping_end_write((*txn)->map);
	(*txn)->magic = 0;
	free(*txn);
	*txn = NULL;
}

int txn_commit(struct txn **txn)
{
	CHECK_OBJ(*txn, TXN_MAGIC);
	struct mapping *map = (*txn)->map;
	int r = (*txn)->error ? txn_first_error(*txn) : 0;

	if (mapping_is_forked(map))
		r = mapping_forked(map);
	bool is_write = (*txn)->is_write;
	if (r == 0 && is_write)
		r = txn_wrote(*txn, 0, "committing to");
	if (r == 0 && is_write)
		r = mapping_allocate_commit(map, *txn);
	if (r < 0) {
		txn_abort(txn);
		return r;
	}
	int rc = is_write ? mapping_commit(map, (*txn)->mdb, (*txn)->has_written)
			  : mdb_txn_commit((*txn)->mdb); /* frees it even when it fails */
	(*txn)->mdb = NULL;
	if (is_write && rc == 0)
		err_ignore(mapping_fit_file(map, UINT64_MAX),
			"the next opening reports a file that is too short");
	txn_abort(txn);
	return rc ? mapping_failed(map, rc, "committing to") : 0;
}

void txn_reset(struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	REQUIRE(!txn->is_write);
	if (!txn->is_running || mapping_is_forked(txn->map))
		return;
	mdb_txn_reset(txn->mdb);
	txn_unpin(txn);
	txn->is_running = false;
	txn->roots_known = 0;
}

int txn_renew(struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	if (mapping_is_forked(txn->map))
		return mapping_forked(txn->map);
	txn_reset(txn);
	return txn_start_read(txn);
}

bool txn_is_pinned(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	int r = failpoint_pass(FAILPOINT_ENV_PINNED);
	if (r < 0) {
		err_ignore(r, "a test reads without pins beside a writer of its own process");
		return false;
	}
	return txn->pin.file || txn->map->own_page;
}

bool txn_keeps_pin(struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	return !txn->is_running || !txn->pin.file || mapping_is_forked(txn->map) ||
	       pins_check(&txn->pin);
}

uint64_t txn_id(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	return mdb_txn_id(txn->mdb);
}

bool txn_is_given_up(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	return !txn->is_write && mapping_is_given_up(txn->map);
}

int txn_result(const struct txn *txn, int r)
{
	return r < 0 && txn_is_given_up(txn) ? mapping_failed(txn->map, MAPPING_REPLACED, "reading")
					     : r;
}

int txn_failed(struct txn *txn, int rc, const char *what)
{
	int r = mapping_failed(txn->map, txn_is_given_up(txn) ? MAPPING_REPLACED : rc, what);

	if (txn->is_write && !txn->error) {
		txn->error = r;
		err_keep(&txn->why);
	}
	return r;
}

int txn_first_error(const struct txn *txn)
{
	err_restore(&txn->why);
	return txn->error;
}

void txn_require_write(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	REQUIRE(txn->is_write && txn->is_running);
}
