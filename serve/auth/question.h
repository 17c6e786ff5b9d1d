/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a question to the API server: a client's credentials and the review. */
#ifndef SERVE_AUTH_QUESTION_H
#define SERVE_AUTH_QUESTION_H

#include "common/buf.h"
#include "serve/exchange.h"

/* As in a SubjectAccessReview. Texts are borrowed for the duration of the call; "" where absent. */
struct auth_attributes {
	const char *verb; /* get, list, watch */
	const char *group, *version, *resource, *subresource, *namespace_, *name;
	const char *path; /* of a request of no resource (/api, /version); resource is "" then */
	bool discovery;   /* the path names a discovery document */
	const char *label_selector, *field_selector; /* as sent, decoded */
};

enum auth_answer {
	AUTH_ALLOWED,
	AUTH_DENIED,          /* 403 */
	AUTH_UNAUTHENTICATED, /* 401 */
	AUTH_BUSY,            /* 429: the API server is overloaded; else as the next one */
	AUTH_UNAVAILABLE      /* 503: the API server can't be asked, and nothing is remembered */
};

/* Returns true if the API server has not decided. */
static inline bool auth_is_undecided(enum auth_answer answer)
{
	return answer == AUTH_BUSY || answer == AUTH_UNAVAILABLE;
}

/* The attributes of a request to a resource, in their order. */
enum question_part {
	QUESTION_VERB,
	QUESTION_GROUP,
	QUESTION_VERSION,
	QUESTION_RESOURCE,
	QUESTION_SUBRESOURCE,
	QUESTION_NAMESPACE,
	QUESTION_NAME,
	QUESTION_LABELS,
	QUESTION_FIELDS,
	QUESTION_PARTS
};

/* The identity of a question: the header lines, then the review as the body, or the target of a
 * probe. Header lines end with a NUL each, and with an empty one. */
struct question {
	struct buf bytes;
	size_t headers_size;
	size_t client_size; /* the bytes up to here are the same in all questions about a client */
	/* where each part begins, and the end; all 0: no resource is asked for */
	size_t parts[QUESTION_PARTS + 1];
	/* for our own account: a SubjectAccessReview; without a subject if a token must be reviewed
	 * first */
	bool review;
	/* a GET of the client's in place of a review: the right to impersonate can depend on what
	 * is asked for (impersonate-on:MODE:VERB, Kubernetes 1.36), so a review says too much */
	bool probe;
};

#define QUESTION_HEADERS_MAX ((size_t)32 << 10)

enum question_form {
	QUESTION_UNNAMED, /* without the attributes' name */
	QUESTION_NAMED,
	QUESTION_PROBE
};

/* Makes the question of X. Returns whether there is memory and the headers are not too large; the
 * caller releases QUESTION in any case. */
bool question_make(struct question *question, const struct exchange *x,
	const struct auth_attributes *a, enum question_form form);
void question_release(struct question *question);

bool question_is_of_client(const struct question *question, const struct question *other);
/* Returns true if the right to ALLOWED implies ASKED. Both read one resource, and ALLOWED is not
 * narrower: without the namespace, the name, or a selector, or with the same. A list shows more
 * than a get, and a watch begins with a list; a get of every name gives no names. A name in ALLOWED
 * (resourceNames) implies that name alone. */
bool question_implies(const struct question *allowed, const struct question *asked);

/* Returns whether a token must be reviewed before the question can be asked. */
bool question_has_token(const struct question *question);
/* Appends the TokenReview of the question's token. */
void question_put_token_review(const struct question *question, struct buf *out);
/* Reads the TokenReview, and appends the SubjectAccessReview of its user. USER becomes the user's
 * name. Returns: AUTH_ALLOWED: the review can be asked; else the decision with its REASON. */
enum auth_answer question_read_token(const struct question *question, struct bytes text,
	struct buf *out, char *user, char *reason, size_t size);

/* Copies `message` of the Status that refused a probe, if it is one. */
void question_read_refusal(struct bytes text, char *message, size_t size);
/* Reads `status` of a SelfSubjectAccessReview. REASON becomes its reason, or why it can't be
 * read. */
enum auth_answer question_read_review(struct bytes text, char *reason, size_t size);

#endif
