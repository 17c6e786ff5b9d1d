/* SPDX-License-Identifier: Apache-2.0 */
#include "command/watch.h"

#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/omit.h"
#include "common/value/sort.h"
#include "common/value/yaml.h"
#include "print/print.h"
#include "reader/handle.h"

int watch_print_choose(struct watch_print *watch, const char *text)
{
	int r = print_choose(&watch->print, text);

	return r == 0 && watch->print.format == PRINT_COUNT
		       ? err_say(ERR_SYNTAX, "output 'count': allowed are " WATCH_FORMATS_TEXT)
		       : r;
}

void watch_print_release(struct watch_print *watch)
{
	print_release(&watch->print);
}

int watch_print_begin(struct watch_print *watch, struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info, bool namespaces)
{
	struct print *print = &watch->print;
	int r = print_begin(print, true);

	object_table_singular(info, print->singular, sizeof(print->singular));
	if (r < 0 || print->format > PRINT_WIDE)
		return r;
	print->object_table = (struct object_table){.args = &print->object_table_args,
		.wide = print->format == PRINT_WIDE,
		.namespaces = namespaces,
		.events = watch->types};
	return object_table_begin(&print->object_table, snapshot, info);
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

/* Sets *BODY to {type, object} with the object *BODY, in ROOM, if types are to be printed: what
 * kubectl prints then. */
static int watch_print_wrap(const struct watch_print *watch, const struct watch_print_event *event,
	struct buf *room, struct bytes *body)
{
	if (!watch->types)
		return 0;
	size_t opened = value_open_map(room);

	value_put_string(room, BYTES_LIT("object"));
	buf_bytes_put(room, *body);
	value_put_string(room, BYTES_LIT("type"));
	value_put_string(room, bytes_str(event->type));
	value_close(room, opened, 2);
	*body = buf_bytes(room);
	return buf_error(room);
}

/* Appends the object as a YAML document, without managed fields, as kubectl does. */
static int watch_print_yaml(
	struct watch_print *watch, const struct watch_print_event *event, struct buf *out)
{
	CLEANUP(buf_release) struct buf less = BUF_INIT, sorted = BUF_INIT, wrapped = BUF_INIT;

	if (!event->object)
		return 0;
	struct bytes body = event->object->body;
	int r = omit_member(body, "metadata", "managedFields", &less);
	if (r == FOUND)
		body = buf_bytes(&less);
	if (r >= 0)
		r = watch_print_wrap(watch, event, &wrapped, &body);
	if (r == 0)
		r = value_sort(body, VALUE_ORDER_YAML, &sorted);
	if (r < 0)
		return r;
	buf_str(out, watch->more ? "---\n" : "");
	watch->more = true;
	return yaml_write(buf_bytes(&sorted), false, out);
}

/* Appends what kubectl prints of the object: a row, or the text of the template. */
static int watch_print_chosen(
	struct watch_print *watch, const struct watch_print_event *event, struct buf *out)
{
	CLEANUP(buf_release) struct buf wrapped = BUF_INIT;
	struct print *chosen = &watch->print;

	if (!event->object)
		return 0;
	struct bytes body = event->object->body;
	int r = watch_print_wrap(watch, event, &wrapped, &body);
	if (r == 0 && chosen->columns)
		return columns_row(chosen->columns, body, &chosen->table, out);
	if (r == 0)
		r = template_begin(chosen->template, false);
	if (r == 0)
		r = template_object(chosen->template, body);
	return r < 0 ? r : template_end(chosen->template, "", out);
}

int watch_print(struct watch_print *watch, const struct watch_print_event *event, struct buf *out)
{
	struct kinf_object object = {0};
	struct print *print = &watch->print;

	if (print->format == PRINT_JSON)
		return watch_print_json(event, out);
	if (print->format == PRINT_YAML)
		return watch_print_yaml(watch, event, out);
	if (print->format >= PRINT_CUSTOM_COLUMNS)
		return watch_print_chosen(watch, event, out);
	/* kubectl has no row for the end of the initial state. */
	if (!event->object && (!watch->types || strcmp(event->type, "SYNC") == 0))
		return 0;
	if (event->object)
		object_from_record(event->object, &object);
	if (print->format == PRINT_NAME) {
		buf_str(out, watch->types ? event->type : "");
		if (event->object)
			buf_printf(out, "%s%s/%.*s", watch->types ? " " : "", print->singular,
				BYTES_ARG(print_name(&object)));
		buf_byte(out, '\n');
		return buf_error(out);
	}
	return object_table_row(
		&print->object_table, event->type, event->object ? &object : NULL, out);
}

int watch_print_settle(struct watch_print *watch, struct buf *out)
{
	struct print *print = &watch->print;

	if (print->format == PRINT_CUSTOM_COLUMNS)
		return table_settle(&print->table, out);
	return print->format <= PRINT_WIDE ? object_table_settle(&print->object_table, out) : 0;
}
