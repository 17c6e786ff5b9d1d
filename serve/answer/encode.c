/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/encode.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/value/custom.h"
#include "common/value/value.h"
#include "serve/api/api_kinds.h"
#include "serve/api/api_object.h"

#define EVENT_HASH_SEED 0x6576656eu
#define BRACKET_MAX     65536 /* records of a relist for a watch */

/* ---- the client's form --------------------------------------------------- */

static int encode_custom_part(struct catalog_feed *feed, const struct record *definition,
	enum answer_custom_part part, struct buf *out)
{
	struct bytes version = bytes_str(feed->definition.version), columns;
	int r;

	switch (part) {
	case CUSTOM_COLUMNS:
		r = custom_columns(definition->body, version, &columns);
		if (r == FOUND)
			buf_bytes_put(out, columns);
		return r;
	case CUSTOM_LABELS:
		return custom_selectable(definition->body, version, out);
	case CUSTOM_WARNING:
		/* Walking a large definition for each read would cost more than most reads. */
		if (__atomic_load_n(&feed->undeprecated, __ATOMIC_RELAXED) == definition->seq)
			return 0;
		r = api_kind_deprecation(definition->body, feed->definition.version, out);
		if (r == 0 && !out->size)
			__atomic_store_n(&feed->undeprecated, definition->seq, __ATOMIC_RELAXED);
		return r;
	}
	return 0;
}

/* The resources of two objects about a request's resource. */
#define ENCODE_DEFINITIONS "apiextensions.k8s.io", "customresourcedefinitions"
#define ENCODE_SERVICES    "apiregistration.k8s.io", "apiservices"

/* Finds the object of RESOURCE in GROUP for RECORD that is named NAME and the request's group. It
 * is valid until answer_release_snapshot(). Returns: FOUND; NOT_FOUND; END: no feed has been listed
 * that would have it; errors. */
static int encode_find(struct answer_request *request, const char *group, const char *resource,
	const char *name, struct record *record)
{
	const struct coverage_request wanted = {.group = group,
		.version = "v1",
		.resource = resource,
		.namespace_ = "",
		.name = ""};
	struct answer_worker *worker = request->worker;
	struct catalog *catalog = worker->answer->catalog;
	struct catalog_feed *feed = NULL;
	enum coverage_answer answer;
	char key[512];
	bool known;

	if (catalog_find(catalog, &wanted, &feed, &answer, &known) != FOUND)
		return END;
	(void)snprintf(key, sizeof(key), "%s.%s", name, request->feed->definition.group);
	catalog_lock(catalog);
	bool listed = feed->timeline.visible != 0;
	catalog_unlock(catalog);
	int r = listed ? answer_take_snapshot(worker) : END;
	if (r == 0)
		r = snapshot_get(worker->snapshot, feed->id, bytes_str(key), record);
	catalog_release(&feed);
	return r;
}

int answer_custom(struct answer_request *request, enum answer_custom_part part, struct buf *out)
{
	const char *resource = request->feed->definition.resource;
	struct record record;
	int r = encode_find(request, ENCODE_DEFINITIONS, resource, &record);

	if (r == FOUND)
		r = encode_custom_part(request->feed, &record, part, out);
	answer_release_snapshot(request->worker);
	return r < 0 ? r : buf_error(out);
}

int answer_is_aggregated(struct answer_request *request)
{
	const struct feed_definition *d = &request->feed->definition;
	struct value root, spec, service;
	struct record record;

	if (custom_is_builtin_group(d->group))
		return 0;
	int r = encode_find(request, ENCODE_SERVICES, d->version, &record);
	if (r == FOUND) {
		r = value_read(record.body, &root);
		if (r == 0)
			r = value_find(&root, BYTES_LIT("spec"), &spec);
		if (r == FOUND)
			r = value_find(&spec, BYTES_LIT("service"), &service);
		if (r >= 0)
			r = r == FOUND && service.type == VALUE_MAP;
	} else if (r == NOT_FOUND || r == END) {
		r = encode_find(request, ENCODE_DEFINITIONS, d->resource, &record);
		r = r < 0 || r == AGAIN ? r : r == NOT_FOUND;
	}
	answer_release_snapshot(request->worker);
	return r;
}

