/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of leases, devices, flow control and the API itself. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

/* ---- coordination, nodes ------------------------------------------------ */

static const struct printer_cell_row lease_cells[] = {
	CELL_NAME,
	CELL_TEXT("Holder", "spec.holderIdentity", NULL),
	CELL_AGE,
};

static const struct printer_cell_row candidate_cells[] = {
	CELL_NAME,
	CELL_TEXT("LeaseName", "spec.leaseName", NULL),
	CELL_TEXT("BinaryVersion", "spec.binaryVersion", NULL),
	CELL_TEXT("EmulationVersion", "spec.emulationVersion", NULL),
	CELL_AGE,
};

static const struct printer_cell_row runtime_cells[] = {
	CELL_NAME,
	CELL_TEXT("Handler", "handler", NULL),
	CELL_AGE,
};

/* ---- devices ------------------------------------------------------------ */

static const struct printer_cell_row device_cells[] = {CELL_NAME, CELL_AGE};

static enum printer_cell_type claim_state(struct printer_row *row)
{
	bool deleted = printer_text(row, &row->object, "metadata.deletionTimestamp").size;
	struct value allocation, reserved;

	if (!printer_find(row, &row->object, "status.allocation", &allocation))
		return printer_put(row, deleted ? "deleted" : "pending");
	(void)printer_put(row, deleted ? "deleted,allocated" : "allocated");
	if (printer_find(row, &row->object, "status.reservedFor", &reserved) && reserved.count)
		buf_str(row->text, ",reserved");
	return PRINTER_STRING;
}

static const struct printer_cell_row claim_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("State", "string", 0, claim_state),
	CELL_AGE,
};

static const struct printer_cell_row resourceslice_cells[] = {
	CELL_NAME,
	CELL_TEXT("Node", "spec.nodeName", NULL),
	CELL_TEXT("Driver", "spec.driver", NULL),
	CELL_TEXT("Pool", "spec.pool.name", NULL),
	CELL_AGE,
};

static const struct printer_cell_row taint_cells[] = {
	CELL_NAME,
	CELL_TEXT("Key", "spec.taint.key", NULL),
	CELL_TEXT("Value", "spec.taint.value", NULL),
	CELL_TEXT("Effect", "spec.taint.effect", NULL),
	CELL("TimeAdded", "string", 0, HOW_AGE, "spec.taint.timeAdded", .none = ""),
	CELL_AGE,
};

/* Returns the final condition of the request, Complete or Failed. */
static const char *poolstatus_end(struct printer_row *row, struct value *ret_condition)
{
	struct value_iter iter = printer_items(row, &row->object, "status.conditions");

	while (printer_next(row, &iter, ret_condition)) {
		if (!printer_is(row, ret_condition, "status", "True"))
			continue;
		if (printer_is(row, ret_condition, "type", "Complete"))
			return "Complete";
		if (printer_is(row, ret_condition, "type", "Failed"))
			return "Failed";
	}
	return "Pending";
}

/* Appends the sum of a field over all pools; with validationError the number of pools with one. */
static enum printer_cell_type poolstatus_sum(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.pools");
	struct value status, condition, pool, found;
	int64_t sum = 0;

	if (!printer_find(row, &row->object, "status", &status) ||
		strcmp(poolstatus_end(row, &condition), "Failed") == 0)
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
	struct value condition, pools = {.count = 0};
	const char *end = poolstatus_end(row, &condition);
	int64_t count = printer_integer(row, &row->object, "status.poolCount");

	(void)printer_put(row, end);
	if (!printer_find(row, &row->object, "status.pools", &pools))
		pools.count = 0;
	if (strcmp(end, "Complete") == 0 && count > pools.count)
		buf_printf(row->text, " (%u/%" PRId64 " pools)", pools.count, count);
	return PRINTER_STRING;
}

static enum printer_cell_type poolstatus_completed(struct printer_row *row)
{
	struct value condition;

