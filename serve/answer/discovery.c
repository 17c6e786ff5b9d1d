/* SPDX-License-Identifier: Apache-2.0 */
/* docs/protocol.md 11. */
#include "serve/answer/verbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/value/custom.h"
#include "common/value/json.h"
#include "store/env/home.h"
#include "store/env/text_file.h"

#define DISCOVERY_TEXT 160
#define DISCOVERY_TAG  300
#define DISCOVERY_MAX  ((size_t)17 << 20) /* the reflector keeps none above 16 MiB */

#if defined(__aarch64__)
#define MACHINE "arm64" /* in Go's words */
#else
#define MACHINE "amd64"
#endif

struct served_resource {
	char group[DISCOVERY_TEXT], version[32], resource[DISCOVERY_TEXT], kind[DISCOVERY_TEXT];
	char group_version[DISCOVERY_TEXT + 36], singular[DISCOVERY_TEXT];
	char short_names[DISCOVERY_TEXT], categories[DISCOVERY_TEXT]; /* each followed by a blank */
	bool namespaced;
};

struct served {
	struct served_resource *resources; /* by group, version and name, each once */
	size_t n, room;
};

static int discovery_compare(const void *a, const void *b)
{
	const struct served_resource *x = a, *y = b;
	unsigned rank_x = custom_group_rank(x->group), rank_y = custom_group_rank(y->group);
	int r = rank_x != rank_y ? (rank_x > rank_y) - (rank_x < rank_y)
				 : strcmp(x->group, y->group);

	if (r == 0)
		r = custom_compare_versions(x->version, y->version);
	return r ? r : strcmp(x->resource, y->resource);
}

static int discovery_add(struct served *discovery, const struct feed_definition *d)
{
	struct served_resource resource = {.namespaced = d->namespaced};

	(void)snprintf(resource.group, sizeof(resource.group), "%s", d->group);
	(void)snprintf(resource.version, sizeof(resource.version), "%s", d->version);
	(void)snprintf(resource.resource, sizeof(resource.resource), "%s", d->resource);
	(void)snprintf(resource.kind, sizeof(resource.kind), "%s", d->kind);
	(void)snprintf(resource.group_version, sizeof(resource.group_version), "%s%s%s",
		resource.group, *resource.group ? "/" : "", resource.version);
	(void)snprintf(resource.categories, sizeof(resource.categories), "%s", d->categories);
	size_t singular = strcspn(d->aliases, " ");
	if (d->aliases[singular]) {
		(void)snprintf(resource.singular, sizeof(resource.singular), "%.*s", (int)singular,
			d->aliases);
		(void)snprintf(resource.short_names, sizeof(resource.short_names), "%s",
			d->aliases + singular + 1);
	}
	return ARRAY_ADD(discovery->resources, discovery->n, discovery->room, resource,
		"a discovery document");
}

/* Sorts the resources and drops duplicates. */
static void discovery_sort(struct served *discovery)
{
	struct served_resource *resources = discovery->resources;
	size_t n = 0;

	if (discovery->n)
		qsort(resources, discovery->n, sizeof(*resources), discovery_compare);
	for (size_t i = 0; i < discovery->n; i++)
		if (!n || discovery_compare(&resources[n - 1], &resources[i]) != 0)
			resources[n++] = resources[i];
	discovery->n = n;
}

/* ---- JSON --------------------------------------------------------------- */

/* Puts FORMAT with a text, as a JSON string, for each $. */
static void discovery_put(struct buf *out, const char *format, ...)
{
	va_list texts;

	va_start(texts, format);
	for (const char *stop; *(stop = strchrnul(format, '$')); format = stop + 1) {
		buf_put(out, format, (size_t)(stop - format));
		json_write_string(bytes_str(va_arg(texts, const char *)), out);
	}
	va_end(texts);
	buf_str(out, format);
}

/* kubectl get all */
static bool discovery_is_in_all(const struct served_resource *resource)
{
	static const char all[] =
		" /pods /services /replicationcontrollers apps/deployments apps/replicasets "
		"apps/statefulsets apps/daemonsets batch/jobs batch/cronjobs "
		"autoscaling/horizontalpodautoscalers ";
	char name[2 * DISCOVERY_TEXT + 4];

	(void)snprintf(name, sizeof(name), " %s/%s ", resource->group, resource->resource);
	return strstr(all, name) != NULL;
}