int answer_form_init(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf columns = BUF_INIT;
	const struct feed_definition *d = &request->feed->definition;
	bool is_list = request->verb == ANSWER_LIST, is_builtin = custom_is_builtin_group(d->group);
	const char *kind = is_builtin ? (is_list ? d->list_kind : d->kind)
				      : (is_list ? "UnstructuredList" : "Unstructured");
	const char *package = !is_builtin ? "unstructured" : *d->group ? d->group : "core";
	int r = api_accept_check(&request->accept, is_list, package, kind, &request->status);

	if (r != 0 || request->accept.form != API_FORM_TABLE)
		return r;
	r = api_options_include(&request->options, &request->status);
	if (r == 0 && !is_builtin)
		r = answer_custom(request, CUSTOM_COLUMNS, &columns);
	if (r != 0)
		return r;
	catalog_lock(request->worker->answer->catalog); /* the stored columns may become others */
	const struct printer_kind printed = {.group = bytes_str(d->group),
		.resource = bytes_str(d->resource),
		.columns = buf_bytes(&columns),
		.stored = d->columns};
	r = printer_new(&printed, &request->printer);
	catalog_unlock(request->worker->answer->catalog);
	return r;
}

/* ---- tables ------------------------------------------------------------- */

/* Puts the conditions of a row: only ended pods have one. */
static int encode_conditions(
	const struct answer_request *request, struct bytes body, struct buf *out)
{
	const struct feed_definition *d = &request->feed->definition;
	struct bytes phase;

	if (*d->group || strcmp(d->resource, "pods") != 0)
		return 0;
	int r = value_find_text(body, "status", "phase", &phase);
	if (r != FOUND)
		return r < 0 ? r : 0;
	bool succeeded = bytes_equal(phase, BYTES_LIT("Succeeded"));

	if (succeeded || bytes_equal(phase, BYTES_LIT("Failed")))
		buf_printf(out,
			",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\","
			"\"reason\":\"%s\",\"message\":\"%s\"}]",
			succeeded ? "Succeeded" : "Failed",
			succeeded ? "The pod has completed successfully." : "The pod failed.");
	return 0;
}

static int encode_row(const struct answer_request *request, struct bytes body, struct bytes rv,
	enum api_include include, struct buf *out)
{
	const struct printer_cell *cells;
	size_t n;
	int r = printer_row(request->printer, body, &cells, &n);

	if (r < 0)
		return r;
	buf_str(out, "{\"cells\":");
	printer_put_cells(cells, n, out);
	r = encode_conditions(request, body, out);
	if (r < 0)
		return r;
	buf_str(out, ",\"object\":");
	switch (include) {
	case API_INCLUDE_METADATA:
		r = api_object_write_metadata(body, request->accept.version, rv, out);
		break;
	case API_INCLUDE_OBJECT:
		r = api_object_write(body, false, rv, out);
		break;
	case API_INCLUDE_NONE:
		buf_str(out, "null");
		break;
	}
	buf_byte(out, '}');
	return r < 0 ? r : buf_error(out);
}

/* Begins a table. Its columns are given once in a watch. */
static void encode_table_head(
	struct answer_encoder *encoder, const char *list_metadata, struct buf *out)
{
	const struct answer_request *request = encoder->request;

	buf_printf(out,
		"{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{%s},"
		"\"columnDefinitions\":",
		request->accept.version, list_metadata);
	if (encoder->columns_given)
		buf_str(out, "null");
	else
		printer_put_columns(request->printer, out);
	encoder->columns_given = true;
	buf_str(out, ",\"rows\":[");
}

static int encode_table_of_one(struct answer_encoder *encoder, struct bytes body, struct bytes rv,
	enum api_include include, struct buf *out)
{
	char metadata[TIMELINE_RV_SIZE + 32];
	struct bytes stored;
	int r = value_find_text(body, "metadata", "resourceVersion", &stored);

