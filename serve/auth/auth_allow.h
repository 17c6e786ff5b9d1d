/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode `allow`: static rules (serve.allow) for the name and the organizations in the client's
 * certificate. Nothing is asked of the API server, so that ten thousand nodes cost it no reviews.
 */
#ifndef SERVE_AUTH_AUTH_ALLOW_H
#define SERVE_AUTH_AUTH_ALLOW_H

#include "serve/auth/auth.h"

struct auth_allow;

/* RULES: as config.h describes; NULL: none. */
int auth_allow_new(const char *rules, struct auth_allow **ret_allow);
/* From the main thread, while workers decide. Without memory the rules stay as they are. */
void auth_allow_reload(struct auth_allow *allow, const char *rules);
void auth_allow_free(struct auth_allow **allow);

/* The texts of DECISION live as long as X. */
void auth_allow_decide(struct auth_allow *allow, const struct exchange *x,
	const struct auth_attributes *attributes, struct auth_decision *ret_decision);

#endif
