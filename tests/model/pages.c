/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists in pages. A walk is always under way, one page of it in a step. So any other step may
 * happen between its pages. Each page must equal the model's page of the state as of the first
 * page, in the order of keys or of a field.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/world.h"

/* Paths to sort by, and where an object stands then. */
static const char *const paths[] = {
	NULL, "metadata.name", "spec.nodeName", "metadata.resourceVersion", "metadata.labels.n"};
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static int order_of(int key)
{
	for (int i = 0; i < KEYS; i++)
		if (model_key_in_order(i) == key)
			return i;
	return -1;
}

static struct place place_of(const struct pages *pages, int key, const struct object *object)
{
	struct place place = {0, order_of(key)};

	if (pages->path == 1)
		place.rank = (uint64_t)key;
	else if (pages->path == 2 || pages->path == 4)
		place.rank = object->node;
	else if (pages->path == 3)
		place.rank = object->rv;
	return place;
}

static int compare(struct place a, struct place b)
{
	return a.rank != b.rank ? (a.rank > b.rank) - (a.rank < b.rank) : a.order - b.order;
}

/* ---- the expected page -------------------------------------------------- */

struct page {
	int key[KEYS];
	struct place place[KEYS];
	int n;
};

static void page_add(struct page *page, int key, struct place place)
{
	int i = page->n++;

	for (; i > 0 && compare(page->place[i - 1], place) > 0; i--) {
		page->key[i] = page->key[i - 1];
		page->place[i] = page->place[i - 1];
	}
	page->key[i] = key;
	page->place[i] = place;
}

/* Collects the objects of the walk's state after the last page. */
static void make_page(const struct pages *pages, const struct latest state[KEYS], struct page *page)
{
	page->n = 0;
	for (int k = 0; k < KEYS; k++) {
		struct place place = place_of(pages, k, &state[k].object);

		if (selection_takes(&pages->selection, k, &state[k].object) &&
			(!pages->token || compare(place, pages->last) > 0))
			page_add(page, k, place);
	}
}

/* Returns whether the log no longer reaches back to the walk's state: something of the feed was
 * trimmed, or the name stands for another feed. */
static bool state_is_trimmed(const struct world *world, uint32_t id)
{
	const struct pages *pages = &world->pages;

	if (!pages->token)
		return false;
	for (uint64_t seq = pages->as_of + 1; seq <= world->model.horizon; seq++)
		if (world->model.log[seq - 1].id == id)
			return true;
	return id != pages->id;
}

static int expected(struct world *world, uint32_t id)
{
	int r = reads_expected(world, id, selection_index(&world->pages.selection));

	return r == KINF_FOUND && state_is_trimmed(world, id) ? KINF_GONE : r;
}

static void check_complete(const struct pages *pages, const struct latest state[KEYS])
{
	for (int k = 0; k < KEYS; k++)
		MUST(pages->came[k] == selection_takes(&pages->selection, k, &state[k].object),
			"pages: key %d came %u times", k, pages->came[k]);
}

/* ---- a page ------------------------------------------------------------- */

static void check_object_of(const struct kinf_object *object, int key, const struct latest *want)
{
	const char *text;
	size_t size;
	char node[16];

	MUST(key_number(BYTES(object->key, object->key_size)) == key,
		"pages: %.*s where key %d was due", (int)object->key_size, object->key, key);
	MUST(object->event == want->seq, "pages: key %d is at %" PRIu64 ", wanted %" PRIu64, key,
		object->event, want->seq);
	(void)snprintf(node, sizeof(node), "node-%u", want->object.node);
	MUST(kinf_object_path(object, "spec.nodeName", &text, &size) == KINF_FOUND &&
			bytes_equal(BYTES(text, size), bytes_str(node)),
		"pages: key %d: node", key);
}

static void take_page(
	struct world *world, struct kinf_listing *list, const struct latest state[KEYS])
{
	struct pages *pages = &world->pages;
	struct kinf_object object;
	struct page page;
	int n = 0, r;

	make_page(pages, state, &page);
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		MUST(n < page.n, "pages: one too much, %.*s", (int)object.key_size, object.key);
		check_object_of(&object, page.key[n], &state[page.key[n]]);
		pages->came[page.key[n]]++;
		pages->last = page.place[n++];
	}
	MUST(r == KINF_END, "pages: %s", kinf_error(world->kinf));
	int due = pages->limit && (int)pages->limit < page.n ? (int)pages->limit : page.n;
	MUST(n == due, "pages: %d objects, wanted %d (%s)", n, due, kinf_list_plan(list));
	const char *token = kinf_list_continue(list);
	MUST(!token == (n == page.n), "pages: %d of %d, token %s", n, page.n,
		token ? token : "none");
	char *copy = token ? strdup(token) : NULL;
	free(pages->token);
	pages->token = copy;
}

static void begin(struct world *world)
{
	struct pages *pages = &world->pages;

	*pages = (struct pages){.open = true,
		.feed = world_random(world, FEEDS),
		.limit = world_random(world, 3) ? 1 + world_random(world, 6) : 0,
		.path = world_random(world, 2) ? world_random(world, PATHS) : 0};
	selection_random(world, true, &pages->selection);
}

void pages_end(struct world *world)
{
	free(world->pages.token);
	world->pages = (struct pages){.open = false};
}

void pages_step(struct world *world)
{
	struct pages *pages = &world->pages;
	struct latest state[KEYS];
	struct kinf_query query;
	struct kinf_term term;
	struct kinf_listing *list = NULL;

	if (!pages->open)
		begin(world);
	uint32_t id = world->model.committed[pages->feed].id;
	int want = expected(world, id);
	selection_query(&pages->selection, world_feeds[pages->feed], &term, &query);
	query.limit = pages->limit;
	query.sort_by = paths[pages->path];
	query.continue_token = pages->token;
	int r = kinf_list(world->reads, &query, &list);
	MUST(r == want, "pages: %d (%s), wanted %d", r, kinf_error(world->kinf), want);
	if (r != KINF_FOUND) {
		if (r != KINF_AGAIN)
			pages_end(world);
		return;
	}
	uint64_t visible = snapshot_visible(world->snapshot, id);
	if (!pages->token) {
		pages->as_of = visible;
		pages->id = id;
	}
	model_state(&world->model, id, pages->as_of, state);
	take_page(world, list, state);
	kinf_list_close(&list);
	if (pages->token)
		return;
	check_complete(pages, state);
	world->walks++;
	pages_end(world);
}
