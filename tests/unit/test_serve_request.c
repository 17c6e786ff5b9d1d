/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the API server's dialect: paths, options, Accept, tokens, Status objects. */
#include "common/text/base64.h"
#include "common/text/utf8.h"
#include "common/value/custom.h"
#include "serve/api/api_accept.h"
#include "serve/api/api_kinds.h"
#include "serve/api/api_object.h"
#include "serve/api/api_options.h"
#include "serve/api/api_path.h"
#include "serve/api/api_token.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

TestSuite(serve_request, .timeout = 20);

static struct api_status status;

static const char *text(const struct api_status *s)
{
	static struct buf json;

	buf_reset(&json);
	cr_assert_eq(api_status_write(s, &json), 0);
	return buf_cstr(&json);
}

/* ---- paths -------------------------------------------------------------- */

static void path_is(const char *given, enum api_path_kind kind, const char *parts)
{
	struct api_path path;
	char have[256];

	cr_assert_eq(api_path_parse(bytes_str(given), &path), 0);
	cr_expect_eq(path.kind, kind, "%s: %d", given, path.kind);
	(void)snprintf(have, sizeof(have), "%s|%s|%s|%s|%s|%s%s%s", path.group, path.version,
		path.namespace_, path.resource, path.name, path.subresource,
		path.is_watch ? " watch" : "", path.is_long ? " long" : "");
	if (kind != API_PATH_OTHER)
		cr_expect_str_eq(have, parts, "%s: %s", given, have);
	api_path_release(&path);
}

Test(serve_request, paths)
{
	path_is("/", API_PATH_ROOT, "|||||");
	path_is("/api", API_PATH_API, "|||||");
	path_is("/api/", API_PATH_API, "|||||");
	path_is("/apis", API_PATH_GROUPS, "|||||");
	path_is("/apis/apps", API_PATH_GROUP, "apps|||||");
	path_is("/api/v1", API_PATH_RESOURCES, "|v1||||");
	path_is("/apis/apps/v1/", API_PATH_RESOURCES, "apps|v1||||");
	path_is("/api/v1/pods", API_PATH_RESOURCE, "|v1||pods||");
	path_is("/api/v1/namespaces/d/pods", API_PATH_RESOURCE, "|v1|d|pods||");
	path_is("/api/v1/namespaces/d/pods/a", API_PATH_RESOURCE, "|v1|d|pods|a|");
	path_is("/api/v1/namespaces/d/pods/a/log", API_PATH_RESOURCE, "|v1|d|pods|a|log");
	path_is("/api/v1/namespaces/d/pods/a/proxy/x/y", API_PATH_RESOURCE,
		"|v1|d|pods|a|proxy long");
	path_is("/api/v1/namespaces", API_PATH_RESOURCE, "|v1||namespaces||");
	path_is("/api/v1/namespaces/d", API_PATH_RESOURCE, "|v1||namespaces|d|");
	path_is("/api/v1/namespaces/d/status", API_PATH_RESOURCE, "|v1||namespaces|d|status");
	path_is("/api/v1/namespaces/d/finalize", API_PATH_RESOURCE, "|v1||namespaces|d|finalize");
	path_is("/api/v1/watch/pods", API_PATH_RESOURCE, "|v1||pods|| watch");
	path_is("/apis/apps/v1/watch/namespaces/d/deployments/x", API_PATH_RESOURCE,
		"apps|v1|d|deployments|x| watch");
	path_is("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa", API_PATH_RESOURCE,
		"rbac.authorization.k8s.io|v1||clusterroles|system:a|");
	path_is("/version", API_PATH_VERSION, "||||version|");
	path_is("/version/", API_PATH_VERSION, "||||version|");
}

