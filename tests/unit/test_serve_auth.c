/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>

#include "common/proc.h"
#include "common/text/base64.h"
#include "serve/auth/auth.h"
#include "serve/auth/auth_self.h"
#include "serve/metrics.h"
#include "serve/worker_internal.h"
#include "store/env/text_file.h"
#include "tests/unit/api_stub.h"
#include "tests/unit/unit.h"

#define WHO     "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define REVIEWS "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

static struct worker_shared shared;
static struct serve_worker worker;
static struct auth *auth;
static struct config *config;
static int runtime_fd;
static struct api_stub *stub;

struct seen {
	int n;
	enum auth_answer answer;
	char user[300], reason[300];
};

static void on_decided(void *context, const struct auth_decision *decision)
{
	struct seen *seen = context;

	seen->n++;
	seen->answer = decision->answer;
	(void)snprintf(seen->user, sizeof(seen->user), "%s", decision->user);
	(void)snprintf(seen->reason, sizeof(seen->reason), "%s", decision->reason);
}

static void open_auth(uint64_t keep_ns)
{
	auth_close(&auth);
	OK(auth_open(&(struct auth_options){.config = config,
			     .metrics = shared.metrics,
			     .runtime_fd = runtime_fd,
			     .owner = 1000,
			     .has_group = true,
			     .group = 50,
			     .self = true,
			     .keep_ns = keep_ns},
		&auth));
}

static void set_up(void)
{
	runtime_fd = open(scratch(), O_RDONLY | O_DIRECTORY);
	cr_assert_geq(runtime_fd, 0);
	cr_assert_eq(config_parse("serve: {auth: self}", 19, "k.yaml", &config), 0);
	cr_assert_eq(metrics_new(&shared.metrics), 0);
	cr_assert_eq(serve_worker_init(&worker, &shared), 0);
	open_auth(0);
}

static void tear_down(void)
{
	api_stub_stop(&stub);
	auth_close(&auth);
	serve_worker_release(&worker);
	metrics_free(&shared.metrics);
	config_free(&config);
	(void)close(runtime_fd);
}

TestSuite(serve_auth, .init = set_up, .fini = tear_down);

/* Points to a server with these answers in place of the one before. */
static void serve(const struct api_stub_answer *answers)
{
	char text[300];

	api_stub_stop(&stub);
	stub = api_stub_start(answers);
	(void)snprintf(text, sizeof(text), "{\"insecure\": false,\n\"server\": \"%s\"}\n",
		api_stub_url(stub));
	cr_assert_eq(text_file_replace(runtime_fd, "upstream", text, 0600), 0);
}

/* Each question has this answer. */
static void serve_review(struct api_stub_answer answer)
{
	serve((struct api_stub_answer[]){answer, {NULL}});
}

static void serve_failures(void)
{
	serve_review((struct api_stub_answer){REVIEWS, 500, "application/json", "{}"});
}

static void review(const char *status)
{
	static char body[500];

	(void)snprintf(body, sizeof(body),
		"{\"kind\":\"SelfSubjectAccessReview\",\"metadata\":{\"creationTimestamp\":null},"
		"\"spec\":{},\"status\":%s}",
		status);
	serve((const struct api_stub_answer[]){{REVIEWS, 201, "application/json", body},
		{WHO, 201, "application/json",
			"{\"kind\":\"SelfSubjectReview\",\"status\":{\"userInfo\":{"
			"\"username\":\"jane\"}}}"},
		{NULL}});
}

static const struct auth_attributes list_pods = {.verb = "list",
	.group = "",
	.version = "v1",
	.resource = "pods",
	.subresource = "",
	.namespace_ = "web",
	.name = "",
	.path = "",
	.label_selector = "",
	.field_selector = ""};

