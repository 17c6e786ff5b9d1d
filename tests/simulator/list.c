/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/list.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/status.h"
#include "tests/simulator/token.h"

#define LIST_MAGIC 0x7473694cu
#define PIECE      ((size_t)64 << 10)

struct list {
	uint32_t magic;
	struct view view;
	struct pin pin;
	uint64_t rv;
	struct buf last; /* key of the last object sent; begins with the scope's prefix */
	char *end;       /* key of the page's last object; NULL: to the end of the scope */
	struct buf token;
	uint64_t remaining; /* objects after this page; 0: unknown */
	struct buf piece;
	size_t sent; /* of piece */
	bool begun, any, complete;
};

static void list_free(void *arg)
{
	struct list *list = arg;
	struct world *world = list->view.world;

	CHECK_OBJ(list, LIST_MAGIC);
	pthread_mutex_lock(&world->lock);
	pin_drop(&list->pin);
	pthread_mutex_unlock(&world->lock);
	view_release(&list->view);
	buf_release(&list->last);
	buf_release(&list->token);
	buf_release(&list->piece);
	free(list->end);
	list->magic = 0;
	free(list);
}

/* ---- walking ------------------------------------------------------------ */

/* Returns the place after `last`. */
static struct keylist_place list_resume_place(struct list *list)
{
	const struct keylist *keys = &list->view.collection->keys;
	const char *last = buf_cstr(&list->last);
	struct keylist_place place = keylist_seek(keys, last), next = place;
	const struct entry *entry = keylist_next(keys, &next);

	return entry && !strcmp(entry->key, last) ? next : place;
}

/* Returns the next entry of the scope, or NULL. */
static const struct entry *list_next_entry(const struct list *list, struct keylist_place *place)
{
	const struct entry *entry = keylist_next(&list->view.collection->keys, place);

	return entry && view_covers(&list->view, entry->key) ? entry : NULL;
}

/* Counts the objects of the scope from PLACE on, at the list's RV. Without a loop if the scope is
 * the whole collection and nothing has changed since this RV. */
static uint64_t list_count_from(struct list *list, struct keylist_place place)
{
	const struct collection *collection = list->view.collection;
	const struct entry *entry;
	uint64_t n = 0;

	if (!*list->view.prefix && collection->live == collection->keys.count &&
		collection_after(collection, list->rv) == collection->end)
		return keylist_left(&collection->keys, place);
	while ((entry = list_next_entry(list, &place)))
		n += version_at(entry, list->rv) != NULL;
	return n;
}

/* Finds the end of a page of LIMIT objects, and makes the token for the next page. */
static void list_cut_page(struct list *list, int64_t limit)
{
	struct keylist_place place = list_resume_place(list), behind = place;
	const struct entry *entry, *last = NULL;

	for (int64_t n = 0; (entry = list_next_entry(list, &place));) {
		if (!view_selects(&list->view, version_at(entry, list->rv)))
			continue;
		if (n++ < limit) {
			last = entry;
			behind = place;
			continue;
		}
		CLEANUP(buf_release) struct buf start = BUF_INIT;
		bool namespaced = *list->view.prefix || !list->view.collection->kind->namespaced;

		list->end = memory_text(bytes_str(last->key));
		buf_printf(&start, "%s%s", namespaced ? "" : "/",
			last->key + strlen(list->view.prefix));
		token_put(&list->token, (int64_t)list->rv, buf_cstr(&start));
		if (!view_has_selector(&list->view))
			list->remaining = list_count_from(list, behind);
		return;
	}
}

/* ---- composing ---------------------------------------------------------- */

static void list_put_metadata(struct list *list, bool sorted)
{
	struct buf *out = &list->piece;

	buf_str(out, "\"metadata\":{");
	if (sorted) {
		buf_printf(out, "\"continue\":\"%s\",", buf_cstr(&list->token));
		if (list->remaining)
			buf_printf(out, "\"remainingItemCount\":%" PRIu64 ",", list->remaining);
	}
	buf_printf(out, "\"resourceVersion\":\"%" PRIu64 "\"", list->rv);
	if (!sorted && list->token.size)
		buf_printf(out, ",\"continue\":\"%s\"", buf_cstr(&list->token));
	if (!sorted && list->remaining)
		buf_printf(out, ",\"remainingItemCount\":%" PRIu64, list->remaining);
	buf_byte(out, '}');
}

static bool list_is_sorted(const struct list *list)
{
	return list->view.collection->kind->custom && list->view.form != OBJECT_METADATA;
}

static void list_put_head(struct list *list)
{
	const struct kind *kind = list->view.collection->kind;
	struct buf *out = &list->piece;

	if (list_is_sorted(list)) {
		buf_str(out, "{\"apiVersion\":\"");
		kind_put_group_version(kind, out);
		buf_str(out, "\",\"items\":[");
		return;
	}
	if (list->view.form == OBJECT_METADATA) {
		buf_str(out, "{\"kind\":\"PartialObjectMetadataList\","
			     "\"apiVersion\":\"meta.k8s.io/v1\",");
	} else {
		buf_printf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"", kind->name);
		kind_put_group_version(kind, out);
		buf_str(out, "\",");
	}
	list_put_metadata(list, false);
	buf_str(out, ",\"items\":[");
}

static void list_put_tail(struct list *list)
{
	buf_byte(&list->piece, ']');
	if (list_is_sorted(list)) {
		buf_printf(
			&list->piece, ",\"kind\":\"%sList\",", list->view.collection->kind->name);
		list_put_metadata(list, true);
	}
	buf_str(&list->piece, "}\n");
	list->complete = true;
}

