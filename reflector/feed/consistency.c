/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/consistency.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "reflector/feed/list.h"
#include "reflector/feed/request.h"
#include "reflector/net/status.h"
#include "reflector/record/object.h"

#define CONSISTENCY_MAGIC 0x434f4e53u
#define SLICE             4096 /* heads */
#define TOKEN_MAX         (64u << 10)
#define ERROR_BODY_MAX    8192

struct consistency {
	uint32_t magic;
	struct consistency_request request;
	struct txn *txn; /* while heads are read */
	struct head_walk *walk;
	struct buf rv;
	struct buf list_rv; /* of the first page */
	struct moment at;   /* its time */
	struct buf continue_;
	struct consistency_digest ours, theirs;
	struct http_call *call;
	struct list *list;
	struct buf error_body;
	bool refused;
};

/* ---- the digest --------------------------------------------------------- */

void consistency_add(struct consistency_digest *digest, struct bytes name_space, struct bytes name,
	struct bytes uid, struct bytes rv)
{
	const char *slash =
		name_space.size || !name.size ? NULL : memchr(name.data, '/', name.size);

	if (slash) {
		name_space = BYTES(name.data, (size_t)(slash - (const char *)name.data));
		name = BYTES(slash + 1, name.size - name_space.size - 1);
	}
	uint64_t hash = hash_bytes(name, hash_bytes(name_space, 0));
	digest->sum += hash_bytes(rv, hash_bytes(uid, hash));
	digest->count++;
}

/* ---- the end ------------------------------------------------------------ */

static void consistency_end(
	struct consistency *check, enum consistency_outcome outcome, const char *why)
{
	struct consistency_request request = check->request;
	struct consistency_result result = {.outcome = outcome,
		.rv = buf_cstr(&check->rv),
		.list_rv = buf_cstr(&check->list_rv),
		.at = check->at,
		.ours = check->ours.count,
		.theirs = check->theirs.count,
		.why = why};

	request.done(request.arg, &result);
	consistency_cancel(&check);
}

/* ---- the server's side -------------------------------------------------- */

static void consistency_ask(struct consistency *check);

static int consistency_take_item(void *arg, struct bytes item, bool cut)
{
	struct consistency *check = arg;
	struct object_identity id;
	int r = object_identity(item, cut, &id);

	if (r < 0)
		return r;
	consistency_add(&check->theirs,
		check->request.definition->namespaced ? id.name_space : BYTES_NONE, id.name, id.uid,
		id.rv);
	return 0;
}

static void consistency_on_status(void *arg, const struct http_answer *answer)
{
	struct consistency *check = arg;

	check->refused = answer->status != 200;
	if (!check->list_rv.size)
		moment_now(&check->at);
}

static int consistency_on_body(void *arg, struct bytes bytes)
{
	struct consistency *check = arg;
	size_t room = ERROR_BODY_MAX - check->error_body.size;

	if (!check->refused)
		return list_feed(check->list, bytes.data, bytes.size);
	buf_put(&check->error_body, bytes.data, bytes.size < room ? bytes.size : room);
	return 0;
}

static void consistency_on_done(void *arg, int result, int code)
{
	struct consistency *check = arg;
	const struct consistency_digest *ours = &check->ours, *theirs = &check->theirs;
	struct list_page page;
	struct status status;

	CHECK_OBJ(check, CONSISTENCY_MAGIC);
	check->call = NULL;
	if (result >= 0 && code == 200)
		result = list_end(check->list, &page);
	if (result >= 0 && code == 200 && !check->list_rv.size)
		buf_bytes_put(&check->list_rv, page.rv);
	if (result >= 0)
		result = buf_error(&check->list_rv);
	if (result < 0) {
		consistency_end(check, CONSISTENCY_UNKNOWN, err_text(result));
	} else if (code != 200) {
		status_read(code, 0, buf_bytes(&check->error_body), &status);
		consistency_end(check, CONSISTENCY_UNKNOWN, status.text);
	} else if (!bytes_equal(page.rv, buf_bytes(&check->list_rv)) ||
		   (check->request.newest ? rv_compare(page.rv, buf_bytes(&check->rv)) == -1
					  : !bytes_equal(page.rv, buf_bytes(&check->rv)))) {
		/* Some servers ignore resourceVersionMatch=Exact. */
		consistency_end(
			check, CONSISTENCY_UNKNOWN, "the server listed another resourceVersion");
	} else if (!page.continue_.size ||
		   theirs->count > ours->count) { /* all, or too many already */
		consistency_end(check,
			ours->sum == theirs->sum && ours->count == theirs->count
				? CONSISTENCY_SAME
				: CONSISTENCY_DIFFERS,
			"");
	} else if (!page.items || bytes_equal(page.continue_, buf_bytes(&check->continue_))) {
		consistency_end(
			check, CONSISTENCY_UNKNOWN, "the pages of the list do not come to an end");
	} else {
		buf_reset(&check->continue_);
		buf_bytes_put(&check->continue_, page.continue_);
		if (buf_error(&check->continue_) < 0)
			consistency_end(
				check, CONSISTENCY_UNKNOWN, "a continue token that is too long");
		else
			consistency_ask(check);
	}
}