/* Asks for a decision with HEADERS ("name", "value", ...), and waits for it. */
static struct seen decide(enum config_auth mode, const struct auth_attributes *attributes,
	const struct exchange_peer *who, struct bytes host, const char *const *headers)
{
	struct exchange_peer peer = who ? *who : (struct exchange_peer){.common_name = ""};
	struct exchange_header list[8];
	struct exchange x = {.worker = &worker, .peer = &peer, .headers = list, .host = host};
	struct auth_pending *pending = NULL;
	struct seen seen = {0};

	peer.auth = mode;
	for (; headers && headers[0]; headers += 2)
		list[x.n_headers++] =
			(struct exchange_header){bytes_str(headers[0]), bytes_str(headers[1])};
	auth_decide(auth, &x, attributes, on_decided, &seen, &pending);
	cr_assert_eq(seen.n == 1, pending == NULL);
	while (!seen.n) {
		struct pollfd woken = {.fd = worker.wake_fd, .events = POLLIN};
		uint64_t count;

		cr_assert_eq(poll(&woken, 1, 60000), 1, "no decision");
		cr_assert_eq(read(worker.wake_fd, &count, sizeof(count)), sizeof(count));
		auth_deliver(auth, &worker);
	}
	cr_assert_eq(seen.n, 1);
	return seen;
}

static struct seen decide_self(const struct auth_attributes *attributes, const char *authorization)
{
	const char *headers[] = {"authorization", authorization, "accept", "x", NULL};

	return decide(
		CONFIG_AUTH_SELF, attributes, NULL, BYTES_NONE, authorization ? headers : NULL);
}

/* ---- self --------------------------------------------------------------- */

Test(serve_auth, one_review_with_the_token_decides_and_is_kept)
{
	review("{\"allowed\":true,\"reason\":\"RBAC: allowed by \\\"x\\\"\"}");
	struct seen seen = decide_self(&list_pods, "Bearer abc");
	cr_assert_eq(seen.answer, AUTH_ALLOWED);
	cr_assert_str_eq(seen.reason, "RBAC: allowed by \"x\"");
	cr_assert_neq(strstr(api_stub_last(stub), "authorization: Bearer abc"), NULL);
	cr_assert_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_ALLOWED);
	cr_assert_eq(api_stub_count(stub), 1);
	/* Another token, or another question, is another decision. */
	(void)decide_self(&list_pods, "Bearer abd");
	cr_assert_eq(api_stub_count(stub), 2);
	struct auth_attributes other = list_pods;
	other.namespace_ = "shop";
	(void)decide_self(&other, "Bearer abc");
	cr_assert_eq(api_stub_count(stub), 3);
}

/* Asks for bob, by a review that allows everything. */
static struct seen decide_for_bob(const struct auth_attributes *attributes)
{
	const char *headers[] = {"authorization", "Bearer abc", "impersonate-user", "bob",
		"impersonate-group", "dev", "impersonate-group", "ops", NULL};

	return decide(CONFIG_AUTH_SELF, attributes, NULL, BYTES_NONE, headers);
}

#define FOR_BOB(path_, status_) \
	serve((const struct api_stub_answer[]){ \
		{REVIEWS, 201, "application/json", "{\"status\":{\"allowed\":true}}"}, \
		{path_, status_, "application/json", "{\"message\":\"alice is not bob\"}"}, \
		{NULL}})

Test(serve_auth, who_impersonates_asks_for_what_it_reads)
{
	struct auth_attributes get = list_pods, watch = list_pods;

	FOR_BOB("/api/v1/namespaces/web/pods", 422);
	cr_expect_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_ALLOWED);
	cr_expect_eq(decide_for_bob(&list_pods).answer, AUTH_ALLOWED);
	cr_expect_eq(decide_for_bob(&list_pods).answer, AUTH_ALLOWED);
	cr_expect_eq(api_stub_count(stub), 2, "bob's is another question, and kept");
	const char *last = api_stub_last(stub);
	cr_expect(strstr(last, "GET /api/v1/namespaces/web/pods?") &&
			  strstr(last, "resourceVersionMatch=Exact") && !strstr(last, "watch=") &&
			  strstr(last, "impersonate-user: bob") &&
			  strstr(last, "impersonate-group: dev") &&
			  strstr(last, "impersonate-group: ops"),
		"%s", last);
	watch.verb = "watch";
	watch.label_selector = "app in (a,b)";
	watch.field_selector = "spec.nodeName=n1";
	cr_expect_eq(decide_for_bob(&watch).answer, AUTH_ALLOWED);
	last = api_stub_last(stub);
	cr_expect(strstr(last, "&watch=true&labelSelector=app%20in%20%28a%2Cb%29"
			       "&fieldSelector=spec.nodeName%3Dn1 "),
		"%s", last);
	FOR_BOB("/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab", 200);
	get.verb = "get";
	get.group = "rbac.authorization.k8s.io";
	get.resource = "clusterroles";
	get.namespace_ = "";
	get.name = "a:b";
	cr_expect_eq(decide_for_bob(&get).answer, AUTH_ALLOWED);
	FOR_BOB("/api/v1/namespaces/web", 404);
	get.group = "";
	get.resource = "namespaces";
	get.name = get.namespace_ = "web";
	cr_expect_eq(decide_for_bob(&get).answer, AUTH_ALLOWED);
}

