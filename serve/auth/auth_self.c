/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/auth_self.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/proc.h"
#include "common/value/yaml.h"
#include "serve/http/upstream_client.h"
#include "serve/worker.h"

#define USER_SIZE  256
#define REASON_MAX 400
#define SELF_MAGIC 0x73656c66u
#define KEEP_NS    (10 * SECOND_NS)
#define PAUSE_NS   SECOND_NS /* after a question without an answer */
/* then earlier permissions hold (offlineGrace) */
#define SILENCE_NS      (SECOND_NS / 2)
#define DECISIONS_MAX   8192
#define POD_TOKEN       "/var/run/secrets/kubernetes.io/serviceaccount/token"
#define SERVICE_ACCOUNT "system:serviceaccount:"
#define LOOK_MS         100 /* for silent questions */
#define QUESTIONS_MAX   16  /* on their way at once */
#define RUN_MS          1000
#define SELF_PATH       "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define REVIEW_PATH     "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define TOKEN_PATH      "/apis/authentication.k8s.io/v1/tokenreviews"
#define WHO_PATH        "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define WHO_BODY \
	"{\"kind\":\"SelfSubjectReview\"," \
	"\"apiVersion\":\"authentication.k8s.io/v1\"}"

/* One question and, if it was answered, its decision. */
struct decision_entry {
	struct auth_self *self;
	struct decision_entry *queue_next;
	struct question question;
	bool secrets, asking, decided;
	bool refused; /* by the last answer of the API server */
	enum auth_answer answer;
	char user[USER_SIZE], reason[REASON_MAX];
	uint64_t until_ns;   /* monotonic: how long the decision is good */
	uint64_t allowed_ns; /* monotonic: when it was last allowed; 0: never */
	uint64_t asked_ns;   /* monotonic: since when ASKING is set */
	struct auth_pending *waiting;
};

/* A waiting request, on the list of its entry, and after the decision on the list of the self. */
struct auth_pending {
	struct auth_self *self;
	struct decision_entry *entry; /* NULL: decided */
	struct auth_pending *next;
	struct serve_worker *worker;
	auth_decided_fn *fn;
	void *context;
	bool has_second;
	struct question second; /* with the name: to be asked if the first is denied */
	bool secrets, discovery;
	enum auth_answer answer;
	char user[USER_SIZE], reason[REASON_MAX];
};

struct self_item {
	uint32_t hash;
	struct decision_entry *entry;
};

struct auth_self {
	uint32_t magic;
	pthread_mutex_t lock; /* of everything below but CLIENT */
	struct hashtable table;
	uint64_t seed;
	struct decision_entry *queue_first, **queue_last;
	struct auth_pending *decided;
	unsigned n_asking;
	uint64_t keep_ns, grace_ns;
	bool silent; /* the last question was not answered in time */
	/* the last question was given up after a silence: others are not waited for as long */
	bool away;
	bool stop;
	struct metrics *metrics;
	const char *mode;               /* for metrics */
	struct upstream_client *client; /* of the thread; upstream_client_wake() from all */
	pthread_t thread;
	bool started;
};

/* ---- the table of decisions --------------------------------------------- */

static bool self_is(const void *item, const void *key, const void *arg)
{
	(void)arg;
	return bytes_equal(buf_bytes(&((const struct self_item *)item)->entry->question.bytes),
		*(const struct bytes *)key);
}

static void decision_entry_free(struct decision_entry *entry)
{
	question_release(&entry->question);
	free(entry);
}

/* Makes room: forgets decisions past their time, with ANY also others. */
static void self_forget(struct auth_self *self, uint64_t now, bool any)
{
	struct self_item *item;

	for (size_t place = 0; (item = hashtable_next(&self->table, &place));) {
		struct decision_entry *e = item->entry;
		bool old = now >= e->until_ns && now - e->allowed_ns >= self->grace_ns;

		if (e->asking || e->waiting || !(any || old) ||
			(any && self->table.n <= DECISIONS_MAX / 2))
			continue;
		hashtable_remove(&self->table, item);
		place--;
		decision_entry_free(e);
	}
}

