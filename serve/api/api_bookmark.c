/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_object.h"

#include <string.h>

#define SPEC         ",\"spec\":{}"
#define SPEC_STATUS  SPEC ",\"status\":{}"
#define POD_TEMPLATE "\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}}"

/* As kube-apiserver 1.37 sends them, all of its groups and versions being on. */
static const struct api_bookmark {
	const char *group, *version, *kind; /* version NULL: all of them */
	const char *rest;
} api_bookmarks[] = {
	{"", NULL, "Event",
		",\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null"
		",\"lastTimestamp\":null,\"eventTime\":null,\"reportingComponent\":\"\""
		",\"reportingInstance\":\"\""},
	{"", NULL, "LimitRange", ",\"spec\":{\"limits\":null}"},
	{"", NULL, "Namespace", SPEC_STATUS},
	{"", NULL, "Node",
		",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}}"
		",\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\""
		",\"kernelVersion\":\"\",\"osImage\":\"\",\"containerRuntimeVersion\":\"\""
		",\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\""
		",\"architecture\":\"\"}}"},
	{"", NULL, "PersistentVolumeClaim", ",\"spec\":{\"resources\":{}},\"status\":{}"},
	{"", NULL, "PersistentVolume", SPEC_STATUS},
	{"", NULL, "Pod", ",\"spec\":{\"containers\":null},\"status\":{}"},
	{"", NULL, "PodTemplate", "," POD_TEMPLATE},
	{"", NULL, "ReplicationController", ",\"spec\":{},\"status\":{\"replicas\":0}"},
	{"", NULL, "ResourceQuota", SPEC_STATUS},
	{"", NULL, "Service", ",\"spec\":{},\"status\":{\"loadBalancer\":{}}"},
	{"apiregistration.k8s.io", NULL, "APIService",
		",\"spec\":{\"groupPriorityMinimum\":0,\"versionPriority\":0},\"status\":{}"},
	{"apps", NULL, "ControllerRevision", ",\"data\":null,\"revision\":0"},
	{"apps", NULL, "DaemonSet",
		",\"spec\":{\"selector\":null," POD_TEMPLATE
		",\"updateStrategy\":{}},\"status\":{\"currentNumberScheduled\":0"
		",\"numberMisscheduled\":0,\"desiredNumberScheduled\":0,\"numberReady\":0}"},
	{"apps", NULL, "Deployment",
		",\"spec\":{\"replicas\":0,\"selector\":null," POD_TEMPLATE
		",\"strategy\":{}},\"status\":{}"},
	{"apps", NULL, "ReplicaSet",
		",\"spec\":{\"replicas\":0,\"selector\":null," POD_TEMPLATE
		"},\"status\":{\"replicas\":0}"},
	{"apps", NULL, "StatefulSet",
		",\"spec\":{\"replicas\":0,\"selector\":null," POD_TEMPLATE
		",\"serviceName\":\"\",\"updateStrategy\":{}},\"status\":{\"replicas\":0"
		",\"availableReplicas\":0}"},
	{"events.k8s.io", NULL, "Event",
		",\"eventTime\":null,\"regarding\":{},\"deprecatedSource\":{}"
		",\"deprecatedFirstTimestamp\":null,\"deprecatedLastTimestamp\":null"},
	{"autoscaling", "v2", "HorizontalPodAutoscaler",
		",\"spec\":{\"scaleTargetRef\":{\"kind\":\"\",\"name\":\"\"},\"maxReplicas\":0}"
		",\"status\":{\"desiredReplicas\":0,\"currentMetrics\":null}"},
	{"autoscaling", "v1", "HorizontalPodAutoscaler",
		",\"spec\":{\"scaleTargetRef\":{\"kind\":\"\",\"name\":\"\"},\"maxReplicas\":0}"
		",\"status\":{\"currentReplicas\":0,\"desiredReplicas\":0}"},
	{"batch", NULL, "CronJob",
		",\"spec\":{\"schedule\":\"\",\"jobTemplate\":{\"metadata\":{},\"spec\":"
		"{" POD_TEMPLATE "}}},\"status\":{}"},
	{"batch", NULL, "Job", ",\"spec\":{" POD_TEMPLATE "},\"status\":{}"},
	{"certificates.k8s.io", NULL, "CertificateSigningRequest",
		",\"spec\":{\"request\":null,\"signerName\":\"\"},\"status\":{}"},
	{"certificates.k8s.io", NULL, "ClusterTrustBundle", ",\"spec\":{\"trustBundle\":\"\"}"},
	{"certificates.k8s.io", NULL, "PodCertificateRequest",
		",\"spec\":{\"signerName\":\"\",\"podName\":\"\",\"podUID\":\"\""
		",\"serviceAccountName\":\"\",\"serviceAccountUID\":\"\",\"nodeName\":\"\""
		",\"nodeUID\":\"\",\"stubPKCS10Request\":null},\"status\":{}"},
	{"networking.k8s.io", NULL, "IngressClass", SPEC},
	{"networking.k8s.io", NULL, "Ingress", ",\"spec\":{},\"status\":{\"loadBalancer\":{}}"},
	{"networking.k8s.io", NULL, "IPAddress", SPEC},
	{"networking.k8s.io", NULL, "NetworkPolicy", ",\"spec\":{\"podSelector\":{}}"},
	{"networking.k8s.io", NULL, "ServiceCIDR", SPEC_STATUS},
	{"policy", NULL, "PodDisruptionBudget",
		",\"spec\":{},\"status\":{\"disruptionsAllowed\":0,\"currentHealthy\":0"
		",\"desiredHealthy\":0,\"expectedPods\":0}"},
	{"rbac.authorization.k8s.io", NULL, "ClusterRoleBinding",
		",\"roleRef\":{\"apiGroup\":\"\",\"kind\":\"\",\"name\":\"\"}"},
	{"rbac.authorization.k8s.io", NULL, "ClusterRole", ",\"rules\":null"},
	{"rbac.authorization.k8s.io", NULL, "RoleBinding",
		",\"roleRef\":{\"apiGroup\":\"\",\"kind\":\"\",\"name\":\"\"}"},
	{"rbac.authorization.k8s.io", NULL, "Role", ",\"rules\":null"},
	{"storage.k8s.io", NULL, "CSIDriver", SPEC},
	{"storage.k8s.io", NULL, "CSINode", ",\"spec\":{\"drivers\":null},\"status\":{}"},
	{"storage.k8s.io", NULL, "CSIStorageCapacity", ",\"storageClassName\":\"\""},
	{"storage.k8s.io", NULL, "StorageClass", ",\"provisioner\":\"\""},
	{"storage.k8s.io", NULL, "VolumeAttachment",
		",\"spec\":{\"attacher\":\"\",\"source\":{},\"nodeName\":\"\"}"
		",\"status\":{\"attached\":false}"},
	{"storage.k8s.io", NULL, "VolumeAttributesClass", ",\"driverName\":\"\""},
	{"admissionregistration.k8s.io", NULL, "MutatingAdmissionPolicy", SPEC},
	{"admissionregistration.k8s.io", NULL, "MutatingAdmissionPolicyBinding", SPEC},
	{"admissionregistration.k8s.io", NULL, "ValidatingAdmissionPolicy", SPEC_STATUS},
	{"admissionregistration.k8s.io", NULL, "ValidatingAdmissionPolicyBinding", SPEC},
	{"apiextensions.k8s.io", NULL, "CustomResourceDefinition",
		",\"spec\":{\"group\":\"\",\"names\":{\"plural\":\"\",\"kind\":\"\"},\"scope\":\"\""
		",\"versions\":null},\"status\":{\"conditions\":null"
		",\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},\"storedVersions\":null}"},
	{"scheduling.k8s.io", NULL, "PriorityClass", ",\"value\":0"},
	{"scheduling.k8s.io", NULL, "PodGroup",
		",\"spec\":{\"schedulingPolicy\":{}},\"status\":{}"},
	{"scheduling.k8s.io", NULL, "CompositePodGroup",
		",\"spec\":{\"workloadRef\":null,\"schedulingPolicy\":{}},\"status\":{}"},
	{"scheduling.k8s.io", NULL, "Workload", ",\"spec\":{\"podGroupTemplates\":null}"},
	{"coordination.k8s.io", NULL, "Lease", SPEC},
	{"coordination.k8s.io", NULL, "LeaseCandidate",
		",\"spec\":{\"leaseName\":\"\",\"binaryVersion\":\"\"}"},
	{"node.k8s.io", NULL, "RuntimeClass", ",\"handler\":\"\""},
	{"discovery.k8s.io", NULL, "EndpointSlice",
		",\"addressType\":\"\",\"endpoints\":null,\"ports\":null"},
	{"resource.k8s.io", NULL, "DeviceClass", SPEC},
	{"resource.k8s.io", NULL, "ResourceClaim",
		",\"spec\":{\"devices\":{\"requests\":null}},\"status\":{}"},
	{"resource.k8s.io", NULL, "ResourceClaimTemplate",
		",\"spec\":{\"metadata\":{},\"spec\":{\"devices\":{\"requests\":null}}}"},
	{"resource.k8s.io", NULL, "ResourceSlice",
		",\"spec\":{\"driver\":\"\",\"pool\":{\"name\":\"\",\"generation\":0"
		",\"resourceSliceCount\":0}}"},
	{"resource.k8s.io", NULL, "DeviceTaintRule",
		",\"spec\":{\"taint\":{\"key\":\"\",\"effect\":\"\"}},\"status\":{}"},
	{"resource.k8s.io", NULL, "ResourcePoolStatusRequest", ",\"spec\":{\"driver\":\"\"}"},
	{"flowcontrol.apiserver.k8s.io", NULL, "FlowSchema",
		",\"spec\":{\"priorityLevelConfiguration\":{\"name\":\"\"}"
		",\"matchingPrecedence\":0},\"status\":{}"},
	{"flowcontrol.apiserver.k8s.io", NULL, "PriorityLevelConfiguration",
		",\"spec\":{\"type\":\"\"},\"status\":{}"},
	{"internal.apiserver.k8s.io", NULL, "StorageVersion", SPEC_STATUS},
	{"lifecycle.k8s.io", NULL, "Eviction", ",\"spec\":{\"target\":{}},\"status\":{}"},
	{"lifecycle.k8s.io", NULL, "EvictionRequest",
		",\"spec\":{\"target\":{},\"requester\":\"\",\"intent\":\"\"},\"status\":{}"},
	{"storagemigration.k8s.io", NULL, "StorageVersionMigration",
		",\"spec\":{\"resource\":{\"group\":\"\",\"resource\":\"\"}},\"status\":{}"},
};

const char *api_bookmark_rest(const char *group, const char *version, const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(api_bookmarks); i++) {
		const struct api_bookmark *b = &api_bookmarks[i];

		if (strcmp(b->group, group) == 0 && strcmp(b->kind, kind) == 0 &&
			(!b->version || strcmp(b->version, version) == 0))
			return b->rest;
	}
	return "";
}
