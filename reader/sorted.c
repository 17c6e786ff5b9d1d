/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/sorted.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base64.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/crc.h"
#include "common/err.h"

static const struct bytes token_mark = BYTES_LIT("s1");

/* ---- the walk's instant ---- */

uint64_t sorted_as_of(const struct sorted *sorted, size_t feed)
{
	for (size_t i = 0; i < sorted->n_since; i++)
		if (sorted->since[i].feed == sorted->feeds[feed].definition.id)
			return sorted->since[i].visible;
	return sorted->as_of;
}

static int since_add(struct sorted *sorted, uint32_t feed, uint64_t visible)
{
	struct sorted_since *since =
		reallocarray(sorted->since, sorted->n_since + 1, sizeof(*since));

	if (!since)
		return err_set(-ENOMEM, "sorted list");
	sorted->since = since;
	since[sorted->n_since++] = (struct sorted_since){feed, visible};
	return 0;
}

/* The first page of a walk is as of now: what is taken, less what an open list hides. */
static int begin_now(struct sorted *sorted)
{
	sorted->as_of = snapshot_taken(sorted->snapshot);
	for (size_t i = 0; i < sorted->n_feeds; i++) {
		int r = sorted->feeds[i].visible == sorted->as_of
				? 0
				: since_add(sorted, sorted->feeds[i].definition.id,
					  sorted->feeds[i].visible);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Does the log still reach back to the walk's instant? A feed that was listed later has another
 * past than the one the walk began with. */
static int check_past(const struct sorted *sorted)
{
	for (size_t i = 0; i < sorted->n_feeds; i++) {
		uint64_t as_of = sorted_as_of(sorted, i);

		if (sorted->feeds[i].checkpoint.trimmed > as_of ||
			sorted->feeds[i].index.listed > as_of)
			return GONE;
	}
	return 0;
}

/* ---- tokens ---- */

#define TOKEN_HEAD (8 + 4 + 8 + 4) /* journal, path, as_of, n_since */
#define SINCE_SIZE 12

static uint32_t path_sum(const struct sorted *sorted)
{
	const char *text = path_text(sorted->path);

	return crc32c(0, text, strlen(text));
}

int sorted_token(const struct sorted *sorted, struct buf *token)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;
	const struct sorted_item *last = &sorted->items[sorted->next - 2];
	uint8_t head[TOKEN_HEAD], since[SINCE_SIZE];

	memcpy(head, snapshot_uuid(sorted->snapshot), 8);
	le32_put(head + 8, path_sum(sorted));
	le64_put(head + 12, sorted->as_of);
	le32_put(head + 20, (uint32_t)sorted->n_since);
	buf_bytes_put(&plain, token_mark);
	buf_put(&plain, head, sizeof(head));
	for (size_t i = 0; i < sorted->n_since; i++) {
		le32_put(since, sorted->since[i].feed);
		le64_put(since + 4, sorted->since[i].visible);
		buf_put(&plain, since, sizeof(since));
	}
	sort_value_put(&plain, &last->value);
	buf_bytes_put(&plain, last->key);
	int r = buf_error(&plain);
	if (r < 0)
		return r;
	base64url_put(buf_bytes(&plain), token);
	return buf_error(token);
}

static int take_since(struct sorted *sorted, uint32_t n, struct bytes *rest)
{
	for (; n > 0; n--) {
		const uint8_t *p = rest->data;
		int r = rest->size < SINCE_SIZE ? ERR_SYNTAX
						: since_add(sorted, le32_get(p), le64_get(p + 4));
		if (r < 0)
			return r;
		*rest = BYTES(p + SINCE_SIZE, rest->size - SINCE_SIZE);
	}
	return 0;
}

/* ERR_SYNTAX without a sentence: the caller has the token. */
static int take_token(struct sorted *sorted, bool *ret_other_journal)
{
	struct bytes rest = BYTES(sorted->token.data, sorted->token.size - 1);
	const uint8_t *p = (const uint8_t *)rest.data + token_mark.size;

	if (!bytes_starts(rest, token_mark) || rest.size < token_mark.size + TOKEN_HEAD ||
		le32_get(p + 8) != path_sum(sorted))
		return ERR_SYNTAX;
	*ret_other_journal = memcmp(p, snapshot_uuid(sorted->snapshot), 8) != 0;
	sorted->as_of = le64_get(p + 12);
	rest = BYTES(p + TOKEN_HEAD, rest.size - token_mark.size - TOKEN_HEAD);
	int r = take_since(sorted, le32_get(p + 20), &rest);
	if (r == 0)
		r = sort_value_take(&rest, &sorted->after_value);
	sorted->after_key = rest;
	sorted->next_key = BYTES(rest.data, rest.size + 1); /* there is a NUL behind it */
	return r;
}

static int continue_with(struct sorted *sorted, const char *token)
{
	bool other_journal = false;
	int r = base64url_get(token, &sorted->token);

	buf_byte(&sorted->token, '\0');
	if (r == 0)
		r = buf_error(&sorted->token);
	if (r == 0)
		r = take_token(sorted, &other_journal);
	if (r == ERR_SYNTAX)
		return err_say(ERR_SYNTAX,
			"continue token '%.60s' is none of a list sorted by '%s'; list again "
			"without it",
			token, path_text(sorted->path));
	if (r < 0)
		return r;
	sorted->continues = true;
	return other_journal ? GONE : check_past(sorted);
}

/* ---- making and freeing ---- */

int sorted_new(struct snapshot *snapshot, const struct snapshot_feed *feeds, size_t n_feeds,
	const struct query *query, struct sorted **ret_sorted)
{
	CLEANUP(sorted_free) struct sorted *sorted = calloc(1, sizeof(*sorted));

	if (!sorted)
		return err_set(-ENOMEM, "sorted list");
	*sorted = (struct sorted){.snapshot = snapshot,
		.feeds = feeds,
		.n_feeds = n_feeds,
		.query = query,
		.room = query->limit && query->limit < UINT64_MAX ? query->limit + 1 : UINT64_MAX};
	int r = path_parse(query->sort_by, &sorted->path);
	if (r < 0)
		return err_add(r, "sorting by '%s'", query->sort_by);
	r = query->token ? continue_with(sorted, query->token) : begin_now(sorted);
	if (r == 0)
		*ret_sorted = TAKE(sorted);
	return r;
}

void sorted_free(struct sorted **sorted)
{
	if (!*sorted)
		return;
	struct sorted *s = TAKE(*sorted);

	path_free(&s->path);
	buf_release(&s->token);
	free(s->since);
	free(s->items);
	free(s);
}

/* ---- the items of a page ---- */

static int compare_places(const struct sort_value *a_value, struct bytes a_key,
	const struct sort_value *b_value, struct bytes b_key)
{
	int r = sort_value_compare(a_value, b_value);

	return r ? r : bytes_compare(a_key, b_key);
}

static int compare_items(const void *a, const void *b)
{
	const struct sorted_item *x = a, *y = b;

	return compare_places(&x->value, x->key, &y->value, y->key);
}

bool sorted_wants_value(const struct sorted *sorted, const struct sort_value *value)
{
	if (sorted->continues && sort_value_compare(value, &sorted->after_value) < 0)
		return false;
	return sorted->n < sorted->room || sort_value_compare(value, &sorted->items[0].value) <= 0;
}

bool sorted_wants(const struct sorted *sorted, const struct sort_value *value, struct bytes key)
{
	const struct sorted_item *last = sorted->items;

	if (sorted->continues &&
		compare_places(value, key, &sorted->after_value, sorted->after_key) <= 0)
		return false;
	return sorted->n < sorted->room || compare_places(value, key, &last->value, last->key) < 0;
}

/* Below place I of the heap, whose own item is to be put somewhere there. */
static void sift_down(struct sorted *sorted, size_t i)
{
	struct sorted_item item = sorted->items[i];

	for (size_t child; (child = 2 * i + 1) < sorted->n; i = child) {
		if (child + 1 < sorted->n &&
			compare_items(&sorted->items[child + 1], &sorted->items[child]) > 0)
			child++;
		if (compare_items(&item, &sorted->items[child]) >= 0)
			break;
		sorted->items[i] = sorted->items[child];
	}
	sorted->items[i] = item;
}

static int keep(struct sorted *sorted, const struct sorted_item *item)
{
	if (sorted->n == sorted->room) {
		sorted->items[0] = *item;
		sift_down(sorted, 0);
		return 0;
	}
	if (sorted->n == sorted->capacity) {
		size_t capacity = sorted->capacity ? sorted->capacity * 2 : 128;
		struct sorted_item *items = reallocarray(sorted->items, capacity, sizeof(*items));

		if (!items)
			return err_set(-ENOMEM, "sorting %zu objects", sorted->n);
		sorted->items = items;
		sorted->capacity = capacity;
	}
	sorted->items[sorted->n++] = *item;
	for (size_t i = sorted->n / 2; sorted->n == sorted->room && i-- > 0;)
		sift_down(sorted, i);
	return 0;
}

/* The version that the walk's instant saw: RECORD or one before it. FOUND; NOT_FOUND: the object is
 * younger. */
static int version_then(struct sorted *sorted, size_t feed, struct record *record)
{
	uint64_t as_of = sorted_as_of(sorted, feed);

	while (record->seq > as_of) {
		uint64_t prev = record->prev;

		if (!prev)
			return NOT_FOUND;
		int r = snapshot_version(sorted->snapshot, prev, record);
		if (r == NOT_FOUND)
			return err_say(ERR_CORRUPT, "version %llu is pointed to, but not there",
				(unsigned long long)prev);
		if (r != FOUND)
			return r;
	}
	return FOUND;
}

/* Of numbers only the worth is kept, so nothing borrows from SCRATCH. */
int sorted_value(const struct sorted *sorted, struct bytes body, struct sort_value *ret_value)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text = BYTES_NONE;
	struct value value;
	int r = path_first(sorted->path, body, &value);

	if (r == FOUND)
		r = value_scalar_text(&value, scratch, &text);
	if (r < 0)
		return r;
	sort_value_read(text, ret_value);
	REQUIRE(ret_value->kind != SORT_TEXT || text.data != scratch);
	return 0;
}

int sorted_offer(struct sorted *sorted, const struct plan *plan, size_t feed, struct bytes key,
	const struct index_entry *entry)
{
	struct sorted_item item = {.key = key, .entry = *entry, .feed = feed};
	struct record record, then;
	int r = snapshot_record(
		sorted->snapshot, sorted->feeds[feed].definition.id, key, entry, &record);

	if (r == FOUND) {
		then = record;
		r = version_then(sorted, feed, &then);
	}
	if (r == FOUND)
		r = sorted_value(sorted, then.body, &item.value);
	if (r == NOT_FOUND || (r == 0 && !sorted_wants(sorted, &item.value, key)))
		return 0;
	if (r == 0)
		r = plan_matches(plan, sorted->query, &record);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	return keep(sorted, &item);
}

/* ---- giving out ---- */

void sorted_end(struct sorted *sorted)
{
	if (sorted->n > 1)
		qsort(sorted->items, sorted->n, sizeof(*sorted->items), compare_items);
	sorted->next = 0;
}

int sorted_next(struct sorted *sorted, const struct sorted_item **ret_item)
{
	if (sorted->next == sorted->n)
		return END;
	*ret_item = &sorted->items[sorted->next++];
	return FOUND;
}