/* S91 */
Test(serve_request, paths_that_name_nothing)
{
	static const char *const paths[] = {"", "x", "//", "/api//v1", "/api/v1/pods/",
		"/api/v1/namespaces/../pods", "/api/v1/namespaces/%2e%2e/pods", "/api/v1/pods/%2e",
		"/api/v1/namespaces/d/pods/a%2fb", "/api/v1/namespaces/d/pods/a%25b",
		"/api/v1/namespaces/d/pods/a%00", "/version//", "/version/x", "/livez/x/",
		"/livez/a/b", "/openapi/v3", "/nothing"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		path_is(paths[i], API_PATH_OTHER, "");
	path_is("/api/v1/pods/%", API_PATH_MALFORMED, "|||||");
	path_is("/api/v1/namespaces/d/pods/%g0", API_PATH_MALFORMED, "|||||");
	path_is("/%zz", API_PATH_MALFORMED, "|||||");
}

/* ---- options ------------------------------------------------------------ */

static int parse(const char *query, struct api_options *options)
{
	api_status_release(&status);
	return api_options_parse(bytes_str(query), true, options, &status);
}

/* Expects the message refusing the options; NULL if they are good. */
static void options_are(const char *query, bool is_watch, int code, const char *message)
{
	struct api_options options;
	int r = parse(query, &options);

	if (r == 0)
		r = api_options_validate(&options, is_watch || options.watch, &status);
	cr_expect_eq(r, code, "%s: %d %s", query, r, buf_cstr(&status.message));
	if (message)
		cr_expect_str_eq(buf_cstr(&status.message), message, "%s: %s", query,
			buf_cstr(&status.message));
	api_options_release(&options);
}

Test(serve_request, s46_booleans_as_the_api_server_decodes_them) /* S46 */
{
	static const char *const yes[] = {"watch=true", "watch=True", "watch=1", "watch=yes",
		"watch=", "watch", "watch=1&watch=0"};
	static const char *const no[] = {"", "watch=0", "watch=false", "watch=FALSE", "Watch=1",
		"watch=0&watch=1", "x=1", "wat%63h=0"};
	struct api_options options;

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		cr_assert_eq(parse(yes[i], &options), 0);
		cr_expect(options.watch, "%s", yes[i]);
		api_options_release(&options);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		cr_assert_eq(parse(no[i], &options), 0);
		cr_expect(!options.watch, "%s", no[i]);
		api_options_release(&options);
	}
}

Test(serve_request, a_value_with_a_nul_is_refused_and_not_cut)
{
	options_are("fieldSelector=metadata.name%3Da%00,metadata.namespace%3Db", false, 400,
		"invalid character U+0000 in fieldSelector");
	options_are("labelSelector=%00", false, 400, "invalid character U+0000 in labelSelector");
	options_are("limit=1%00x&watch=1", true, 400, "invalid character U+0000 in limit");
	options_are(
		"resourceVersion=0%00", true, 400, "invalid character U+0000 in resourceVersion");
	options_are("other=%00&limit=1", false, 0, NULL);
}

Test(serve_request, options_of_lists_do_not_count_for_one_object)
{
	static const char query[] =
		"limit=x&timeoutSeconds=x&labelSelector=,,&fieldSelector=%5C&resourceVersion=7";
	struct api_options options;

	cr_expect_eq(parse(query, &options), 400);
	api_options_release(&options);
	cr_assert_eq(api_options_parse(bytes_str(query), false, &options, &status), 0);
	cr_expect_str_eq(options.rv, "7");
	cr_expect(!options.labels && !options.fields);
	api_options_release(&options);
}

Test(serve_request, selectors_are_decoded_once)
{
	struct api_options options;

	cr_assert_eq(parse("labelSelector=app+in%20%28web%2Cdb%29%2C%21x&fieldSelector=%2Cmetadata."
			   "name%3Da%2C",
			     &options),
		0);
	cr_expect_str_eq(selector_text(options.labels), "app in (db,web),!x");
	cr_expect_str_eq(selector_text(options.fields), "metadata.name=a");
	api_options_release(&options);
	cr_assert_eq(parse("fieldSelector=%2C&labelSelector=", &options), 0);
	cr_expect_null(options.fields);
	cr_expect_null(options.labels);
	api_options_release(&options);
}