/* Puts the array KEY of WORDS, each followed by a blank; none: nothing. */
static void discovery_put_words(const char *key, const char *words, struct buf *out)
{
	const char *blank;

	if (*words)
		buf_printf(out, ",\"%s\":[", key);
	for (const char *p = words; (blank = strchr(p, ' ')); p = blank + 1) {
		buf_str(out, p > words ? "," : "");
		json_write_string(BYTES(p, (size_t)(blank - p)), out);
	}
	if (*words)
		buf_byte(out, ']');
}

/* Puts the verbs, short names and categories of a resource. A dump and an older store have no
 * categories of built-in kinds. */
static void discovery_tail(const struct served_resource *resource, struct buf *out)
{
	bool of_extensions = /* kubectl get api-extensions */
		strncmp(resource->group, "api", 3) == 0
			? custom_is_builtin_group(resource->group)
			: strcmp(resource->group, "admissionregistration.k8s.io") == 0;

	buf_str(out, "\"verbs\":[\"get\",\"list\",\"watch\"]");
	discovery_put_words("shortNames", resource->short_names, out);
	const char *categories = *resource->categories           ? resource->categories
				 : discovery_is_in_all(resource) ? "all "
				 : of_extensions                 ? "api-extensions "
								 : "";
	discovery_put_words("categories", categories, out);
	buf_byte(out, '}');
}

/* Returns whether the resource at I begins another group, or version of one. */
static bool discovery_begins(const struct served *discovery, size_t i, bool version)
{
	const struct served_resource *a = i ? &discovery->resources[i - 1] : NULL;
	const struct served_resource *b = &discovery->resources[i];

	return !a || strcmp(a->group, b->group) != 0 ||
	       (version && strcmp(a->version, b->version) != 0);
}

/* Puts name, versions and preferredVersion of the group at I. */
static void discovery_group(const struct served *discovery, size_t i, struct buf *out)
{
	const struct served_resource *first = &discovery->resources[i];

	discovery_put(out, "\"name\":$,\"versions\":[", first->group);
	for (size_t k = i; k < discovery->n; k++) {
		const struct served_resource *resource = &discovery->resources[k];

		if (k > i && discovery_begins(discovery, k, false))
			break;
		if (k == i || discovery_begins(discovery, k, true))
			discovery_put(out,
				k > i ? ",{\"groupVersion\":$,\"version\":$}"
				      : "{\"groupVersion\":$,\"version\":$}",
				resource->group_version, resource->version);
	}
	discovery_put(out, "],\"preferredVersion\":{\"groupVersion\":$,\"version\":$}}",
		first->group_version, first->version);
}

