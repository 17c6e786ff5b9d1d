/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/path.h"
#include "print/table/display.h"

#define COLUMNS_MAGIC 0x636f6c75u

struct columns {
	uint32_t magic;
	char *text; /* of the heads, each with its NUL */
	size_t n;
	const char *heads[COLUMNS_MAX];
	struct path *paths[COLUMNS_MAX];
	struct buf cells; /* of one row, each with its NUL */
};

/* Returns the comma after the column at P, or the end; commas in brackets and quotes belong to the
 * path. */
static char *columns_end(char *p)
{
	char quote = '\0';
	unsigned depth = 0;

	for (; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (quote)
			quote = *p == quote ? '\0' : quote;
		else if (depth && (*p == '\'' || *p == '"'))
			quote = *p;
		else if (*p == '[')
			depth++;
		else if (*p == ']' && depth)
			depth--;
		else if (*p == ',' && !depth)
			break;
	}
	return p;
}

static int columns_new(const char *text, struct columns **ret_columns)
{
	CLEANUP(columns_free) struct columns *columns = calloc(1, sizeof(*columns));

	if (columns) {
		columns->magic = COLUMNS_MAGIC;
		columns->text = strdup(text);
	}
	if (!columns || !columns->text)
		return err_set(-ENOMEM, "reading columns");
	*ret_columns = TAKE(columns);
	return 0;
}

/* Adds a column; HEAD stays in columns->text. */
static int columns_add(struct columns *columns, const char *head, const char *path)
{
	if (columns->n == COLUMNS_MAX)
		return err_say(ERR_SYNTAX, "at most %d columns", COLUMNS_MAX);
	columns->heads[columns->n] = head;
	int r = path_parse(path, &columns->paths[columns->n++]);
	return r < 0 ? err_add(r, "column '%s'", head) : 0;
}

int columns_parse(const char *text, struct columns **ret_columns)
{
	CLEANUP(columns_free) struct columns *columns = NULL;
	int r = columns_new(text, &columns);

	if (r < 0)
		return r;
	for (char *p = columns->text, *next = p; next; p = next) { /* HEAD:PATH, cut in place */
		char *end = columns_end(p), *colon;

		next = *end ? end + 1 : NULL;
		*end = '\0';
		colon = strchr(p, ':');
		if (!colon || !colon[1])
			return err_say(ERR_SYNTAX, "column '%s': write one as HEAD:PATH", p);
		*colon = '\0';
		r = columns_add(columns, p, colon + 1);
		if (r < 0)
			return r;
	}
	*ret_columns = TAKE(columns);
	return 0;
}

/* Cuts the next word off the line at *P. Returns NULL if there is none. */
static char *columns_word(char **p)
{
	static const char blanks[] = " \t\r";
	char *word = *p + strspn(*p, blanks), *end = word + strcspn(word, blanks);

	*p = *end ? end + 1 : end;
	*end = '\0';
	return *word ? word : NULL;
}

int columns_parse_file(const char *text, struct columns **ret_columns)
{
	CLEANUP(columns_free) struct columns *columns = NULL;
	int r = columns_new(text, &columns);

	if (r < 0)
		return r;
	char *heads = columns->text, *paths = strchr(heads, '\n'), *head = NULL, *path = NULL;
	if (paths) {
		*paths++ = '\0';
		paths[strcspn(paths, "\n")] = '\0';
	}
	while (paths && r == 0) {
		head = columns_word(&heads);
		path = columns_word(&paths);
		if (!head || !path)
			break;
		r = columns_add(columns, head, path);
	}
	if (r < 0)
		return r;
	if (!columns->n || head || path)
		return err_say(ERR_SYNTAX, "write a line of headings and below it a line with a "
					   "field path for each, with blanks between them");
	*ret_columns = TAKE(columns);
	return 0;
}

void columns_free(struct columns **columns)
{
	struct columns *c = TAKE(*columns);

	if (!c)
		return;
	CHECK_OBJ(c, COLUMNS_MAGIC);
	c->magic = 0;
	for (size_t i = 0; i < c->n; i++)
		path_free(&c->paths[i]);
	buf_release(&c->cells);
	free(c->text);
	free(c);
}

void columns_table(const struct columns *columns, struct table *ret_table)
{
	CHECK_OBJ(columns, COLUMNS_MAGIC);
	table_init(ret_table, columns->heads, columns->n);
}

struct columns_cell {
	struct buf *out;
	size_t found;
};

static int columns_put_value(void *arg, const struct value *value)
{
	struct columns_cell *cell = arg;

	if (cell->found++)
		buf_byte(cell->out, ',');
	return display_go(value, cell->out);
}

int columns_row(struct columns *columns, struct bytes body, struct table *table, struct buf *out)
{
	size_t at[COLUMNS_MAX];
	const char *shown[COLUMNS_MAX];

	CHECK_OBJ(columns, COLUMNS_MAGIC);
	buf_reset(&columns->cells);
	for (size_t i = 0; i < columns->n; i++) {
		struct columns_cell cell = {&columns->cells, 0};

		at[i] = columns->cells.size;
		int r = path_eval(columns->paths[i], body, columns_put_value, &cell);
		if (r < 0)
			return r;
		if (!cell.found)
			buf_str(&columns->cells, "<none>");
		buf_byte(&columns->cells, '\0');
	}
	if (buf_error(&columns->cells) < 0)
		return buf_error(&columns->cells);
	for (size_t i = 0; i < columns->n; i++)
		shown[i] = (const char *)columns->cells.data + at[i];
	return table_row(table, shown, out);
}