Test(serve_auth, who_may_only_review_as_another_user_reads_nothing_as_it)
{
	static const struct {
		int status;
		enum auth_answer answer;
	} cases[] = {{403, AUTH_DENIED}, {400, AUTH_DENIED}, {401, AUTH_UNAUTHENTICATED},
		{429, AUTH_BUSY}, {500, AUTH_UNAVAILABLE}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		open_auth(0);
		FOR_BOB("/api/v1/namespaces/web/pods", cases[i].status);
		struct seen seen = decide_for_bob(&list_pods);
		cr_expect_eq(seen.answer, cases[i].answer, "%d", cases[i].status);
		cr_expect(seen.answer != AUTH_DENIED || strstr(seen.reason, "alice is not bob"),
			"%s", seen.reason);
	}
}

Test(serve_auth, denied_without_the_name_is_asked_with_it)
{
	struct auth_attributes get = list_pods;

	review("{\"allowed\":false,\"reason\":\"no\"}");
	get.verb = "get";
	get.name = "a";
	struct seen seen = decide_self(&get, "Bearer abc");
	cr_assert_eq(seen.answer, AUTH_DENIED);
	cr_assert_str_eq(seen.user, "jane");
	cr_assert_str_eq(seen.reason, "no");
	cr_assert_eq(api_stub_count(stub), 3,
		"the first denial is followed by a question for the user's name");
	/* The first decision holds for each name. */
	get.name = "b";
	cr_assert_eq(decide_self(&get, "Bearer abc").answer, AUTH_DENIED);
	cr_assert_eq(api_stub_count(stub), 4);
	cr_assert_str_eq(decide_self(&get, "Bearer abc").user, "jane");
	cr_assert_eq(api_stub_count(stub), 4);
}

Test(serve_auth, a_secret_is_only_asked_for_by_its_name)
{
	struct auth_attributes get = list_pods;

	get.verb = "get";
	get.resource = "secrets";
	get.name = "a";
	review("{\"allowed\":true}");
	cr_assert_eq(decide_self(&get, "Bearer abc").answer, AUTH_ALLOWED);
	cr_assert_eq(decide_self(&get, "Bearer abc").answer, AUTH_ALLOWED);
	cr_assert_eq(api_stub_count(stub), 1);
	review("{\"denied\":true,\"reason\":\"by a webhook\"}");
	get.name = "b";
	cr_assert_eq(decide_self(&get, "Bearer abc").answer, AUTH_DENIED);
	get.name = "a";
	cr_assert_eq(decide_self(&get, "Bearer abc").answer, AUTH_ALLOWED, "it is kept");
}

Test(serve_auth, without_a_token_nobody_is_asked)
{
	review("{\"allowed\":true}");
	cr_assert_eq(decide_self(&list_pods, NULL).answer, AUTH_UNAUTHENTICATED);
	cr_assert_eq(decide_self(&list_pods, "Basic YTpi").answer, AUTH_UNAUTHENTICATED);
	cr_assert_eq(decide_self(&list_pods, "Bearer ").answer, AUTH_UNAUTHENTICATED);
	cr_assert_eq(decide_self(&list_pods, "Bearer  t").answer, AUTH_UNAUTHENTICATED);
	cr_assert_eq(api_stub_count(stub), 0);
}