static void discovery_groups(const struct served *discovery, struct buf *out)
{
	bool any = false;

	buf_str(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
	for (size_t i = 0; i < discovery->n; i++) {
		if (!*discovery->resources[i].group || !discovery_begins(discovery, i, false))
			continue;
		buf_str(out, any ? ",{" : "{");
		any = true;
		discovery_group(discovery, i, out);
	}
	buf_str(out, "]}");
}

/* /api/v1, /apis/GROUP/VERSION. Returns: FOUND, NOT_FOUND. */
static int discovery_resources(
	const struct served *discovery, const struct api_path *path, struct buf *out)
{
	bool any = false;

	buf_printf(out,
		"{\"kind\":\"APIResourceList\",%s\"groupVersion\":\"%s%s%s\",\"resources\":[",
		*path->group ? "\"apiVersion\":\"v1\"," : "", API_PATH_GROUP_VERSION(path));
	for (size_t i = 0; i < discovery->n; i++) {
		const struct served_resource *resource = &discovery->resources[i];

		if (strcmp(resource->group, path->group) != 0 ||
			strcmp(resource->version, path->version) != 0)
			continue;
		if (any)
			buf_byte(out, ',');
		any = true;
		discovery_put(out, "{\"name\":$,\"singularName\":$", resource->resource,
			resource->singular);
		discovery_put(out,
			resource->namespaced ? ",\"namespaced\":true,\"kind\":$,"
					     : ",\"namespaced\":false,\"kind\":$,",
			resource->kind);
		discovery_tail(resource, out);
	}
	buf_str(out, "]}");
	/* The core group is always there, as at the API server: /api names its version. */
	return any || (!*path->group && strcmp(path->version, "v1") == 0) ? FOUND : NOT_FOUND;
}

static void discovery_aggregated(
	const struct served *discovery, bool core, const char *version, struct buf *out)
{
	size_t last = SIZE_MAX; /* the resource before, of this document */

	buf_printf(out,
		"{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/%s\","
		"\"metadata\":{},\"items\":[",
		version);
	for (size_t i = 0; i < discovery->n; i++) {
		const struct served_resource *resource = &discovery->resources[i];

		if (core != !*resource->group)
			continue;
		bool group = last == SIZE_MAX || discovery_begins(discovery, i, false);
		bool begins = group || discovery_begins(discovery, i, true);

		if (last != SIZE_MAX)
			buf_str(out, group ? "]}]}," : begins ? "]}," : ",");
		if (group && core)
			buf_str(out, "{\"metadata\":{},\"versions\":[");
		else if (group)
			discovery_put(
				out, "{\"metadata\":{\"name\":$},\"versions\":[", resource->group);
		if (begins)
			discovery_put(out,
				"{\"version\":$,\"freshness\":\"Current\",\"resources\":[",
				resource->version);
		discovery_put(out,
			"{\"resource\":$,\"responseKind\":{\"group\":$,\"version\":$,\"kind\":$},",
			resource->resource, resource->group, resource->version, resource->kind);
		discovery_put(out,
			resource->namespaced ? "\"scope\":\"Namespaced\",\"singularResource\":$,"
					     : "\"scope\":\"Cluster\",\"singularResource\":$,",
			resource->singular);
		discovery_tail(resource, out);
		last = i;
	}
	/* The core group is always there, as at the API server. */
	if (core && last == SIZE_MAX)
		buf_str(out, "{\"metadata\":{},\"versions\":[{\"version\":\"v1\","
			     "\"freshness\":\"Current\",\"resources\":[");
	buf_str(out, last == SIZE_MAX && !core ? "]}" : "]}]}]}");
}

/* ---- answers ------------------------------------------------------------ */

/* Reads the API server's own document, as the reflector has kept it. While the API server is away,
 * clients must not take the feeds for all there is and remember it for hours. Returns: FOUND with
 * the ETag in TAG; NOT_FOUND: none in the client's version; errors. */
static int discovery_kept(struct answer_request *request, struct buf *out, char tag[DISCOVERY_TAG])
{
	const char *name = request->path.kind == API_PATH_API ? "discovery.api" : "discovery.apis";
	struct store *store = catalog_store(request->worker->answer->catalog);
	CLEANUP(buf_release) struct buf file = BUF_INIT;
	char version[64];
	struct bytes tail;

	if (!request->unreachable)
		return NOT_FOUND;
	int r = text_file_load(home_fd(store_home(store)), name, DISCOVERY_MAX, &file);
	if (r == -ENOENT) {
		err_ignore(r, "the reflector has not kept any yet");
		return NOT_FOUND;
	}
	if (r < 0)
		return r;
	const char *text = buf_cstr(&file), *end = strchr(text, '\n');
	if (!end || sscanf(text, "kinf-discovery 1 %299s", tag) != 1)
		return NOT_FOUND;
	tail = BYTES(end + 1, file.size - (size_t)(end + 1 - text));
	(void)snprintf(
		version, sizeof(version), "\"apidiscovery.k8s.io/%s\"", request->accept.version);
	if (!memmem(tail.data, tail.size < 200 ? tail.size : 200, version, strlen(version)))
		return NOT_FOUND;
	buf_bytes_put(out, tail);
	return FOUND;
}

/* Aggregated documents have a tag: clients ask whether theirs is current. */
static void discovery_send(struct answer_request *request, const struct served *discovery)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	bool core = request->path.kind == API_PATH_API;
	struct exchange *x = request->x;
	struct answer_head head;
	char tag[DISCOVERY_TAG] = "", type[96];
	int r = discovery_kept(request, &out, tag);

	if (r == NOT_FOUND) {
		*tag = '\0';
		discovery_aggregated(discovery, core, request->accept.version, &out);
		buf_byte(&out, '\n');
	}
	if (*tag != '"')
		(void)snprintf(tag, sizeof(tag), "\"%016llX\"",
			(unsigned long long)hash_bytes(buf_bytes(&out), 0));
	if (r >= 0 && buf_error(&out) < 0)
		r = buf_error(&out);
	if (r < 0) {
		answer_refuse(request, r);
		return;
	}
	(void)snprintf(type, sizeof(type),
		"application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
		request->accept.version);
	bool same = bytes_equal(exchange_header(x, "if-none-match"), bytes_str(tag));

	answer_head(request, type, false, &head);
	answer_head_put(&head, "etag", tag);
	answer_head_put(&head, "vary", "Accept");
	answer_head_put(&head, "cache-control", "public");
	exchange_begin(x, same ? 304 : 200, head.headers, head.n);
	exchange_send(x, same ? BYTES_NONE : buf_bytes(&out));
	answer_request_free(&request);
}

