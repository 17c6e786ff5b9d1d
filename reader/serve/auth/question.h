/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a question to the API server: a client's credentials and the review. */
#ifndef READER_SERVE_AUTH_QUESTION_H
#define READER_SERVE_AUTH_QUESTION_H

#include "common/buf.h"
#include "reader/serve/auth.h"

/* The bytes that tell one question from another: the header lines, then the review, which is the
 * body of the request. Header lines end with a NUL each, and with an empty one. */
struct question {
	struct buf bytes;
	size_t headers_size;
	size_t client_size; /* the bytes up to here are the same in all questions about a client */
	bool review; /* for our own account: the body is a SubjectAccessReview, or without its
			subject if there is a token, which must be reviewed first */
};

/* Makes the question of X, with the attributes' name or without it. Returns whether there is memory
 * and the headers are not too large; the caller releases QUESTION in any case. */
bool question_make(struct question *question, const struct exchange *x,
	const struct auth_attributes *a, bool with_name);
void question_release(struct question *question);

/* Returns whether a token must be reviewed before the question can be asked. */
bool question_has_token(const struct question *question);
/* Appends the TokenReview of the question's token. */
void question_put_token_review(const struct question *question, struct buf *out);
/* Reads the answer to it, and appends the SubjectAccessReview for the user that it names. USER
 * becomes the user's name. Returns: AUTH_ALLOWED: the review can be asked; else the decision, with
 * its REASON. */
enum auth_answer question_read_token(const struct question *question, struct bytes text,
	struct buf *out, char *user, char *reason, size_t size);

/* Reads `status` of a SelfSubjectAccessReview. REASON becomes its reason, or why it can't be
 * read. */
enum auth_answer question_read_review(struct bytes text, char *reason, size_t size);

#endif
