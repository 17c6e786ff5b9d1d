/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, with their pods and the pods' requests. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "print/describe/describe_internal.h"

/* ---- sums of resources -------------------------------------------------- */

/* Quantities by the names of resources. */
struct node_sums {
	struct node_sum {
		struct bytes name;
		struct amount quantity;
	} * items;
	size_t n, room;
};

static void node_sums_release(struct node_sums *sums)
{
	free(sums->items);
	*sums = (struct node_sums){.n = 0};
}

static struct amount *node_sum(struct describe *d, struct node_sums *sums, struct bytes name)
{
	static struct amount lost; /* without memory: d->row.error says so */
	struct node_sum made = {.name = name};

	for (size_t i = 0; i < sums->n; i++)
		if (bytes_equal(sums->items[i].name, name))
			return &sums->items[i].quantity;
	int r = ARRAY_ADD(sums->items, sums->n, sums->room, made, "the resources of a node");
	printer_note(&d->row, r);
	return r < 0 ? &lost : &sums->items[sums->n - 1].quantity;
}

static struct amount node_sum_get(const struct node_sums *sums, const char *name)
{
	for (size_t i = 0; i < sums->n; i++)
		if (bytes_equal(sums->items[i].name, bytes_str(name)))
			return sums->items[i].quantity;
	return (struct amount){0};
}

/* Reads the map at PATH of IN into SUMS with FN. */
static void node_sums_read(struct describe *d, const struct value *in, const char *path,
	struct node_sums *sums, void (*fn)(struct amount *sum, const struct amount *more))
{
	struct value_iter iter;
	struct value map, item;
	struct bytes key, text;
	struct amount quantity;
	char scratch[VALUE_SCRATCH];

	if (!printer_find(&d->row, in, path, &map))
		return;
	value_iter_init(&iter, &map);
	while (value_iter_next(&iter, &key, &item) == FOUND)
		if (value_scalar_text(&item, scratch, &text) == FOUND &&
			amount_parse(text, &quantity))
			fn(node_sum(d, sums, key), &quantity);
}

static void node_sums_fold(struct describe *d, struct node_sums *into, const struct node_sums *from,
	void (*fn)(struct amount *sum, const struct amount *more))
{
	for (size_t i = 0; i < from->n; i++)
		fn(node_sum(d, into, from->items[i].name), &from->items[i].quantity);
}

static void amount_replace(struct amount *sum, const struct amount *more)
{
	*sum = *more;
}

static void amount_add_to_some(struct amount *sum, const struct amount *more)
{
	if (sum->milli)
		amount_add(sum, more);
}

/* Computes requests or limits of the pod d->here ("requests", "limits"), as the scheduler does: the
 * containers together, but at least what an init container needs beside the sidecars before it; or
 * those of the whole pod. */
static void node_pod_sums(struct describe *d, const char *which, struct node_sums *sums)
{
	CLEANUP(node_sums_release) struct node_sums sidecars = {.n = 0}, most = {.n = 0};
	struct value_iter iter = printer_items(&d->row, &d->here, "spec.containers");
	struct value container;
	char path[64];

	(void)snprintf(path, sizeof(path), "resources.%s", which);
	while (printer_next(&d->row, &iter, &container))
		node_sums_read(d, &container, path, sums, amount_add);
	iter = printer_items(&d->row, &d->here, "spec.initContainers");
	while (printer_next(&d->row, &iter, &container)) {
		CLEANUP(node_sums_release) struct node_sums now = {.n = 0};

		if (printer_is(&d->row, &container, "restartPolicy", "Always")) {
			node_sums_read(d, &container, path, sums, amount_add);
			node_sums_read(d, &container, path, &sidecars, amount_add);
		} else {
			node_sums_read(d, &container, path, &now, amount_add);
		}
		node_sums_fold(d, &now, &sidecars, amount_add);
		node_sums_fold(d, &most, &now, amount_max);
	}
	node_sums_fold(d, sums, &most, amount_max);
	(void)snprintf(path, sizeof(path), "spec.resources.%s", which);
	node_sums_read(d, &d->here, path, sums, amount_replace);
	/* A pod without a limit has none, whatever the overhead. */
	node_sums_read(d, &d->here, "spec.overhead", sums,
		*which == 'r' ? amount_add : amount_add_to_some);
}

