/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/kind.h"

#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

static const struct kind built_in_kinds[] = {
	{
		.group = "",
		.version = "v1",
		.resource = "configmaps",
		.singular = "configmap",
		.name = "ConfigMap",
		.short_name = "cm",
		.namespaced = true,
		.no_status = true,
	},
	{
		.group = "",
		.version = "v1",
		.resource = "events",
		.singular = "event",
		.name = "Event",
		.short_name = "ev",
		.fields = "involvedObject.kind involvedObject.namespace involvedObject.name "
			  "involvedObject.uid involvedObject.apiVersion "
			  "involvedObject.resourceVersion involvedObject.fieldPath reason "
			  "reportingComponent source type",
		.namespaced = true,
		.no_status = true,
	},
	{
		.group = "",
		.version = "v1",
		.resource = "namespaces",
		.singular = "namespace",
		.name = "Namespace",
		.short_name = "ns",
		.fields = "status.phase",
	},
	{
		.group = "",
		.version = "v1",
		.resource = "nodes",
		.singular = "node",
		.name = "Node",
		.short_name = "no",
		.fields = "spec.unschedulable",
	},
	{
		.group = "",
		.version = "v1",
		.resource = "pods",
		.singular = "pod",
		.name = "Pod",
		.short_name = "po",
		.category = "all",
		.fields = "spec.nodeName spec.restartPolicy spec.schedulerName "
			  "spec.serviceAccountName spec.hostNetwork status.phase status.podIP "
			  "status.nominatedNodeName",
		.namespaced = true,
	},
	{
		.group = "",
		.version = "v1",
		.resource = "secrets",
		.singular = "secret",
		.name = "Secret",
		.fields = "type",
		.namespaced = true,
		.no_status = true,
	},
	{
		.group = "",
		.version = "v1",
		.resource = "services",
		.singular = "service",
		.name = "Service",
		.short_name = "svc",
		.category = "all",
		.fields = "spec.clusterIP spec.type",
		.namespaced = true,
	},
	{
		.group = "apps",
		.version = "v1",
		.resource = "deployments",
		.singular = "deployment",
		.name = "Deployment",
		.short_name = "deploy",
		.category = "all",
		.namespaced = true,
	},
	{
		.group = "apps",
		.version = "v1",
		.resource = "replicasets",
		.singular = "replicaset",
		.name = "ReplicaSet",
		.short_name = "rs",
		.category = "all",
		.namespaced = true,
	},
	{
		.group = "rbac.authorization.k8s.io",
		.version = "v1",
		.resource = "clusterroles",
		.singular = "clusterrole",
		.name = "ClusterRole",
		.no_status = true,
	},
	{
		.group = "rbac.authorization.k8s.io",
		.version = "v1",
		.resource = "roles",
		.singular = "role",
		.name = "Role",
		.namespaced = true,
		.no_status = true,
	},
	{
		.group = "example.com",
		.version = "v1",
		.resource = "widgets",
		.singular = "widget",
		.name = "Widget",
		.short_name = "wd",
		.category = "all",
		.fields = "",
		.namespaced = true,
		.custom = true,
	},
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
	kind->fields = "";
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

static bool kind_has_word(const char *words, struct bytes word)
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
	return kind->fields && kind_has_word(kind->fields, label);
}
