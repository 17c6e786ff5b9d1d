/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig_member.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"

int kubeconfig_bad(const struct kubeconfig_entry *entry, const char *key, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_say(ERR_CONFIG, "'%s': %s '%s': %s: %s", entry->file->path, entry->kind,
		entry->name, key, text);
}

int kubeconfig_no_memory(const struct kubeconfig_entry *entry)
{
	return err_set(-ENOMEM, "'%s'", entry->file->path);
}

int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **ret_text)
{
	const struct yaml_node *node = yaml_get(entry->body, key);

	if (!node)
		return 0;
	if (node->type != YAML_SCALAR)
		return kubeconfig_bad(entry, key, "not a text");
	if (!*node->text)
		return 0;
	*ret_text = strdup(node->text);
	return *ret_text ? 0 : kubeconfig_no_memory(entry);
}

int kubeconfig_bool(const struct kubeconfig_entry *entry, const char *key, bool *ret_bool)
{
	const char *text = yaml_text(entry->body, key);

	if (!yaml_get(entry->body, key))
		return 0;
	if (!text || (strcmp(text, "true") && strcmp(text, "false")))
		return kubeconfig_bad(entry, key, "neither true nor false");
	*ret_bool = !strcmp(text, "true");
	return 0;
}

int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **ret_path)
{
	AUTO_FREE char *text = NULL;
	const char *slash = strrchr(entry->file->path, '/');
	int r = kubeconfig_text(entry, key, &text);

	if (r || !text)
		return r;
	if (*text == '/' || !slash) {
		*ret_path = TAKE(text);
		return 0;
	}
	if (asprintf(ret_path, "%.*s/%s", (int)(slash - entry->file->path), entry->file->path,
		    text) < 0) {
		*ret_path = NULL;
		return kubeconfig_no_memory(entry);
	}
	return 0;
}

int kubeconfig_one_line(const struct kubeconfig_entry *entry, const char *key, const char *text)
{
	for (; text && *text; text++)
		if (iscntrl((unsigned char)*text))
			return kubeconfig_bad(entry, key, "control characters in it");
	return 0;
}

int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, char ***ret_texts, size_t *ret_count)
{
	if (!list)
		return 0;
	if (list->type != YAML_LIST)
		return kubeconfig_bad(entry, key, "not a list");
	*ret_texts = calloc(list->count ? list->count : 1, sizeof(**ret_texts));
	if (!*ret_texts)
		return kubeconfig_no_memory(entry);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].type != YAML_SCALAR)
			return kubeconfig_bad(entry, key, "item %zu is not a text", i);
		(*ret_texts)[i] = strdup(list->items[i].text);
		if (!(*ret_texts)[i])
			return kubeconfig_no_memory(entry);
		(*ret_count)++;
	}
	return 0;
}