Test(serve_auth, refused_tokens_and_failures_are_told_apart)
{
	static const struct {
		struct api_stub_answer answer;
		enum auth_answer expected;
	} cases[] = {
		{{REVIEWS, 401, "application/json", "{}"}, AUTH_UNAUTHENTICATED},
		{{REVIEWS, 401, "application/json", "{\"kind\":\"Status\"}", .fault = STUB_CUT},
			AUTH_UNAUTHENTICATED},
		{{REVIEWS, 403, "application/json", "{}"}, AUTH_DENIED},
		{{REVIEWS, 400, "application/json", "{}"}, AUTH_DENIED},
		{{REVIEWS, 422, "application/json", "{}"}, AUTH_DENIED},
		{{REVIEWS, 500, "application/json", "{}"}, AUTH_UNAVAILABLE},
		{{REVIEWS, 429, "application/json", "{}"}, AUTH_BUSY},
		{{REVIEWS, 201, "application/json", "{\"status\":{}}"}, AUTH_DENIED},
		{{REVIEWS, 201, "application/json", "[1"}, AUTH_UNAVAILABLE},
		{{REVIEWS, 201, "application/json", ""}, AUTH_UNAVAILABLE},
		{{REVIEWS, 201, "application/json", "{\"status\":{\"allowed\":\"yes\"}}"},
			AUTH_DENIED},
		{{REVIEWS, 301, "application/json", "{}", "Location: http://127.0.0.1:1/\r\n"},
			AUTH_UNAVAILABLE},
		{{REVIEWS, 201, "application/json", "{\"status\":{\"allowed\":true}}",
			 .fault = STUB_CUT},
			AUTH_UNAVAILABLE},
		{{REVIEWS, 201, "application/json", "", .fault = STUB_RESET}, AUTH_UNAVAILABLE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char token[32];

		serve_review(cases[i].answer);
		(void)snprintf(token, sizeof(token), "Bearer t%zu", i);
		struct seen seen = decide_self(&list_pods, token);
		cr_expect_eq(
			seen.answer, cases[i].expected, "%zu: %d %s", i, seen.answer, seen.reason);
	}
}

Test(serve_auth, without_the_reflectors_file_no_decision_is_possible)
{
	struct seen seen = decide_self(&list_pods, "Bearer abc");

	cr_assert_eq(seen.answer, AUTH_UNAVAILABLE);
	cr_assert(strstr(seen.reason, "'upstream'"), "%s", seen.reason);
}

Test(serve_auth, server_that_fails_is_not_asked_for_each_request)
{
	uint64_t began = proc_monotonic_ns();
	size_t n = 0;

	serve_failures();
	for (; n < 1000 && proc_monotonic_ns() - began < UINT64_C(300000000); n++)
		cr_assert_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_UNAVAILABLE);
	/* One question a second, and this took less than a few. */
	cr_assert_leq(
		api_stub_count(stub), 1 + (proc_monotonic_ns() - began) / UINT64_C(1000000000));
	cr_assert_gt(n, 1);
}

/* A question times out after 10 s; all of these are answered before one has. */
Test(serve_auth, silent_server_leaves_what_was_allowed)
{
	struct auth_attributes secrets = list_pods, named = list_pods;

	review("{\"allowed\":true}");
	open_auth(1);
	secrets.resource = "secrets";
	cr_assert_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_ALLOWED);
	cr_assert_eq(decide_self(&secrets, "Bearer abc").answer, AUTH_ALLOWED);
	serve_review((struct api_stub_answer){REVIEWS, .fault = STUB_SILENT});
	uint64_t began = proc_monotonic_ns();
	for (int i = 0; i < 20; i++)
		cr_assert_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_ALLOWED);
	/* A right to all objects of a kind is one to each. */
	named.name = "a";
	cr_assert_eq(decide_self(&named, "Bearer abc").answer, AUTH_ALLOWED);
	cr_assert_lt(proc_monotonic_ns() - began, UINT64_C(8000000000));
	cr_assert_eq(api_stub_count(stub), 1, "one question serves all");
	cr_assert_eq(decide_self(&secrets, "Bearer abc").answer, AUTH_UNAVAILABLE);
	/* The server is known to be silent now, so no caller waits for it. */
	began = proc_monotonic_ns();
	cr_assert_eq(decide_self(&list_pods, "Bearer abd").answer, AUTH_UNAVAILABLE);
	cr_assert_lt(proc_monotonic_ns() - began, UINT64_C(5000000000));
	/* The server is back, and says no. */
	review("{\"allowed\":false}");
	for (enum auth_answer answer = AUTH_ALLOWED; answer != AUTH_DENIED;)
		answer = decide_self(&list_pods, "Bearer abc").answer;
}

