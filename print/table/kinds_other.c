/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of leases, devices, flow control and the API itself. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

/* ---- coordination, nodes ------------------------------------------------ */

static const struct printer_cell_row lease_cells[] = {
	CELL_NAME,
	CELL_TEXT("Holder", "spec.holderIdentity", NULL,
		"holderIdentity contains the identity of the holder of a current lease. If "
		"Coordinated Leader Election is used, the holder identity must be equal to the "
		"elected LeaseCandidate.metadata.name field."),
	CELL_AGE,
};

static const struct printer_cell_row candidate_cells[] = {
	CELL_NAME,
	CELL_TEXT("LeaseName", "spec.leaseName", NULL,
		"leaseName is the name of the lease for which this candidate is contending. This "
		"field is immutable."),
	CELL_TEXT("BinaryVersion", "spec.binaryVersion", NULL, ""),
	CELL_TEXT("EmulationVersion", "spec.emulationVersion", NULL, ""),
	CELL_AGE,
};

static const struct printer_cell_row runtime_cells[] = {
	CELL_NAME,
	CELL_TEXT("Handler", "handler", NULL, ""),
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
	CELL_FUNCTION("State", "string", 0, claim_state,
		"A summary of the current state (allocated, pending, reserved, etc.)."),
	CELL_AGE,
};

static const struct printer_cell_row resourceslice_cells[] = {
	CELL_NAME,
	CELL_TEXT("Node", "spec.nodeName", NULL,
		"NodeName identifies the node which provides the resources in this pool. A field "
		"selector can be used to list only ResourceSlice objects belonging to a certain "
		"node.\n\nThis field can be used to limit access from nodes to ResourceSlices with "
		"the same node name. It also indicates to autoscalers that adding new nodes of the "
		"same type as some old node might also make new resources available.\n\nExactly "
		"one of NodeName, NodeSelector, AllNodes, and PerDeviceNodeSelection must be set. "
		"This field is immutable."),
	CELL_TEXT("Driver", "spec.driver", NULL,
		"Driver identifies the DRA driver providing the capacity information. A field "
		"selector can be used to list only ResourceSlice objects with a certain driver "
		"name.\n\nMust be a DNS subdomain and should end with a DNS domain owned by the "
		"vendor of the driver. It should use only lower case characters. This field is "
		"immutable."),
	CELL_TEXT("Pool", "spec.pool.name", NULL,
		"Name is used to identify the pool. For node-local devices, this is often the node "
		"name, but this is not required. A field selector can be used to list only "
		"ResourceSlice objects belonging to a certain pool.\n\nIt must not be longer than "
		"253 characters and must consist of one or more DNS sub-domains separated by "
		"slashes. This field is immutable."),
	CELL_AGE,
};