/* Returns the entry of QUESTION, and takes it over; NULL without memory. */
static struct decision_entry *self_find(
	struct auth_self *self, struct question *question, bool secrets)
{
	struct bytes key = buf_bytes(&question->bytes);
	uint64_t hash = hash_bytes(key, self->seed), now = proc_monotonic_ns();
	struct self_item *item = hashtable_find(&self->table, hash, &key);

	if (item) {
		question_release(question);
		return item->entry;
	}
	if (self->table.n >= DECISIONS_MAX)
		self_forget(self, now, false);
	if (self->table.n >= DECISIONS_MAX)
		self_forget(self, now, true);
	struct decision_entry *entry = calloc(1, sizeof(*entry));
	int r = entry ? hashtable_add(&self->table, hash, "the decisions on clients", &item) : 1;
	if (r) {
		err_ignore(r < 0 ? r : 0, "the request is answered with 503");
		free(entry);
		question_release(question);
		return NULL;
	}
	*entry = (struct decision_entry){.self = self, .question = *question, .secrets = secrets};
	*question = (struct question){.bytes = BUF_SECRET};
	item->entry = entry;
	return entry;
}

/* ---- decisions ---------------------------------------------------------- */

/* Asks the question of ENTRY, unless it is being asked. */
static void self_ask(struct auth_self *self, struct decision_entry *entry)
{
	if (entry->asking)
		return;
	entry->asking = true;
	entry->asked_ns = proc_monotonic_ns();
	entry->queue_next = NULL;
	*self->queue_last = entry;
	self->queue_last = &entry->queue_next;
	upstream_client_wake(self->client);
}

static void self_enqueue(
	struct auth_self *self, struct decision_entry *entry, struct auth_pending *pending)
{
	pending->entry = entry;
	pending->next = entry->waiting;
	entry->waiting = pending;
	self_ask(self, entry);
}

/* Returns true if ENTRY was allowed lately enough for a silent API server. */
static bool entry_was_allowed(const struct decision_entry *entry, uint64_t now)
{
	struct token_facts facts;

	if (!entry->allowed_ns || now - entry->allowed_ns >= entry->self->grace_ns)
		return false;
	token_read(entry->question.bytes.data, &facts);
	return !token_expired(&facts);
}

/* Returns true if ENTRY's permission holds while the API server is silent. */
static bool entry_has_grace(const struct decision_entry *entry, uint64_t now)
{
	return !entry->secrets && entry_was_allowed(entry, now);
}

/* Returns an entry with the rights to ASKED while the API server is silent: one that implies it;
 * for DISCOVERY any of a client known to the API server. NULL: none. */
static struct decision_entry *self_find_right(
	struct auth_self *self, const struct question *asked, bool discovery, uint64_t now)
{
	struct self_item *item;

	for (size_t place = 0; (item = hashtable_next(&self->table, &place));) {
		struct decision_entry *e = item->entry;

		if (discovery ? question_is_of_client(&e->question, asked) &&
					entry_was_allowed(e, now)
			      : question_implies(&e->question, asked) && entry_has_grace(e, now))
			return e;
	}
	return NULL;
}

/* Returns the entry to allow PENDING by while the API server is silent: FIRST, the one with the
 * name, or one that implies it; for discovery any of the client, because the API server shows its
 * documents to each client it knows. The API server's refusals stay. NULL: none. */
static struct decision_entry *self_grace(struct auth_self *self, struct decision_entry *first,
	const struct auth_pending *pending, uint64_t now)
{
	struct decision_entry *second = NULL;

	if (entry_has_grace(first, now))
		return first;
	if (pending->has_second) {
		struct bytes key = buf_bytes(&pending->second.bytes);
		struct self_item *item =
			hashtable_find(&self->table, hash_bytes(key, self->seed), &key);

		second = item ? item->entry : NULL;
	}
	if (second && entry_has_grace(second, now))
		return second;
	if (first->refused || (second && second->refused))
		return NULL;
	return self_find_right(self, pending->has_second ? &pending->second : &first->question,
		pending->discovery, now);
}

