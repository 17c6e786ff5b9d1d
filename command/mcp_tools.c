/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of kinf mcp: each is a subcommand of kinf, so that an assistant sees what a person
 * sees. */
#include <string.h>

#include "command/mcp.h"
#include "common/bytes.h"
#include "common/value/json.h"

#define RESOURCE \
	{ \
		.name = "resource", .required = true, \
		.about = "plural, kind, short name or feed: pods, deploy, widgets.example.com" \
	}
#define NAME(is_required) \
	{ \
		.name = "name", .required = is_required, .about = "the object's name" \
	}
#define NAMESPACE(text) \
	{ \
		.name = "namespace", .option = "--namespace=", .about = text \
	}
#define AT \
	{ \
		.name = "at", .option = "--at=", \
		.about = \
			"the state of an earlier moment: RFC 3339, how long ago (10m, 2h), or an " \
			"event number" \
	}
#define SINCE \
	{ \
		.name = "since", .option = "--since=", .about = "only of the last such as 10m, 1h" \
	}

static const struct mcp_tool mcp_tools[] = {
	{.name = "get",
		.about = "List or select objects of a resource, as kubectl get does, now or at an "
			 "earlier moment.",
		.command = {"get"},
		.arguments = {RESOURCE, NAME(false), NAMESPACE("default: all"),
			{.name = "labels", .option = "--selector=", .about = "label selector"},
			{.name = "fields",
				.option = "--field-selector=",
				.about = "field selector over any path: status.phase!=Running, "
					 "spec.nodeName=n1, "
					 "status.containerStatuses[*].restartCount>0, "
					 "status.conditions[type=Ready].status=False, age<1h",
				.shows_values = true},
			{.name = "sort_by",
				.option = "--sort-by=",
				.about = "field path",
				.shows_values = true},
			{.name = "limit",
				.type = MCP_NUMBER,
				.option = "--limit=",
				.about = "at most so many objects"},
			{.name = "continue",
				.option = "--continue=",
				.about = "token of the page before"},
			{.name = "output",
				.option = "--output=",
				.about = "default: table",
				.words = "table|wide|yaml|json|name|count",
				.shows_values = true},
			AT}},
	{.name = "describe",
		.about = "Describe one object: its fields, events, and last changes; also after it "
			 "was deleted.",
		.command = {"describe"},
		.arguments = {RESOURCE, NAME(true), NAMESPACE("of the object"), AT}},
	{.name = "history",
		.about = "The retained versions of one object, oldest first: when each was "
			 "recorded, its changed fields with old and new values, and who made it if "
			 "managedFields are kept.",
		.command = {"history"},
		.newest = true,
		.arguments = {RESOURCE, NAME(true), NAMESPACE("of the object"), SINCE,
			{.name = "fields",
				.option = "--fields=",
				.about = "only changes at or below this path: spec, "
					 "status.containerStatuses[*].restartCount"}}},
	{.name = "changes",
		.about = "What changed in the cluster, one change a line, oldest first: time, "
			 "event number, ADDED, MODIFIED or DELETED, object, changed fields.",
		.command = {"log"},
		.newest = true,
		.arguments = {{.name = "resource", .about = "default: all"},
			NAMESPACE("default: all"), SINCE,
			{.name = "fields",
				.option = "--fields=",
				.about = "only changes at or below this path, with their values: "
					 "status.containerStatuses[*].restartCount"}}},
	{.name = "diff",
		.about = "The fields of one object that differ between an earlier event and now.",
		.command = {"diff"},
		.arguments = {RESOURCE, NAME(true), NAMESPACE("of the object"),
			{.name = "from",
				.type = MCP_NUMBER,
				.required = true,
				.option = "--from=",
				.about = "event number, of 'history' or 'changes'"}}},
	{.name = "events",
		.about = "Kubernetes Events, oldest first; of one object if it is named.",
		.command = {"get", "events", "--sort-by=metadata.resourceVersion"},
		.resource = "events",
		.newest = true,
		.arguments = {{.name = "name",
				      .option = "--field-selector=involvedObject.name=",
				      .about = "of the object"},
			NAMESPACE("of the object"), AT}},
	{.name = "who",
		.about = "The pod behind an IP address, a container id, a pod uid or a process of "
			 "this machine: its node, controllers and labels; also pods that had it "
			 "and were deleted.",
		.command = {"who"},
		.resource = "pods",
		.arguments = {{.name = "what",
				      .required = true,
				      .about = "IP, container id, pod uid, or [NODE/]PID"},
			{.name = "all",
				.type = MCP_FLAG,
				.option = "--all",
				.about = "also those that had it, if another has it now"},
			AT}},
	{.name = "count",
		.about = "The values of an index with their counts, such as pods by node; without "
			 "an index, which there are.",
		.command = {"index"},
		.arguments = {RESOURCE,
			{.name = "index", .about = "its name", .shows_values = true},
			{.name = "prefix",
				.option = "--prefix=",
				.about = "only values that begin with it"},
			AT}},
	{.name = "status",
		.about = "What the cache has: resources with their number of objects, state and "
			 "freshness.",
		.command = {"status"},
		.is_report = true},
};

/* ---- the list ------------------------------------------------------------- */

static void tools_put_argument(const struct mcp_argument *argument, struct buf *out)
{
	static const char *const types[] = {
		[MCP_TEXT] = "string", [MCP_NUMBER] = "integer", [MCP_FLAG] = "boolean"};

	buf_printf(out, "\"%s\":{\"type\":\"%s\",\"description\":", argument->name,
		types[argument->type]);
	json_write_string(bytes_str(argument->about), out);
	if (argument->words) {
		buf_str(out, ",\"enum\":[\"");
		for (const char *p = argument->words; *p; p++)
			buf_str(out, *p == '|' ? "\",\"" : (const char[]){*p, '\0'});
		buf_str(out, "\"]");
	}
	buf_byte(out, '}');
}

static void tools_put(const struct mcp_tool *tool, struct buf *out)
{
	size_t n = 0;

	buf_printf(out, "{\"name\":\"%s\",\"description\":", tool->name);
	json_write_string(bytes_str(tool->about), out);
	buf_str(out, ",\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false},"
		     "\"inputSchema\":{\"type\":\"object\",\"properties\":{");
	for (const struct mcp_argument *a = tool->arguments; a->name; a++) {
		buf_str(out, a == tool->arguments ? "" : ",");
		tools_put_argument(a, out);
	}
	buf_str(out, "},\"required\":[");
	for (const struct mcp_argument *a = tool->arguments; a->name; a++)
		if (a->required)
			buf_printf(out, "%s\"%s\"", n++ ? "," : "", a->name);
	buf_str(out, "],\"additionalProperties\":false}}");
}

void mcp_put_tools(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(mcp_tools); i++) {
		buf_str(out, i ? "," : "[");
		tools_put(&mcp_tools[i], out);
	}
	buf_byte(out, ']');
}

const struct mcp_tool *mcp_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(mcp_tools); i++)
		if (strcmp(mcp_tools[i].name, name) == 0)
			return &mcp_tools[i];
	return NULL;
}