	if (r < 0)
		return r;
	if (rv.size || r != FOUND)
		stored = rv;
	(void)snprintf(metadata, sizeof(metadata), "\"resourceVersion\":\"%.*s\"",
		stored.size < TIMELINE_RV_SIZE ? (int)stored.size : 0,
		stored.data ? (const char *)stored.data : "");
	encode_table_head(encoder, metadata, out);
	r = encode_row(encoder->request, body, rv, include, out);
	buf_str(out, "]}");
	return r < 0 ? r : buf_error(out);
}

/* ---- objects ------------------------------------------------------------ */

/* INCLUDE: of the row of a table. */
static int encode_object(struct answer_encoder *encoder, struct bytes body, struct bytes rv,
	enum api_include include, struct buf *out)
{
	const struct api_accept *accept = &encoder->request->accept;

	switch (accept->form) {
	case API_FORM_TABLE:
		return encode_table_of_one(encoder, body, rv, include, out);
	case API_FORM_METADATA:
	case API_FORM_METADATA_LIST:
		return accept->protobuf ? api_protobuf_object(body, rv, out)
					: api_object_write_metadata(body, accept->version, rv, out);
	default:
		return api_object_write(body, false, rv, out);
	}
}

int answer_encode_object(struct answer_encoder *encoder, struct bytes body, struct buf *out)
{
	return encode_object(encoder, body, BYTES_NONE, encoder->request->options.include, out);
}

/* ---- lists -------------------------------------------------------------- */

int answer_encode_begin(
	struct answer_encoder *encoder, const struct api_page *page, struct buf *out)
{
	CLEANUP(buf_release) struct buf metadata = BUF_INIT;
	const struct answer_request *request = encoder->request;

	if (request->accept.protobuf)
		return api_protobuf_begin(page, out);
	buf_printf(&metadata, "\"resourceVersion\":\"%s\"", page->rv);
	if (*page->token)
		buf_printf(&metadata, ",\"continue\":\"%s\"", page->token);
	if (page->remaining)
		buf_printf(&metadata, ",\"remainingItemCount\":%" PRIu64, page->remaining);
	int r = buf_error(&metadata);
	if (r < 0)
		return r;
	switch (request->accept.form) {
	case API_FORM_TABLE:
		encode_table_head(encoder, buf_cstr(&metadata), out);
		break;
	case API_FORM_METADATA_LIST:
		buf_printf(out,
			"{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
			"\"meta.k8s.io/%s\",\"metadata\":{%s},\"items\":[",
			request->accept.version, buf_cstr(&metadata));
		break;
	default:
		buf_printf(out,
			"{\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\",\"metadata\":{%s},\"items\":[",
			request->feed->definition.list_kind, API_PATH_GROUP_VERSION(&request->path),
			buf_cstr(&metadata));
		break;
	}
	return buf_error(out);
}

int answer_encode_item(struct answer_encoder *encoder, struct bytes body, struct buf *out)
{
	const struct answer_request *request = encoder->request;

	if (encoder->items++ && !request->accept.protobuf)
		buf_byte(out, ',');
	switch (request->accept.form) {
	case API_FORM_TABLE:
		return encode_row(request, body, BYTES_NONE, request->options.include, out);
	case API_FORM_METADATA_LIST:
		return request->accept.protobuf ? api_protobuf_item(body, out)
						: api_object_write_metadata(body,
							  request->accept.version, BYTES_NONE, out);
	default:
		return api_object_write(body,
			custom_is_builtin_group(request->feed->definition.group), BYTES_NONE, out);
	}
}

int answer_encode_end(struct answer_encoder *encoder, struct buf *out)
{
	if (encoder->request->accept.protobuf)
		return api_protobuf_end(out);
	buf_str(out, "]}");
	return buf_error(out);
}

/* ---- events ------------------------------------------------------------- */

static int encode_event(struct answer_encoder *encoder, const char *type, struct bytes body,
	struct bytes rv, enum api_include include, struct buf *out)
{
	const struct answer_encoder before = *encoder;
	size_t size = out->size;

	if (encoder->request->accept.protobuf)
		return api_protobuf_event(type, body, rv, out);
	buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
	int r = encode_object(encoder, body, rv, include, out);
	if (r < 0) {
		if (out->size > size)
			buf_truncate(out, size);
		*encoder = before;
		return r;
	}
	buf_str(out, "}\n");
	return buf_error(out);
}

