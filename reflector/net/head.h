/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the head of an HTTP answer line by line. For HTTP/2 libcurl writes such lines.
 */
#ifndef REFLECTOR_NET_HEAD_H
#define REFLECTOR_NET_HEAD_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEAD_ETAG_SIZE 256 /* a kube-apiserver's has 130 bytes */

struct http_head {
	int version; /* 1 or 2 */
	int status;
	bool has_retry_after; /* a number of seconds; a date is ignored */
	uint32_t retry_after_s;
	char content_type[256];    /* "" when absent */
	char etag[HEAD_ETAG_SIZE]; /* "" when absent or longer than this */
	char warning[256];         /* texts of the Warning headers, joined by "; "; cut */
};

/* Takes one line, with or without its line break. The first line's HEAD is all zeroes. Returns: 0;
 * END when the line ends the head. The head of an interim (1xx) answer does not end: another head
 * follows. */
int head_line(struct http_head *head, struct bytes line);

/*
 * Remembers the API server's Warning headers (deprecated versions and the like). The server repeats
 * a warning with every answer; the log gets each text once.
 */
#define WARNINGS_MAX 64 /* texts: a server with ever new ones can't fill the log */

/* Zeroes: nothing said yet. */
struct warnings {
	uint64_t said[WARNINGS_MAX]; /* hashes */
	size_t n;
};

/* Remembers TEXT. Returns: whether it is new and there was room for it. */
bool warnings_are_new(struct warnings *warnings, const char *text);

#endif
