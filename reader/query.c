/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query's own parts: its texts, its selectors, and where it goes on. A continue token is base64url of "k1" and the
 * key of the last object given out: the next page begins behind it, so objects that live through the
 * whole walk come exactly once whatever happens to others.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reader/plan.h"

static const struct bytes token_mark = BYTES_LIT("k1");

int query_token(struct bytes key, struct buf *token)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;

	buf_bytes_put(&plain, token_mark);
	buf_bytes_put(&plain, key);
	int r = buf_error(&plain);
	if (r < 0)
		return r;
	base64url_put(buf_bytes(&plain), token);
	return buf_error(token);
}

/* The smallest key behind the last one: that key and a NUL. */
static int query_continue(struct query *query, const char *token)
{
	int r = base64url_get(token, &query->from);

	if (r == 0 && !bytes_starts(buf_bytes(&query->from), token_mark))
		r = ERR_SYNTAX;
	if (r == ERR_SYNTAX)
		return err_say(ERR_SYNTAX,
			"continue token '%.60s' is none of ours; list again without it", token);
	if (r < 0)
		return r;
	buf_consume(&query->from, token_mark.size);
	buf_byte(&query->from, '\0');
	return buf_error(&query->from);
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copies TEXT to *END and moves that on; NULL and "" stay NULL. */
static const char *take_text(const char *text, char **end)
{
	if (!text || !*text)
		return NULL;
	char *place = *end;
	*end = stpcpy(place, text) + 1;
	return place;
}

static int take_texts(struct query *query, const struct kinf_query *from)
{
	size_t size = from->n_terms * sizeof(*query->terms) + text_size(from->namespace_) +
		text_size(from->prefix) + text_size(from->sort_by) +
		text_size(from->continue_token);

	for (size_t i = 0; i < from->n_terms; i++)
		size += text_size(from->terms[i].index) + text_size(from->terms[i].value);
	query->terms = malloc(size + 1);
	if (!query->terms)
		return err_set(-ENOMEM, "query");
	char *end = (char *)(query->terms + from->n_terms);
	query->namespace_ = take_text(from->namespace_, &end);
	query->prefix = take_text(from->prefix, &end);
	query->sort_by = take_text(from->sort_by, &end);
	query->token = take_text(from->continue_token, &end);
	for (size_t i = 0; i < from->n_terms; i++) {
		const char *index = take_text(from->terms[i].index, &end);
		const char *value = take_text(from->terms[i].value, &end);

		query->terms[i] = (struct kinf_term){index ? index : "", value ? value : ""};
	}
	query->n_terms = from->n_terms;
	return 0;
}

/* What the caller's version of the library did not know is as if it was not said. */
static int take_known(const struct kinf_query *given, struct kinf_query *ret_query)
{
	if (given->size < offsetof(struct kinf_query, sort_by) || given->size > sizeof(*given))
		return err_set(ERR_UNSUPPORTED, "kinf_query of %u bytes, this library knows %zu",
			given->size, sizeof(*given));
	*ret_query = (struct kinf_query){0};
	memcpy(ret_query, given, given->size);
	return 0;
}

int query_init(struct query *query, const struct kinf_query *given)
{
	struct kinf_query from;

	*query = (struct query){0};
	int r = take_known(given, &from);
	if (r < 0)
		return r;
	if (!from.feed)
		return err_set(-EINVAL, "kinf_query without a feed");
	query->limit = from.limit;
	r = take_texts(query, &from);
	if (r == 0 && from.label_selector && *from.label_selector)
		r = selector_parse_labels(from.label_selector, &query->labels);
	if (r == 0 && from.field_selector && *from.field_selector)
		r = selector_parse_fields(from.field_selector, &query->fields);
	if (r == 0 && query->token && !query->sort_by)
		r = query_continue(query, query->token);
	return r;
}

void query_release(struct query *query)
{
	free(query->terms);
	selector_free(&query->labels);
	selector_free(&query->fields);
	buf_release(&query->from);
	*query = (struct query){0};
}

/* ---- what can be told without an index ---- */

bool query_takes_key(const struct query *query, struct bytes key)
{
	if (!query->namespace_ && !query->prefix)
		return true;
	const char *start = key.data;
	const char *slash = key.size ? memchr(start, '/', key.size) : NULL;
	size_t skip = slash ? (size_t)(slash - start) + 1 : 0;

	if (query->namespace_ && slash &&
		!bytes_equal(BYTES(start, skip - 1), bytes_str(query->namespace_)))
		return false;
	return !query->prefix ||
		bytes_starts(BYTES(start + skip, key.size - skip), bytes_str(query->prefix));
}

int query_takes_body(const struct query *query, struct bytes body)
{
	int r = query->labels ? selector_match(query->labels, body) : 1;

	if (r == 1 && query->fields)
		r = selector_match(query->fields, body);
	return r < 0 ? r : r ? FOUND : NOT_FOUND;
}
