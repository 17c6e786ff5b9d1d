/* SPDX-License-Identifier: Apache-2.0 */
/* What a running process can't change, in one table. */
#include "common/config/config.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"

struct fixed_key {
	const char *name; /* as in kinf.yaml */
	unsigned users; /* enum config_user: to whom it matters */
	size_t offset, size;
	bool is_text;
};

#define VALUE(field) offsetof(struct config, field), sizeof(((struct config *)0)->field), false
#define TEXT(field)  offsetof(struct config, field), sizeof(char *), true
#define DAEMONS      (CONFIG_REFLECTOR | CONFIG_PROCESSOR)

static const struct fixed_key keys[] = {
	{"cluster.kubeconfig", CONFIG_REFLECTOR, TEXT(kubeconfig)},
	{"cluster.context", CONFIG_REFLECTOR, TEXT(context)},
	{"store", DAEMONS | CONFIG_RUN, TEXT(store)},
	{"runtimeDir", DAEMONS | CONFIG_RUN, TEXT(runtime_dir)},
	{"durability", CONFIG_REFLECTOR, VALUE(durable)},
	{"group", DAEMONS, TEXT(group)},
	{"mapSize", DAEMONS, VALUE(map_bytes)},
};

static bool same_text(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return x && y ? strcmp(x, y) == 0 : x == y;
}

static void swap(void *a, void *b, size_t size)
{
	uint8_t room[sizeof(uint64_t)]; /* of the largest kind */

	memcpy(room, a, size);
	memcpy(a, b, size);
	memcpy(b, room, size);
}

static bool same(const struct fixed_key *key, const struct config *a, const struct config *b)
{
	const char *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	return key->is_text ? same_text(x, y) : !memcmp(x, y, key->size);
}

bool config_needs_restart(const struct config *running, const struct config *config,
	enum config_user user, char ret_keys[CONFIG_KEYS_SIZE])
{
	size_t used = 0;

	ret_keys[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if ((keys[i].users & user) && !same(&keys[i], running, config))
			used += (size_t)snprintf(ret_keys + used, CONFIG_KEYS_SIZE - used, "%s%s",
				used ? ", " : "", keys[i].name);
	return used > 0;
}

/* Swapped rather than copied: nothing can fail, and who borrowed a text from RUNNING keeps it. */
void config_keep_fixed(struct config *config, struct config *running)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		swap((char *)config + keys[i].offset, (char *)running + keys[i].offset, keys[i].size);
}
