/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/question.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config/config.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/yaml.h"

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

/* Appends the attributes as a member of a review's spec. */
static void question_put_attributes(
	struct question *question, const struct auth_attributes *a, bool with_name)
{
	const struct {
		const char *name, *value;
	} members[QUESTION_PARTS] = {[QUESTION_VERB] = {"verb", a->verb},
		[QUESTION_GROUP] = {"group", a->group},
		[QUESTION_VERSION] = {"version", a->version},
		[QUESTION_RESOURCE] = {"resource", a->resource},
		[QUESTION_SUBRESOURCE] = {"subresource", a->subresource},
		[QUESTION_NAMESPACE] = {"namespace", a->namespace_},
		[QUESTION_NAME] = {"name", with_name ? a->name : ""},
		[QUESTION_LABELS] = {"labelSelector", a->label_selector},
		[QUESTION_FIELDS] = {"fieldSelector", a->field_selector}};
	struct buf *out = &question->bytes;
	bool first = true;

	if (!*a->resource) {
		buf_str(out, "\"nonResourceAttributes\":{");
		question_put_member(out, "path", a->path, &first);
		question_put_member(out, "verb", a->verb, &first);
		buf_byte(out, '}');
		return;
	}
	buf_str(out, "\"resourceAttributes\":{");
	for (size_t i = 0; i < QUESTION_PARTS; i++) {
		question->parts[i] = out->size;
		if (i < QUESTION_LABELS) {
			question_put_member(out, members[i].name, members[i].value, &first);
		} else if (*members[i].value) {
			bool alone = true;

			buf_printf(out, ",\"%s\":{", members[i].name);
			question_put_member(out, "rawSelector", members[i].value, &alone);
			buf_byte(out, '}');
		}
	}
	question->parts[QUESTION_PARTS] = out->size;
	buf_byte(out, '}');
}

static void question_put_kind(struct buf *out, const char *kind)
{
	buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"authorization.k8s.io/v1\",\"spec\":{",
		kind);
}

/* Appends the header lines of the client's credentials. */
static void question_put_headers(struct buf *out, const struct exchange *x, bool impersonation)
{
	for (size_t i = 0; i < x->n_headers; i++) {
		struct bytes name = x->headers[i].name;

		if (!bytes_equal(name, BYTES_LIT("authorization")) &&
			!(impersonation && bytes_starts(name, BYTES_LIT("impersonate-"))))
			continue;
		buf_bytes_put(out, name);
		/* libcurl takes "name:" for a header to be left out. */
		buf_str(out, x->headers[i].value.size ? ": " : ";");
		buf_bytes_put(out, x->headers[i].value);
		buf_byte(out, '\0');
	}
}

/* Appends VALUE, percent-encoded, after the text BEFORE it; nothing without a value. */
static void question_put_encoded(struct buf *out, const char *before, const char *value)
{
	buf_str(out, *value ? before : "");
	for (const char *p = value; *p; p++)
		if (isalnum((unsigned char)*p) || strchr("-._~", *p))
			buf_byte(out, (uint8_t)*p);
		else
			buf_printf(out, "%%%02X", (unsigned char)*p);
}

/* Appends the target of a request with the attributes A. A list or watch is refused with 422, after
 * it was allowed: a match without an RV. The limits are for servers that don't check this. */
static void question_put_target(struct buf *out, const struct auth_attributes *a)
{
	bool get = strcmp(a->verb, "get") == 0;
	bool of_namespaces = !*a->group && strcmp(a->resource, "namespaces") == 0;
	bool watches_one = !get && of_namespaces && *a->namespace_; /* by the deprecated path */

	if (!*a->resource) {
		buf_str(out, a->path);
		return;
	}
	buf_str(out, *a->group ? "/apis" : "/api");
	question_put_encoded(out, "/", a->group);
	question_put_encoded(out, "/", *a->version ? a->version : "v1");
	buf_str(out, watches_one ? "/watch" : "");
	question_put_encoded(out, "/namespaces/", of_namespaces ? "" : a->namespace_);
	question_put_encoded(out, "/", a->resource);
	if (get) { /* every name: by one that no object has */
		question_put_encoded(out, "/", *a->name ? a->name : "*");
		question_put_encoded(out, "/", a->subresource);
		return;
	}
	question_put_encoded(out, "/", watches_one ? a->namespace_ : "");
	buf_str(out, "?limit=1&timeoutSeconds=1&resourceVersionMatch=Exact");
	buf_str(out, strcmp(a->verb, "watch") == 0 ? "&watch=true" : "");
	question_put_encoded(out, "&labelSelector=", a->label_selector);
	question_put_encoded(out, "&fieldSelector=", a->field_selector);
}