struct implication {
	const char *verb, *resource, *namespace_, *name, *labels, *fields;
};

static struct auth_attributes attributes_of(const struct implication *i)
{
	return (struct auth_attributes){.verb = i->verb,
		.group = "",
		.version = "v1",
		.resource = i->resource,
		.subresource = "",
		.namespace_ = i->namespace_ ? i->namespace_ : "",
		.name = i->name ? i->name : "",
		.path = "",
		.label_selector = i->labels ? i->labels : "",
		.field_selector = i->fields ? i->fields : ""};
}

Test(serve_auth, while_the_server_is_away_a_right_implies_what_it_shows)
{
	static const struct {
		struct implication allowed, asked;
		enum auth_answer expected;
	} cases[] = {
		{{"list", "pods"}, {"list", "pods"}, AUTH_ALLOWED},
		{{"list", "pods"}, {"list", "pods", "web"}, AUTH_ALLOWED},
		{{"list", "pods"},
			{"list", "pods", "web", .labels = "a=b", .fields = "metadata.name=x"},
			AUTH_ALLOWED},
		{{"list", "pods"}, {"get", "pods", "web", "a"}, AUTH_ALLOWED},
		{{"list", "pods"}, {"watch", "pods", "web"}, AUTH_ALLOWED},
		{{"watch", "pods"}, {"list", "pods", "web"}, AUTH_ALLOWED},
		{{"watch", "pods", "web"}, {"get", "pods", "web", "a"}, AUTH_ALLOWED},
		{{"list", "namespaces"}, {"get", "namespaces", "web", "web"}, AUTH_ALLOWED},
		{{"list", "pods", .labels = "a=b"},
			{"list", "pods", "web", .labels = "a=b", .fields = "x=y"}, AUTH_ALLOWED},
		{{"get", "pods", "web", "a"}, {"get", "pods", "web", "b"},
			AUTH_ALLOWED}, /* it was asked without the name */
		/* Another place, more than was shown, another verb. */
		{{"list", "pods", "web"}, {"list", "pods"}, AUTH_UNAVAILABLE},
		{{"list", "pods", "web"}, {"get", "pods", "shop", "a"}, AUTH_UNAVAILABLE},
		{{"list", "pods", .labels = "a=b"}, {"list", "pods"}, AUTH_UNAVAILABLE},
		{{"list", "pods", .labels = "a=b"}, {"list", "pods", .labels = "a=c"},
			AUTH_UNAVAILABLE},
		{{"list", "pods", .labels = "a=b"}, {"get", "pods", "web", "a"}, AUTH_UNAVAILABLE},
		{{"list", "pods", .fields = "spec.nodeName=n1"}, {"watch", "pods"},
			AUTH_UNAVAILABLE},
		{{"list", "pods"}, {"list", "services"}, AUTH_UNAVAILABLE},
		{{"get", "pods", "web", "a"}, {"list", "pods", "web"}, AUTH_UNAVAILABLE},
		{{"list", "pods"}, {"delete", "pods", "web", "a"}, AUTH_UNAVAILABLE},
		{{"list", "secrets"}, {"get", "secrets", "web", "a"}, AUTH_UNAVAILABLE},
	};
	char token[32];

	review("{\"allowed\":true}");
	open_auth(1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct auth_attributes allowed = attributes_of(&cases[i].allowed);

		(void)snprintf(token, sizeof(token), "Bearer t%zu", i);
		cr_assert_eq(decide_self(&allowed, token).answer, AUTH_ALLOWED);
	}
	serve_failures();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct auth_attributes asked = attributes_of(&cases[i].asked);

		(void)snprintf(token, sizeof(token), "Bearer t%zu", i);
		struct seen seen = decide_self(&asked, token);
		cr_expect_eq(
			seen.answer, cases[i].expected, "%zu: %d %s", i, seen.answer, seen.reason);
	}
	struct auth_attributes pods = attributes_of(&(struct implication){"list", "pods", "web"});
	cr_assert_eq(decide_self(&pods, "Bearer t").answer, AUTH_UNAVAILABLE, "another client");
}

