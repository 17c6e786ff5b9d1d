/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/discovery.h"

#include <inttypes.h>
#include <stdio.h>

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

#define STATUS_VERBS "\"verbs\":[\"get\",\"patch\",\"update\"]"

static const char version_document[] =
	"{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\": \"1\",\n"
	"  \"emulationMinor\": \"36\",\n  \"minCompatibilityMajor\": \"1\",\n"
	"  \"minCompatibilityMinor\": \"35\",\n  \"gitVersion\": \"v1.36.3-simulated\",\n"
	"  \"gitCommit\": \"\",\n  \"gitTreeState\": \"clean\",\n"
	"  \"buildDate\": \"2026-11-21T00:00:00Z\",\n  \"goVersion\": \"\",\n"
	"  \"compiler\": \"\",\n  \"platform\": \"linux/amd64\"\n}";

bool discovery_serves(struct world *world, const char *group, const char *version)
{
	for (size_t i = 0; i < world->n_collections; i++)
		if (!world->collections[i].gone &&
			!strcmp(world->collections[i].kind->group, group) &&
			!strcmp(world->collections[i].kind->version, version))
			return true;
	return false;
}

/* The I-th kind is the first of its group (and version). */
static bool discovery_is_first(const struct world *world, size_t i, bool of_version)
{
	if (world->collections[i].gone)
		return false;
	for (size_t k = 0; k < i; k++)
		if (!world->collections[k].gone &&
			!strcmp(world->collections[k].kind->group,
				world->collections[i].kind->group) &&
			(!of_version || !strcmp(world->collections[k].kind->version,
						world->collections[i].kind->version)))
			return false;
	return true;
}

/* Calls PUT for each version of GROUP, with the index of its first kind, commas between. */
static void discovery_each_version(struct world *world, const char *group,
	void (*put)(struct world *, size_t, struct buf *), struct buf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < world->n_collections; i++) {
		if (strcmp(world->collections[i].kind->group, group) ||
			!discovery_is_first(world, i, true))
			continue;
		buf_str(out, comma);
		put(world, i, out);
		comma = ",";
	}
}

static void discovery_put_words(struct buf *out, const char *key, const char *const *words)
{
	buf_printf(out, ",\"%s\":[", key);
	for (size_t i = 0; words[i]; i++)
		buf_printf(out, "%s\"%s\"", i ? "," : "", words[i]);
	buf_byte(out, ']');
}

static void discovery_put_names(struct buf *out, const struct kind *kind)
{
	const char *short_names[] = {kind->short_name, NULL};
	const char *categories[] = {kind->category, NULL};

	discovery_put_words(out, "verbs", kind_verbs(kind));
	if (kind->short_name)
		discovery_put_words(out, "shortNames", short_names);
	if (kind->category)
		discovery_put_words(out, "categories", categories);
}

/* ---- legacy ------------------------------------------------------------- */

static void discovery_put_versions(struct buf *out, uint16_t port)
{
	buf_printf(out,
		"{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":"
		"[{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"127.0.0.1:%u\"}]}",
		port);
}

static void discovery_put_group_version(struct world *world, size_t i, struct buf *out)
{
	buf_str(out, "{\"groupVersion\":\"");
	kind_put_group_version(world->collections[i].kind, out);
	buf_printf(out, "\",\"version\":\"%s\"}", world->collections[i].kind->version);
}

static void discovery_put_group(struct world *world, size_t i, struct buf *out)
{
	buf_printf(out, "\"name\":\"%s\",\"versions\":[", world->collections[i].kind->group);
	discovery_each_version(
		world, world->collections[i].kind->group, discovery_put_group_version, out);
	buf_str(out, "],\"preferredVersion\":");
	discovery_put_group_version(world, i, out);
	buf_byte(out, '}');
}

