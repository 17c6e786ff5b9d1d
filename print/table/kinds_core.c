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

static const struct printer_cell_row node_cells[] = {
	CELL_NAME,
	CELL_WORDS("Status", "[{status.conditions[type=Ready][status=True].type}|"
			     "{status.conditions[type=Ready]:if}NotReady|Unknown]"
			     "[{spec[unschedulable=true]:if},SchedulingDisabled]"),
	CELL_WORDS("Roles", "{metadata.labels:roles}"),
	CELL_AGE,
	CELL_TEXT("Version", "status.nodeInfo.kubeletVersion", NULL),
	CELL_WIDE("Internal-IP", "status.addresses[type=InternalIP].address", "<none>"),
	CELL_WIDE("External-IP", "status.addresses[type=ExternalIP].address", "<none>"),
	CELL_WIDE("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
	CELL("Kernel-Version", "string", 1, HOW_WORDS,
		"{status.nodeInfo.kernelVersion|<unknown>}[ ({status.nodeInfo.architecture})]"),
	CELL_WIDE("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>"),
};

/* ---- events ------------------------------------------------------------- */

/* The fields of an event in its two groups. */
struct event_fields {
	const char *first, *last, *count, *object, *component, *host, *controller;
};

static const struct event_fields event_core = {"firstTimestamp", "lastTimestamp", "count",
	"involvedObject", "source.component", "source.host", "reportingComponent"};
static const struct event_fields event_new = {"deprecatedFirstTimestamp", "deprecatedLastTimestamp",
	"deprecatedCount", "regarding", "deprecatedSource.component", "deprecatedSource.host",
	"reportingController"};

static const struct event_fields *event_form(struct printer_row *row)
{
	struct bytes version = printer_text(row, &row->object, "apiVersion");

	return bytes_starts(version, BYTES_LIT("events.k8s.io/")) ? &event_new : &event_core;
}

static enum printer_cell_type event_first_seen(struct printer_row *row)
{
	const char *first = event_form(row)->first;

	if (!printer_text(row, &row->object, first).size)
		first = "eventTime";
	printer_put_since(row, &row->object, first, "<unknown>");
	return PRINTER_STRING;
}

static enum printer_cell_type event_last_seen(struct printer_row *row)
{
	const char *last = event_form(row)->last;
	struct value series;

	if (printer_find(row, &row->object, "series", &series))
		last = "series.lastObservedTime";
	else if (!printer_text(row, &row->object, last).size)
		return event_first_seen(row);
	printer_put_since(row, &row->object, last, "<unknown>");
	return PRINTER_STRING;
}

static enum printer_cell_type event_count(struct printer_row *row)
{
	int64_t count = printer_integer(row, &row->object, event_form(row)->count);
	struct value series;

	if (printer_find(row, &row->object, "series", &series))
		count = printer_integer(row, &series, "count");
	else if (!count)
		count = 1;
	buf_printf(row->text, "%" PRId64, count);
	return PRINTER_NUMBER;
}

static enum printer_cell_type event_object(struct printer_row *row)
{
	struct value object;

	if (!printer_find(row, &row->object, event_form(row)->object, &object))
		return PRINTER_STRING;
	printer_put_words(row, &object, "{kind:lower}[/{name}]");
	return PRINTER_STRING;
}

static enum printer_cell_type event_subobject(struct printer_row *row)
{
	struct value object;

	if (!printer_find(row, &row->object, event_form(row)->object, &object))
		return PRINTER_STRING;
	return printer_put_bytes(row, printer_text(row, &object, "fieldPath"));
}

static enum printer_cell_type event_source(struct printer_row *row)
{
	const struct event_fields *fields = event_form(row);
	struct bytes component = printer_text(row, &row->object, fields->component);
	struct bytes host = printer_text(row, &row->object, fields->host);

	if (!component.size)
		component = printer_text(row, &row->object, fields->controller);
	if (!host.size)
		host = printer_text(row, &row->object, "reportingInstance");
	buf_bytes_put(row->text, component);
	buf_str(row->text, host.size ? ", " : "");
	return printer_put_bytes(row, host);
}

static const struct printer_cell_row event_cells[] = {
	CELL_FUNCTION("Last Seen", "string", 0, event_last_seen),
	CELL_TEXT("Type", "type", NULL),
	CELL_TEXT("Reason", "reason", NULL),
	CELL_FUNCTION("Object", "string", 0, event_object),
	CELL_FUNCTION("Subobject", "string", 1, event_subobject),
	CELL_FUNCTION("Source", "string", 1, event_source),
	CELL_WORDS("Message", "[{note:trim}|{message:trim}]"),
	CELL_FUNCTION("First Seen", "string", 1, event_first_seen),
	CELL_FUNCTION("Count", "string", 1, event_count),
	CELL_AS_NAME("Name", 1, HOW_TEXT, "metadata.name"),
};

/* ---- other kinds -------------------------------------------------------- */

static enum printer_cell_type quota_put(struct printer_row *row)
{
	bool limits = strcmp(row->of, "limits") == 0;
	struct value used = {.type = VALUE_NIL}, value;
	size_t start = row->text->size;
	struct printer_list hard;

	(void)printer_find(row, &row->object, "status.used", &used);
	printer_list_at(row, &row->object, "status.hard", NULL, &hard);
	for (size_t i = 0; i < hard.n; i++) {
		struct bytes key = hard.items[i].key;

		if (bytes_starts(key, BYTES_LIT("limits.")) != limits)
			continue;
		value.text = BYTES_LIT("0");
		(void)value_find(&used, key, &value);
		buf_printf(row->text, "%s%.*s: %.*s/%.*s", row->text->size > start ? ", " : "",
			BYTES_ARG(key), BYTES_ARG(value.text), BYTES_ARG(hard.items[i].value.text));
	}
	printer_list_release(&hard);
	return PRINTER_STRING;
}

static const struct printer_cell_row quota_cells[] = {
	CELL_NAME,
	CELL_FUNCTION_OF("Request", 0, quota_put, "requests"),
	CELL_FUNCTION_OF("Limit", 0, quota_put, "limits"),
	CELL_AGE,
};

static const struct printer_cell_row component_cells[] = {
	CELL_NAME,
	CELL_WORDS("Status", "[{conditions[type=Healthy][status=True].type}|"
			     "{conditions[type=Healthy]:if}Unhealthy|Unknown]"),
	CELL_TEXT("Message", "conditions[type=Healthy].message", NULL),
	CELL_TEXT("Error", "conditions[type=Healthy].error", NULL),
};

static const struct printer_cell_row namespace_cells[] = {
	CELL_NAME,
	CELL_TEXT("Status", "status.phase", NULL),
	CELL_AGE,
};

static const struct printer_cell_row secret_cells[] = {
	CELL_NAME,
	CELL_TEXT("Type", "type", NULL),
	CELL_COUNT("Data", "string", "data", NULL),
	CELL_AGE,
};

static const struct printer_cell_row configmap_cells[] = {
	CELL_NAME,
	CELL_COUNT("Data", "string", "data", "binaryData"),
	CELL_AGE,
};

static const struct printer_cell_row account_cells[] = {CELL_NAME, CELL_AGE};

static const struct printer_cell_row created_cells[] = {CELL_NAME, CELL_CREATED};

const struct printer_kind_row printer_kinds_core[] = {
	KIND("", "nodes", node_cells),
	KIND("", "events", event_cells),
	KIND("events.k8s.io", "events", event_cells),
	KIND("", "namespaces", namespace_cells),
	KIND("", "secrets", secret_cells),
	KIND("", "configmaps", configmap_cells),
	KIND("", "serviceaccounts", account_cells),
	KIND("", "resourcequotas", quota_cells),
	KIND("", "limitranges", created_cells),
	KIND("", "componentstatuses", component_cells),
	{0},
};
