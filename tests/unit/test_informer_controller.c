/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of client-go's controller_test.go, named after them (tests/INFORMER_ROWS.md). */
#include "reader/informer/informer.h"

#include "tests/unit/informer_rig.h"

TestSuite(informer_controller, .init = cache_open, .fini = informer_close, .timeout = 120);

#define KEYS 12

static unsigned random_state;

static unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

/* A handler's view by its calls; every call has to fit it. */
struct replica {
	struct kinf_handler *handler;
	unsigned version[KEYS]; /* 0: not there */
	bool synced, in_use, lapsed;
	unsigned calls, resyncs;
};

static unsigned key_of(const struct kinf_object *object)
{
	unsigned key;

	cr_assert_eq(sscanf(object->key + 2, "%2u", &key), 1);
	return key;
}

static unsigned version_of(const struct kinf_object *object)
{
	const char *text;
	unsigned version = 0;
	size_t size;

	cr_assert_eq(kinf_object_path(object, "v", &text, &size), KINF_FOUND);
	for (size_t i = 0; i < size; i++)
		version = version * 10 + (unsigned)(text[i] - '0');
	return version;
}

static void replica_add(void *arg, const struct kinf_object *object, int initial)
{
	struct replica *r = arg;

	cr_assert(r->in_use);
	cr_assert_eq(r->version[key_of(object)], 0, "an add of what is there");
	cr_assert(!initial || !r->synced, "initial after sync");
	r->version[key_of(object)] = version_of(object);
	r->calls++;
}

static void replica_update(
	void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct replica *r = arg;
	unsigned *version = &r->version[key_of(object)];

	cr_assert(r->in_use);
	cr_assert_eq(version_of(old), *version, "the old state is the one told last");
	r->resyncs += version_of(object) == *version;
	*version = version_of(object);
	r->calls++;
}

static void replica_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	struct replica *r = arg;

	(void)final_state_unknown;
	cr_assert(r->in_use);
	cr_assert_neq(r->version[key_of(object)], 0, "a delete of what is not there");
	cr_assert_eq(version_of(object), r->version[key_of(object)], "the last state");
	r->version[key_of(object)] = 0;
	r->calls++;
}

static void replica_sync(void *arg)
{
	((struct replica *)arg)->synced = true;
}

static void replica_lapsed(void *arg)
{
	struct replica *r = arg;

	memset(r->version, 0, sizeof(r->version));
	r->synced = false;
	r->lapsed = true;
}

static void add_replica(struct replica *r)
{
	struct kinf_handler_options options = {.size = sizeof(options),
		.arg = r,
		.on_add = replica_add,
		.on_update = replica_update,
		.on_delete = replica_delete,
		.on_sync = replica_sync,
		.on_lapped = replica_lapsed};

	*r = (struct replica){.in_use = true};
	KINF_OK(kinf_informer_add_handler(informer, &options, &r->handler));
	cr_assert_eq(kinf_handler_synced(r->handler), 0);
}

static unsigned model[KEYS];

static const char *key_name(unsigned key)
{
	static char text[16];

	(void)snprintf(text, sizeof(text), "a/%02u", key);
	return text;
}

static void change(void)
{
	unsigned key = dice(KEYS);

	if (model[key] && dice(3) == 0) {
		cache_delete(key_name(key));
		model[key] = 0;
		return;
	}
	cache_put(key_name(key), NULL);
	model[key] = cache.version;
}

static void relist(void)
{
	char names[KEYS * 8] = "";

	for (unsigned key = 0; key < KEYS; key++) {
		model[key] = dice(2) ? cache.version + 1 : 0;
		if (!model[key])
			continue;
		(void)snprintf(
			names + strlen(names), sizeof(names) - strlen(names), " %s", key_name(key));
		cache.version++;
	}
	for (unsigned key = 0; key < KEYS; key++)
		cache.version -= model[key] != 0;
	cache_relist(names);
}

static void is_as_the_model(const struct replica *r)
{
	cr_assert_eq(kinf_handler_synced(r->handler), 1);
	for (unsigned key = 0; key < KEYS; key++)
		cr_assert_eq(r->version[key], model[key], "%s: %u, not %u", key_name(key),
			r->version[key], model[key]);
}

