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

static int api_options_selectors(
	struct api_options *options, const char *const values[KEYS], struct api_status *status)
{
	const char *labels = values[KEY_LABELS], *fields = values[KEY_FIELDS];
	int r = labels && *labels ? selector_parse_labels(labels, &options->labels) : 0;

	if (r == 0 && fields && *fields)
		r = selector_parse_fields(fields, &options->fields);
	if (r == ERR_SYNTAX)
		return api_status_set(status, 400, "BadRequest", "%s", err_text(r));
	if (r == 0 && options->fields && selector_count(options->fields) == 0)
		selector_free(&options->fields);
	return r;
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
	return r ? r : api_options_selectors(options, values, status);
}

/* ---- validation --------------------------------------------------------- */

struct api_options_errors {
	struct api_status *status;
	struct buf text; /* the errors, joined by ", " */
	size_t n;
};

/* Adds an error of FIELD. FORBIDDEN: the field may not be there; else its value is not
 * supported. */
static void api_options_error(
	struct api_options_errors *errors, const char *field, bool forbidden, const char *detail)
{
	char message[160];

	(void)snprintf(message, sizeof(message), "%s%s", forbidden ? "Forbidden: " : "", detail);
	for (size_t i = 0; i < errors->status->n_causes; i++)
		if (strcmp(errors->status->causes[i].message, message) == 0)
			return;
	buf_printf(&errors->text, "%s%s: %s", errors->n++ ? ", " : "", field, message);
	api_status_cause(errors->status,
		forbidden ? "FieldValueForbidden" : "FieldValueNotSupported", field, "%s", message);
}

static void api_options_check_list(
	const struct api_options *options, struct api_options_errors *errors)
{
	static const char field[] = "resourceVersionMatch";
	char text[160];

	if (options->match != API_MATCH_ABSENT) {
		if (!*options->rv)
			api_options_error(errors, field, true,
				"resourceVersionMatch is forbidden unless resourceVersion is "
				"provided");
		if (*options->token)
			api_options_error(errors, field, true,
				"resourceVersionMatch is forbidden when continue is provided");
		(void)snprintf(text, sizeof(text),
			"Unsupported value: \"%.60s\": supported values: \"Exact\", "
			"\"NotOlderThan\", \"\"",
			options->match_text);
		if (options->match == API_MATCH_OTHER)
			api_options_error(errors, field, false, text);
		if (options->match == API_MATCH_EXACT && strcmp(options->rv, "0") == 0)
			api_options_error(errors, field, true,
				"resourceVersionMatch \"exact\" is forbidden for resourceVersion "
				"\"0\"");
	}
	if (options->send_initial_given)
		api_options_error(errors, "sendInitialEvents", true,
			"sendInitialEvents is forbidden for list");
}

static void api_options_check_watch(
	const struct api_options *options, struct api_options_errors *errors)
{
	static const char field[] = "resourceVersionMatch";
	char text[160];

	if (options->send_initial_given && options->match != API_MATCH_NOT_OLDER)
		api_options_error(errors, field, true,
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (options->match == API_MATCH_ABSENT)
		return;
	if (!options->send_initial_given)
		api_options_error(errors, field, true,
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
			"provided");
	(void)snprintf(text, sizeof(text),
		"Unsupported value: \"%.60s\": supported values: \"NotOlderThan\"",
		options->match_text);
	if (options->match != API_MATCH_NOT_OLDER)
		api_options_error(errors, field, false, text);
	if (*options->token)
		api_options_error(errors, field, true,
			"resourceVersionMatch is forbidden when continue is provided");
}

int api_options_validate(struct api_options *options, bool is_watch, struct api_status *status)
{
	struct api_options_errors errors = {.status = status};

	api_status_set(status, 0, "Invalid", "%s", "");
	/* A watch by its path alone is checked as a list, and gets no defaults. */
	if (options->watch) {
		if (!options->send_initial_given && options->match == API_MATCH_ABSENT &&
			api_options_any_rv(options)) {
			options->send_initial = options->send_initial_given = true;
			options->match = API_MATCH_NOT_OLDER;
		}
		api_options_check_watch(options, &errors);
	} else {
		api_options_check_list(options, &errors);
		if (is_watch && errors.n == 0)
			options->send_initial = api_options_any_rv(options);
	}
	/* Another zero is no version to the decoder of watches, and gets no defaults either. */
	if (is_watch && options->rv[0] == '0' && !options->rv[strspn(options->rv, "0")] &&
		options->rv[1]) {
		options->rv = "0";
		options->send_initial |= !options->send_initial_given;
	}
	if (errors.n) {
		status->code = 422;
		api_status_details(status, "meta.k8s.io", "ListOptions", "");
		buf_printf(&status->message, "ListOptions.meta.k8s.io \"\" is invalid: %s%s%s",
			errors.n > 1 ? "[" : "", buf_cstr(&errors.text), errors.n > 1 ? "]" : "");
	}
	buf_release(&errors.text);
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
