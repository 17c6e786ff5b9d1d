/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/printer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "print/table/age.h"

/* ---- reading an object -------------------------------------------------- */

void printer_note(struct printer_row *row, int r)
{
	if (r < 0 && !row->error)
		row->error = r;
}

static bool printer_member(
	struct printer_row *row, const struct value *map, struct bytes key, struct value *ret_value)
{
	int r = value_find(map, key, ret_value);

	printer_note(row, r);
	return r == FOUND;
}

/* Returns the text at P up to one of END, or the key of the row if that is "@key". */
static struct bytes printer_name(const struct printer_row *row, const char *p, const char *end)
{
	return strncmp(p, "@key]", 5) ? BYTES(p, strcspn(p, end)) : row->key;
}

/* Returns whether the member of MAP that is named before "=" in TEST is the text after it. */
static bool printer_passes(struct printer_row *row, const struct value *map, const char *test)
{
	const char *wanted = strchr(test, '=') + 1;
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	struct value member;

	return printer_member(row, map, printer_name(row, test, "="), &member) &&
	       value_scalar_text(&member, scratch, &text) == FOUND &&
	       bytes_equal(text, printer_name(row, wanted, "]"));
}

/* Takes the step TEST, the text after a bracket, from the list or map HERE. */
static bool printer_choose(struct printer_row *row, const struct value *here, const char *test,
	struct value *ret_value)
{
	size_t key = strcspn(test, "=]");
	struct value_iter iter = {0};

	if (here->type == VALUE_MAP && test[key] == ']')
		return printer_member(row, here, printer_name(row, test, "]"), ret_value);
	if (here->type == VALUE_MAP) {
		*ret_value = *here;
		return printer_passes(row, here, test);
	}
	if (here->type == VALUE_ARRAY)
		value_iter_init(&iter, here);
	for (int left = *test - '0'; printer_next(row, &iter, ret_value); left--)
		if (test[key] == ']' ? !left : printer_passes(row, ret_value, test))
			return true;
	return false;
}

static bool printer_search(
	struct printer_row *row, const struct value *in, const char *path, struct value *ret_value)
{
	struct value here = *in, next;

	while (*path && !strchr(":|}", *path)) {
		bool is_test = *path == '[';
		size_t size = strcspn(path, is_test ? "]" : ".[:|}") + is_test;

		if (!(is_test ? printer_choose(row, &here, path + 1, &next)
			      : printer_member(row, &here, BYTES(path, size), &next)))
			return false;
		here = next;
		path += size + (path[size] == '.');
	}
	*ret_value = here;
	return here.type != VALUE_NIL;
}

/* Returns what the walk over the object has learned of PATH. NULL: the walk did not know it, later
 * ones do. */
static const struct printer_learned *printer_field(struct printer_fields *fields, const char *path)
{
	size_t at = (uintptr_t)path * UINT64_C(0x9e3779b97f4a7c15) >>
		    57; /* paths are in literals, each at its address */
	struct printer_learned *learned;

	_Static_assert(PRINTER_FIELDS == 128, "seven bits");
	for (; (learned = &fields->learned[at])->path; at = (at + 1) % PRINTER_FIELDS)
		if (learned->path == path)
			return learned->number < fields->n_walked ? learned : NULL;
	if (fields->n == PRINTER_FIELDS / 2)
		return NULL;
	if (path_set_add_keys(&fields->set, path, &learned->number) < 0) {
		err_forget(); /* no memory: it is searched for */
		return NULL;
	}
	learned->path = path;
	learned->rest = path + strcspn(path, "[:|}");
	fields->n++;
	return NULL;
}

bool printer_find(
	struct printer_row *row, const struct value *in, const char *path, struct value *ret_value)
{
	const struct printer_learned *learned = NULL;

	if (*path == '@') {
		*ret_value = *in;
		return in->type != VALUE_NIL;
	}
	if (*path == '$')
		return row->second && printer_search(row, row->second, path + 1, ret_value);
	if (in == &row->object && row->fields)
		learned = printer_field(row->fields, path);
	if (!learned)
		return printer_search(row, in, path, ret_value);
	in = path_set_value(&row->fields->set, learned->number);
	return in && printer_search(row, in, learned->rest, ret_value);
}

struct bytes printer_text(struct printer_row *row, const struct value *in, const char *path)
{
	char *scratch = row->scratch[row->numbers++ % 4];
	struct bytes text;
	struct value value;