/* ---- pods of the node --------------------------------------------------- */

struct node_pods {
	struct node_sums allocatable, requests, limits; /* of all pods */
	struct buf rows;
	size_t n;
};

/* "\t100m (5%)" */
static void node_put_share(struct buf *out, const struct amount *part, const struct amount *whole)
{
	buf_byte(out, '\t');
	amount_put(part, out);
	buf_printf(out, " (%" PRId64 "%%)", amount_percent(part, whole));
}

static void node_add_pod(struct describe *d, void *arg)
{
	static const char *const shown[] = {"cpu", "memory"};
	CLEANUP(node_sums_release) struct node_sums requests = {.n = 0}, limits = {.n = 0};
	struct node_pods *pods = arg;
	struct buf *text = d->row.text;

	node_pod_sums(d, "requests", &requests);
	node_pod_sums(d, "limits", &limits);
	node_sums_fold(d, &pods->requests, &requests, amount_add);
	node_sums_fold(d, &pods->limits, &limits, amount_add);
	pods->n++;
	d->row.text = &pods->rows;
	describe_words(d, "  {metadata.namespace}\t{metadata.name}\t");
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		struct amount whole = node_sum_get(&pods->allocatable, shown[i]);
		struct amount request = node_sum_get(&requests, shown[i]),
			      limit = node_sum_get(&limits, shown[i]);

		node_put_share(&pods->rows, &request, &whole);
		node_put_share(&pods->rows, &limit, &whole);
	}
	describe_words(d, "\t{metadata.creationTimestamp:since|<unknown>}\n");
	d->row.text = text;
}

static int node_compare_names(const void *a, const void *b)
{
	const struct node_sum *x = a, *y = b;

	return bytes_compare(x->name, y->name);
}

static void node_put_resource(
	struct describe *d, const struct node_pods *pods, const char *name, bool shares)
{
	struct amount whole = node_sum_get(&pods->allocatable, name);
	struct amount request = node_sum_get(&pods->requests, name),
		      limit = node_sum_get(&pods->limits, name);
	struct buf *out = d->row.text;

	buf_printf(out, "  %s", name);
	if (shares) {
		node_put_share(out, &request, &whole);
		node_put_share(out, &limit, &whole);
	} else {
		buf_byte(out, '\t');
		amount_put(&request, out);
		buf_byte(out, '\t');
		amount_put(&limit, out);
	}
	buf_byte(out, '\n');
}

/* The standard resources, then huge pages, then the node's others. */
static void node_put_allocated(struct describe *d, struct node_pods *pods)
{
	static const char *const standard[] = {"cpu", "memory", "ephemeral-storage"};
	char name[256];

	buf_str(d->row.text, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., "
			     "overcommitted.)\n"
			     "  Resource\tRequests\tLimits\n  --------\t--------\t------\n");
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
		node_put_resource(d, pods, standard[i], true);
	struct node_sums all = pods->allocatable;
	if (all.n)
		qsort(all.items, all.n, sizeof(*all.items), node_compare_names);
	for (int huge = 1; huge >= 0; huge--)
		for (size_t i = 0; i < all.n; i++) {
			bool known = bytes_equal(all.items[i].name, BYTES_LIT("pods"));

			(void)snprintf(name, sizeof(name), "%.*s", BYTES_ARG(all.items[i].name));
			for (size_t k = 0; k < ARRAY_SIZE(standard); k++)
				known |= strcmp(name, standard[k]) == 0;
			if (!known && bytes_starts(all.items[i].name, BYTES_LIT("hugepages-")) ==
					      (huge == 1))
				node_put_resource(d, pods, name, huge == 1);
		}
}

