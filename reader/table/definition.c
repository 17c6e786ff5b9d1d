/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/definition.h"

#include "common/err.h"
#include "common/value/value.h"
#include "reader/handle.h"
#include "reader/table/display.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

/* Finds the columns of VERSION in the definition BODY; empty if it has none. */
static struct bytes definition_columns(struct bytes body, struct bytes version)
{
	struct value definition, spec, versions, one, name, columns;
	struct bytes found = BYTES_NONE;
	struct value_iter iter;

	if (value_read(body, &definition) < 0 ||
		value_find(&definition, BYTES_LIT("spec"), &spec) != FOUND ||
		value_find(&spec, BYTES_LIT("versions"), &versions) != FOUND)
		return found;
	value_iter_init(&iter, &versions);
	while (value_iter_next(&iter, NULL, &one) == FOUND) {
		if (value_find(&one, BYTES_LIT("name"), &name) != FOUND ||
			!bytes_equal(name.text, version) ||
			value_find(&one, BYTES_LIT("additionalPrinterColumns"), &columns) != FOUND)
			continue;
		err_ignore(display_document(&columns, &found), "NAME and AGE are shown");
	}
	return found;
}

int definition_printer(struct kinf_snapshot *snapshot, const struct kinf_feed_info *info,
	struct printer **ret_printer)
{
	const struct feed_set *set;
	struct kinf_object object;
	int r = feed_set_get(snapshot, info->name, &set);

	if (r < 0)
		return r;
	const struct feed_definition *feed = set->n ? &set->feeds[0].definition : NULL;
	struct printer_kind kind = {.resource = BYTES_LIT("")};
	if (feed && !feed->metadata_only)
		kind = (struct printer_kind){.group = bytes_str(feed->group),
			.version = bytes_str(feed->version),
			.resource = bytes_str(feed->resource),
			.stored = feed->columns};
	if (kind.group.size && kinf_get(snapshot, DEFINITIONS, NULL, info->resource, &object) ==
				       KINF_FOUND)
		kind.columns = definition_columns(
			BYTES(object.body, object.body_size), kind.version);
	err_forget(); /* no feed holds definitions */
	return printer_new(&kind, ret_printer);
}
