/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/query.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/crc.h"
#include "common/err.h"
#include "common/text/base64.h"

/* ---- tokens ------------------------------------------------------------- */

/* Offsets in a token; the RV, the value and the key follow. */
enum {
	AT_CRC = 2,
	AT_QUERY = 6,
	AT_JOURNAL = 10,
	AT_SEQ = AT_JOURNAL + QUERY_JOURNAL_SIZE,
	AT_RV_SIZE = AT_SEQ + 8,
	TOKEN_HEAD = AT_RV_SIZE + 1,
};

static const struct bytes token_mark = BYTES_LIT("c2");

static uint32_t token_crc(struct bytes token)
{
	return crc32c(0, (const uint8_t *)token.data + AT_QUERY, token.size - AT_QUERY);
}

/* Returns the CRC-32C of TEXT with its NUL, after CRC; NULL counts as "". */
static uint32_t crc_text(uint32_t crc, const char *text)
{
	return text ? crc32c(crc, text, strlen(text) + 1) : crc32c(crc, "", 1);
}

/* Returns the CRC-32C of QUERY's selection and order, read from GIVEN, without the feed. */
static uint32_t query_identity(const struct query *query, const struct kinf_query *given)
{
	uint32_t crc = crc_text(0, query->namespace_);

	crc = crc_text(crc, query->prefix);
	crc = crc_text(crc, given->label_selector);
	crc = crc_text(crc, given->field_selector);
	crc = crc_text(crc, query->sort_path ? path_text(query->sort_path) : NULL);
	for (size_t i = 0; i < query->n_terms; i++)
		crc = crc_text(crc_text(crc, query->terms[i].index), query->terms[i].value);
	return crc;
}

int query_token(const struct query *query, const char *feed, const struct query_place *place,
	struct buf *token)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;
	uint8_t head[TOKEN_HEAD] = {0};
	struct bytes rv = place->rv.size <= UINT8_MAX ? place->rv : BYTES_NONE;

	memcpy(head, token_mark.data, token_mark.size);
	le32_put(head + AT_QUERY, crc_text(query->identity, feed));
	memcpy(head + AT_JOURNAL, place->journal, QUERY_JOURNAL_SIZE);
	le64_put(head + AT_SEQ, place->seq);
	head[AT_RV_SIZE] = (uint8_t)rv.size;
	buf_put(&plain, head, sizeof(head));
	buf_bytes_put(&plain, rv);
	if (query->sort_path)
		sort_value_put(&plain, &place->value);
	buf_bytes_put(&plain, place->key);
	int r = buf_error(&plain);
	if (r < 0)
		return r;
	le32_put(plain.data + AT_CRC, token_crc(buf_bytes(&plain)));
	base64url_put(buf_bytes(&plain), token);
	return buf_error(token);
}

/* Decodes a token and checks its CRC. */
static int query_read_token(struct query *query, const char *text)
{
	int r = base64url_get(text, &query->token);
	size_t size = query->token.size;

	/* Room for a NUL (makes the smallest key after a key), before anything borrows. */
	buf_byte(&query->token, '\0');
	if (r == 0)
		r = buf_error(&query->token);
	if (r < 0 && r != ERR_SYNTAX)
		return r;
	struct bytes token = BYTES(query->token.data, size);
	const uint8_t *p = token.data;

	if (r < 0 || size < TOKEN_HEAD || !bytes_starts(token, token_mark) ||
		le32_get(p + AT_CRC) != token_crc(token) || size - TOKEN_HEAD < p[AT_RV_SIZE])
		return err_say(ERR_SYNTAX,
			"continue token '%.60s' is none of ours; list again without it", text);
	buf_truncate(&query->token, size);
	query->continues = true;
	return 0;
}

int query_continue(struct query *query, const char *feed)
{
	struct bytes rest = buf_bytes(&query->token);
	const uint8_t *p = rest.data;
	struct query_place *after = &query->after;

	if (le32_get(p + AT_QUERY) != crc_text(query->identity, feed))
		return err_say(ERR_SYNTAX,
			"the continue token is of another list: repeat the feed, the namespace, "
			"the selectors and the order of the page that ended with it, or list again "
			"without it");
	memcpy(after->journal, p + AT_JOURNAL, QUERY_JOURNAL_SIZE);
	after->seq = le64_get(p + AT_SEQ);
	after->rv = BYTES(p + TOKEN_HEAD, p[AT_RV_SIZE]);
	rest = BYTES(p + TOKEN_HEAD + after->rv.size, rest.size - TOKEN_HEAD - after->rv.size);
	if (query->sort_path && !sort_value_take(&rest, &after->value))
		return err_say(ERR_SYNTAX, "the continue token is damaged; list again without it");
	after->key = rest;
	query->next_key = BYTES(after->key.data, after->key.size + 1);
	query->from = query->sort_path ? BYTES_NONE : query->next_key;
	if (query->at_event && query->at_event != after->seq)
		return err_say(ERR_SYNTAX,
			"the continue token is of a list as of event %llu, not %llu",
			(unsigned long long)after->seq, (unsigned long long)query->at_event);
	return 0;
}

/* ---- parsing ------------------------------------------------------------ */

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copies TEXT to *END and advances it. Returns the copy, NULL of NULL and of "". */
static const char *text_copy(const char *text, char **end)
{
	if (!text || !*text)
		return NULL;
	char *place = *end;
	*end = stpcpy(place, text) + 1;
	return place;
}

