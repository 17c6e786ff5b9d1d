/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, lists and events in the form that the client accepts. */
#include "reader/serve/answer_internal.h"

#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/custom.h"
#include "common/value/value.h"
#include "reader/serve/api_bookmark.h"
#include "reader/serve/api_object.h"

int answer_custom(struct answer_request *request, bool labels, struct buf *out)
{
	const struct feed_definition *d = &request->feed->definition;
	const struct coverage_request wanted = {.group = "apiextensions.k8s.io",
		.version = "v1",
		.resource = "customresourcedefinitions",
		.namespace_ = "",
		.name = ""};
	struct answer_worker *worker = request->worker;
	struct bytes version = bytes_str(d->version), columns;
	struct catalog_feed *feed = NULL;
	enum coverage_answer answer;
	struct record record;
	char name[512];
	bool known;

	if (catalog_find(worker->answer->catalog, &wanted, &feed, &answer, &known) != FOUND)
		return 0;
	(void)snprintf(name, sizeof(name), "%s.%s", d->resource, d->group);
	int r = answer_hold(worker);
	if (r == 0)
		r = snapshot_get(worker->snapshot, feed->id, bytes_str(name), &record);
	if (r == FOUND && labels) {
		r = custom_selectable(record.body, version, out);
	} else if (r == FOUND) {
		r = custom_columns(record.body, version, &columns);
		if (r == FOUND)
			buf_bytes_put(out, columns);
	}
	answer_rest(worker);
	catalog_release(&feed);
	return r < 0 ? r : buf_error(out);
}

int answer_form_check(struct answer_request *request)
{
	const struct feed_definition *d = &request->feed->definition;
	bool is_list = request->verb == ANSWER_LIST, is_builtin = custom_is_builtin_group(d->group);
	const char *kind = is_builtin ? (is_list ? d->list_kind : d->kind)
				      : (is_list ? "UnstructuredList" : "Unstructured");

	int r = api_accept_check(&request->accept, is_list, kind,
		is_builtin ? request->path.group_version : "unstructured", &request->status);
	return r == 0 && request->accept.form == API_FORM_TABLE ? api_options_include(&request->options, &request->status) : r;
}

int answer_form_init(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf columns = BUF_INIT;
	const struct feed_definition *d = &request->feed->definition;
	/* An object must be there, and a list be possible, before its form is refused. */
	int r = request->verb == ANSWER_WATCH ? answer_form_check(request) : 0;

	if (r == 0 && request->accept.form == API_FORM_TABLE) {
		if (!custom_is_builtin_group(d->group))
			r = answer_custom(request, false, &columns);
		const struct printer_kind kind = {.group = bytes_str(d->group),
			.version = bytes_str(d->version),
			.resource = bytes_str(d->resource),
			.columns = buf_bytes(&columns),
			.stored = d->columns};

		if (r == 0)
			r = printer_new(&kind, &request->printer);
	}
	return r;
}

/* ---- tables ---- */

/* The conditions of rows: only pods that have ended have one. */
static int form_put_conditions(struct answer_request *request, struct bytes body, struct buf *out)
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
		buf_printf(out, ",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\","
				"\"reason\":\"%s\",\"message\":\"%s\"}]",
			succeeded ? "Succeeded" : "Failed",
			succeeded ? "The pod has completed successfully." : "The pod failed.");
	return 0;
}

static int form_put_row(
	struct answer_request *request, struct bytes body, struct bytes rv, struct buf *out)
{
	const struct printer_cell *cells;
	size_t n;
	int r = printer_row(request->printer, body, &cells, &n);

	if (r < 0)
		return r;
	buf_str(out, "{\"cells\":");
	printer_put_cells(cells, n, out);
	r = form_put_conditions(request, body, out);
	if (r < 0)
		return r;
	buf_str(out, ",\"object\":");
	switch (request->options.include) {
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

/* Begins a table with RV. Its columns are given once in a watch. */
static void form_begin_table(
	struct answer_request *request, const char *list_metadata, struct buf *out)
{
	buf_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{%s},"
			"\"columnDefinitions\":", request->accept.version, list_metadata);
	if (request->columns_given)
		buf_str(out, "null");
	else
		printer_put_columns(request->printer, out);
	request->columns_given = true;
	buf_str(out, ",\"rows\":[");
}

static int form_put_table_of_one(
	struct answer_request *request, struct bytes body, struct bytes rv, struct buf *out)
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
	form_begin_table(request, metadata, out);
	r = form_put_row(request, body, rv, out);
	buf_str(out, "]}");
	return r < 0 ? r : buf_error(out);
}

