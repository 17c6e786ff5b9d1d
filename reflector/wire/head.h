/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP answer, line by line: what of it anybody here wants to know. Works on lines of
 * HTTP/1 and on those that libcurl writes for HTTP/2.
 */
#ifndef REFLECTOR_HEAD_H
#define REFLECTOR_HEAD_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEAD_ETAG_SIZE 256 /* a kube-apiserver's has 130 letters */

struct head {
	int version; /* 1 or 2 */
	int status;
	bool has_retry_after; /* a number of seconds; dates and all else do not count */
	uint32_t retry_after_s;
	char content_type[256]; /* "" when absent */
	char etag[HEAD_ETAG_SIZE]; /* "" when absent, or longer */
	char warning[256];      /* texts of the Warning headers, "; " between them */
};

/* One line, with or without its line break. 0; END when it ends the head of the answer (interim
 * answers, 1xx, are followed by another head). HEAD begins as zeroes. */
int head_line(struct head *head, struct bytes line);

#endif
