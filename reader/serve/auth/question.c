/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/auth/question.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/yaml.h"

#define HEADERS_MAX ((size_t)32 << 10)

void question_release(struct question *question)
{
	buf_release(&question->bytes);
}

static void question_put_member(struct buf *out, const char *name, const char *value, bool *first)
{
	if (!*value)
		return;
	buf_printf(out, "%s\"%s\":", *first ? "" : ",", name);
	*first = false;
	json_write_string(bytes_str(value), out);
}

static void question_put_selector(struct buf *out, const char *name, const char *selector)
{
	bool first = true;

	if (!*selector)
		return;
	buf_printf(out, ",\"%s\":{", name);
	question_put_member(out, "rawSelector", selector, &first);
	buf_byte(out, '}');
}

/* Appends the review. */
static void question_put_review(struct buf *out, const struct auth_attributes *a, bool with_name)
{
	bool first = true;

	buf_str(out, "{\"kind\":\"SelfSubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/"
		     "v1\",\"spec\":{");
	if (!*a->resource) {
		buf_str(out, "\"nonResourceAttributes\":{");
		question_put_member(out, "path", a->path, &first);
		question_put_member(out, "verb", a->verb, &first);
		buf_str(out, "}}}");
		return;
	}
	buf_str(out, "\"resourceAttributes\":{");
	question_put_member(out, "verb", a->verb, &first);
	question_put_member(out, "group", a->group, &first);
	question_put_member(out, "version", a->version, &first);
	question_put_member(out, "resource", a->resource, &first);
	question_put_member(out, "subresource", a->subresource, &first);
	question_put_member(out, "namespace", a->namespace_, &first);
	question_put_member(out, "name", with_name ? a->name : "", &first);
	question_put_selector(out, "labelSelector", a->label_selector);
	question_put_selector(out, "fieldSelector", a->field_selector);
	buf_str(out, "}}}");
}

bool question_make(struct question *question, const struct exchange *x,
	const struct auth_attributes *a, bool with_name)
{
	struct buf *out = &question->bytes;

	*question = (struct question){.bytes = BUF_SECRET};
	for (size_t i = 0; i < x->n_headers; i++) {
		struct bytes name = x->headers[i].name;

		if (!bytes_equal(name, BYTES_LIT("authorization")) &&
			!bytes_starts(name, BYTES_LIT("impersonate-")))
			continue;
		buf_bytes_put(out, name);
		/* libcurl takes "name:" for a header to be left out. */
		buf_str(out, x->headers[i].value.size ? ": " : ";");
		buf_bytes_put(out, x->headers[i].value);
		buf_byte(out, '\0');
	}
	buf_byte(out, '\0');
	question->headers_size = out->size;
	question_put_review(out, a, with_name);
	return buf_error(out) == 0 && question->headers_size <= HEADERS_MAX;
}

enum auth_answer question_read_review(struct bytes text, char *reason, size_t size)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	int r = text.size ? yaml_parse(text.data, text.size, "review", &yaml)
			  : err_say(ERR_SYNTAX, "it is empty");

	if (r < 0) {
		(void)snprintf(
			reason, size, "the API server's review can't be read: %.150s", err_text(r));
		return AUTH_UNAVAILABLE;
	}
	const struct yaml_node *status = yaml_get(yaml_root(yaml), "status");
	const char *allowed = yaml_text(status, "allowed"), *why = yaml_text(status, "reason");
	(void)snprintf(reason, size, "%s", why ? why : "");
	return allowed && strcmp(allowed, "true") == 0 ? AUTH_ALLOWED : AUTH_DENIED;
}
