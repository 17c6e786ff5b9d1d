/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/view.h"

#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/selector.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/status.h"

static bool view_check_fields(
	const struct kind *kind, const struct selector *fields, struct http_answer *answer)
{
	for (size_t i = 0; i < selector_count(fields); i++) {
		struct bytes label = selector_at(fields, i)->key;

		if (kind_has_field(kind, label))
			continue;
		if (kind->fields)
			status_bad_request(
				answer, "field label not supported: %.*s", BYTES_ARG(label));
		else
			status_bad_request(answer,
				"\"%.*s\" is not a known field selector: only "
				"\"metadata.name\", \"metadata.namespace\"",
				BYTES_ARG(label));
		return false;
	}
	return true;
}

static bool view_parse_selector(int (*parser)(const char *, struct selector **), const char *text,
	struct selector **ret_selector, struct http_answer *answer)
{
	int r = *text ? parser(text, ret_selector) : 0;

	if (r < 0)
		status_bad_request(answer, "%s", err_text(r));
	err_forget();
	return r >= 0;
}

bool view_init(struct view *view, const char *namespace, const char *labels, const char *fields,
	struct http_answer *answer)
{
	CLEANUP(buf_release) struct buf prefix = BUF_INIT;

	if (namespace)
		buf_printf(&prefix, "%s/", namespace);
	view->prefix = memory_text(buf_bytes(&prefix));
	if (!view_parse_selector(selector_parse_labels, labels, &view->labels, answer) ||
		!view_parse_selector(selector_parse_fields, fields, &view->fields, answer))
		return false;
	if (view->fields && !view_check_fields(view->collection->kind, view->fields, answer))
		return false;
	if (view_has_selector(view))
		REQUIRE(json_parser_new(&view->parser) == 0);
	return true;
}

void view_release(struct view *view)
{
	free(view->prefix);
	selector_free(&view->labels);
	selector_free(&view->fields);
	json_parser_free(&view->parser);
}

bool view_covers(const struct view *view, const char *key)
{
	return strncmp(key, view->prefix, strlen(view->prefix)) == 0;
}

bool view_has_selector(const struct view *view)
{
	return view->labels || view->fields;
}

bool view_selects(const struct view *view, const struct version *version)
{
	CLEANUP(buf_release) struct buf document = BUF_INIT;

	if (!version || version->deleted)
		return false;
	if (!view_has_selector(view))
		return true;
	/* A test may store malformed JSON; no selector selects it. */
	int r = json_parse(view->parser, version_text(version), NULL, &document);
	if (r < 0) {
		err_ignore(r, "no selector selects it");
		return false;
	}
	return (!view->labels || selector_match(view->labels, buf_bytes(&document)) == 1) &&
	       (!view->fields || selector_match(view->fields, buf_bytes(&document)) == 1);
}
