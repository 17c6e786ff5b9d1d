/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/generate.h"

#include <inttypes.h>

#include "tests/simulator/lifelike.h"

#define N_NODES 100
#define N_APPS  50

/* The N-th uuid of FAMILY. */
static void generate_put_uid(struct buf *out, unsigned family, uint64_t n)
{
	buf_printf(out, "%08x-5e1f-4000-8000-%012" PRIx64, family, n & 0xffffffffffff);
}

static void generate_put_name(struct buf *out, const struct kind *kind, uint64_t n,
	const struct generate_options *options)
{
	buf_printf(out, "\"name\":\"%s%" PRIu64 "\"", options->prefix, n);
	if (!strcmp(kind->resource, "pods"))
		buf_printf(out, ",\"generateName\":\"app-%" PRIu64 "-\"", n % N_APPS);
	if (kind->namespaced)
		buf_printf(out, ",\"namespace\":\"ns-%" PRIu64 "\"", n % options->namespaces);
}

/* ---- pods --------------------------------------------------------------- */

static void generate_put_pod_metadata(struct buf *out, const struct kind *kind, uint64_t n,
	const struct generate_options *options)
{
	uint64_t app = n % N_APPS;

	buf_str(out, "{\"metadata\":{");
	generate_put_name(out, kind, n, options);
	buf_str(out, ",\"generation\":1,\"labels\":{");
	buf_printf(out,
		"\"app\":\"app-%" PRIu64 "\",\"app.kubernetes.io/component\":\"%s\","
		"\"app.kubernetes.io/instance\":\"app-%" PRIu64 "-prod\","
		"\"app.kubernetes.io/managed-by\":\"Helm\","
		"\"app.kubernetes.io/name\":\"app-%" PRIu64 "\","
		"\"app.kubernetes.io/version\":\"1.%" PRIu64 ".0\","
		"\"pod-template-hash\":\"5d%04" PRIx64 "\",\"tier\":\"%s\"},",
		app, n % 2 ? "server" : "worker", app, app, n % 7, app, n % 3 ? "back" : "front");
	buf_str(out, "\"annotations\":{\"checksum/config\":\""
		     "3f786850e387550fdab836ed7e6dc881de23001b3f786850e387550fdab836ed\","
		     "\"prometheus.io/path\":\"/metrics\",\"prometheus.io/port\":\"8080\","
		     "\"prometheus.io/scrape\":\"true\"},");
	buf_printf(out,
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
		"\"name\":\"app-%" PRIu64 "-5d%04" PRIx64 "\",\"uid\":\"",
		app, app);
	generate_put_uid(out, 0x0e5, app);
	buf_str(out, "\",\"controller\":true,\"blockOwnerDeletion\":true}]");
}

static void generate_put_managed_fields(struct buf *out)
{
	buf_str(out,
		",\"managedFields\":[{\"manager\":\"kube-controller-manager\","
		"\"operation\":\"Update\",\"apiVersion\":\"v1\","
		"\"time\":\"2026-01-15T10:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
		"\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:checksum/config\":{},"
		"\"f:prometheus.io/path\":{},\"f:prometheus.io/port\":{},"
		"\"f:prometheus.io/scrape\":{}},\"f:generateName\":{},\"f:labels\":{\".\":{},"
		"\"f:app\":{},\"f:app.kubernetes.io/component\":{},"
		"\"f:app.kubernetes.io/instance\":{},\"f:app.kubernetes.io/managed-by\":{},"
		"\"f:app.kubernetes.io/name\":{},\"f:app.kubernetes.io/version\":{},"
		"\"f:pod-template-hash\":{},\"f:tier\":{}},\"f:ownerReferences\":{\".\":{},"
		"\"k:{\\\"uid\\\":\\\"000000e5-5e1f-4000-8000-000000000001\\\"}\":{}}},"
		"\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"main\\\"}\":{\".\":{},"
		"\"f:args\":{},\"f:env\":{\".\":{},\"k:{\\\"name\\\":\\\"POD_NAME\\\"}\":{"
		"\".\":{},\"f:name\":{},\"f:valueFrom\":{\".\":{},\"f:fieldRef\":{}}}},"
		"\"f:image\":{},\"f:imagePullPolicy\":{},\"f:livenessProbe\":{\".\":{},"
		"\"f:failureThreshold\":{},\"f:httpGet\":{\".\":{},\"f:path\":{},\"f:port\":{},"
		"\"f:scheme\":{}},\"f:periodSeconds\":{},\"f:successThreshold\":{},"
		"\"f:timeoutSeconds\":{}},\"f:name\":{},\"f:ports\":{\".\":{}},"
		"\"f:resources\":{\".\":{},\"f:limits\":{\".\":{},\"f:memory\":{}},"
		"\"f:requests\":{\".\":{},\"f:cpu\":{},\"f:memory\":{}}},"
		"\"f:terminationMessagePath\":{},\"f:terminationMessagePolicy\":{},"
		"\"f:volumeMounts\":{\".\":{}}}},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},"
		"\"f:restartPolicy\":{},\"f:schedulerName\":{},\"f:securityContext\":{},"
		"\"f:serviceAccountName\":{},\"f:terminationGracePeriodSeconds\":{},"
		"\"f:volumes\":{\".\":{}}}}},{\"manager\":\"kubelet\",\"operation\":\"Update\","
		"\"apiVersion\":\"v1\",\"time\":\"2026-01-15T10:00:07Z\","
		"\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{"
		"\"k:{\\\"type\\\":\\\"ContainersReady\\\"}\":{\".\":{},"
		"\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},\"f:status\":{},"
		"\"f:type\":{}},\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},"
		"\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},\"f:status\":{},"
		"\"f:type\":{}}},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},"
		"\"f:podIP\":{},\"f:podIPs\":{},\"f:startTime\":{}}},\"subresource\":\"status\"}]");
}

