/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_options.h"

#include <stdio.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "serve/api/api_path.h"

enum api_options_key {
	KEY_LABELS,
	KEY_FIELDS,
	KEY_WATCH,
	KEY_BOOKMARKS,
	KEY_SEND_INITIAL,
	KEY_RV,
	KEY_MATCH,
	KEY_LIMIT,
	KEY_TIMEOUT,
	KEY_CONTINUE,
	KEY_INCLUDE,
	KEY_PRETTY,
	KEY_SHARD,
	KEYS
};

static const char *const api_options_keys[KEYS] = {
	[KEY_LABELS] = "labelSelector",
	[KEY_FIELDS] = "fieldSelector",
	[KEY_WATCH] = "watch",
	[KEY_BOOKMARKS] = "allowWatchBookmarks",
	[KEY_SEND_INITIAL] = "sendInitialEvents",
	[KEY_RV] = "resourceVersion",
	[KEY_MATCH] = "resourceVersionMatch",
	[KEY_LIMIT] = "limit",
	[KEY_TIMEOUT] = "timeoutSeconds",
	[KEY_CONTINUE] = "continue",
	[KEY_INCLUDE] = "includeObject",
	[KEY_PRETTY] = "pretty",
	[KEY_SHARD] = "shardSelector",
};

void api_options_release(struct api_options *options)
{
	selector_free(&options->labels);
	selector_free(&options->fields);
	buf_release(&options->text);
}

/* Takes one KEY=VALUE. A badly encoded pair is left out, as by Go's net/url. A value with a NUL is
 * refused: its beginning would select too much. */
static int api_options_pair(
	struct bytes pair, struct buf *text, size_t offsets[KEYS], struct api_status *status)
{
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	const char *equal = memchr(pair.data, '=', pair.size);
	size_t key_size = equal ? (size_t)(equal - (const char *)pair.data) : pair.size;
	size_t before = text->size;
	struct bytes value = equal ? BYTES(equal + 1, pair.size - key_size - 1) : BYTES_NONE;

	if (memchr(pair.data, ';', pair.size) ||
		!api_path_unescape(BYTES(pair.data, key_size), true, &key) ||
		!api_path_unescape(value, true, text)) {
		buf_truncate(text, before);
		return 0;
	}
	buf_byte(text, '\0');
	for (size_t i = 0; i < KEYS; i++)
		if (bytes_equal(buf_bytes(&key), bytes_str(api_options_keys[i])) &&
			offsets[i] == SIZE_MAX) {
			offsets[i] = before;
			if (buf_error(text) == 0 &&
				memchr(text->data + before, '\0', text->size - before - 1))
				return api_status_set(status, 400, "BadRequest",
					"invalid character U+0000 in %s", api_options_keys[i]);
			return buf_error(text);
		}
	buf_truncate(text, before);
	return buf_error(&key);
}

static int api_options_split(struct bytes query, struct buf *text, const char *ret_values[KEYS],
	struct api_status *status)
{
	const char *p = query.data, *end = p + query.size;
	size_t offsets[KEYS];

	for (size_t i = 0; i < KEYS; i++)
		offsets[i] = SIZE_MAX;
	while (p < end) {
		const char *stop = memchr(p, '&', (size_t)(end - p));
		int r;

		stop = stop ? stop : end;
		if (stop > p && (r = api_options_pair(
					 BYTES(p, (size_t)(stop - p)), text, offsets, status)) != 0)
			return r;
		p = stop + 1;
	}
	buf_fit(text);
	for (size_t i = 0; i < KEYS; i++)
		ret_values[i] =
			offsets[i] == SIZE_MAX ? NULL : (const char *)text->data + offsets[i];
	return 0;
}

/* Anything but an absent value, 0 and false is true, also the empty text. */
static bool api_options_bool(const char *value)
{
	return value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0;
}

