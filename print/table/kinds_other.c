/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of leases, devices, flow control and the API itself. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

/* ---- devices ------------------------------------------------------------ */

/* Appends the sum of a field over all pools; with validationError the number of pools with one. */
static enum printer_cell_type poolstatus_sum(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.pools");
	struct value status, pool, found;
	int64_t sum = 0;

	if (!printer_find(row, &row->object, "status", &status) ||
		!printer_is_empty(row, &row->object, "status.conditions[type=Failed][status=True]"))
		return printer_put(row, "-");
	while (printer_next(row, &iter, &pool))
		if (printer_find(row, &pool, row->of, &found))
			sum += found.type == VALUE_STRING ? 1
							  : printer_integer(row, &pool, row->of);
	buf_printf(row->text, "%" PRId64, sum);
	return PRINTER_STRING;
}

static enum printer_cell_type poolstatus_status(struct printer_row *row)
{
	struct value pools = {.count = 0};
	int64_t count = printer_integer(row, &row->object, "status.poolCount");

	printer_put_words(row, &row->object,
		"[{status.conditions[type=Complete][status=True].type}|"
		"{status.conditions[type=Failed][status=True].type}|Pending]");
	if (!printer_find(row, &row->object, "status.pools", &pools))
		pools.count = 0;
	if (count > pools.count && !printer_is_empty(row, &row->object,
					   "status.conditions[type=Complete][status=True]"))
		buf_printf(row->text, " (%u/%" PRId64 " pools)", pools.count, count);
	return PRINTER_STRING;
}

/* ---- flow control ------------------------------------------------------- */

static const struct printer_cell_row flow_cells[] = {
	CELL_NAME,
	CELL_TEXT("PriorityLevel", "spec.priorityLevelConfiguration.name", NULL),
	CELL_INTEGER("MatchingPrecedence", "string", "spec.matchingPrecedence"),
	CELL_TEXT("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>"),
	CELL_AGE,
	CELL_TEXT("MissingPL", "status.conditions[type=Dangling].status", "?"),
};

/* ---- the API ------------------------------------------------------------ */

/* The served versions in the order of their texts, the storage version marked. */
static enum printer_cell_type crd_versions(struct printer_row *row)
{
	size_t start = row->text->size;
	struct printer_list all;

	printer_list_at(row, &row->object, "spec.versions", "name", &all);
	for (size_t i = 0; i < all.n; i++) {
		if (!printer_is_true(row, &all.items[i].value, "served"))
			continue;
		printer_put_more(row, start, all.items[i].key);
		if (printer_is_true(row, &all.items[i].value, "storage"))
			buf_str(row->text, "(storage)");
	}
	printer_list_release(&all);
	return PRINTER_STRING;
}

static enum printer_cell_type crd_established(struct printer_row *row)
{
	bool is_empty = printer_is_empty(
		row, &row->object, "status.conditions[type=Established][status=True]");

	buf_str(row->text, is_empty ? "false" : "true");
	return PRINTER_BOOLEAN;
}

