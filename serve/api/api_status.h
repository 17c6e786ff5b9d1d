/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Status object of the API server's refusals (docs/protocol.md 8), and its JSON. Clients read
 * code, reason, causes and retryAfterSeconds, people read the message; all are worded as the API
 * server words them.
 *
 * A function returns 0, a negative error of ours, or an HTTP status (above 0) with the Status
 * filled in:
 *
 *	return api_status_set(status, 400, "BadRequest", "invalid selector: '%s'; ...", text);
 */
#ifndef SERVE_API_API_STATUS_H
#define SERVE_API_API_STATUS_H

#include "common/buf.h"

#define API_STATUS_CAUSES 8

struct api_status_cause {
	const char *reason, *field; /* static; NULL: left out */
	char message[160];
};

struct api_status {
	int code;           /* HTTP; 0: nothing was refused */
	const char *reason; /* static; NULL: none */
	struct buf message;
	bool has_details;  /* also when all of them are empty */
	struct buf object; /* name, group and kind of the details, each with a NUL; empty: none */
	struct api_status_cause *causes; /* API_STATUS_CAUSES of them; NULL: none */
	size_t n_causes;
	int retry_after;  /* seconds; 0: none. Also the header Retry-After */
	struct buf token; /* metadata.continue: from here the rest of a list can be had */
};

#define API_STATUS_INIT ((struct api_status){0})

void api_status_release(struct api_status *status);

/* Sets code, reason and message, and forgets all others. Returns: CODE. */
int api_status_set(struct api_status *status, int code, const char *reason, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void api_status_details(
	struct api_status *status, const char *group, const char *kind, const char *name);
void api_status_cause(struct api_status *status, const char *reason, const char *field,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Appends TEXT as Go's %q: only printable text stays as it is. */
void api_status_quote(struct buf *out, const char *text);

/* Common refusals. */
/* No feed is known yet: the words of a starting API server. */
int api_status_starting(struct api_status *status);
/* A method allowed on no such resource. */
int api_status_no_method(struct api_status *status);
int api_status_unknown_path(struct api_status *status);
/* No such object. */
int api_status_no_object(
	struct api_status *status, const char *group, const char *resource, const char *name);
int api_status_expired(struct api_status *status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The state of a resourceVersion is not kept any more. */
int api_status_too_old(struct api_status *status);
/* The feed is not listed yet, or is gone. WHY: the error of its list; "": none. */
int api_status_initializing(struct api_status *status, const char *why);
/* The API server is asked too much, and said WHY: the client comes again, as it would there. */
int api_status_overloaded(struct api_status *status, const char *why);
/* N is newer than CURRENT. */
int api_status_too_large(struct api_status *status, const char *n, const char *current);
/* An error of ours, with its sentence. */
int api_status_internal(struct api_status *status, int error);

/* Appends the Status as compact JSON, without a line break. Returns: 0 or the error of OUT. */
int api_status_write(const struct api_status *status, struct buf *out);

#endif
