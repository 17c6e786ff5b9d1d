/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_copy.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/datafile.h"

#define BATCH         ((uint64_t)8 << 20) /* bytes in a transaction */
#define PAGES_AT_ONCE 64                  /* a transaction's own */
#define REPORT_EVERY  256                 /* entries between two reports */

int env_copy_begin(struct env_copy *copy, uint64_t size)
{
	uint64_t page = env_page_size(copy->to);
	int r = 0;

	if (copy->txn && copy->open_bytes >= BATCH)
		r = env_copy_commit(copy);
	if (r == 0 && !copy->txn) {
		r = txn_begin_write(copy->to, &copy->txn);
		if (r == 0)
			r = txn_allocate(copy->txn, PAGES_AT_ONCE * page);
	}
	/* A large value has pages of its own; small ones share pages, half full at worst. */
	if (r == 0)
		r = txn_allocate(copy->txn, size > page / 4 ? size + 2 * page : 2 * size + 64);
	copy->open_bytes += size;
	copy->bytes += size;
	return r;
}

int env_copy_put(
	struct env_copy *copy, unsigned db, struct bytes key, struct bytes value, unsigned flags)
{
	int r = env_copy_begin(copy, key.size + value.size);

	return r < 0 ? r : txn_put(copy->txn, db, key, value, flags);
}

int env_copy_reserve(
	struct env_copy *copy, unsigned db, struct bytes key, size_t size, void **ret_place)
{
	int r = env_copy_begin(copy, key.size + size);

	return r < 0 ? r : txn_reserve(copy->txn, db, key, size, TXN_APPEND, ret_place);
}

int env_copy_del(struct env_copy *copy, unsigned db, struct bytes key)
{
	int r = env_copy_begin(copy, 4 * env_page_size(copy->to));

	return r < 0 ? r : txn_del(copy->txn, db, key);
}

int env_copy_commit(struct env_copy *copy)
{
	copy->open_bytes = 0;
	return copy->txn ? txn_commit(&copy->txn) : 0;
}

int env_copy_database(
	struct env_copy *copy, unsigned db, struct txn *from, env_copy_fn *progress, void *arg)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	int r = cursor_open(from, db, &cursor);

	if (r == 0)
		r = cursor_seek(cursor, BYTES_LIT("\0"), &key, &value); /* no key is empty */
	for (uint64_t n = 1; r == FOUND; n++) {
		r = env_copy_put(copy, db, key, value, TXN_APPEND);
		if (r == 0 && progress && n % REPORT_EVERY == 0)
			r = progress(arg, copy->bytes);
		if (r == 0)
			r = cursor_next(cursor, &key, &value);
	}
	return r == END ? 0 : r;
}

/* ---- when a copy is due --------------------------------------------------- */

#define HALF_NS    (30 * SECOND_NS)
#define PAUSE_NS   (60 * SECOND_NS)
#define HASTY_NS   (5 * SECOND_NS)
#define RETRY_NS   (600 * SECOND_NS) /* after a failure: the disk is full, or damaged */
#define TIME_SHARE 20
#define ALLOWANCE  (16ull << 20)
#define EXCESS     (256ull << 20)

bool bloat_is_allowed(const struct bloat *s, uint64_t now_ns)
{
	return now_ns >= s->next_ns;
}

bool bloat_is_due(struct bloat *s, const struct env_info *info, uint64_t now_ns)
{
	uint64_t length = info->file_bytes + datafile_ahead(info->file_bytes);

	if (now_ns - s->turned_ns >= HALF_NS) {
		s->most[0] = s->most[1];
		s->most[1] = 0;
		s->turned_ns = now_ns;
	}
	if (s->most[1] < info->used_bytes)
		s->most[1] = info->used_bytes;
	uint64_t most = s->most[0] > s->most[1] ? s->most[0] : s->most[1];
	if (length > 2 * most + EXCESS && now_ns >= s->hasty_ns)
		return true;
	return bloat_is_allowed(s, now_ns) && length > most + most / 10 * 3 + ALLOWANCE;
}

void bloat_end(struct bloat *s, int result, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t share = (now_ns - began_ns) * TIME_SHARE;
	uint64_t pause = share > PAUSE_NS ? share : PAUSE_NS,
		 hasty = share > HASTY_NS ? share : HASTY_NS;

	if (result < 0)
		pause = hasty = pause > RETRY_NS ? pause : RETRY_NS;
	s->next_ns = now_ns + pause;
	s->hasty_ns = now_ns + hasty;
}