	if (strcmp(poolstatus_end(row, &condition), "Complete") != 0)
		return printer_put(row, "<none>");
	printer_put_since(row, &condition, "lastTransitionTime", "<unknown>");
	return PRINTER_STRING;
}

static const struct printer_cell_row poolstatus_cells[] = {
	CELL_NAME,
	CELL_TEXT("Driver", "spec.driver", NULL),
	CELL_FUNCTION_OF("Total", 0, poolstatus_sum, "totalDevices"),
	CELL_FUNCTION_OF("Available", 0, poolstatus_sum, "availableDevices"),
	CELL_FUNCTION_OF("Allocated", 0, poolstatus_sum, "allocatedDevices"),
	CELL_FUNCTION_OF("Unavailable", 0, poolstatus_sum, "unavailableDevices"),
	CELL_FUNCTION_OF("Errors", 0, poolstatus_sum, "validationError"),
	CELL_INTEGER("Pools", "integer", "status.poolCount"),
	CELL_FUNCTION("Status", "string", 0, poolstatus_status),
	CELL_FUNCTION("Completed", "string", 0, poolstatus_completed),
};

/* ---- flow control ------------------------------------------------------- */

static enum printer_cell_type flow_missing(struct printer_row *row)
{
	struct value condition;

	if (!printer_condition(row, "status.conditions", "Dangling", &condition))
		return printer_put(row, "?");
	return printer_put_bytes(row, printer_text(row, &condition, "status"));
}

static const struct printer_cell_row flow_cells[] = {
	CELL_NAME,
	CELL_TEXT("PriorityLevel", "spec.priorityLevelConfiguration.name", NULL),
	CELL_INTEGER("MatchingPrecedence", "string", "spec.matchingPrecedence"),
	CELL_TEXT("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>"),
	CELL_AGE,
	CELL_FUNCTION("MissingPL", "string", 0, flow_missing),
};

static const struct printer_cell_row level_cells[] = {
	CELL_NAME,
	CELL_TEXT("Type", "spec.type", NULL),
	CELL_NUMBER("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares"),
	CELL_NUMBER("Queues", "spec.limited.limitResponse.queuing.queues"),
	CELL_NUMBER("HandSize", "spec.limited.limitResponse.queuing.handSize"),
	CELL_NUMBER("QueueLengthLimit", "spec.limited.limitResponse.queuing.queueLengthLimit"),
	CELL_AGE,
};

/* ---- the API ------------------------------------------------------------ */

#define CRD_VERSIONS_MAX 32

/* The served versions in the order of their texts, the storage version marked. */
static enum printer_cell_type crd_versions(struct printer_row *row)
{
	struct {
		struct bytes name;
		bool stored;
	} found[CRD_VERSIONS_MAX];
	struct value_iter iter = printer_items(row, &row->object, "spec.versions");
	size_t n = 0, start = row->text->size;
	struct value version;

	while (n < CRD_VERSIONS_MAX && printer_next(row, &iter, &version)) {
		struct bytes name = printer_text(row, &version, "name");
		size_t at = n;

		if (!printer_is_true(row, &version, "served"))
			continue;
		for (; at && bytes_compare(found[at - 1].name, name) > 0; at--)
			found[at] = found[at - 1];
		found[at].name = name;
		found[at].stored = printer_is_true(row, &version, "storage");
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		printer_put_more(row, start, found[i].name);
		if (found[i].stored)
			buf_str(row->text, "(storage)");
	}
	return PRINTER_STRING;
}

static enum printer_cell_type crd_established(struct printer_row *row)
{
	struct value condition;
	bool established = printer_holds(row, "status.conditions", "Established", &condition);

	buf_str(row->text, established ? "true" : "false");
	return PRINTER_BOOLEAN;
}