Test(serve_auth, what_the_server_refused_is_not_implied)
{
	struct auth_attributes all = list_pods, one = list_pods;

	review("{\"allowed\":true}");
	open_auth(1);
	all.namespace_ = "";
	one.verb = "get";
	one.name = "a";
	cr_assert_eq(decide_self(&all, "Bearer abc").answer, AUTH_ALLOWED);
	review("{\"allowed\":false}");
	cr_assert_eq(decide_self(&one, "Bearer abc").answer, AUTH_DENIED);
	serve_failures();
	cr_assert_eq(decide_self(&one, "Bearer abc").answer, AUTH_UNAVAILABLE);
	cr_assert_eq(decide_self(&list_pods, "Bearer abc").answer, AUTH_ALLOWED);
}

Test(serve_auth, cancelled_decisions_are_not_delivered)
{
	struct exchange_header header = {BYTES_LIT("authorization"), BYTES_LIT("Bearer abc")};
	struct exchange_peer peer = {.auth = CONFIG_AUTH_SELF, .common_name = ""};
	struct exchange x = {.worker = &worker, .peer = &peer, .headers = &header, .n_headers = 1};
	struct auth_pending *a = NULL, *b = NULL;
	struct seen seen_a = {0}, seen_b = {0};

	review("{\"allowed\":true}");
	auth_decide(auth, &x, &list_pods, on_decided, &seen_a, &a);
	auth_decide(auth, &x, &list_pods, on_decided, &seen_b, &b);
	cr_assert(a && b);
	auth_cancel(&a);
	cr_assert_null(a);
	while (!seen_b.n) {
		struct pollfd woken = {.fd = worker.wake_fd, .events = POLLIN};

		cr_assert_eq(poll(&woken, 1, 60000), 1);
		auth_deliver(auth, &worker);
	}
	cr_assert_eq(seen_a.n, 0);
	cr_assert_eq(api_stub_count(stub), 1, "both wait for one question");
}

/* ---- tokens ------------------------------------------------------------- */

/* Neither a kept decision nor offlineGrace outlives the token. */
Test(serve_auth, a_right_ends_with_its_token)
{
	CLEANUP(buf_release) struct buf claims = BUF_INIT, token = BUF_INIT;
	uint64_t end_s = proc_realtime_ns() / 1000000000 + 2;

	review("{\"allowed\":true}");
	buf_printf(&claims, "{\"sub\":\"jane\",\"exp\":%llu}", (unsigned long long)end_s);
	buf_str(&token, "Bearer e30.");
	base64url_put(buf_bytes(&claims), &token);
	buf_str(&token, ".c2ln");
	cr_assert_eq(decide_self(&list_pods, buf_cstr(&token)).answer, AUTH_ALLOWED);
	serve_failures();
	while (decide_self(&list_pods, buf_cstr(&token)).answer == AUTH_ALLOWED) {
		cr_assert_leq(proc_realtime_ns() / 1000000000, end_s);
		(void)poll(NULL, 0, 20);
	}
	cr_assert_geq(proc_realtime_ns() / 1000000000, end_s);
	cr_assert_eq(decide_self(&list_pods, buf_cstr(&token)).answer, AUTH_UNAVAILABLE);
}

Test(serve_auth, claims_of_tokens_are_read)
{
	CLEANUP(buf_release) struct buf headers = BUF_INIT;
	static const char claims[] =
		"{\"sub\":\"system:serviceaccount:web:app\",\"exp\":1700000000}";
	struct token_facts facts;

	buf_str(&headers, "impersonate-user: x");
	buf_byte(&headers, 0);
	buf_str(&headers, "authorization: Bearer eyJhbGciOiJub25lIn0.");
	base64url_put(BYTES(claims, sizeof(claims) - 1), &headers);
	buf_str(&headers, ".c2ln");
	buf_byte(&headers, 0);
	buf_byte(&headers, 0);
	token_read(headers.data, &facts);
	cr_assert_str_eq(facts.user, "system:serviceaccount:web:app");
	cr_assert_eq(facts.expires_s, 1700000000);
	cr_assert(token_expired(&facts));
	cr_assert_eq(token_cap_ns(&facts, 1000), 0);
	token_read("authorization: Bearer abc\0", &facts);
	cr_assert_str_eq(facts.user, "");
	cr_assert(!token_expired(&facts));
	token_read("authorization: Bearer a..c\0", &facts);
	cr_assert_str_eq(facts.user, "");
	token_read("authorization: Bearer a.%%%.c\0", &facts);
	cr_assert_eq(token_cap_ns(&facts, 1000), 1000);
}

