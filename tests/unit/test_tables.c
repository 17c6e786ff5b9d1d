/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of every kind, compared with an API server's Tables (tests/tables/record.py). */
#include <dirent.h>
#include <fcntl.h>

#include "common/value/json.h"
#include "print/table/age.h"
#include "print/table/printer.h"
#include "tests/unit/unit.h"

#define DATA "tests/tables/data"

/* One recorded Table. */
struct recording {
	char name[256];
	struct buf text, body;
	struct value root;
	struct printer *printer;
};

static struct bytes document_at(const struct value *in, const char *key)
{
	struct value value;
	struct bytes document = BYTES_NONE;

	if (value_find(in, bytes_str(key), &value) == FOUND && value.type != VALUE_NIL)
		cr_assert_eq(value_document(&value, &document), 0);
	return document;
}

static struct bytes text_at(const struct value *in, const char *key)
{
	struct value value = {.text = BYTES_NONE};

	(void)value_find(in, bytes_str(key), &value);
	return value.text;
}

static void recording_open(
	struct recording *recording, struct json_parser *parser, const char *name)
{
	char path[512];
	struct value value;

	*recording = (struct recording){.printer = NULL};
	(void)snprintf(recording->name, sizeof(recording->name), "%s", name);
	(void)snprintf(path, sizeof(path), DATA "/%s", name);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	OK(buf_read_file(&recording->text, fd, path));
	cr_assert_eq(json_parse(parser, buf_bytes(&recording->text), NULL, &recording->body), 0,
		"%s", name);
	cr_assert_eq(value_read(buf_bytes(&recording->body), &recording->root), 0);
	struct printer_kind kind = {
		.group = text_at(&recording->root, "group"),
		.resource = text_at(&recording->root, "resource"),
		.columns = document_at(&recording->root, "columns"),
	};
	cr_assert_eq(printer_new(&kind, &recording->printer), 0);
	cr_assert_eq(value_find(&recording->root, BYTES_LIT("now"), &value), FOUND);
	age_set_now(value.u.u);
}

static void recording_close(struct recording *recording)
{
	printer_free(&recording->printer);
	buf_release(&recording->text);
	buf_release(&recording->body);
}

static void compare_columns(struct recording *recording)
{
	struct value list, column, priority;
	struct value_iter iter;
	size_t n, i = 0;
	const struct printer_column *columns = printer_columns(recording->printer, &n);

	cr_assert_eq(value_find(&recording->root, BYTES_LIT("columnDefinitions"), &list), FOUND);
	value_iter_init(&iter, &list);
	for (; value_iter_next(&iter, NULL, &column) == FOUND; i++) {
		cr_assert_lt(i, n, "%s: too few columns", recording->name);
		const struct printer_column *ours = &columns[i];
		struct bytes name = text_at(&column, "name"), type = text_at(&column, "type"),
			     format = text_at(&column, "format");

		cr_expect(bytes_equal(name, bytes_str(ours->name)) &&
				  bytes_equal(type, bytes_str(ours->type)) &&
				  bytes_equal(format, bytes_str(ours->format)),
			"%s: column %.*s %.*s '%.*s', ours: %s %s '%s'", recording->name,
			BYTES_ARG(name), BYTES_ARG(type), BYTES_ARG(format), ours->name, ours->type,
			ours->format);
		cr_assert_eq(value_find(&column, BYTES_LIT("priority"), &priority), FOUND);
		cr_expect_eq((int32_t)priority.u.u, ours->priority, "%s: %s", recording->name,
			ours->name);
		/* The API server has no words for the handler of a runtimeclass and the versions
		 * of a leasecandidate. */
		cr_expect(ours->description.size || strcmp(ours->name, "Handler") == 0 ||
				  strncmp(recording->name, "leasecandidates.", 16) == 0 ||
				  document_at(&recording->root, "columns").size,
			"%s: column %s has no description", recording->name, ours->name);
	}
	cr_expect_eq(i, n, "%s: too many columns", recording->name);
}

/* Returns the number of cells. */
static size_t compare_rows(struct recording *recording)
{
	struct buf ours = BUF_INIT, theirs = BUF_INIT;
	const struct printer_cell *cells;
	struct value rows, row;
	struct value_iter iter;
	size_t n, n_cells = 0;

	cr_assert_eq(value_find(&recording->root, BYTES_LIT("rows"), &rows), FOUND);
	value_iter_init(&iter, &rows);
	while (value_iter_next(&iter, NULL, &row) == FOUND) {
		buf_reset(&ours);
		buf_reset(&theirs);
		cr_assert_eq(json_write(document_at(&row, "cells"), 0, &theirs), 0);
		int r = printer_row(recording->printer, document_at(&row, "object"), &cells, &n);
		cr_assert_eq(r, 0, "%s: %s", recording->name, err_text(r));
		printer_put_cells(cells, n, &ours);
		cr_expect_str_eq(buf_cstr(&ours), buf_cstr(&theirs),
			"%s:\n  theirs %s\n  ours   %s", recording->name, buf_cstr(&theirs),
			buf_cstr(&ours));
		n_cells += n;
	}
	buf_release(&ours);
	buf_release(&theirs);
	return n_cells;
}

Test(tables, every_cell_is_the_api_servers)
{
	struct json_parser *parser = NULL;
	DIR *directory = opendir(DATA);
	size_t kinds = 0, cells = 0;

	cr_assert(directory, DATA);
	cr_assert_eq(json_parser_new(&parser), 0);
	for (struct dirent *entry; (entry = readdir(directory));) {
		struct recording recording;

		if (!strstr(entry->d_name, ".json"))
			continue;
		recording_open(&recording, parser, entry->d_name);
		compare_columns(&recording);
		cells += compare_rows(&recording);
		recording_close(&recording);
		kinds++;
	}
	(void)closedir(directory);
	json_parser_free(&parser);
	cr_expect(kinds >= 70 && cells >= 2000, "%zu kinds, %zu cells", kinds, cells);
}
