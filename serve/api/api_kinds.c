/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_kinds.h"

#include <stdio.h>

#include "common/err.h"
#include "common/value/custom.h"
#include "common/value/value.h"

/* The kinds with field labels of their own. Others have metadata.name and metadata.namespace. */
struct api_kind {
	const char *group, *kind;
	const char *labels; /* besides metadata.name; each between blanks */
};

#define NAMESPACE " metadata.namespace"
#define OBJECT_LABELS(name) \
	" " name ".kind " name ".namespace " name ".name " name ".uid " name ".apiVersion " name \
	".resourceVersion " name ".fieldPath "

static const struct api_kind api_kinds[] = {
	{"", "Pod",
		NAMESPACE
		" spec.nodeName spec.host spec.restartPolicy spec.schedulerName "
		"spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs "
		"status.nominatedNodeName "},
	{"", "Event",
		NAMESPACE OBJECT_LABELS("involvedObject") "reason reportingComponent source type "},
	{"events.k8s.io", "Event",
		NAMESPACE OBJECT_LABELS("regarding") "reason reportingController type "},
	{"", "Node", " spec.unschedulable "},
	{"", "Namespace", " status.phase "},
	{"", "Secret", NAMESPACE " type "},
	{"", "Service", NAMESPACE " spec.clusterIP spec.type "},
	{"", "ReplicationController", NAMESPACE " status.replicas "},
	{"batch", "Job", NAMESPACE " status.successful "},
	{"certificates.k8s.io", "CertificateSigningRequest", " spec.signerName "},
	{"certificates.k8s.io", "ClusterTrustBundle", " spec.signerName "},
	{"certificates.k8s.io", "PodCertificateRequest",
		" spec.signerName spec.podName spec.nodeName "},
	{"resource.k8s.io", "ResourceSlice", " spec.nodeName spec.driver spec.pool.name "},
};

/* Returns whether LABEL is in LABELS, each between blanks. */
static bool api_kind_lists(const char *labels, struct bytes label)
{
	char wanted[320];

	if (label.size + 3 > sizeof(wanted) || memchr(label.data, ' ', label.size))
		return false;
	(void)snprintf(wanted, sizeof(wanted), " %.*s ", BYTES_ARG(label));
	return strstr(labels, wanted) != NULL;
}

int api_kind_check_fields(const struct api_kind_name *name, const char *selectable,
	const struct selector *fields, struct api_status *status)
{
	const struct api_kind *known = NULL;
	bool is_custom = !custom_is_builtin_group(name->group);

	for (size_t i = 0; i < ARRAY_SIZE(api_kinds) && !known; i++)
		if (strcmp(api_kinds[i].group, name->group) == 0 &&
			strcmp(api_kinds[i].kind, name->kind) == 0)
			known = &api_kinds[i];
	bool by_default = !known && !is_custom;

	for (size_t i = 0; fields && i < selector_count(fields); i++) {
		struct bytes label = selector_at(fields, i)->key;
		bool is_namespace = bytes_equal(label, BYTES_LIT("metadata.namespace"));

		if (bytes_equal(label, BYTES_LIT("metadata.name")) ||
			(is_namespace && !known && (name->namespaced || !is_custom)) ||
			(!by_default && api_kind_lists(known ? known->labels : selectable, label)))
			continue;
		if (by_default)
			return api_status_set(status, 400, "BadRequest",
				"\"%.*s\" is not a known field selector: only \"metadata.name\", "
				"\"metadata.namespace\"",
				BYTES_ARG(label));
		return api_status_set(status, 400, "BadRequest", "field label not supported: %.*s",
			BYTES_ARG(label));
	}
	return 0;
}

static bool api_kind_has(const struct value *version, const char *flag)
{
	struct value found;

	return value_find(version, bytes_str(flag), &found) == FOUND && found.type == VALUE_BOOL &&
	       found.u.b;
}

/* Searches VERSIONS for WANTED, an empty map if it is not there, and for the newest version better
 * than it, "" if there is none. */
static int api_kind_search_versions(const struct value *versions, const char *wanted,
	struct value *ret_found, char ret_better[64])
{
	struct value one, name;
	struct value_iter iter;
	char text[64];
	int r;

	*ret_found = (struct value){.type = VALUE_MAP};
	*ret_better = '\0';
	value_iter_init(&iter, versions);
	while ((r = value_iter_next(&iter, NULL, &one)) == FOUND) {
		if (value_find(&one, BYTES_LIT("name"), &name) != FOUND)
			continue;
		(void)snprintf(text, sizeof(text), "%.*s", BYTES_ARG(name.text));
		if (strcmp(text, wanted) == 0)
			*ret_found = one;
		else if (api_kind_has(&one, "served") && !api_kind_has(&one, "deprecated") &&
			 custom_compare_versions(text, *ret_better ? ret_better : wanted) < 0)
			(void)snprintf(ret_better, 64, "%s", text);
	}
	return r < 0 ? r : 0;
}

int api_kind_deprecation(struct bytes definition, const char *version, struct buf *out)
{
	struct value root, spec, versions, group, names, kind, found, warning;
	char better[64];
	int r = value_read(definition, &root);

	if (r < 0)
		return r;
	if (value_find(&root, BYTES_LIT("spec"), &spec) != FOUND ||
		value_find(&spec, BYTES_LIT("versions"), &versions) != FOUND ||
		value_find(&spec, BYTES_LIT("group"), &group) != FOUND ||
		value_find(&spec, BYTES_LIT("names"), &names) != FOUND ||
		value_find(&names, BYTES_LIT("kind"), &kind) != FOUND)
		return 0;
	r = api_kind_search_versions(&versions, version, &found, better);
	if (r < 0 || !api_kind_has(&found, "deprecated"))
		return r;
	if (value_find(&found, BYTES_LIT("deprecationWarning"), &warning) == FOUND) {
		buf_bytes_put(out, warning.text);
		return buf_error(out);
	}
	buf_printf(out, "%.*s/%s %.*s is deprecated", BYTES_ARG(group.text), version,
		BYTES_ARG(kind.text));
	if (*better)
		buf_printf(out, "; use %.*s/%s %.*s", BYTES_ARG(group.text), better,
			BYTES_ARG(kind.text));
	return buf_error(out);
}
