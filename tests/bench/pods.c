/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/pods.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/bench/measure.h"

#define PER_NAMESPACE 400

uint64_t pods_nodes(const struct pods *pods)
{
	return pods->n / PODS_PER_NODE + 1;
}

void pod_namespace(const struct pods *pods, uint64_t number, char name[POD_NAME_MAX])
{
	(void)pods;
	(void)snprintf(name, POD_NAME_MAX, "team-%05" PRIu64, number / PER_NAMESPACE);
}

void pod_name(const struct pods *pods, uint64_t number, char name[POD_NAME_MAX])
{
	uint64_t mix = number / PODS_PER_APP + 1;

	(void)pods;
	(void)snprintf(name, POD_NAME_MAX, "shop-%07" PRIu64 "-%010" PRIx64 "-%" PRIu64,
		number / PODS_PER_APP, measure_random(&mix) & 0xffffffffffu, number % PODS_PER_APP);
}

/* The parts of the texts below. */
struct parts {
	char namespace_[POD_NAME_MAX], name[POD_NAME_MAX], owner[48], node[24];
	uint64_t number, version, release;
	const char *mark;
};

static void fill_parts(
	const struct pods *pods, uint64_t number, uint64_t version, struct parts *parts)
{
	uint64_t owner = number / PODS_PER_APP + 1, place = number + 1;

	parts->number = number;
	parts->version = version;
	parts->release = pods->moving ? version : 1;
	pod_namespace(pods, number, parts->namespace_);
	pod_name(pods, number, parts->name);
	(void)snprintf(parts->owner, sizeof(parts->owner),
		"%08" PRIx64 "-9a3b-4c5d-8e7f-000000000001", measure_random(&owner) & 0xffffffffu);
	(void)snprintf(parts->node, sizeof(parts->node), "node-%05" PRIu64,
		(measure_random(&place) + parts->release) % pods_nodes(pods));
}

static void put_metadata(const struct parts *parts, struct buf *out)
{
	uint64_t app = parts->number / PODS_PER_APP, hash = app + 7;

	buf_printf(out,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
		"\"uid\":\"%08" PRIx64 "-54ac-4ae2-9d8d-%012" PRIx64 "\","
		"\"resourceVersion\":\"%" PRIu64 "\",\"generation\":1,"
		"\"creationTimestamp\":\"2026-01-15T09:30:00Z\","
		"\"labels\":{\"app\":\"shop-%" PRIu64
		"\",\"app.kubernetes.io/name\":\"shop-%" PRIu64
		"\",\"app.kubernetes.io/version\":\"1.%" PRIu64 ".0\","
		"\"pod-template-hash\":\"%010" PRIx64 "\",\"tier\":\"%s\"},\"annotations\":{",
		parts->name, parts->namespace_, parts->number & 0xffffffffu, parts->number,
		parts->version, app, app, parts->release, measure_random(&hash) & 0xffffffffffu,
		app % 2 ? "backend" : "frontend");
	if (parts->mark)
		buf_printf(out, "\"bench/mark\":\"%s\",", parts->mark);
	buf_printf(out,
		"\"prometheus.io/port\":\"9090\",\"prometheus.io/scrape\":\"true\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
		"\"name\":\"shop-%" PRIu64 "\",\"uid\":\"%s\",\"controller\":true,"
		"\"blockOwnerDeletion\":true}]},",
		app, parts->owner);
}

static void put_probe(const char *name, const char *path, struct buf *out)
{
	buf_printf(out,
		"\"%s\":{\"httpGet\":{\"path\":\"%s\",\"port\":\"http\",\"scheme\":\"HTTP\"},"
		"\"initialDelaySeconds\":15,\"timeoutSeconds\":3,\"periodSeconds\":20,"
		"\"successThreshold\":1,\"failureThreshold\":3},",
		name, path);
}

