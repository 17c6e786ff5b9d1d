/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_token.h"

#include <errno.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/text/decimal.h"
#include "common/text/utf8.h"
#include "common/value/json.h"

/* Reads a token's one JSON object: members in any order, unknown ones ignored. */
struct token_text {
	const char *p, *end;
	const char *error; /* in the API server's words; NULL: none yet */
	char error_room[80];
};

static void token_fail(struct token_text *t, const char *looking_for)
{
	if (t->error)
		return;
	if (t->p >= t->end) {
		t->error = "unexpected end of JSON input";
		return;
	}
	(void)snprintf(t->error_room, sizeof(t->error_room), "invalid character '%c' %s",
		*t->p >= 0x20 && *t->p < 0x7f ? *t->p : '?', looking_for);
	t->error = t->error_room;
}

static void token_blanks(struct token_text *t)
{
	while (t->p < t->end && strchr(" \t\r\n", *t->p) && *t->p)
		t->p++;
}

static bool token_take(struct token_text *t, char c, const char *looking_for)
{
	token_blanks(t);
	if (t->p < t->end && *t->p == c) {
		t->p++;
		return true;
	}
	token_fail(t, looking_for);
	return false;
}

/* Takes a string into OUT. Keys of objects are ASCII, so surrogate pairs need no care. */
static bool token_string(struct token_text *t, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	uint8_t bytes[4];

	if (!token_take(t, '"', "looking for beginning of object key string"))
		return false;
	while (t->p < t->end && *t->p != '"') {
		if (*t->p != '\\') {
			buf_byte(out, (uint8_t)*t->p++);
			continue;
		}
		const char *escape = t->end - t->p > 1 && t->p[1] ? strchr(from, t->p[1]) : NULL;

		if (escape) {
			buf_byte(out, (uint8_t)to[escape - from]);
			t->p += 2;
		} else if (t->end - t->p > 5 && t->p[1] == 'u') {
			uint32_t c = 0;
			int digit = 0;

			for (int i = 2; i < 6 && digit >= 0; i++) {
				digit = hex_digit(t->p[i]);
				c = c << 4 | (uint32_t)(digit & 15);
			}
			if (digit < 0)
				break;
			buf_put(out, bytes, utf8_put(c, bytes));
			t->p += 6;
		} else {
			break;
		}
	}
	return token_take(t, '"', "in string literal");
}

static bool token_number(struct token_text *t, int64_t *ret_number)
{
	bool negative = t->p < t->end && *t->p == '-';
	const char *digits = t->p + negative;
	size_t size = 0;
	uint64_t number;

	while (digits + size < t->end && digits[size] >= '0' && digits[size] <= '9')
		size++;
	int r = decimal_parse(BYTES(digits, size), INT64_MAX, &number);
	err_ignore(r, "the client gets the API server's words");
	if (r < 0) {
		token_fail(t, "looking for beginning of value");
		return false;
	}
	*ret_number = negative ? -(int64_t)number : (int64_t)number;
	t->p = digits + size;
	return true;
}

static bool token_members(struct token_text *t, struct buf *version, int64_t *rv, struct buf *start)
{
	CLEANUP(buf_release) struct buf key = BUF_INIT, other = BUF_INIT;
	int64_t number;

	if (!token_take(t, '{', "looking for beginning of value"))
		return false;
	for (token_blanks(t); t->p < t->end && *t->p != '}';) {
		buf_reset(&key);
		if (!token_string(t, &key) || !token_take(t, ':', "after object key"))
			return false;
		token_blanks(t);
		struct bytes name = buf_bytes(&key);
		struct buf *text = bytes_equal(name, BYTES_LIT("v"))       ? version
				   : bytes_equal(name, BYTES_LIT("start")) ? start
									   : &other;
		bool is_rv = bytes_equal(name, BYTES_LIT("rv"));

		buf_reset(text);
		bool taken = t->p < t->end && *t->p == '"' && !is_rv
				     ? token_string(t, text)
				     : token_number(t, is_rv ? rv : &number);
		if (!taken)
			return false;
		token_blanks(t);
		if (t->p < t->end && *t->p == ',')
			t->p++;
		else
			break;
		token_blanks(t);
	}
	if (!token_take(t, '}', "after object key:value pair"))
		return false;
	token_blanks(t);
	if (t->p == t->end)
		return true;
	token_fail(t, "after top-level value");
	return false;
}

/* Returns whether KEY, with one slash before it, is as Go's path.Clean leaves it. */
static bool token_is_clean(struct bytes key)
{
	const char *p = key.data, *end = p + key.size;

	if (p < end && *p == '/')
		p++;
	if (p == end) /* the slash alone: from the first key on */
		return true;
	for (;;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t size = (size_t)((slash ? slash : end) - p);

		if (size == 0 || (size == 1 && p[0] == '.') ||
			(size == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (!slash)
			return true;
		p = slash + 1;
	}
}

int api_token_parse(const char *text, struct api_token *ret_token, struct api_status *status)
{
	static const char prefix[] = "invalid continue token: continue key is not valid";
	CLEANUP(buf_release) struct buf json = BUF_INIT, version = BUF_INIT;
	struct buf *from = &ret_token->from;

	*ret_token = (struct api_token){0};
	int r = base64url_get(text, &json);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		size_t at = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789-_");
		at -= !text[at]; /* it ends in the middle */
		return api_status_set(status, 400, "BadRequest",
			"%s: illegal base64 data at input byte %zu", prefix, at);
	}
	struct token_text t = {
		.p = (const char *)json.data, .end = (const char *)json.data + json.size};
	if (!token_members(&t, &version, &ret_token->rv, from))
		return api_status_set(status, 400, "BadRequest", "%s: %s", prefix,
			t.error ? t.error : "invalid JSON");
	r = buf_error(from);
	if (r == 0)
		r = buf_error(&version);
	if (r < 0)
		return r;
	if (!bytes_equal(buf_bytes(&version), BYTES_LIT("meta.k8s.io/v1")))
		return api_status_set(status, 400, "BadRequest",
			"%s: server does not recognize this encoded version %s", prefix,
			buf_cstr(&version));
	if (ret_token->rv == 0)
		return api_status_set(status, 400, "BadRequest",
			"%s: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
			prefix);
	if (from->size == 0)
		return api_status_set(status, 400, "BadRequest",
			"%s: encoded start key empty (version meta.k8s.io/v1)", prefix);
	if (!token_is_clean(buf_bytes(from))) {
		api_status_set(status, 400, "BadRequest", "%s: ", prefix);
		buf_bytes_put(&status->message, buf_bytes(from)); /* with its NUL */
		return 400;
	}
	if (from->data[0] == '/')
		buf_consume(from, 1);
	return 0;
}

void api_token_release(struct api_token *token)
{
	buf_release(&token->from);
}

int api_token_write(int64_t rv, struct bytes start, struct buf *out)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	buf_printf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%lld,\"start\":", (long long)rv);
	json_write_string(start, &json);
	buf_byte(&json, '}');
	int r = buf_error(&json);
	if (r < 0)
		return r;
	base64url_put(buf_bytes(&json), out);
	return buf_error(out);
}
