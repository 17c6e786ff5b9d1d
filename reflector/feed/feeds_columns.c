/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the columns of custom resources: reads the CustomResourceDefinition of each feed of one,
 * from time to time, and stores its additionalPrinterColumns in the feed's definition. So readers
 * print kubectl's tables, also from a copy of the store.
 *
 * One request runs at a time, because definitions are large. Without the right to read definitions
 * nothing is stored, and tables have NAME and AGE. If definitions are watched, readers read those
 * instead.
 */
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/proc.h"
#include "common/value/custom.h"
#include "common/value/json.h"
#include "reflector/feed/feeds_internal.h"
#include "reflector/net/fetch.h"
#include "reflector/record/recorder.h"

#define COLUMNS_AGAIN_NS (UINT64_C(600) * 1000000000)
#define COLUMNS_LIMIT    (8u << 20) /* of a definition's JSON */
#define COLUMNS_TIME_NS  (UINT64_C(30) * 1000000000)

/* Groups without definitions: the API server's own, and an aggregated server's. */
static bool columns_is_built_in(const char *group)
{
	return !strchr(group, '.') || custom_is_builtin_group(group) ||
	       strcmp(group, "metrics.k8s.io") == 0;
}

/* ---- the answer --------------------------------------------------------- */

static void columns_answered(void *arg, const struct fetch_answer *answer)
{
	struct feeds *feeds = arg;
	struct feeds_columns *columns = &feeds->columns;
	struct json_parser *parser = NULL;
	struct buf document = BUF_INIT;
	int r = answer->result;

	columns->fetch = NULL;
	columns->due_ns = 0;
	buf_reset(&columns->text);
	if (r == 0 && answer->status == 403) /* the others would be refused also */
		columns->due_ns = proc_monotonic_ns() + COLUMNS_AGAIN_NS;
	if (r == 0 && answer->status == 200) {
		r = json_parser_new(&parser);
		if (r == 0)
			r = json_parse(parser, answer->body, NULL, &document);
		if (r == 0)
			r = custom_write_columns(
				buf_bytes(&document), columns->version, &columns->text);
		columns->ready = r == 0;
	}
	err_ignore(r, "tables of this resource keep the columns that are stored");
	json_parser_free(&parser);
	buf_release(&document);
}

/* ---- turns -------------------------------------------------------------- */

static int columns_ask(struct feeds *feeds, const struct feed_definition *feed)
{
	struct feeds_columns *columns = &feeds->columns;
	char path[600];

	(void)snprintf(path, sizeof(path),
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s.%s", feed->resource,
		feed->group);
	columns->feed = feed->id;
	(void)snprintf(columns->version, sizeof(columns->version), "%s", feed->version);
	return fetch_start(feeds->shared.http,
		&(struct fetch_request){
			.path = path,
			.limit = COLUMNS_LIMIT,
			.total_ns = COLUMNS_TIME_NS,
			.may_be_absent = true, /* an aggregated API has no definition */
			.done = columns_answered,
			.arg = feeds,
		},
		&columns->fetch);
}

/* Stores the answer, if the feed is still there. */
static int columns_store(struct feeds *feeds)
{
	struct feeds_columns *columns = &feeds->columns;

	columns->ready = false;
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct session *session = feeds->configured[i].session;

		if (!session || session_definition(session)->id != columns->feed ||
			strcmp(session_definition(session)->columns, buf_cstr(&columns->text)) == 0)
			continue;
		int r = recorder_change_feed(feeds->shared.recorder, columns->feed,
			&(struct feed_change){.columns = buf_cstr(&columns->text)});
		if (r < 0)
			return r;
	}
	return 0;
}

int columns_due(struct feeds *feeds)
{
	struct feeds_columns *columns = &feeds->columns;
	uint64_t now = proc_monotonic_ns(), next = now + COLUMNS_AGAIN_NS;
	int r = columns->ready ? columns_store(feeds) : 0;

	if (r < 0 || columns->fetch || columns->due_ns > now)
		return r;
	bool definitions = false; /* are watched: readers have them */
	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct session *session = feeds->configured[i].session;
		const struct feed_definition *d = session ? session_definition(session) : NULL;

		definitions |= d && !d->metadata_only &&
			       !strcmp(d->resource, "customresourcedefinitions") &&
			       !strcmp(d->group, "apiextensions.k8s.io");
	}
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d =
			w->session ? session_definition(w->session) : NULL;

		if (!d || definitions || d->metadata_only || columns_is_built_in(d->group))
			continue;
		if (w->columns_ns > now) {
			next = w->columns_ns < next ? w->columns_ns : next;
			continue;
		}
		w->columns_ns = now + COLUMNS_AGAIN_NS;
		r = columns_ask(feeds, d);
		err_ignore(r, "asked again later");
		if (r == 0)
			return 0;
	}
	columns->due_ns = next;
	return 0;
}

void columns_release(struct feeds *feeds)
{
	fetch_cancel(&feeds->columns.fetch);
	buf_release(&feeds->columns.text);
}
