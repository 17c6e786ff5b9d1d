/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/listoptions.h"

#include <strings.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
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
	return strcmp(text, "NotOlderThan") ? RV_MATCH_UNSET : RV_MATCH_NOT_OLDER;
}

static bool list_options_read_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	int r = decimal_parse(bytes_str(text), max, ret_number);

	err_ignore(r, "the answer says it");
	return r == 0;
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

/* Returns why kube-apiserver would refuse the options; NULL: it would not. Of its rules these
 * matter to a client that asks for no nonsense. */
static const char *list_options_fault(const struct list_options *options, bool watch_list)
{
	bool not_older = options->match == RV_MATCH_NOT_OLDER;

	if (!options->watch && options->initial_events_set)
		return "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list";
	if (!options->watch && options->match != RV_MATCH_UNSET && !*options->rv_text)
		return "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
		       "resourceVersion is provided";
	if (options->watch && options->initial_events_set && !watch_list)
		return "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch "
		       "unless the WatchList feature gate is enabled";
	if (options->watch && options->initial_events_set && !not_older)
		return "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
		       "resourceVersionMatch to NotOlderThan";
	if (options->watch && !options->initial_events_set && not_older)
		return "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for "
		       "watch unless sendInitialEvents is provided";
	return NULL;
}

static bool list_options_validate(
	const struct list_options *options, bool watch_list, struct http_answer *answer)
{
	static const struct status status = {.code = 422,
		.reason = "Invalid",
		.details = "{\"group\":\"meta.k8s.io\",\"kind\":\"ListOptions\"}"};
	const char *fault = list_options_fault(options, watch_list);

	if (fault)
		status_answer(
			answer, &status, "ListOptions.meta.k8s.io \"\" is invalid: %s", fault);
	return !fault;
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
	const char *initial = http_query(request, "sendInitialEvents");
	struct list_options options = {
		.labels = list_options_or_empty(http_query(request, "labelSelector")),
		.fields = list_options_or_empty(http_query(request, "fieldSelector")),
		.rv_text = list_options_or_empty(http_query(request, "resourceVersion")),
		.token = list_options_or_empty(http_query(request, "continue")),
		.match = list_options_read_match(http_query(request, "resourceVersionMatch")),
		.watch = list_options_watch(request),
		.bookmarks = list_options_read_bool(http_query(request, "allowWatchBookmarks")),
		.initial_events = list_options_read_bool(initial),
		.initial_events_set = initial != NULL,
	};

	if (!list_options_read_int(request, "limit", &options.limit, answer) ||
		!list_options_read_int(
			request, "timeoutSeconds", &options.timeout_seconds, answer) ||
		!list_options_validate(&options, watch_list, answer) ||
		!list_options_read_rv(&options, answer))
		return false;
	if (options.watch && !options.initial_events_set && options.rv == 0)
		options.initial_events = true; /* the legacy "start with everything" */
	*ret_options = options;
	return true;
}