static void list_put_items(struct list *list)
{
	struct keylist_place place = list_resume_place(list);
	const struct entry *entry = NULL;

	while (list->piece.size < PIECE) {
		if ((entry && list->end && !strcmp(entry->key, list->end)) ||
			!(entry = list_next_entry(list, &place))) {
			list_put_tail(list);
			return;
		}
		const struct version *version = version_at(entry, list->rv);

		buf_reset(&list->last);
		buf_str(&list->last, entry->key);
		if (!view_selects(&list->view, version))
			continue;
		if (list->any)
			buf_byte(&list->piece, ',');
		list->any = true;
		object_show(list->view.collection->kind, list->view.form, version_text(version),
			&list->piece);
	}
	/* The page's last object may have filled the piece. */
	if (list->end && entry && !strcmp(entry->key, list->end))
		list_put_tail(list);
}

/* Composes the next piece. Returns false if the state has been compacted away. */
static bool list_compose(struct list *list)
{
	struct world *world = list->view.world;
	bool lost;

	list->sent = 0;
	buf_reset(&list->piece);
	pthread_mutex_lock(&world->lock);
	lost = list->pin.lost;
	if (!lost) {
		if (!list->begun)
			list_put_head(list);
		list->begun = true;
		list_put_items(list);
	}
	pthread_mutex_unlock(&world->lock);
	REQUIRE(buf_error(&list->piece) == 0);
	return !lost;
}

static ssize_t list_read(void *arg, char *out, size_t room)
{
	struct list *list = arg;

	CHECK_OBJ(list, LIST_MAGIC);
	if (list->sent == list->piece.size) {
		if (list->complete)
			return 0;
		if (!list_compose(list))
			return -1;
	}
	size_t left = list->piece.size - list->sent, n = left < room ? left : room;

	memcpy(out, list->piece.data + list->sent, n);
	list->sent += n;
	return (ssize_t)n;
}

/* ---- state -------------------------------------------------------------- */

static void list_refuse_token(const char *start, struct http_answer *answer)
{
	static const char text[] =
		"The provided continue parameter is too old to display a consistent list result. "
		"You can start a new list without the continue parameter, or use the continue "
		"token in this response to retrieve the remainder of the results. Continuing with "
		"the provided token results in an inconsistent list - objects that were created, "
		"modified, or deleted between the time the first chunk was returned and now may "
		"show up in the list.";
	CLEANUP(buf_release) struct buf replacement = BUF_INIT;

	token_put(&replacement, TOKEN_LATEST, start);

	struct status status = {
		.code = 410, .reason = "Expired", .continuation = buf_cstr(&replacement)};

	status_answer(answer, &status, "%s", text);
}

/* Sets the state and the place of a continue token. */
static bool list_read_token(
	struct list *list, const struct list_options *options, struct http_answer *answer)
{
	CLEANUP(buf_release) struct buf start = BUF_INIT;
	CLEANUP(buf_release) struct buf wrong = BUF_INIT;
	int64_t rv = 0;

	if (options->rv) {
		status_bad_request(
			answer, "specifying resource version is not allowed when using continue");
		return false;
	}
	if (!token_parse(options->token, &rv, &start, &wrong)) {
		status_bad_request(answer, "invalid continue token: continue key is not valid: %s",
			buf_cstr(&wrong));
		return false;
	}
	buf_str(&list->last, buf_cstr(&start));
	list->rv = rv == TOKEN_LATEST ? list->view.world->rv : (uint64_t)rv;
	if (list->rv >= collection_floor(list->view.world, list->view.collection) &&
		list->rv <= list->view.world->rv)
		return true;
	list_refuse_token(buf_cstr(&start), answer);
	return false;
}

bool list_await_rv(
	struct world *world, struct collection *collection, uint64_t rv, struct http_answer *answer)
{
	if (collection_await(world, collection, rv))
		return true;
	status_too_large(answer, rv, collection_fresh(world, collection));
	return false;
}

/* With a limit, an RV without resourceVersionMatch means exactly this state (legacy rule). */
static bool list_wants_exact(const struct list_options *options)
{
	return options->match == RV_MATCH_EXACT ||
	       (options->match == RV_MATCH_UNSET && options->rv && options->limit);
}

static bool list_choose_state(
	struct list *list, const struct list_options *options, struct http_answer *answer)
{
	static const struct status expired = {.code = 410, .reason = "Expired"};
	struct world *world = list->view.world;
	struct collection *collection = list->view.collection;

	buf_str(&list->last, list->view.prefix);
	if (*options->token)
		return list_read_token(list, options, answer);
	if (!list_await_rv(world, collection, *options->rv_text ? options->rv : world->rv, answer))
		return false;
	list->rv = list_wants_exact(options) ? options->rv : collection_fresh(world, collection);
	if (list->rv >= collection_floor(world, list->view.collection))
		return true;
	status_answer(answer, &expired, "The resourceVersion for the provided list is too old.");
	return false;
}

static bool list_open(
	struct list *list, const struct list_options *options, struct http_answer *answer)
{
	bool from_cache = !strcmp(options->rv_text, "0") && !*options->token;

	if (!list_choose_state(list, options, answer))
		return false;
	pin_set(list->view.collection, &list->pin, list->rv);
	if (options->limit && !from_cache)
		list_cut_page(list, options->limit);
	return true;
}

void list_answer(struct view *view, const struct list_options *options, struct http_answer *answer)
{
	struct list *list = memory_take(sizeof(*list));
	bool good;

	list->magic = LIST_MAGIC;
	list->view = *view;
	pthread_mutex_lock(&view->world->lock);
	good = list_open(list, options, answer);
	pthread_mutex_unlock(&view->world->lock);
	if (!good) {
		list_free(list);
		return;
	}
	http_answer_header(answer, "Content-Type", "application/json");
	answer->stream = (struct http_stream){.read = list_read, .free = list_free, .arg = list};
}
