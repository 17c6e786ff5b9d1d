/* SPDX-License-Identifier: Apache-2.0 */
/* Templates with field paths, and the forms of fields in them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/proc.h"
#include "common/text/timestamp.h"
#include "common/value/selector.h"
#include "print/redact.h"
#include "print/table/printer_internal.h"

#define ANNOTATION_MAX 140

/* ---- forms of a field --------------------------------------------------- */

/* A moment as kubectl prints it: in the local time zone. */
static void form_time(struct printer_row *row, const struct value *in, const char *path)
{
	char text[64] = "Mon, 01 Jan 0001 00:00:00 +0000";
	struct tm parts;
	int64_t ns;

	if (timestamp_parse(printer_text(row, in, path), &ns)) {
		time_t seconds = (time_t)(ns / 1000000000);

		if (localtime_r(&seconds, &parts))
			(void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S %z", &parts);
	}
	buf_str(row->text, text);
}

static void form_since(struct printer_row *row, const struct value *in, const char *path)
{
	printer_put_since(row, in, path, "<unknown>");
}

/* "in 5m" or "5m ago" */
static void form_until(struct printer_row *row, const struct value *in, const char *path)
{
	char age[AGE_SIZE];
	int64_t ns;

	if (!timestamp_parse(printer_text(row, in, path), &ns)) {
		buf_str(row->text, "<unknown>");
	} else if (ns > (int64_t)row->now_ns) {
		age_from_seconds((uint64_t)(ns - (int64_t)row->now_ns) / SECOND_NS, age);
		buf_printf(row->text, "in %s", age);
	} else {
		printer_put_since(row, in, path, "<unknown>");
		buf_str(row->text, " ago");
	}
}

/* A map as KEY=VALUE, one a line: the following ones begin with a tab. */
static void form_labels(struct printer_row *row, const struct value *in, const char *path)
{
	struct printer_list all;

	printer_list_at(row, in, path, NULL, &all);
	for (size_t i = 0; i < all.n; i++)
		buf_printf(row->text, "%s%.*s=%.*s", i ? "\n\t" : "", BYTES_ARG(all.items[i].key),
			BYTES_ARG(all.items[i].value.text));
	buf_str(row->text, all.n ? "" : "<none>");
	printer_list_release(&all);
}

void printer_put_lines(struct printer_row *row, struct bytes text, const char *before,
	const char *after, size_t max)
{
	const char *next = text.data, *end = next + text.size;

	do {
		const char *stop = next < end ? memchr(next, '\n', (size_t)(end - next)) : NULL;
		size_t size = (size_t)((stop ? stop : end) - next);

		buf_str(row->text, before);
		buf_put(row->text, next, size > max ? max : size);
		buf_str(row->text, size > max ? "..." : "");
		buf_str(row->text, after);
		next += size + 1;
	} while (next <= end);
}

/* As labels; a long value, or one of several lines, stands below its key. Without what kubectl
 * apply keeps. */
static void form_annotations(struct printer_row *row, const struct value *in, const char *path)
{
	struct printer_list all;
	size_t n = 0;

	printer_list_at(row, in, path, NULL, &all);
	for (size_t i = 0; i < all.n; i++) {
		struct bytes key = all.items[i].key, value = all.items[i].value.text;

		if (bytes_equal(key, BYTES_LIT(REDACT_LAST_APPLIED)))
			continue;
		if (value.size && ((const char *)value.data)[value.size - 1] == '\n')
			value.size--;
		buf_printf(row->text, "%s%.*s:", n++ ? "\n\t" : "", BYTES_ARG(key));
		if (value.size + key.size + 2 > ANNOTATION_MAX ||
			(value.size && memchr(value.data, '\n', value.size)))
			printer_put_lines(row, value, "\n\t  ", "", ANNOTATION_MAX - 2);
		else
			printer_put_lines(row, value, " ", "", ANNOTATION_MAX);
	}
	buf_str(row->text, n ? "" : "<none>");
	printer_list_release(&all);
}

static void form_boolean(struct printer_row *row, const struct value *in, const char *path)
{
	buf_str(row->text, printer_is(row, in, path, "true") ? "True" : "False");
}

static void form_access(struct printer_row *row, const struct value *in, const char *path)
{
	buf_str(row->text, printer_is(row, in, path, "true") ? "ro" : "rw");
}

static void form_lower(struct printer_row *row, const struct value *in, const char *path)
{
	struct bytes text = printer_text(row, in, path);

	for (size_t i = 0; i < text.size; i++)
		buf_byte(row->text, (uint8_t)tolower(((const unsigned char *)text.data)[i]));
}

/* The text without the blanks around it. */
static void form_trim(struct printer_row *row, const struct value *in, const char *path)
{
	struct bytes text = printer_text(row, in, path);
	const char *p = text.data, *end = p + text.size;

	while (p < end && isspace((unsigned char)*p))
		p++;
	while (end > p && isspace((unsigned char)end[-1]))
		end--;
	buf_put(row->text, p, (size_t)(end - p));
}

/* As a value of a field selector. */
static void form_value(struct printer_row *row, const struct value *in, const char *path)
{
	selector_put_field_value(printer_text(row, in, path), row->text);
}

static const struct form {
	const char *name;
	void (*put)(struct printer_row *row, const struct value *in, const char *path);
	bool always; /* it has a text for an absent field */
	/* without PUT: around and between the texts of a list; NULL: no text */
	const char *before, *between, *after;
} forms[] = {
	{"if", NULL, false},
	{"time", form_time, true},
	{"since", form_since, false},
	{"until", form_until, false},
	{"labels", form_labels, true},
	{"annotations", form_annotations, true},
	{"selector", printer_put_selector, true},
	{"map", printer_put_labels, true},
	{"bool", form_boolean, true},
	{"access", form_access, true},
	{"lower", form_lower, false},
	{"trim", form_trim, false},
	{"value", form_value, false},
	{"roles", printer_put_roles, true},
	{"modes", printer_put_access_modes, false},
	{"balancer", printer_put_balancer, false},
	{"comma", NULL, false, "", ",", ""},
	{"commas", NULL, false, "", ", ", ""},
	{"brackets", NULL, false, "[", ", ", "]"},
	{"go", NULL, true, "[", " ", "]"},
};

static void form_put(
	struct printer_row *row, const struct value *in, const char *path, const struct form *form)
{
	if (form->put) {
		form->put(row, in, path);
		return;
	}
	if (!form->before)
		return;
	buf_str(row->text, form->before);
	printer_put_each(row, in, path, "{@}", form->between);
	buf_str(row->text, form->after);
}

/* ---- templates ---------------------------------------------------------- */

/* Appends the field at FIELD, the text after a brace. */
static void words_put_field(struct printer_row *row, const struct value *in, const char *field)
{
	const char *form = field + strcspn(field, ":|}");
	const char *none = form + strcspn(form, "|}");
	struct bytes name = BYTES(form + 1, (size_t)(none - form - (*form == ':')));
	struct bytes text = BYTES(none + 1, *none == '|' ? strcspn(none + 1, "}") : 0);
	bool empty = printer_is_empty(row, in, field);

	for (size_t i = 0; *form == ':' && i < ARRAY_SIZE(forms); i++) {
		if (!bytes_equal(name, bytes_str(forms[i].name)))
			continue;
		if (empty && *none == '|')
			buf_bytes_put(row->text, text);
		else if (!empty || forms[i].always)
			form_put(row, in, field, &forms[i]);
		return;
	}
	struct bytes found = printer_text(row, in, field);
	buf_bytes_put(row->text, found.size ? found : text);
}

/* Returns the first one of STOPS outside of fields and parts, from P on; else END. */
static const char *words_find(const char *p, const char *end, const char *stops)
{
	for (; p < end && !strchr(stops, *p); p++)
		if (*p == '{')
			p = memchr(p, '}', (size_t)(end - p));
		else if (*p == '[')
			p = words_find(p + 1, end, "]");
	return p;
}

/* Returns whether the first field from P on is not empty, or there is none. */
static bool words_has_field(
	struct printer_row *row, const struct value *in, const char *p, const char *end)
{
	const char *field = memchr(p, '{', (size_t)(end - p));

	return !field || !printer_is_empty(row, in, field + 1);
}

static void words_put(
	struct printer_row *row, const struct value *in, const char *p, const char *end)
{
	while (p < end) {
		const char *next = words_find(p, end, "{["), *stop;

		buf_put(row->text, p, (size_t)(next - p));
		if (next == end)
			return;
		p = next + 1;
		if (*next == '{') {
			stop = memchr(p, '}', (size_t)(end - p));
			words_put_field(row, in, p);
		} else {
			stop = words_find(p, end, "]");
			while (p < stop && !words_has_field(row, in, p, words_find(p, stop, "|")))
				p = words_find(p, stop, "|") + 1;
			if (p < stop)
				words_put(row, in, p, words_find(p, stop, "|"));
		}
		p = stop + 1;
	}
}

void printer_put_words(struct printer_row *row, const struct value *in, const char *template)
{
	words_put(row, in, template, template + strlen(template));
}

bool printer_put_some(struct printer_row *row, const struct value *in, const char *template)
{
	bool has = words_has_field(row, in, template, template + strlen(template));

	if (has)
		printer_put_words(row, in, template);
	return has;
}

size_t printer_put_each(struct printer_row *row, const struct value *in, const char *path,
	const char *template, const char *between)
{
	struct value_iter iter = printer_items(row, in, path);
	struct value item;
	size_t n = 0;

	for (; printer_next(row, &iter, &item); n++) {
		buf_str(row->text, n ? between : "");
		printer_put_words(row, &item, template);
	}
	return n;
}
