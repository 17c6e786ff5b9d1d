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

static const char *const watch_formats[] = {"table", "wide", "name", "json", "yaml"};

int watch_print_choose(struct watch_print *print, const char *text)
{
	struct print *chosen = &print->chosen;

	print->format = WATCH_TABLE;
	if (!text)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(watch_formats); i++)
		if (strcmp(text, watch_formats[i]) == 0) {
			print->format = (enum watch_format)i;
			return 0;
		}
	if (!strchr(text, '='))
		return err_say(ERR_SYNTAX, "output '%s': allowed are " WATCH_FORMATS_TEXT, text);
	int r = print_choose(chosen, text);
	print->format = chosen->columns ? WATCH_COLUMNS : WATCH_TEMPLATE;
	return r;
}

void watch_print_release(struct watch_print *print)
{
	object_table_release(&print->object_table);
	option_texts_release(&print->object_table_args.labels);
	print_release(&print->chosen);
}

int watch_print_begin(struct watch_print *print, struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info, bool namespaces)
{
	object_table_singular(info, print->singular, sizeof(print->singular));
	print->object_table = (struct object_table){.args = &print->object_table_args,
		.wide = print->format == WATCH_WIDE,
		.namespaces = namespaces,
		.events = print->types};
	if (print->format >= WATCH_COLUMNS) {
		print->chosen.object_table_args.no_heads = print->object_table_args.no_heads;
		return print_begin(&print->chosen, true);
	}
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
static int watch_print_wrap(const struct watch_print *print, const struct watch_print_event *event,
	struct buf *room, struct bytes *body)
{
	if (!print->types)
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
	struct watch_print *print, const struct watch_print_event *event, struct buf *out)
{
	CLEANUP(buf_release) struct buf less = BUF_INIT, sorted = BUF_INIT, wrapped = BUF_INIT;

	if (!event->object)
		return 0;
	struct bytes body = event->object->body;
	int r = omit_member(body, "metadata", "managedFields", &less);
	if (r == FOUND)
		body = buf_bytes(&less);
	if (r >= 0)
		r = watch_print_wrap(print, event, &wrapped, &body);
	if (r == 0)
		r = value_sort(body, VALUE_ORDER_YAML, &sorted);
	if (r < 0)
		return r;
	buf_str(out, print->more ? "---\n" : "");
	print->more = true;
	return yaml_write(buf_bytes(&sorted), false, out);
}

/* Appends what kubectl prints of the object: a row, or the text of the template. */
static int watch_print_chosen(
	struct watch_print *print, const struct watch_print_event *event, struct buf *out)
{
	CLEANUP(buf_release) struct buf wrapped = BUF_INIT;
	struct print *chosen = &print->chosen;

	if (!event->object)
		return 0;
	struct bytes body = event->object->body;
	int r = watch_print_wrap(print, event, &wrapped, &body);
	if (r == 0 && chosen->columns)
		return columns_row(chosen->columns, body, &chosen->table, out);
	if (r == 0)
		r = template_begin(chosen->template, false);
	if (r == 0)
		r = template_object(chosen->template, body);
	return r < 0 ? r : template_end(chosen->template, "", out);
}

int watch_print(struct watch_print *print, const struct watch_print_event *event, struct buf *out)
{
	struct kinf_object object = {0};

	if (print->format == WATCH_JSON)
		return watch_print_json(event, out);
	if (print->format == WATCH_YAML)
		return watch_print_yaml(print, event, out);
	if (print->format >= WATCH_COLUMNS)
		return watch_print_chosen(print, event, out);
	/* kubectl has no row for the end of the initial state. */
	if (!event->object && (!print->types || strcmp(event->type, "SYNC") == 0))
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
	return object_table_row(
		&print->object_table, event->type, event->object ? &object : NULL, out);
}

int watch_print_settle(struct watch_print *print, struct buf *out)
{
	if (print->format == WATCH_COLUMNS)
		return table_settle(&print->chosen.table, out);
	return print->format <= WATCH_WIDE ? object_table_settle(&print->object_table, out) : 0;
}