bool question_make(struct question *question, const struct exchange *x,
	const struct auth_attributes *a, enum question_form form)
{
	struct buf *out = &question->bytes;
	bool review = x->peer->auth == CONFIG_AUTH_REVIEW;
	bool certificate = review && *x->peer->common_name, first = true;

	*question = (struct question){
		.bytes = BUF_SECRET, .review = review, .probe = form == QUESTION_PROBE};
	if (!certificate)
		question_put_headers(out, x, !review);
	buf_byte(out, '\0');
	question->headers_size = question->client_size = out->size;
	if (question->probe) {
		question_put_target(out, a);
		buf_byte(out, '\0');
		return buf_error(out) == 0 && question->headers_size <= QUESTION_HEADERS_MAX;
	}
	if (!review || certificate)
		question_put_kind(out, review ? "SubjectAccessReview" : "SelfSubjectAccessReview");
	if (certificate) { /* user and groups as the API server would see them */
		question_put_member(out, "user", x->peer->common_name, &first);
		buf_str(out, ",\"groups\":[");
		for (size_t i = 0; i < x->peer->n_organizations; i++) {
			json_write_string(bytes_str(x->peer->organizations[i]), out);
			buf_byte(out, ',');
		}
		buf_str(out, "\"system:authenticated\"],");
	}
	question->client_size = out->size;
	question_put_attributes(question, a, form == QUESTION_NAMED);
	if (!review || certificate)
		buf_str(out, "}}");
	return buf_error(out) == 0 && question->headers_size <= QUESTION_HEADERS_MAX;
}

/* ---- implications ------------------------------------------------------- */

bool question_is_of_client(const struct question *question, const struct question *other)
{
	return question->client_size == other->client_size && question->review == other->review &&
	       memcmp(question->bytes.data, other->bytes.data, other->client_size) == 0;
}

static struct bytes question_part(const struct question *question, enum question_part part)
{
	return BYTES(question->bytes.data + question->parts[part],
		question->parts[part + 1] - question->parts[part]);
}

static bool question_verb_is(const struct question *question, const char *verb)
{
	char member[24];

	(void)snprintf(member, sizeof(member), "\"verb\":\"%s\"", verb);
	return bytes_equal(question_part(question, QUESTION_VERB), bytes_str(member));
}

bool question_implies(const struct question *allowed, const struct question *asked)
{
	bool lists = question_verb_is(allowed, "list") || question_verb_is(allowed, "watch");
	bool reads = question_verb_is(asked, "get") || question_verb_is(asked, "list") ||
		     question_verb_is(asked, "watch");

	if (!asked->parts[QUESTION_PARTS] || !allowed->parts[QUESTION_PARTS] || !reads)
		return false;
	for (enum question_part i = 0; i < QUESTION_PARTS; i++) {
		struct bytes part = question_part(allowed, i);
		bool may_be_absent = i >= QUESTION_NAMESPACE;

		if (!(i == QUESTION_VERB && lists) && !(may_be_absent && !part.size) &&
			!bytes_equal(part, question_part(asked, i)))
			return false;
	}
	return question_is_of_client(allowed, asked);
}

/* ---- tokens ------------------------------------------------------------- */

bool question_has_token(const struct question *question)
{
	return question->review && question->headers_size > 1;
}