static void put_container(const struct parts *parts, const char *name, struct buf *out)
{
	buf_printf(out,
		"{\"name\":\"%s\",\"image\":\"registry.example.com/team/%s:1.%" PRIu64 ".0\","
		"\"args\":[\"--config=/etc/app/"
		"config.yaml\",\"--listen=:8080\",\"--log-format=json\"],"
		"\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"},"
		"{\"name\":\"metrics\",\"containerPort\":9090,\"protocol\":\"TCP\"}],\"env\":["
		"{\"name\":\"POD_NAME\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
		"\"fieldPath\":\"metadata.name\"}}},{\"name\":\"DATABASE_PASSWORD\",\"valueFrom\":"
		"{\"secretKeyRef\":{\"name\":\"shop-db\",\"key\":\"password\"}}},"
		"{\"name\":\"DATABASE_HOST\",\"value\":\"postgres.databases.svc.cluster.local\"},"
		"{\"name\":\"LOG_LEVEL\",\"value\":\"info\"}],\"resources\":{\"limits\":{\"cpu\":"
		"\"1\","
		"\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"250m\",\"memory\":\"512Mi\"}},"
		"\"volumeMounts\":[{\"name\":\"config\",\"readOnly\":true,\"mountPath\":\"/etc/"
		"app\"},"
		"{\"name\":\"cache\",\"mountPath\":\"/var/cache/"
		"app\"},{\"name\":\"kube-api-access-x7f2q\","
		"\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/"
		"serviceaccount\"}],",
		name, name, parts->release);
	put_probe("livenessProbe", "/healthz", out);
	put_probe("readinessProbe", "/readyz", out);
	buf_str(out, "\"terminationMessagePath\":\"/dev/termination-log\","
		     "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\","
		     "\"securityContext\":{\"capabilities\":{\"drop\":[\"ALL\"]},"
		     "\"readOnlyRootFilesystem\":true,\"allowPrivilegeEscalation\":false}}");
}

static void put_status(const char *ready, struct buf *out)
{
	static const char *const conditions[] = {"PodReadyToStartContainers", "Initialized",
		"Ready", "ContainersReady", "PodScheduled"};

	buf_str(out, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
	for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++)
		buf_printf(out,
			"%s{\"type\":\"%s\",\"observedGeneration\":1,\"status\":\"True\","
			"\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-15T09:30:07Z\"}",
			i ? "," : "", conditions[i]);
	buf_str(out, "],\"hostIP\":\"10.0.3.17\",\"podIP\":\"10.128.7.201\",\"podIPs\":"
		     "[{\"ip\":\"10.128.7.201\"}],\"startTime\":\"2026-01-15T09:30:01Z\","
		     "\"containerStatuses\":[");
	for (size_t i = 0; i < 2; i++)
		buf_printf(out,
			"%s{\"name\":\"%s\",\"state\":{\"running\":{\"startedAt\":"
			"\"2026-01-15T09:30:05Z\"}},\"lastState\":{},\"ready\":%s,\"restartCount\":"
			"0,"
			"\"image\":\"registry.example.com/team/app:1.1.0\",\"imageID\":"
			"\"registry.example.com/team/"
			"app@sha256:5b0bcabd1ed22e9fb1310cf6c2dec7cdef19f0ad69"
			"efa1f392e94a4333501270\",\"containerID\":\"containerd://"
			"8d7a1f0c6b2e4d39a8f5c0b1"
			"e2d3c4b5a69788796a5b4c3d2e1f00112233445566\",\"started\":true}",
			i ? "," : "", i ? "log-agent" : "app", ready);
	buf_str(out, "],\"qosClass\":\"Burstable\"}}");
}

static void put_small(const struct parts *parts, struct buf *out)
{
	buf_printf(out,
		"\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"app\",\"image\":"
		"\"registry.example.com/team/app:1.%" PRIu64 ".0\"},{\"name\":\"log-agent\","
		"\"image\":\"registry.example.com/team/log-agent:1.%" PRIu64 ".0\"}]},"
		"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.128.7.201\"}}",
		parts->node, parts->release, parts->release);
}

static void put_whole(const struct parts *parts, struct buf *out)
{
	buf_str(out,
		"\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"shop-"
		"config\","
		"\"defaultMode\":420}},{\"name\":\"cache\",\"emptyDir\":{\"sizeLimit\":\"1Gi\"}},"
		"{\"name\":\"kube-api-access-x7f2q\",\"projected\":{\"sources\":[{"
		"\"serviceAccountToken\":"
		"{\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":"
		"\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},"
		"{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":"
		"\"v1\","
		"\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}}],\"containers\":"
		"[");
	put_container(parts, "app", out);
	buf_byte(out, ',');
	put_container(parts, "log-agent", out);
	buf_printf(out,
		"],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
		"\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\",\"nodeName\":\"%"
		"s\","
		"\"securityContext\":{\"runAsUser\":10001,\"runAsNonRoot\":true,\"fsGroup\":10001},"
		"\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
		"\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
		"\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/"
		"unreachable\",\"operator\":"
		"\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,"
		"\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"},",
		parts->node);
	put_status("true", out);
}

void pod_json(const struct pods *pods, uint64_t number, uint64_t version, const char *mark,
	struct buf *out)
{
	struct parts parts = {.mark = mark};

	fill_parts(pods, number, version, &parts);
	put_metadata(&parts, out);
	if (pods->small)
		put_small(&parts, out);
	else
		put_whole(&parts, out);
}
