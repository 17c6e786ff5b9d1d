/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/discovery.h"

#include "common/proc.h"
#include "reflector/cluster/catalogue.h"
#include "reflector/cluster/cluster.h"
#include "reflector/cluster/documents.h"
#include "store/env/text_file.h"
#include "tests/unit/api_stub.h"
#include "tests/unit/body.h"
#include "tests/unit/home_rig.h"
#include "tests/unit/unit.h"

/* ---- the catalogue ------------------------------------------------------ */

#define ALL "\"verbs\":[\"get\",\"list\",\"watch\"]"

static const char core_document[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{},\"versions\":[{"
	"\"version\":\"v1\","
	"\"freshness\":\"Current\",\"resources\":["
	"{\"resource\":\"bindings\",\"responseKind\":{\"kind\":\"Binding\"},\"scope\":"
	"\"Namespaced\","
	"\"singularResource\":\"binding\",\"verbs\":[\"create\"]},"
	"{\"resource\":\"events\",\"responseKind\":{\"kind\":\"Event\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"event\",\"shortNames\":[\"ev\"]," ALL "},"
	"{\"resource\":\"nodes\",\"responseKind\":{\"kind\":\"Node\"},\"scope\":\"Cluster\","
	"\"singularResource\":\"node\",\"shortNames\":[\"no\"]," ALL "},"
	"{\"resource\":\"pods\",\"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"Pod\"}"
	","
	"\"scope\":\"Namespaced\",\"singularResource\":\"pod\",\"shortNames\":[\"po\",\"pp\"]," ALL
	"}"
	"]}]}]}";

static const char groups_document[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":["
	"{\"metadata\":{\"name\":\"apps\"},\"versions\":["
	"{\"version\":\"v1\",\"freshness\":\"Current\",\"resources\":[{\"resource\":"
	"\"deployments\","
	"\"responseKind\":{\"group\":\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\"},"
	"\"scope\":\"Namespaced\",\"singularResource\":\"deployment\",\"shortNames\":[\"deploy\"]"
	"," ALL "}]},"
	"{\"version\":\"v1beta1\",\"resources\":[{\"resource\":\"deployments\",\"responseKind\":"
	"{\"kind\":\"Deployment\"},\"scope\":\"Namespaced\",\"singularResource\":"
	"\"deployment\"," ALL "}]}]},"
	"{\"metadata\":{\"name\":\"events.k8s.io\"},\"versions\":[{\"version\":\"v1\","
	"\"resources\":["
	"{\"resource\":\"events\",\"responseKind\":{\"kind\":\"Event\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"event\",\"shortNames\":[\"ev\"]," ALL "}]}]},"
	"{\"metadata\":{\"name\":\"metrics.k8s.io\"},\"versions\":[{\"version\":\"v1beta1\","
	"\"freshness\":\"Stale\"}]},"
	"{\"metadata\":{\"name\":\"example.com\"},\"versions\":["
	"{\"version\":\"v1\",\"freshness\":\"Stale\",\"resources\":[{\"resource\":\"widgets\","
	"\"responseKind\":{\"kind\":\"Widget\"},\"scope\":\"Namespaced\"," ALL "}]},"
	"{\"version\":\"v2\",\"freshness\":\"Current\",\"resources\":[{\"resource\":\"widgets\","
	"\"responseKind\":{\"kind\":\"Widget\"},\"scope\":\"Cluster\",\"singularResource\":"
	"\"widget\"," ALL "},{\"resource\":\"../"
	"evil\",\"responseKind\":{\"kind\":\"Evil\"},\"scope\":\"Cluster\"," ALL "}]}]}]}";

static struct catalogue catalogue;

static void fill(void)
{
	struct buf core = BUF_INIT, groups = BUF_INIT;

	body_put(core_document, &core);
	body_put(groups_document, &groups);
	/* In the wrong order: the places decide. */
	cr_assert_eq(catalogue_add_aggregated(&catalogue, buf_bytes(&groups), 1), 0);
	cr_assert_eq(catalogue_add_aggregated(&catalogue, buf_bytes(&core), 0), 0);
	catalogue_sort(&catalogue);
	buf_release(&core);
	buf_release(&groups);
}

static void empty(void)
{
	catalogue_release(&catalogue);
}

TestSuite(catalogue, .init = fill, .fini = empty);

static void found(const char *name, const char *path, const char *kind, bool namespaced)
{
	struct resource resource;
	char text[512];
	int r = catalogue_find(&catalogue, name, &resource);

	cr_assert_eq(r, FOUND, "%s: %s", name, err_text(r));
	(void)snprintf(text, sizeof(text), "%s%s/%s/%s", *resource.group ? "/apis/" : "/api",
		resource.group, resource.version, resource.plural);
	cr_assert_str_eq(text, path);
	cr_assert_str_eq(resource.kind, kind);
	cr_assert_eq(resource.namespaced, namespaced);
}

static void not_found(const char *name, int code, const char *words)
{
	struct resource resource;
	int r = catalogue_find(&catalogue, name, &resource);

	cr_assert_eq(r, code, "%s: %d", name, r);
	cr_assert(strstr(err_text(r), words), "'%s' is not in: %s", words, err_text(r));
}

Test(catalogue, every_name_of_a_resource_finds_it)
{
	found("pods", "/api/v1/pods", "Pod", true);
	found("pod", "/api/v1/pods", "Pod", true);
	found("po", "/api/v1/pods", "Pod", true);
	found("PP", "/api/v1/pods", "Pod", true);
	found("Pod", "/api/v1/pods", "Pod", true);
	found("PODS", "/api/v1/pods", "Pod", true);
	found("no", "/api/v1/nodes", "Node", false);
}

Test(catalogue, group_and_version_may_be_named)
{
	found("deploy", "/apis/apps/v1/deployments", "Deployment", true);
	found("deployments.apps", "/apis/apps/v1/deployments", "Deployment", true);
	found("deployments.v1beta1.apps", "/apis/apps/v1beta1/deployments", "Deployment", true);
	found("deployments.v1beta1", "/apis/apps/v1beta1/deployments", "Deployment", true);
	found("deployments.app", "/apis/apps/v1/deployments", "Deployment", true);
	found("Deployment.v1.apps", "/apis/apps/v1/deployments", "Deployment", true);
	found("widgets.example.com", "/apis/example.com/v2/widgets", "Widget", false);
	found("pods.v1.", "/api/v1/pods", "Pod", true);
	found("pods.v1", "/api/v1/pods", "Pod", true);
	found("deployments.v1.", "/apis/apps/v1/deployments", "Deployment", true);
}

Test(catalogue, core_group_comes_first_and_stale_versions_last)
{
	found("events", "/api/v1/events", "Event", true);
	found("events.events.k8s.io", "/apis/events.k8s.io/v1/events", "Event", true);
	found("widgets", "/apis/example.com/v2/widgets", "Widget", false);
	found("widgets.v1.example.com", "/apis/example.com/v1/widgets", "Widget", true);
}

Test(catalogue, what_is_not_there_is_told_with_near_names)
{
	not_found("pods.apps", ERR_NO_RESOURCE, "'pods.apps'; did you mean 'pods'?");
	not_found("deploymnets.apps", ERR_NO_RESOURCE, "did you mean 'deployments.apps'?");
	not_found("gadgets.example.com", ERR_NO_RESOURCE, "did you mean 'widgets.example.com'");
	not_found("bindings", ERR_NO_RESOURCE, "can't be listed and watched");
	not_found("", ERR_CONFIG, "not the name");
	not_found(".apps", ERR_CONFIG, "not the name");
	not_found("po ds", ERR_CONFIG, "not the name");
	not_found("../evil", ERR_CONFIG, "not the name");
	not_found("evil", ERR_HTTP, "evil");
}

Test(catalogue, unreadable_group_leaves_doubt_only_about_its_own)
{
	not_found("nothing", ERR_HTTP, "'metrics.k8s.io/v1beta1' could not be read");
	not_found("nothing.metrics.k8s.io", ERR_HTTP, "could not be read");
	not_found("nothing.apps", ERR_NO_RESOURCE, "no resource 'nothing.apps'");
}

Test(catalogue, damaged_documents_are_no_crash)
{
	CLEANUP(buf_release) struct buf groups = BUF_INIT;

	body_put(groups_document, &groups);
	for (size_t size = 0; size < buf_bytes(&groups).size; size++) {
		struct catalogue other = {NULL};
		/* A heap copy: a read after its end is noticed. */
		uint8_t *copy = malloc(size ? size : 1);

		memcpy(copy, groups.data, size);
		cr_assert_eq(catalogue_add_aggregated(&other, BYTES(copy, size), 1), ERR_CORRUPT);
		catalogue_release(&other);
		free(copy);
	}
}

/* ---- over HTTP ---------------------------------------------------------- */

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static struct api_stub *stub;
static struct kubeconfig config;
static struct http *http;
static struct discovery *discovery;
static int ready, ready_result;
static char sentence[256];
static struct resource resource;

static void on_ready(void *arg, int result)
{
	(void)arg;
	ready++;
	ready_result = result;
	(void)snprintf(sentence, sizeof(sentence), "%s", result < 0 ? err_text(result) : "");
}

static void stop(void)
{
	discovery_free(&discovery);
	http_free(&http);
	api_stub_stop(&stub);
}

static void serve(const struct api_stub_answer *answers)
{
	stop();
	stub = api_stub_start(answers);
	config = (struct kubeconfig){.server = (char *)api_stub_url(stub)};
	cr_assert_eq(http_new(&config, &http), 0);
	cr_assert_eq(discovery_new(http, on_ready, NULL, &discovery), 0);
}

/* Serves the documents of the core and of the groups. */
static void serve_aggregated(struct api_stub_answer core, struct api_stub_answer groups)
{
	serve((struct api_stub_answer[]){core, groups, {NULL}});
}

#define CORE   ((struct api_stub_answer){"/api", 200, AGGREGATED, core_document})
#define GROUPS ((struct api_stub_answer){"/apis", 200, AGGREGATED, groups_document})

TestSuite(discovery, .fini = stop);
TestSuite(identity, .fini = stop);

/* Finds a `resource`, fetching if need be; the result of the find, or of the fetch. */
static int find(const char *name)
{
	int before = ready;
	int r = discovery_find(discovery, name, &resource);

	if (r != AGAIN)
		return r;
	for (int i = 0; i < 1000 && ready == before; i++)
		cr_assert_eq(http_poll(http, 100, NULL, 0), 0);
	cr_assert_eq(ready, before + 1);
	if (ready_result < 0)
		return ready_result;
	return discovery_find(discovery, name, &resource);
}

Test(discovery, two_requests_serve_every_name)
{
	serve_aggregated(CORE, GROUPS);
	cr_assert_eq(find("po"), FOUND);
	cr_assert_str_eq(resource.list_kind, "PodList");
	cr_assert_eq(find("widgets.example.com"), FOUND);
	cr_assert_eq(find("nothing.apps"), ERR_NO_RESOURCE);
	cr_assert_eq(api_stub_count(stub), 2);
	discovery_expire(discovery);
	cr_assert_eq(find("po"), FOUND);
	cr_assert_eq(api_stub_count(stub), 4);
}

Test(discovery, tells_all_that_can_be_watched_and_fetches_it_when_it_is_old)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;
	const struct resource *one;
	size_t at = 0;

	serve_aggregated(CORE, GROUPS);
	cr_assert_null(discovery_next(discovery, &at), "nothing is known yet");
	cr_assert_eq(find("po"), FOUND);
	cr_assert_eq(discovery_refresh(discovery, UINT64_MAX), FOUND);
	while ((one = discovery_next(discovery, &at)))
		buf_printf(&names, "%s.%s.%s ", one->plural, one->version, one->group);
	cr_assert_str_eq(buf_cstr(&names),
		"events.v1. nodes.v1. pods.v1. deployments.v1.apps deployments.v1beta1.apps "
		"events.v1.events.k8s.io widgets.v2.example.com widgets.v1.example.com ");
	cr_assert_eq(discovery_refresh(discovery, 0), AGAIN, "too old");
	cr_assert_eq(discovery_known(discovery, "no", &resource), FOUND, "as it was");
}

Test(discovery, what_is_known_need_not_be_sent_again)
{
	serve_aggregated((struct api_stub_answer){"/api", 200, AGGREGATED, core_document,
				 "ETag: \"A1\"\r\n"},
		(struct api_stub_answer){
			"/apis", 200, AGGREGATED, groups_document, "ETag: \"B2\"\r\n"});
	cr_assert_eq(find("po"), FOUND);
	cr_assert_null(strstr(api_stub_last(stub), "If-None-Match"));
	discovery_expire(discovery);
	cr_assert_eq(find("po"), FOUND);
	const char *last = api_stub_last(stub);
	cr_assert(strstr(last, "If-None-Match: \"A1\"") || strstr(last, "If-None-Match: \"B2\""),
		"%s", last);
}

Test(discovery, documents_are_kept_as_they_came_if_somebody_wants_them)
{
	const char *etag;

	serve_aggregated((struct api_stub_answer){"/api", 200, AGGREGATED, core_document,
				 "ETag: \"A1\"\r\n"},
		GROUPS);
	cr_assert_eq(find("po"), FOUND);
	cr_assert_eq(discovery_kept(discovery, 0, &etag)->size, 0);
	discovery_keep(discovery, true);
	discovery_expire(discovery);
	cr_assert_eq(find("po"), FOUND);
	cr_assert_null(strstr(api_stub_last(stub), "If-None-Match"), "else it is not sent again");
	cr_assert_str_eq(buf_cstr(discovery_kept(discovery, 0, &etag)), core_document);
	cr_assert_str_eq(etag, "\"A1\"");
	cr_assert_str_eq(buf_cstr(discovery_kept(discovery, 1, &etag)), groups_document);
	cr_assert_str_eq(etag, "");
}

Test(discovery, documents_that_could_not_be_written_are_written_later)
{
	CLEANUP(home_close) struct home *home = open_home(true);
	const struct config wanted = {.serve.forward = true};
	struct documents documents;
	char text[sizeof(groups_document) + 64];

	serve_aggregated((struct api_stub_answer){"/api", 200, AGGREGATED, core_document}, GROUPS);
	documents_open(&documents, discovery, &wanted, home);
	cr_assert_eq(mkdirat(home_fd(home), "discovery.apis", 0700), 0);
	scratch_write(scratch_path("a/b/store/discovery.apis/mine"), "x");
	cr_assert_eq(documents_due(&documents, 1), 0);
	for (int i = 0; i < 1000 && !ready; i++)
		cr_assert_eq(http_poll(http, 100, NULL, 0), 0);
	documents_write(&documents);
	cr_assert(documents.warned);
	scratch_remove(scratch_path("a/b/store/discovery.apis"));
	cr_assert_eq(documents_due(&documents, 1 + 61 * SECOND_NS), 0);
	cr_assert_not(documents.warned);
	OK(text_file_read(home_fd(home), "discovery.apis", text, sizeof(text), NULL));
	cr_assert(strstr(text, groups_document), "%s", text);
	remove_runtime(home);
}

/* Only a conditional request can be answered with 304. */
Test(discovery, not_modified_out_of_the_blue_is_an_error)
{
	serve_aggregated(CORE, (struct api_stub_answer){"/apis", 304, AGGREGATED, ""});
	cr_assert_eq(find("po"), ERR_HTTP);
}

Test(discovery, older_servers_are_asked_group_by_group_and_one_may_be_broken)
{
	static const char json[] = "application/json";

	serve((struct api_stub_answer[]){
		{"/api", 200, json, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}"},
		{"/apis", 200, json,
			"{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\","
			"\"versions\":["
			"{\"version\":\"v1beta1\"},{\"version\":\"v1\"}],"
			"\"preferredVersion\":"
			"{\"version\":\"v1\"}},{\"name\":\"metrics.k8s.io\",\"versions\":["
			"{\"version\":\"v1\"}]}]}"},
		{"/api/v1", 200, json,
			"{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"pods\","
			"\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Pod\","
			"\"shortNames\":[\"po\"],\"categories\":[\"all\",\"more\"]," ALL
			"},{\"name\":\"pods/status\","
			"\"namespaced\":true,\"kind\":\"Pod\"," ALL "}]}"},
		{"/apis/apps/v1", 200, json,
			"{\"resources\":[{\"name\":\"deployments\",\"namespaced\":true,"
			"\"kind\":\"Deployment\"," ALL "}]}"},
		{"/apis/apps/v1beta1", 200, json,
			"{\"resources\":[{\"name\":\"deployments\",\"namespaced\":true,"
			"\"kind\":\"Deployment\"," ALL "}]}"},
		{"/apis/metrics.k8s.io/v1", 503, "text/plain", "service unavailable\n"},
		{NULL},
	});
	cr_assert_eq(find("po"), FOUND);
	cr_assert_str_eq(resource.plural, "pods");
	cr_assert_str_eq(resource.aliases, "pod po ", "the singular is made of the kind");
	cr_assert_str_eq(resource.categories, "all more ");
	cr_assert(resource.namespaced);
	cr_assert_eq(find("deployment"), FOUND);
	cr_assert_str_eq(resource.version, "v1");
	cr_assert_eq(find("deployments.v1beta1.apps"), FOUND);
	cr_assert_str_eq(resource.version, "v1beta1");
	cr_assert_eq(find("nodes.metrics.k8s.io"), ERR_HTTP);
	cr_assert_eq(api_stub_count(stub), 6);
}

Test(discovery, failure_is_told_and_the_next_find_tries_again)
{
	serve_aggregated(CORE, (struct api_stub_answer){"/apis", 500, "text/plain", "oh"});
	cr_assert_eq(find("po"), ERR_HTTP);
	cr_assert(strstr(sentence, "/apis: HTTP 500 oh"), "%s", sentence);
	size_t before = api_stub_count(stub); /* a failure does not wait for the other answer */
	cr_assert_eq(find("po"), ERR_HTTP);
	cr_assert_gt(api_stub_count(stub), before);
}

Test(discovery, garbled_answer_is_a_syntax_error)
{
	serve_aggregated(
		(struct api_stub_answer){"/api", 200, AGGREGATED, "{\"items\":[{"}, GROUPS);
	cr_assert_eq(find("po"), ERR_SYNTAX);
	cr_assert(strstr(sentence, "/api"), "%s", sentence);
}

/* HEAD, N times ITEM, TAIL; a blank instead of the last comma. */
static char *repeat(const char *head, const char *item, size_t n, const char *tail)
{
	struct buf text = BUF_INIT;

	buf_str(&text, head);
	for (size_t i = 0; i < n; i++)
		buf_str(&text, item);
	buf_truncate(&text, text.size - 1);
	buf_str(&text, tail);
	cr_assert_eq(buf_error(&text), 0);
	(void)buf_cstr(&text);
	return (char *)text.data;
}

static void too_large(const char *content_type, char *groups, const char *words)
{
	serve_aggregated(CORE, (struct api_stub_answer){"/apis", 200, content_type, groups});
	cr_assert_eq(find("po"), ERR_TOO_LARGE, "%s", sentence);
	cr_assert(strstr(sentence, words), "%s", sentence);
	free(groups);
}

/* 300 kB of gzip may be millions of resources, each with its memory, or groups, each with its
 * request. */
Test(discovery, more_than_a_server_can_have_is_an_error)
{
	too_large(AGGREGATED,
		repeat("{\"items\":[{\"metadata\":{},\"versions\":[{\"version\":\"v1\","
		       "\"resources\":[",
			"{\"resource\":\"a\",\"responseKind\":{\"kind\":\"A\"}},", 66000, "]}]}]}"),
		"more than 65536 resources");
	too_large("application/json",
		repeat("{\"groups\":[", "{\"name\":\"g\",\"versions\":[{\"version\":\"v1\"}]},",
			5000, "]}"),
		"more than 4096 groups");
	too_large(AGGREGATED, repeat("{\"items\":[", "         0,", 1600000, "]}"),
		"answer of more than");
}

/* ---- identity ----------------------------------------------------------- */

struct identified {
	int result;
	char text[300];
};

static struct identified identify(int status, const char *body, const char *ca)
{
	const struct kubeconfig config_ = {.server = (char *)"http://127.0.0.1:1",
		.ca = {.data = (char *)ca, .size = ca ? strlen(ca) : 0}};
	const struct fetch_answer answer = {.status = status, .body = bytes_str(body)};
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct identified identified = {.result = identity_read(&config_, &answer, &text)};

	(void)snprintf(identified.text, sizeof(identified.text), "%s", buf_cstr(&text));
	return identified;
}

Test(identity, uid_of_the_namespace_when_it_is_readable)
{
	struct identified i = identify(200, "{\"metadata\":{\"uid\":\"u-1\"}}", NULL);

	cr_assert_eq(i.result, 0);
	cr_assert_str_eq(i.text, "uid:u-1");
}

Test(identity, server_and_ca_when_it_is_not)
{
	struct identified one = identify(403, "{}", "ca 1"), two = identify(403, "{}", "ca 2");

	cr_assert_eq(one.result, 0);
	cr_assert(strstr(one.text, "server:http://127.0.0.1:"));
	cr_assert(strstr(one.text, " ca:"));
	cr_assert_str_neq(strstr(one.text, " ca:"), strstr(two.text, " ca:"));
}

Test(identity, two_uids_or_two_addresses_tell_clusters_apart)
{
	static const struct {
		const char *was, *is;
		bool other, better;
	} rows[] = {
		{"uid:a", "uid:a", false, true},
		{"uid:a", "uid:b", true, true},
		{"uid:a", "server:https://h ca:1", false, false},
		{"server:https://h ca:1", "uid:a", false, true},
		{"", "uid:a", false, true},
		{"", "server:https://h ca:1", false, true},
		{"server:https://h ca:1", "server:https://h ca:1", false, true},
		{"server:https://h ca:1", "server:https://h ca:2", true, true},
		{"server:https://h ca:1", "server:https://i ca:1", true, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(identity_is_other(rows[i].was, rows[i].is), rows[i].other, "%s / %s",
			rows[i].was, rows[i].is);
		cr_assert_eq(identity_is_better(rows[i].was, rows[i].is), rows[i].better, "%s / %s",
			rows[i].was, rows[i].is);
	}
}

Test(identity, is_never_guessed)
{
	cr_assert_eq(identify(503, "", NULL).result, ERR_HTTP);
	cr_assert_eq(identify(401, "", NULL).result, ERR_HTTP);
	cr_assert_eq(identify(200, "{\"metadata\":{}}", NULL).result, ERR_PROTOCOL);
	cr_assert_eq(identify(200, "<html>", NULL).result, ERR_PROTOCOL);
	cr_assert_eq(identify(200, "?", NULL).result, ERR_PROTOCOL);
}
