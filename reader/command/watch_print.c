/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/command/watch_print.h"

#include <inttypes.h>
#include <string.h>

#include "common/err.h"
#include "common/value/json.h"
#include "reader/command/print.h"
#include "reader/handle.h"

static const char *const watch_formats[WATCH_FORMAT_MAX] = {"table", "name", "json"};
/* The first heading is as wide as the widest type, MODIFIED, which may come long after the
 * heading. */
static const char *const watch_heads[] = {"EVENT   ", "NAMESPACE", "NAME", "AGE"};

int watch_format(const char *text, enum watch_format *ret_format)
{
	*ret_format = WATCH_TABLE;
	if (!text)
		return 0;
	for (int i = 0; i < WATCH_FORMAT_MAX; i++)
		if (strcmp(text, watch_formats[i]) == 0) {
			*ret_format = (enum watch_format)i;
			return 0;
		}
	return err_say(ERR_SYNTAX, "output '%s': allowed are table, name, json", text);
}

/* Copies the columns that are shown. Returns their number. */
static size_t watch_columns(const struct watch_print *print, const char *const all[4],
	const char *shown[4])
{
	size_t n = 0;

	if (print->types)
		shown[n++] = all[0];
	if (print->namespaced)
		shown[n++] = all[1];
	shown[n++] = all[2];
	shown[n++] = all[3];
	return n;
}

void watch_print_begin(struct watch_print *print, const struct kinf_feed_info *info)
{
	print->namespaced = info->namespaced;
	print_singular(info, print->singular, sizeof(print->singular));
	size_t n = watch_columns(print, watch_heads, print->heads);
	table_init(&print->table, print->heads, n);
}

static int watch_print_json(const struct watch_print_event *event, struct buf *out)
{
	int r = 0;

	buf_printf(out, "{\"type\":\"%s\"", event->type);
	if (event->event)
		buf_printf(out, ",\"event\":%" PRIu64, event->event);
	buf_str(out, event->initial ? ",\"initial\":true" : "");
	buf_str(out, event->final_state_unknown ? ",\"finalStateUnknown\":true" : "");
	if (event->object) {
		buf_str(out, ",\"object\":");
		r = json_write(event->object->body, 0, out);
	}
	if (r == 0 && event->old) {
		buf_str(out, ",\"old\":");
		r = json_write(event->old->body, 0, out);
	}
	buf_str(out, "}\n");
	return r < 0 ? r : buf_error(out);
}

int watch_print(struct watch_print *print, const struct watch_print_event *event, struct buf *out)
{
	struct print_cells cells = {"", "", ""};
	const char *const all[4] = {event->type, cells.namespace_, cells.name, cells.age};
	const char *shown[4];
	struct kinf_object object = {0};

	if (print->format == WATCH_JSON)
		return watch_print_json(event, out);
	if (!event->object && !print->types)
		return 0;
	if (event->object)
		object_from_record(event->object, &object);
	if (print->format == WATCH_NAME) {
		buf_str(out, print->types ? event->type : "");
		if (event->object)
			buf_printf(out, "%s%s/%.*s", print->types ? " " : "", print->singular,
				BYTES_ARG(print_name(&object)));
		buf_byte(out, '\n');
		return buf_error(out);
	}
	if (event->object)
		print_cells(&object, &cells);
	(void)watch_columns(print, all, shown);
	return table_row(&print->table, shown, out);
}

int watch_print_settle(struct watch_print *print, struct buf *out)
{
	return print->format == WATCH_TABLE ? table_settle(&print->table, out) : 0;
}
