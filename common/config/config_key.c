/* SPDX-License-Identifier: Apache-2.0 */
/* The table of config.def, and the work on one key by its type. */
#include "common/config/config_internal.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/config/units.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "common/text/similar.h"
#include "common/text/utf8.h"

const struct config_key config_keys[] = {
#define KEY(key, type, field, minimum, maximum, initial, restart, help) \
	{key, CONFIG_##type, offsetof(struct config, field), minimum, maximum, initial, \
		CONFIG_##restart},
#define FEED_KEY(key, type, field, minimum, maximum, initial, help)
#include "common/config/config.def"
#undef KEY
#undef FEED_KEY
	{0},
};

const struct config_key config_feed_keys[] = {
#define KEY(key, type, field, minimum, maximum, initial, restart, help)
#define FEED_KEY(key, type, field, minimum, maximum, initial, help) \
	{key, CONFIG_##type, offsetof(struct config_feed, field), minimum, maximum, initial, \
		CONFIG_RELOAD},
#include "common/config/config.def"
#undef KEY
#undef FEED_KEY
	{0},
};

bool config_is_text(enum config_type type)
{
	return type == CONFIG_TEXT || type == CONFIG_PATH || type == CONFIG_ADDRESSES ||
	       type == CONFIG_RULES;
}

/* ---- places ------------------------------------------------------------- */

struct config_place config_place_member(
	const struct config_place *outer, const char *key, size_t line)
{
	struct config_place place = {.file = outer->file, .line = line};

	(void)snprintf(place.key, sizeof(place.key), "%.150s%s%.100s", outer->key,
		*outer->key ? "." : "", key);
	return place;
}

struct config_place config_place_item(const struct config_place *outer, size_t i, size_t line)
{
	struct config_place place = {.file = outer->file, .line = line};

	(void)snprintf(place.key, sizeof(place.key), "%.200s[%zu]", outer->key, i);
	return place;
}

int config_refuse(const struct config_place *place, const char *format, ...)
{
	char text[800];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!place->file)
		return err_say(strncmp(place->key, "--", 2) == 0 ? ERR_SYNTAX : ERR_CONFIG,
			"%s: %s", place->key,
			text); /* an option of the command line is wrong usage */
	return err_say(ERR_CONFIG, "%s:%zu: %s%s%s", place->file, place->line, place->key,
		*place->key ? ": " : "", text);
}

int config_refuse_code(const struct config_place *place, int code)
{
	return code > -1000 ? code : config_refuse(place, "%s", err_text(code));
}

/* ---- texts and paths ---------------------------------------------------- */

int config_copy(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return err_set(-ENOMEM, "copying a text of the configuration");
	free(*to);
	*to = copy;
	return 0;
}

int config_append(char ***list, size_t *n, const char *text)
{
	size_t room = *n; /* these lists are short, and grow one by one */
	char *copy = NULL;

	int r = config_copy(&copy, text);
	if (r == 0)
		r = ARRAY_ADD(*list, *n, room, copy, "a list of the configuration");
	if (r < 0)
		free(copy);
	return r;
}

void config_free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* Removes empty components, `.` and `..` from the absolute PATH. A `..` after a symbolic link
 * stays: it leads elsewhere. */
static void config_clean_path(char *path)
{
	char *end = path, *slash;
	struct stat st;

	for (char *part = path; *part;) {
		size_t size = 1 + strcspn(part + 1, "/"); /* with the slash before it */
		char *next = part + size;
		bool up = size == 3 && part[1] == '.' && part[2] == '.';

		if (size == 1 || (size == 2 && part[1] == '.')) {
			part = next;
			continue;
		}
		if (up) {
			char kept = *end;

			*end = '\0';
			slash = strrchr(path, '/');
			up = !slash || (strcmp(slash, "/..") != 0 &&
					       !(lstat(path, &st) == 0 && S_ISLNK(st.st_mode)));
			*end = kept;
			if (up)
				end = slash ? slash : path;
		}
		if (!up) {
			memmove(end, part, size);
			end += size;
		}
		part = next;
	}
	if (end == path)
		*end++ = '/';
	*end = '\0';
}

