/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_token.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/text/decimal.h"
#include "common/value/json.h"
#include "common/value/yaml.h"

int api_token_parse(const char *text, struct api_token *ret_token, struct api_status *status)
{
	static const struct bytes end = BYTES_LIT("\\u0000\"}");
	static const char refused[] = "invalid continue token: continue key is not valid";
	CLEANUP(buf_release) struct buf json = BUF_INIT;
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	struct buf *from = &ret_token->from;
	uint64_t rv = 0;

	*ret_token = (struct api_token){0};
	int r = base64url_get(text, &json);
	/* A server writes the key last, mostly with a NUL, which no string in YAML has. */
	bool after = r == 0 && json.size > end.size &&
		     memcmp(json.data + json.size - end.size, end.data, end.size) == 0;
	if (after) {
		buf_truncate(&json, json.size - end.size);
		buf_str(&json, "\"}");
		r = buf_error(&json);
	}
	/* In Go's JSON & is an escape; in YAML it would begin an anchor. */
	if (r == 0 && json.size && memchr(json.data, '&', json.size))
		r = err_say(ERR_SYNTAX, "it is no JSON of an API server");
	if (r == 0)
		r = yaml_parse(buf_cstr(&json), json.size, "token", &yaml);
	const struct yaml_node *root = r == 0 ? yaml_root(yaml) : NULL;
	const char *version = yaml_text(root, "v"), *number = yaml_text(root, "rv"),
		   *start = yaml_text(root, "start");
	bool is_newest = number && strcmp(number, "-1") == 0;
	if (r == 0 && !is_newest)
		r = decimal_parse(bytes_str(number ? number : ""), INT64_MAX, &rv);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return api_status_set(status, 400, "BadRequest", "%s: %s", refused, err_text(r));
	if (!version || strcmp(version, "meta.k8s.io/v1") != 0)
		return api_status_set(status, 400, "BadRequest",
			"%s: server does not recognize this encoded version %s", refused,
			version ? version : "");
	if ((!rv && !is_newest) || !start || !(*start || after))
		return api_status_set(status, 400, "BadRequest",
			"%s: it has no resourceVersion or no start key", refused);
	ret_token->rv = is_newest ? -1 : (int64_t)rv;
	start += *start == '/';
	buf_put(from, start, strlen(start) + after);
	return buf_error(from);
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