void question_put_token_review(const struct question *question, struct buf *out)
{
	static const char name[] = "authorization: bearer ";
	const char *line = (const char *)question->bytes.data;
	size_t size = strlen(line), skip = sizeof(name) - 1;

	buf_str(out, "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/"
		     "v1\",\"spec\":{\"token\":");
	json_write_string(
		BYTES(line + (size > skip ? skip : size), size > skip ? size - skip : 0), out);
	buf_str(out, "}}");
}

static void question_put_list(const struct yaml_node *list, struct buf *out)
{
	buf_byte(out, '[');
	for (size_t i = 0; list && list->type == YAML_LIST && i < list->count; i++) {
		if (i)
			buf_byte(out, ',');
		json_write_string(bytes_str(list->items[i].text), out);
	}
	buf_byte(out, ']');
}

/* Appends the subject of a SubjectAccessReview. */
static void question_put_user(const struct yaml_node *user, struct buf *out)
{
	const struct yaml_node *extra = yaml_get(user, "extra");
	const char *name = yaml_text(user, "username"), *uid = yaml_text(user, "uid");
	bool first = true;

	question_put_member(out, "user", name ? name : "", &first);
	question_put_member(out, "uid", uid ? uid : "", &first);
	buf_str(out, first ? "\"groups\":" : ",\"groups\":");
	question_put_list(yaml_get(user, "groups"), out);
	buf_str(out, ",\"extra\":{");
	for (size_t i = 0; extra && extra->type == YAML_MAP && i < extra->count; i++) {
		if (i)
			buf_byte(out, ',');
		json_write_string(bytes_str(extra->keys[i]), out);
		buf_byte(out, ':');
		question_put_list(&extra->items[i], out);
	}
	buf_str(out, "},");
}

/* Reads a review. Returns NULL if it can't be read, with the REASON. */
static struct yaml *question_read(struct bytes text, char *reason, size_t size)
{
	struct yaml *yaml = NULL;
	int r = text.size ? yaml_parse(text.data, text.size, "review", &yaml)
			  : err_say(ERR_SYNTAX, "it is empty");

	if (r < 0)
		(void)snprintf(
			reason, size, "the API server's review can't be read: %.150s", err_text(r));
	return yaml;
}

enum auth_answer question_read_token(const struct question *question, struct bytes text,
	struct buf *out, char *user, char *reason, size_t size)
{
	CLEANUP(yaml_free) struct yaml *yaml = question_read(text, reason, size);

	if (!yaml)
		return AUTH_UNAVAILABLE;
	const struct yaml_node *status = yaml_get(yaml_root(yaml), "status"),
			       *who = yaml_get(status, "user");
	const char *good = yaml_text(status, "authenticated"), *name = yaml_text(who, "username");
	if (!good || strcmp(good, "true") != 0 || !name)
		return AUTH_UNAUTHENTICATED;
	(void)snprintf(user, size, "%s", name);
	question_put_kind(out, "SubjectAccessReview");
	question_put_user(who, out);
	buf_put(out, question->bytes.data + question->headers_size,
		question->bytes.size - question->headers_size);
	buf_str(out, "}}");
	if (buf_error(out) == 0)
		return AUTH_ALLOWED;
	(void)snprintf(reason, size, "no memory for a decision");
	return AUTH_UNAVAILABLE;
}

void question_read_refusal(struct bytes text, char *message, size_t size)
{
	CLEANUP(yaml_free) struct yaml *yaml = question_read(text, message, size);
	const char *found = yaml ? yaml_text(yaml_root(yaml), "message") : NULL;

	(void)snprintf(message, size, "%s", found ? found : "");
}

enum auth_answer question_read_review(struct bytes text, char *reason, size_t size)
{
	CLEANUP(yaml_free) struct yaml *yaml = question_read(text, reason, size);

	if (!yaml)
		return AUTH_UNAVAILABLE;
	const struct yaml_node *status = yaml_get(yaml_root(yaml), "status");
	const char *allowed = yaml_text(status, "allowed"), *why = yaml_text(status, "reason");
	(void)snprintf(reason, size, "%s", why ? why : "");
	return allowed && strcmp(allowed, "true") == 0 ? AUTH_ALLOWED : AUTH_DENIED;
}
