/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/world.h"

#include <stdio.h>
#include <time.h>

#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

#define WAIT_MAX_MS 1000

uint64_t world_now_ms(void)
{
	struct timespec now;

	REQUIRE(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void world_wait(struct world *world, uint64_t deadline_ms)
{
	uint64_t now = world_now_ms();

	if (deadline_ms <= now)
		return;
	if (deadline_ms > now + WAIT_MAX_MS)
		deadline_ms = now + WAIT_MAX_MS;

	struct timespec until = {.tv_sec = (time_t)(deadline_ms / 1000),
		.tv_nsec = (long)(deadline_ms % 1000) * 1000000};

	(void)pthread_cond_timedwait(
		&world->changed, &world->lock, &until); /* the caller checks its condition again */
}

void world_wake(struct world *world)
{
	pthread_cond_broadcast(&world->changed);
}

/* ---- kinds -------------------------------------------------------------- */

static struct collection *world_find_known(
	struct world *world, const char *group, const char *version, const char *resource)
{
	for (size_t i = 0; i < world->n_collections; i++) {
		const struct kind *kind = world->collections[i].kind;

		if (!strcmp(kind->group, group) && !strcmp(kind->version, version) &&
			!strcmp(kind->resource, resource))
			return &world->collections[i];
	}
	return NULL;
}

struct collection *world_find(
	struct world *world, const char *group, const char *version, const char *resource)
{
	struct collection *collection = world_find_known(world, group, version, resource);

	return collection && !collection->gone ? collection : NULL;
}

/* Prefers a served version. */
struct collection *world_named(struct world *world, const char *name)
{
	struct collection *gone = NULL;

	for (size_t i = 0; i < world->n_collections; i++) {
		const struct kind *kind = world->collections[i].kind;
		size_t length = strlen(kind->resource);

		if (strncmp(name, kind->resource, length))
			continue;
		if (name[length] &&
			(name[length] != '.' || strcmp(name + length + 1, kind->group) != 0))
			continue;
		if (!world->collections[i].gone)
			return &world->collections[i];
		if (!gone)
			gone = &world->collections[i];
	}
	return gone;
}

struct collection *world_add(struct world *world, const struct kind *kind)
{
	struct collection *collection =
		world_find_known(world, kind->group, kind->version, kind->resource);

	if (collection ? !collection->gone || world->n_former == WORLD_KINDS_MAX
		       : world->n_collections == WORLD_KINDS_MAX)
		return NULL;
	if (collection) /* an ending watch may still use the old description */
		world->former[world->n_former++] = collection->kind;
	else
		collection = &world->collections[world->n_collections++];
	collection->kind = kind;
	collection->gone = false;
	return collection;
}

/* ---- history ------------------------------------------------------------ */

const struct version *version_at(const struct entry *entry, uint64_t rv)
{
	const struct version *version = entry->newest;

	while (version && version->rv > rv)
		version = version->older;
	return version && !version->deleted ? version : NULL;
}

uint64_t collection_floor(const struct world *world, const struct collection *collection)
{
	return world->compacted > collection->trimmed ? world->compacted : collection->trimmed;
}

uint64_t collection_fresh(const struct world *world, const struct collection *collection)
{
	bool knows = !world->settings.progress_ms || collection->fresh > world->rv;

	return knows ? world->rv : collection->fresh;
}

bool collection_await(struct world *world, struct collection *collection, uint64_t rv)
{
	uint64_t give_up = world_now_ms() + world->settings.future_wait_ms;

	while (world->rv < rv && world_now_ms() < give_up)
		world_wait(world, give_up);
	if (world->rv < rv)
		return false;
	uint64_t asked = world_now_ms();
	while (collection_fresh(world, collection) < rv) {
		uint64_t answer = asked + world->settings.progress_ms, now = world_now_ms();

		if (now >= give_up)
			return false;
		if (now < answer) {
			world_wait(world, answer < give_up ? answer : give_up);
		} else {
			collection->fresh = world->rv;
			world_wake(world);
		}
	}
	return true;
}

void world_set_fresh(struct world *world)
{
	for (size_t i = 0; i < world->n_collections; i++)
		world->collections[i].fresh = world->rv;
}

size_t collection_after(const struct collection *collection, uint64_t rv)
{
	size_t low = collection->begin, high = collection->end;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (collection->log[middle]->rv <= rv)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void pin_set(struct collection *collection, struct pin *pin, uint64_t rv)
{
	pin->rv = rv;
	if (pin->link)
		return;
	pin->next = collection->pins;
	pin->link = &collection->pins;
	if (pin->next)
		pin->next->link = &pin->next;
	collection->pins = pin;
}

void pin_drop(struct pin *pin)
{
	if (!pin->link)
		return;
	*pin->link = pin->next;
	if (pin->next)
		pin->next->link = pin->link;
	pin->link = NULL;
}

static void world_drop_entry(struct collection *collection, struct entry *entry)
{
	keylist_remove(&collection->keys, entry);
	free(entry);
}

/* Removes the oldest change from the log and frees the version before it; after a deletion also the
 * key. */
static void world_trim_one(struct collection *collection)
{
	struct version *version = collection->log[collection->begin++];

	collection->trimmed = version->rv;
	free(version->older);
	version->older = NULL;
	if (version->deleted && version->entry->newest == version) {
		world_drop_entry(collection, version->entry);
		free(version);
	}
}

/* Returns the RV to trim the log to: the compacted RV, or further if the log exceeds its limit, but
 * not beyond a pin. A pin keeping twice the limit is marked as lost. */
static uint64_t world_trim_target(struct world *world, struct collection *collection)
{
	size_t length = collection->end - collection->begin, limit = world->settings.history;
	uint64_t target = world->compacted;

	if (length > limit && collection->log[collection->end - limit - 1]->rv > target)
		target = collection->log[collection->end - limit - 1]->rv;
	for (struct pin *pin = collection->pins; pin; pin = pin->next) {
		if (pin->rv >= target || pin->lost)
			continue;
		if (length > 2 * limit)
			pin->lost = true;
		else
			target = pin->rv;
	}
	if (world->saved && world->saved < target)
		target = world->saved;
	return target;
}

static void world_trim(struct world *world, struct collection *collection)
{
	uint64_t target = world_trim_target(world, collection);

	while (collection->begin < collection->end &&
		collection->log[collection->begin]->rv <= target)
		world_trim_one(collection);
}

static void world_log_append(struct collection *collection, struct version *version)
{
	if (collection->end == collection->capacity &&
		collection->begin > collection->capacity / 2) {
		collection->end -= collection->begin;
		memmove(collection->log, collection->log + collection->begin,
			collection->end * sizeof(struct version *));
		collection->begin = 0;
	}
	if (collection->end == collection->capacity) {
		collection->capacity = collection->capacity ? collection->capacity * 2 : 256;
		collection->log = memory_resize(
			collection->log, collection->capacity * sizeof(struct version *));
	}
	collection->log[collection->end++] = version;
}

/* ---- changes ------------------------------------------------------------ */

static struct entry *world_entry_for(struct collection *collection, const char *key)
{
	struct entry *entry = keylist_find(&collection->keys, key);
	size_t size = strlen(key) + 1;

	if (entry)
		return entry;
	entry = memory_take(sizeof(*entry) + size);
	memcpy(entry->key, key, size);
	keylist_insert(&collection->keys, entry);
	return entry;
}

static uint64_t world_commit(struct world *world, struct collection *collection,
	struct entry *entry, struct bytes text, bool deleted)
{
	struct version *version = memory_take(sizeof(*version) + text.size);
	bool existed = entry->newest && !entry->newest->deleted;

	version->rv = collection->fresh = ++world->rv;
	version->older = entry->newest;
	version->entry = entry;
	version->deleted = deleted;
	version->size = text.size;
	memcpy(version->text, text.data, text.size);
	entry->newest = version;
	collection->live += (size_t)!deleted - (size_t)existed;
	world_log_append(collection, version);
	world_trim(world, collection);
	world_wake(world);
	return world->rv;
}

static void world_now_text(char text[32])
{
	time_t now = time(NULL);
	struct tm fields;

	REQUIRE(gmtime_r(&now, &fields) != NULL);
	REQUIRE(strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &fields) > 0);
}

uint64_t world_put(struct world *world, struct collection *collection, struct bytes text)
{
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	CLEANUP(buf_release) struct buf stored = BUF_INIT;
	AUTO_FREE char *old_uid = NULL;
	AUTO_FREE char *old_created = NULL;
	char uid[OBJECT_UID_SIZE], created[32];

	if (!object_key(collection->kind, text, &key))
		return 0;

	struct entry *entry = world_entry_for(collection, buf_cstr(&key));

	object_new_uid(uid);
	world_now_text(created);
	if (entry->newest && !entry->newest->deleted) {
		struct bytes old = version_text(entry->newest);

		old_uid = jsontext_dup(jsontext_get(old, "metadata.uid"));
		old_created = jsontext_dup(jsontext_get(old, "metadata.creationTimestamp"));
	}

	struct object_stamp stamp = {.rv = world->rv + 1,
		.uid = old_uid ? old_uid : uid,
		.created = old_created ? old_created : created};

	object_store(collection->kind, text, &stamp, &stored);
	REQUIRE(buf_error(&stored) == 0);
	return world_commit(world, collection, entry, buf_bytes(&stored), false);
}

uint64_t world_delete(struct world *world, struct collection *collection, const char *key)
{
	CLEANUP(buf_release) struct buf last = BUF_INIT;
	struct entry *entry = keylist_find(&collection->keys, key);

	if (!entry || !entry->newest || entry->newest->deleted)
		return 0;
	object_restamp(version_text(entry->newest), world->rv + 1, &last);
	REQUIRE(buf_error(&last) == 0);
	return world_commit(world, collection, entry, buf_bytes(&last), true);
}

struct entry *collection_any(struct collection *collection)
{
	if (!collection->live)
		return NULL;
	for (;;) {
		size_t n = (size_t)random() % collection->keys.count;
		struct keylist_place place = keylist_nth(&collection->keys, n);
		struct entry *entry = keylist_next(&collection->keys, &place);

		if (!entry->newest->deleted)
			return entry;
	}
}

/* ---- compaction and restore --------------------------------------------- */

void world_compact(struct world *world, uint64_t rv)
{
	uint64_t target = rv && rv < world->rv ? rv : world->rv;

	if (target > world->compacted)
		world->compacted = target;
	for (size_t i = 0; i < world->n_collections; i++)
		world_trim(world, &world->collections[i]);
}

void world_save(struct world *world)
{
	world->saved = world->rv;
}

static void world_undo_one(struct collection *collection)
{
	struct version *version = collection->log[--collection->end];
	struct entry *entry = version->entry;

	entry->newest = version->older;
	bool exists = entry->newest && !entry->newest->deleted;
	collection->live += (size_t)exists - (size_t)!version->deleted;
	free(version);
	if (!entry->newest)
		world_drop_entry(collection, entry);
}

bool world_restore(struct world *world)
{
	if (!world->saved)
		return false;
	for (size_t i = 0; i < world->n_collections; i++) {
		struct collection *collection = &world->collections[i];

		while (collection->end > collection->begin &&
			collection->log[collection->end - 1]->rv > world->saved)
			world_undo_one(collection);
		for (struct pin *pin = collection->pins; pin; pin = pin->next)
			pin->lost = true;
	}
	world->rv = world->saved;
	if (world->compacted > world->rv)
		world->compacted = world->rv;
	world_wake(world);
	return true;
}

void world_remove(struct world *world, struct collection *collection)
{
	for (struct entry *entry; (entry = collection_any(collection));)
		world_delete(world, collection, entry->key);
	collection->gone = true;
	world_wake(world);
}

/* ---- beginning and end -------------------------------------------------- */

static void world_put_namespaces(struct world *world)
{
	static const char *const names[] = {
		"default", "kube-node-lease", "kube-public", "kube-system"};
	struct collection *namespaces = world_find(world, "", "v1", "namespaces");
	char text[400];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int size = snprintf(text, sizeof(text),
			"{\"metadata\":{\"name\":\"%s\","
			"\"labels\":{\"kubernetes.io/metadata.name\":\"%s\"}},"
			"\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":"
			"\"Active\"}}",
			names[i], names[i]);

		world_put(world, namespaces, BYTES(text, (size_t)size));
	}
}

struct world *world_new(void)
{
	struct world *world = memory_take(sizeof(*world));
	pthread_condattr_t monotonic;

	REQUIRE(pthread_mutex_init(&world->lock, NULL) == 0);
	REQUIRE(pthread_condattr_init(&monotonic) == 0);
	REQUIRE(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
	REQUIRE(pthread_cond_init(&world->changed, &monotonic) == 0);
	world->settings = (struct settings){.bookmark_ms = 60000,
		.future_wait_ms = 3000,
		.history = 20000,
		.watch_list = true,
		.aggregated = true};
	for (size_t i = 0; kind_built_in(i); i++)
		REQUIRE(world_add(world, kind_built_in(i)) != NULL);
	world_put_namespaces(world);
	return world;
}

static void collection_release(struct collection *collection)
{
	struct keylist_place place = {0, 0};
	struct entry *entry;

	while ((entry = keylist_next(&collection->keys, &place))) {
		for (struct version *version = entry->newest, *older; version; version = older) {
			older = version->older;
			free(version);
		}
		free(entry);
	}
	keylist_release(&collection->keys);
	free(collection->log);
	kind_free(&collection->kind);
}

void world_free(struct world **world)
{
	if (!*world)
		return;
	for (size_t i = 0; i < (*world)->n_collections; i++)
		collection_release(&(*world)->collections[i]);
	for (size_t i = 0; i < (*world)->n_former; i++)
		kind_free(&(*world)->former[i]);
	pthread_cond_destroy(&(*world)->changed);
	pthread_mutex_destroy(&(*world)->lock);
	free(*world);
	*world = NULL;
}
