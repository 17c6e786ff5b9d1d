/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/generate.h"

#include <inttypes.h>

#include "tests/simulator/lifelike.h"

#define N_NODES 100
#define N_APPS  50

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

/* The size comes from the environment of the container. */
static void generate_put_pod(struct buf *out, const struct kind *kind, uint64_t n,
	const struct generate_options *options)
{
	static const size_t after = 500; /* bytes after the environment, roughly */
	size_t begin = out->size;

	buf_str(out, "{\"metadata\":{");
	generate_put_name(out, kind, n, options);
	buf_printf(out,
		",\"generation\":1,\"labels\":{\"app\":\"app-%" PRIu64 "\","
		"\"app.kubernetes.io/managed-by\":\"Helm\",\"tier\":\"%s\"}},"
		"\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
		"\"registry.example.com/app:1.%" PRIu64 ".0\",\"env\":[{\"name\":\"A\"}",
		n % N_APPS, n % 3 ? "back" : "front", n % 7);
	for (unsigned i = 0; out->size - begin + after < options->size; i++)
		buf_printf(out,
			",{\"name\":\"APP_SETTING_%u\",\"value\":"
			"\"https://backend-%u.ns-%" PRIu64 ".svc.cluster.local:8443/v1\"}",
			i, i, n % 10);
	buf_printf(out,
		"]}],\"restartPolicy\":\"Always\",\"nodeName\":\"node-%" PRIu64 "\"},"
		"\"status\":{\"phase\":\"%s\",\"podIP\":\"10.244.%" PRIu64 ".%" PRIu64 "\","
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
		"\"startTime\":\"2026-01-15T10:00:02Z\",\"containerStatuses\":[{\"name\":\"main\","
		"\"state\":{\"running\":{\"startedAt\":\"2026-01-15T10:00:05Z\"}},\"ready\":true,"
		"\"restartCount\":0}]}}",
		n % N_NODES, n % 20 ? "Running" : "Pending", n / 250 % 250, n % 250);
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
