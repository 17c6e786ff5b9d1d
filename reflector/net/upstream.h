/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `upstream` in the runtime directory: how to reach the API server, without any secret,
 * for kinf-serve. That asks with its clients' own credentials (store/FORMAT.md).
 */
#ifndef REFLECTOR_NET_UPSTREAM_H
#define REFLECTOR_NET_UPSTREAM_H

#include "reflector/net/http.h"
#include "store/env/home.h"

#define UPSTREAM_FILE "upstream"

/* The state of the file as written; zero at first. */
struct upstream {
	bool written;
	uint64_t ca_changes; /* as http_ca() counted them */
};

/* Writes the file into the runtime directory unless it has the CA in use. Call it from time to
 * time: the CA's file may have been replaced. */
int upstream_write(struct upstream *upstream, const struct kubeconfig *config, struct http *http,
	struct home *home);

#endif
