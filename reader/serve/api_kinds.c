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
	struct bytes label)
{
	char wanted[80];

	if (bytes_equal(label, BYTES_LIT("metadata.name")))
		return true;
	if (bytes_equal(label, BYTES_LIT("metadata.namespace")))
		return namespaced || !(is_custom || (known && known->refusal == REFUSE_LABEL));
	if (!known || label.size + 3 > sizeof(wanted))
		return false;
	(void)snprintf(wanted, sizeof(wanted), " %.*s ", BYTES_ARG(label));
	return memchr(label.data, ' ', label.size) == NULL && strstr(known->labels, wanted) != NULL;
}

int api_kind_check_fields(const char *group, const char *kind, bool namespaced,
	const struct selector *fields, struct api_status *status)
{
	const struct api_kind *known = api_kind_find(group, kind);
	bool is_custom = !custom_is_builtin_group(group);
	enum api_kind_refusal refusal =
		known ? known->refusal : is_custom ? REFUSE_LABEL : REFUSE_UNKNOWN;

	for (size_t i = 0; fields && i < selector_count(fields); i++) {
		struct bytes label = selector_at(fields, i)->key;

		if (api_kind_has_label(known, is_custom, namespaced, label))
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

const char *api_kind_bookmark_rest(const char *group, const char *kind)
{
	const struct api_kind *known = api_kind_find(group, kind);

	return known && known->rest ? known->rest : "";
}
