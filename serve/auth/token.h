/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a bearer token in JWT form. Its signature is not checked: use them only after the
 * API server has accepted the token. */
#ifndef SERVE_AUTH_TOKEN_H
#define SERVE_AUTH_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

struct token_facts {
	char user[256];     /* the claim `sub`, "" if there is none */
	uint64_t expires_s; /* the claim `exp`, seconds since 1970; 0: none */
};

/* Reads the token in HEADERS, lines with a NUL each and an empty one at the end. */
void token_read(const void *headers, struct token_facts *ret_facts);
bool token_expired(const struct token_facts *facts);
/* Returns KEEP_NS, or less if the token expires before. */
uint64_t token_cap_ns(const struct token_facts *facts, uint64_t keep_ns);

#endif
