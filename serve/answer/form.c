/* SPDX-License-Identifier: Apache-2.0 */
/* The form that the client accepts: whether it can be given, and the columns of its tables. */
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/custom.h"
#include "serve/answer/answer_internal.h"

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
	return r == 0 && request->accept.form == API_FORM_TABLE
		       ? api_options_include(&request->options, &request->status)
		       : r;
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