int config_copy_path(char **to, const char *path, const char *base)
{
	char working[PATH_MAX];
	bool at_home = path[0] == '~' && (path[1] == '/' || !path[1]);

	if (path[0] == '/')
		base = "";
	if (at_home) {
		const char *home = getenv("HOME");
		const struct passwd *user = home && *home ? NULL : getpwuid(getuid());

		base = user ? user->pw_dir : home;
		if (!base || !*base)
			return err_say(ERR_CONFIG,
				"'%s': no home directory is known; set HOME or write an absolute "
				"path",
				path);
		path += 1 + (path[1] == '/');
	}
	if (!base && !getcwd(working, sizeof(working)))
		return err_set(-errno, "finding the working directory");
	char *whole;
	if (asprintf(&whole, "%s%s%s", base ? base : working, *path ? "/" : "", path) < 0)
		return err_set(-ENOMEM, "making a path absolute");
	if (*whole == '/') /* not with a base such as XDG_STATE_HOME=state */
		config_clean_path(whole);
	free(*to);
	*to = whole;
	return 0;
}

/* ---- values ------------------------------------------------------------- */

/* Reads TEXT as a number, a duration or a size. */
static int config_parse_quantity(enum config_type type, const char *text, uint64_t *ret_value)
{
	switch (type) {
	case CONFIG_DURATION:
	case CONFIG_DURATION_OR_NONE:
		return units_duration(text, ret_value);
	case CONFIG_SIZE:
		return units_size(text, ret_value);
	default:
		return decimal_parse(bytes_str(text), UINT32_MAX, ret_value);
	}
}

static int config_set_quantity(
	const struct config_place *place, const struct config_key *key, const char *text, void *to)
{
	bool none_allowed = key->type == CONFIG_DURATION_OR_NONE;
	uint64_t value, minimum = 0, maximum = UINT64_MAX;

	int r = config_parse_quantity(key->type, text, &value);
	if (r < 0 && key->type != CONFIG_NUMBER)
		return config_refuse_code(place, r);
	/* The table's own texts always parse; test_config.c reads them all. */
	if (key->minimum)
		(void)config_parse_quantity(key->type, key->minimum, &minimum);
	if (key->maximum)
		(void)config_parse_quantity(key->type, key->maximum, &maximum);
	if (r < 0)
		return config_refuse(place, "not a number: '%s'; allowed are %s to %s", text,
			key->minimum, key->maximum);
	if ((value < minimum || value > maximum) && !(none_allowed && !value))
		return config_refuse(place, "'%s': allowed are %s to %s%s", text, key->minimum,
			key->maximum, none_allowed ? ", and 0s for none" : "");
	if (key->type == CONFIG_NUMBER)
		*(uint32_t *)to = (uint32_t)value;
	else
		*(uint64_t *)to = value;
	return 0;
}

/* Returns the number, from 1 on, of TEXT in WORDS, separated by bars; 0: absent. */
static uint32_t config_word_number(const char *words, const char *text)
{
	uint32_t number = 1;

	for (size_t size; (size = strcspn(words, "|")); number++) {
		if (strlen(text) == size && memcmp(words, text, size) == 0)
			return number;
		words += size + (words[size] == '|');
	}
	return 0;
}

