/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/definition.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "common/options.h"
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

/* Appends the columns of a feed's definition (store/FORMAT.md) as a msgpack list. */
static void definition_put_columns(const char *lines, struct buf *out)
{
	static const char *const keys[] = {
		"name", "type", "format", "priority", "jsonPath", "description"};
	size_t list = value_open_array(out);
	uint32_t n = 0;

	for (const char *p = lines; *p; n++) {
		size_t column = value_open_map(out);

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			struct bytes text = BYTES(p, strcspn(p, "\t\n"));

			value_put_string(out, bytes_str(keys[i]));
			if (i != 3 || !value_put_number(out, text))
				value_put_string(out, text);
			p += text.size;
			p += *p == '\t' || (*p == '\n' && i + 1 == ARRAY_SIZE(keys));
		}
		value_close(out, column, ARRAY_SIZE(keys));
	}
	value_close(out, list, n);
}

int definition_printer(struct kinf_snapshot *snapshot, const struct kinf_feed_info *info,
	struct printer **ret_printer)
{
	const struct feed_set *set;
	CLEANUP(buf_release) struct buf stored = BUF_INIT;
	struct kinf_object object;
	int r = feed_set_get(snapshot, info->name, &set);

	if (r < 0)
		return r;
	const struct feed_definition *feed = set->n ? &set->feeds[0].definition : NULL;
	struct printer_kind kind = {.resource = BYTES_LIT("")};
	if (feed && !feed->metadata_only)
		kind = (struct printer_kind){.group = bytes_str(feed->group),
			.version = bytes_str(feed->version),
			.resource = bytes_str(feed->resource)};
	if (kind.group.size && kinf_get(snapshot, DEFINITIONS, NULL, info->resource, &object) ==
				       KINF_FOUND)
		kind.columns = definition_columns(
			BYTES(object.body, object.body_size), kind.version);
	err_forget(); /* no feed holds definitions */
	if (!kind.columns.size && kind.resource.size && *feed->columns) {
		definition_put_columns(feed->columns, &stored);
		kind.columns = buf_bytes(&stored);
	}
	r = buf_error(&stored);
	return r < 0 ? r : printer_new(&kind, ret_printer);
}
