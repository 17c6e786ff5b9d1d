/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/api_kinds.h"

#include <stdio.h>

#include "common/value/custom.h"

enum api_kind_refusal {
	REFUSE_LABEL,   /* field label not supported: x */
	REFUSE_UNKNOWN, /* "x" is not a known field selector */
	REFUSE_FOR_KIND /* field label "x" not supported for Kind */
};

struct api_kind {
	const char *group, *kind;
	enum api_kind_refusal refusal;
	const char *labels; /* each between blanks */
	const char *rest;   /* of a bookmark; NULL: nothing */
};

#define SPEC_STATUS ",\"spec\":{},\"status\":{}"
#define OBJECT_LABELS(name)                                                                        \
	" " name ".kind " name ".namespace " name ".name " name ".uid " name ".apiVersion " name   \
	".resourceVersion " name ".fieldPath "

static const struct api_kind api_kinds[] = {
	{"", "Pod", REFUSE_LABEL,
		" spec.nodeName spec.host spec.restartPolicy spec.schedulerName "
		"spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs "
		"status.nominatedNodeName ",
		",\"spec\":{\"containers\":null},\"status\":{}"},
	{"", "Event", REFUSE_LABEL,
		OBJECT_LABELS("involvedObject") "reason reportingComponent source type ",
		",\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,"
		"\"lastTimestamp\":null,\"eventTime\":null,\"reportingComponent\":\"\","
		"\"reportingInstance\":\"\""},
	{"events.k8s.io", "Event", REFUSE_LABEL,
		OBJECT_LABELS("regarding") "reason reportingController source type ", NULL},
	{"", "Node", REFUSE_LABEL, " spec.unschedulable ",
		",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}},"
		"\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\","
		"\"kernelVersion\":\"\",\"osImage\":\"\",\"containerRuntimeVersion\":\"\","
		"\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\","
		"\"architecture\":\"\"}}"},
	{"", "Namespace", REFUSE_LABEL, " status.phase ", SPEC_STATUS},
	{"", "Secret", REFUSE_LABEL, " type ", ""},
	{"", "ConfigMap", REFUSE_UNKNOWN, " ", ""},
	{"", "Service", REFUSE_LABEL, " spec.clusterIP spec.type ",
		",\"spec\":{},\"status\":{\"loadBalancer\":{}}"},
	{"", "ReplicationController", REFUSE_LABEL, " status.replicas ",
		",\"spec\":{},\"status\":{\"replicas\":0}"},
	{"batch", "Job", REFUSE_FOR_KIND, " status.successful ",
		",\"spec\":{\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}},"
		"\"status\":{}"},
	{"certificates.k8s.io", "CertificateSigningRequest", REFUSE_FOR_KIND, " spec.signerName ",
		NULL},
	{"certificates.k8s.io", "ClusterTrustBundle", REFUSE_FOR_KIND, " spec.signerName ", NULL},
	{"certificates.k8s.io", "PodCertificateRequest", REFUSE_FOR_KIND,
		" spec.signerName spec.podName spec.nodeName ", NULL},
	{"resource.k8s.io", "ResourceSlice", REFUSE_FOR_KIND, " spec.nodeName spec.driver ", NULL},
	{"apps", "Deployment", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"replicas\":0,\"selector\":null,"
		"\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}},\"strategy\":{}},"
		"\"status\":{}"},
	{"apps", "ReplicaSet", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"replicas\":0,\"selector\":null,"
		"\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}},"
		"\"status\":{\"replicas\":0}"},
	{"apps", "StatefulSet", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"replicas\":0,\"selector\":null,"
		"\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}},\"serviceName\":"
		"\"\","
		"\"updateStrategy\":{}},\"status\":{\"replicas\":0,\"availableReplicas\":0}"},
	{"apps", "DaemonSet", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"selector\":null,"
		"\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}},\"updateStrategy\":{"
		"}},"
		"\"status\":{\"currentNumberScheduled\":0,\"numberMisscheduled\":0,"
		"\"desiredNumberScheduled\":0,\"numberReady\":0}"},
	{"", "PersistentVolumeClaim", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"resources\":{}},\"status\":{}"},
	{"", "PersistentVolume", REFUSE_UNKNOWN, " ", SPEC_STATUS},
	{"coordination.k8s.io", "Lease", REFUSE_UNKNOWN, " ", ",\"spec\":{}"},
	{"discovery.k8s.io", "EndpointSlice", REFUSE_UNKNOWN, " ",
		",\"addressType\":\"\",\"endpoints\":null,\"ports\":null"},
	{"batch", "CronJob", REFUSE_UNKNOWN, " ",
		",\"spec\":{\"schedule\":\"\",\"jobTemplate\":{\"metadata\":{},"
		"\"spec\":{\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}}}},"
		"\"status\":{}"},
	{"networking.k8s.io", "Ingress", REFUSE_UNKNOWN, " ",
		",\"spec\":{},\"status\":{\"loadBalancer\":{}}"},
};