/* Those of S15 to S66 missing in test_serve_answers.py. */
Test(serve_request, s30_s64_bad_options_are_refused_in_the_words_of_the_api_server)
{
	options_are("labelSelector=a%3D%3D%3Db%21", false, 400,
		"unable to parse requirement: found '=', expected: identifier");
	options_are("limit=99999999999999999999", false, 400,
		"strconv.ParseInt: parsing \"99999999999999999999\": value out of range");
	options_are("limit=a%22b%0A", false, 400,
		"strconv.ParseInt: parsing \"a\\\"b\\n\": invalid syntax");
	options_are("limit=x&timeoutSeconds=y", false, 400,
		"strconv.ParseInt: parsing \"y\": invalid syntax");
	options_are("limit=-1", false, 0, NULL);
	options_are("limit=-9223372036854775808", false, 0, NULL);
	options_are("limit=-9223372036854775809", false, 400,
		"strconv.ParseInt: parsing \"-9223372036854775809\": value out of range");
#define INVALID   "ListOptions.meta.k8s.io \"\" is invalid: "
#define FORBIDDEN "resourceVersionMatch: Forbidden: "
	options_are("watch=1&continue=x", true, 422,
		INVALID FORBIDDEN "resourceVersionMatch is forbidden when continue is provided");
	options_are("watch=1&continue=x&resourceVersion=0", true, 422,
		INVALID FORBIDDEN "resourceVersionMatch is forbidden when continue is provided");
	options_are("watch=1&continue=x&resourceVersion=7", true, 0, NULL);
	options_are("continue=x", true, 0, NULL);
	options_are("watch=1&sendInitialEvents=true", true, 422,
		INVALID FORBIDDEN
		"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	cr_expect_str_eq(text(&status),
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
		"\"status\":\"Failure\",\"message\":\"ListOptions.meta.k8s.io \\\"\\\" is invalid: "
		"resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
		"resourceVersionMatch to "
		"NotOlderThan\",\"reason\":\"Invalid\",\"details\":{\"group\":"
		"\"meta.k8s.io\",\"kind\":\"ListOptions\",\"causes\":[{\"reason\":"
		"\"FieldValueForbidden\",\"message\":\"Forbidden: sendInitialEvents requires "
		"setting resourceVersionMatch to "
		"NotOlderThan\",\"field\":\"resourceVersionMatch\"}]},"
		"\"code\":422}",
		"%s", text(&status));
	/* S73: a watch by its path is checked as a list. */
	options_are("resourceVersionMatch=NotOlderThan&resourceVersion=5", true, 0, NULL);
	options_are("sendInitialEvents=true", true, 422, NULL);
}

/* ---- Accept ------------------------------------------------------------- */

static void accept_is(const char *header, enum api_form form, const char *version)
{
	struct api_accept accept;
	int r = api_accept_parse(bytes_str(header), false, &accept, &status);

	cr_expect_eq(r, form == API_FORM_MAX ? 406 : 0, "%s: %d", header ? header : "none", r);
	if (r == 0) {
		cr_expect_eq(accept.form, form, "%s: %d", header, accept.form);
		cr_expect_str_eq(accept.version, version);
	}
}

Test(serve_request, s75_s78_s79_s80_s81_what_clients_accept) /* S75, S78 to S81 */
{
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
	accept_is(NULL, API_FORM_OBJECT, "v1");
	accept_is("", API_FORM_OBJECT, "v1");
	accept_is("*/*", API_FORM_OBJECT, "v1");
	accept_is("application/*", API_FORM_OBJECT, "v1");
	accept_is("application/json, */*;q=0.8", API_FORM_OBJECT, "v1");
	accept_is("application/vnd.kubernetes.protobuf,application/json", API_FORM_OBJECT, "v1");
	accept_is("application/json;stream=watch", API_FORM_OBJECT, "v1");
	accept_is(TABLE ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
		API_FORM_TABLE, "v1");
	accept_is("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
		API_FORM_TABLE, "v1beta1");
	accept_is("application/json;as=Table;v=v9;g=meta.k8s.io", API_FORM_MAX, NULL);
	accept_is("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", API_FORM_OBJECT,
		"v1");
	accept_is(
		"application/"
		"vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		API_FORM_METADATA_LIST, "v1");
	accept_is("application/json;q=0.1," TABLE ";q=0.5", API_FORM_TABLE, "v1");
	accept_is("application/json;q=0", API_FORM_MAX, NULL);
	accept_is(TABLE ";q=x,application/json;q=0.1", API_FORM_OBJECT, "v1");
	accept_is(TABLE ";q=-1,application/json", API_FORM_OBJECT, "v1");
	accept_is(TABLE ";q=x", API_FORM_TABLE, "v1");
	accept_is("application/json," TABLE ";q=2", API_FORM_OBJECT, "v1");
	accept_is("text/html", API_FORM_MAX, NULL);
	accept_is("APPLICATION/JSON", API_FORM_MAX, NULL);
	accept_is("application/json;AS=Table;v=v1;g=meta.k8s.io", API_FORM_MAX, NULL);
	accept_is("application/json;Q=0", API_FORM_OBJECT, "v1");
	accept_is("application/yaml", API_FORM_MAX, NULL);
	accept_is("application/vnd.kubernetes.protobuf", API_FORM_MAX, NULL);
	accept_is("*/*," TABLE, API_FORM_TABLE, "v1");
	accept_is("application/*," TABLE ";q=0.9", API_FORM_OBJECT, "v1");
	struct buf many = BUF_INIT;
	for (unsigned i = 0; i < 3000; i++)
		buf_printf(&many, "application/x%u, ", i);
	buf_str(&many, TABLE);
	accept_is(buf_cstr(&many), API_FORM_TABLE, "v1");
	buf_release(&many);
	cr_expect(api_accept_gzip(BYTES_LIT("gzip")));
	cr_expect(api_accept_gzip(BYTES_LIT("deflate, gzip, br")));
	cr_expect_not(api_accept_gzip(BYTES_LIT("gzip;q=1")));
	cr_expect_not(api_accept_gzip(BYTES_NONE));
	struct api_accept accept;
	cr_assert_eq(api_accept_parse(BYTES_LIT("application/json;g=apidiscovery.k8s.io;v=v2;"
						"as=APIGroupDiscoveryList,application/json"),
			     true, &accept, &status),
		0);
	cr_expect_eq(accept.form, API_FORM_DISCOVERY);
	accept.form = API_FORM_METADATA;
	cr_expect_eq(api_accept_check(&accept, true, "core", "PodList", &status), 406);
	cr_expect_eq(api_accept_check(&accept, false, "core", "Pod", &status), 0);
}

/* ---- statuses ----------------------------------------------------------- */

/* Expects the message and the details of a Status about the object NAME. */
static void missing_is(const char *name, const char *message, const char *details)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	api_status_no_object(&status, "", "pods", name);
	cr_assert_eq(api_status_write(&status, &json), 0);
	cr_expect(strstr(buf_cstr(&json), message), "%s", buf_cstr(&json));
	cr_expect(strstr(buf_cstr(&json), details), "%s", buf_cstr(&json));
	cr_expect(utf8_is_valid(buf_bytes(&json)));
}