/* Adds a pending request to the list for delivery. */
static void self_decided(struct auth_self *self, struct auth_pending *p, enum auth_answer answer,
	const char *user, const char *reason)
{
	p->entry = NULL;
	p->answer = answer;
	(void)snprintf(p->user, sizeof(p->user), "%s", user);
	(void)snprintf(p->reason, sizeof(p->reason), "%s", reason);
	p->next = self->decided;
	self->decided = p;
	serve_worker_wake(p->worker);
}

/* Gives the decision of ENTRY to a request; asks again, with the name, if this was denied without
 * it. */
static void self_pass_on(
	struct auth_self *self, struct decision_entry *entry, struct auth_pending *p)
{
	if (entry->answer == AUTH_DENIED && p->has_second) {
		char user[USER_SIZE]; /* ENTRY may be forgotten for the second */

		memcpy(user, entry->user, sizeof(user));
		struct decision_entry *second = self_find(self, &p->second, p->secrets);

		p->has_second = false;
		/* The same credentials: only the API server knows the user of a token. */
		if (second && !*second->user && !second->decided && !second->asking)
			memcpy(second->user, user, sizeof(user));
		if (!second)
			self_decided(self, p, AUTH_UNAVAILABLE, "", "no memory for a decision");
		else if (second->decided && proc_monotonic_ns() < second->until_ns)
			self_decided(self, p, second->answer, second->user, second->reason);
		else
			self_enqueue(self, second, p);
		return;
	}
	const struct decision_entry *by = auth_is_undecided(entry->answer)
						  ? self_grace(self, entry, p, proc_monotonic_ns())
						  : NULL;
	self_decided(self, p, by ? AUTH_ALLOWED : entry->answer, (by ? by : entry)->user,
		(by ? by : entry)->reason);
}

/* Allows requests that wait for a silent question, if they were allowed before. Refuses the others
 * if the question before was silent too. Returns true if requests wait. The lock is held. */
static bool self_relieve(struct auth_self *self)
{
	uint64_t now = proc_monotonic_ns();
	struct self_item *item;

	if (!self->queue_first && !self->n_asking)
		return false;
	for (size_t place = 0; (item = hashtable_next(&self->table, &place));) {
		struct decision_entry *e = item->entry;

		if (!e->asking || now - e->asked_ns < SILENCE_NS)
			continue;
		self->silent = true;
		for (struct auth_pending **link = &e->waiting, *p; (p = *link);) {
			const struct decision_entry *by = self_grace(self, e, p, now);

			if (!by && !self->away) {
				link = &p->next;
				continue;
			}
			*link = p->next;
			auth_count(self->metrics, self->mode, by ? AUTH_ALLOWED : AUTH_UNAVAILABLE,
				by ? "grace" : "cache");
			if (by)
				self_decided(self, p, AUTH_ALLOWED, by->user, by->reason);
			else
				self_decided(self, p, AUTH_UNAVAILABLE, "",
					"the API server can't be asked: it does not answer");
		}
	}
	return true;
}

