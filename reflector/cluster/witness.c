/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/witness.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feed/list.h"
#include "reflector/feed/request.h"
#include "reflector/record/object.h"

#define WITNESS_MAGIC 0x5749544eu
#define ANSWER_NS     (32ull * 1000 * 1000 * 1000)
#define ITEMS         100 /* of each feed */
#define FEEDS_MAX     16
#define KEY_MAX       1024

struct witness {
	uint32_t magic;
	unsigned feeds_asked;
	struct http *http;
	struct journal *journal;
	witness_done_fn *done;
	void *arg;
	struct http_call *call;
	struct list *list;
	uint32_t feed; /* id of the listed feed; 0: none yet */
	bool namespaced;
	int status; /* HTTP status of its answer */
	bool compared, known;
};

/* ---- the journal's objects ---------------------------------------------- */

/* Finds KEY's head; for an empty KEY the first object's. Returns: FOUND, NOT_FOUND, an error. */
static int witness_find_head(struct journal *journal, struct txn *txn, uint32_t feed,
	struct bytes key, struct head *ret_head)
{
	struct head_walk *walk;
	struct bytes found;
	int r = head_walk_open(journal, txn, feed, key, &walk);

	if (r < 0)
		return r;
	r = head_walk_next(walk, &found, ret_head);
	head_walk_close(&walk); /* RET_HEAD stays valid with the transaction */
	if (r == FOUND && key.size && !bytes_equal(key, found))
		return NOT_FOUND;
	return r == END ? NOT_FOUND : r;
}

struct witness_search {
	struct witness *witness;
	struct txn *txn;
	struct buf path;
	int result;
};

/* Chooses the next feed with objects, and composes the path of its list. */
static int witness_choose_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct witness_search *search = arg;
	struct witness *witness = search->witness;
	struct head head;

	if (definition->id <= witness->feed || checkpoint->phase == FEED_REMOVED)
		return 0;
	search->result =
		witness_find_head(witness->journal, search->txn, definition->id, BYTES_NONE, &head);
	if (search->result == NOT_FOUND)
		return 0;
	witness->feed = definition->id;
	witness->namespaced = definition->namespaced;
	if (search->result == FOUND)
		search->result = request_path(definition,
			&(struct feed_action){
				.what = FEED_DO_LIST, .rv = "", .continue_ = "", .limit = ITEMS},
			&search->path);
	return 1;
}

/* ---- the server's objects ----------------------------------------------- */

static int witness_on_item(void *arg, struct bytes item, bool cut)
{
	struct witness *witness = arg;
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	struct txn *txn = NULL;
	struct object_identity id;
	struct head head;
	int r = object_identity(item, cut, &id);

	if (r < 0)
		return r;
	buf_init(&key, KEY_MAX);
	if (witness->namespaced && id.name_space.size) {
		buf_bytes_put(&key, id.name_space);
		buf_byte(&key, '/');
	}
	buf_bytes_put(&key, id.name);
	witness->compared = true;
	if (buf_error(&key) < 0 || !id.name.size || !id.uid.size)
		return 0; /* without a name or a uid no object can be known */
	r = txn_begin_read(journal_env(witness->journal), &txn);
	if (r < 0)
		return r;
	r = witness_find_head(witness->journal, txn, witness->feed, buf_bytes(&key), &head);
	if (r == FOUND && bytes_equal(head.uid, id.uid))
		witness->known = true;
	txn_abort(&txn);
	return r < 0 ? r : 0;
}

static void witness_on_status(void *arg, const struct http_answer *answer)
{
	struct witness *witness = arg;

	witness->status = answer->status;
}

static int witness_on_body(void *arg, struct bytes bytes)
{
	struct witness *witness = arg;
	int r = witness->status == 200 ? list_feed(witness->list, bytes.data, bytes.size) : 0;

	return r < 0 ? r : witness->known ? END : 0;
}

static int witness_list_next(struct witness *witness);

/* Takes a list or a refusal as the feed's answer. Any other answer is an error: the caller asks
 * again later. */
static void witness_on_done(void *arg, int result, int status)
{
	struct witness *witness = arg;
	witness_done_fn *done = witness->done;
	void *done_arg = witness->arg;
	struct list_page page;

	CHECK_OBJ(witness, WITNESS_MAGIC);
	witness->call = NULL;
	if (!witness->known && result >= 0) {
		if (status == 200)
			result = list_end(witness->list, &page);
		else if (status < 400 || status >= 500 || status == 401 || status == 408 ||
			 status == 429)
			result = err_say(ERR_HTTP, "looking for known objects: HTTP %d", status);
		else
			result = 0;
	}
	if (!witness->known && result >= 0)
		result = witness_list_next(witness);
	if (!witness->known && !result)
		return;

	enum witness_outcome outcome = witness->known      ? WITNESS_SAME
				       : witness->compared ? WITNESS_OTHER
							   : WITNESS_NONE;

	result = witness->known || result == NOT_FOUND ? 0 : result;
	witness_cancel(&witness);
	done(done_arg, result, outcome);
}

/* Lists the next feed. Returns: 0, NOT_FOUND when no feed is left, an error. */
static int witness_list_next(struct witness *witness)
{
	struct witness_search search = {.witness = witness, .path = BUF_INIT, .result = NOT_FOUND};
	int r;

	if (witness->feeds_asked++ == FEEDS_MAX)
		return NOT_FOUND;
	r = txn_begin_read(journal_env(witness->journal), &search.txn);
	if (r < 0)
		return r;
	r = journal_each_feed(witness->journal, search.txn, witness_choose_feed, &search);
	txn_abort(&search.txn);
	if (r >= 0)
		r = search.result;
	if (r == 0) {
		list_reset(witness->list);
		witness->status = 0;
		r = http_start(witness->http,
			&(struct http_request){
				.path = buf_cstr(&search.path),
				.accept = REQUEST_ACCEPT_METADATA,
				.total_ns = ANSWER_NS,
				.arg = witness,
				.on_status = witness_on_status,
				.on_body = witness_on_body,
				.on_done = witness_on_done,
			},
			&witness->call);
	}
	buf_release(&search.path);
	return r;
}

/* ---- the whole ---------------------------------------------------------- */

int witness_start(struct http *http, struct journal *journal, witness_done_fn *done, void *arg,
	struct witness **ret_witness)
{
	CLEANUP(witness_cancel) struct witness *witness = calloc(1, sizeof(*witness));

	if (!witness)
		return err_set(-ENOMEM, "looking for known objects");
	witness->magic = WITNESS_MAGIC;
	witness->http = http;
	witness->journal = journal;
	witness->done = done;
	witness->arg = arg;
	int r = list_new(
		&(struct list_options){.item_fn = witness_on_item, .arg = witness}, &witness->list);

	if (r >= 0)
		r = witness_list_next(witness);
	if (r != 0)
		return r;
	*ret_witness = TAKE(witness);
	return 0;
}

void witness_cancel(struct witness **witness)
{
	struct witness *w = *witness;

	*witness = NULL;
	if (!w)
		return;
	CHECK_OBJ(w, WITNESS_MAGIC);
	http_cancel(&w->call);
	list_free(&w->list);
	w->magic = 0;
	free(w);
}
