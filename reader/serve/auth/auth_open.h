/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's side of auth; auth.h is the side of the answers. The auth group: auth.c chooses by the
 * listener's mode.
 */
#ifndef READER_SERVE_AUTH_AUTH_OPEN_H
#define READER_SERVE_AUTH_AUTH_OPEN_H

#include "common/config/config.h"
#include "reader/serve/auth.h"

struct home;
struct metrics;

struct auth_options {
	const struct config *config;
	struct home *home;
	struct metrics *metrics;
};

int auth_open(const struct auth_options *options, struct auth **ret_auth);
/* From the main thread, while workers ask. */
void auth_reload(struct auth *auth, const struct config *config);
void auth_close(struct auth **auth);

#endif
