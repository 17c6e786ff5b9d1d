/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the upstream group, libcurl's only users in kinf-serve:
 *
 *	upstream_server.c   where the API server is: the reflector's file `upstream`
 *	upstream_client.c   questions with small answers, for auth/
 *	upstream_link.c     connections as streams of bytes, for forward.h
 */
#ifndef SERVE_HTTP_UPSTREAM_INTERNAL_H
#define SERVE_HTTP_UPSTREAM_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/bytes.h"

struct upstream_server {
	char *url, *proxy, *name; /* NULL: none */
	char *ca;                 /* PEM */
	size_t ca_size;
	bool insecure;
	struct stat file;    /* the source of it all */
	bool stale;          /* the server did not answer: it may have moved */
	uint64_t generation; /* counts the readings */
};

void upstream_server_release(struct upstream_server *server);
/* Reads the file `upstream` if it is another one than before, or what it says may be stale. */
int upstream_server_refresh(struct upstream_server *server, int runtime_fd);

/* Lists borrowed by libcurl during a handle's life. */
struct upstream_lists {
	struct curl_slist *headers, *connect_to;
};
void upstream_lists_release(struct upstream_lists *lists);
bool upstream_add_line(struct curl_slist **list, const char *line);

/* Sets up EASY for a request of PATH: URL, proxy, TLS. Adds to LISTS a Host header where the URL
 * has another name. */
int upstream_server_apply(const struct upstream_server *server, CURL *easy, const char *path,
	struct upstream_lists *lists);

/* Points RET_HOST at host and port of the server's URL, and RET_BASE at its path, without a slash
 * at its end. */
void upstream_server_split(
	const struct upstream_server *server, struct bytes *ret_host, struct bytes *ret_base);

#endif
