/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/kind.h"

#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

#define EMPTY_SPEC ",\"spec\":{},\"status\":{}"

static const struct kind built_in_kinds[] = {
	{"", "v1", "configmaps", "configmap", "ConfigMap", "cm", NULL, "qFsyl6wFWjQ=", NULL, "",
		.namespaced = true, .no_status = true},
	{"", "v1", "namespaces", "namespace", "Namespace", "ns", NULL, "Q3oi5N2YM8M=",
		"status.phase", EMPTY_SPEC},
	{"", "v1", "nodes", "node", "Node", "no", NULL, "XwShjMxG9Fs=", "spec.unschedulable",
		",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}},"
		"\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\","
		"\"kernelVersion\":\"\",\"osImage\":\"\",\"containerRuntimeVersion\":\"\","
		"\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\","
		"\"architecture\":\"\"}}"},
	{"", "v1", "pods", "pod", "Pod", "po", "all", "xPOwRZ+Yhw8=",
		"spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName "
		"spec.hostNetwork status.phase status.podIP status.nominatedNodeName",
		",\"spec\":{\"containers\":null},\"status\":{}", .namespaced = true},
	{"", "v1", "secrets", "secret", "Secret", NULL, NULL, "S6u1pOWzb84=", "type", "",
		.namespaced = true, .no_status = true},
	{"", "v1", "services", "service", "Service", "svc", "all", "0/CO1lhkEBI=",
		"spec.clusterIP spec.type", ",\"spec\":{},\"status\":{\"loadBalancer\":{}}",
		.namespaced = true},
	{"apps", "v1", "deployments", "deployment", "Deployment", "deploy", "all", "8aSe+NMegvE=",
		NULL,
		",\"spec\":{\"selector\":null,\"template\":{\"metadata\":{},"
		"\"spec\":{\"containers\":null}},\"strategy\":{}},\"status\":{}",
		.namespaced = true},
	{"apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", "all", "P1RzHs8/mWQ=", NULL,
		",\"spec\":{\"selector\":null,\"template\":{\"metadata\":{},"
		"\"spec\":{\"containers\":null}}},\"status\":{\"replicas\":0}",
		.namespaced = true},
	{"example.com", "v1", "widgets", "widget", "Widget", "wd", "all", "gIwvi5rymmg=", "", "",
		.namespaced = true, .custom = true},
};

const struct kind *kind_built_in(size_t i)
{
	return i < sizeof(built_in_kinds) / sizeof(built_in_kinds[0]) ? &built_in_kinds[i] : NULL;
}

const struct kind *kind_describe(struct bytes description)
{
	struct kind *kind = memory_take(sizeof(*kind));

	kind->group = jsontext_dup(jsontext_get(description, "group"));
	kind->version = jsontext_dup(jsontext_get(description, "version"));
	kind->resource = jsontext_dup(jsontext_get(description, "resource"));
	kind->singular = jsontext_dup(jsontext_get(description, "singular"));
	kind->name = jsontext_dup(jsontext_get(description, "kind"));
	kind->short_name = jsontext_dup(jsontext_get(description, "shortName"));
	kind->category = jsontext_dup(jsontext_get(description, "category"));
	kind->hash = "c2ltdWxhdGVkLg=";
	kind->fields = "";
	kind->idle = "";
	kind->namespaced =
		!bytes_equal(jsontext_get(description, "namespaced"), BYTES_LIT("false"));
	kind->custom = true;
	kind->described = true;
	if (!kind->singular)
		kind->singular = memory_text(BYTES_NONE);
	if (!kind->group || !kind->version || !kind->resource || !kind->name)
		kind_free((const struct kind **)&kind);
	return kind;
}

void kind_free(const struct kind **kind)
{
	struct kind *own = (struct kind *)*kind;

	*kind = NULL;
	if (!own || !own->described)
		return;
	free((char *)own->group);
	free((char *)own->version);
	free((char *)own->resource);
	free((char *)own->singular);
	free((char *)own->name);
	free((char *)own->short_name);
	free((char *)own->category);
	free(own);
}

void kind_put_group_version(const struct kind *kind, struct buf *out)
{
	if (kind->group[0])
		buf_printf(out, "%s/", kind->group);
	buf_str(out, kind->version);
}

void kind_put_qualified(const struct kind *kind, struct buf *out)
{
	buf_str(out, kind->resource);
	if (kind->group[0])
		buf_printf(out, ".%s", kind->group);
}

const char *const *kind_verbs(const struct kind *kind)
{
	static const char *const built_in[] = {"create", "delete", "deletecollection", "get",
		"list", "patch", "update", "watch", NULL};
	static const char *const namespaces[] = {
		"create", "delete", "get", "list", "patch", "update", "watch", NULL};
	static const char *const custom[] = {"delete", "deletecollection", "get", "list", "patch",
		"create", "update", "watch", NULL};

	if (kind->custom)
		return custom;
	return strcmp(kind->resource, "namespaces") ? built_in : namespaces;
}

static bool has_word(const char *words, struct bytes word)
{
	while (*words) {
		size_t length = strcspn(words, " ");

		if (bytes_equal(BYTES(words, length), word))
			return true;
		words += length + (words[length] == ' ');
	}
	return false;
}

bool kind_has_field(const struct kind *kind, struct bytes label)
{
	if (bytes_equal(label, BYTES_LIT("metadata.name")))
		return true;
	if (bytes_equal(label, BYTES_LIT("metadata.namespace")))
		return kind->namespaced;
	return kind->fields && has_word(kind->fields, label);
}
