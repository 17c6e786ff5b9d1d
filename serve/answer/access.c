/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SelfSubjectAccessReviews and SelfSubjectRulesReviews, if the API server can't answer them: k9s
 * and `kubectl auth can-i` ask the first before they read, Headlamp takes the second for the login.
 * The client may get, list and watch what kinf-serve would let it, and nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/protobuf.h"
#include "common/value/yaml.h"
#include "serve/answer/verbs.h"
#include "serve/api/api_protobuf.h"

#define REVIEW_GROUP    "authorization.k8s.io"
#define ACCESS_BODY_MAX ((size_t)64 << 10)

/* The fields of authorization/v1's messages. */
#define REVIEW_SPEC     2
#define SPEC_ATTRIBUTES 1
#define SPEC_PATH       2 /* NonResourceAttributes */
#define SPEC_NAMESPACE  1 /* of a SelfSubjectRulesReview */
#define PATH_PATH       1
#define PATH_VERB       2

/* The member of NonResourceAttributes, then those of ResourceAttributes by their field numbers. */
enum access_attribute {
	ACCESS_PATH,
	ACCESS_NAMESPACE,
	ACCESS_VERB,
	ACCESS_GROUP,
	ACCESS_VERSION,
	ACCESS_RESOURCE,
	ACCESS_SUBRESOURCE,
	ACCESS_NAME,
	ACCESS_MAX
};
static const char *const access_names[ACCESS_MAX] = {
	"path", "namespace", "verb", "group", "version", "resource", "subresource", "name"};

struct access_stage {
	bool rules;                        /* a SelfSubjectRulesReview */
	struct buf attributes[ACCESS_MAX]; /* texts */
};

static void access_stage_free(void *stage)
{
	struct access_stage *s = stage;

	for (size_t i = 0; i < ACCESS_MAX; i++)
		buf_release(&s->attributes[i]);
	free(s);
}

/* ---- the answer ----------------------------------------------------------- */

/* Puts the review with its question, as the API server does. */
static void access_put_review(const struct access_stage *stage, struct buf *out)
{
	const char *separator = "",
		   *kind = stage->rules ? "SelfSubjectRulesReview" : "SelfSubjectAccessReview";

	buf_printf(out,
		"{\"kind\":\"%s\",\"apiVersion\":\"" REVIEW_GROUP
		"/v1\",\"metadata\":{},\"spec\":{",
		kind);
	if (!stage->rules)
		buf_str(out, stage->attributes[ACCESS_PATH].size ? "\"nonResourceAttributes\":{"
								 : "\"resourceAttributes\":{");
	for (size_t i = 0; i < ACCESS_MAX; i++) {
		if (!stage->attributes[i].size)
			continue;
		buf_printf(out, "%s\"%s\":", separator, access_names[i]);
		json_write_string(buf_bytes(&stage->attributes[i]), out);
		separator = ",";
	}
	buf_str(out, stage->rules ? "},\"status\":{" : "}},\"status\":{");
}

static void access_answer(struct answer_request *request, bool allowed, const char *reason)
{
	static const struct exchange_header headers[] = {
		{BYTES_LIT("content-type"), BYTES_LIT("application/json")}};
	const struct access_stage *stage = request->stage;
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	access_put_review(stage, &json);
	if (stage->rules) {
		/* The rules of a client that may not read everything are unknown. */
		buf_printf(&json,
			"\"resourceRules\":[%s],\"nonResourceRules\":[],\"incomplete\":true,"
			"\"evaluationError\":\"kinf-serve decides on each request\"",
			allowed ? "{\"verbs\":[\"get\",\"list\",\"watch\"],\"apiGroups\":[\"*\"],"
				  "\"resources\":[\"*\"]}"
				: "");
	} else {
		buf_printf(&json, "\"allowed\":%s", allowed ? "true" : "false");
		if (*reason) {
			buf_str(&json, ",\"reason\":");
			json_write_string(bytes_str(reason), &json);
		}
	}
	buf_str(&json, "}}\n");
	int r = buf_error(&json);
	if (r < 0) {
		answer_refuse(request, r);
		return;
	}
	exchange_begin(request->x, 201, headers, 1);
	exchange_send(request->x, buf_bytes(&json));
	answer_request_free(&request);
}

static void access_decided(void *context, const struct auth_decision *decision)
{
	struct answer_request *request = context;
	const struct access_stage *stage = request->stage;

	request->pending = NULL;
	int r = answer_undecided(request, decision->answer, decision->reason);
	if (r != 0) {
		answer_refuse(request, r);
		return;
	}
	bool allowed = decision->answer == AUTH_ALLOWED;
	/* Rules are of all three verbs. */
	if (allowed && stage->rules && request->verb != ANSWER_WATCH) {
		request->verb++;
		answer_authorize_again(request, access_decided);
		return;
	}
	access_answer(request, allowed, decision->reason);
}

/* ---- the question --------------------------------------------------------- */