/* Makes the document of the path. Returns: FOUND, NOT_FOUND. */
static int discovery_document(
	const struct answer_request *request, const struct served *discovery, struct buf *out)
{
	switch (request->path.kind) {
	case API_PATH_API:
		buf_str(out, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
			     "\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\","
			     "\"serverAddress\":");
		json_write_string(request->x->host, out);
		buf_str(out, "}]}");
		return FOUND;
	case API_PATH_GROUPS:
		discovery_groups(discovery, out);
		return FOUND;
	case API_PATH_GROUP:
		for (size_t i = 0; i < discovery->n; i++)
			if (strcmp(discovery->resources[i].group, request->path.group) == 0) {
				buf_str(out, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",");
				discovery_group(discovery, i, out);
				return FOUND;
			}
		return NOT_FOUND;
	case API_PATH_RESOURCES:
		return discovery_resources(discovery, &request->path, out);
	case API_PATH_ROOT:
		buf_str(out, "{\"paths\":[\"/api\",\"/api/v1\",\"/apis\",\"/healthz\",\"/livez\","
			     "\"/readyz\",\"/version\"]}");
		return FOUND;
	case API_PATH_VERSION:
		buf_str(out, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.0+"
			     "kinf-" KINF_VERSION
			     "\",\"gitCommit\":\"\",\"gitTreeState\":\"clean\",\"buildDate\":"
			     "\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\",\"compiler\":\"cc\","
			     "\"platform\":\"linux/" MACHINE "\"}");
		return FOUND;
	default:
		return NOT_FOUND;
	}
}

void answer_discovery(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct served discovery = {.n = 0};
	bool has_aggregated =
		request->path.kind == API_PATH_API || request->path.kind == API_PATH_GROUPS;
	bool is_read = answer_is_read(request);
	struct catalog *catalog = request->worker->answer->catalog;
	const struct catalog_feed *feed;
	size_t at = 0;
	int r = 0;

	catalog_lock(catalog);
	while (r == 0 && (feed = catalog_next_feed(catalog, &at)))
		r = discovery_add(&discovery, &feed->definition);
	catalog_unlock(catalog);
	if (r == 0)
		discovery_sort(&discovery);
	if (r == 0)
		r = api_accept_parse(exchange_header(request->x, "accept"), has_aggregated,
			&request->accept, &request->status);
	/* /version is not negotiated; another path is not found in any form (/openapi). */
	if (r == 406 &&
		(request->path.kind == API_PATH_VERSION || request->path.kind == API_PATH_OTHER))
		r = 0;
	/* A client would keep an empty document for hours. */
	if (r == 0 && is_read && answer_is_of_feeds(request) && catalog_is_empty(catalog))
		r = api_status_starting(&request->status);
	if (r == 0 && is_read && request->accept.form == API_FORM_DISCOVERY) {
		discovery_send(request, &discovery);
		free(discovery.resources);
		return;
	}
	if (r == 0)
		r = discovery_document(request, &discovery, &out);
	free(discovery.resources);
	if (r == NOT_FOUND)
		r = api_status_unknown_path(&request->status);
	else if (r == 0 && !is_read)
		r = api_status_no_method(&request->status);
	if (r == 0)
		r = buf_error(&out);
	if (request->path.kind == API_PATH_VERSION)
		request->pretty = true;
	if (r != 0)
		answer_refuse(request, r);
	else
		answer_send(request, &out);
}