/* As Go's strconv.ParseBool, but errors are false. */
static bool api_options_is_true(const char *value)
{
	static const char *const values[] = {"1", "t", "T", "true", "TRUE", "True"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		found |= strcmp(value, values[i]) == 0;
	return found;
}

/* As Go's strconv.ParseInt with base 10 and 64 bits. */
static int api_options_int(const char *value, int64_t *ret_number, struct api_status *status)
{
	bool negative = *value == '-';
	const char *digits = value + (negative || *value == '+');
	CLEANUP(buf_release) struct buf quoted = BUF_INIT;
	uint64_t number;

	*ret_number = 0;
	bool valid = *digits != '\0';
	for (const char *p = digits; *p; p++)
		valid = valid && *p >= '0' && *p <= '9';
	int r = decimal_parse(bytes_str(digits), (uint64_t)INT64_MAX + negative, &number);
	err_ignore(r, "the client gets the API server's words");
	if (r < 0) {
		api_status_quote(&quoted, value);
		return api_status_set(status, 400, "BadRequest", "strconv.ParseInt: parsing %s: %s",
			buf_cstr(&quoted), valid ? "value out of range" : "invalid syntax");
	}
	*ret_number = (int64_t)(negative ? 0 - number : number);
	return 0;
}

int api_options_parse(
	struct bytes query, bool lists, struct api_options *ret_options, struct api_status *status)
{
	struct api_options *options = ret_options;
	const char *values[KEYS];

	*options =
		(struct api_options){.rv = "", .token = "", .match_text = "", .include_text = ""};
	int r = api_options_split(query, &options->text, values, status);
	if (r != 0)
		return r;
	options->rv = values[KEY_RV] ? values[KEY_RV] : "";
	options->token = values[KEY_CONTINUE] ? values[KEY_CONTINUE] : "";
	options->match_text = values[KEY_MATCH] ? values[KEY_MATCH] : "";
	options->include_text = values[KEY_INCLUDE] ? values[KEY_INCLUDE] : "";
	options->match = !*options->match_text                              ? API_MATCH_ABSENT
			 : strcmp(options->match_text, "Exact") == 0        ? API_MATCH_EXACT
			 : strcmp(options->match_text, "NotOlderThan") == 0 ? API_MATCH_NOT_OLDER
									    : API_MATCH_OTHER;
	options->watch = api_options_bool(values[KEY_WATCH]);
	options->bookmarks = api_options_bool(values[KEY_BOOKMARKS]);
	options->send_initial_given = values[KEY_SEND_INITIAL] != NULL;
	options->send_initial = api_options_bool(values[KEY_SEND_INITIAL]);
	options->pretty_given = values[KEY_PRETTY] && *values[KEY_PRETTY];
	options->pretty = options->pretty_given && api_options_is_true(values[KEY_PRETTY]);
	if (!lists)
		return 0;
	options->sharded = values[KEY_SHARD] && *values[KEY_SHARD];
	if (values[KEY_TIMEOUT])
		r = api_options_int(values[KEY_TIMEOUT], &options->timeout_seconds, status);
	if (r == 0 && values[KEY_LIMIT])
		r = api_options_int(values[KEY_LIMIT], &options->limit, status);
	if (options->limit < 0)
		options->limit = 0;
	if (r == 0 && values[KEY_LABELS] && *values[KEY_LABELS])
		r = selector_parse_labels(values[KEY_LABELS], &options->labels);
	if (r == 0 && values[KEY_FIELDS] && *values[KEY_FIELDS])
		r = selector_parse_fields(values[KEY_FIELDS], &options->fields);
	if (r == ERR_SYNTAX)
		return api_status_set(status, 400, "BadRequest", "%s", err_text(r));
	if (r == 0 && options->fields && selector_count(options->fields) == 0)
		selector_free(&options->fields);
	return r;
}

/* ---- validation --------------------------------------------------------- */

#define MATCH "resourceVersionMatch"

/* A rule of the API server. Its field may not be there, or VALUE is not one of SUPPORTED. */
struct api_options_rule {
	bool broken;
	const char *field, *forbidden, *supported;
};

/* Writes the errors of the N broken RULES into STATUS. */
static void api_options_check(const struct api_options *options,
	const struct api_options_rule *rules, size_t n, struct api_status *status)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	char message[160];
	size_t n_broken = 0;

	for (size_t i = 0; i < n; i++) {
		const struct api_options_rule *rule = &rules[i];

		if (!rule->broken)
			continue;
		if (rule->forbidden)
			(void)snprintf(message, sizeof(message), "Forbidden: %s", rule->forbidden);
		else
			(void)snprintf(message, sizeof(message),
				"Unsupported value: \"%.60s\": supported values: %s",
				options->match_text, rule->supported);
		buf_printf(&text, "%s%s: %s", n_broken++ ? ", " : "", rule->field, message);
		api_status_cause(status,
			rule->forbidden ? "FieldValueForbidden" : "FieldValueNotSupported",
			rule->field, "%s", message);
	}
	if (!n_broken)
		return;
	status->code = 422;
	api_status_details(status, "meta.k8s.io", "ListOptions", "");
	buf_printf(&status->message, "ListOptions.meta.k8s.io \"\" is invalid: %s%s%s",
		n_broken > 1 ? "[" : "", buf_cstr(&text), n_broken > 1 ? "]" : "");
}