/* Notes the answer to ENTRY's question, and passes it on. The lock is held. */
static void self_settle(struct auth_self *self, struct decision_entry *e, enum auth_answer answer,
	const char *reason)
{
	uint64_t now = proc_monotonic_ns();
	struct token_facts facts = {.user = ""};

	/* A token's claims count only after the API server has accepted it. */
	if (answer == AUTH_ALLOWED || answer == AUTH_DENIED || e->allowed_ns)
		token_read(e->question.bytes.data, &facts);
	self->silent = auth_is_undecided(answer);
	self->away = self->silent && now - e->asked_ns >= SILENCE_NS;
	if (auth_is_undecided(answer) && entry_has_grace(e, now)) {
		e->answer = AUTH_ALLOWED;
		auth_count(self->metrics, self->mode, AUTH_ALLOWED, "grace");
	} else {
		e->answer = answer;
		auth_count(self->metrics, self->mode, answer, "server");
	}
	if (!auth_is_undecided(answer)) {
		e->refused = answer != AUTH_ALLOWED;
		e->allowed_ns = e->refused ? 0 : now;
	}
	e->decided = true;
	/* A silent server is not asked for each request. */
	e->until_ns =
		now + token_cap_ns(&facts, auth_is_undecided(e->answer) ? PAUSE_NS : self->keep_ns);
	/* The API server alone knows the users of other tokens (ask_on_user()). */
	if (answer == AUTH_UNAUTHENTICATED)
		e->user[0] = '\0';
	else if (strncmp(facts.user, SERVICE_ACCOUNT, strlen(SERVICE_ACCOUNT)) == 0)
		(void)snprintf(e->user, sizeof(e->user), "%s", facts.user);
	if (reason != e->reason)
		(void)snprintf(e->reason, sizeof(e->reason), "%s", reason);
	self->n_asking--;
	for (struct auth_pending *p = TAKE(e->waiting), *next; p; p = next) {
		next = p->next;
		self_pass_on(self, e, p);
	}
	e->asking = false; /* only now may it be forgotten */
}

/* ---- the thread asking the API server ------------------------------------ */

static void ask_settle(struct decision_entry *e, enum auth_answer answer, const char *reason)
{
	(void)pthread_mutex_lock(&e->self->lock);
	self_settle(e->self, e, answer, reason);
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
	self_settle(e->self, e, AUTH_DENIED, e->reason);
	(void)pthread_mutex_unlock(&e->self->lock);
}

/* Writes the reason of an answer without a review. Returns what it says to the client. */
static enum auth_answer ask_explain(int status, struct bytes text, char *reason, size_t size)
{
	if (status)
		(void)snprintf(reason, size, "the API server answered a review with %d", status);
	else
		(void)snprintf(reason, size, "the API server can't be asked: %.*s",
			(int)(text.size < 150 ? text.size : 150), (const char *)text.data);
	return status == 429 ? AUTH_BUSY : AUTH_UNAVAILABLE;
}

static void ask_on_answer(void *context, int status, struct bytes text)
{
	struct decision_entry *e = context;
	char reason[REASON_MAX] = "";
	enum auth_answer answer = AUTH_UNAVAILABLE;

	/* A probe is allowed before its object is searched for and its query is checked. */
	if (e->question.probe && (status == 200 || status == 404 || status == 422))
		answer = AUTH_ALLOWED;
	else if (e->question.probe && (status == 400 || status == 403)) {
		answer = AUTH_DENIED;
		question_read_refusal(text, reason, sizeof(reason));
	} else if (status == 200 || status == 201)
		answer = question_read_review(text, reason, sizeof(reason));
	else if (status == 401)
		answer = AUTH_UNAUTHENTICATED;
	else if (status == 403)
		answer = AUTH_DENIED; /* for instance: the token may not impersonate */
	else if (status != 400 && status != 422)
		answer = ask_explain(status, text, reason, sizeof(reason));
	else { /* for instance: a group is impersonated without a user; it stays so */
		answer = AUTH_DENIED;
		(void)snprintf(reason, sizeof(reason), "the API server refused the review with %d",
			status);
	}
	if (answer == AUTH_DENIED && !*e->user && !e->question.probe) {
		/* Without the lock: no other thread reads the texts of an entry during its
		 * question. */
		(void)snprintf(e->reason, sizeof(e->reason), "%s", reason);
		int r = upstream_client_ask(e->self->client, WHO_PATH,
			(const char *)e->question.bytes.data, BYTES_LIT(WHO_BODY), ask_on_user, e);
		if (r == 0)
			return;
		err_ignore(r, "the refusal only lacks the user's name");
	}
	ask_settle(e, answer, reason);
}

/* ---- reviews by our own account ----------------------------------------- */

