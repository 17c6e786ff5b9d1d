/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the API server, on a thread of its own. */
#include "serve/auth/auth_self_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/yaml.h"

#define LOOK_MS       100 /* for questions that are silent */
#define QUESTIONS_MAX 16  /* on their way at once */
#define RUN_MS        1000
#define SELF_PATH     "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define REVIEW_PATH   "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define TOKEN_PATH    "/apis/authentication.k8s.io/v1/tokenreviews"
#define WHO_PATH      "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define WHO_BODY      "{\"kind\":\"SelfSubjectReview\",\"apiVersion\":\"authentication.k8s.io/v1\"}"

static void ask_settle(struct decision_entry *e, enum auth_answer answer, const char *reason)
{
	(void)pthread_mutex_lock(&e->self->lock);
	auth_self_settle(e->self, e, answer, reason);
	(void)pthread_mutex_unlock(&e->self->lock);
}

/* Takes the name of a denied user from a SelfSubjectReview, for the sentence of the refusal. An
 * older API server has no such review; the name is then unknown. */
static void ask_on_user(void *context, int status, struct bytes text)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	struct decision_entry *e = context;
	int r = status == 201 && text.size ? yaml_parse(text.data, text.size, "review", &yaml)
					   : NOT_FOUND;

	err_ignore(r < 0 ? r : 0, "the refusal only lacks the user's name");
	const struct yaml_node *reviewed = r == 0 ? yaml_get(yaml_root(yaml), "status") : NULL;
	const char *name = yaml_text(yaml_get(reviewed, "userInfo"), "username");
	(void)pthread_mutex_lock(&e->self->lock);
	(void)snprintf(e->user, sizeof(e->user), "%s", name ? name : "");
	auth_self_settle(e->self, e, AUTH_DENIED, e->reason);
	(void)pthread_mutex_unlock(&e->self->lock);
}

static void ask_on_answer(void *context, int status, struct bytes text)
{
	struct decision_entry *e = context;
	char reason[200] = "";
	enum auth_answer answer = AUTH_UNAVAILABLE;

	if (status == 200 || status == 201)
		answer = question_read_review(text, reason, sizeof(reason));
	else if (status == 401)
		answer = AUTH_UNAUTHENTICATED;
	else if (status == 403)
		answer = AUTH_DENIED; /* for instance: the token may not impersonate */
	else if (status == 400 || status == 422) {
		answer =
			/* for instance: a group is impersonated without a user; it stays so */
			AUTH_DENIED;
		(void)snprintf(reason, sizeof(reason), "the API server refused the review with %d",
			status);
	} else if (status)
		(void)snprintf(
			reason, sizeof(reason), "the API server answered a review with %d", status);
	else
		(void)snprintf(reason, sizeof(reason), "the API server can't be asked: %.*s",
			(int)(text.size < 150 ? text.size : 150), (const char *)text.data);
	if (answer == AUTH_DENIED && !*e->user) {
		/* Without the lock: no other thread reads the texts of an entry that is being
		 * asked. */
		(void)snprintf(e->reason, sizeof(e->reason), "%s", reason);
		int r = upstream_client_post(e->self->client, WHO_PATH,
			(const char *)e->question.bytes.data, BYTES_LIT(WHO_BODY), ask_on_user, e);
		if (r == 0)
			return;
		err_ignore(r, "the refusal only lacks the user's name");
	}
	ask_settle(e, answer, reason);
}

/* ---- reviews by our own account
 * ----------------------------------------------------------------------- */

/* Settles a question that our own account could not ask: that says nothing about the client. */
static void ask_failed(struct decision_entry *e, int status, struct bytes text)
{
	char reason[200];

	if (status == 401 || status == 403)
		(void)snprintf(reason, sizeof(reason),
			"kinf-serve's own account may not create reviews (serve.review, "
			"ClusterRole "
			"system:auth-delegator): %d",
			status);
	else if (status)
		(void)snprintf(
			reason, sizeof(reason), "the API server answered a review with %d", status);
	else
		(void)snprintf(reason, sizeof(reason), "the API server can't be asked: %.*s",
			(int)(text.size < 150 ? text.size : 150), (const char *)text.data);
	ask_settle(e, AUTH_UNAVAILABLE, reason);
}

static void ask_on_review(void *context, int status, struct bytes text)
{
	struct decision_entry *e = context;
	char reason[200] = "";

	if (status != 200 && status != 201) {
		ask_failed(e, status, text);
		return;
	}
	enum auth_answer answer = question_read_review(text, reason, sizeof(reason));
	ask_settle(e, answer, reason);
}

static void ask_on_token(void *context, int status, struct bytes text)
{
	CLEANUP(buf_release) struct buf review = BUF_INIT;
	struct decision_entry *e = context;
	char reason[200] = "", user[200] = "";

	if (status != 200 && status != 201) {
		ask_failed(e, status, text);
		return;
	}
	enum auth_answer answer =
		question_read_token(&e->question, text, &review, user, reason, sizeof(reason));
	/* Without the lock: no other thread reads the texts of an entry that is being asked. */
	(void)snprintf(e->user, sizeof(e->user), "%s", user);
	if (answer != AUTH_ALLOWED) {
		ask_settle(e, answer, reason);
		return;
	}
	int r = upstream_client_post_own(
		e->self->client, REVIEW_PATH, buf_bytes(&review), ask_on_review, e);
	if (r < 0)
		ask_failed(e, 0, bytes_str(err_text(r)));
}

/* Asks the question of E, which does not change meanwhile. */
static int ask_post(struct auth_self *self, struct decision_entry *e)
{
	CLEANUP(buf_release) struct buf token = BUF_SECRET;
	const struct question *q = &e->question;
	struct bytes body = BYTES(q->bytes.data + q->headers_size, q->bytes.size - q->headers_size);

	if (!q->review)
		return upstream_client_post(self->client, SELF_PATH, (const char *)q->bytes.data,
			body, ask_on_answer, e);
	if (!question_has_token(q))
		return upstream_client_post_own(self->client, REVIEW_PATH, body, ask_on_review, e);
	question_put_token_review(q, &token);
	int r = buf_error(&token);
	return r < 0 ? r
		     : upstream_client_post_own(
			       self->client, TOKEN_PATH, buf_bytes(&token), ask_on_token, e);
}

/* ---- the thread that asks
 * ---------------------------------------------------------------------------- */

/* Takes an entry off the queue. Returns NULL if none waits, or if enough are on their way. */
static struct decision_entry *ask_next(struct auth_self *self)
{
	struct decision_entry *e = self->n_asking < QUESTIONS_MAX ? self->queue_first : NULL;

	if (!e)
		return NULL;
	self->queue_first = e->queue_next;
	if (!self->queue_first)
		self->queue_last = &self->queue_first;
	self->n_asking++;
	return e;
}

void *auth_ask_run(void *arg)
{
	struct auth_self *self = arg;

	for (;;) {
		(void)pthread_mutex_lock(&self->lock);
		bool stop = self->stop;
		struct decision_entry *e = stop ? NULL : ask_next(self);
		bool waits = !stop && auth_self_relieve(self);
		(void)pthread_mutex_unlock(&self->lock);
		if (stop)
			return NULL;
		if (!e) {
			upstream_client_run(self->client, waits ? LOOK_MS : RUN_MS);
			continue;
		}
		int r = ask_post(self, e);
		if (r < 0)
			ask_on_answer(e, 0, bytes_str(err_text(r)));
		err_forget();
	}
}