int answer_encode_event(struct answer_encoder *encoder, const char *type, struct bytes body,
	struct bytes rv, struct buf *out)
{
	return encode_event(encoder, type, body, rv, encoder->request->options.include, out);
}

static void encode_member(const char *name, const char *text, struct buf *map)
{
	value_put_string(map, bytes_str(name));
	value_put_string(map, bytes_str(text));
}

/* Makes a bookmark's object: its type, RV and annotations. */
static int encode_bookmark_body(const struct answer_request *request, const char *rv,
	bool ends_initial, struct buf *ret_body)
{
	const struct feed_definition *d = &request->feed->definition;
	char group_version[512], stale[240], why[200];
	double age;
	bool is_stale = request->is_leaf && answer_is_stale(request, &age, why);
	bool annotated = ends_initial || is_stale;

	size_t root = value_open_map(ret_body);
	(void)snprintf(group_version, sizeof(group_version), "%s%s%s", API_PATH_GROUP_VERSION(d));
	encode_member("kind", d->kind, ret_body);
	encode_member("apiVersion", group_version, ret_body);
	value_put_string(ret_body, BYTES_LIT("metadata"));
	size_t metadata = value_open_map(ret_body);
	encode_member("resourceVersion", rv, ret_body);
	if (annotated) {
		value_put_string(ret_body, BYTES_LIT("annotations"));
		size_t annotations = value_open_map(ret_body);
		if (ends_initial)
			encode_member("k8s.io/initial-events-end", "true", ret_body);
		if (is_stale) {
			(void)snprintf(stale, sizeof(stale), "%.0f %s", age, why);
			encode_member("kinformer/stale", stale, ret_body);
		}
		value_close(ret_body, annotations, (uint32_t)(ends_initial + is_stale));
	}
	value_close(ret_body, metadata, annotated ? 2 : 1);
	value_close(ret_body, root, 3);
	return buf_error(ret_body);
}

int answer_encode_bookmark(
	struct answer_encoder *encoder, const char *rv, bool ends_initial, struct buf *out)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT;
	const struct answer_request *request = encoder->request;
	const struct feed_definition *d = &request->feed->definition;
	enum api_include include = request->options.include;
	int r = encode_bookmark_body(request, rv, ends_initial, &body);

	/* A table without objects would not mark the end of the initial ones. */
	if (ends_initial && include == API_INCLUDE_NONE)
		include = API_INCLUDE_METADATA;
	if (r == 0)
		r = encode_event(encoder, "BOOKMARK", buf_bytes(&body), BYTES_NONE, include, out);
	/* after the object: the event's end, and before it the table's */
	const char *end = request->accept.form == API_FORM_OBJECT ? "}}\n"
			  : request->accept.form == API_FORM_TABLE && include == API_INCLUDE_OBJECT
				  ? "}}]}}\n"
				  : NULL;
	if (r < 0 || !end)
		return r;
	buf_truncate(out, out->size - strlen(end));
	buf_str(out, api_bookmark_rest(d->group, d->version, d->kind));
	buf_str(out, end);
	return buf_error(out);
}

void answer_encode_error(const struct answer_request *request, struct buf *out)
{
	if (request->accept.protobuf) {
		int failed = api_protobuf_error(&request->status, out);
		err_ignore(failed, "the caller asks for the buffer's error");
		return;
	}
	buf_str(out, "{\"type\":\"ERROR\",\"object\":");
	int r = api_status_write(&request->status, out);
	err_ignore(r, "the caller asks for the buffer's error");
	buf_str(out, "}\n");
}

/* ---- the events of a change ---------------------------------------------- */

/*
 * The events that a change gives to a watch: by the states before and after it, each inside or
 * outside of the watch's selectors.
 *
 *	before     after              event
 *	outside    inside             ADDED
 *	inside     inside             MODIFIED
 *	inside     outside, deleted   DELETED: the last state inside, under the change's RV
 *	outside    outside, deleted   none
 *
 * A relist is a bracket of records. A watch gets only its net effect for each object: what an
 * abandoned list added and the next one did not find is no event.
 */