	if (strncmp(path, "@key", 4) == 0)
		return row->key;
	if (!printer_find(row, in, path, &value) ||
		value_scalar_text(&value, scratch, &text) != FOUND)
		return BYTES_LIT("");
	return text;
}

int64_t printer_integer(struct printer_row *row, const struct value *in, const char *path)
{
	struct value value;

	if (!printer_find(row, in, path, &value))
		return 0;
	return value.type == VALUE_UINT  ? (int64_t)value.u.u
	       : value.type == VALUE_INT ? value.u.i
					 : 0;
}

bool printer_is(struct printer_row *row, const struct value *in, const char *path, const char *text)
{
	return bytes_equal(printer_text(row, in, path), bytes_str(text));
}

bool printer_is_true(struct printer_row *row, const struct value *in, const char *path)
{
	struct value value;

	return printer_find(row, in, path, &value) && value.type == VALUE_BOOL && value.u.b;
}

struct value_iter printer_items(struct printer_row *row, const struct value *in, const char *path)
{
	struct value_iter iter = {0};
	struct value list;

	if (printer_find(row, in, path, &list))
		value_iter_init(&iter, &list);
	return iter;
}

bool printer_next(struct printer_row *row, struct value_iter *iter, struct value *ret_item)
{
	int r = iter->left ? value_iter_next(iter, NULL, ret_item) : END;

	printer_note(row, r);
	return r == FOUND;
}

bool printer_is_empty(struct printer_row *row, const struct value *in, const char *path)
{
	struct value value;

	if (strncmp(path, "@key", 4) == 0)
		return !row->key.size;
	if (!printer_find(row, in, path, &value))
		return true;
	if (value.type == VALUE_MAP || value.type == VALUE_ARRAY)
		return value.count == 0;
	return value.type == VALUE_STRING && value.text.size == 0;
}

/* The order of keys; items of one key keep theirs. */
static int printer_compare_items(const void *a, const void *b)
{
	const struct printer_item *x = a, *y = b;
	int r = bytes_compare(x->key, y->key);

	return r ? r : (x->value.start > y->value.start) - (x->value.start < y->value.start);
}

void printer_list_at(struct printer_row *row, const struct value *in, const char *path,
	const char *order, struct printer_list *ret_list)
{
	struct printer_item item;
	struct value value;
	struct value_iter iter;
	int r;

	*ret_list = (struct printer_list){.n = 0};
	if (!printer_find(row, in, path, &value) ||
		(value.type != VALUE_MAP && value.type != VALUE_ARRAY))
		return;
	value_iter_init(&iter, &value);
	while ((r = value_iter_next(&iter, &item.key, &item.value)) == FOUND) {
		if (value.type == VALUE_ARRAY)
			item.key = order ? printer_text(row, &item.value, order) : BYTES_NONE;
		r = ARRAY_ADD(
			ret_list->items, ret_list->n, ret_list->room, item, "the items of a list");
		if (r < 0)
			break;
	}
	printer_note(row, r);
	if (ret_list->n && (order || value.type == VALUE_MAP))
		qsort(ret_list->items, ret_list->n, sizeof(*ret_list->items),
			printer_compare_items);
}

void printer_list_release(struct printer_list *list)
{
	free(list->items);
	*list = (struct printer_list){.n = 0};
}

/* ---- writing a cell ----------------------------------------------------- */

enum printer_cell_type printer_put(struct printer_row *row, const char *text)
{
	buf_str(row->text, text);
	return PRINTER_STRING;
}

enum printer_cell_type printer_put_bytes(struct printer_row *row, struct bytes text)
{
	buf_bytes_put(row->text, text);
	return PRINTER_STRING;
}

void printer_put_since(
	struct printer_row *row, const struct value *in, const char *path, const char *none)
{
	struct bytes time = printer_text(row, in, path);
	char age[AGE_SIZE];

	age_between(time, row->now_ns, none, age);
	buf_str(row->text, time.size ? age : none);
}

void printer_put_more(struct printer_row *row, size_t start, struct bytes text)
{
	if (row->text->size > start)
		buf_byte(row->text, ',');
	buf_bytes_put(row->text, text);
}