/* ---- peers, open -------------------------------------------------------- */

Test(serve_auth, peers_are_the_owner_root_and_the_group)
{
	static const gid_t groups[] = {7, 50}, others[] = {7, 51};
	const struct {
		struct exchange_peer peer;
		enum auth_answer expected;
	} cases[] = {
		{{.local = true, .uid = 0}, AUTH_ALLOWED},
		{{.local = true, .uid = 1000}, AUTH_ALLOWED},
		{{.local = true, .uid = 1001, .groups = others, .n_groups = 2}, AUTH_DENIED},
		{{.local = true, .uid = 1001, .groups = groups, .n_groups = 2}, AUTH_ALLOWED},
	};

	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(decide(CONFIG_AUTH_PEERS, &list_pods, &cases[i].peer, BYTES_NONE, NULL)
				     .answer,
			cases[i].expected, "%zu", i);
}

Test(serve_auth, impersonation_is_refused_where_nobody_can_decide_on_it)
{
	const struct exchange_peer root = {.local = true, .uid = 0, .common_name = ""};
	const struct exchange_peer here = {.loopback = true, .common_name = ""};
	const char *headers[] = {"impersonate-user", "bob", NULL};
	struct seen seen = decide(CONFIG_AUTH_PEERS, &list_pods, &root, BYTES_NONE, headers);

	cr_expect_eq(seen.answer, AUTH_DENIED);
	cr_expect(strstr(seen.reason, "impersonation"), "%s", seen.reason);
	seen = decide(CONFIG_AUTH_OPEN, &list_pods, &here, BYTES_LIT("localhost"), headers);
	cr_expect_eq(seen.answer, AUTH_DENIED);
	cr_expect(strstr(seen.reason, "impersonation"), "%s", seen.reason);
	cr_expect_eq(decide(CONFIG_AUTH_PEERS, &list_pods, &root, BYTES_NONE, NULL).answer,
		AUTH_ALLOWED);
}

Test(serve_auth, open_is_for_local_programs_and_not_for_web_pages_and_secrets)
{
	static const struct exchange_peer here = {.loopback = true, .common_name = ""};
	static const struct {
		const char *host, *origin, *resource;
		enum auth_answer expected;
	} cases[] = {{"localhost:6445", NULL, "pods", AUTH_ALLOWED},
		{"[::1]:6445", NULL, "pods", AUTH_ALLOWED},
		{"evil.example", NULL, "pods", AUTH_DENIED},
		{"localhost.evil", NULL, "pods", AUTH_DENIED},
		{"localhost", NULL, "secrets", AUTH_DENIED},
		{"localhost", "https://evil.example", "pods", AUTH_DENIED},
		/* fabric8's client */
		{"localhost:6445", "https://localhost:6445", "pods", AUTH_ALLOWED},
		{"localhost:6445", "https://localhost:6446", "pods", AUTH_DENIED},
		{"localhost:6445", "https://localhost", "pods", AUTH_DENIED},
		{"localhost:6445", "http://localhost:6445", "pods", AUTH_DENIED},
		{"localhost:6445", "https://127.0.0.1:6445", "pods", AUTH_DENIED},
		{"localhost:6445", "localhost:6445", "pods", AUTH_DENIED},
		{"localhost:6445", "null", "pods", AUTH_DENIED},
		{"localhost:6445", "", "pods", AUTH_DENIED},
		{"localhost:6445", "https://", "pods", AUTH_DENIED},
		{"localhost:6445", "https://localhost:64450", "pods", AUTH_DENIED}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *headers[] = {"origin", cases[i].origin, NULL};
		struct auth_attributes asked = list_pods;

		asked.resource = cases[i].resource;
		cr_expect_eq(decide(CONFIG_AUTH_OPEN, &asked, &here, bytes_str(cases[i].host),
				     cases[i].origin ? headers : NULL)
				     .answer,
			cases[i].expected, "%zu", i);
	}
}