static bool access_read_protobuf(struct bytes text, struct access_stage *stage)
{
	struct bytes type, review, spec, attributes, value;

	if (!protobuf_object(text, &type, &review) || !protobuf_field(review, REVIEW_SPEC, &spec))
		return false;
	if (stage->rules) {
		if (protobuf_field(spec, SPEC_NAMESPACE, &value))
			buf_bytes_put(&stage->attributes[ACCESS_NAMESPACE], value);
		return true;
	}
	bool of_resource = protobuf_field(spec, SPEC_ATTRIBUTES, &attributes);
	for (size_t i = ACCESS_NAMESPACE; of_resource && i < ACCESS_MAX; i++)
		if (protobuf_field(attributes, i, &value))
			buf_bytes_put(&stage->attributes[i], value);
	if (of_resource || !protobuf_field(spec, SPEC_PATH, &attributes))
		return true;
	if (protobuf_field(attributes, PATH_PATH, &value))
		buf_bytes_put(&stage->attributes[ACCESS_PATH], value);
	if (protobuf_field(attributes, PATH_VERB, &value))
		buf_bytes_put(&stage->attributes[ACCESS_VERB], value);
	return true;
}

static bool access_read_json(struct bytes text, struct access_stage *stage)
{
	CLEANUP(yaml_free) struct yaml *review = NULL;

	if (!text.size)
		return false;
	if (yaml_parse(text.data, text.size, "review", &review) < 0) {
		err_forget();
		return false;
	}
	const struct yaml_node *spec = yaml_get(yaml_root(review), "spec"),
			       *attributes =
				       stage->rules ? spec : yaml_get(spec, "resourceAttributes");
	if (!attributes)
		attributes = yaml_get(spec, "nonResourceAttributes");
	for (size_t i = 0; i < ACCESS_MAX; i++) {
		const char *value = yaml_text(attributes, access_names[i]);

		buf_str(&stage->attributes[i], value ? value : "");
	}
	return spec;
}

/* Reads the review in the body. Returns: 0; the HTTP status of a refusal; -ENOMEM. */
static int access_read(struct answer_request *request, struct access_stage *stage)
{
	struct bytes type = exchange_header(request->x, "content-type"),
		     text = buf_bytes(&request->body);
	bool is_protobuf = bytes_starts(type, BYTES_LIT(API_PROTOBUF_TYPE));
	int r = 0;

	if (type.size && !is_protobuf && !bytes_starts(type, BYTES_LIT("application/json")))
		return api_status_set(&request->status, 415, "UnsupportedMediaType",
			"the body of the request was in an unknown format - accepted media types "
			"include: application/json, " API_PROTOBUF_TYPE);
	if (!(is_protobuf ? access_read_protobuf : access_read_json)(text, stage))
		return api_status_set(&request->status, 400, "BadRequest",
			"the object provided is no %s",
			stage->rules ? "SelfSubjectRulesReview" : "SelfSubjectAccessReview");
	if (stage->rules && !stage->attributes[ACCESS_NAMESPACE].size)
		return api_status_set(
			&request->status, 400, "BadRequest", "no namespace on request");
	for (size_t i = 0; r == 0 && i < ACCESS_MAX; i++)
		r = buf_error(&stage->attributes[i]);
	return r;
}

static void access_go(struct answer_request *request)
{
	struct access_stage *stage = request->stage;
	struct api_path *path = &request->path;
	int r = access_read(request, stage);

	if (r != 0) {
		answer_refuse(request, r);
		return;
	}
	const char *text[ACCESS_MAX];
	for (size_t i = 0; i < ACCESS_MAX; i++)
		text[i] = buf_cstr(&stage->attributes[i]);
	if (stage->rules) {
		text[ACCESS_VERB] = "get";
		text[ACCESS_GROUP] = text[ACCESS_VERSION] = text[ACCESS_RESOURCE] = "*";
		text[ACCESS_SUBRESOURCE] = text[ACCESS_NAME] = "";
	}
	bool reads = *text[ACCESS_RESOURCE] && !*text[ACCESS_SUBRESOURCE] && !*text[ACCESS_PATH];
	for (int i = ANSWER_GET; reads && i <= ANSWER_WATCH; i++) {
		request->verb = (enum answer_verb)i;
		if (strcmp(text[ACCESS_VERB], answer_verb_name(request)) != 0)
			continue;
		path->group = text[ACCESS_GROUP];
		path->version = text[ACCESS_VERSION];
		path->resource = text[ACCESS_RESOURCE];
		path->namespace_ = text[ACCESS_NAMESPACE];
		path->name = text[ACCESS_NAME];
		answer_authorize_again(request, access_decided);
		return;
	}
	access_answer(request, false, "kinf-serve lets clients get, list and watch resources");
}

bool answer_is_access(const struct answer_request *request)
{
	const struct api_path *path = &request->path;

	return path->kind == API_PATH_RESOURCE && strcmp(path->group, REVIEW_GROUP) == 0 &&
	       strcmp(path->version, "v1") == 0 &&
	       (strcmp(path->resource, "selfsubjectaccessreviews") == 0 ||
		       strcmp(path->resource, "selfsubjectrulesreviews") == 0) &&
	       !*path->name && bytes_equal(request->x->method, BYTES_LIT("POST"));
}

void answer_access(struct answer_request *request)
{
	struct access_stage *stage = calloc(1, sizeof(*stage));

	if (!stage) {
		answer_refuse(request, err_set(-ENOMEM, "a review"));
		return;
	}
	stage->rules = strcmp(request->path.resource, "selfsubjectrulesreviews") == 0;
	answer_set_stage(request, stage, access_stage_free);
	request->resume = access_go;
	answer_take_body(request, ACCESS_BODY_MAX);
}