/* ---- objects ---- */

static int form_put_object(
	struct answer_request *request, struct bytes body, struct bytes rv, struct buf *out)
{
	metric_add(request->worker->answer->renders[request->accept.form], 1);
	switch (request->accept.form) {
	case API_FORM_TABLE:
		return form_put_table_of_one(request, body, rv, out);
	case API_FORM_METADATA:
	case API_FORM_METADATA_LIST:
		return api_object_write_metadata(body, request->accept.version, rv, out);
	default:
		return api_object_write(body, false, rv, out);
	}
}

int answer_form_object(struct answer_request *request, struct bytes body, struct buf *out)
{
	return form_put_object(request, body, BYTES_NONE, out);
}

/* ---- lists ---- */

/* Makes the members of a list's metadata: sorted, and with an empty `continue`, for custom
 * resources. */
static int form_list_metadata(const char *rv, const char *token, uint64_t remaining, bool is_custom,
	struct buf *out)
{
	char count[48] = "";

	if (remaining)
		(void)snprintf(count, sizeof(count), ",\"remainingItemCount\":%llu",
			(unsigned long long)remaining);
	if (is_custom)
		buf_printf(
			out, "\"continue\":\"%s\"%s,\"resourceVersion\":\"%s\"", token, count, rv);
	else if (*token)
		buf_printf(
			out, "\"resourceVersion\":\"%s\",\"continue\":\"%s\"%s", rv, token, count);
	else
		buf_printf(out, "\"resourceVersion\":\"%s\"", rv);
	return buf_error(out);
}

static bool form_is_custom_list(const struct answer_request *request)
{
	return request->accept.form == API_FORM_OBJECT &&
	       !custom_is_builtin_group(request->feed->definition.group);
}

int answer_form_begin(struct answer_request *request, const char *rv, const char *token,
	uint64_t remaining, struct buf *out)
{
	CLEANUP(buf_release) struct buf metadata = BUF_INIT;
	const struct feed_definition *d = &request->feed->definition;

	if (form_is_custom_list(request)) {
		buf_printf(out, "{\"apiVersion\":\"%s\",\"items\":[", request->path.group_version);
		return buf_error(out);
	}
	int r = form_list_metadata(rv, token, remaining, false, &metadata);
	if (r < 0)
		return r;
	switch (request->accept.form) {
	case API_FORM_TABLE:
		form_begin_table(request, buf_cstr(&metadata), out);
		break;
	case API_FORM_METADATA_LIST:
		buf_printf(out, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
				"\"meta.k8s.io/%s\",\"metadata\":{%s},\"items\":[",
			request->accept.version, buf_cstr(&metadata));
		break;
	default:
		buf_printf(out,
			"{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{%s},\"items\":[",
			d->list_kind, request->path.group_version, buf_cstr(&metadata));
		break;
	}
	return buf_error(out);
}

int answer_form_item(struct answer_request *request, struct bytes body, struct buf *out)
{
	metric_add(request->worker->answer->renders[request->accept.form], 1);
	switch (request->accept.form) {
	case API_FORM_TABLE:
		return form_put_row(request, body, BYTES_NONE, out);
	case API_FORM_METADATA_LIST:
		return api_object_write_metadata(body, request->accept.version, BYTES_NONE, out);
	default:
		return api_object_write(body, custom_is_builtin_group(request->feed->definition.group),
			BYTES_NONE, out);
	}
}

void answer_form_end(struct answer_request *request, const char *rv, const char *token,
	uint64_t remaining, struct buf *out)
{
	if (!form_is_custom_list(request)) {
		buf_str(out, "]}");
		return;
	}
	buf_printf(out, "],\"kind\":\"%s\",\"metadata\":{", request->feed->definition.list_kind);
	int r = form_list_metadata(rv, token, remaining, true, out);
	err_ignore(r, "the caller asks for the buffer's error");
	buf_str(out, "}}");
}

/* ---- events ---- */

int answer_form_event(struct answer_request *request, const char *type, struct bytes body,
	struct bytes rv, struct buf *out)
{
	size_t before = out->size;

	buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
	int r = form_put_object(request, body, rv, out);
	if (r < 0) {
		if (out->size > before)
			buf_truncate(out, before);
		return r;
	}
	buf_str(out, "}\n");
	return buf_error(out);
}