static void node_pods(struct describe *d)
{
	struct node_pods pods = {.n = 0};

	node_sums_read(d, &d->here,
		describe_is_empty(d, "status.allocatable") ? "status.capacity"
							   : "status.allocatable",
		&pods.allocatable, amount_add);
	if (describe_each_object(d, "pods", "", "",
		    "spec.nodeName={metadata.name:value},status.phase!=Succeeded,status.phase!="
		    "Failed",
		    node_add_pod, &pods)) {
		buf_printf(d->row.text,
			"Non-terminated Pods:\t(%zu in total)\n"
			"  Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory "
			"Limits\tAge\n"
			"  "
			"---------\t----\t\t------------\t----------\t---------------\t------------"
			"-\t---\n",
			pods.n);
		buf_bytes_put(d->row.text, buf_bytes(&pods.rows));
		node_put_allocated(d, &pods);
	}
	printer_note(&d->row, buf_error(&pods.rows));
	buf_release(&pods.rows);
	node_sums_release(&pods.allocatable);
	node_sums_release(&pods.requests);
	node_sums_release(&pods.limits);
}

/* ---- the node ----------------------------------------------------------- */

struct node_taint {
	struct bytes effect, key;
	struct value taint;
};

static int node_compare_taints(const void *a, const void *b)
{
	const struct node_taint *x = a, *y = b;
	int r = bytes_compare(x->effect, y->effect);

	return r ? r : bytes_compare(x->key, y->key);
}

/* "key=value:NoSchedule", one a line, in the order of effects and keys. */
static void node_taints(struct describe *d)
{
	struct {
		struct node_taint *items;
		size_t n, room;
	} all = {0};
	struct value_iter iter = printer_items(&d->row, &d->here, "spec.taints");
	struct node_taint one;

	while (printer_next(&d->row, &iter, &one.taint)) {
		one.effect = printer_text(&d->row, &one.taint, "effect");
		one.key = printer_text(&d->row, &one.taint, "key");
		printer_note(&d->row,
			ARRAY_ADD(all.items, all.n, all.room, one, "the taints of a node"));
	}
	if (all.n)
		qsort(all.items, all.n, sizeof(*all.items), node_compare_taints);
	buf_printf(d->row.text, "Taints:\t%s", all.n ? "" : "<none>");
	for (size_t i = 0; i < all.n; i++) {
		buf_str(d->row.text, i ? "\n\t" : "");
		printer_put_words(&d->row, &all.items[i].taint, "{key}[={value}][:{effect}]");
	}
	buf_byte(d->row.text, '\n');
	free(all.items);
}

static void node_put_lease(struct describe *d, void *arg)
{
	static const struct describe_line lines[] = {
		{.line = "Lease:"},
		{.level = 1, .line = "HolderIdentity:\t{spec.holderIdentity|<unset>}"},
		{.level = 1, .line = "AcquireTime:\t{spec.acquireTime:time|<unset>}"},
		{.level = 1, .line = "RenewTime:\t{spec.renewTime:time|<unset>}"},
		END_OF_LINES,
	};

	*(bool *)arg = true;
	describe_lines(d, lines);
}

static void node_lease(struct describe *d)
{
	bool found = false;

	if (describe_each_object(d, "leases.coordination.k8s.io", "kube-node-lease", "",
		    "metadata.name={metadata.name:value}", node_put_lease, &found) &&
		!found)
		describe_words(d, "Lease:\tFailed to get lease: leases.coordination.k8s.io "
				  "\"{metadata.name}\" not found\n");
}

/* ---- slices of devices -------------------------------------------------- */

#define NODE_POOLS_SHOWN 10

struct node_pools {
	struct node_pool {
		struct bytes driver, name;
		size_t slices, devices;
	} * items;
	size_t n, room;
};

/* As "driver/name". */
static int node_compare_pools(const void *a, const void *b)
{
	const struct node_pool *x = a, *y = b;
	char first[520], second[520];

	(void)snprintf(first, sizeof(first), "%.*s/%.*s", BYTES_ARG(x->driver), BYTES_ARG(x->name));
	(void)snprintf(
		second, sizeof(second), "%.*s/%.*s", BYTES_ARG(y->driver), BYTES_ARG(y->name));
	return strcmp(first, second);
}

static void node_add_slice(struct describe *d, void *arg)
{
	struct node_pools *pools = arg;
	struct node_pool one = {
		describe_get(d, "spec.driver"), describe_get(d, "spec.pool.name"), 0, 0};
	struct value_iter iter = printer_items(&d->row, &d->here, "spec.devices");
	size_t i = 0;

	while (i < pools->n && !(bytes_equal(pools->items[i].driver, one.driver) &&
				       bytes_equal(pools->items[i].name, one.name)))
		i++;
	if (i == pools->n) {
		int r = ARRAY_ADD(pools->items, pools->n, pools->room, one, "the pools of a node");

		printer_note(&d->row, r);
		if (r < 0)
			return;
	}
	pools->items[i].slices++;
	pools->items[i].devices += iter.left;
}