static void consistency_ask(struct consistency *check)
{
	const struct consistency_request *request = &check->request;
	struct buf path = BUF_INIT;

	list_reset(check->list);
	buf_reset(&check->error_body);
	check->refused = false;
	bool exact = !request->newest && !check->continue_.size;
	struct feed_action action = {.what = FEED_DO_LIST,
		.rv = exact ? buf_cstr(&check->rv) : "",
		.continue_ = buf_cstr(&check->continue_),
		.limit = request->page_size};
	int r = request_path(request->definition, &action, &path);
	if (exact)
		buf_str(&path, "&resourceVersionMatch=Exact");
	if (r >= 0)
		r = buf_error(&path);
	if (r >= 0)
		r = http_start(request->http,
			&(struct http_request){
				.path = buf_cstr(&path),
				.accept = REQUEST_ACCEPT_METADATA,
				.bulk = true,
				.first_byte_ns = request->answer_ns,
				.idle_ns = request->answer_ns,
				.arg = check,
				.on_status = consistency_on_status,
				.on_body = consistency_on_body,
				.on_done = consistency_on_done,
			},
			&check->call);
	buf_release(&path);
	if (r < 0)
		consistency_end(check, CONSISTENCY_UNKNOWN, err_text(r));
}

/* ---- the journal's side ------------------------------------------------- */

static void consistency_close_journal(struct consistency *check)
{
	head_walk_close(&check->walk);
	if (check->txn)
		txn_abort(&check->txn);
}

bool consistency_has_work(const struct consistency *check)
{
	return check->walk != NULL;
}

int consistency_work(struct consistency *check)
{
	struct bytes key;
	struct head head;
	int r = FOUND;

	CHECK_OBJ(check, CONSISTENCY_MAGIC);
	if (!check->walk)
		return 0;
	for (size_t i = 0; i < SLICE; i++) {
		r = head_walk_next(check->walk, &key, &head);
		if (r != FOUND)
			break;
		consistency_add(&check->ours, BYTES_NONE, key, head.uid, head.rv);
	}
	if (r == FOUND)
		return AGAIN;
	consistency_close_journal(check);
	if (r == END)
		consistency_ask(check);
	else
		consistency_end(check, CONSISTENCY_UNKNOWN, err_text(r));
	return 0;
}

int consistency_start(const struct consistency_request *request, struct consistency **ret_check)
{
	CLEANUP(consistency_cancel) struct consistency *check = calloc(1, sizeof(*check));
	struct journal *journal = request->journal;
	uint32_t feed = request->definition->id;
	struct feed_checkpoint checkpoint;

	if (!check)
		return err_set(-ENOMEM, "a consistency check");
	check->magic = CONSISTENCY_MAGIC;
	check->request = *request;
	buf_init(&check->rv, RV_MAX);
	buf_init(&check->list_rv, RV_MAX);
	buf_init(&check->continue_, TOKEN_MAX);
	buf_init(&check->error_body, ERROR_BODY_MAX);
	int r = list_new(&(struct list_options){.item_fn = consistency_take_item, .arg = check},
		&check->list);
	if (r >= 0)
		r = txn_begin_read(journal_env(journal), &check->txn);
	if (r >= 0)
		r = journal_feed_checkpoint(journal, check->txn, feed, &checkpoint);
	if (r != FOUND)
		return r;
	/* The committed state must belong to one resourceVersion. */
	if (checkpoint.phase != FEED_SYNCED || checkpoint.list_begin || checkpoint.list_ns ||
		!checkpoint.rv.size)
		return NOT_FOUND;
	buf_bytes_put(&check->rv, checkpoint.rv);
	r = buf_error(&check->rv);
	if (r >= 0)
		r = head_walk_open(check->txn, feed, BYTES_NONE, &check->walk);
	if (r < 0)
		return r;
	*ret_check = TAKE(check);
	return 0;
}

void consistency_cancel(struct consistency **check)
{
	struct consistency *c = *check;

	*check = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CONSISTENCY_MAGIC);
	consistency_close_journal(c);
	http_cancel(&c->call);
	list_free(&c->list);
	buf_release(&c->rv);
	buf_release(&c->list_rv);
	buf_release(&c->continue_);
	buf_release(&c->error_body);
	c->magic = 0;
	free(c);
}