/* The columns of Kubernetes 1.37; servers before it have Name and Created At. */
static const struct printer_cell_row crd_cells[] = {
	CELL_NAME,
	CELL_TEXT("Scope", "spec.scope", NULL),
	CELL_FUNCTION("Versions", "string", 0, crd_versions),
	CELL_CREATED,
	CELL_WIDE("Group", "spec.group", NULL),
	CELL_WIDE("Kind", "spec.names.kind", NULL),
	CELL("ShortNames", "string", 1, HOW_EACH, "spec.names.shortNames", "{@}", .none = ""),
	CELL_FUNCTION("Established", "boolean", 1, crd_established),
};

static enum printer_cell_type apiservice_available(struct printer_row *row)
{
	struct value condition;

	if (!printer_condition(row, "status.conditions", "Available", &condition))
		return printer_put(row, "Unknown");
	printer_put_words(row, &condition,
		printer_is(row, &condition, "status", "True") ? "True" : "{status}[ ({reason})]");
	return PRINTER_STRING;
}

static const struct printer_cell_row apiservice_cells[] = {
	CELL_NAME,
	CELL_WORDS(
		"Service", "{spec.service.namespace}/{spec.service.name}", "spec.service", "Local"),
	CELL_FUNCTION("Available", "string", 0, apiservice_available),
	CELL_AGE,
};

static enum printer_cell_type storageversion_list(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.storageVersions");
	size_t n = 0, start = row->text->size;
	struct value version;

	for (; printer_next(row, &iter, &version); n++)
		if (n < 3) {
			buf_str(row->text, n ? "," : "");
			printer_put_words(row, &version, "{apiServerID}={encodingVersion}");
		}
	return printer_put_rest(row, start, n > 3 ? n - 3 : 0, "<unset>");
}

static const struct printer_cell_row storageversion_cells[] = {
	CELL_NAME,
	CELL_TEXT("CommonEncodingVersion", "status.commonEncodingVersion", "<unset>"),
	CELL_FUNCTION("StorageVersions", "string", 0, storageversion_list),
	CELL_AGE,
};

static enum printer_cell_type migration_status(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.conditions");
	struct bytes status = BYTES_LIT("Unknown");
	struct value condition;

	while (printer_next(row, &iter, &condition)) {
		struct bytes type = printer_text(row, &condition, "type");

		if (printer_is(row, &condition, "status", "True") &&
			(bytes_equal(type, BYTES_LIT("Running")) ||
				bytes_equal(type, BYTES_LIT("Succeeded")) ||
				bytes_equal(type, BYTES_LIT("Failed"))))
			status = type;
	}
	return printer_put_bytes(row, status);
}

static const struct printer_cell_row migration_cells[] = {
	CELL_TEXT("Name", "metadata.name", NULL),
	CELL_WORDS("Resource", "{spec.resource.resource}[.{spec.resource.group}]"),
	CELL_FUNCTION("Status", "string", 0, migration_status),
};

const struct printer_kind_row printer_kinds_other[] = {
	KIND("coordination.k8s.io", "leases", lease_cells),
	KIND("coordination.k8s.io", "leasecandidates", candidate_cells),
	KIND("node.k8s.io", "runtimeclasses", runtime_cells),
	KIND("resource.k8s.io", "deviceclasses", device_cells),
	KIND("resource.k8s.io", "resourceclaims", claim_cells),
	KIND("resource.k8s.io", "resourceclaimtemplates", device_cells),
	KIND("resource.k8s.io", "resourceslices", resourceslice_cells),
	KIND("resource.k8s.io", "devicetaintrules", taint_cells),
	KIND("resource.k8s.io", "resourcepoolstatusrequests", poolstatus_cells),
	{.group = "flowcontrol.apiserver.k8s.io",
		.resource = "flowschemas",
		.cells = flow_cells,
		.n = ARRAY_SIZE(flow_cells),
		.order = "spec.matchingPrecedence"},
	KIND("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", level_cells),
	KIND("apiextensions.k8s.io", "customresourcedefinitions", crd_cells),
	KIND("apiregistration.k8s.io", "apiservices", apiservice_cells),
	KIND("internal.apiserver.k8s.io", "storageversions", storageversion_cells),
	KIND("storagemigration.k8s.io", "storageversionmigrations", migration_cells),
	{0},
};