Test(serve_request, a_status_is_json_whatever_the_name_is)
{
	missing_is("p", "\"message\":\"pods \\\"p\\\" not found\"", "{\"name\":\"p\",");
	missing_is("gr\u00fcn", "pods \\\"gr\u00fcn\\\" not", "{\"name\":\"gr\u00fcn\",");
	missing_is("a\xff\xc3z", "pods \\\"a\\\\xff\\\\xc3z\\\" not",
		"{\"name\":\"a\\ufffd\\ufffdz\",");
	missing_is("a\"\\\n\x01\x7f", "pods \\\"a\\\\\\\"\\\\\\\\\\\\n\\\\x01\\\\x7f\\\" not",
		"{\"name\":\"a\\\"\\\\\\n\\u0001\x7f\",");
}

/* ---- field labels ------------------------------------------------------- */

static void fields_are(const char *group, const char *kind, bool namespaced, const char *selector,
	const char *message)
{
	const struct api_kind_name name = {group, kind, namespaced};
	CLEANUP(selector_free) struct selector *fields = NULL;

	cr_assert_eq(selector_parse_fields(selector, &fields), 0);
	int r = api_kind_check_fields(&name, " spec.color ", fields, &status);
	cr_expect_eq(r, message ? 400 : 0, "%s %s", kind, selector);
	if (message)
		cr_expect_str_eq(buf_cstr(&status.message), message);
}