/* Changes, relists, resyncs, trims, handlers added and removed, dispatches of any size. */
static void live(struct replica *replicas, unsigned n)
{
	for (unsigned step = 0; step < 400; step++) {
		struct replica *r = &replicas[dice(n)];

		change();
		if (dice(20) == 0)
			relist();
		if (dice(3) == 0)
			cache_take();
		if (dice(40) == 0)
			cache_trim();
		if (!r->in_use && dice(3) == 0)
			add_replica(r);
		else if (r->in_use && dice(30) == 0)
			r->in_use = kinf_informer_remove_handler(informer, r->handler) != 0;
		if (r->in_use && dice(10) == 0)
			r->handler->resync_owed = true;
		if (dice(2))
			cr_assert_geq(kinf_informer_dispatch(informer, (int)dice(30)), 0, "%s",
				kinf_error(cache.kinf));
	}
}

Test(informer_controller, TestHammerController)
{
	static struct replica replicas[4];
	unsigned calls = 0, resyncs = 0, lapses = 0;

	informer = tape_informer(NULL);
	for (unsigned seed = 1; seed <= 6; seed++) {
		random_state = seed;
		live(replicas, 4);
		cache_take();
		tape_drain(informer);
		for (unsigned i = 0; i < 4; i++) {
			if (replicas[i].in_use)
				is_as_the_model(&replicas[i]);
			calls += replicas[i].calls;
			resyncs += replicas[i].resyncs;
			lapses += replicas[i].lapsed;
		}
	}
	cr_assert_gt(calls, 500);
	cr_assert_gt(resyncs, 50);
	cr_assert_gt(lapses, 0);
}

/* Each object goes through all it can; at the end it is deleted, and all of them are told so. */
Test(informer_controller, TestUpdate)
{
	static struct replica r;
	unsigned left = 0;

	informer = tape_informer(NULL);
	add_replica(&r);
	random_state = 77;
	for (int i = 0; i < 300; i++) {
		change();
		if (dice(5) == 0)
			cache_take();
		if (dice(3) == 0)
			(void)kinf_informer_dispatch(informer, 7);
	}
	for (unsigned key = 0; key < KEYS; key++) {
		if (model[key])
			cache_delete(key_name(key));
		model[key] = 0;
	}
	cache_take();
	tape_drain(informer);
	is_as_the_model(&r);
	for (unsigned key = 0; key < KEYS; key++)
		left += r.version[key];
	cr_assert_eq(left, 0);
}

/* A handler gets all of a transaction, or nothing. It need not be in the index yet. */
Test(informer_controller, TestProcessDeltasInBatch)
{
	start(&a);
	then_gets(&a, "sync");
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	then_gets(&a, "");
	rig_commit(&cache.rig); /* the processor has not taken it */
	then_gets(&a, "add a/x=1 add a/y=2");
}

static void the_cache_is_final(struct tape *tape)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	CLEANUP(buf_release) struct buf keys = BUF_INIT;
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_object object;
	struct kinf_listing *list;

	(void)tape;
	KINF_OK(kinf_snapshot_open(cache.kinf, &snapshot));
	KINF_OK(kinf_list(snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		buf_printf(&keys, "%.*s ", (int)object.key_size, object.key);
	kinf_list_close(&list);
	cr_assert_str_eq(buf_cstr(&keys), "a/n a/u ");
}

Test(informer_controller, TestReplaceEvents)
{
	cache_put("a/d", NULL);
	cache_put("a/u", NULL);
	cache_take();
	start(&a);
	then_gets(&a, "add! a/d=1 add! a/u=2 sync");
	cache_relist("a/u a/n");
	cache_take();
	a.then = the_cache_is_final;
	then_gets(&a, "upd a/u=2>3 add a/n=4 del? a/d=1");
}

/* Unwatched changes come as a list. */
Test(informer_controller, TestResetWatch)
{
	cache_put("a/x", NULL);
	cache_take();
	start(&a);
	then_gets(&a, "add! a/x=1 sync");
	cache_relist("a/x a/missed");
	cache_take();
	then_gets(&a, "upd a/x=1>2 add a/missed=3");
}