static const struct api_kind *api_kind_find(const char *group, const char *kind)
{
	for (size_t i = 0; i < sizeof(api_kinds) / sizeof(*api_kinds); i++)
		if (strcmp(api_kinds[i].group, group) == 0 && strcmp(api_kinds[i].kind, kind) == 0)
			return &api_kinds[i];
	return NULL;
}

/* Returns whether the kind has the field label. Nodes, namespaces and custom resources without a
 * namespace have no metadata.namespace. */
static bool api_kind_has_label(const struct api_kind *known, bool is_custom, bool namespaced,
	const char *selectable, struct bytes label)
{
	char wanted[320];

	if (bytes_equal(label, BYTES_LIT("metadata.name")))
		return true;
	if (bytes_equal(label, BYTES_LIT("metadata.namespace")))
		return namespaced || !(is_custom || (known && known->refusal == REFUSE_LABEL));
	if (label.size + 3 > sizeof(wanted))
		return false;
	(void)snprintf(wanted, sizeof(wanted), " %.*s ", BYTES_ARG(label));
	return memchr(label.data, ' ', label.size) == NULL &&
	       strstr(known ? known->labels : selectable, wanted) != NULL;
}

int api_kind_check_fields(const char *group, const char *kind, bool namespaced,
	const char *selectable, const struct selector *fields, struct api_status *status)
{
	const struct api_kind *known = api_kind_find(group, kind);
	bool is_custom = !custom_is_builtin_group(group);
	enum api_kind_refusal refusal =
		known ? known->refusal : is_custom ? REFUSE_LABEL : REFUSE_UNKNOWN;

	for (size_t i = 0; fields && i < selector_count(fields); i++) {
		struct bytes label = selector_at(fields, i)->key;

		if (api_kind_has_label(known, is_custom, namespaced, selectable, label))
			continue;
		switch (refusal) {
		case REFUSE_LABEL:
			return api_status_set(status, 400, "BadRequest",
				"field label not supported: %.*s", BYTES_ARG(label));
		case REFUSE_FOR_KIND:
			return api_status_set(status, 400, "BadRequest",
				"field label \"%.*s\" not supported for %s", BYTES_ARG(label),
				kind);
		default:
			return api_status_set(status, 400, "BadRequest",
				"\"%.*s\" is not a known field selector: only \"metadata.name\", "
				"\"metadata.namespace\"", BYTES_ARG(label));
		}
	}
	return 0;
}

unsigned api_kind_group_rank(const char *group)
{
	static const char *const groups[] = {"", "apiregistration.k8s.io", "apps", "events.k8s.io",
		"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
		"certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
		"storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io",
		"scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io",
		"resource.k8s.io", "flowcontrol.apiserver.k8s.io"};
	unsigned n = sizeof(groups) / sizeof(*groups), i = 0;

	while (i < n && strcmp(groups[i], group) != 0)
		i++;
	return i;
}

/* Reads "v2", "v1beta3". Returns false if it is no such version. */
static bool api_kind_read_version(const char *version, unsigned *ret_stage, unsigned ret_numbers[2])
{
	int end = 0;

	ret_numbers[1] = 0;
	if (sscanf(version, "v%9u%n", &ret_numbers[0], &end) == 1 && end && !version[end])
		*ret_stage = 2;
	else if (sscanf(version, "v%9ubeta%9u%n", &ret_numbers[0], &ret_numbers[1], &end) == 2 &&
		 !version[end])
		*ret_stage = 1;
	else if (sscanf(version, "v%9ualpha%9u%n", &ret_numbers[0], &ret_numbers[1], &end) == 2 &&
		 !version[end])
		*ret_stage = 0;
	else
		return false;
	return true;
}

int api_kind_compare_versions(const char *a, const char *b)
{
	unsigned stage_a, stage_b, x[2], y[2];
	bool is_a = api_kind_read_version(a, &stage_a, x),
	     is_b = api_kind_read_version(b, &stage_b, y);

	if (!is_a || !is_b)
		return is_a != is_b ? (is_a ? -1 : 1) : strcmp(a, b);
	if (stage_a != stage_b)
		return stage_a > stage_b ? -1 : 1;
	if (x[0] != y[0])
		return x[0] > y[0] ? -1 : 1;
	return (x[1] < y[1]) - (x[1] > y[1]);
}

const char *api_kind_bookmark_rest(const char *group, const char *kind)
{
	const struct api_kind *known = api_kind_find(group, kind);

	return known && known->rest ? known->rest : "";
}