Test(serve_request, s20_s21_s22_s26_s27_field_labels) /* S20 to S22, S26, S27 */
{
	fields_are("", "Pod", true,
		"metadata.name=a,metadata.namespace=b,spec.nodeName=c,spec.host=d", NULL);
	fields_are("", "Pod", true, "status.podIPs=10.0.0.1", NULL);
	fields_are("", "Pod", true, "foo=bar", "field label not supported: foo");
	fields_are("apps", "Deployment", true, "foo=bar",
		"\"foo\" is not a known field selector: only \"metadata.name\", "
		"\"metadata.namespace\"");
	fields_are("batch", "Job", true, "status.successful=1", NULL);
	fields_are("batch", "Job", true, "foo=1", "field label not supported: foo");
	fields_are("", "Node", false, "metadata.namespace=x",
		"field label not supported: metadata.namespace");
	fields_are("example.com", "Widget", false, "metadata.namespace=x",
		"field label not supported: metadata.namespace");
	fields_are("example.com", "Widget", true, "metadata.namespace=x", NULL);
	fields_are("apps", "Deployment", true, "metadata.namespace=x", NULL);
	fields_are("rbac.authorization.k8s.io", "ClusterRole", false, "metadata.namespace=x", NULL);
	fields_are("", "Event", true, "involvedObject.uid=1,reason=x,source=y", NULL);
	fields_are("events.k8s.io", "Event", true, "regarding.uid=1,reportingController=x,type=y",
		NULL);
	fields_are("events.k8s.io", "Event", true, "source=y", "field label not supported: source");
	fields_are("certificates.k8s.io", "CertificateSigningRequest", false,
		"metadata.name=a,spec.signerName=b", NULL);
	fields_are("certificates.k8s.io", "CertificateSigningRequest", false,
		"metadata.namespace=x", "field label not supported: metadata.namespace");
	fields_are("certificates.k8s.io", "PodCertificateRequest", true, "metadata.namespace=x",
		"field label not supported: metadata.namespace");
	fields_are("resource.k8s.io", "ResourceSlice", false, "spec.nodeName=x,spec.pool.name=y",
		NULL);
	fields_are("resource.k8s.io", "ResourceSlice", false, "spec.driver=x,metadata.namespace=x",
		"field label not supported: metadata.namespace");
	fields_are("example.com", "Widget", true, "spec.color=red", NULL);
	fields_are("example.com", "Widget", true, "spec.colo=red",
		"field label not supported: spec.colo");
	fields_are("apps", "Deployment", true, "spec.color=red",
		"\"spec.color\" is not a known field selector: only \"metadata.name\", "
		"\"metadata.namespace\"");
	fields_are("lifecycle.k8s.io", "Eviction", true, "spec.color=red",
		"\"spec.color\" is not a known field selector: only \"metadata.name\", "
		"\"metadata.namespace\"");
}

Test(serve_request, bookmarks_have_the_zero_values_of_their_kind)
{
	cr_expect_str_eq(api_bookmark_rest("", "v1", "Pod"),
		",\"spec\":{\"containers\":null},\"status\":{}");
	cr_expect_str_eq(api_bookmark_rest("", "v1", "ConfigMap"), "");
	cr_expect(strstr(api_bookmark_rest("autoscaling", "v1", "HorizontalPodAutoscaler"),
		"\"currentReplicas\":0"));
	cr_expect(strstr(api_bookmark_rest("autoscaling", "v2", "HorizontalPodAutoscaler"),
		"\"currentMetrics\":null"));
	cr_expect_str_eq(api_bookmark_rest("example.com", "v1", "Pod"), "");
	cr_expect_str_eq(api_bookmark_rest("scheduling.k8s.io", "v1beta1", "PodGroup"),
		",\"spec\":{\"schedulingPolicy\":{}},\"status\":{}");
}

Test(serve_request, groups_and_versions_have_the_api_servers_order)
{
	cr_expect_lt(custom_group_rank(""), custom_group_rank("apps"));
	cr_expect_lt(custom_group_rank("apps"), custom_group_rank("admissionregistration.k8s.io"));
	cr_expect_eq(custom_group_rank("a.example.com"), custom_group_rank("b.example.com"));
	cr_expect_lt(custom_group_rank("flowcontrol.apiserver.k8s.io"),
		custom_group_rank("storagemigration.k8s.io"));
	cr_expect_lt(
		custom_group_rank("storagemigration.k8s.io"), custom_group_rank("a.example.com"));
	static const char *const order[] = {
		"v10", "v2", "v1", "v3beta1", "v1beta2", "v1beta1", "v2alpha1", "foo", "v1x"};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
			cr_expect_eq(custom_compare_versions(order[i], order[k]) < 0, i < k,
				"%s %s", order[i], order[k]);
}

#define VERSION(name, more) "{\"name\":\"" name "\",\"served\":true" more "}"

/* The warning about VERSION of a definition with VERSIONS is TEXT. */
static void deprecation_is(const char *versions, const char *version, const char *text)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT, out = BUF_INIT;

	buf_printf(&json,
		"{\"spec\":{\"group\":\"g.io\",\"names\":{\"kind\":\"Old\"},\"versions\":[%s]}}",
		versions);
	CLEANUP(buf_release) struct buf body = body_of(buf_cstr(&json));

	cr_expect_eq(api_kind_deprecation(buf_bytes(&body), version, &out), 0);
	cr_expect_str_eq(buf_cstr(&out), text);
}

