/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment in kinf.yaml, for one file on all nodes:
 * spec.nodeName=${NODE_NAME}. */
#include "common/config/config_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

/* Appends the value of the variable at TEXT, after the "${". Sets *RET_SIZE to the bytes read. */
static int config_put_variable(
	const struct config_place *place, const char *text, struct buf *out, size_t *ret_size)
{
	size_t size = strspn(text, NAME_CHARACTERS);
	char name[CONFIG_NAME_MAX];

	if (!size || size >= sizeof(name) || text[size] != '}')
		return config_refuse(place,
			"'${' must be followed by the name of a variable of the environment "
			"and '}'; write '$${' for the characters themselves");
	memcpy(name, text, size);
	name[size] = '\0';
	const char *value = getenv(name);
	if (!value || !*value)
		return config_refuse(place,
			"the environment has no variable '%s'; set it for kinf and its daemons",
			name);
	buf_str(out, value);
	*ret_size = size + 1;
	return 0;
}

static int config_expand_text(const struct config_place *place, struct yaml_node *node)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	const char *p = node->text;
	size_t size;
	int r = 0;

	for (const char *at; r == 0 && (at = strstr(p, "${")); p = at + 2 + size) {
		bool literal = at > p && at[-1] == '$';

		size = 0;
		buf_put(&out, p, (size_t)(at - p) - literal);
		if (literal)
			buf_str(&out, "${");
		else
			r = config_put_variable(place, at + 2, &out, &size);
	}
	if (r < 0)
		return r;
	buf_str(&out, p);
	r = buf_error(&out);
	char *text = r == 0 ? strdup(buf_cstr(&out)) : NULL;
	if (!text)
		return r < 0 ? r : err_set(-ENOMEM, "reading a variable");
	free(node->text);
	node->text = text;
	return 0;
}

int config_expand(const struct config_place *outer, struct yaml_node *node)
{
	int r = 0;

	if (node->type == YAML_SCALAR)
		return node->text && strstr(node->text, "${") ? config_expand_text(outer, node) : 0;
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		struct config_place place =
			node->type == YAML_MAP
				? config_place_member(outer, node->keys[i], node->key_lines[i])
				: config_place_item(outer, i, node->items[i].line);

		r = config_expand(&place, &node->items[i]);
	}
	return r;
}
