/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/import_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/value/yaml_values.h"
#include "reflector/import/bolt.h"
#include "reflector/net/scan.h"
#include "reflector/record/object.h"

#define PIECE ((size_t)64 << 10)

/* A file whose first bytes are read already. */
struct file_input {
	struct import *import;
	const struct source_file *file;
	size_t size, given;
	uint8_t piece[PIECE];
};

static int file_read(void *arg, void *room, size_t size, size_t *ret_size)
{
	struct file_input *input = arg;
	size_t left = input->size - input->given;

	if (!left)
		return input->file->read(input->file->arg, room, size, ret_size);
	*ret_size = left < size ? left : size;
	memcpy(room, input->piece + input->given, *ret_size);
	input->given += *ret_size;
	return 0;
}

/* ---- JSON --------------------------------------------------------------- */

int import_take_item(void *arg, struct bytes item, bool cut)
{
	struct import *import = arg;
	struct bytes kind, version;
	struct object_identity identity;
	struct err_kept why;
	char name[JOURNAL_KEY_MAX + 1] = "";
	int r = cut ? err_say(ERR_TOO_LARGE, "it is larger than %u MiB", LIST_ITEM_MAX >> 20) : 0;

	buf_reset(&import->body);
	if (r == 0)
		r = json_parse(import->parser, item, NULL, &import->body);
	if (r == 0) {
		list_find_kind(import->list, &kind, &version);
		return import_object(import, buf_bytes(&import->body), kind, version);
	}
	if (!import_is_bad_input(r))
		return r;
	err_keep(&why);
	if (object_identity(item, cut, &identity) == 0)
		(void)snprintf(name, sizeof(name), "%.*s%s%.*s", BYTES_ARG(identity.name_space),
			identity.name_space.size ? "/" : "", BYTES_ARG(identity.name));
	err_restore(&why);
	import->objects++;
	import_skip(import, import->file->name, 0, name, r);
	return 0;
}

static int file_read_json(struct import *import, struct file_input *input)
{
	struct list_page page;
	int r = 0;

	list_reset(import->list);
	import->lines = 0;
	while (r == 0 && input->size) {
		r = list_feed(import->list, input->piece, input->size);
		size_t used = r < 0 ? list_offset(import->list) : input->size;
		const uint8_t *p = input->piece, *end = p + used;
		while ((p = memchr(p, '\n', (size_t)(end - p)))) {
			import->lines++;
			p++;
		}
		if (r == 0)
			r = input->file->read(input->file->arg, input->piece, PIECE, &input->size);
	}
	import->line = import->lines + 1;
	return r < 0 ? r : list_end(import->list, &page);
}

/* ---- YAML --------------------------------------------------------------- */

static int file_take_value(void *arg, const struct yaml_value *value)
{
	struct file_input *input = arg;
	struct import *import = input->import;

	import->line = value->line;
	if (value->error == 0)
		return import_object(import, value->body, value->kind, value->api_version);
	if (!import_is_bad_input(value->error))
		return value->error;
	import->objects++;
	import_skip(import, import->file->name, value->line, "", value->error);
	return 0;
}

/* Returns true for an array of something else than objects, as of errors in a support bundle. */
static bool file_is_other_array(const uint8_t *text, size_t size)
{
	size_t at = 1;

	if (!size || *text != '[')
		return false;
	while (at < size && scan_is_space(text[at]))
		at++;
	return at < size && text[at] != '{' && text[at] != ']';
}

/* ---- import_internal.h -------------------------------------------------- */

int import_file(void *arg, const struct source_file *file)
{
	struct import *import = arg;
	static struct file_input input; /* the process reads one file at a time */
	const struct yaml_values_options yaml = {.read = file_read,
		.value = file_take_value,
		.arg = &input,
		.value_max = LIST_ITEM_MAX};
	size_t n = 1, at = 0;
	int r = 0;

	input = (struct file_input){.import = import, .file = file};
	import->file = file;
	import->line = 0;
	while (r == 0 && n && input.size < PIECE) {
		r = file->read(file->arg, input.piece + input.size, PIECE - input.size, &n);
		input.size += r == 0 ? n : 0;
	}
	while (at < input.size && scan_is_space(input.piece[at]))
		at++;
	if (r == 0 && *file->path && file_is_other_array(input.piece + at, input.size - at))
		return 0;
	bool etcd = r == 0 && bolt_is_known(input.piece, input.size);
	bool json = at < input.size && (input.piece[at] == '{' || input.piece[at] == '[');
	if (etcd)
		r = import_etcd(import, file);
	else if (r == 0 && at < input.size)
		r = json ? file_read_json(import, &input) : yaml_values(&yaml, &import->line);
	if (import_is_bad_input(r)) {
		import_skip(import, file->name, import->line, "", r);
		return 0;
	}
	return r;
}
