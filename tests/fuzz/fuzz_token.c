/* SPDX-License-Identifier: Apache-2.0 */
/* Continue tokens: refused with 400, or a key and an RV of the same token. The claims of bearer
 * tokens: found or not, and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "serve/api/api_token.h"
#include "serve/auth/auth_self.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text)
{
	CLEANUP(api_status_release) struct api_status status = API_STATUS_INIT;
	CLEANUP(api_token_release) struct api_token token = {0}, again = {0};
	CLEANUP(buf_release) struct buf written = BUF_INIT;
	int r = api_token_parse(text, &token, &status);

	if (r != 0) {
		REQUIRE(r == 400 && status.code == 400 && status.message.size);
		return;
	}
	REQUIRE(token.rv != 0);
	REQUIRE(!token.from.size || *(const char *)token.from.data != '/');
	struct bytes from = buf_bytes(&token.from);

	if (!from.size)
		return;
	REQUIRE(api_token_write(token.rv, from, &written) == 0);
	REQUIRE(api_token_parse(buf_cstr(&written), &again, &status) == 0);
	REQUIRE(again.rv == token.rv && bytes_equal(buf_bytes(&again.from), from));
}

/* CLAIMS: the second part of a JWT. */
static void check_claims(const char *claims)
{
	CLEANUP(buf_release) struct buf headers = BUF_INIT;
	struct token_facts facts;

	buf_printf(&headers, "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.%s.c2ln", claims);
	buf_put(&headers, "\0\0", 2);
	REQUIRE(buf_error(&headers) == 0);
	token_read(headers.data, &facts);
	REQUIRE(memchr(facts.user, '\0', sizeof(facts.user)));
	REQUIRE(token_cap_ns(&facts, 1000) <= 1000);
	err_forget();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf_release) struct buf encoded = BUF_INIT;
	AUTO_FREE char *text = strndup((const char *)data, size);

	REQUIRE(text != NULL);
	check(text);
	/* As the JSON of a token, too: an input would hardly ever be base64 of one. */
	base64url_put(BYTES(data, size), &encoded);
	REQUIRE(buf_error(&encoded) == 0);
	check(buf_cstr(&encoded));
	check_claims(text);
	check_claims(buf_cstr(&encoded));
	return 0;
}