/* Returns 1 or 0 for a boolean word of YAML 1.1, else -1: YAML 1.1 turns off into false. */
static int config_boolean(const char *text)
{
	static const char *const words[] = {"false", "true", "off", "on", "no", "yes"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (ascii_equal(bytes_str(text), bytes_str(words[i])))
			return i % 2;
	return -1;
}

/* Keeps the line of KEY. */
static void config_note_line(
	const struct config_place *place, const struct config_key *key, void *into)
{
	if (key >= config_keys && key < config_keys + CONFIG_N_KEYS)
		((struct config *)into)->lines[key - config_keys] = place->file ? place->line : 0;
}

static size_t config_key_number(const char *key)
{
	size_t i = 0;

	while (strcmp(config_keys[i].name, key) != 0)
		i++;
	return i;
}

void config_forget_line(struct config *config, const char *key)
{
	config->lines[config_key_number(key)] = 0;
}

int config_blame(const struct config *config, const char *key, int r)
{
	size_t line = config->lines[config_key_number(key)];

	return line ? err_add(r, "%s:%zu: %s", config->file, line, key) : r;
}

static int config_set_value(const struct config_place *place, const struct config_key *key,
	const char *text, void *into)
{
	AUTO_FREE char *base = NULL;
	void *to = (char *)into + key->offset;
	size_t size = strlen(text);
	uint64_t share = 0;
	int r = 0;

	config_note_line(place, key, into);
	switch (key->type) {
	case CONFIG_TEXT:
		return config_copy(to, text);
	case CONFIG_PATH:
		/* an empty path is no directory, neither the file's nor the working one */
		if (!*text)
			return config_refuse(place, "must not be empty");
		/* A relative path begins in the directory of the file. */
		if (place->file)
			r = config_copy_path(&base, place->file, NULL);
		if (r == 0 && base) {
			char *slash = strrchr(base, '/');
			slash[slash == base] = '\0'; /* the root keeps its slash */
		}
		if (r == 0)
			r = config_copy_path(to, text, base);
		return r < 0 ? config_refuse_code(place, r) : 0;
	case CONFIG_CHOICE:
		if (strcmp(text, key->minimum) != 0 && strcmp(text, key->maximum) != 0)
			return config_refuse(place, "must be %s or %s, not '%s'", key->minimum,
				key->maximum, text);
		*(bool *)to = strcmp(text, key->maximum) == 0;
		return 0;
	case CONFIG_SWITCH:
		r = config_boolean(text);
		if (r < 0)
			return config_refuse(place,
				"must be true or false, not '%s'; on, off, yes and no mean the "
				"same",
				text);
		*(bool *)to = r;
		return 0;
	case CONFIG_NUMBER:
	case CONFIG_DURATION:
	case CONFIG_DURATION_OR_NONE:
	case CONFIG_SIZE:
		return config_set_quantity(place, key, text, to);
	case CONFIG_WORD:
		*(uint32_t *)to = config_word_number(key->minimum, text);
		return *(uint32_t *)to ? 0
				       : config_refuse(place, "must be one of %s, not '%s'",
						 key->minimum, text);
	case CONFIG_SHARE:
		/* "50%" or "off". There is no 100%: a list can't delete more than everything. */
		if (config_boolean(text) != 0 &&
			(text[size - 1] != '%' ||
				decimal_parse(BYTES(text, size - 1), 99, &share) < 0 || share == 0))
			return config_refuse(
				place, "not a share: '%s'; allowed are 1%% to 99%%, and off", text);
		*(uint32_t *)to = (uint32_t)share;
		return 0;
	default:
		return config_set_feed_value(place, key->type, text, into);
	}
}

int config_set(const struct config_place *place, const struct config_key *keys, const char *name,
	const char *text, void *into)
{
	while (strcmp(keys->name, name) != 0)
		keys++;
	return config_set_value(place, keys, text, into);
}

int config_set_defaults(const struct config_key *keys, void *into)
{
	int r = 0;

	for (; r == 0 && keys->name; keys++)
		if (keys->initial) {
			struct config_place place = {0};

			r = config_set_value(&place, keys, keys->initial, into);
		}
	return r;
}

/* ---- maps --------------------------------------------------------------- */

int config_scalar(
	const struct config_place *place, const struct yaml_node *node, const char **ret_text)
{
	if (node->type != YAML_SCALAR || yaml_is_null(node))
		return config_refuse(place, "must be a single value, not a list, a map or nothing");
	if (!*node->text)
		return config_refuse(place, "must not be empty");
	*ret_text = node->text;
	return 0;
}

static int config_read_value(const struct config_place *place, const struct yaml_node *node,
	const struct config_key *key, void *into)
{
	const char *text;

	switch (key->type) {
	case CONFIG_FEEDS:
		return config_read_feeds(place, node, into);
	case CONFIG_INDEXES:
		return config_read_indexes(place, node, into);
	case CONFIG_ADDRESSES:
		config_note_line(place, key, into);
		return config_read_addresses(place, node, (char **)((char *)into + key->offset));
	case CONFIG_RULES:
		return config_read_rules(place, node, (char **)((char *)into + key->offset));
	case CONFIG_NAMESPACES:
	case CONFIG_DROP:
	case CONFIG_EXCLUDE:
		return config_read_list(place, node, key, into);
	default:
		break;
	}
	int r = config_scalar(place, node, &text);
	return r < 0 ? r : config_set_value(place, key, text, into);
}

/* Refuses KEY; names the keys with the prefix PREFIX ("" or "retention."), nested maps once. */
static int config_refuse_key(const struct config_place *place, const struct config_key *keys,
	const char *prefix, const char *key)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;
	const char *last = "";
	char one[64], meant[128] = "";
	size_t skip = strlen(prefix), size = 0;

	for (; keys->name; keys++) {
		if (strncmp(keys->name, prefix, skip) != 0)
			continue;
		const char *name = keys->name + skip;
		if (size && strncmp(name, last, size) == 0 && (!name[size] || name[size] == '.'))
			continue;
		last = name;
		size = strcspn(name, ".");
		buf_printf(&names, "%s%.*s", names.size ? ", " : "", (int)size, name);
		(void)snprintf(one, sizeof(one), "%.*s", (int)size, name);
		if (similar(key, one))
			(void)snprintf(meant, sizeof(meant), ": did you mean '%s'?", one);
		if (strcmp(one, "resource") == 0 &&
			(strcmp(key, "group") == 0 || strcmp(key, "version") == 0))
			(void)snprintf(meant, sizeof(meant),
				": write it in resource, as deployments.apps or "
				"deployments.v1.apps");
	}
	return config_refuse(place, "unknown key%s; allowed here: %s", meant, buf_cstr(&names));
}