static void generate_put_container(struct buf *out, uint64_t n, size_t begin, size_t size)
{
	static const size_t behind = 1900; /* bytes after env, roughly */

	buf_printf(out,
		"\"containers\":[{\"name\":\"main\",\"image\":"
		"\"registry.example.com/team-%" PRIu64 "/app-%" PRIu64 ":1.%" PRIu64 ".0\","
		"\"args\":[\"--port=8080\",\"--log-level=info\"],\"ports\":[{\"name\":\"http\","
		"\"containerPort\":8080,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"POD_NAME\","
		"\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
		"\"fieldPath\":\"metadata.name\"}}}",
		n % 8, n % N_APPS, n % 7);
	for (unsigned i = 0; out->size - begin + behind < size; i++)
		buf_printf(out,
			",{\"name\":\"APP_SETTING_%u\",\"value\":"
			"\"https://backend-%u.ns-%" PRIu64 ".svc.cluster.local:8443/v1\"}",
			i, i, n % 10);
	buf_str(out,
		"],\"resources\":{\"limits\":{\"memory\":\"256Mi\"},\"requests\":{\"cpu\":\"100m\","
		"\"memory\":\"128Mi\"}},\"volumeMounts\":[{\"name\":\"config\","
		"\"mountPath\":\"/etc/app\"},{\"name\":\"kube-api-access\",\"readOnly\":true,"
		"\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],"
		"\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,"
		"\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,\"periodSeconds\":10,"
		"\"successThreshold\":1,\"failureThreshold\":3},"
		"\"terminationMessagePath\":\"/dev/termination-log\","
		"\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],");
}

static void generate_put_pod_spec(struct buf *out, uint64_t n, size_t begin, size_t size)
{
	buf_str(out, "},\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{"
		     "\"name\":\"app-config\",\"defaultMode\":420}}],");
	generate_put_container(out, n, begin, size);
	buf_printf(out,
		"\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
		"\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
		"\"serviceAccount\":\"default\",\"nodeName\":\"node-%" PRIu64 "\","
		"\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
		"\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
		"\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],"
		"\"priority\":0,\"enableServiceLinks\":true,"
		"\"preemptionPolicy\":\"PreemptLowerPriority\"},",
		n % N_NODES);
}

static void generate_put_pod_status(struct buf *out, uint64_t n)
{
	static const char *const types[] = {
		"Initialized", "Ready", "ContainersReady", "PodScheduled"};
	unsigned a = (unsigned)(n / 250 % 250), b = (unsigned)(n % 250);

	buf_printf(out, "\"status\":{\"phase\":\"%s\",\"conditions\":[",
		n % 20 ? "Running" : "Pending");
	for (unsigned i = 0; i < 4; i++)
		buf_printf(out,
			"%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
			"\"lastTransitionTime\":\"2026-01-15T10:00:%02uZ\"}",
			i ? "," : "", types[i], i + 3);
	buf_printf(out,
		"],\"hostIP\":\"10.0.0.%u\",\"podIP\":\"10.244.%u.%u\","
		"\"podIPs\":[{\"ip\":\"10.244.%u.%u\"}],\"startTime\":\"2026-01-15T10:00:02Z\","
		"\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{"
		"\"startedAt\":\"2026-01-15T10:00:05Z\"}},\"lastState\":{},\"ready\":true,"
		"\"restartCount\":%u,\"image\":\"registry.example.com/app:1.0.0\","
		"\"imageID\":\"registry.example.com/app@sha256:"
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
		"\"containerID\":\"containerd://"
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\","
		"\"started\":true}],\"qosClass\":\"Burstable\"}}",
		(unsigned)(n % N_NODES), a, b, a, b, (unsigned)(n % 3));
}

