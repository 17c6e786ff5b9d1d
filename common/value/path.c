/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path group: path.h is the interface; path.c keeps and writes paths, path_parse.c parses them,
 * path_eval.c follows them, path_set.c follows several in one document.
 */
#include "common/value/path.h"

#include <ctype.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/text.h"
#include "common/value/path_internal.h"

bool path_is_plain_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '/' || c == '$' ||
	       c == '@' || c == ':' || (unsigned char)c >= 0x80;
}

const char *const path_operators[PATH_OPERATOR_MAX] = {
	[PATH_EXISTS] = "",
	[PATH_EQUAL] = "==",
	[PATH_NOT_EQUAL] = "!=",
	[PATH_LESS] = "<",
	[PATH_LESS_EQUAL] = "<=",
	[PATH_GREATER] = ">",
	[PATH_GREATER_EQUAL] = ">=",
};

/* ---- canonical text ----------------------------------------------------- */

struct bytes path_step_key(const struct path *path, const struct path_step *step)
{
	return BYTES(path->keys.data + step->key_at, step->key_size);
}

static void path_put_key(struct buf *text, struct bytes key, bool is_first)
{
	const char *p = key.data;
	bool plain = key.size > 0;

	for (size_t k = 0; k < key.size; k++)
		plain &= path_is_plain_char(p[k]);
	if (plain && is_first && key.size == 1 && (*p == '$' || *p == '@'))
		plain = false;
	if (plain) {
		buf_str(text, is_first ? "" : ".");
		buf_bytes_put(text, key);
		return;
	}
	buf_str(text, "['");
	buf_escape(text, key, "'\\");
	buf_str(text, "']");
}

static void path_put_operand(const struct path_operand *operand, struct buf *text)
{
	char scratch[VALUE_SCRATCH];
	struct value value;
	struct bytes plain;

	if (operand->path) {
		buf_byte(text, '@');
		path_put_steps(operand->path, text, false);
		return;
	}
	if (value_read(buf_bytes(&operand->constant), &value) < 0 ||
		value_scalar_text(&value, scratch, &plain) != FOUND)
		return; /* without memory */
	if (value.type == VALUE_STRING)
		text_put_quoted(plain, text);
	else
		buf_bytes_put(text, plain);
}

static void path_put_more(const struct path_step *step, struct buf *text)
{
	const struct path_filter *filter = step->more.filter;
	const struct path_union *union_ = step->more.union_;

	if (step->type == STEP_FILTER) {
		buf_str(text, "[?(");
		path_put_operand(&filter->left, text);
		buf_str(text, path_operators[filter->operator]);
		if (filter->operator)
			path_put_operand(&filter->right, text);
		buf_str(text, ")]");
		return;
	}
	buf_byte(text, '[');
	for (size_t i = 0; i < union_->n; i++) {
		buf_str(text, i ? "," : "");
		buf_str(text, union_->members[i].text);
	}
	buf_byte(text, ']');
}

void path_put_steps(const struct path *path, struct buf *text, bool is_first)
{
	bool after_descent = false;

	for (size_t i = 0; i < path->count; i++, is_first = false) {
		const struct path_step *step = &path->steps[i];

		if (step->type == STEP_INDEX) {
			buf_printf(text, "[%lld]", (long long)step->from);
		} else if (step->type == STEP_ALL) {
			buf_str(text, "[*]");
		} else if (step->type == STEP_RECURSIVE) {
			buf_str(text, "..");
		} else if (step->type == STEP_KEY) {
			path_put_key(text, path_step_key(path, step), is_first || after_descent);
		} else if (step->type == STEP_SLICE) {
			buf_byte(text, '[');
			if (step->has_from)
				buf_printf(text, "%lld", (long long)step->from);
			buf_byte(text, ':');
			if (step->to != INT64_MAX)
				buf_printf(text, "%lld", (long long)step->to);
			if (step->by != 1)
				buf_printf(text, ":%lld", (long long)step->by);
			buf_byte(text, ']');
		} else {
			path_put_more(step, text);
		}
		after_descent = step->type == STEP_RECURSIVE;
	}
}

/* ---- public ------------------------------------------------------------- */

void path_free(struct path **path)
{
	struct path *p = TAKE(*path);

	if (!p)
		return;
	CHECK_OBJ(p, PATH_MAGIC);
	for (size_t i = 0; i < p->count; i++) {
		struct path_union *union_ = p->steps[i].more.union_;

		if (p->steps[i].type == STEP_FILTER) {
			struct path_filter *filter = p->steps[i].more.filter;

			path_free(&filter->left.path);
			path_free(&filter->right.path);
			buf_release(&filter->left.constant);
			buf_release(&filter->right.constant);
			free(filter);
		}
		if (p->steps[i].type != STEP_UNION)
			continue;
		for (size_t k = 0; k < union_->n; k++) {
			path_free(&union_->members[k].path);
			path_free(&union_->members[k].otherwise);
			free(union_->members[k].text);
		}
		free(union_->members);
		free(union_);
	}
	buf_release(&p->keys);
	buf_release(&p->text);
	p->magic = 0;
	free(p);
}

void path_use_arrays_only(struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	path->arrays_only = true;
}

const char *path_text(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return (const char *)path->text.data;
}

bool path_is_plural(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return path->is_plural;
}

bool path_is_narrow(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	for (size_t i = 0; i < path->count; i++) {
		const struct path_step *step = &path->steps[i];
		const struct path_filter *filter = step->more.filter;

		if (step->type != STEP_KEY && step->type != STEP_INDEX &&
			!(step->type == STEP_FILTER && filter->operator== PATH_EQUAL &&
						       filter->left.path && !filter->right.path))
			return false;
	}
	return true;
}

bool path_has_union(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	for (size_t i = 0; i < path->count; i++)
		if (path->steps[i].type == STEP_UNION)
			return true;
	return false;
}

bool path_is_plain(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return path->count && path->n_keys == path->count;
}

bool path_is_kept(const struct path *path, bool metadata_only, const char *dropped)
{
	const char *text = path_text(path);
	struct bytes first, whole = bytes_str(text);
	bool kept = !metadata_only || path_keys(path, 0, &first) == 0 ||
		    bytes_equal(first, BYTES_LIT("metadata")) ||
		    bytes_equal(first, BYTES_LIT("kind")) ||
		    bytes_equal(first, BYTES_LIT("apiVersion"));

	while (kept && *dropped) {
		size_t size = strcspn(dropped, "\n");

		/* Does the path lead to or into the subtree? */
		kept = !bytes_starts(whole, BYTES(dropped, size)) ||
		       (whole.size > size && text[size] != '.' && text[size] != '[');
		dropped += size + (dropped[size] == '\n');
	}
	return kept;
}

size_t path_keys(const struct path *path, size_t i, struct bytes *ret_key)
{
	CHECK_OBJ(path, PATH_MAGIC);
	if (i < path->n_keys && ret_key)
		*ret_key = path_step_key(path, &path->steps[i]);
	return path->n_keys;
}