int config_read_map(const struct config_place *place, const struct yaml_node *node,
	const struct config_key *keys, const char *prefix, void *into)
{
	if (node->type != YAML_MAP)
		return config_refuse(place, "must be a map of keys and values");
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml_node *item = &node->items[i];
		struct config_place here =
			config_place_member(place, node->keys[i], node->key_lines[i]);
		char name[128], members[130];

		(void)snprintf(name, sizeof(name), "%s%s", prefix, node->keys[i]);
		(void)snprintf(members, sizeof(members), "%s.", name);
		const struct config_key *key = NULL;
		bool is_map = false;
		for (const struct config_key *k = keys; k->name; k++) {
			if (strcmp(k->name, name) == 0)
				key = k;
			is_map |= strncmp(k->name, members, strlen(members)) == 0;
		}
		if ((!key && !is_map) || strchr(node->keys[i], '.'))
			return config_refuse_key(&here, keys, prefix, node->keys[i]);
		if (yaml_is_null(item))
			continue;
		int r = is_map && (!key || item->type == YAML_MAP)
				? config_read_map(&here, item, keys, members, into)
				: config_read_value(&here, item, key, into);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- keys that need a restart ------------------------------------------- */

static size_t config_value_size(const struct config_key *key)
{
	switch (key->type) {
	case CONFIG_CHOICE:
	case CONFIG_SWITCH:
		return sizeof(bool);
	case CONFIG_NUMBER:
	case CONFIG_SHARE:
	case CONFIG_WORD:
		return sizeof(uint32_t);
	default:
		return sizeof(uint64_t); /* or a pointer */
	}
}

static void config_add_key(char keys[CONFIG_KEYS_SIZE], size_t *used, const char *name)
{
	size_t room = CONFIG_KEYS_SIZE - *used;
	int n = snprintf(keys + *used, room, "%s%s", *used ? ", " : "", name);

	*used += n > 0 && (size_t)n < room ? (size_t)n : room - 1;
}

bool config_needs_restart(const struct config *running, const struct config *config,
	enum config_user user, char ret_keys[CONFIG_KEYS_SIZE])
{
	size_t used = 0;

	ret_keys[0] = '\0';
	if ((user & CONFIG_RUN) && running->serve.enabled != config->serve.enabled)
		config_add_key(ret_keys, &used, "serve");
	for (const struct config_key *key = config_keys; key->name; key++) {
		const char *x = (const char *)running + key->offset;
		const char *y = (const char *)config + key->offset;
		bool same = memcmp(x, y, config_value_size(key)) == 0;

		if (!same && config_is_text(key->type)) {
			x = *(char *const *)x;
			y = *(char *const *)y;
			same = x && y && strcmp(x, y) == 0;
		}
		if ((key->restart & user) && !same)
			config_add_key(ret_keys, &used, key->name);
	}
	return used > 0;
}

/* Swaps rather than copies: nothing can fail, and texts borrowed from RUNNING stay valid. */
void config_keep_fixed(struct config *config, struct config *running)
{
	for (const struct config_key *key = config_keys; key->name; key++) {
		char *a = (char *)config + key->offset, *b = (char *)running + key->offset;
		char kept[sizeof(uint64_t)];
		size_t size = config_value_size(key);

		if (!key->restart)
			continue;
		memcpy(kept, a, size);
		memcpy(a, b, size);
		memcpy(b, kept, size);
	}
	config->serve.enabled = running->serve.enabled;
}
