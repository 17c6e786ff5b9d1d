/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/auth_self.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/base64.h"
#include "common/text/decimal.h"
#include "common/value/yaml.h"

/* Decodes the claims, the second of three parts. YAML includes JSON. */
static int token_read_claims(const char *token, struct token_facts *facts)
{
	CLEANUP(buf_release) struct buf claims = BUF_SECRET, part = BUF_SECRET;
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	const char *dot = strchr(token, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;

	if (!end)
		return NOT_FOUND;
	buf_put(&part, dot + 1, (size_t)(end - dot - 1));
	int r = base64url_get(buf_cstr(&part), &claims);
	if (r == 0)
		r = yaml_parse((const char *)claims.data, claims.size, "token", &yaml);
	if (r < 0)
		return r;
	const char *user = yaml_text(yaml_root(yaml), "sub"),
		   *expires = yaml_text(yaml_root(yaml), "exp");
	(void)snprintf(facts->user, sizeof(facts->user), "%s", user ? user : "");
	return expires ? decimal_parse(
				 bytes_str(expires), UINT64_MAX / SECOND_NS, &facts->expires_s)
		       : 0;
}

void token_read(const void *headers, struct token_facts *ret_facts)
{
	static const char name[] = "authorization: bearer ";

	*ret_facts = (struct token_facts){.user = ""};
	for (const char *line = headers; *line; line += strlen(line) + 1)
		if (strncasecmp(line, name, sizeof(name) - 1) == 0) {
			int r = token_read_claims(line + sizeof(name) - 1, ret_facts);

			if (r < 0)
				err_ignore(r, "other tokens than JWTs have no claims");
			return;
		}
}

bool token_expired(const struct token_facts *facts)
{
	return facts->expires_s && proc_realtime_ns() / SECOND_NS >= facts->expires_s;
}

uint64_t token_cap_ns(const struct token_facts *facts, uint64_t keep_ns)
{
	uint64_t now = proc_realtime_ns();

	if (!facts->expires_s || facts->expires_s * SECOND_NS >= now + keep_ns)
		return keep_ns;
	return facts->expires_s * SECOND_NS > now ? facts->expires_s * SECOND_NS - now : 0;
}