static const struct printer_cell_row taint_cells[] = {
	CELL_NAME,
	CELL_TEXT("Key", "spec.taint.key", NULL,
		"The taint key to be applied to a device. Must be a label name."),
	CELL_TEXT("Value", "spec.taint.value", NULL,
		"The taint value corresponding to the taint key. Must be a label value."),
	CELL_TEXT("Effect", "spec.taint.effect", NULL,
		"The effect of the taint on claims that do not tolerate the taint and through such "
		"claims on the pods using them.\n\nValid effects are None, NoSchedule and "
		"NoExecute. PreferNoSchedule as used for nodes is not valid here. More effects may "
		"get added in the future. Consumers must treat unknown effects like None."),
	{{"TimeAdded", "string", "", 0,
		 "TimeAdded represents the time at which the taint was added or (only in a "
		 "DeviceTaintRule) the effect was modified. Added automatically during create or "
		 "update if not set.\n\nIn addition, in a DeviceTaintRule a value provided during "
		 "an update gets replaced with the current time if the provided value is the same "
		 "as the old one and the new effect is different. Changing the key and/or value "
		 "while keeping the effect unchanged is possible and does not update the time "
		 "stamp because the eviction which uses it is either already started (NoExecute) "
		 "or not started yet (NoEffect, NoSchedule)."},
		HOW_AGE, "spec.taint.timeAdded", .none = ""},
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
	CELL_TEXT("Driver", "spec.driver", NULL, "The driver to query pools for."),
	CELL_FUNCTION_OF("Total", 0, poolstatus_sum, "totalDevices",
		"Total number of devices across all pools."),
	CELL_FUNCTION_OF("Available", 0, poolstatus_sum, "availableDevices",
		"Number of available devices across all pools."),
	CELL_FUNCTION_OF("Allocated", 0, poolstatus_sum, "allocatedDevices",
		"Number of allocated devices across all pools."),
	CELL_FUNCTION_OF("Unavailable", 0, poolstatus_sum, "unavailableDevices",
		"Number of unavailable devices across all pools."),
	CELL_FUNCTION_OF("Errors", 0, poolstatus_sum, "validationError",
		"Number of pools with validation errors."),
	CELL_INTEGER("Pools", "integer", "status.poolCount", "Total number of matching pools."),
	CELL_FUNCTION("Status", "string", 0, poolstatus_status, "Processing status."),
	CELL_FUNCTION("Completed", "string", 0, poolstatus_completed,
		"Time since the observation completed."),
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
	CELL_TEXT("PriorityLevel", "spec.priorityLevelConfiguration.name", NULL,
		"`name` is the name of the priority level configuration being referenced "
		"Required."),
	CELL_INTEGER("MatchingPrecedence", "string", "spec.matchingPrecedence",
		"`matchingPrecedence` is used to choose among the FlowSchemas that match a given "
		"request. The chosen FlowSchema is among those with the numerically lowest (which "
		"we take to be logically highest) MatchingPrecedence.  Each MatchingPrecedence "
		"value must be ranged in [1,10000]. Note that if the precedence is not specified, "
		"it will be set to 1000 as default."),
	CELL_TEXT("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>",
		"`distinguisherMethod` defines how to compute the flow distinguisher for requests "
		"that match this schema. `nil` specifies that the distinguisher is disabled and "
		"thus will always be the empty string."),
	CELL_AGE,
	CELL_FUNCTION("MissingPL", "string", 0, flow_missing,
		"references a broken or non-existent PriorityLevelConfiguration"),
};

static const struct printer_cell_row level_cells[] = {
	CELL_NAME,
	CELL_TEXT("Type", "spec.type", NULL,
		"`type` indicates whether this priority level is subject to limitation on request "
		"execution.  A value of `\"Exempt\"` means that requests of this priority level "
		"are not subject to a limit (and thus are never queued) and do not detract from "
		"the capacity made available to other priority levels.  A value of `\"Limited\"` "
		"means that (a) requests of this priority level _are_ subject to limits and (b) "
		"some of the server's limited capacity is made available exclusively to this "
		"priority level. Required."),
	CELL_NUMBER("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares", "<none>",
		"`nominalConcurrencyShares` (NCS) contributes to the computation of the "
		"NominalConcurrencyLimit (NominalCL) of this level. This is the number of "
		"execution seats available at this priority level. This is used both for requests "
		"dispatched from this priority level as well as requests dispatched from other "
		"priority levels borrowing seats from this level. The server's concurrency limit "
		"(ServerCL) is divided among the Limited priority levels in proportion to their "
		"NCS values:\n\nNominalCL(i)  = ceil( ServerCL * NCS(i) / sum_ncs ) sum_ncs = "
		"sum[priority level k] NCS(k)\n\nBigger numbers mean a larger nominal concurrency "
		"limit, at the expense of every other priority level.\n\nIf not specified, this "
		"field defaults to a value of 30.\n\nSetting this field to zero supports the "
		"construction of a \"jail\" for this priority level that is used to hold some "
		"request(s)"),
	CELL_NUMBER("Queues", "spec.limited.limitResponse.queuing.queues", "<none>",
		"`queues` is the number of queues for this priority level. The queues exist "
		"independently at each apiserver. The value must be positive.  Setting it to 1 "
		"effectively precludes shufflesharding and thus makes the distinguisher method of "
		"associated flow schemas irrelevant.  This field has a default value of 64."),
	CELL_NUMBER("HandSize", "spec.limited.limitResponse.queuing.handSize", "<none>",
		"`handSize` is a small positive number that configures the shuffle sharding of "
		"requests into queues.  When enqueuing a request at this priority level the "
		"request's flow identifier (a string pair) is hashed and the hash value is used to "
		"shuffle the list of queues and deal a hand of the size specified here.  The "
		"request is put into one of the shortest queues in that hand. `handSize` must be "
		"no larger than `queues`, and should be significantly smaller (so that a few heavy "
		"flows do not saturate most of the queues).  See the user-facing documentation for "
		"more extensive guidance on setting this field.  This field has a default value of "
		"8."),
	CELL_NUMBER("QueueLengthLimit", "spec.limited.limitResponse.queuing.queueLengthLimit",
		"<none>",
		"`queueLengthLimit` is the maximum number of requests allowed to be waiting in a "
		"given queue of this priority level at a time; excess requests are rejected.  This "
		"value must be positive.  If not specified, it will be defaulted to 50."),
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
	bool established = printer_condition(row, "status.conditions", "Established", &condition) &&
			   printer_is(row, &condition, "status", "True");

	buf_str(row->text, established ? "true" : "false");
	return PRINTER_BOOLEAN;
}