void printer_put_sorted(struct printer_row *row, struct bytes *texts, size_t n)
{
	size_t start = row->text->size;

	qsort(texts, n, sizeof(*texts), array_by_bytes);
	for (size_t i = 0; i < n; i++)
		if (!i || !bytes_equal(texts[i], texts[i - 1]))
			printer_put_more(row, start, texts[i]);
}

enum printer_cell_type printer_put_rest(
	struct printer_row *row, size_t start, size_t n, const char *none)
{
	if (n > PRINTER_SHOWN)
		buf_printf(row->text, " + %zu more...", n - PRINTER_SHOWN);
	return printer_put(row, row->text->size == start ? none : "");
}

/* Returns character I of "KEY=VALUE", -1 after the end. */
static int printer_label_at(const struct printer_item *label, size_t i)
{
	const uint8_t *key = label->key.data, *value = label->value.text.data;

	if (i < label->key.size)
		return key[i];
	i -= label->key.size;
	return i == 0 ? '=' : i <= label->value.text.size ? value[i - 1] : -1;
}

/* The order of the finished texts, not of the keys, as labels.FormatLabels of apimachinery:
 * a-b=1 stands before a=1. */
static int printer_compare_labels(const void *a, const void *b)
{
	size_t i = 0;
	int x;

	while ((x = printer_label_at(a, i)) == printer_label_at(b, i) && x >= 0)
		i++;
	return x - printer_label_at(b, i);
}

/* Appends a matchExpression: "KEY in (a,b)". */
static void printer_put_expression(struct printer_row *row, const struct printer_item *item)
{
	struct bytes op = printer_text(row, &item->value, "operator");
	bool in = bytes_equal(op, BYTES_LIT("In"));
	struct printer_list values;

	if (bytes_equal(op, BYTES_LIT("DoesNotExist")))
		buf_byte(row->text, '!');
	buf_bytes_put(row->text, item->key);
	if (!in && !bytes_equal(op, BYTES_LIT("NotIn")))
		return;
	printer_list_at(row, &item->value, "values", "@", &values);
	buf_str(row->text, in ? " in (" : " notin (");
	for (size_t i = 0; i < values.n; i++)
		buf_printf(row->text, "%s%.*s", i ? "," : "", BYTES_ARG(values.items[i].key));
	buf_byte(row->text, ')');
	printer_list_release(&values);
}

/* Appends the labels and matchExpressions of ALL, and releases it. */
static void printer_put_requirements(struct printer_row *row, struct printer_list *all,
	int (*compare)(const void *, const void *))
{
	if (all->n)
		qsort(all->items, all->n, sizeof(*all->items), compare);
	for (size_t i = 0; i < all->n; i++) {
		const struct printer_item *item = &all->items[i];

		buf_str(row->text, i ? "," : "");
		if (item->value.type == VALUE_MAP)
			printer_put_expression(row, item);
		else
			buf_printf(row->text, "%.*s=%.*s", BYTES_ARG(item->key),
				BYTES_ARG(item->value.text));
	}
	buf_str(row->text, all->n ? "" : "<none>");
	printer_list_release(all);
}

void printer_put_labels(struct printer_row *row, const struct value *in, const char *path)
{
	struct printer_list all;

	printer_list_at(row, in, path, NULL, &all);
	printer_put_requirements(row, &all, printer_compare_labels);
}

int printer_put_labels_of(struct bytes body, struct buf *out)
{
	struct printer_row row = {.text = out};
	int r = value_read(body, &row.object);

	if (r < 0)
		return r;
	printer_put_labels(&row, &row.object, "metadata.labels");
	return row.error < 0 ? row.error : buf_error(out);
}

void printer_put_selector(struct printer_row *row, const struct value *in, const char *path)
{
	struct printer_list all = {.n = 0};
	struct printer_item item;
	struct value selector;
	struct value_iter iter = {0};

	if (printer_find(row, in, path, &selector)) {
		printer_list_at(row, &selector, "matchLabels", NULL, &all);
		iter = printer_items(row, &selector, "matchExpressions");
	}
	while (printer_next(row, &iter, &item.value)) {
		item.key = printer_text(row, &item.value, "key");
		printer_note(row, ARRAY_ADD(all.items, all.n, all.room, item,
					  "the requirements of a selector"));
	}
	/* As metav1.FormatLabelSelector. */
	printer_put_requirements(row, &all, printer_compare_items);
}