static int query_copy_texts(struct query *query, const struct kinf_query *from)
{
	size_t size = from->n_terms * sizeof(*query->terms) + text_size(from->namespace_) +
		      text_size(from->prefix);

	for (size_t i = 0; i < from->n_terms; i++)
		size += text_size(from->terms[i].index) + text_size(from->terms[i].value);
	query->terms = malloc(size + 1);
	if (!query->terms)
		return err_set(-ENOMEM, "copying a query");
	char *end = (char *)(query->terms + from->n_terms);
	query->namespace_ = text_copy(from->namespace_, &end);
	query->prefix = text_copy(from->prefix, &end);
	for (size_t i = 0; i < from->n_terms; i++) {
		const char *index = text_copy(from->terms[i].index, &end);
		const char *value = text_copy(from->terms[i].value, &end);

		query->terms[i] = (struct kinf_term){index ? index : "", value ? value : ""};
	}
	query->n_terms = from->n_terms;
	return 0;
}

int query_init(struct query *query, const struct kinf_query *given)
{
	struct kinf_query from = {0};

	*query = (struct query){0};
	if (!given)
		return err_say(-EINVAL, "the kinf_query is NULL");
	/* An older program's structure is shorter: it says nothing of the newer fields. */
	if (given->size < offsetof(struct kinf_query, sort_by) || given->size > sizeof(*given))
		return err_set(ERR_UNSUPPORTED, "kinf_query of %u bytes, this library knows %zu",
			given->size, sizeof(*given));
	memcpy(&from, given, given->size);
	if (!from.feed)
		return err_set(-EINVAL, "kinf_query without a feed");
	if (from.n_terms && !from.terms)
		return err_say(-EINVAL, "kinf_query with %llu terms, and the array of them is NULL",
			(unsigned long long)from.n_terms);
	query->limit = from.limit;
	query->at_event = from.at_event;
	int r = query_copy_texts(query, &from);
	if (r == 0 && from.label_selector && *from.label_selector) {
		r = selector_parse_labels(from.label_selector, &query->labels);
		if (r < 0)
			return err_add(r, "label selector '%s'", from.label_selector);
	}
	if (r == 0 && from.field_selector && *from.field_selector)
		r = selector_parse_query(from.field_selector, &query->fields);
	if (r == 0 && from.sort_by && *from.sort_by) {
		r = path_parse(from.sort_by, &query->sort_path);
		if (r < 0)
			return err_add(r, "sorting by '%s'", from.sort_by);
	}
	if (r == 0)
		query->identity = query_identity(query, &from);
	if (r == 0 && from.continue_token && *from.continue_token)
		r = query_read_token(query, from.continue_token);
	return r;
}

void query_release(struct query *query)
{
	free(query->terms);
	selector_free(&query->labels);
	selector_free(&query->fields);
	path_free(&query->sort_path);
	buf_release(&query->token);
	*query = (struct query){0};
}

/* ---- limits of a feed -------------------------------------------------------- */

static int query_check_path(const struct feed_definition *feed, const struct path *path)
{
	if (path_is_kept(path, feed->metadata_only, feed->drop))
		return 0;
	return err_say(ERR_SYNTAX,
		"the objects of feed '%s' are kept without '%s' ('objects' or 'drop' in "
		"kinf.yaml): it can't select or sort by that",
		feed->name, path_text(path));
}

static int query_check_label(const struct feed_definition *feed, struct bytes key)
{
	CLEANUP(path_free) struct path *path = NULL;
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	if (!strstr(feed->drop, "metadata.labels")) /* in nearly all feeds */
		return 0;
	buf_printf(&text, "metadata.labels['%.*s']", BYTES_ARG(key));
	const char *c = buf_cstr(&text);
	int r = c ? path_parse(c, &path) : buf_error(&text);
	return r < 0 ? r : query_check_path(feed, path);
}

int query_check_feed(const struct query *query, const struct feed_definition *feed)
{
	int r = 0;

	for (size_t i = 0; r == 0 && query->fields && i < selector_count(query->fields); i++)
		r = query_check_path(feed, selector_at(query->fields, i)->path);
	for (size_t i = 0; r == 0 && query->labels && i < selector_count(query->labels); i++)
		r = query_check_label(feed, selector_at(query->labels, i)->key);
	for (size_t i = 0; r == 0 && i < query->n_terms; i++) {
		const char *value = query->terms[i].value;

		if (!strcmp(query->terms[i].index, "label"))
			r = query_check_label(feed, BYTES(value, strcspn(value, "=")));
	}
	return r < 0 || !query->sort_path ? r : query_check_path(feed, query->sort_path);
}

int query_check_term(const struct kinf_term *term, const struct index_definition *definition)
{
	size_t parts = index_compound_parts(bytes_str(term->value)), n_paths = 1;
	char paths[160];

	(void)snprintf(paths, sizeof(paths), "%s", definition->paths);
	for (char *c = paths; (c = strchr(c, '\n'));)
		*c = ',';
	for (const char *c = definition->paths; (c = strchr(c, '\n')); c++)
		n_paths++;
	if (n_paths == 1 || parts == n_paths)
		return 0;
	return err_say(ERR_SYNTAX,
		"index '%s' needs %zu values (%s) with commas between them, and '%.60s' has %zu; a "
		"comma or backslash in a value has a backslash before it",
		definition->name, n_paths, paths, term->value, parts);
}

/* ---- conditions on a key or a body ------------------------------------------ */

bool query_accepts_key(const struct query *query, struct bytes key)
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

int query_accepts_body(const struct query *query, struct bytes body)
{
	int r = query->labels ? selector_match(query->labels, body) : 1;

	if (r == 1 && query->fields)
		r = selector_match(query->fields, body);
	return r < 0 ? r : r ? FOUND : NOT_FOUND;
}