struct event_change {
	const struct record *old, *new; /* the states before and after; NULL: none */
	struct bytes last;              /* the server's final state; empty: not sent */
	struct bytes rv;                /* of a DELETED event */
};

/* Appends the event of a change. Returns: 1; 0: none; errors. */
static int event_of_change(
	struct answer_encoder *encoder, const struct event_change *change, struct buf *out)
{
	const struct answer_request *request = encoder->request;
	const struct record *old = change->old, *new = change->new;
	struct bytes key = new ? new->key : old ? old->key : BYTES_NONE;
	struct bytes prefix = buf_bytes(&request->key);

	if (!bytes_starts(key, prefix))
		return 0;
	int before = old ? answer_matches(request, old->body) : 0;
	int after = before < 0 ? before : new ? answer_matches(request, new->body) : 0;
	if (after < 0)
		return after;
	if (!before && !after)
		return 0;
	struct bytes last = change->last.size ? change->last : before ? old->body : BYTES_NONE;
	int r = after ? answer_encode_event(
				encoder, before ? "MODIFIED" : "ADDED", new->body, BYTES_NONE, out)
		      : answer_encode_event(encoder, "DELETED", last, change->rv, out);

	return r < 0 ? r : 1;
}

/* ---- one record --------------------------------------------------------- */

int answer_event_read(const struct answer_request *request, uint64_t seq, struct record *ret_record)
{
	int r = snapshot_version(request->worker->snapshot, seq, ret_record);

	if (r == ERR_CORRUPT) {
		err_ignore(r, "it was reported, and the client lists again");
		return LAPPED;
	}
	return r == FOUND && ret_record->feed != request->feed->id ? LAPPED
	       : r == NOT_FOUND                                    ? LAPPED
								   : r;
}

int answer_event_record(struct answer_encoder *encoder, const struct record *record,
	struct bytes last_rv, struct buf *out)
{
	const struct answer_request *request = encoder->request;
	const struct api_options *o = &request->options;
	bool unknown = record->flags & RECORD_FINAL_STATE_UNKNOWN;
	struct event_change change = {.rv = unknown ? last_rv : record->rv};
	bool is_version = record_is_version(record->type);
	struct record old;
	int r;

	if (!bytes_starts(record->key, buf_bytes(&request->key)))
		return 0;
	/* Without selectors the previous version is not read: it is enough to exist. */
	if (is_version && !o->labels && !o->fields) {
		r = answer_encode_event(encoder, record->prev ? "MODIFIED" : "ADDED", record->body,
			BYTES_NONE, out);
		return r < 0 ? r : 1;
	}
	if (record->prev) {
		r = answer_event_read(request, record->prev, &old);
		if (r != 0)
			return r;
		change.old = &old;
	}
	change.new = is_version ? record : NULL;
	if (!is_version)
		change.last = record->body;
	return event_of_change(encoder, &change, out);
}

/* ---- relists ------------------------------------------------------------ */

/* A record of the bracket. */
struct bracket_record {
	uint64_t hash; /* of its key */
	uint64_t seq, prev;
	timeline_rv rv;
	uint8_t type;
};

static int bracket_by_object(const void *a, const void *b)
{
	const struct bracket_record *x = a, *y = b;

	return x->hash != y->hash ? (x->hash > y->hash ? 1 : -1)
				  : (x->seq > y->seq) - (x->seq < y->seq);
}

static int bracket_by_order(const void *a, const void *b)
{
	const struct answer_row *x = a, *y = b;
	bool x_gone = !x->new_seq, y_gone = !y->new_seq;

	if (x_gone != y_gone)
		return x_gone ? -1 : 1;
	if (!x_gone && x->rv != y->rv)
		return x->rv > y->rv ? 1 : -1;
	uint64_t s = x->new_seq ? x->new_seq : x->old_seq, t = y->new_seq ? y->new_seq : y->old_seq;
	return (s > t) - (s < t);
}

static int bracket_add(
	struct answer_bracket *bracket, uint64_t old_seq, uint64_t new_seq, timeline_rv rv)
{
	const struct answer_row row = {old_seq, new_seq, rv};