/* The pools of the ResourceSlices of this node alone. */
static void node_slices(struct describe *d)
{
	struct node_pools pools = {.n = 0};

	if (describe_each_object(d, "resourceslices.resource.k8s.io", "", "",
		    "spec.nodeName={metadata.name:value}", node_add_slice, &pools) &&
		pools.n) {
		qsort(pools.items, pools.n, sizeof(*pools.items), node_compare_pools);
		buf_str(d->row.text, "Node-Local ResourceSlices:\n  Driver\tPool\tSlices\tDevices\n"
				     "  ------\t----\t------\t-------\n");
	}
	for (size_t i = 0; i < pools.n && i < NODE_POOLS_SHOWN; i++) {
		const struct node_pool *pool = &pools.items[i];

		buf_printf(d->row.text, "  %.*s\t%.*s\t%zu\t%zu\n", BYTES_ARG(pool->driver),
			BYTES_ARG(pool->name), pool->slices, pool->devices);
	}
	if (pools.n > NODE_POOLS_SHOWN)
		buf_printf(d->row.text, "  ...and %zu more pools\n", pools.n - NODE_POOLS_SHOWN);
	free(pools.items);
}

static const struct describe_line node_conditions[] = {
	{.line = "Conditions:\n  "
		 "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n"
		 "  ----\t------\t-----------------\t------------------\t------\t-------"},
	{.each = "status.conditions",
		.level = 1,
		.line = "{type} \t{status} \t{lastHeartbeatTime:time} \t{lastTransitionTime:time} "
			"\t{reason} \t{message}"},
	END_OF_LINES,
};

static const struct describe_line node_info[] = {
	{.line = "Machine ID:\t{status.nodeInfo.machineID}"},
	{.line = "System UUID:\t{status.nodeInfo.systemUUID}"},
	{.line = "Boot ID:\t{status.nodeInfo.bootID}"},
	{.line = "Kernel Version:\t{status.nodeInfo.kernelVersion}"},
	{.line = "OS Image:\t{status.nodeInfo.osImage}"},
	{.line = "Operating System:\t{status.nodeInfo.operatingSystem}"},
	{.line = "Architecture:\t{status.nodeInfo.architecture}"},
	{.line = "Container Runtime Version:\t{status.nodeInfo.containerRuntimeVersion}"},
	{.line = "Kubelet Version:\t{status.nodeInfo.kubeletVersion}"},
	/* kubelets before 1.33 */
	{.some = "Kube-Proxy Version:\t{status.nodeInfo.kubeProxyVersion}"},
	END_OF_LINES,
};

static const struct describe_line node_lines[] = {
	{.line = "Name:\t{metadata.name}"},
	{.line = "Roles:\t{metadata.labels:roles}"},
	LINES_LABELS,
	{.line = "CreationTimestamp:\t{metadata.creationTimestamp:time}"},
	{.fn = node_taints},
	{.line = "Unschedulable:\t{spec.unschedulable|false}"},
	{.fn = node_lease},
	{.when = "status.conditions", .lines = node_conditions},
	{.line = "Addresses:"},
	{.each = "status.addresses", .level = 1, .line = "{type}:\t{address}"},
	{.when = "status.capacity", .line = "Capacity:"},
	{.each = "status.capacity", .level = 1, .line = "{@key}:\t{@}"},
	{.when = "status.allocatable", .line = "Allocatable:"},
	{.each = "status.allocatable", .level = 1, .line = "{@key}:\t{@}"},
	{.fn = node_slices},
	{.line = "System Info:"},
	{.level = 1, .lines = node_info},
	{.some = "PodCIDR:\t{spec.podCIDR}"},
	{.some = "PodCIDRs:\t{spec.podCIDRs:comma}"},
	{.some = "ProviderID:\t{spec.providerID}"},
	{.fn = node_pods},
	{.fn = describe_events},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_nodes[] = {{"nodes", node_lines}, {0}};