#define MANAGED_FIELDS 4500 /* pods smaller than this go without */

static void generate_put_pod(struct buf *out, const struct kind *kind, uint64_t n,
	const struct generate_options *options)
{
	size_t begin = out->size, size = options->size;

	generate_put_pod_metadata(out, kind, n, options);
	if (size >= MANAGED_FIELDS)
		generate_put_managed_fields(out);
	generate_put_pod_spec(out, n, begin, size);
	generate_put_pod_status(out, n);
}

/* ---- other kinds -------------------------------------------------------- */

static void generate_put_node_rest(struct buf *out, uint64_t n)
{
	buf_printf(out,
		",\"spec\":{\"podCIDR\":\"10.244.%u.0/24\"},\"status\":{\"capacity\":{"
		"\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"},\"conditions\":[{"
		"\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\"}],"
		"\"nodeInfo\":{\"kubeletVersion\":\"v1.36.3\"}}}",
		(unsigned)(n % 256));
}

static void generate_put_deployment_rest(struct buf *out, uint64_t n)
{
	buf_printf(out,
		",\"spec\":{\"replicas\":%u,\"selector\":{\"matchLabels\":{\"app\":"
		"\"app-%" PRIu64 "\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":"
		"\"app-%" PRIu64 "\"}},\"spec\":{\"containers\":[{\"name\":\"main\","
		"\"image\":\"registry.example.com/app:1.0.0\"}]}}},"
		"\"status\":{\"observedGeneration\":1,\"replicas\":%u}}",
		(unsigned)(n % 5), n % N_APPS, n % N_APPS, (unsigned)(n % 5));
}

static void generate_put_widget_rest(struct buf *out, uint64_t n)
{
	buf_printf(out,
		",\"spec\":{\"big\":9223372036854775807,\"color\":\"%s\",\"empty\":{},"
		"\"list\":[],\"none\":null,\"ratio\":1.5,\"size\":%" PRIu64 ",\"tiny\":1e-7}}",
		n % 2 ? "red" : "blue", n);
}

static void generate_put_rest(struct buf *out, const struct kind *kind, uint64_t n)
{
	if (!strcmp(kind->resource, "nodes"))
		generate_put_node_rest(out, n);
	else if (!strcmp(kind->resource, "deployments"))
		generate_put_deployment_rest(out, n);
	else if (kind->custom)
		generate_put_widget_rest(out, n);
	else if (!strcmp(kind->resource, "namespaces"))
		buf_str(out, ",\"spec\":{\"finalizers\":[\"kubernetes\"]},"
			     "\"status\":{\"phase\":\"Active\"}}");
	else if (!strcmp(kind->resource, "secrets"))
		buf_printf(out, ",\"data\":{\"key\":\"dmFsdWUt%04u\"},\"type\":\"Opaque\"}",
			(unsigned)(n % 10000));
	else
		buf_printf(out, ",\"data\":{\"key\":\"value-%" PRIu64 "\"}}", n);
}

void generate_object(const struct kind *kind, uint64_t n, const struct generate_options *options,
	struct buf *out)
{
	if (!options->size && lifelike_object(kind, n, options, out))
		return;
	if (!strcmp(kind->resource, "pods")) {
		generate_put_pod(out, kind, n, options);
		return;
	}
	buf_printf(out, "{\"metadata\":{\"labels\":{\"app\":\"app-%" PRIu64 "\"},", n % N_APPS);
	generate_put_name(out, kind, n, options);
	buf_byte(out, '}');
	generate_put_rest(out, kind, n);
}

void generate_patch(uint64_t step, struct buf *out)
{
	buf_printf(out,
		"{\"metadata\":{\"labels\":{\"step\":\"s%" PRIu64 "\"},"
		"\"annotations\":{\"simulator/step\":\"%" PRIu64 "\"}}}",
		step % 10, step);
}
