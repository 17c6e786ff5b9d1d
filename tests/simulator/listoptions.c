/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/listoptions.h"

#include <strings.h>

#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"
#include "tests/simulator/status.h"

/* As kube-apiserver: only an absent parameter, 0 and false are false; an empty value is true. */
static bool list_options_read_bool(const char *text)
{
	return text && strcmp(text, "0") && strcasecmp(text, "false");
}

static const char *list_options_or_empty(const char *text)
{
	return text ? text : "";
}

static enum rv_match list_options_read_match(const char *text)
{
	if (!text || !*text)
		return RV_MATCH_UNSET;
	if (!strcmp(text, "Exact"))
		return RV_MATCH_EXACT;
	return strcmp(text, "NotOlderThan") ? RV_MATCH_OTHER : RV_MATCH_NOT_OLDER;
}

/* Parses TEXT as a decimal number of at most MAX. */
static bool list_options_read_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (const char *p = text; *p; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (*p < '0' || *p > '9' || number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return *text != '\0';
}

static bool list_options_read_int(const struct http_request *request, const char *name,
	int64_t *ret_number, struct http_answer *answer)
{
	const char *text = http_query(request, name);
	uint64_t number = 0;

	if (!text)
		return true;
	if (!list_options_read_number(text + (*text == '-'), INT64_MAX, &number)) {
		status_bad_request(
			answer, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
		return false;
	}
	*ret_number = *text == '-' ? 0 : (int64_t)number; /* a negative number means unset */
	return true;
}

/* ---- validation --------------------------------------------------------- */

struct list_violations {
	struct buf messages, causes;
	size_t n;
};

static void list_options_refuse(
	struct list_violations *list, const char *reason, const char *field, const char *text)
{
	const char *comma = list->n++ ? "," : "";

	buf_printf(&list->messages, "%s%s%s: %s", comma, *comma ? " " : "", field, text);
	buf_printf(&list->causes, "%s{\"reason\":\"%s\",\"message\":", comma, reason);
	jsontext_put_string(&list->causes, bytes_str(text));
	buf_printf(&list->causes, ",\"field\":\"%s\"}", field);
}

static void list_options_forbid(struct list_violations *list, const char *field, const char *text)
{
	list_options_refuse(list, "FieldValueForbidden", field, text);
}

static void list_options_refuse_match(
	struct list_violations *list, const char *given, const char *supported)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	buf_printf(&text, "Unsupported value: \"%s\": supported values: %s", given, supported);
	list_options_refuse(
		list, "FieldValueNotSupported", "resourceVersionMatch", buf_cstr(&text));
}

static void list_options_check_list(
	struct list_violations *list, const struct list_options *options, const char *match_text)
{
	static const char field[] = "resourceVersionMatch";

	if (options->match != RV_MATCH_UNSET) {
		if (!*options->rv_text)
			list_options_forbid(list, field,
				"Forbidden: resourceVersionMatch is forbidden unless "
				"resourceVersion is provided");
		if (*options->token)
			list_options_forbid(list, field,
				"Forbidden: resourceVersionMatch is forbidden when continue is "
				"provided");
		if (options->match == RV_MATCH_OTHER)
			list_options_refuse_match(
				list, match_text, "\"Exact\", \"NotOlderThan\", \"\"");
		if (options->match == RV_MATCH_EXACT && !strcmp(options->rv_text, "0"))
			list_options_forbid(list, field,
				"Forbidden: resourceVersionMatch \"exact\" is forbidden for "
				"resourceVersion \"0\"");
	}
	if (options->initial_events_set)
		list_options_forbid(list, "sendInitialEvents",
			"Forbidden: sendInitialEvents is forbidden for list");
}

static void list_options_check_watch(struct list_violations *list,
	const struct list_options *options, const char *match_text, bool watch_list)
{
	static const char field[] = "resourceVersionMatch";
	bool given = options->match != RV_MATCH_UNSET;

	if (options->initial_events_set && options->match != RV_MATCH_NOT_OLDER)
		list_options_forbid(list, field,
			"Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
			"NotOlderThan");
	if (options->initial_events_set && !watch_list)
		list_options_forbid(list, "sendInitialEvents",
			"Forbidden: sendInitialEvents is forbidden for watch unless the WatchList "
			"feature gate is enabled");
	if (given && !options->initial_events_set)
		list_options_forbid(list, field,
			"Forbidden: resourceVersionMatch is forbidden for watch unless "
			"sendInitialEvents is provided");
	if (given && options->match != RV_MATCH_NOT_OLDER)
		list_options_refuse_match(list, match_text, "\"NotOlderThan\"");
	if (given && *options->token)
		list_options_forbid(list, field,
			"Forbidden: resourceVersionMatch is forbidden when continue is provided");
}

static bool list_options_validate(const struct list_options *options, const char *match_text,
	bool watch_list, struct http_answer *answer)
{
	CLEANUP(buf_release) struct buf details = BUF_INIT;
	struct list_violations list = {.messages = BUF_INIT, .causes = BUF_INIT};

	if (options->watch)
		list_options_check_watch(&list, options, match_text, watch_list);
	else
		list_options_check_list(&list, options, match_text);
	if (list.n) {
		buf_printf(&details,
			"{\"group\":\"meta.k8s.io\",\"kind\":\"ListOptions\",\"causes\":[%s]}",
			buf_cstr(&list.causes));

		struct status status = {
			.code = 422, .reason = "Invalid", .details = buf_cstr(&details)};

		status_answer(answer, &status, "ListOptions.meta.k8s.io \"\" is invalid: %s%s%s",
			list.n > 1 ? "[" : "", buf_cstr(&list.messages), list.n > 1 ? "]" : "");
	}
	buf_release(&list.messages);
	buf_release(&list.causes);
	return list.n == 0;
}

/* ---- decoding ----------------------------------------------------------- */

static bool list_options_read_rv(struct list_options *options, struct http_answer *answer)
{
	static const struct status watch_status = {.code = 500, .reason = ""};
	static const char text[] = "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: "
				   "parsing \"%s\": invalid syntax";

	if (!*options->rv_text ||
		list_options_read_number(options->rv_text, UINT64_MAX, &options->rv))
		return true;
	if (options->watch) {
		status_answer(answer, &watch_status, text, options->rv_text, options->rv_text);
		return false;
	}
	CLEANUP(buf_release) struct buf message = BUF_INIT;

	buf_printf(&message, text, options->rv_text, options->rv_text);
	status_bad_request(answer, "invalid resource version: %s", buf_cstr(&message));
	return false;
}

bool list_options_watch(const struct http_request *request)
{
	return list_options_read_bool(http_query(request, "watch"));
}

bool list_options_read(const struct http_request *request, bool watch_list,
	struct list_options *ret_options, struct http_answer *answer)
{
	const char *match = list_options_or_empty(http_query(request, "resourceVersionMatch"));
	const char *initial = http_query(request, "sendInitialEvents");
	struct list_options options = {
		.labels = list_options_or_empty(http_query(request, "labelSelector")),
		.fields = list_options_or_empty(http_query(request, "fieldSelector")),
		.rv_text = list_options_or_empty(http_query(request, "resourceVersion")),
		.token = list_options_or_empty(http_query(request, "continue")),
		.match = list_options_read_match(match),
		.watch = list_options_watch(request),
		.bookmarks = list_options_read_bool(http_query(request, "allowWatchBookmarks")),
		.initial_events = list_options_read_bool(initial),
		.initial_events_set = initial != NULL,
	};

	if (!list_options_read_int(request, "limit", &options.limit, answer) ||
		!list_options_read_int(
			request, "timeoutSeconds", &options.timeout_seconds, answer) ||
		!list_options_validate(&options, match, watch_list, answer) ||
		!list_options_read_rv(&options, answer))
		return false;
	if (options.watch && !options.initial_events_set && options.rv == 0)
		options.initial_events = true; /* the legacy "start with everything" */
	*ret_options = options;
	return true;
}