static void api_options_check_list(const struct api_options *options, struct api_status *status)
{
	bool given = options->match != API_MATCH_ABSENT;
	const struct api_options_rule rules[] = {
		{given && !*options->rv, MATCH,
			MATCH " is forbidden unless resourceVersion is provided", NULL},
		{given && *options->token, MATCH, MATCH " is forbidden when continue is provided",
			NULL},
		{options->match == API_MATCH_OTHER, MATCH, NULL,
			"\"Exact\", \"NotOlderThan\", \"\""},
		{options->match == API_MATCH_EXACT && strcmp(options->rv, "0") == 0, MATCH,
			MATCH " \"exact\" is forbidden for resourceVersion \"0\"", NULL},
		{options->send_initial_given, "sendInitialEvents",
			"sendInitialEvents is forbidden for list", NULL},
	};

	api_options_check(options, rules, ARRAY_SIZE(rules), status);
}

static void api_options_check_watch(const struct api_options *options, struct api_status *status)
{
	bool given = options->match != API_MATCH_ABSENT;
	bool not_older = options->match == API_MATCH_NOT_OLDER;
	const struct api_options_rule rules[] = {
		{options->send_initial_given && !not_older, MATCH,
			"sendInitialEvents requires setting " MATCH " to NotOlderThan", NULL},
		{given && !options->send_initial_given, MATCH,
			MATCH " is forbidden for watch unless sendInitialEvents is provided", NULL},
		{given && !not_older, MATCH, NULL, "\"NotOlderThan\""},
		{given && *options->token, MATCH, MATCH " is forbidden when continue is provided",
			NULL},
	};

	api_options_check(options, rules, ARRAY_SIZE(rules), status);
}

int api_options_validate(struct api_options *options, bool is_watch, struct api_status *status)
{
	api_status_set(status, 0, "Invalid", "%s", "");
	/* A watch by its path alone is checked as a list, and gets no defaults. */
	if (options->watch) {
		if (!options->send_initial_given && options->match == API_MATCH_ABSENT &&
			api_options_any_rv(options)) {
			options->send_initial = options->send_initial_given = true;
			options->match = API_MATCH_NOT_OLDER;
		}
		api_options_check_watch(options, status);
	} else {
		api_options_check_list(options, status);
		if (is_watch && !status->code)
			options->send_initial = api_options_any_rv(options);
	}
	/* Another zero is no version to the decoder of watches, and gets no defaults either. */
	if (is_watch && options->rv[0] == '0' && !options->rv[strspn(options->rv, "0")] &&
		options->rv[1]) {
		options->rv = "0";
		options->send_initial |= !options->send_initial_given;
	}
	return status->code;
}

int api_options_include(struct api_options *options, struct api_status *status)
{
	const char *text = options->include_text;

	if (!*text || strcmp(text, "Metadata") == 0)
		options->include = API_INCLUDE_METADATA;
	else if (strcmp(text, "Object") == 0)
		options->include = API_INCLUDE_OBJECT;
	else if (strcmp(text, "None") == 0)
		options->include = API_INCLUDE_NONE;
	else
		return api_status_set(status, 400, "BadRequest",
			"Unable to convert to Table as requested: includeObject: Invalid value: "
			"\"%s\": must be 'Metadata', 'Object', 'None', or empty",
			text);
	return 0;
}
