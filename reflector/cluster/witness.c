/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/witness.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feed/list.h"
#include "reflector/record/object.h"
#include "reflector/feed/request.h"

#define WITNESS_MAGIC 0x5749544eu
#define ANSWER_NS     (32ull * 1000 * 1000 * 1000)
#define ITEMS         100 /* of each feed */
#define FEEDS_MAX     16
#define KEY_MAX       1024

struct witness {
	uint32_t magic;
	unsigned asked; /* feeds */
	struct http *http;
	struct journal *journal;
	witness_done_fn *done;
	void *arg;
	struct http_call *call;
	struct list *list;
	uint32_t feed; /* that is asked for; 0: none yet */
	bool namespaced;
	int status;    /* of its answer */
	bool compared, known;
};

/* ---- what we have ---- */

/* FOUND when the journal has KEY, or with an empty one any object of the feed. */
static int find_head(struct journal *journal, struct txn *txn, uint32_t feed, struct bytes key,
	struct head *ret_head)
{
	struct head_walk *walk;
	struct bytes found;
	int r = head_walk_open(journal, txn, feed, key, &walk);

	if (r < 0)
		return r;
	r = head_walk_next(walk, &found, ret_head);
	head_walk_close(&walk); /* the head is the transaction's */
	if (r == FOUND && key.size && !bytes_equal(key, found))
		return NOT_FOUND;
	return r == END ? NOT_FOUND : r;
}

struct search {
	struct witness *witness;
	struct txn *txn;
	struct buf path;
	int result;
};

/* The next feed that has objects, and where to ask for them. */
static int look_at(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct search *search = arg;
	struct witness *witness = search->witness;
	struct head head;

	if (definition->id <= witness->feed || checkpoint->phase == FEED_REMOVED)
		return 0;
	search->result = find_head(witness->journal, search->txn, definition->id, BYTES_NONE, &head);
	if (search->result == NOT_FOUND)
		return 0;
	witness->feed = definition->id;
	witness->namespaced = definition->namespaced;
	if (search->result == FOUND)
		search->result = request_path(definition, &(struct feed_action){.what = FEED_DO_LIST,
			.rv = "", .continue_ = "", .limit = ITEMS}, &search->path);
	return 1;
}

/* ---- what the server has ---- */

static int take_item(void *arg, struct bytes item, bool cut)
{
	struct witness *witness = arg;
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	struct txn *txn = NULL;
	struct object_identity id;
	struct head head;
	int r = (cut ? object_identity_cut : object_identity)(item, &id);

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
		return 0; /* nothing that anybody could know */
	r = txn_begin_read(journal_env(witness->journal), &txn);
	if (r < 0)
		return r;
	r = find_head(witness->journal, txn, witness->feed, buf_bytes(&key), &head);
	if (r == FOUND && bytes_equal(head.uid, id.uid))
		witness->known = true;
	txn_abort(&txn);
	return r < 0 ? r : 0;
}

static void on_status(void *arg, const struct http_answer *answer)
{
	struct witness *witness = arg;

	witness->status = answer->status;
}

static int on_body(void *arg, struct bytes bytes)
{
	struct witness *witness = arg;
	int r = witness->status == 200 ? list_feed(witness->list, bytes.data, bytes.size) : 0;

	return r < 0 ? r : witness->known ? END : 0;
}

static void end(struct witness *witness, int result)
{
	witness_done_fn *done = witness->done;
	void *arg = witness->arg;
	enum witness_outcome outcome = witness->known      ? WITNESS_SAME
				       : witness->compared ? WITNESS_OTHER
							   : WITNESS_NONE;

	witness_cancel(&witness);
	done(arg, result, outcome);
}

static int ask(struct witness *witness);

/* An answer that is neither objects nor a plain refusal says nothing: the next one may. */
static int check_answer(struct witness *witness, int status)
{
	struct list_page page;

	if (status == 200)
		return list_end(witness->list, &page);
	if (status >= 400 && status < 500 && status != 401 && status != 408 && status != 429)
		return 0;
	return err_say(ERR_HTTP, "looking for known objects: HTTP %d", status);
}

static void on_done(void *arg, int result, int status)
{
	struct witness *witness = arg;

	CHECK_OBJ(witness, WITNESS_MAGIC);
	witness->call = NULL;
	if (!witness->known && result >= 0)
		result = check_answer(witness, status);
	if (!witness->known && result >= 0)
		result = ask(witness);
	if (witness->known || result)
		end(witness, witness->known || result == NOT_FOUND ? 0 : result);
}

static int ask_at(struct witness *witness, const char *path)
{
	list_reset(witness->list);
	witness->status = 0;
	return http_start(witness->http, &(struct http_request){
		.path = path,
		.accept = REQUEST_ACCEPT_METADATA,
		.total_ns = ANSWER_NS,
		.arg = witness,
		.on_status = on_status,
		.on_body = on_body,
		.on_done = on_done,
	}, &witness->call);
}

/* NOT_FOUND when no feed is left to be asked about. */
static int ask(struct witness *witness)
{
	struct search search = {.witness = witness, .path = BUF_INIT, .result = NOT_FOUND};
	int r;

	if (witness->asked++ == FEEDS_MAX)
		return NOT_FOUND;
	r = txn_begin_read(journal_env(witness->journal), &search.txn);
	if (r < 0)
		return r;
	r = journal_each_feed(witness->journal, search.txn, look_at, &search);
	txn_abort(&search.txn);
	if (r >= 0)
		r = search.result;
	if (r == 0)
		r = ask_at(witness, buf_cstr(&search.path));
	buf_release(&search.path);
	return r;
}

/* ---- the whole ---- */

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
	int r = list_new(&(struct list_options){.item_fn = take_item, .arg = witness}, &witness->list);

	if (r >= 0)
		r = ask(witness);
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