/* Puts the row of a bookmark: of an object with metadata only, also if other rows include whole
 * objects. */
static void form_put_bookmark_row(
	struct answer_request *request, const char *rv, bool ends_initial, struct buf *out)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT;
	enum api_include include = request->options.include;
	size_t before = out->size;
	size_t root = value_open_map(&body);

	value_put_string(&body, BYTES_LIT("metadata"));
	size_t metadata = value_open_map(&body);
	value_put_string(&body, BYTES_LIT("resourceVersion"));
	value_put_string(&body, bytes_str(rv));
	if (ends_initial) {
		value_put_string(&body, BYTES_LIT("annotations"));
		size_t annotations = value_open_map(&body);
		value_put_string(&body, BYTES_LIT("k8s.io/initial-events-end"));
		value_put_string(&body, BYTES_LIT("true"));
		value_close(&body, annotations, 1);
	}
	value_close(&body, metadata, ends_initial ? 2 : 1);
	value_close(&body, root, 1);
	request->options.include = API_INCLUDE_METADATA;
	int r = buf_error(&body);
	if (r == 0)
		r = form_put_row(request, buf_bytes(&body), BYTES_NONE, out);
	request->options.include = include;
	if (r < 0) {
		err_ignore(r, "the caller asks for the buffer's error; the row is left out");
		if (out->size > before)
			buf_truncate(out, before);
	}
}

/* Puts a member of an object, with a comma if there is one before. */
static void form_put_annotation(const char *member, struct buf *annotations)
{
	if (*member)
		buf_printf(annotations, "%s%s", annotations->size ? "," : "", member);
}

/* Puts the annotations of a bookmark, in their order: OWN, that of the kind, and ours. */
static void form_put_annotations(
	const struct answer_request *request, const char *own, bool ends_initial, struct buf *out)
{
	CLEANUP(buf_release) struct buf annotations = BUF_INIT;
	char stale[240], why[200];
	double age;

	form_put_annotation(own, &annotations);
	if (ends_initial)
		form_put_annotation("\"k8s.io/initial-events-end\":\"true\"", &annotations);
	if (request->is_leaf && answer_is_stale(request, &age, why)) {
		(void)snprintf(stale, sizeof(stale), "\"kinformer/stale\":\"%.0f %s\"", age, why);
		form_put_annotation(stale, &annotations);
	}
	if (annotations.size)
		buf_printf(out, "\"annotations\":{%s}", buf_cstr(&annotations));
}

void answer_form_bookmark(
	struct answer_request *request, const char *rv, bool ends_initial, struct buf *out)
{
	const struct feed_definition *d = &request->feed->definition;
	CLEANUP(buf_release) struct buf notes = BUF_INIT;
	bool plain = request->accept.form != API_FORM_TABLE && request->accept.form != API_FORM_METADATA;
	char metadata[TIMELINE_RV_SIZE + 32];

	form_put_annotations(
		request, plain ? api_bookmark_annotation(d->group, d->kind) : "", ends_initial, &notes);
	const char *note = buf_cstr(&notes), *comma = notes.size ? "," : "";
	buf_str(out, "{\"type\":\"BOOKMARK\",\"object\":");
	(void)snprintf(metadata, sizeof(metadata), "\"resourceVersion\":\"%s\"", rv);
	if (request->accept.form == API_FORM_TABLE) {
		form_begin_table(request, metadata, out);
		form_put_bookmark_row(request, rv, ends_initial, out);
		buf_str(out, "]}");
	} else if (request->accept.form == API_FORM_METADATA) {
		buf_printf(out,
			"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
			"\"metadata\":{%s%s%s}}",
			request->accept.version, metadata, comma, note);
	} else if (custom_is_builtin_group(d->group)) {
		buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{%s%s%s}%s}",
			d->kind, request->path.group_version, metadata, comma, note,
			api_bookmark_rest(d->group, d->version, d->kind));
	} else { /* sorted */
		buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{%s%s%s}}",
			request->path.group_version, d->kind, note, comma, metadata);
	}
	buf_str(out, "}\n");
}

void answer_form_error(struct answer_request *request, struct buf *out)
{
	buf_str(out, "{\"type\":\"ERROR\",\"object\":");
	int r = api_status_write(&request->status, out);
	err_ignore(r, "the caller asks for the buffer's error");
	buf_str(out, "}\n");
}
