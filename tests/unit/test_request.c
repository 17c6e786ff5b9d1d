/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/request.h"
#include "tests/unit/unit.h"

static void check_path(const struct feed_definition *definition, const struct feed_action *action,
	const char *wanted)
{
	CLEANUP(buf_release) struct buf path = BUF_INIT;

	cr_assert_eq(request_path(definition, action, &path), 0);
	cr_assert_str_eq(buf_cstr(&path), wanted);
}

static const struct feed_definition pods = {.group = "",
	.version = "v1",
	.resource = "pods",
	.namespace_ = "",
	.label_selector = "",
	.field_selector = ""};
static const struct feed_definition deployments = {.group = "apps",
	.version = "v1",
	.resource = "deployments",
	.namespace_ = "web",
	.label_selector = "a=b,c in (d)",
	.field_selector = "metadata.name=x"};

Test(request, c06_c11_lists_ask_for_pages_or_for_an_rv)
{
	check_path(&pods,
		&(struct feed_action){
			.what = FEED_DO_LIST, .rv = "", .continue_ = "", .limit = 500},
		"/api/v1/pods?limit=500");
	check_path(&pods, &(struct feed_action){.what = FEED_DO_LIST, .rv = "", .continue_ = ""},
		"/api/v1/pods");
	check_path(&pods, &(struct feed_action){.what = FEED_DO_LIST, .rv = "50", .continue_ = ""},
		"/api/v1/pods?resourceVersion=50");
	check_path(&pods,
		&(struct feed_action){
			.what = FEED_DO_LIST, .rv = "", .continue_ = "a+/=", .limit = 500},
		"/api/v1/pods?limit=500&continue=a%2B%2F%3D");
}

Test(request, c63_selectors_are_one_escaped_value_each)
{
	check_path(&deployments,
		&(struct feed_action){
			.what = FEED_DO_WATCH, .rv = "abc 1", .continue_ = "", .timeout_s = 301},
		"/apis/apps/v1/namespaces/web/deployments?labelSelector=a%3Db%2Cc%20in%20%28d%29"
		"&fieldSelector=metadata.name%3Dx&watch=true&allowWatchBookmarks=true"
		"&timeoutSeconds=301&resourceVersion=abc%201");
}

Test(request, c49_a_stream_asks_for_initial_events_and_their_end)
{
	check_path(&pods,
		&(struct feed_action){
			.what = FEED_DO_STREAM, .rv = "", .continue_ = "", .timeout_s = 300},
		"/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
		"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
	check_path(&pods,
		&(struct feed_action){
			.what = FEED_DO_STREAM, .rv = "50", .continue_ = "", .timeout_s = 300},
		"/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
		"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=50");
}

Test(request, a_probe_names_an_object_that_need_not_exist)
{
	CLEANUP(buf_release) struct buf path = BUF_INIT;
	struct feed_definition namespaced = pods;

	namespaced.namespaced = true;
	cr_assert_eq(request_probe_path(&namespaced, "7", &path), 0);
	cr_assert_str_eq(
		buf_cstr(&path), "/api/v1/namespaces/default/pods/kinf-probe?resourceVersion=7");
}

Test(request, metadata_is_asked_for_without_a_fallback_to_objects)
{
	struct feed_definition metadata = {.metadata_only = true};

	cr_assert_str_eq(request_accept(&pods, true), "application/json");
	cr_assert(strstr(request_accept(&metadata, false), "as=PartialObjectMetadataList;"));
	cr_assert(strstr(request_accept(&metadata, true), "as=PartialObjectMetadata;"));
	cr_assert_not(strchr(request_accept(&metadata, true), ','));
}
