/* SPDX-License-Identifier: Apache-2.0 */
/* Places, and readers of single values. */
#include "common/config/config_build.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/decimal.h"
#include "common/err.h"

/* ---- places --------------------------------------------------------------------------------------- */

struct place place_member(const struct place *outer, const char *key, size_t line)
{
	struct place place = {.file = outer->file, .line = line};

	(void)snprintf(place.key, sizeof(place.key), "%.150s%s%.100s", outer->key,
		*outer->key ? "." : "", key);
	return place;
}

struct place place_item(const struct place *outer, size_t i, size_t line)
{
	struct place place = {.file = outer->file, .line = line};

	(void)snprintf(place.key, sizeof(place.key), "%.200s[%zu]", outer->key, i);
	return place;
}

int place_bad(const struct place *place, const char *format, ...)
{
	char text[800];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!place->file)
		return err_say(ERR_CONFIG, "%s: %s", place->key, text);
	return err_say(ERR_CONFIG, "%s:%zu: %s%s%s", place->file, place->line, place->key,
		*place->key ? ": " : "", text);
}

int place_refuse(const struct place *place, int code)
{
	if (code > -1000)
		return code;
	return place_bad(place, "%s", err_text(code));
}

/* ---- maps ----------------------------------------------------------------------------------------- */

static const struct config_key *find_key(const struct config_key *keys, const char *name)
{
	for (; keys->name; keys++) {
		if (strcmp(keys->name, name) == 0)
			return keys;
	}
	return NULL;
}

static int unknown_key(const struct place *place, const struct config_key *keys)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;

	for (; keys->name; keys++)
		buf_printf(&names, "%s%s", names.size ? ", " : "", keys->name);
	return place_bad(place, "unknown key; allowed here: %s", buf_cstr(&names));
}

int config_read_map(const struct place *place, const struct yaml_node *node,
	const struct config_key *keys, void *into)
{
	if (node->type != YAML_MAP)
		return place_bad(place, "must be a map of keys and values");
	for (size_t i = 0; i < node->count; i++) {
		struct place here = place_member(place, node->keys[i], node->key_lines[i]);
		const struct config_key *key = find_key(keys, node->keys[i]);
		if (!key)
			return unknown_key(&here, keys);
		if (yaml_is_null(&node->items[i]))
			continue;
		int r = key->read_fn(&here, &node->items[i], (char *)into + key->offset);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- single values -------------------------------------------------------------------------------- */

int config_scalar(const struct place *place, const struct yaml_node *node, const char **ret_text)
{
	if (node->type != YAML_SCALAR || yaml_is_null(node))
		return place_bad(place, "must be a single value, not a list, a map or nothing");
	if (!*node->text)
		return place_bad(place, "must not be empty");
	*ret_text = node->text;
	return 0;
}

int config_set(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return err_set(-ENOMEM, "configuration");
	free(*to);
	*to = copy;
	return 0;
}

int config_append(char ***list, size_t *n, const char *text)
{
	char **grown = reallocarray(*list, *n + 1, sizeof(*grown));

	if (!grown)
		return err_set(-ENOMEM, "configuration");
	*list = grown;
	grown[*n] = NULL;
	int r = config_set(&grown[*n], text);
	if (r == 0)
		++*n;
	return r;
}

int config_choice(const struct place *place, const char *text, const char *const *names,
	unsigned *ret_choice)
{
	CLEANUP(buf_release) struct buf allowed = BUF_INIT;

	for (unsigned i = 0; names[i]; i++) {
		if (strcmp(names[i], text) == 0) {
			*ret_choice = i;
			return 0;
		}
		buf_printf(&allowed, "%s%s", i ? " or " : "", names[i]);
	}
	return place_bad(place, "must be %s, not '%s'", buf_cstr(&allowed), text);
}

int config_read_either(const struct place *place, const struct yaml_node *node,
	const char *const *names, bool *to)
{
	const char *text;
	unsigned choice;

	int r = config_scalar(place, node, &text);
	if (r == 0)
		r = config_choice(place, text, names, &choice);
	if (r == 0)
		*to = choice == 1;
	return r;
}

int config_read_text(const struct place *place, const struct yaml_node *node, void *to)
{
	const char *text;

	int r = config_scalar(place, node, &text);
	return r < 0 ? r : config_set(to, text);
}

int config_read_duration(const struct place *place, const struct yaml_node *node, void *to)
{
	const char *text;

	int r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	r = config_duration(text, to);
	return r < 0 ? place_refuse(place, r) : 0;
}

int config_read_size(const struct place *place, const struct yaml_node *node, void *to)
{
	const char *text;

	int r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	r = config_size(text, to);
	return r < 0 ? place_refuse(place, r) : 0;
}

int config_read_number(const struct place *place, const struct yaml_node *node, uint32_t min,
	uint32_t max, uint32_t *to)
{
	const char *text;
	uint64_t n = 0;

	int r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	r = decimal_parse(bytes_str(text), max, &n);
	if (r == 0 && n < min)
		r = err_say(ERR_SYNTAX, "less than %u: '%s'", min, text);
	if (r < 0)
		return place_bad(place, "%s; allowed are %u to %u", err_text(r), min, max);
	*to = (uint32_t)n;
	return 0;
}

/* ---- paths ---------------------------------------------------------------------------------------- */

static const char *home_directory(void)
{
	const char *home = getenv("HOME");
	const struct passwd *user = home && *home ? NULL : getpwuid(getuid());

	return user ? user->pw_dir : home;
}

int config_set_path(char **to, const char *path, const char *base)
{
	char working[PATH_MAX];
	AUTO_FREE char *whole = NULL;
	bool at_home = path[0] == '~' && (path[1] == '/' || !path[1]);

	if (path[0] == '/')
		return config_set(to, path);
	if (at_home)
		base = home_directory();
	if (at_home && !(base && *base))
		return err_say(ERR_CONFIG, "'%s': no home directory is known", path);
	if (!base && !getcwd(working, sizeof(working)))
		return err_set(-errno, "finding the working directory");
	const char *rest = at_home ? path + 1 + (path[1] == '/') : path;
	if (asprintf(&whole, "%s%s%s", base ? base : working, *rest ? "/" : "", rest) < 0) {
		whole = NULL; /* undefined after a failure */
		return err_set(-ENOMEM, "configuration");
	}
	return config_set(to, whole);
}

/* The directory of FILE, absolute. */
static int directory_of(const char *file, char **ret_directory)
{
	AUTO_FREE char *whole = NULL;

	int r = config_set_path(&whole, file, NULL);
	if (r < 0)
		return r;
	char *slash = strrchr(whole, '/');
	slash[slash == whole] = '\0'; /* "/" keeps its slash */
	*ret_directory = TAKE(whole);
	return 0;
}

int config_read_path(const struct place *place, const struct yaml_node *node, void *to)
{
	AUTO_FREE char *base = NULL;
	const char *text;

	int r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	r = directory_of(place->file, &base);
	if (r == 0)
		r = config_set_path(to, text, base);
	return r < 0 ? place_refuse(place, r) : 0;
}