	return ARRAY_ADD(bracket->rows, bracket->n, bracket->room, row, "a relist");
}

/* Adds the net effect of the records FIRST to LAST of one object. */
static int bracket_reduce(struct answer_bracket *bracket, const struct bracket_record *first,
	const struct bracket_record *last)
{
	uint64_t before = first->type == RECORD_ADDED ? 0 : first->prev;
	bool is_gone = last->type == RECORD_DELETED, replaced = false;
	int r = 0;

	for (const struct bracket_record *record = first; record < last; record++)
		replaced |= record->type == RECORD_DELETED;
	if (before && (is_gone || replaced))
		r = bracket_add(bracket, before, 0, 0);
	if (r == 0 && !is_gone)
		r = bracket_add(bracket, replaced ? 0 : before, last->seq, last->rv);
	return r;
}

static int bracket_collect(struct answer_request *request, uint64_t begin, uint64_t end,
	struct bracket_record **ret_records, size_t *ret_n)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct snapshot *snapshot = request->worker->snapshot;
	struct bracket_record *records = NULL;
	struct record record;
	size_t n = 0, room = 0;
	int r = snapshot_open_walk(snapshot, begin, &log);

	while (r == 0 && (r = journal_walk_next(log, &record)) == FOUND && record.seq <= end) {
		struct bracket_record found = {hash_bytes(record.key, EVENT_HASH_SEED), record.seq,
			record.prev, 0, record.type};

		if (record.feed != request->feed->id || !record_is_change(record.type))
			continue;
		(void)timeline_rv_parse(record.rv, &found.rv);
		r = n == BRACKET_MAX ? LAPPED : ARRAY_ADD(records, n, room, found, "a relist");
	}
	if (r == ERR_CORRUPT && (r = snapshot_result(snapshot, r)) == ERR_CORRUPT) {
		err_ignore(r, "the client lists again");
		r = LAPPED;
	}
	*ret_records = records;
	*ret_n = n;
	return r == END || r == FOUND ? 0 : r;
}

void answer_bracket_free(struct answer_bracket **bracket)
{
	struct answer_bracket *b = TAKE(*bracket);

	if (!b)
		return;
	free(b->rows);
	free(b);
}

int answer_bracket_load(struct answer_request *request, const struct timeline_entry *entry,
	struct answer_bracket **ret_bracket)
{
	CLEANUP(answer_bracket_free) struct answer_bracket *bracket = calloc(1, sizeof(*bracket));
	AUTO_FREE struct bracket_record *records = NULL;
	size_t n;

	if (!bracket)
		return err_set(-ENOMEM, "a relist");
	bracket->entry = *entry;
	int r = bracket_collect(request, entry->begin, entry->seq, &records, &n);
	if (r == 0 && n)
		qsort(records, n, sizeof(*records), bracket_by_object);
	for (size_t i = 0, last; r == 0 && i < n; i = last + 1) {
		for (last = i; last + 1 < n && records[last + 1].hash == records[i].hash;)
			last++;
		r = bracket_reduce(bracket, &records[i], &records[last]);
	}
	if (r == 0 && bracket->n)
		qsort(bracket->rows, bracket->n, sizeof(*bracket->rows), bracket_by_order);
	if (r == 0)
		*ret_bracket = TAKE(bracket);
	return r;
}

int answer_bracket_next(struct answer_encoder *encoder, struct answer_bracket *bracket,
	struct bytes last_rv, struct buf *out)
{
	const struct answer_row *row = &bracket->rows[bracket->next];
	struct event_change change = {.rv = last_rv};
	struct record old, new;
	int r = 0;

	if (row->old_seq)
		r = answer_event_read(encoder->request, row->old_seq, &old);
	if (r == 0 && row->new_seq)
		r = answer_event_read(encoder->request, row->new_seq, &new);
	if (r != 0)
		return r;
	change.old = row->old_seq ? &old : NULL;
	change.new = row->new_seq ? &new : NULL;
	if (row->new_seq)
		change.rv = new.rv;
	r = event_of_change(encoder, &change, out);
	if (r < 0)
		return r;
	bracket->next++;
	return r;
}