/* The columns of Kubernetes 1.37; servers before it have Name and Created At. */
const struct printer_kind_row printer_kinds_other[] = {
	KIND("coordination.k8s.io", "leases", CELL_NAME,
		CELL_TEXT("Holder", "spec.holderIdentity", NULL), CELL_AGE),
	KIND("coordination.k8s.io", "leasecandidates", CELL_NAME,
		CELL_TEXT("LeaseName", "spec.leaseName", NULL),
		CELL_TEXT("BinaryVersion", "spec.binaryVersion", NULL),
		CELL_TEXT("EmulationVersion", "spec.emulationVersion", NULL), CELL_AGE),
	KIND("node.k8s.io", "runtimeclasses", CELL_NAME, CELL_TEXT("Handler", "handler", NULL),
		CELL_AGE),
	KIND("resource.k8s.io", "deviceclasses", CELL_NAME, CELL_AGE),
	KIND("resource.k8s.io", "resourceclaims", CELL_NAME,
		CELL_WORDS("State",
			"[{metadata.deletionTimestamp:if}deleted[{status.allocation:if},allocated]|"
			"{status.allocation:if}allocated|pending]"
			"[{status.allocation:if}[{status.reservedFor:if},reserved]]"),
		CELL_AGE),
	KIND("resource.k8s.io", "resourceclaimtemplates", CELL_NAME, CELL_AGE),
	KIND("resource.k8s.io", "resourceslices", CELL_NAME,
		CELL_TEXT("Node", "spec.nodeName", NULL), CELL_TEXT("Driver", "spec.driver", NULL),
		CELL_TEXT("Pool", "spec.pool.name", NULL), CELL_AGE),
	KIND("resource.k8s.io", "devicetaintrules", CELL_NAME,
		CELL_TEXT("Key", "spec.taint.key", NULL),
		CELL_TEXT("Value", "spec.taint.value", NULL),
		CELL_TEXT("Effect", "spec.taint.effect", NULL),
		CELL("TimeAdded", "string", 0, HOW_AGE, "spec.taint.timeAdded", .none = ""),
		CELL_AGE),
	KIND("resource.k8s.io", "resourcepoolstatusrequests", CELL_NAME,
		CELL_TEXT("Driver", "spec.driver", NULL),
		CELL_FUNCTION_OF("Total", 0, poolstatus_sum, "totalDevices"),
		CELL_FUNCTION_OF("Available", 0, poolstatus_sum, "availableDevices"),
		CELL_FUNCTION_OF("Allocated", 0, poolstatus_sum, "allocatedDevices"),
		CELL_FUNCTION_OF("Unavailable", 0, poolstatus_sum, "unavailableDevices"),
		CELL_FUNCTION_OF("Errors", 0, poolstatus_sum, "validationError"),
		CELL_INTEGER("Pools", "integer", "status.poolCount"),
		CELL_FUNCTION("Status", "string", 0, poolstatus_status),
		CELL_WORDS("Completed", "{status.conditions[type=Complete][status=True]."
					"lastTransitionTime:since|<none>}")),
	{.group = "flowcontrol.apiserver.k8s.io",
		.resource = "flowschemas",
		.cells = flow_cells,
		.n = ARRAY_SIZE(flow_cells),
		.order = "spec.matchingPrecedence"},
	KIND("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", CELL_NAME,
		CELL_TEXT("Type", "spec.type", NULL),
		CELL_NUMBER("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares"),
		CELL_NUMBER("Queues", "spec.limited.limitResponse.queuing.queues"),
		CELL_NUMBER("HandSize", "spec.limited.limitResponse.queuing.handSize"),
		CELL_NUMBER(
			"QueueLengthLimit", "spec.limited.limitResponse.queuing.queueLengthLimit"),
		CELL_AGE),
	KIND("apiextensions.k8s.io", "customresourcedefinitions", CELL_NAME,
		CELL_TEXT("Scope", "spec.scope", NULL),
		CELL_FUNCTION("Versions", "string", 0, crd_versions), CELL_CREATED,
		CELL_WIDE("Group", "spec.group", NULL), CELL_WIDE("Kind", "spec.names.kind", NULL),
		CELL("ShortNames", "string", 1, HOW_WORDS, "{spec.names.shortNames:comma}"),
		CELL_FUNCTION("Established", "boolean", 1, crd_established)),
	KIND("apiregistration.k8s.io", "apiservices", CELL_NAME,
		CELL_WORDS("Service",
			"[{spec.service:if}{spec.service.namespace}/{spec.service.name}|Local]"),
		CELL_WORDS("Available", "[{status.conditions[type=Available][status=True].status}|"
					"{status.conditions[type=Available].status}"
					"[ ({status.conditions[type=Available].reason})]|Unknown]"),
		CELL_AGE),
	KIND("internal.apiserver.k8s.io", "storageversions", CELL_NAME,
		CELL_TEXT("CommonEncodingVersion", "status.commonEncodingVersion", "<unset>"),
		CELL("StorageVersions", "string", 0, HOW_SOME, "status.storageVersions",
			"{apiServerID}={encodingVersion}", .none = "<unset>"),
		CELL_AGE),
	KIND("storagemigration.k8s.io", "storageversionmigrations",
		CELL_TEXT("Name", "metadata.name", NULL),
		CELL_WORDS("Resource", "{spec.resource.resource}[.{spec.resource.group}]"),
		CELL_WORDS("Status",
			"[{status.conditions[type=Succeeded][status=True].type}|"
			"{status.conditions[type=Failed][status=True].type}|"
			"{status.conditions[type=Running][status=True].type}|Unknown]")),
	{0},
};