/* Settles a question after an error of our own account, without a decision about the client. */
static void ask_failed(struct decision_entry *e, int status, struct bytes text)
{
	enum auth_answer answer = AUTH_UNAVAILABLE;
	char reason[REASON_MAX];

	if (status == 401 || status == 403)
		(void)snprintf(reason, sizeof(reason),
			"kinf-serve's own account may not create reviews (serve.review, "
			"ClusterRole system:auth-delegator): %d",
			status);
	else
		answer = ask_explain(status, text, reason, sizeof(reason));
	ask_settle(e, answer, reason);
}

static void ask_on_review(void *context, int status, struct bytes text)
{
	struct decision_entry *e = context;
	char reason[REASON_MAX] = "";

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
	char reason[USER_SIZE] = "", user[USER_SIZE] = "";

	if (status != 200 && status != 201) {
		ask_failed(e, status, text);
		return;
	}
	enum auth_answer answer =
		question_read_token(&e->question, text, &review, user, reason, sizeof(reason));
	/* Without the lock: no other thread reads the texts of an entry during its question. */
	(void)snprintf(e->user, sizeof(e->user), "%s", user);
	if (answer != AUTH_ALLOWED) {
		ask_settle(e, answer, reason);
		return;
	}
	int r = upstream_client_ask(
		e->self->client, REVIEW_PATH, NULL, buf_bytes(&review), ask_on_review, e);
	if (r < 0)
		ask_failed(e, 0, bytes_str(err_text(r)));
}

/* Asks the question of E; E does not change meanwhile. */
static int ask_post(struct auth_self *self, struct decision_entry *e)
{
	CLEANUP(buf_release) struct buf token = BUF_SECRET;
	const struct question *q = &e->question;
	struct bytes body = BYTES(q->bytes.data + q->headers_size, q->bytes.size - q->headers_size);

	const char *headers = (const char *)q->bytes.data;

	if (q->probe)
		return upstream_client_ask(
			self->client, body.data, headers, BYTES_NONE, ask_on_answer, e);
	if (!q->review)
		return upstream_client_ask(
			self->client, SELF_PATH, headers, body, ask_on_answer, e);
	if (!question_has_token(q))
		return upstream_client_ask(self->client, REVIEW_PATH, NULL, body, ask_on_review, e);
	question_put_token_review(q, &token);
	int r = buf_error(&token);
	return r < 0 ? r
		     : upstream_client_ask(
			       self->client, TOKEN_PATH, NULL, buf_bytes(&token), ask_on_token, e);
}

/* ---- the thread ---------------------------------------------------------- */

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