static void discovery_put_groups(struct world *world, struct buf *out)
{
	const char *comma = "";

	buf_str(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
	for (size_t i = 0; i < world->n_collections; i++) {
		if (!world->collections[i].kind->group[0] || !discovery_is_first(world, i, false))
			continue;
		buf_printf(out, "%s{", comma);
		discovery_put_group(world, i, out);
		comma = ",";
	}
	buf_str(out, "]}");
}

static void discovery_put_resource(struct buf *out, const struct kind *kind)
{
	buf_printf(out,
		"{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,\"kind\":\"%s\"",
		kind->resource, kind->singular, kind->namespaced ? "true" : "false", kind->name);
	discovery_put_names(out, kind);
	buf_byte(out, '}');
	if (!kind->no_status)
		buf_printf(out,
			",{\"name\":\"%s/status\",\"singularName\":\"\",\"namespaced\":%s,"
			"\"kind\":\"%s\"," STATUS_VERBS "}",
			kind->resource, kind->namespaced ? "true" : "false", kind->name);
}

static void discovery_put_resources(
	struct world *world, const char *group, const char *version, struct buf *out)
{
	const char *comma = "";

	buf_printf(out,
		"{\"kind\":\"APIResourceList\",%s\"groupVersion\":\"%s%s%s\",\"resources\":[",
		*group ? "\"apiVersion\":\"v1\"," : "", group, *group ? "/" : "", version);
	for (size_t i = 0; i < world->n_collections; i++) {
		const struct kind *kind = world->collections[i].kind;

		if (world->collections[i].gone || strcmp(kind->group, group) ||
			strcmp(kind->version, version))
			continue;
		buf_str(out, comma);
		discovery_put_resource(out, kind);
		comma = ",";
	}
	buf_str(out, "]}");
}

/* ---- aggregated --------------------------------------------------------- */

/* Built-in kinds leave the response kind's group and version empty there. */
static void discovery_put_response_kind(struct buf *out, const struct kind *kind)
{
	buf_printf(out, "\"responseKind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}",
		kind->custom ? kind->group : "", kind->custom ? kind->version : "", kind->name);
}

static void discovery_put_aggregated_resource(struct buf *out, const struct kind *kind)
{
	buf_printf(out, "{\"resource\":\"%s\",", kind->resource);
	discovery_put_response_kind(out, kind);
	buf_printf(out, ",\"scope\":\"%s\",\"singularResource\":\"%s\"",
		kind->namespaced ? "Namespaced" : "Cluster", kind->singular);
	discovery_put_names(out, kind);
	if (!kind->no_status) {
		buf_str(out, ",\"subresources\":[{\"subresource\":\"status\",");
		discovery_put_response_kind(out, kind);
		buf_str(out, "," STATUS_VERBS "}]");
	}
	buf_byte(out, '}');
}

static void discovery_put_aggregated_version(struct world *world, size_t first, struct buf *out)
{
	const struct kind *wanted = world->collections[first].kind;
	const char *comma = "";

	buf_printf(out, "{\"version\":\"%s\",\"resources\":[", wanted->version);
	for (size_t i = first; i < world->n_collections; i++) {
		const struct kind *kind = world->collections[i].kind;

		if (world->collections[i].gone || strcmp(kind->group, wanted->group) ||
			strcmp(kind->version, wanted->version))
			continue;
		buf_str(out, comma);
		discovery_put_aggregated_resource(out, kind);
		comma = ",";
	}
	buf_str(out, "],\"freshness\":\"Current\"}");
}

static void discovery_put_aggregated(struct world *world, bool core, struct buf *out)
{
	const char *comma = "";

	buf_str(out, "{\"kind\":\"APIGroupDiscoveryList\","
		     "\"apiVersion\":\"apidiscovery.k8s.io/v2\",\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < world->n_collections; i++) {
		const char *group = world->collections[i].kind->group;

		if (core != !group[0] || !discovery_is_first(world, i, false))
			continue;
		buf_printf(out, "%s{\"metadata\":{", comma);
		if (!core)
			buf_printf(out, "\"name\":\"%s\"", group);
		buf_str(out, "},\"versions\":[");
		discovery_each_version(world, group, discovery_put_aggregated_version, out);
		buf_str(out, "]}");
		comma = ",";
	}
	buf_str(out, "]}");
}

/* ---- paths -------------------------------------------------------------- */

static bool discovery_wants_aggregated(
	const struct world *world, const struct http_request *request)
{
	const char *accept = http_header(request, "Accept");
	const char *version = accept ? strstr(accept, "g=apidiscovery.k8s.io;v=v2") : NULL;

	while (version && version[strlen("g=apidiscovery.k8s.io;v=v2")] == 'b')
		version = strstr(version + 1, "g=apidiscovery.k8s.io;v=v2");
	return world->settings.aggregated && version;
}

static bool discovery_health_answer(const char *path, struct http_answer *answer)
{
	if (strcmp(path, "/healthz") && strcmp(path, "/livez") && strcmp(path, "/readyz"))
		return false;
	buf_str(&answer->body, "ok");
	http_answer_header(answer, "Content-Type", "text/plain; charset=utf-8");
	http_answer_header(answer, "X-Content-Type-Options", "nosniff");
	return true;
}

/* "/apis/GROUP" and "/apis/GROUP/VERSION". */
static bool discovery_named_group_answer(struct world *world, const char *path, struct buf *out)
{
	char group[128], version[64], more;
	int n = sscanf(path, "/apis/%127[^/]/%63[^/]%c", group, version, &more);

	if (n == 2 && discovery_serves(world, group, version)) {
		discovery_put_resources(world, group, version, out);
		return true;
	}
	for (size_t i = 0; n == 1 && i < world->n_collections; i++) {
		if (world->collections[i].gone || strcmp(world->collections[i].kind->group, group))
			continue;
		buf_str(out, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",");
		discovery_put_group(world, i, out);
		return true;
	}
	return false;
}

static bool discovery_document_answer(struct world *world, const struct http_request *request,
	struct http_answer *answer, bool *aggregated)
{
	const char *path = request->path, *host = http_header(request, "Host");
	const char *port = host ? strrchr(host, ':') : NULL;
	struct buf *out = &answer->body;
	bool core = !strcmp(path, "/api");
	unsigned number = 0;

	if (port)
		(void)sscanf(port, ":%5u", &number); /* stays 0 */
	*aggregated =
		(core || !strcmp(path, "/apis")) && discovery_wants_aggregated(world, request);
	if (*aggregated)
		discovery_put_aggregated(world, core, out);
	else if (core)
		discovery_put_versions(out, (uint16_t)number);
	else if (!strcmp(path, "/apis"))
		discovery_put_groups(world, out);
	else if (!strcmp(path, "/api/v1"))
		discovery_put_resources(world, "", "v1", out);
	else if (!strcmp(path, "/version"))
		buf_str(out, version_document);
	else
		return discovery_named_group_answer(world, path, out);
	return true;
}

/* As kube-apiserver: the documents as a whole have an ETag, and 304 confirms it. */
static void discovery_put_etag(const struct http_request *request, struct http_answer *answer)
{
	const char *known = http_header(request, "If-None-Match");
	const char *text = buf_cstr(&answer->body);
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	char etag[160];

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
	(void)snprintf(etag, sizeof(etag), "\"%0128" PRIX64 "\"", hash);
	http_answer_header(answer, "ETag", etag);
	if (known && !strcmp(known, etag)) {
		answer->status = 304;
		buf_reset(&answer->body);
	}
}

bool discovery_answer(
	struct world *world, const struct http_request *request, struct http_answer *answer)
{
	bool aggregated = false;

	if (discovery_health_answer(request->path, answer))
		return true;
	if (!discovery_document_answer(world, request, answer, &aggregated))
		return false;
	buf_byte(&answer->body, '\n');
	http_answer_header(answer, "Content-Type", aggregated ? AGGREGATED : "application/json");
	if (aggregated) {
		http_answer_header(answer, "Vary", "Accept");
		discovery_put_etag(request, answer);
	}
	return true;
}