Test(serve_request, a_deprecated_version_has_the_api_servers_warning)
{
	deprecation_is(VERSION("v1", ""), "v1", "");
	deprecation_is(VERSION("v1", ",\"deprecated\":false"), "v1", "");
	deprecation_is(VERSION("v1", ",\"deprecated\":true"), "v2", "");
	deprecation_is(VERSION("v1", ",\"deprecated\":true"), "v1", "g.io/v1 Old is deprecated");
	deprecation_is(VERSION("v1", ",\"deprecated\":true,\"deprecationWarning\":\"do not\""),
		"v1", "do not");
	/* An older one is no better, nor is one that is not served. */
	deprecation_is(VERSION("v1beta1", "") "," VERSION(
			       "v2", ",\"deprecated\":true") ","
							     "{\"name\":\"v3\",\"served\":false}",
		"v2", "g.io/v2 Old is deprecated");
	deprecation_is(VERSION("v1beta1", ",\"deprecated\":true") "," VERSION(
			       "v1beta2", "") "," VERSION("v1", "") "," VERSION("v2alpha1", ""),
		"v1beta1", "g.io/v1beta1 Old is deprecated; use g.io/v1 Old");
	deprecation_is("{}", "v1", "");
}

/* ---- tokens ------------------------------------------------------------- */

static const char *token_of(const char *json)
{
	static struct buf out;

	buf_reset(&out);
	base64url_put(bytes_str(json), &out);
	return buf_cstr(&out);
}

Test(serve_request, s43_tokens) /* S43 */
{
	struct api_token t;
	struct buf out = BUF_INIT;

	/* As docs/protocol.md 6 and as recorded. */
	cr_assert_eq(api_token_write(121, BYTES_LIT("default/p1\0"), &out), 0);
	cr_expect_str_eq(buf_cstr(&out),
		"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIxLCJzdGFydCI6ImRlZmF1bHQvcDFcdTAwMDAifQ");
	cr_assert_eq(api_token_parse("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjQ5LCJzdGFydCI6Ii9zaG9wL"
				     "2NhcnQtNlx1MDAwMCJ9",
			     &t, &status),
		0);
	cr_expect_eq(t.rv, 249);
	cr_expect(bytes_equal(buf_bytes(&t.from), BYTES_LIT("shop/cart-6\0")));
	api_token_release(&t);
	cr_assert_eq(api_token_parse("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoic2hvcC9jY"
				     "XJ0LTZcdTAwMDAifQ",
			     &t, &status),
		0);
	cr_expect_eq(t.rv, -1);
	api_token_release(&t);
#define OF(rv, start) "{\"v\":\"meta.k8s.io/v1\",\"rv\":" rv ",\"start\":\"" start "\\u0000\"}"
	cr_assert_eq(api_token_parse(token_of(OF("1", "/")), &t, &status), 0);
	cr_expect(bytes_equal(buf_bytes(&t.from), BYTES_LIT("\0")), "before the first key");
	api_token_release(&t);
	cr_assert_eq(api_token_parse(token_of(OF("1", "a\\u003c\\u0026\\\"b")), &t, &status), 0);
	cr_expect(bytes_equal(buf_bytes(&t.from), BYTES_LIT("a<&\"b\0")));
	api_token_release(&t);
	static const char *const bad[] = {"x", "e30ab", "%%%", "abc"};
	static const char *const bad_json[] = {"", "[]", "{\"v\":\"meta.k8s.io/v1\",\"rv\":1",
		"{\"v\":\"meta.k8s.io/v2\",\"rv\":1,\"start\":\"a\\u0000\"}",
		"{\"v\":\"meta.k8s.io/v1\",\"rv\":1,\"start\":\"\"}", OF("0", "a"), OF("-2", "a"),
		OF("1", "a\\u0000b"), OF("1,\"x\":&a \"x\"", "a")};
	for (size_t i = 0; i < ARRAY_SIZE(bad) + ARRAY_SIZE(bad_json); i++) {
		const char *text =
			i < ARRAY_SIZE(bad) ? bad[i] : token_of(bad_json[i - ARRAY_SIZE(bad)]);

		cr_expect_eq(api_token_parse(text, &t, &status), 400, "%s", text);
		api_token_release(&t);
	}
	buf_release(&out);
}
