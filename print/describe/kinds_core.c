/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, ConfigMaps, Secrets, ServiceAccounts. */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "print/describe/describe_internal.h"

/* ---- ConfigMaps and Secrets --------------------------------------------- */

static void config_map_value(struct describe *d)
{
	describe_text_lines(d, describe_get(d, "@"));
	buf_byte(d->row.text, '\n');
}

/* Appends how many bytes the value d->here, in base64, is of. */
static void core_size(struct describe *d)
{
	AUTO_FREE char *data = NULL;
	struct bytes text = describe_get(d, "@");
	size_t size = text.size;

	err_ignore(base64_decode(text, &data, &size), "the size of the text is shown");
	buf_bytes_put(d->row.text, d->row.key);
	buf_printf(d->row.text, "%s%zu bytes\n", d->row.of, size);
}

static const struct describe_line config_map_lines[] = {
	LINES_NAME,
	LINES_LABELS,
	{.line = ""},
	{.line = "Data\n===="},
	{.each = "data", .line = "{@key}:\n----", .fn = config_map_value},
	{.line = ""},
	{.line = "BinaryData\n===="},
	{.each = "binaryData", .fn = core_size, .of = ": "},
	{.line = ""},
	{.fn = describe_events},
	END_OF_LINES,
};

/* kubectl prints the tokens of service accounts; here no value is shown. */
static const struct describe_line secret_lines[] = {
	LINES_NAME,
	LINES_LABELS,
	{.line = ""},
	{.line = "Type:\t{type}"},
	{.line = ""},
	{.line = "Data\n===="},
	{.each = "data", .fn = core_size, .of = ":\t"},
	END_OF_LINES,
};

/* ---- service accounts --------------------------------------------------- */

static const struct describe_line account_lines[] = {
	LINES_NAME,
	LINES_LABELS,
	{.line = "Image pull secrets:\t",
		.list = "imagePullSecrets",
		.item = "{name}",
		.between = "\n                   \t",
		.none = "<none>"},
	{.fn = describe_events},
	END_OF_LINES,
};

/* ---- namespaces --------------------------------------------------------- */

struct namespace_parts {
	const struct describe_line *lines;
	const char *heading;
	size_t n;
};

/* The meaning of a scope. */
static void quota_scope(struct describe *d)
{
	static const struct {
		const char *scope, *text;
	} all[] = {
		{"Terminating", "that have an active deadline. These pods have a limited lifespan "
				"on a node before being actively terminated by the system."},
		{"NotTerminating",
			"that do not have an active deadline. These pods usually include long "
			"running pods whose container command is not expected to terminate."},
		{"BestEffort", "that do not have resource requirements set. These pods have a best "
			       "effort quality of service."},
		{"NotBestEffort", "that have at least one resource requirement set. These pods "
				  "have a burstable or guaranteed quality of service."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (bytes_equal(describe_get(d, "@"), bytes_str(all[i].scope))) {
			describe_indent(d, 0);
			buf_printf(d->row.text, " * Matches all pods %s\n", all[i].text);
		}
}

static const struct describe_line quota_lines[] = {
	{.level = 1, .line = "Name:\t{metadata.name}"},
	{.level = 1, .some = "Scopes:\t{spec.scopes:commas}"},
	{.each = "spec.scopes", .level = 1, .fn = quota_scope},
	{.line = "  Resource\tUsed\tHard\n  --------\t---\t---"},
	{.each = "status.hard", .level = 1, .line = "{@key}\t{$status.used[@key]|0}\t{@}"},
	END_OF_LINES,
};

/* A line for each resource of the limit d->here: minimum, maximum, defaults, ratio; "-" for missing
 * ones. */
static void limit_resources(struct describe *d)
{
	static const char *const members[] = {
		"min", "max", "defaultRequest", "default", "maxLimitRequestRatio"};
	struct printer_list all;
	char path[64];

	for (size_t m = 0; m < ARRAY_SIZE(members); m++) {
		describe_items_at(d, members[m], NULL, &all);
		for (size_t i = 0; i < all.n; i++) {
			bool earlier = false;

			d->row.key = all.items[i].key;
			for (size_t e = 0; e < m; e++) {
				(void)snprintf(path, sizeof(path), "%s[@key]", members[e]);
				earlier |= !describe_is_empty(d, path);
			}
			if (!earlier)
				describe_template(d,
					" {type}\t{@key}\t{min[@key]|-}\t{max[@key]|-}\t"
					"{defaultRequest[@key]|-}\t{default[@key]|-}\t"
					"{maxLimitRequestRatio[@key]|-}");
		}
		printer_list_release(&all);
	}
}

static const struct describe_line limit_lines[] = {
	{.each = "spec.limits", .fn = limit_resources}, END_OF_LINES};

static void namespace_add_part(struct describe *d, void *arg)
{
	struct namespace_parts *parts = arg;
	const struct value quota = d->here;

	buf_str(d->row.text, parts->n++ ? "" : parts->heading);
	d->row.second = &quota;
	describe_lines(d, parts->lines);
	d->row.second = NULL;
}

/* Quotas and limits of the namespace, if they are fed. */
static void namespace_parts(struct describe *d)
{
	static const struct {
		const char *resource, *none;
		struct namespace_parts parts;
	} kinds[] = {
		{"resourcequotas", "No resource quota.\n", {quota_lines, "Resource Quotas\n", 0}},
		{"limitranges", "No LimitRange resource.\n",
			{limit_lines,
				"Resource Limits\n Type\tResource\tMin\tMax\tDefault "
				"Request\tDefault Limit\t"
				"Max Limit/Request Ratio\n "
				"----\t--------\t---\t---\t---------------\t"
				"-------------\t-----------------------\n",
				0}},
	};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct namespace_parts parts = kinds[i].parts;
		size_t before = d->row.text->size;

		buf_byte(d->row.text, '\n');
		if (!describe_each_object(d, kinds[i].resource, "{metadata.name}", "", "",
			    namespace_add_part, &parts))
			buf_truncate(d->row.text, before);
		else if (!parts.n)
			buf_str(d->row.text, kinds[i].none);
	}
}

static const struct describe_line namespace_lines[] = {
	{.line = "Name:\t{metadata.name}"},
	LINES_LABELS,
	{.line = "Status:\t{status.phase}"},
	{.when = "status.conditions",
		.line = "Conditions:\n  Type\tStatus\tLastTransitionTime\tReason\tMessage\n"
			"  ----\t------\t------------------\t------\t-------"},
	{.each = "status.conditions",
		.level = 1,
		.line = "{type}\t{status}\t{lastTransitionTime:time}\t{reason}\t{message}"},
	{.fn = namespace_parts},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_core[] = {
	{"configmaps", config_map_lines},
	{"secrets", secret_lines},
	{"serviceaccounts", account_lines},
	{"namespaces", namespace_lines},
	{0},
};