/* The columns of Kubernetes 1.37; servers before it have Name and Created At. */
static const struct printer_cell_row crd_cells[] = {
	CELL_NAME,
	CELL_TEXT("Scope", "spec.scope", NULL, "Cluster/Namespaced"),
	CELL_FUNCTION("Versions", "string", 0, crd_versions, "Served versions"),
	CELL_CREATED,
	CELL_WIDE("Group", "spec.group", NULL, "API group"),
	CELL_WIDE("Kind", "spec.names.kind", NULL, "CustomResource kind"),
	{{"ShortNames", "string", "", 1, "Short names"}, HOW_LIST, "spec.names.shortNames",
		.none = ""},
	CELL_FUNCTION("Established", "boolean", 1, crd_established, "Established status"),
};

static enum printer_cell_type apiservice_service(struct printer_row *row)
{
	struct value service;

	if (!printer_find(row, &row->object, "spec.service", &service))
		return printer_put(row, "Local");
	(void)printer_put_bytes(row, printer_text(row, &service, "namespace"));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &service, "name"));
}

static enum printer_cell_type apiservice_available(struct printer_row *row)
{
	struct value condition;

	if (!printer_condition(row, "status.conditions", "Available", &condition))
		return printer_put(row, "Unknown");
	struct bytes reason = printer_text(row, &condition, "reason");
	(void)printer_put_bytes(row, printer_text(row, &condition, "status"));
	if (!printer_is(row, &condition, "status", "True") && reason.size)
		buf_printf(row->text, " (%.*s)", BYTES_ARG(reason));
	return PRINTER_STRING;
}

static const struct printer_cell_row apiservice_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Service", "string", 0, apiservice_service,
		"The reference to the service that hosts this API endpoint."),
	CELL_FUNCTION("Available", "string", 0, apiservice_available,
		"Whether this service is available."),
	CELL_AGE,
};

static enum printer_cell_type storageversion_list(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.storageVersions");
	int n = 0;
	struct value version;

	for (; printer_next(row, &iter, &version); n++) {
		if (n >= 3)
			continue;
		buf_str(row->text, n ? "," : "");
		buf_printf(
			row->text, "%.*s=", BYTES_ARG(printer_text(row, &version, "apiServerID")));
		buf_bytes_put(row->text, printer_text(row, &version, "encodingVersion"));
	}
	if (n > 3)
		buf_printf(row->text, " + %d more...", n - 3);
	return printer_put(row, n ? "" : "<unset>");
}

static const struct printer_cell_row storageversion_cells[] = {
	CELL_NAME,
	CELL_TEXT("CommonEncodingVersion", "status.commonEncodingVersion", "<unset>",
		"commonEncodingVersion is set to an encoding storage version if all API server "
		"instances share that same version. If they don't share one storage version, this "
		"field is left empty. API servers should finish updating its storageVersionStatus "
		"entry before serving write operations, so that this field will be in sync with "
		"the reality."),
	CELL_FUNCTION("StorageVersions", "string", 0, storageversion_list,
		"storageVersions lists the reported versions per API server instance."),
	CELL_AGE,
};

static enum printer_cell_type migration_resource(struct printer_row *row)
{
	struct bytes group = printer_text(row, &row->object, "spec.resource.group");

	(void)printer_put_bytes(row, printer_text(row, &row->object, "spec.resource.resource"));
	if (group.size)
		buf_printf(row->text, ".%.*s", BYTES_ARG(group));
	return PRINTER_STRING;
}

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
	CELL_TEXT("Name", "metadata.name", NULL, ABOUT_NAME),
	CELL_FUNCTION("Resource", "string", 0, migration_resource, "GroupResource to migrate"),
	CELL_FUNCTION("Status", "string", 0, migration_status, "Status of the migration"),
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
