/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/definition.h"

#include "common/err.h"
#include "common/value/custom.h"
#include "reader/handle.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

int definition_printer(struct kinf_snapshot *snapshot, const struct kinf_feed_info *info,
	struct printer **ret_printer)
{
	const struct feed_set *set;
	struct kinf_object object;
	int r = feed_set_get(snapshot, info->full_name, &set);

	if (r < 0)
		return r;
	const struct feed_definition *feed = set->n ? &set->feeds[0].definition : NULL;
	struct printer_kind kind = {.resource = BYTES_LIT("")};
	if (feed && !feed->metadata_only)
		kind = (struct printer_kind){.group = bytes_str(feed->group),
			.version = bytes_str(feed->version),
			.resource = bytes_str(feed->resource),
			.stored = feed->columns};
	if (kind.group.size &&
		kinf_get(snapshot, DEFINITIONS, NULL, info->resource, &object) == KINF_FOUND)
		err_ignore(custom_columns(BYTES(object.body, object.body_size), kind.version,
				   &kind.columns),
			"NAME and AGE are shown");
	err_forget(); /* no feed holds definitions */
	return printer_new(&kind, ret_printer);
}
