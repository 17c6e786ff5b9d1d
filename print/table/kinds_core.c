/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of nodes, namespaces, events and the small kinds of the core group. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

/* ---- nodes -------------------------------------------------------------- */

void printer_put_roles(struct printer_row *row, const struct value *in, const char *path)
{
	static const struct bytes prefix = BYTES_LIT("node-role.kubernetes.io/");
	struct bytes roles[32], key;
	struct value_iter iter = printer_items(row, in, path);
	size_t n = 0;
	struct value value;

	while (n < ARRAY_SIZE(roles) && value_iter_next(&iter, &key, &value) == FOUND) {
		if (bytes_starts(key, prefix) && key.size > prefix.size)
			roles[n++] =
				BYTES((const char *)key.data + prefix.size, key.size - prefix.size);
		else if (bytes_equal(key, BYTES_LIT("kubernetes.io/role")) && value.text.size)
			roles[n++] = value.text;
	}
	printer_put_sorted(row, roles, n);
	buf_str(row->text, n ? "" : "<none>");
}

/* ---- events ------------------------------------------------------------- */

/* Events of events.k8s.io have other fields than those of the core group. */
#define EVENT_FIRST \
	"{firstTimestamp:since}|{deprecatedFirstTimestamp:since}|{eventTime:since}|<unknown>]"

static enum printer_cell_type event_count(struct printer_row *row)
{
	static const char *const paths[] = {"series.count", "count", "deprecatedCount"};
	int64_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths) && !count; i++)
		count = printer_integer(row, &row->object, paths[i]);
	buf_printf(row->text, "%" PRId64, count ? count : 1);
	return PRINTER_NUMBER;
}

static const struct printer_cell_row event_cells[] = {
	CELL_WORDS("Last Seen",
		"[{series:if}{series.lastObservedTime:since|<unknown>}|{lastTimestamp:since}|"
		"{deprecatedLastTimestamp:since}|" EVENT_FIRST),
	CELL_TEXT("Type", "type", NULL),
	CELL_TEXT("Reason", "reason", NULL),
	CELL_WORDS("Object", "[{involvedObject.kind:lower}[/{involvedObject.name}]|"
			     "{regarding.kind:lower}[/{regarding.name}]]"),
	CELL("Subobject", "string", 1, HOW_WORDS,
		"[{involvedObject.fieldPath}|{regarding.fieldPath}]"),
	CELL("Source", "string", 1, HOW_WORDS,
		"[{source.component}|{deprecatedSource.component}|{reportingComponent}|"
		"{reportingController}]"
		"[, {source.host}|, {deprecatedSource.host}|, {reportingInstance}]"),
	CELL_WORDS("Message", "[{note:trim}|{message:trim}]"),
	CELL("First Seen", "string", 1, HOW_WORDS, "[" EVENT_FIRST),
	CELL_FUNCTION("Count", "string", 1, event_count),
	CELL_AS_NAME("Name", 1, HOW_TEXT, "metadata.name"),
};

/* ---- other kinds -------------------------------------------------------- */

static enum printer_cell_type quota_put(struct printer_row *row)
{
	bool limits = strcmp(row->of, "limits") == 0;
	size_t start = row->text->size;
	struct printer_list hard;

	row->second = &row->object;
	printer_list_at(row, &row->object, "status.hard", NULL, &hard);
	for (size_t i = 0; i < hard.n; i++) {
		row->key = hard.items[i].key;
		if (bytes_starts(row->key, BYTES_LIT("limits.")) != limits)
			continue;
		buf_str(row->text, row->text->size > start ? ", " : "");
		printer_put_words(row, &hard.items[i].value, "{@key}: {$status.used[@key]|0}/{@}");
	}
	printer_list_release(&hard);
	row->second = NULL;
	return PRINTER_STRING;
}

const struct printer_kind_row printer_kinds_core[] = {
	KIND("", "nodes", CELL_NAME,
		CELL_WORDS("Status", "[{status.conditions[type=Ready][status=True].type}|"
				     "{status.conditions[type=Ready]:if}NotReady|Unknown]"
				     "[{spec[unschedulable=true]:if},SchedulingDisabled]"),
		CELL_WORDS("Roles", "{metadata.labels:roles}"), CELL_AGE,
		CELL_TEXT("Version", "status.nodeInfo.kubeletVersion", NULL),
		CELL_WIDE("Internal-IP", "status.addresses[type=InternalIP].address", "<none>"),
		CELL_WIDE("External-IP", "status.addresses[type=ExternalIP].address", "<none>"),
		CELL_WIDE("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
		CELL("Kernel-Version", "string", 1, HOW_WORDS,
			"{status.nodeInfo.kernelVersion|<unknown>}[ "
			"({status.nodeInfo.architecture})]"),
		CELL_WIDE("Container-Runtime", "status.nodeInfo.containerRuntimeVersion",
			"<unknown>")),
	KIND_OF("", "events", event_cells),
	KIND_OF("events.k8s.io", "events", event_cells),
	KIND("", "namespaces", CELL_NAME, CELL_TEXT("Status", "status.phase", NULL), CELL_AGE),
	KIND("", "secrets", CELL_NAME, CELL_TEXT("Type", "type", NULL),
		CELL_COUNT("Data", "string", "data", NULL), CELL_AGE),
	KIND("", "configmaps", CELL_NAME, CELL_COUNT("Data", "string", "data", "binaryData"),
		CELL_AGE),
	KIND("", "serviceaccounts", CELL_NAME, CELL_AGE),
	KIND("", "resourcequotas", CELL_NAME, CELL_FUNCTION_OF("Request", 0, quota_put, "requests"),
		CELL_FUNCTION_OF("Limit", 0, quota_put, "limits"), CELL_AGE),
	KIND("", "limitranges", CELL_NAME, CELL_CREATED),
	KIND("", "componentstatuses", CELL_NAME,
		CELL_WORDS("Status", "[{conditions[type=Healthy][status=True].type}|"
				     "{conditions[type=Healthy]:if}Unhealthy|Unknown]"),
		CELL_TEXT("Message", "conditions[type=Healthy].message", NULL),
		CELL_TEXT("Error", "conditions[type=Healthy].error", NULL)),
	{0},
};
