/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/token.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "common/text/base64.h"
#include "tests/simulator/jsontext.h"

#define VERSION "meta.k8s.io/v1"

void token_put(struct buf *out, int64_t rv, const char *start)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;

	buf_printf(&plain, "{\"v\":\"" VERSION "\",\"rv\":%" PRId64 ",\"start\":", rv);
	jsontext_put_string(&plain, bytes_str(start));
	buf_truncate(&plain, plain.size - 1); /* the key after START begins with it and a NUL */
	buf_str(&plain, "\\u0000\"}");
	base64url_put(buf_bytes(&plain), out);
}

static bool token_read_rv(struct bytes text, int64_t *ret_rv)
{
	bool negative = text.size && *(const char *)text.data == '-';
	int64_t rv = 0;

	for (size_t i = negative; i < text.size; i++) {
		char c = ((const char *)text.data)[i];

		if (c < '0' || c > '9' || rv > INT64_MAX / 10 - 1)
			return false;
		rv = rv * 10 + (c - '0');
	}
	*ret_rv = negative ? -rv : rv;
	return text.size > negative;
}

bool token_parse(const char *text, int64_t *ret_rv, struct buf *start, struct buf *wrong)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;
	AUTO_FREE char *version = NULL;
	AUTO_FREE char *key = NULL;
	struct bytes object;

	if (base64url_get(text, &plain) < 0) {
		buf_str(wrong, "illegal base64 data at input byte 0");
		return false;
	}
	object = buf_bytes(&plain);
	version = jsontext_dup(jsontext_get(object, "v"));
	key = jsontext_dup(jsontext_get(object, "start"));
	if (!version || !key)
		buf_printf(wrong, "invalid character '%c' looking for beginning of value",
			object.size ? *(const char *)object.data : ' ');
	else if (strcmp(version, VERSION))
		buf_printf(wrong, "server does not recognize this encoded version %s", version);
	else if (!token_read_rv(jsontext_get(object, "rv"), ret_rv) || *ret_rv == 0)
		buf_str(wrong, "incorrect encoded start resourceVersion (version " VERSION ")");
	else if (!*key)
		buf_str(wrong, "encoded start key empty (version " VERSION ")");
	else
		buf_str(start, key + (*key == '/'));
	return !wrong->size;
}