static void *ask_run(void *arg)
{
	struct auth_self *self = arg;

	for (;;) {
		(void)pthread_mutex_lock(&self->lock);
		bool stop = self->stop;
		struct decision_entry *e = stop ? NULL : ask_next(self);
		bool waits = !stop && self_relieve(self);
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

/* ---- auth_self.h -------------------------------------------------------- */

int auth_self_new(const struct auth_options *options, struct auth_self **ret_self)
{
	const struct config_serve *config = &options->config->serve;
	CLEANUP(auth_self_free) struct auth_self *self = calloc(1, sizeof(*self));

	if (!self)
		return err_set(-ENOMEM, "setting up the decisions on clients");
	self->magic = SELF_MAGIC;
	(void)pthread_mutex_init(&self->lock, NULL);
	self->table = HASHTABLE_INIT(struct self_item, self_is, NULL);
	self->queue_last = &self->queue_first;
	self->metrics = options->metrics;
	self->mode = options->review ? "review" : "self";
	self->keep_ns = options->keep_ns ? options->keep_ns : KEEP_NS;
	self->grace_ns = config->offline_grace_ns;
	int r = proc_random(&self->seed, sizeof(self->seed));
	if (r == 0)
		r = upstream_client_new(options->runtime_fd, &self->client);
	if (r == 0 && options->review) {
		const char *token = config->review_token_file;

		if (!token && !config->review_certificate && access(POD_TOKEN, R_OK) == 0)
			token = POD_TOKEN;
		if (!token && !config->review_certificate)
			return err_say(ERR_CONFIG, "auth: review asks by an account of "
						   "kinf-serve's own; name its token in "
						   "serve.review.tokenFile, or its certificate in "
						   "serve.review.cert and key");
		r = upstream_client_set_own(
			self->client, token, config->review_certificate, config->review_key);
	}
	if (r == 0) {
		r = -pthread_create(&self->thread, NULL, ask_run, self);
		self->started = r == 0;
		if (r < 0)
			(void)err_set(r, "starting the thread that asks the API server");
	}
	if (r < 0)
		return r;
	*ret_self = TAKE(self);
	return 0;
}

void auth_self_reload(struct auth_self *self, const struct config *config)
{
	(void)pthread_mutex_lock(&self->lock);
	self->grace_ns = config->serve.offline_grace_ns;
	(void)pthread_mutex_unlock(&self->lock);
}

static void pending_free(struct auth_pending *pending)
{
	question_release(&pending->second);
	free(pending);
}

void auth_self_free(struct auth_self **self)
{
	struct auth_self *s = TAKE(*self);
	struct self_item *item;

	if (!s)
		return;
	CHECK_OBJ(s, SELF_MAGIC);
	if (s->started) {
		(void)pthread_mutex_lock(&s->lock);
		s->stop = true;
		(void)pthread_mutex_unlock(&s->lock);
		upstream_client_wake(s->client);
		(void)pthread_join(s->thread, NULL);
	}
	upstream_client_free(&s->client);
	for (struct auth_pending *p; (p = s->decided);) {
		s->decided = p->next;
		pending_free(p);
	}
	for (size_t place = 0; (item = hashtable_next(&s->table, &place));)
		decision_entry_free(item->entry);
	hashtable_release(&s->table);
	(void)pthread_mutex_destroy(&s->lock);
	s->magic = 0;
	free(s);
}

/* Decides from the kept entries, or makes PENDING wait. Returns true if DECISION is set. The lock
 * is held. */
static bool self_look_up(struct auth_self *self, struct decision_entry *first,
	struct auth_pending *pending, struct auth_decision *decision)
{
	uint64_t now = proc_monotonic_ns();

	if (!first) {
		*decision =
			(struct auth_decision){AUTH_UNAVAILABLE, "", "no memory for a decision"};
		return true;
	}
	bool known = first->decided && now < first->until_ns;
	bool silent =
		known ? auth_is_undecided(first->answer)
		      : self->silent || (first->asking && now - first->asked_ns >= SILENCE_NS);
	const struct decision_entry *by = silent ? self_grace(self, first, pending, now) : NULL;
	if (by) {
		if (!known)
			self_ask(self, first); /* the answer is for the next request */
		(void)snprintf(pending->user, sizeof(pending->user), "%s", by->user);
		*decision = (struct auth_decision){AUTH_ALLOWED, pending->user, ""};
		auth_count(self->metrics, self->mode, AUTH_ALLOWED, "grace");
		return true;
	}
	if (!known) {
		self_enqueue(self, first, pending);
		return false;
	}
	if (first->answer == AUTH_DENIED && pending->has_second) {
		self_pass_on(self, first, pending);
		return false;
	}
	/* Copied: the entry may be forgotten after the lock is given back. */
	(void)snprintf(pending->user, sizeof(pending->user), "%s", first->user);
	(void)snprintf(pending->reason, sizeof(pending->reason), "%s", first->reason);
	*decision = (struct auth_decision){first->answer, pending->user, pending->reason};
	auth_count(self->metrics, self->mode, first->answer, "cache");
	return true;
}

void auth_self_decide(struct auth_self *self, struct exchange *x, const struct auth_attributes *a,
	auth_decided_fn *fn, void *context, struct auth_pending **ret_pending)
{
	struct bytes authorization = exchange_header(x, "authorization");
	struct auth_decision decision = {AUTH_UNAVAILABLE, "", "no memory for a decision"};
	struct auth_pending *pending = calloc(1, sizeof(*pending));
	struct question first = {.bytes = BUF_SECRET};

	CHECK_OBJ(self, SELF_MAGIC);
	*ret_pending = NULL;
	/* The API server ignores a token after a second blank. */
	bool is_token = authorization.size > 7 &&
			strncasecmp(authorization.data, "bearer ", 7) == 0 &&
			((const char *)authorization.data)[7] != ' ';
	bool review = x->peer->auth == CONFIG_AUTH_REVIEW, certificate = *x->peer->common_name;
	bool known = is_token || (review && certificate);
	if (review && auth_impersonates(x)) {
		known = false;
		decision = (struct auth_decision){
			AUTH_DENIED, x->peer->common_name, AUTH_NO_IMPERSONATION};
	} else if (!known)
		decision = (struct auth_decision){AUTH_UNAUTHENTICATED, "",
			x->peer->n_organizations || *x->peer->common_name
				? "certificates are not recognized here; use a token"
				: ""};
	bool probe = auth_impersonates(x);
	bool secrets = strcmp(a->resource, "secrets") == 0;
	/* A probe has the name: without it, it would be a list. A Secret's question has it, because
	 * a webhook that denies one of them need not know a get without a name: no request is one.
	 */
	bool named = probe || secrets;
	bool good = known && pending &&
		    question_make(&first, x, a,
			    probe   ? QUESTION_PROBE
			    : named ? QUESTION_NAMED
				    : QUESTION_UNNAMED);
	if (good) {
		*pending = (struct auth_pending){.self = self,
			.worker = x->worker,
			.fn = fn,
			.context = context,
			.secrets = secrets,
			.discovery = a->discovery,
			.second.bytes = BUF_SECRET};
		pending->has_second =
			!named && *a->name && question_make(&pending->second, x, a, QUESTION_NAMED);
		good = named || !*a->name || pending->has_second;
	}
	if (first.headers_size > QUESTION_HEADERS_MAX)
		decision = (struct auth_decision){
			AUTH_UNAUTHENTICATED, "", "the credentials are larger than 32 KiB"};
	bool decided = true;
	if (good) {
		*ret_pending = pending; /* before the function can be called on this thread */
		(void)pthread_mutex_lock(&self->lock);
		struct decision_entry *entry = self_find(self, &first, pending->secrets);
		if (entry && review && certificate && !entry->decided && !entry->asking)
			(void)snprintf(
				entry->user, sizeof(entry->user), "%s", x->peer->common_name);
		decided = self_look_up(self, entry, pending, &decision);
		(void)pthread_mutex_unlock(&self->lock);
	}
	if (!decided)
		return;
	*ret_pending = NULL;
	question_release(&first);
	fn(context, &decision);
	if (pending)
		pending_free(pending);
}

static void self_unlink(struct auth_pending **list, struct auth_pending *pending)
{
	while (*list && *list != pending)
		list = &(*list)->next;
	if (*list)
		*list = pending->next;
}

void auth_cancel(struct auth_pending **pending)
{
	struct auth_pending *p = TAKE(*pending);

	if (!p)
		return;
	(void)pthread_mutex_lock(&p->self->lock);
	self_unlink(p->entry ? &p->entry->waiting : &p->self->decided, p);
	(void)pthread_mutex_unlock(&p->self->lock);
	pending_free(p);
}

void auth_self_deliver(struct auth_self *self, struct serve_worker *worker)
{
	CHECK_OBJ(self, SELF_MAGIC);
	for (;;) {
		struct auth_pending *p;

		/* One at a time: a function may cancel another one. */
		(void)pthread_mutex_lock(&self->lock);
		for (p = self->decided; p && p->worker != worker;)
			p = p->next;
		if (p)
			self_unlink(&self->decided, p);
		(void)pthread_mutex_unlock(&self->lock);
		if (!p)
			return;
		p->fn(p->context, &(struct auth_decision){p->answer, p->user, p->reason});
		pending_free(p);
	}
}
